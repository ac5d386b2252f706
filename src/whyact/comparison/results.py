"""What a comparison found, as tables, as text and as a picture."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# What models are compared by, fold by fold.
COMPARED = ("accuracy", "balanced_accuracy", "log_score")
SIGNS = {"ahead": ">", "tie": "=", "behind": "<", "unknown": "?"}
WIDTH = 100


@dataclass(frozen=True)
class Comparison:
    """What `whyact.compare` found; printing it shows the table.

    Attributes
    ----------
    folds : DataFrame
        One row for each split, repeat, fold and model: all measures, NaN where the model failed.
    summary : DataFrame
        One row for each split and model: means over folds, and their standard deviations (`..._sd`). The calibration
        error is that of all predictions of the split together, since a fold has few rows.
    differences : DataFrame
        One row for each split, model and measure: mean difference to the reference over the same folds, its 95%
        interval, and the verdict "ahead", "behind", "tie", or "unknown" with fewer than three folds.
    notes : list of str
        What a reader should know: rows dropped, folds left out, models that failed, chains that disagreed.
    reference : str
        Name of the model that the others are compared with.
    labels : dict
        What to call each model.
    splits : dict
        How the rows were split, in words.
    """

    folds: pandas.DataFrame
    summary: pandas.DataFrame
    differences: pandas.DataFrame
    notes: list[str]
    reference: str
    labels: dict[str, str]
    splits: dict[str, str]

    @property
    def judged_split(self) -> str:
        """The split that the printed differences are of: the honest one, if there is a choice."""
        return "blocked" if "blocked" in self.splits else "random"

    def sort_models(self, split: str) -> list[str]:
        """Names of the models, the most accurate one first."""
        means = self.of_split(split)["accuracy"]
        return list(means.sort_values(ascending=False, kind="stable", na_position="last").index)

    def of_split(self, split: str) -> pandas.DataFrame:
        """The summary of one split, by model."""
        return self.summary[self.summary["split"] == split].set_index("model")

    def difference(self, split: str, model: str, measure: str) -> pandas.Series | None:
        """A row of `differences`; None for the reference."""
        rows = self.differences
        found = rows[(rows["split"] == split) & (rows["model"] == model) & (rows["measure"] == measure)]
        return None if found.empty else found.iloc[0]

    def table(self) -> pandas.DataFrame:
        """The summary and, for each measure compared, the difference, its interval and the verdict, in one table."""
        table = self.summary
        for measure in COMPARED:
            of_measure = self.differences[self.differences["measure"] == measure]
            columns = {name: f"{measure}_{name}" for name in ("difference", "low", "high", "verdict")}
            renamed = of_measure[["split", "model", *columns]].rename(columns=columns)
            table = table.merge(renamed, on=["split", "model"], how="left")
        return table

    def to_csv(self, path) -> list[Path]:
        """Write `table()`, and the folds beside it as `..._folds.csv`; return both paths."""
        from whyact.storage.atomic import write_whole

        paths = list_files(Path(path))
        for each, table in zip(paths, (self.table(), self.folds), strict=True):
            write_whole(each, table.to_csv(index=False, lineterminator="\n"))
        return paths

    def plot(self):
        """Draw accuracy and log score of every model, with the interval of its difference to the reference."""
        from whyact.comparison.picture import plot_comparison

        return plot_comparison(self)

    def print_table(self, console: "Console") -> None:
        """Print the table, how to read it, and the notes to a console of 100 columns or more."""
        console.print(make_table(self))
        for sentence in [explain_table(self), *self.notes]:
            console.print(sentence, highlight=False, markup=False)

    def __str__(self) -> str:
        from rich.console import Console

        text = io.StringIO()
        self.print_table(Console(file=text, width=WIDTH))
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def list_files(path: Path) -> list[Path]:
    """The file of the table, and that of the folds beside it."""
    return [path, path.with_name(f"{path.stem}_folds{path.suffix}")]


def make_table(comparison: Comparison) -> "Table":
    """A rich table with a line for each model."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    judged = comparison.judged_split
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False)
    table.add_column("\nmodel", overflow="ellipsis", no_wrap=True)
    for split in comparison.splits:
        table.add_column(f"accuracy\n{split}", no_wrap=True)
    table.add_column(f"difference\n{judged}", justify="right", no_wrap=True)
    table.add_column("log\nscore", no_wrap=True)
    for heading in ("calibr.\nerror", "\nK", "fit\ns", "predict\ns"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in comparison.sort_models(judged):
        row = comparison.of_split(judged).loc[name]
        difference = comparison.difference(judged, name, "accuracy")
        cells = [format_with_sign(comparison, split, name, "accuracy") for split in comparison.splits]
        cells += [
            "reference" if difference is None else format_interval(difference),
            format_with_sign(comparison, judged, name, "log_score"),
            format_number(row["calibration_error"], ".3f"),
            format_number(row["n_components"], ".3g"),
            format_number(row["fit_seconds"], ".1f" if row["fit_seconds"] < 1000 else ".0f"),
            format_number(row["predict_seconds"], ".2f"),
        ]
        style = "bold" if name == comparison.reference else ""
        # Text, since a name of the user may look like markup
        table.add_row(Text(comparison.labels[name]), *(Text(cell) for cell in cells), style=style)
    return table


def format_number(number: float, form: str) -> str:
    return "" if np.isnan(number) else format(number, form)


def format_interval(row: pandas.Series) -> str:
    half = "?" if np.isnan(row["high"]) else f"{row['high'] - row['difference']:.3f}"
    return "failed" if np.isnan(row["difference"]) else f"{row['difference']:+.3f} ± {half}"


def format_with_sign(comparison: Comparison, split: str, name: str, measure: str) -> str:
    """A mean, and whether it is above, below or not to be told from the reference's."""
    mean = comparison.of_split(split).loc[name, measure]
    if np.isnan(mean):
        return "failed"
    difference = comparison.difference(split, name, measure)
    return f"{mean:.3f}" if difference is None else f"{mean:.3f} {SIGNS[difference['verdict']]}"


def explain_table(comparison: Comparison) -> str:
    """How to read the table, in a sentence for each thing that could be misread."""
    label = comparison.labels[comparison.reference]
    splits = "; ".join(f"{split}: {words}" for split, words in comparison.splits.items())
    return (
        f"= is a tie with {label}: the folds cannot tell the two apart, and the order of "
        "such lines means nothing. > is above it and < below, with 95% confidence for each line alone, as is ±. All "
        f"from the difference on is of the {comparison.judged_split} split. {splits}."
    )
