"""Means over the runs of the study of decisions, and differences between contestants with their intervals."""

from pathlib import Path
from typing import NamedTuple

import pandas

from experiments.decisions.contestants import LABELS, VERSIONS
from experiments.decisions.study import make_stores, table_rows
from experiments.decisions.tables import SOURCES
from experiments.harness.estimates import MeanWithError, average
from whyact.comparison.scoring import corrected_interval
from whyact.intervals import Interval

REFERENCE = "lr"
# The better of these two is chosen for each data set and measure with hindsight, which is in its favour.
STRONG = ("lr", "forest")

Leads = dict[str, Interval]  # by data set


class Results(NamedTuple):
    """The rows of a study."""

    runs: pandas.DataFrame
    few_labels: pandas.DataFrame
    timings: pandas.DataFrame
    tables: pandas.DataFrame  # by name

    @property
    def names(self) -> list[str]:
        """Data sets that have runs."""
        return [name for name in SOURCES if (self.runs["table"] == name).any()]

    @property
    def versions(self) -> list[str]:
        """Versions of ours that have runs."""
        return [name for name in VERSIONS if (self.runs["contestant"] == name).any()]


def read_results(folder: Path) -> Results:
    """The rows of a study's folder."""
    frames = {
        name: pandas.DataFrame(store.read(), columns=list(store.columns)) for name, store in make_stores(folder).items()
    }
    for name in ("runs", "few_labels"):
        optional = ["n_features", "chains_agree"]
        frames[name][optional] = frames[name][optional].astype(float)
    tables = table_rows(folder)
    described = pandas.DataFrame(tables.read(), columns=list(tables.columns)).set_index("table")
    return Results(tables=described.astype({"n_groups": float}), **frames)


def find_means(rows: pandas.DataFrame, measure: str) -> pandas.DataFrame:
    """Means over runs: data sets down, contestants across, both in the order of the study; NaN where none has run."""
    means = rows.groupby(["table", "contestant"])[measure].mean().unstack("contestant")
    return means.reindex(
        index=[name for name in SOURCES if name in means.index],
        columns=[name for name in LABELS if name in means.columns],
    )


def average_over_tables(means: pandas.DataFrame) -> pandas.Series:
    """Mean of each contestant over the data sets that all contestants have seen."""
    return means.dropna().mean()


def find_lead(rows: pandas.DataFrame, contestant: str, other: str, measure: str) -> Interval:
    """Mean difference between two contestants over the runs of one data set that both have.

    The interval allows for the rows that the splits have in common.
    """
    by_name = {name: of_name.set_index("run") for name, of_name in rows.groupby("contestant")}
    differences = (by_name[contestant][measure] - by_name[other][measure]).dropna()
    sizes = by_name[contestant].loc[differences.index, ["n_train", "n_test"]].mean()
    return corrected_interval(differences.to_numpy(), sizes["n_train"], sizes["n_test"])


def find_better(rows: pandas.DataFrame, measure: str, names: tuple[str, ...] = STRONG) -> str:
    """Which of the contestants has the highest mean on one data set."""
    means = rows.groupby("contestant")[measure].mean()
    return max((name for name in names if name in means), key=lambda name: means[name])


def list_leads(rows: pandas.DataFrame, contestant: str, measure: str, others: tuple[str, ...]) -> Leads:
    """The lead of a contestant over the best of some others, on each data set that it and one of them have seen."""
    leads = {}
    for name in SOURCES:
        of_table = rows[rows["table"] == name]
        present = set(of_table["contestant"])
        if contestant in present and present & set(others):
            leads[name] = find_lead(of_table, contestant, find_better(of_table, measure, others), measure)
    return leads


def average_leads(leads: Leads) -> MeanWithError:
    """The mean lead over data sets, each counted once."""
    return average([lead.value for lead in leads.values()])


def find_worst(leads: Leads) -> str:
    """The data set with the smallest lead."""
    return min(leads, key=lambda name: leads[name].value)


def sort_by_verdict(leads: Leads) -> dict[str, list[str]]:
    """Data sets by verdict: ahead, tie, behind or, with too few runs for an interval, unknown."""
    found: dict[str, list[str]] = {}
    for verdict in ("ahead", "tie", "behind", "unknown"):
        if names := [name for name, lead in leads.items() if lead.verdict == verdict]:
            found[verdict] = names
    return found
