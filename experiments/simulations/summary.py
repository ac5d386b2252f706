"""Means over the runs of the simulation study, with their errors."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas

from experiments.harness.estimates import MeanWithError, average, root_mean_square
from experiments.simulations.peers import ACCURACIES, COUNTS
from experiments.simulations.study import peer_rows, sampler_rows, timing_rows

# Measures of a run whose root mean square over runs is reported, as in the paper; of others it is the mean.
ROOT_MEAN_SQUARES = ("rmse_features", "rmse_substates", "rmse_states", "mad_policies", "n_features_error")
CELL = ["n_features", "snr"]


def summarise(rows: pandas.DataFrame, measure: str) -> MeanWithError:
    """Average a measure over runs, as the paper does."""
    values = rows[measure]
    return root_mean_square(values) if measure in ROOT_MEAN_SQUARES else average(values)


class Results:
    """The rows of a study.

    Attributes
    ----------
    runs : DataFrame
        One row for each run of a sampler, with the error in the number of features.
    peers : DataFrame
        One row for each data set.
    timings : DataFrame
        Seconds of each run of each method.
    """

    def __init__(self, runs: pandas.DataFrame, peers: pandas.DataFrame, timings: pandas.DataFrame) -> None:
        error = runs["n_features_found"] - runs["n_features"]
        self.runs = runs.assign(n_features_error=error, n_features_exact=error == 0)
        self.peers = peers
        self.timings = timings

    @property
    def samplers(self) -> list[str]:
        """The samplers that have run, exact first."""
        return sorted(self.runs["sampler"].unique(), key=lambda name: (name != "exact", name))

    def of(self, sampler: str) -> pandas.DataFrame:
        """The runs of a sampler."""
        return self.runs[self.runs["sampler"] == sampler]

    def runs_per_cell(self, sampler: str) -> str:
        """How many runs the cells have, as text."""
        counts = self.of(sampler).groupby(CELL).size()
        return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"

    def exact_with_peers(self) -> pandas.DataFrame:
        """The data sets that both the exact sampler and the peers have seen, one row each."""
        return self.of("exact").merge(self.peers, on=[*CELL, "run"])

    def cells(self, sampler: str, measure: str) -> dict[tuple[int, float], MeanWithError]:
        """The measure in each cell (number of features, SNR)."""
        return {cell: summarise(rows, measure) for cell, rows in self.of(sampler).groupby(CELL)}

    def lines(self) -> list["Line"]:
        """One line for each method over all cells."""
        return [*self.lines_of_samplers(), *(self.lines_of_peers() if len(self.peers) else [])]

    def lines_of_samplers(self) -> Iterator["Line"]:
        """Two lines for each sampler; the number of features is that of the best draw."""
        for sampler in self.samplers:
            rows = self.of(sampler)
            error = rows["n_features_error"]
            yield Line(f"{sampler}, MMSE", len(rows), average(rows["accuracy_mmse"]))
            accuracy, exact = average(rows["accuracy_map"]), average(rows["n_features_exact"])
            yield Line(f"{sampler}, MAP", len(rows), accuracy, exact, average(error.abs()))

    def lines_of_peers(self) -> Iterator["Line"]:
        """A line for each tool that predicts, then for each that counts features."""
        for name, label in ACCURACIES.items():
            yield Line(label, len(self.peers), average(self.peers[f"accuracy_{name}"]))
        for name, label in COUNTS.items():
            error = self.peers[f"n_features_{name}"] - self.peers["n_features"]
            yield Line(label, len(self.peers), exact=average(error == 0), off_by=average(error.abs()))


class Line(NamedTuple):
    """The results of one method over all cells; None where it has none."""

    label: str
    n_runs: int
    accuracy: MeanWithError | None = None
    exact: MeanWithError | None = None  # share of runs with the true number of features
    off_by: MeanWithError | None = None  # mean absolute error in the number of features


def read_results(folder: Path) -> Results:
    """The rows of a study's folder."""
    stores = sampler_rows(folder), peer_rows(folder), timing_rows(folder)
    return Results(*(pandas.DataFrame(store.read(), columns=list(store.columns)) for store in stores))
