"""The page about the alternatives of Sec. 2.4, made from the stored rows: only the paper's claims are typed in."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from experiments.alternatives.demonstrations import (
    DRAW,
    KINDS,
    N_DIMENSIONS,
    N_FEW,
    N_TEST,
    N_TRAIN,
    OWN_MODEL,
    SNR_DB,
)
from experiments.alternatives.figure import plot_results
from experiments.alternatives.study import N_CHAINS, SAMPLED
from experiments.alternatives.summary import KIND_LABELS, LABELS, Results, read_results
from experiments.harness.estimates import MeanWithError, average
from experiments.harness.figures import save_svg_and_png
from experiments.harness.markdown import list_names, make_table, say_interval, say_verdict
from experiments.harness.store import StudyError, read_settings
from whyact.storage.atomic import write_whole

SHOWN_OF_BITS = {
    "share_all_bits_right": "rows with all bits right",
    "accuracy_if_right": "accuracy of these",
    "accuracy_if_wrong": "accuracy of the others",
    "share_unseen": "rows with a pattern never seen",
}
# Share of runs in which a model should find the number of features of its own data.
GOAL = 0.9


def write_page(folder: Path, page: Path) -> list[Path]:
    """Write the page and its figure (SVG and PNG) from the rows in `folder`; return what was written."""
    results = read_results(folder)
    if len(results.runs) == 0:
        raise StudyError(f"the folder {folder} holds no runs of the study of alternatives.")
    settings = read_settings(folder)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        figures = save_svg_and_png(lambda: plot_results(results), page.with_suffix(""))
        write_whole(page, make_page(results, settings, figures[0].name))
    except OSError as error:
        raise StudyError(f"{page} cannot be written: {error.strerror}.") from None
    return [page, *figures]


def make_page(results: Results, settings: dict[str, Any], figure: str) -> str:
    """The whole page as Markdown."""
    parts = [
        "# The paper's alternatives, and its arguments about them",
        "This page is made by `python -m experiments.page` from the rows of `python -m experiments.alternatives`; do "
        "not edit it.",
        describe_design(results, settings),
        f"![Accuracy and number of features of each model on each kind of data]({figure})",
        "*Left: accuracy on new rows; bars are one standard error over runs. Right: number of features or clusters "
        "found, divided by the true one; the median, with the middle half of the runs. Grey bands mark the model that "
        "assumes the data.*",
        "## Accuracy on new rows",
        make_table_of(results, lambda kind, method: f"{results.accuracy(kind, method):.3f}"),
        "Bold: the model that assumes the data. ± one standard error over runs.",
        "## Log score (mean log probability of the action taken)",
        make_table_of(results, lambda kind, method: f"{average(results.of(kind, method)['log_score']):.2f}"),
        "## Does each model recover its own data?",
        describe_recovery(results),
        "## Does each model lose where its assumption is wrong?",
        describe_losses(results),
        "## Does the pattern model suffer from a wrong bit?",
        describe_bits(results),
        "## Does the cluster model need many more features?",
        describe_numbers(results),
        "## Does our model become like the cluster model when each row holds one feature?",
        describe_likeness(results),
        "## Where our model is not the best",
        describe_defeats(results),
        "## Time",
        describe_time(results),
    ]
    return "\n\n".join(parts) + "\n"


def describe_design(results: Results, settings: dict[str, Any]) -> str:
    """What was run: a paragraph, and a list of the kinds of data."""
    own = results.runs[results.runs["kind"] != "paper"]
    lines = [
        f"Demonstrations of each kind at {SNR_DB:g} dB: {N_TRAIN} rows to learn from, {N_TEST} to predict, "
        f"{N_DIMENSIONS} columns, sparse positive features as in Sec. 5, deterministic actions. All models see the "
        f"same rows. Samplers run {N_CHAINS} x {settings.get('sweeps', 'unknown'):,} sweeps (chains x length), half of "
        f"them burn-in. Seed {settings.get('seed', 'unknown')}, {own.groupby('kind')['run'].nunique().min()} runs of "
        "each kind.",
        "",
    ]
    for kind in results.kinds:
        if kind in DRAW:
            text = " ".join((inspect.getdoc(DRAW[kind]) or "").split())
        else:
            text = "Sec. 5 of the paper as in the simulation study: 80 rows to learn from, 20 to predict."
        what = "clusters" if kind == "clusters" else "features"
        numbers = list_names([str(number) for number in KINDS[kind]])
        lines.append(f"- **{KIND_LABELS[kind]}** ({numbers} {what}, in turn): {text}")
    return "\n".join(lines)


def make_table_of(results: Results, say: Callable[[str, str], str]) -> str:
    """Kinds down, models across; a model's own kind in bold."""
    rows = []
    for kind in results.kinds:
        cells = [say(kind, method) for method in results.methods]
        marked = [
            f"**{cell}**" if OWN_MODEL.get(kind) == method else cell
            for cell, method in zip(cells, results.methods, strict=True)
        ]
        rows.append([KIND_LABELS[kind], *marked])
    return make_table(["data", *(LABELS[method] for method in results.methods)], rows)


def describe_recovery(results: Results) -> str:
    """How often each model finds the number of features of its own data."""
    rows, short = [], []
    for kind, method in results.own_kinds:
        runs = results.of(kind, method)
        exact = int((runs["n_found"] == runs["n_true"]).sum())
        rows.append([KIND_LABELS[kind], LABELS[method], f"{exact} of {len(runs)}", f"{exact / len(runs):.0%}",
                     f"{results.accuracy(kind, method):.3f}"])  # fmt: skip
        if exact < GOAL * len(runs):
            short.append(f"{LABELS[method]} ({exact / len(runs):.0%})")
    verdict = (
        f"Each model finds the number of features of its own data in at least {GOAL:.0%} of the runs."
        if not short
        else f"**Short of {GOAL:.0%}**: {list_names(short)}."
    )
    table = make_table(["data", "model", "number exact", "share", "accuracy"], rows)
    return f"{table}\n\n{verdict}"


def describe_losses(results: Results) -> str:
    """Paired differences of every sampled model to the one whose assumption holds."""
    rows, holds_up = [], []
    for kind, own in results.own_kinds:
        for method in SAMPLED:
            if method == own or method not in results.methods:
                continue
            accuracy = results.lead(kind, method, own)
            log_score = results.lead(kind, method, own, "log_score")
            found = results.found_exactly(kind, method)
            rows.append([
                KIND_LABELS[kind], LABELS[method], say_verdict(accuracy), say_interval(accuracy, "+.3f"),
                say_verdict(log_score), say_interval(log_score, "+.2f"), f"{found.value:.0%}",
            ])  # fmt: skip
            if say_verdict(accuracy) != "behind" and say_verdict(log_score) != "behind":
                holds_up.append(f"{LABELS[method]} on {KIND_LABELS[kind]}")
    header = ["data", "model", "accuracy", "minus own model [95%]", "log score", "minus own model [95%]",
              "number exact"]  # fmt: skip
    sentence = (
        f"Not behind the model that assumes the data, in accuracy or in log score: {list_names(holds_up)}."
        if holds_up
        else "Every model is behind the one that assumes the data, in accuracy or in log score."
    )
    special = (
        "A row that holds all of one feature satisfies all four assumptions, so no model has to lose on the clusters; "
        "and every pattern is a cluster for a model that has seen enough rows of it."
    )
    return f"{make_table(header, rows)}\n\n{sentence} {special}"


def describe_bits(results: Results) -> str:
    """What errors in the substates do to the actions."""
    claim = (
        "The paper: where one element of the substate is set incorrectly, the row is assigned to a new cluster, whose "
        "policy must be inferred from little data. Below, the most probable substates of new rows, in the best draw, "
        f"are compared with the true ones, for data in which only {N_FEW} patterns occur."
    )
    rows = []
    for (kind, method), (own, change) in flip_on_purpose(results).items():
        rows.append([
            LABELS[method], KIND_LABELS[kind], f"{average(own['accuracy_map']):.2f}",
            f"{average(own['accuracy_one_flipped']):.2f}", say_interval(change, "+.2f"),
            f"{average(own['share_unseen_one_flipped']):.2f}",
        ])  # fmt: skip
    header = ["model", "data", "accuracy", "with one entry of each row set wrongly", "change [95%]",
              "rows of a kind never seen"]  # fmt: skip
    return (
        f"{claim}\n\n{make_table_of_bits(results)}\n\nBelow, at {SNR_DB:g} dB, one random entry of every row is set "
        "wrongly on purpose: what is present becomes absent, what is absent appears with its usual strength.\n\n"
        f"{make_table(header, rows)}\n\n{say_who_suffers(results)}"
    )


def make_table_of_bits(results: Results) -> str:
    """How often the noise sets bits wrongly, and what that does to the accuracy."""
    has_ours = "features" in results.methods
    rows = []
    for snr, of_snr in results.bits[results.bits["kind"] == "few-patterns"].groupby("snr", sort=True):
        cells = [average(of_snr[name].dropna()) for name in SHOWN_OF_BITS]
        cells.append(results.accuracy("few-patterns", "patterns", snr))
        if has_ours:
            cells.append(results.accuracy("few-patterns", "features", snr))
        rows.append([f"{snr:g} dB", *("" if np.isnan(cell.value) else f"{cell:.2f}" for cell in cells)])
    header = ["noise", *SHOWN_OF_BITS.values(), "all rows, averaged over draws"]
    return make_table([*header, "the same, feature policies"] if has_ours else header, rows)


def flip_on_purpose(results: Results) -> dict[tuple[str, str], tuple[pandas.DataFrame, MeanWithError]]:
    """What one wrong entry does to a model on data that it assumes: the rows, and the change in accuracy."""
    bits = results.bits[results.bits["snr"] == SNR_DB]
    return {
        (kind, method): (own, average(own["accuracy_one_flipped"] - own["accuracy_map"]))
        for (kind, method), own in bits.groupby(["kind", "method"], sort=False)
    }


def say_who_suffers(results: Results) -> str:
    """Whether the pattern model loses more than ours by one wrong entry."""
    flipped = flip_on_purpose(results)
    if not {("features", "features"), ("few-patterns", "patterns")} <= set(flipped):
        return ""
    _, ours = flipped["features", "features"]
    rows, theirs = flipped["few-patterns", "patterns"]
    gap = MeanWithError(theirs.value - ours.value, float(np.hypot(theirs.error, ours.error)))
    answer = "Yes" if say_verdict(gap) == "behind" else "Not more than ours"
    return (
        f"{answer}: on its own data, one wrong entry costs the pattern model {-theirs.value:.2f} in accuracy, and ours "
        f"{-ours.value:.2f} (difference {say_interval(gap, '+.2f')}, on different data). "
        f"{rows['share_unseen_one_flipped'].mean():.0%} of the rows then have a pattern never seen, whose policy is "
        "that of the prior."
    )


def describe_numbers(results: Results) -> str:
    """How many features or clusters each model finds."""
    claim = (
        "The paper: compared to the clustering-based approach, our model significantly reduces the number of latent "
        "features and policies, as features can be shared by different states."
    )
    counted = [
        method for method in results.methods if results.runs[results.runs["method"] == method]["n_found"].notna().any()
    ]
    rows = []
    for kind in results.kinds:
        cells = [f"{average(results.of(kind, method)['n_found'].dropna()):.1f}" for method in counted]
        rows.append([KIND_LABELS[kind], f"{results.of(kind, counted[0])['n_true'].mean():.1f}", *cells])
    table = make_table(["data", "true number", *(LABELS[method] for method in counted)], rows)
    return f"{claim}\n\n{table}\n\n{say_how_many_more(results)}"


def say_how_many_more(results: Results) -> str:
    """Whether the cluster model needs more clusters than ours needs features."""
    if not {"clusters", "features"} <= set(results.methods):
        return ""
    ratios = {
        kind: results.of(kind, "clusters")["n_found"] / results.of(kind, "features")["n_found"]
        for kind in results.kinds
    }
    more = [
        f"{ratio.median():.1f} times as many on {KIND_LABELS[kind]}"
        for kind, ratio in ratios.items()
        if ratio.median() > 1.05
    ]
    if not more:
        return "No: on no kind of data does the cluster model find more than ours."
    return f"Yes: compared with ours, the cluster model finds {list_names(more)} (median over runs)."


def describe_likeness(results: Results) -> str:
    """Our model beside the cluster model where each row holds one feature."""
    claim = (
        "The paper: our model becomes similar to the clustering-based model, at the price of higher computational "
        "costs, if each substate is represented by only one feature."
    )
    if not {"clusters", "features"} <= set(results.methods):
        return claim
    rows = []
    for kind in ("clusters", "single"):
        if kind not in results.kinds:
            continue
        ours, theirs = results.of(kind, "features"), results.of(kind, "clusters")
        rows.append([
            KIND_LABELS[kind], f"{results.accuracy(kind, 'features'):.3f}", f"{results.accuracy(kind, 'clusters'):.3f}",
            f"{np.mean(ours['n_found'] == theirs['n_found']):.0%}",
            f"{np.mean(ours['n_found'] == ours['n_true']):.0%}",
            f"{np.mean(theirs['n_found'] == theirs['n_true']):.0%}",
            f"{results.time_ratio(kind):.1f}",
        ])  # fmt: skip
    header = ["data", "accuracy, ours", "accuracy, clusters", "same number found", "ours finds the true number",
              "clusters finds it", "time of ours over clusters (median)"]  # fmt: skip
    sentences = say_how_alike(results) if "clusters" in results.kinds else []
    if "single" in results.kinds:
        sentences.append(
            "Where the amount of the one feature varies, the cluster model cuts it into several clusters; ours does "
            "not."
        )
    return f"{claim}\n\n{make_table(header, rows)}\n\n{' '.join(sentences)}"


def say_how_alike(results: Results) -> list[str]:
    """Numbers, accuracies and times of our model and the cluster model on clusters, in sentences."""
    lead = results.lead("clusters", "features", "clusters")
    both = np.mean(results.of("clusters", "features")["n_found"] == results.of("clusters", "clusters")["n_found"])
    verdict = "Yes" if say_verdict(lead) == "a tie" or abs(lead.value) < 0.01 else "Not quite"
    ratio = results.time_ratio("clusters")
    price = "is higher" if ratio > 1.1 else "is not higher here" if ratio < 0.9 else "is about the same"
    return [
        f"{verdict}: where every row holds all of one feature, ours and the cluster model find the same number in "
        f"{both:.0%} of the runs, and their accuracies differ by {say_interval(lead, '+.3f')}.",
        f"The price {price}: {ratio:.1f} times the cluster model's time for the same number of sweeps.",
    ]


def describe_defeats(results: Results) -> str:
    """All models that are ahead of ours, kind by kind."""
    found = []
    for kind in results.kinds:
        for measure, spec, name in (("accuracy", "+.3f", "accuracy"), ("log_score", "+.2f", "log score")):
            ahead = [
                f"{LABELS[method]} ({say_interval(lead, spec)})"
                for method in results.methods
                if method != "features"
                and say_verdict(lead := results.lead(kind, method, "features", measure)) == "ahead"
                and lead.value >= 0.005
            ]
            if ahead:
                found.append(f"- {KIND_LABELS[kind]}, {name}: {list_names(ahead)}")
    if not found:
        return "No model is ahead of feature policies on any kind of data."
    return "Models that are ahead of feature policies by at least 0.005, with the difference [95%]:\n\n" + "\n".join(
        found
    )


def describe_time(results: Results) -> str:
    """Seconds of a fit."""
    timings = results.timings[results.timings["snr"] == SNR_DB]
    rows = []
    for kind in results.kinds:
        of_kind = timings[timings["kind"] == kind]
        medians = of_kind.groupby("method")["fit_seconds"].median()
        rows.append([KIND_LABELS[kind], *(f"{medians[method]:.1f}" for method in results.methods)])
    table = make_table(["seconds for a fit, median", *(LABELS[method] for method in results.methods)], rows)
    return f"{table}\n\nTwo fits at a time, on a machine that had other work to do as well; compare within a line."
