"""Means over the runs of the study of alternatives, with their errors."""

from pathlib import Path
from typing import NamedTuple

import pandas

from experiments.alternatives.demonstrations import KINDS, OWN_MODEL, SNR_DB
from experiments.alternatives.study import METHODS, make_stores
from experiments.harness.estimates import MeanWithError, average
from whyact.comparison.contestants import CONTESTANTS

LABELS = {name: CONTESTANTS[name].label for name in METHODS}
KIND_LABELS = {
    "features": "shared features",
    "patterns": "patterns",
    "few-patterns": "few of many patterns",
    "clusters": "clusters",
    "per-action": "features per action",
    "single": "one feature a row, any amount",
    "paper": "the paper's design",
}


class Results(NamedTuple):
    """The rows of a study."""

    runs: pandas.DataFrame
    bits: pandas.DataFrame
    timings: pandas.DataFrame

    def of(self, kind: str, method: str, snr: float = SNR_DB) -> pandas.DataFrame:
        """The runs of a model on a kind of data."""
        rows = self.runs
        return rows[(rows["kind"] == kind) & (rows["method"] == method) & (rows["snr"] == snr)].set_index("run")

    @property
    def kinds(self) -> list[str]:
        """Kinds of data that have runs."""
        return [kind for kind in KINDS if (self.runs["kind"] == kind).any()]

    @property
    def methods(self) -> list[str]:
        """Models that have runs."""
        return [method for method in METHODS if (self.runs["method"] == method).any()]

    @property
    def own_kinds(self) -> list[tuple[str, str]]:
        """Kinds whose own model has run, with that model."""
        return [(kind, OWN_MODEL[kind]) for kind in self.kinds if OWN_MODEL.get(kind) in self.methods]

    def accuracy(self, kind: str, method: str, snr: float = SNR_DB) -> MeanWithError:
        """Accuracy on new rows."""
        return average(self.of(kind, method, snr)["accuracy"])

    def found_exactly(self, kind: str, method: str) -> MeanWithError:
        """Share of runs with the true number of features."""
        rows = self.of(kind, method)
        return average((rows["n_found"] == rows["n_true"]).astype(float))

    def lead(self, kind: str, method: str, other: str, measure: str = "accuracy", snr: float = SNR_DB) -> MeanWithError:
        """Mean difference over the data sets that both have seen."""
        mine, theirs = self.of(kind, method, snr)[measure], self.of(kind, other, snr)[measure]
        return average((mine - theirs).dropna())

    def time_ratio(self, kind: str) -> float:
        """Time of a fit of our model over that of the cluster model, the median over runs."""
        rows = self.timings[self.timings["kind"] == kind]
        seconds = rows.pivot(index="run", columns="method", values="fit_seconds")
        return float((seconds["features"] / seconds["clusters"]).median())


def read_results(folder: Path) -> Results:
    """The rows of a study's folder."""
    stores = make_stores(folder)
    frames = {name: pandas.DataFrame(store.read(), columns=list(store.columns)) for name, store in stores.items()}
    for column in ("n_found", "n_true"):
        frames["runs"][column] = frames["runs"][column].astype(float)
    return Results(**frames)
