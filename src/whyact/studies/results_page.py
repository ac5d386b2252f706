"""The page of results, made from the stored rows: nothing on it is typed in but the paper's claims."""

from collections.abc import Callable
from pathlib import Path

import pandas

from whyact.studies.figure2 import save_figure2
from whyact.studies.measures import __doc__ as measures_text
from whyact.studies.peers import ACCURACIES
from whyact.studies.store import StudyError, read_settings, write_whole
from whyact.studies.summary import CELL, Estimate, Results, average, read_results, root_mean_square

TABLES = {
    "accuracy_mmse": ("Accuracy, MMSE", "share of the 20 unseen actions", ".3f"),
    "accuracy_map": ("Accuracy, MAP", "share of the 20 unseen actions", ".3f"),
    "n_features_exact": ("Number of features exact", "share of runs", ".2f"),
    "n_features_error": ("Number of features", "RMSE", ".2f"),
    "rmse_features": ("Features", "RMSE of F", ".3f"),
    "rmse_substates": ("Substates", "RMSE of S", ".3f"),
    "rmse_states": ("Reconstructed states", "RMSE of X = S F", ".3f"),
    "mad_policies": ("Policies", "RMSE of the mean absolute deviation", ".3f"),
}
# A normal interval of 95%.
WIDTH = 1.96


def make_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_page(folder: Path, page: Path) -> list[Path]:
    """Write the page and its figure (SVG and PNG) from the rows in `folder`; return what was written."""
    results = read_results(folder)
    if len(results.runs) == 0:
        raise StudyError(f"the folder {folder} holds no runs of a simulation study.")
    settings = read_settings(folder)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        figures = save_figure2(results, page.with_name(f"{page.stem}-figure2"))
        write_whole(page, make_page(results, settings, figures[0].name))
    except OSError as error:
        raise StudyError(f"{page} cannot be written: {error.strerror}.") from None
    return [page, *figures]


def make_page(results: Results, settings: dict, figure: str) -> str:
    """The whole page as Markdown."""
    parts = [
        "# The paper's simulation study, reproduced",
        "This page is made by `whyact study page` from the rows beside it; do not edit it.",
        describe_design(results, settings),
        f"![Figure 2 of the paper with both samplers]({figure})",
        "*The paper's Figure 2. Colours tell the SNR; solid lines and dots the exact sampler, dashed lines and squares "
        "the algorithm as published; bars are one standard error over runs. Peers are grey, averaged over the SNRs.*",
        "## All methods on the same data",
        make_table_of_methods(results),
    ]
    if len(results.peers) and "exact" in results.samplers:
        parts += ["## Does the exact sampler beat every tool?", compare_with_peers(results)]
    parts += ["## What the paper claims, and what was measured", make_table_of_claims(results)]
    if len(results.samplers) > 1:
        parts += ["## What the exact sampler gains", compare_samplers(results)]
    parts += ["## How errors are measured", (measures_text or "").split("\n\n", 1)[1].strip()]
    parts += ["## Time", describe_time(results)]
    parts += ["## All cells", "Rows: true number of features. Columns: SNR. ± one standard error over runs."]
    for measure, (title, unit, spec) in TABLES.items():
        for sampler in results.samplers:
            parts += [f"### {title}, {sampler} ({unit})", make_table_of_cells(results.cells(sampler, measure), spec)]
    return "\n\n".join(parts) + "\n"


def count_runs(rows: pandas.DataFrame) -> str:
    counts = rows.groupby(CELL).size()
    return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"


def describe_design(results: Results, settings: dict) -> str:
    lines = [
        "Ground truth as in Sec. 5: gamma_w from InvGamma(100, 100), exponential weights, activations with probability "
        "0.5, substates from Dirichlet(1/K), noise from the SNR, 4 actions, 100 observations of dimension 30, 80 to "
        f"learn from and 20 to predict. The paper leaves open how peaked the policies are (here {settings['peak']:g} "
        f"for one action) and how actions follow (here: {settings['actions']}). Seed {settings['seed']}. All methods "
        "see the same data sets. One whose 80 rows hold a single action is drawn again.",
        "",
    ]
    for sampler in results.samplers:
        rows = results.of(sampler)
        lines.append(
            f"- {sampler}: {len(rows)} runs, {count_runs(rows)} in each of {rows.groupby(CELL).ngroups} cells, "
            f"{rows['sweeps'].iloc[0]:,} sweeps a chain, half of them burn-in."
        )
    if len(results.peers):
        lines.append(f"- peers: {len(results.peers)} data sets.")
    return "\n".join(lines)


def make_table_of_methods(results: Results) -> str:
    header = ["method", "runs", "mean accuracy", "K exact", "K off by (mean)"]
    rows = [
        [
            line.label,
            str(line.n_runs),
            f"{line.accuracy:.4f}" if line.accuracy else "",
            f"{line.exact:.1%}" if line.exact else "",
            f"{line.off_by:.2f}" if line.off_by else "",
        ]
        for line in results.lines()
    ]
    return make_table(header, rows)


def say_interval(difference: Estimate) -> str:
    value, half = difference.value, WIDTH * difference.error
    return f"{value:+.4f} [{value - half:+.4f}, {value + half:+.4f}]"


def compare_with_peers(results: Results) -> str:
    """Paired differences to every peer, and a sentence that says where the exact sampler does not lead."""
    peers = [name for name in ACCURACIES if name != "ceiling"]
    rows, behind, unsure = [], [], []
    for name in peers:
        lead = results.lead(name)
        rows.append([ACCURACIES[name], say_interval(lead)])
        if lead.value <= 0:
            behind.append(ACCURACIES[name])
        elif lead.value < WIDTH * lead.error:
            unsure.append(ACCURACIES[name])
    table = make_table(["peer", "exact (MMSE) minus peer, mean over data sets [95%]"], rows)
    if behind:
        sentence = f"In mean accuracy the exact sampler does **not** lead {' and '.join(behind)}."
    else:
        sentence = "In mean accuracy the exact sampler leads every peer."
    if unsure:
        sentence += f" Its lead over {' and '.join(unsure)} is within the noise."
    sentence += " " + say_by_snr(results, "simplex")
    exact = results.of("exact")
    shares = {"the exact sampler": exact["n_features_exact"].mean()} | {
        label: (results.peers[f"n_features_{name}"] == results.peers["n_features"]).mean()
        for name, label in (("minka", "Minka's MLE + 1"), ("bicv", "bi-cross-validation"))
    }
    ranked = sorted(shares, key=lambda name: -shares[name])
    sentence += " The number of features is exact most often for " + ", then ".join(
        f"{name} ({shares[name]:.1%})" for name in ranked
    )
    return f"{table}\n\n{sentence}."


def say_by_snr(results: Results, peer: str) -> str:
    """The paired difference to one peer for each SNR."""
    both = results.of("exact").merge(results.peers, on=[*CELL, "run"])
    parts = [
        f"{say_interval(average(rows['accuracy_mmse'] - rows[f'accuracy_{peer}']))} at {snr:g} dB"
        for snr, rows in both.groupby("snr")
    ]
    return f"Against {ACCURACIES[peer]} the difference is {'; '.join(parts)}."


def compare_samplers(results: Results) -> str:
    """Paired differences on the data sets that both samplers have seen."""
    both = results.of("exact").merge(results.of("as-published"), on=[*CELL, "run"], suffixes=("", "_published"))
    names = {
        "accuracy_mmse": "accuracy, MMSE",
        "accuracy_map": "accuracy, MAP",
        "n_features_exact": "K exact",
        "rmse_features": "RMSE of F",
        "rmse_substates": "RMSE of S",
        "rmse_states": "RMSE of X",
        "mad_policies": "mean absolute deviation of the policies",
    }
    rows = []
    for measure, label in names.items():
        mine, theirs = both[measure].astype(float), both[f"{measure}_published"].astype(float)
        rows.append([label, f"{mine.mean():.4f}", f"{theirs.mean():.4f}", say_interval(average(mine - theirs))])
    table = make_table(["mean over runs", "exact", "as published", "difference [95%]"], rows)
    return f"{len(both)} data sets that both samplers have seen, one value a run.\n\n{table}"


Claim = tuple[str, Callable[[Results, str], str]]


def extreme_cell(results: Results, sampler: str, measure: str, keep, *, lowest: bool) -> str:
    cells = {cell: e for cell, e in results.cells(sampler, measure).items() if keep(*cell)}
    if not cells:
        return "not run"
    k, snr = (min if lowest else max)(cells, key=lambda cell: cells[cell].value)
    return f"{cells[k, snr]:.3f} (K = {k}, {snr:g} dB)"


def claim_high_accuracy(results: Results, sampler: str) -> str:
    def keep(k, snr):
        return k < 15 and snr > 20

    parts = [
        f"lowest such cell {extreme_cell(results, sampler, f'accuracy_{rule}', keep, lowest=True)} with {rule.upper()}"
        for rule in ("map", "mmse")
    ]
    return "; ".join(parts)


def claim_worst_case(results: Results, sampler: str) -> str:
    parts = [
        f"{extreme_cell(results, sampler, f'accuracy_{rule}', lambda k, snr: True, lowest=True)} with {rule.upper()}"
        for rule in ("map", "mmse")
    ]
    return "; ".join(parts)


def claim_eighteen(results: Results, sampler: str) -> str:
    rows = results.of(sampler)
    rows = rows[(rows["n_features"] == 18) & (rows["snr"] > 15)]
    if len(rows) == 0:
        return "not run"
    error = rows["n_features_error"]
    exact = (error == 0).mean()
    return f"RMSE {root_mean_square(error):.2f}, mean of the signed error {error.mean():+.2f}, exact in {exact:.0%}"


def claim_strong_noise(results: Results, sampler: str) -> str:
    rows = results.of(sampler)
    rows = rows[rows["snr"] < 15]
    parts = []
    for label, part in (("K <= 7", rows[rows["n_features"] <= 7]), ("K > 7", rows[rows["n_features"] > 7])):
        if len(part):
            parts.append(
                f"{label}: K exact in {part['n_features_exact'].mean():.0%}, RMSE of F "
                f"{root_mean_square(part['rmse_features']):.3f}, accuracy {average(part['accuracy_mmse']):.3f}"
            )
    return "; ".join(parts) or "not run"


def claim_minor_improvement(results: Results, sampler: str) -> str:
    rows = results.of(sampler)
    return f"MMSE minus MAP {say_interval(average(rows['accuracy_mmse'] - rows['accuracy_map']))}"


CLAIMS: list[Claim] = [
    ("over 90% accuracy for K < 15 and SNR > 20 dB", claim_high_accuracy),
    ("accuracy slightly below 70% in the worst case", claim_worst_case),
    ("K off by only four on average for K = 18 and SNR > 15 dB", claim_eighteen),
    ("below 15 dB no reliable reconstruction of more than seven features", claim_strong_noise),
    ("MMSE improves little over MAP", claim_minor_improvement),
]


def make_table_of_claims(results: Results) -> str:
    rows = [[text, *(measure(results, sampler) for sampler in results.samplers)] for text, measure in CLAIMS]
    table = make_table(["the paper", *results.samplers], rows)
    return f"{table}\n\n{say_what_went_worse(results)}"


def say_what_went_worse(results: Results) -> str:
    """Compare with the claims that are numbers: cells below 90%, the worst case below 70%, K off by more than four."""
    worse = []
    for sampler in results.samplers:
        for rule in ("map", "mmse"):
            low = [
                f"K = {k}, {snr:g} dB: {estimate.value:.3f}"
                for (k, snr), estimate in results.cells(sampler, f"accuracy_{rule}").items()
                if k < 15 and snr > 20 and estimate.value <= 0.9
            ]
            if low:
                worse.append(f"{sampler}, {rule.upper()}, is not above 90% at {'; '.join(low)}")
            least = min(estimate.value for estimate in results.cells(sampler, f"accuracy_{rule}").values())
            if least < 0.68:
                worse.append(f"{sampler}, {rule.upper()}, falls to {least:.3f} in its worst cell")
        rows = results.of(sampler)
        rows = rows[(rows["n_features"] == 18) & (rows["snr"] > 15)]
        if len(rows) and root_mean_square(rows["n_features_error"]).value > 4:
            worse.append(f"{sampler} is off by more than four features at K = 18 above 15 dB")
    if not worse:
        return "Nothing went worse than the paper's figures."
    return "Worse than the paper's figures: " + ". ".join(worse) + "."


def describe_time(results: Results) -> str:
    """Seconds of each run, and what 600 of them would take on two cores."""
    rows = []
    for method, part in results.timings.groupby("method"):
        seconds = part["seconds"]
        sweeps = int(part["sweeps"].iloc[0])
        rows.append(
            [
                str(method),
                f"{sweeps:,}" if sweeps else "",
                str(len(part)),
                f"{seconds.mean():.1f}",
                f"{seconds.max():.1f}",
                f"{600 * seconds.mean() / 2 / 60:.0f}",
            ]
        )
    header = ["method", "sweeps a chain", "runs", "mean s a run", "longest s", "min for 600 runs, two at a time"]
    return (
        "Wall time of each run, of which two ran at a time on two cores that also did other work. The peers' time is "
        f"that of all of them together.\n\n{make_table(header, rows)}"
    )


def make_table_of_cells(cells: dict[tuple[int, float], Estimate], spec: str) -> str:
    sizes = sorted({k for k, _ in cells})
    snrs = sorted({snr for _, snr in cells})
    rows = [[str(k), *(f"{cells[k, snr]:{spec}}" if (k, snr) in cells else "" for snr in snrs)] for k in sizes]
    return make_table(["K", *(f"{snr:g} dB" for snr in snrs)], rows)
