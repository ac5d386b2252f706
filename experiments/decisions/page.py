"""The page about real decisions, made from the stored rows: no number on it is typed in."""

import math
from pathlib import Path
from typing import Any

import pandas

from experiments.decisions.contestants import FROM_ALL_ROWS, LABELS
from experiments.decisions.splits import TEST_SHARE
from experiments.decisions.study import ALL, N_TEST, N_TRAIN
from experiments.decisions.summary import (
    REFERENCE,
    STRONG,
    Leads,
    Results,
    average_leads,
    average_over_tables,
    find_better,
    find_means,
    find_worst,
    list_leads,
    read_results,
    sort_by_verdict,
)
from experiments.decisions.tables import SOURCES
from experiments.harness.markdown import count, list_names, make_table, say_interval
from experiments.harness.store import StudyError, read_settings
from whyact.intervals import Interval
from whyact.storage.atomic import write_whole

# Measures with their headings, and whether the highest is the best.
SHOWN = {
    "accuracy": ("Accuracy on new rows", True),
    "log_score": ("Log score (mean log probability of the action taken)", True),
    "calibration_error": ("Calibration error", False),
}
JUDGED = {"accuracy": "accuracy", "log_score": "log score"}
VERDICTS = {"ahead": "ahead on", "tie": "a tie on", "behind": "behind on", "unknown": "too few runs to tell on"}


def write_page(folder: Path, page: Path) -> list[Path]:
    """Write the page from the rows in `folder`; return what was written."""
    results = read_results(folder)
    if len(results.runs) == 0:
        raise StudyError(f"the folder {folder} holds no runs of the study of decisions.")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        write_whole(page, make_page(results, read_settings(folder)))
    except OSError as error:
        raise StudyError(f"{page} cannot be written: {error.strerror}.") from None
    return [page]


def make_page(results: Results, settings: dict[str, Any]) -> str:
    """The whole page as Markdown."""
    parts = [
        "# Real decisions, beside existing tools",
        "This page is made by `python -m experiments.page` from the rows of `python -m experiments.decisions`; do not "
        "edit it.",
        describe_design(results, settings),
        "## The data sets",
        describe_tables(results),
    ]
    for measure, (heading, highest) in SHOWN.items():
        parts += [f"## {heading}", make_table_of(results, measure, highest)]
    parts.append("Means over runs. Bold: the best mean of the line.")
    for version in results.versions:
        parts += [f"## Differences: {LABELS[version]}", describe_leads(results, version)]
    if results.versions:
        parts += ["## What was found in the chains", describe_chains(results)]
    if len(results.few_labels):
        parts += ["## Few labels", describe_few_labels(results)]
    parts += ["## Time", describe_time(results), "## How to read this", describe_caveats()]
    return "\n\n".join([*parts, "## Commands", describe_commands(results, settings)]) + "\n"


# --- what was run ---------------------------------------------------------------------------------------------------


def describe_design(results: Results, settings: dict[str, Any]) -> str:
    """Splits and contestants in two paragraphs."""
    n_runs = count(int(results.runs.groupby("table")["run"].nunique().min()), "fresh random split")
    options = ", ".join(f"{name}={value}" for name, value in settings.get("options", {}).items())
    ours = f"A trial, not the defaults: `FeaturePolicyClassifier({options})`." if options else (
        "Ours is `FeaturePolicyClassifier()` with its defaults, on all data sets alike, except for what the name of a "
        "version says."
    )  # fmt: skip
    return (
        f"{n_runs} of each data set, the same for all contestants (seed {settings.get('seed', 'unknown')}): "
        f"{TEST_SHARE:.0%} of the groups are held out, or of the rows where there are no groups; then at most "
        f"{settings.get('n_train', 'unknown')} of the other rows are learned from, and at most "
        f"{settings.get('n_test', 'unknown')} of those held out are predicted.\n\n"
        f"{ours} Existing tools choose their settings by cross-validated log score within the rows to learn from, by "
        "groups where there are any. They get the median for missing entries, and columns that say where entries are "
        "missing. Where it is known which actions could be taken, the others get probability zero, for all contestants."
    )


def describe_tables(results: Results) -> str:
    """A line for each data set."""
    rows = []
    for name in results.names:
        table = results.tables.loc[name]
        groups = say_number(table["n_groups"], ".0f")
        missing = f"{table['share_missing']:.0%}" if table["share_missing"] else ""
        rows.append([SOURCES[name].label, SOURCES[name].kind, str(table["n_rows"]), groups, str(table["n_columns"]),
                     missing, table["actions"], table["about"]])  # fmt: skip
    header = ["data set", "kind", "rows", "groups", "columns", "missing", "actions and their rows", "what it is"]
    return make_table(header, rows)


# --- all actions on record ------------------------------------------------------------------------------------------


def make_table_of(results: Results, measure: str, highest: bool) -> str:
    """Data sets down, contestants across, and the mean over data sets at the end."""
    means = find_means(results.runs, measure)
    rows = [[SOURCES[name].label, *mark_best(line, highest)] for name, line in means.iterrows()]
    rows.append([say_over(means), *mark_best(average_over_tables(means), highest)])
    return make_table(["data set", *(LABELS[name] for name in means)], rows)


def say_over(means: pandas.DataFrame) -> str:
    """What the last line of a table is the mean of."""
    return f"mean over {count(len(means.dropna()), 'data set')}"


def mark_best(line: pandas.Series, highest: bool) -> list[str]:
    """Numbers as text, the best one in bold, nothing for those that have not run."""
    cells = ["" if math.isnan(value) else f"{value:.3f}" for value in line]
    known = [cell for cell in cells if cell]
    best = (max if highest else min)(known, key=float, default="")
    return [f"**{cell}**" if cell and cell == best else cell for cell in cells]


def describe_leads(results: Results, version: str) -> str:
    """Differences to logistic regression, and to the better of it and the forest, for each measure that is judged."""
    if not list_leads(results.runs, version, "accuracy", (REFERENCE,)):
        return f"Without {LABELS[REFERENCE]} there is nothing to compare with."
    return "\n\n".join(describe_leads_in(results, version, measure) for measure in JUDGED)


def describe_leads_in(results: Results, version: str, measure: str) -> str:
    """A table of differences in one measure, and what it says."""
    first, second = (list_leads(results.runs, version, measure, others) for others in ((REFERENCE,), STRONG))
    rows = []
    for name, lead in first.items():
        better = find_better(results.runs[results.runs["table"] == name], measure)
        rows.append([SOURCES[name].label, say_lead(lead), say_lead(second[name]), LABELS[better]])
    rows.append(["mean over data sets", *(say_mean_lead(leads) for leads in (first, second)), ""])
    header = [JUDGED[measure], f"minus {LABELS[REFERENCE]} [95%]", "minus the better [95%]", "the better"]
    against = f"Against {LABELS[REFERENCE]}: {say_verdicts(first)} Against the better: {say_verdicts(second)}"
    return f"{make_table(header, rows)}\n\n{against}"


def say_lead(lead: Interval) -> str:
    """A difference with its interval, if it has one."""
    ends = "" if math.isnan(lead.low) else f" [{lead.low:+.3f}, {lead.high:+.3f}]"
    return f"{lead.value:+.3f}{ends}"


def say_mean_lead(leads: Leads) -> str:
    """A mean over data sets with its interval, if there are two or more."""
    mean = average_leads(leads)
    return f"{mean.value:+.3f}" if math.isnan(mean.error) else say_interval(mean, "+.3f")


def say_verdicts(leads: Leads) -> str:
    """On which data sets it is ahead, a tie or behind, and the worst of them."""
    parts = [
        f"{VERDICTS[verdict]} {list_names([SOURCES[name].label for name in names])}"
        for verdict, names in sort_by_verdict(leads).items()
    ]
    worst = find_worst(leads)
    return f"{'; '.join(parts)}. The worst data set is {SOURCES[worst].label} ({leads[worst].value:+.3f})."


def describe_chains(results: Results) -> str:
    """Number of features, and how often chains agree, for each version of ours."""
    rows = []
    features, agree = (find_means(results.runs, measure) for measure in ("n_features", "chains_agree"))
    for name in features.index:
        cells = [[say_number(frame.loc[name, version], spec) for frame, spec in ((features, ".1f"), (agree, ".0%"))]
                 for version in results.versions]  # fmt: skip
        rows.append([SOURCES[name].label, *(cell for pair in cells for cell in pair)])
    header = [f"{LABELS[version]}: {what}" for version in results.versions for what in ("features", "chains agree")]
    return make_table(["data set", *header], rows) + "\n\nMean number of features, and share of the runs."


def say_number(value: float, spec: str) -> str:
    """A number, or nothing if it is NaN."""
    return "" if math.isnan(value) else f"{value:{spec}}"


# --- only a few actions on record -----------------------------------------------------------------------------------


def describe_few_labels(results: Results) -> str:
    """What happens if only some of the rows to learn from have an action."""
    about = (
        "All rows to learn from are observed, but only some of them, chosen at random, have an action on record. Ours "
        f"learns from all rows, as do {list_names([LABELS[name] for name in FROM_ALL_ROWS])}; the others learn from "
        "the rows with an action. A line leaves out data sets that have too few rows for it, or that a contestant has "
        "not seen, so compare within a line. The last lines repeat the results with all actions, on the data sets of "
        "the line before."
    )
    tables = [
        f"### {SHOWN[measure][0]}, mean over data sets\n\n{make_table_of_labels(results, measure)}"
        for measure in JUDGED
    ]
    leads = [describe_leads_with_few(results, version) for version in results.versions]
    return "\n\n".join([about, *tables, *filter(None, leads)])


def make_table_of_labels(results: Results, measure: str) -> str:
    """Numbers of labels down, contestants across."""
    contestants = list(find_means(results.few_labels, measure))
    rows, means = [], pandas.DataFrame()
    for n_labels, of_number in results.few_labels.groupby("n_labels"):
        means = find_means(of_number, measure).reindex(columns=contestants).dropna()
        rows.append([str(n_labels), str(len(means)), *mark_best(means.mean(), highest=True)])
    with_all = find_means(results.runs, measure).reindex(index=means.index, columns=contestants)
    rows.append(["all", str(len(with_all)), *mark_best(with_all.mean(skipna=False), highest=True)])
    return make_table(["labels", "data sets", *(LABELS[name] for name in contestants)], rows)


def describe_leads_with_few(results: Results, version: str) -> str:
    """The mean difference of a version of ours to each tool that is meant for few labels, by log score."""
    present = set(results.few_labels["contestant"])
    others = [name for name in (REFERENCE, *FROM_ALL_ROWS) if name in present]
    if version not in present or not others:
        return ""
    rows = []
    for n_labels, of_number in results.few_labels.groupby("n_labels"):
        leads = [list_leads(of_number, version, "log_score", (other,)) for other in others]
        rows.append([str(n_labels), *(say_mean_lead(of_other) if of_other else "" for of_other in leads)])
    header = ["labels", *(f"minus {LABELS[other]} [95%]" for other in others)]
    return f"Log score of {LABELS[version]}, difference over data sets:\n\n{make_table(header, rows)}"


# --- the rest -------------------------------------------------------------------------------------------------------


def describe_time(results: Results) -> str:
    """Seconds of a fit with all actions, the choice of settings included."""
    timings = results.timings[results.timings["n_labels"] == ALL]
    seconds = timings.assign(seconds=timings["fit_seconds"] + timings["predict_seconds"])
    means = find_means(seconds, "seconds")
    rows = [[SOURCES[name].label, *(say_number(value, ".1f") for value in line)] for name, line in means.iterrows()]
    table = make_table(["seconds, mean", *(LABELS[name] for name in means)], rows)
    return (
        f"{table}\n\nFit, choice of settings and prediction, each in one process, on a machine that had other work to "
        "do as well; compare within a line."
    )


CAVEATS = (
    "The intervals of single data sets allow for rows that the splits share (Nadeau and Bengio, 2003), as if each "
    "split used the whole data set. Where a data set has many more rows than a split takes, they are wider than need "
    "be: a tie there may be a difference that more runs would show. The intervals of means are over data sets, which "
    "were not drawn at random from anything.",
    "The better of logistic regression and random forest is chosen with hindsight, by the mean over the same runs, "
    "which is in its favour.",
    "Existing tools are tuned, ours is not. The explainable boosting machine has fewer bags, pairs and rounds than by "
    "default, to save time.",
    "Nobody decides anything in the classic data sets; their classes stand in for actions.",
    "Controllers are deterministic rules. What is on record is always what the rule wants, although a part of the "
    "actions executed is random; so a perfect prediction is possible.",
    "Codes of categories, such as cantons and the purpose of a trip, are numbers to all contestants.",
    "An action that is missing from the rows to learn from counts as wrong where it is tested.",
    "Columns that give the action away are left out: the occupancy of the vehicle (`vocc`) in the MTC work trips, and "
    "the waiting times (`ttme`) in the travel modes, where those of modes not taken are filled in with two figures. "
    "Travel times there are whole multiples of five minutes for most modes taken and few others, which may still help "
    "to tell the action; and the size of the party is that of the trip taken.",
)


def describe_caveats() -> str:
    """What could be misread, as a list."""
    return "\n".join(f"- {caveat}" for caveat in CAVEATS)


def describe_commands(results: Results, settings: dict[str, Any]) -> str:
    """How to have the rows and the page again."""
    options = f"--runs {results.runs['run'].max() + 1} --random-state {settings.get('seed', 0)}"
    if results.names != list(SOURCES):
        options += f" --tables {','.join(results.names)}"
    if (settings.get("n_train"), settings.get("n_test")) != (N_TRAIN, N_TEST):
        options += f" --train-rows {settings.get('n_train')} --test-rows {settings.get('n_test')}"
    options += " --few-labels" * bool(len(results.few_labels))
    return (
        f"```\npython -m experiments.decisions {options} --out docs/results/decisions\n"
        "python -m experiments.page docs/results/decisions --out docs/results/decisions.md\n```\n\n"
        "Two of the data sets are not part of whyact: the first command says where to get them, and `--data` where "
        "they are."
    )
