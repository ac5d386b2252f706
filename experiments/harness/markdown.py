"""What the pages of results are made of: tables, intervals, verdicts."""

import math

from experiments.harness.estimates import Estimate

# A normal interval of 95%.
WIDTH = 1.96


def make_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def say_interval(difference: Estimate, spec: str = "+.4f") -> str:
    value, half = difference.value, WIDTH * difference.error
    return f"{value:{spec}} [{value - half:{spec}}, {value + half:{spec}}]"


def judge(lead: Estimate) -> str:
    """Ahead, behind, or neither as far as the 95% interval can tell."""
    if abs(lead.value) <= WIDTH * lead.error or math.isnan(lead.error):
        return "a tie"
    return "ahead" if lead.value > 0 else "behind"


def list_names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
