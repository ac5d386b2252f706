"""The page about the alternatives of Sec. 2.4, made from the stored rows: nothing on it is typed in but the claims."""

import inspect
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas

from experiments.alternatives import study as alternatives
from experiments.alternatives.study import DRAW, KINDS, METHODS, N_CHAINS, OWN_MODEL, SAMPLED, SNR_DB, make_stores
from experiments.harness.estimates import Estimate, average
from experiments.harness.figures import save_svg_and_png
from experiments.harness.markdown import judge, list_names, make_table, say_interval
from experiments.harness.store import StudyError, read_settings
from whyact.comparison.contestants import CONTESTANTS
from whyact.storage.atomic import write_whole

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
SHOWN_OF_BITS = {
    "share_all_bits_right": "rows with all bits right",
    "accuracy_if_right": "accuracy of these",
    "accuracy_if_wrong": "accuracy of the others",
    "share_unseen": "rows with a pattern never seen",
}
# A model should find the number of its own data in at least so many runs.
GOAL = 0.9


class Tables(NamedTuple):
    """The rows of the study."""

    runs: pandas.DataFrame
    bits: pandas.DataFrame
    timings: pandas.DataFrame

    def of(self, kind: str, method: str, snr: float = SNR_DB) -> pandas.DataFrame:
        rows = self.runs
        return rows[(rows["kind"] == kind) & (rows["method"] == method) & (rows["snr"] == snr)].set_index("run")

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in KINDS if (self.runs["kind"] == kind).any()]

    @property
    def methods(self) -> list[str]:
        return [method for method in METHODS if (self.runs["method"] == method).any()]

    def accuracy(self, kind: str, method: str, snr: float = SNR_DB) -> Estimate:
        return average(self.of(kind, method, snr)["accuracy"])

    def found_exactly(self, kind: str, method: str) -> Estimate:
        rows = self.of(kind, method)
        return average((rows["n_found"] == rows["n_true"]).astype(float))

    def lead(self, kind: str, method: str, other: str, measure: str = "accuracy", snr: float = SNR_DB) -> Estimate:
        """Mean difference over the data sets that both have seen."""
        mine, theirs = self.of(kind, method, snr)[measure], self.of(kind, other, snr)[measure]
        return average((mine - theirs).dropna())


def read_tables(folder: Path) -> Tables:
    stores = make_stores(folder)
    frames = {name: pandas.DataFrame(store.read(), columns=list(store.columns)) for name, store in stores.items()}
    for column in ("n_found", "n_true"):
        frames["runs"][column] = frames["runs"][column].astype(float)
    return Tables(**frames)


def make_console_table(tables: Tables):
    """A line for each kind and model; fits 80 columns."""
    from rich.table import Table

    table = Table("data", "model", "runs", "accuracy", "K exact", "K found")
    for kind in tables.kinds:
        for method in tables.methods:
            rows = tables.of(kind, method)
            counts = rows["n_found"].notna().any()
            table.add_row(
                kind,
                LABELS[method],
                str(len(rows)),
                f"{tables.accuracy(kind, method):.3f}",
                f"{tables.found_exactly(kind, method).value:.0%}" if counts else "",
                f"{rows['n_found'].mean():.1f} of {rows['n_true'].mean():.1f}" if counts else "",
            )
    return table


def write_page(folder: Path, page: Path) -> list[Path]:
    """Write the page and its figure (SVG and PNG) from the rows in `folder`; return what was written."""
    tables = read_tables(folder)
    if len(tables.runs) == 0:
        raise StudyError(f"the folder {folder} holds no runs of the study of alternatives.")
    settings = read_settings(folder)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        figures = save_svg_and_png(lambda: plot_tables(tables), page.with_suffix(""))
        write_whole(page, make_page(tables, settings, figures[0].name))
    except OSError as error:
        raise StudyError(f"{page} cannot be written: {error.strerror}.") from None
    return [page, *figures]


def make_page(tables: Tables, settings: dict, figure: str) -> str:
    """The whole page as Markdown."""
    parts = [
        "# The paper's alternatives, and its arguments about them",
        "This page is made by `python -m experiments.page` from the rows of `python -m experiments.alternatives`; do not edit it.",
        describe_design(tables, settings),
        f"![Accuracy and number of features of each model on each kind of data]({figure})",
        "*Left: accuracy on new rows, bars are one standard error over runs. Right: number of features or clusters "
        "found over the true one, the median with the middle half of the runs. Grey bands mark the model that assumes "
        "the data.*",
        "## Accuracy on new rows",
        make_table_of(tables, lambda kind, method: f"{tables.accuracy(kind, method):.3f}"),
        "Bold: the model whose assumption the data follow. ± one standard error over runs.",
        "## Log score (mean log probability of the action taken)",
        make_table_of(tables, lambda kind, method: f"{average(tables.of(kind, method)['log_score']):.2f}"),
        "## Does each model recover its own data?",
        describe_recovery(tables),
        "## Does each model lose where its assumption is wrong?",
        describe_losses(tables),
        "## Does the pattern model suffer from a wrongly set bit?",
        describe_bits(tables),
        "## Does the cluster model need many more features?",
        describe_numbers(tables),
        "## Does our model become like the cluster model when each row holds one feature?",
        describe_likeness(tables),
        "## Where our model is not the best",
        describe_defeats(tables),
        "## Time",
        describe_time(tables),
    ]
    return "\n\n".join(parts) + "\n"


def describe_design(tables: Tables, settings: dict) -> str:
    own = tables.runs[tables.runs["kind"] != "paper"]
    lines = [
        f"Demonstrations of each kind at {SNR_DB:g} dB: {alternatives.N_TRAIN} rows to learn from, "
        f"{alternatives.N_TEST} to predict, {alternatives.N_DIMENSIONS} columns, sparse positive features as in "
        "Sec. 5, actions without chance. All models see the same rows. Samplers run "
        f"{N_CHAINS} x {settings.get('sweeps', 'unknown'):,} sweeps (chains x length), half of them burn-in. Seed "
        f"{settings.get('seed', 'unknown')}, {own.groupby('kind')['run'].nunique().min()} runs of each kind.",
        "",
    ]
    for kind in tables.kinds:
        if kind in DRAW:
            text = " ".join((inspect.getdoc(DRAW[kind]) or "").split())
        else:
            text = "Sec. 5 of the paper as in the simulation study: 80 rows to learn from, 20 to predict."
        what = "clusters" if kind == "clusters" else "features"
        numbers = list_names([str(number) for number in KINDS[kind]])
        lines.append(f"- **{KIND_LABELS[kind]}** ({numbers} {what}, in turn): {text}")
    return "\n".join(lines)


def make_table_of(tables: Tables, say) -> str:
    """Kinds down, models across; a model's own kind in bold."""
    rows = []
    for kind in tables.kinds:
        cells = [say(kind, method) for method in tables.methods]
        marked = [
            f"**{cell}**" if OWN_MODEL.get(kind) == method else cell
            for cell, method in zip(cells, tables.methods, strict=True)
        ]
        rows.append([KIND_LABELS[kind], *marked])
    return make_table(["data", *(LABELS[method] for method in tables.methods)], rows)


def own_kinds(tables: Tables) -> list[tuple[str, str]]:
    """Kinds whose own model has run, with that model."""
    return [(kind, OWN_MODEL[kind]) for kind in tables.kinds if OWN_MODEL.get(kind) in tables.methods]


def describe_recovery(tables: Tables) -> str:
    rows, short = [], []
    for kind, method in own_kinds(tables):
        runs = tables.of(kind, method)
        exact = int((runs["n_found"] == runs["n_true"]).sum())
        rows.append([KIND_LABELS[kind], LABELS[method], f"{exact} of {len(runs)}", f"{exact / len(runs):.0%}",
                     f"{tables.accuracy(kind, method):.3f}"])  # fmt: skip
        if exact < GOAL * len(runs):
            short.append(f"{LABELS[method]} ({exact / len(runs):.0%})")
    verdict = (
        f"Each model finds the number of its own data in at least {GOAL:.0%} of the runs."
        if not short
        else f"**Short of {GOAL:.0%}**: {list_names(short)}."
    )
    table = make_table(["data", "model", "number exact", "share", "accuracy"], rows)
    return f"{table}\n\n{verdict}"


def describe_losses(tables: Tables) -> str:
    """Paired differences of every sampled model to the one whose assumption holds."""
    rows, holds_up = [], []
    for kind, own in own_kinds(tables):
        for method in SAMPLED:
            if method == own or method not in tables.methods:
                continue
            accuracy = tables.lead(kind, method, own)
            log_score = tables.lead(kind, method, own, "log_score")
            found = tables.found_exactly(kind, method)
            rows.append([
                KIND_LABELS[kind], LABELS[method], judge(accuracy), say_interval(accuracy, "+.3f"), judge(log_score),
                say_interval(log_score, "+.2f"), f"{found.value:.0%}",
            ])  # fmt: skip
            if judge(accuracy) != "behind" and judge(log_score) != "behind":
                holds_up.append(f"{LABELS[method]} on {KIND_LABELS[kind]}")
    header = [
        "data",
        "model",
        "accuracy",
        "minus own model [95%]",
        "log score",
        "minus own model [95%]",
        "number exact",
    ]
    sentence = (
        f"Neither in accuracy nor in log score behind the model that assumes the data: {list_names(holds_up)}."
        if holds_up
        else "Every model is behind the one that assumes the data, in accuracy or in log score."
    )
    special = (
        "A row that holds one feature fully is a case of all four assumptions, so on the clusters nobody has to lose; "
        "and every pattern is a cluster to who has seen enough rows of it."
    )
    return f"{make_table(header, rows)}\n\n{sentence} {special}"


def describe_bits(tables: Tables) -> str:
    """What errors in the substates do to the actions."""
    claim = (
        "The paper: where one element of the substate is set incorrectly, the row is assigned to a new cluster, whose "
        "policy must be inferred from little data. Below, the most probable substates of new rows, in the best draw, "
        f"are compared with the true ones, for data of which only {alternatives.N_FEW} patterns occur."
    )
    has_ours = "features" in tables.methods
    rows = []
    for snr, of_snr in tables.bits[tables.bits["kind"] == "few-patterns"].groupby("snr", sort=True):
        cells = [average(of_snr[name].dropna()) for name in SHOWN_OF_BITS]
        cells.append(tables.accuracy("few-patterns", "patterns", snr))
        if has_ours:
            cells.append(tables.accuracy("few-patterns", "features", snr))
        rows.append([f"{snr:g} dB", *("" if np.isnan(cell.value) else f"{cell:.2f}" for cell in cells)])
    header = ["noise", *SHOWN_OF_BITS.values(), "all rows, averaged over draws"]
    by_noise = make_table([*header, "the same, feature policies"] if has_ours else header, rows)
    rows = []
    for (kind, method), (own, change) in flip_on_purpose(tables).items():
        rows.append([
            LABELS[method], KIND_LABELS[kind], f"{average(own['accuracy_map']):.2f}",
            f"{average(own['accuracy_one_flipped']):.2f}", say_interval(change, "+.2f"),
            f"{average(own['share_unseen_one_flipped']):.2f}",
        ])  # fmt: skip
    header = ["model", "data", "accuracy", "with one entry of each row set wrongly", "change [95%]",
              "rows of a kind never seen"]  # fmt: skip
    return (
        f"{claim}\n\n{by_noise}\n\nAnd at {SNR_DB:g} dB one random entry of every row is set wrongly on purpose: what "
        "is present becomes absent, what is absent appears with its usual strength.\n\n"
        f"{make_table(header, rows)}\n\n{judge_bits(tables)}"
    )


def flip_on_purpose(tables: Tables) -> dict[tuple[str, str], tuple[pandas.DataFrame, Estimate]]:
    """What one wrong entry does to a model on data that it assumes: the rows, and the change of the accuracy."""
    bits = tables.bits[tables.bits["snr"] == SNR_DB]
    return {
        (kind, method): (own, average(own["accuracy_one_flipped"] - own["accuracy_map"]))
        for (kind, method), own in bits.groupby(["kind", "method"], sort=False)
    }


def judge_bits(tables: Tables) -> str:
    """Answer the question from the rows."""
    flipped = flip_on_purpose(tables)
    if not {("features", "features"), ("few-patterns", "patterns")} <= set(flipped):
        return ""
    _, ours = flipped["features", "features"]
    rows, theirs = flipped["few-patterns", "patterns"]
    gap = Estimate(theirs.value - ours.value, float(np.hypot(theirs.error, ours.error)))
    answer = "Yes" if judge(gap) == "behind" else "Not more than ours"
    return (
        f"{answer}: on data of its own, one wrong entry costs the pattern model {-theirs.value:.2f} of accuracy, ours "
        f"{-ours.value:.2f} (difference {say_interval(gap, '+.2f')}, on different data). "
        f"{rows['share_unseen_one_flipped'].mean():.0%} of the rows are then of a pattern never seen, whose policy is "
        "the prior's."
    )


def describe_numbers(tables: Tables) -> str:
    claim = (
        "The paper: compared to the clustering-based approach, our model significantly reduces the number of latent "
        "features and policies, as features can be shared by different states."
    )
    counted = [
        method for method in tables.methods if tables.runs[tables.runs["method"] == method]["n_found"].notna().any()
    ]
    rows = []
    for kind in tables.kinds:
        cells = [f"{average(tables.of(kind, method)['n_found'].dropna()):.1f}" for method in counted]
        rows.append([KIND_LABELS[kind], f"{tables.of(kind, counted[0])['n_true'].mean():.1f}", *cells])
    table = make_table(["data", "true number", *(LABELS[method] for method in counted)], rows)
    sentences = []
    if {"clusters", "features"} <= set(tables.methods):
        ratios = {
            kind: tables.of(kind, "clusters")["n_found"] / tables.of(kind, "features")["n_found"]
            for kind in tables.kinds
        }
        more = [
            f"{ratio.median():.1f} times as many on {KIND_LABELS[kind]}"
            for kind, ratio in ratios.items()
            if ratio.median() > 1.05
        ]
        if more:
            sentences.append(f"Yes: the cluster model finds {list_names(more)} (median over runs) as ours does.")
        else:
            sentences.append("No: nowhere more than ours.")
    return f"{claim}\n\n{table}\n\n{' '.join(sentences)}"


def describe_likeness(tables: Tables) -> str:
    claim = (
        "The paper: our model becomes similar to the clustering-based model, at the price of higher computational "
        "costs, if each substate is represented by only one feature."
    )
    if not {"clusters", "features"} <= set(tables.methods):
        return claim
    rows = []
    for kind in ("clusters", "single"):
        if kind not in tables.kinds:
            continue
        ours, theirs = tables.of(kind, "features"), tables.of(kind, "clusters")
        seconds = tables.timings[tables.timings["kind"] == kind].pivot(
            index="run", columns="method", values="fit_seconds"
        )
        rows.append([
            KIND_LABELS[kind], f"{tables.accuracy(kind, 'features'):.3f}", f"{tables.accuracy(kind, 'clusters'):.3f}",
            f"{np.mean(ours['n_found'] == theirs['n_found']):.0%}",
            f"{np.mean(ours['n_found'] == ours['n_true']):.0%}",
            f"{np.mean(theirs['n_found'] == theirs['n_true']):.0%}",
            f"{(seconds['features'] / seconds['clusters']).median():.1f}",
        ])  # fmt: skip
    header = ["data", "accuracy, ours", "accuracy, clusters", "same number found", "ours finds the true number",
              "clusters finds it", "time of ours over clusters (median)"]  # fmt: skip
    sentences = []
    if "clusters" in tables.kinds:
        lead = tables.lead("clusters", "features", "clusters")
        both = np.mean(tables.of("clusters", "features")["n_found"] == tables.of("clusters", "clusters")["n_found"])
        verdict = "Yes" if judge(lead) == "a tie" or abs(lead.value) < 0.01 else "Not quite"
        sentences.append(
            f"{verdict}: where every row holds one feature fully, ours and the cluster model find the same number in "
            f"{both:.0%} of the runs, and their accuracies differ by {say_interval(lead, '+.3f')}."
        )
        seconds = tables.timings[tables.timings["kind"] == "clusters"]
        seconds = seconds.pivot(index="run", columns="method", values="fit_seconds")
        ratio = float((seconds["features"] / seconds["clusters"]).median())
        price = "is higher" if ratio > 1.1 else "is not higher here" if ratio < 0.9 else "is about the same"
        sentences.append(f"The price {price}: {ratio:.1f} times the cluster model's time for as many sweeps.")
    if "single" in tables.kinds:
        sentences.append(
            "Where the amount of the one feature varies, the cluster model cuts it into several clusters, and ours "
            "does not."
        )
    return f"{claim}\n\n{make_table(header, rows)}\n\n{' '.join(sentences)}"


def describe_defeats(tables: Tables) -> str:
    """All models that are ahead of ours, kind by kind."""
    found = []
    for kind in tables.kinds:
        for measure, spec, name in (("accuracy", "+.3f", "accuracy"), ("log_score", "+.2f", "log score")):
            ahead = [
                f"{LABELS[method]} ({say_interval(lead, spec)})"
                for method in tables.methods
                if method != "features"
                and judge(lead := tables.lead(kind, method, "features", measure)) == "ahead"
                and lead.value >= 0.005
            ]
            if ahead:
                found.append(f"- {KIND_LABELS[kind]}, {name}: {list_names(ahead)}")
    if not found:
        return "No model is ahead of feature policies on any kind of data."
    return "Models that are ahead of feature policies by 0.005 and more, with the difference [95%]:\n\n" + "\n".join(
        found
    )


def describe_time(tables: Tables) -> str:
    timings = tables.timings[tables.timings["snr"] == SNR_DB]
    rows = []
    for kind in tables.kinds:
        of_kind = timings[timings["kind"] == kind]
        medians = of_kind.groupby("method")["fit_seconds"].median()
        rows.append([KIND_LABELS[kind], *(f"{medians[method]:.1f}" for method in tables.methods)])
    table = make_table(["seconds for a fit, median", *(LABELS[method] for method in tables.methods)], rows)
    return f"{table}\n\nTwo fits at a time on a machine with other work; compare within a line."


# --- the figure -----------------------------------------------------------------------------------------------------

COLOURS = {
    "features": "#d55e00",
    "patterns": "#0072b2",
    "clusters": "#009e73",
    "per-action": "#cc79a7",
    "pca": "0.35",
    "nmf": "0.35",
    "lr": "0.6",
}
MARKERS = {"features": "D", "patterns": "s", "clusters": "o", "per-action": "^", "pca": "P", "nmf": "X", "lr": "v"}


def plot_tables(tables: Tables):
    """Accuracy and found number over true number; kinds of data on the left axis, a line for each model."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

    kinds, methods = tables.kinds, tables.methods
    figure = Figure(figsize=(12, 1.2 + 1.55 * len(kinds)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    height = 0.8 / len(methods)
    for i, kind in enumerate(kinds):
        for j, method in enumerate(methods):
            place = i + height * (j - (len(methods) - 1) / 2)
            rows = tables.of(kind, method)
            accuracy = tables.accuracy(kind, method)
            look = {"color": COLOURS[method], "marker": MARKERS[method], "linestyle": "none", "ms": 6, "capsize": 2}
            label = LABELS[method] if i == 0 else None
            left.errorbar(accuracy.value, place, xerr=accuracy.error, label=label, **look)
            if OWN_MODEL.get(kind) == method:
                for axis in (left, right):
                    axis.axhspan(place - height / 2, place + height / 2, color="0.9", zorder=0)
            ratio = (rows["n_found"] / rows["n_true"]).dropna()
            if len(ratio):
                low, middle, high = ratio.quantile([0.25, 0.5, 0.75])
                right.errorbar(middle, place, xerr=[[middle - low], [high - middle]], **look)
    for axis in (left, right):
        axis.set_ylim(len(kinds) - 0.5, -0.5)
        axis.grid(axis="x", color="0.92")
        axis.set_axisbelow(True)
        for edge in np.arange(0.5, len(kinds) - 1):
            axis.axhline(edge, color="0.8", lw=0.8)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    left.set_yticks(range(len(kinds)), [KIND_LABELS[kind].replace(", ", ",\n") for kind in kinds])
    left.set_title("accuracy on new rows", loc="left", fontsize=11)
    right.set_title("number found over true number", loc="left", fontsize=11)
    right.set_xscale("log")
    right.xaxis.set_major_locator(FixedLocator([0.5, 1, 2, 4, 8, 16]))
    right.xaxis.set_minor_locator(NullLocator())
    right.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    right.axvline(1, color="0.4", lw=0.9, ls="--")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure
