"""Means over the runs of the simulation study, with their errors."""

from pathlib import Path
from typing import NamedTuple

import pandas

from experiments.harness.estimates import Estimate, average, root_mean_square
from experiments.simulations.peers import ACCURACIES, COUNTS
from experiments.simulations.study import peer_rows, sampler_rows, timing_rows

# How each measure of a run is averaged over runs. The paper reports root mean squares of all but the accuracy.
ROOT_MEAN_SQUARES = ("rmse_features", "rmse_substates", "rmse_states", "mad_policies", "n_features_error")
MEANS = ("accuracy_mmse", "accuracy_map", "n_features_exact")
CELL = ["n_features", "snr"]


def summarise(rows: pandas.DataFrame, measure: str) -> Estimate:
    """Average a measure of the samplers over runs, as the paper does."""
    values = rows[measure]
    return root_mean_square(values) if measure in ROOT_MEAN_SQUARES else average(values)


class Results:
    """The rows of a study.

    Attributes
    ----------
    runs : DataFrame
        One row for each run of a sampler; with the error in the number of features.
    peers : DataFrame
        One row for each data set.
    timings : DataFrame
    """

    def __init__(self, runs: pandas.DataFrame, peers: pandas.DataFrame, timings: pandas.DataFrame):
        error = runs["n_features_found"] - runs["n_features"]
        self.runs = runs.assign(n_features_error=error, n_features_exact=error == 0)
        self.peers = peers
        self.timings = timings

    @property
    def samplers(self) -> list[str]:
        """Those that have run, exact first."""
        return sorted(self.runs["sampler"].unique(), key=lambda name: (name != "exact", name))

    def of(self, sampler: str) -> pandas.DataFrame:
        return self.runs[self.runs["sampler"] == sampler]

    def runs_per_cell(self, sampler: str) -> str:
        """How many runs the cells have, as text."""
        counts = self.of(sampler).groupby(CELL).size()
        return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"

    def exact_with_peers(self) -> pandas.DataFrame:
        """The data sets that both the exact sampler and the peers have seen, one row each."""
        return self.of("exact").merge(self.peers, on=[*CELL, "run"])

    def cells(self, sampler: str, measure: str) -> dict[tuple[int, float], Estimate]:
        """The measure in each cell (number of features, SNR)."""
        return {cell: summarise(rows, measure) for cell, rows in self.of(sampler).groupby(CELL)}

    def lines(self) -> list["Line"]:
        """One line for each method over all cells."""
        lines = []
        for sampler in self.samplers:
            rows = self.of(sampler)
            for rule in ("mmse", "map"):
                accuracy = average(rows[f"accuracy_{rule}"])
                found = (average(rows["n_features_exact"]), average(rows["n_features_error"].abs()))
                lines.append(Line(f"{sampler}, {rule.upper()}", len(rows), accuracy, *(found if rule == "map" else ())))
        if len(self.peers) == 0:
            return lines
        n_sets = len(self.peers)
        for name in dict.fromkeys([*ACCURACIES, *COUNTS]):
            line = Line(ACCURACIES.get(name) or COUNTS[name], n_sets)
            if name in ACCURACIES:
                line = line._replace(accuracy=average(self.peers[f"accuracy_{name}"]))
            if name in COUNTS:
                error = self.peers[f"n_features_{name}"] - self.peers["n_features"]
                line = line._replace(exact=average(error == 0), off_by=average(error.abs()))
            lines.append(line)
        return lines


class Line(NamedTuple):
    """What one method reaches over all cells; None where it does not say."""

    label: str
    n_runs: int
    accuracy: Estimate | None = None
    exact: Estimate | None = None  # share of runs with the true number of features
    off_by: Estimate | None = None  # mean absolute error in the number of features


def read_results(folder: Path) -> Results:
    stores = sampler_rows(folder), peer_rows(folder), timing_rows(folder)
    return Results(*(pandas.DataFrame(store.read(), columns=list(store.columns)) for store in stores))
