"""The results of a comparison, as tables, as text and as a picture."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas

from whyact.comparison.picture import plot_comparison
from whyact.storage.atomic import write_whole
from whyact.visible import make_visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

# What models are compared by, fold by fold.
COMPARED = ("accuracy", "balanced_accuracy", "log_score")
SIGNS = {"ahead": ">", "tie": "=", "behind": "<", "unknown": "?"}
WIDTH = 100


@dataclass(frozen=True)
class Comparison:
    """The results of `whyact.compare`; printing them shows the table.

    Attributes
    ----------
    folds : DataFrame
        One row for each split, repeat, fold and model: all measures, NaN where the model failed.
    summary : DataFrame
        One row for each split and model: means over folds, and their standard deviations (`..._sd`). The calibration
        error is that of all predictions of the split together, since a fold has few rows.
    differences : DataFrame
        One row for each split, model and measure: mean difference from the reference over the same folds, its 95%
        interval, and the verdict "ahead", "behind", "tie", or "unknown" with fewer than three folds.
    notes : list of str
        What a reader should know: rows dropped, folds left out, models that failed, chains that disagreed.
    reference : str
        Name of the model that the others are compared with.
    labels : dict
        The label of each model in tables and pictures.
    splits : dict
        How the rows were split, in words.

    Examples
    --------
    >>> from whyact import compare, load_demo
    >>> demo = load_demo()
    >>> comparison = compare(demo.X, demo.y, models=["lda", "majority"], splits=["random"])
    >>> comparison.reference
    'lda'
    >>> comparison.summary.set_index("model")["accuracy"].round(2).to_dict()
    {'lda': 0.89, 'majority': 0.21}
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
        """The split whose differences are printed: the more honest one, "blocked", if there is a choice."""
        return "blocked" if "blocked" in self.splits else "random"

    def sort_models(self, split: str) -> list[str]:
        """List the models by their accuracy.

        Parameters
        ----------
        split : str
            "random" or "blocked".

        Returns
        -------
        list of str
            Names of the models, the most accurate one first.

        Examples
        --------
        >>> from whyact import compare, load_demo
        >>> demo = load_demo()
        >>> comparison = compare(demo.X, demo.y, models=["lda", "majority"], splits=["random"])
        >>> comparison.sort_models("random")
        ['lda', 'majority']
        """
        means = self.of_split(split)["accuracy"]
        return list(means.sort_values(ascending=False, kind="stable", na_position="last").index)

    def of_split(self, split: str) -> pandas.DataFrame:
        """Select the summary of one split.

        Parameters
        ----------
        split : str
            "random" or "blocked".

        Returns
        -------
        DataFrame
            Rows of `summary`, indexed by the model.

        Examples
        --------
        >>> from whyact import compare, load_demo
        >>> demo = load_demo()
        >>> comparison = compare(demo.X, demo.y, models=["lda", "majority"], splits=["random"])
        >>> comparison.of_split("random").loc["lda", "n_folds"].item()
        5
        """
        return self.summary[self.summary["split"] == split].set_index("model")

    def difference(self, split: str, model: str, measure: str) -> pandas.Series | None:
        """Select the difference of a model from the reference.

        Parameters
        ----------
        split : str
            "random" or "blocked".
        model : str
            Name of the model.
        measure : str
            "accuracy", "balanced_accuracy" or "log_score".

        Returns
        -------
        Series or None
            A row of `differences`; None for the reference.

        Examples
        --------
        >>> from whyact import compare, load_demo
        >>> demo = load_demo()
        >>> comparison = compare(demo.X, demo.y, models=["lda", "majority"], splits=["random"])
        >>> comparison.difference("random", "majority", "accuracy")["verdict"]
        'behind'
        """
        rows = self.differences
        found = rows[(rows["split"] == split) & (rows["model"] == model) & (rows["measure"] == measure)]
        return None if found.empty else found.iloc[0]

    def table(self) -> pandas.DataFrame:
        """Join summary and differences in one table.

        Returns
        -------
        DataFrame
            The summary and, for each measure compared, the difference, its interval and the verdict.

        Examples
        --------
        >>> from whyact import compare, load_demo
        >>> demo = load_demo()
        >>> comparison = compare(demo.X, demo.y, models=["lda", "majority"], splits=["random"])
        >>> comparison.table()["accuracy_verdict"].tolist()
        [nan, 'behind']
        """
        table = self.summary
        for measure in COMPARED:
            of_measure = self.differences[self.differences["measure"] == measure]
            columns = {name: f"{measure}_{name}" for name in ("difference", "low", "high", "verdict")}
            renamed = of_measure[["split", "model", *columns]].rename(columns=columns)
            table = table.merge(renamed, on=["split", "model"], how="left")
        return table

    def to_csv(self, path: str | Path) -> list[Path]:
        """Write `table()` to a file, and the folds to another one beside it.

        Parameters
        ----------
        path : str or Path
            The file of the table; that of the folds ends with `_folds.csv`.

        Returns
        -------
        list of Path
            Both files.

        Examples
        --------
        >>> import tempfile
        >>> from whyact import compare, load_demo
        >>> demo = load_demo()
        >>> comparison = compare(demo.X, demo.y, models=["lda", "majority"], splits=["random"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in comparison.to_csv(f"{folder}/results.csv")]
        ['results.csv', 'results_folds.csv']
        """
        paths = list_files(Path(path))
        for each, table in zip(paths, (self.table(), self.folds), strict=True):
            write_whole(each, table.to_csv(index=False, lineterminator="\n"))
        return paths

    def plot(self) -> "Figure":
        """Draw accuracy and log score of every model, with the interval of its difference from the reference.

        Returns
        -------
        matplotlib.figure.Figure
            A row of panels for each split.

        Examples
        --------
        >>> from whyact import compare, load_demo
        >>> demo = load_demo()
        >>> comparison = compare(demo.X, demo.y, models=["lda", "majority"], splits=["random"])
        >>> len(comparison.plot().axes)
        2
        """
        return plot_comparison(self)

    def print_table(self, console: "Console") -> None:
        """Print the table, how to read it, and the notes.

        Parameters
        ----------
        console : rich.console.Console
            Should have at least 100 columns.

        Examples
        --------
        >>> from rich.console import Console
        >>> from whyact import compare, load_demo
        >>> demo = load_demo()
        >>> comparison = compare(demo.X, demo.y, models=["lda", "majority"], splits=["random"])
        >>> comparison.print_table(Console(width=100))  # doctest: +ELLIPSIS
        <BLANKLINE>
        ... LDA with shrinkage ...
        """
        console.print(make_table(self))
        for sentence in [explain_table(self), *self.notes]:
            console.print(make_visible(sentence), highlight=False, markup=False)

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
    # only those who print need rich
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
        table.add_row(Text(make_visible(comparison.labels[name])), *(Text(cell) for cell in cells), style=style)
    return table


def format_number(number: float, form: str) -> str:
    """A number, or nothing if it is NaN."""
    return "" if np.isnan(number) else format(number, form)


def format_interval(row: pandas.Series) -> str:
    """A difference and half the width of its interval."""
    half = "?" if np.isnan(row["high"]) else f"{row['high'] - row['difference']:.3f}"
    return "failed" if np.isnan(row["difference"]) else f"{row['difference']:+.3f} ± {half}"


def format_with_sign(comparison: Comparison, split: str, name: str, measure: str) -> str:
    """A mean, and whether it is above or below the reference's, or a tie with it."""
    mean = comparison.of_split(split).loc[name, measure]
    if np.isnan(mean):
        return "failed"
    difference = comparison.difference(split, name, measure)
    return f"{mean:.3f}" if difference is None else f"{mean:.3f} {SIGNS[difference['verdict']]}"


def explain_table(comparison: Comparison) -> str:
    """How to read the table: a sentence for each thing that could be misread."""
    label = comparison.labels[comparison.reference]
    splits = "; ".join(f"{split}: {words}" for split, words in comparison.splits.items())
    return (
        f"= is a tie with {label}: the folds cannot tell the two apart, and the order of "
        "tied lines means nothing. > is above it and < below, with 95% confidence for each line on its own; ± is half "
        f'of the 95% interval. The columns from "difference" on refer to the {comparison.judged_split} split. {splits}.'
    )
