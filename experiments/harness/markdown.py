"""What the pages of results are made of: tables, intervals, verdicts, names and numbers in words."""

from experiments.harness.estimates import MeanWithError


def make_table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def say_interval(difference: MeanWithError, spec: str = "+.4f") -> str:
    """A difference with its 95% interval."""
    value, low, high = difference.interval
    return f"{value:{spec}} [{low:{spec}}, {high:{spec}}]"


def say_verdict(lead: MeanWithError) -> str:
    """Ahead, behind, or neither as far as the 95% interval can tell."""
    verdict = lead.interval.verdict
    return verdict if verdict in ("ahead", "behind") else "a tie"


def list_names(names: list[str]) -> str:
    """Names as in "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def count(number: int, noun: str) -> str:
    """A number of things, as in "1 run" or "2 runs"."""
    return f"{number} {noun}{'s' * (number != 1)}"
