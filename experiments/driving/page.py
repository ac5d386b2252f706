"""The page about real drives (Sec. 6), made from the stored rows: only the goals are typed in.

What the features mean takes a person to say: such words are in `words.md` in the study's folder. How the learned driver
does in simulated traffic is read from `traffic.csv` there. Both may be absent.
"""

import shutil
from pathlib import Path

import pandas

from experiments.driving.baselines import N_FACTORS
from experiments.driving.scenes import BOXES
from experiments.driving.splits import BLOCK_LENGTH
from experiments.driving.summary import (
    LABELS,
    OURS,
    Results,
    describe_scene,
    list_confusions,
    make_lines,
    read_results,
    say_mean,
    say_share,
    say_span,
)
from experiments.harness.markdown import list_names, make_table
from experiments.harness.store import StudyError
from whyact.driving.labels import ACTIONS
from whyact.storage.atomic import write_whole

# The accuracy to reach on random rows, and the largest number of features allowed.
GOALS = {"0020-boxes": 0.92, "0011-boxes": 0.85, "0000": 0.85}
MOST_FEATURES = 40
# How far below the best of the existing tools the accuracy on blocks may be.
MARGIN = 0.03
# An action recognised in a smaller share of its rows is listed as not recognised.
LEAST_RECALL = 0.5

WORDS_FILE = "words.md"
TRAFFIC_FILE = "traffic.csv"
TRAFFIC_MEASURES = {"crash_rate": "episodes with a crash", "speed": "speed [m/s]", "agreement": "agrees with teacher"}
TRAFFIC_ENDS = {"crash_rate": "crash", "speed": "speed", "agreement": "agreement"}


def write_page(folder: Path, page: Path) -> list[Path]:
    """Write the page from the rows in `folder`, with the pictures in a folder of the page's name beside it."""
    results = read_results(folder)
    if not results.names:
        raise StudyError(f"the folder {folder} holds no runs of the driving study.")
    pictures = [folder / f"{scene}-{kind}.png" for scene in results.names for kind in ("actions", "features")]
    pictures = [path for path in pictures if path.exists()]
    try:
        beside = page.with_suffix("")
        beside.mkdir(parents=True, exist_ok=True)
        if beside.resolve() != folder.resolve():
            pictures = [Path(shutil.copy(path, beside)) for path in pictures]
        links = {path.stem: f"{beside.name}/{path.name}" for path in pictures}
        write_whole(page, make_page(results, links, read_words(folder), read_traffic(folder)))
    except OSError as error:
        raise StudyError(f"{page} cannot be written: {error.strerror}.") from None
    return [page, *pictures]


def read_words(folder: Path) -> str:
    """What a person wrote about the features; empty if there is nothing."""
    path = folder / WORDS_FILE
    try:
        return path.read_text(encoding="utf-8").strip() if path.exists() else ""
    except (OSError, UnicodeDecodeError):
        raise StudyError(f"{path} cannot be read as text.") from None


def read_traffic(folder: Path) -> pandas.DataFrame | None:
    """Rows of the drivers in simulated traffic, if there are any."""
    path = folder / TRAFFIC_FILE
    if not path.exists():
        return None
    try:
        drivers = pandas.read_csv(path)
    except (OSError, ValueError):
        raise StudyError(f"{path} cannot be read as a CSV file.") from None
    for column in ("driver", "n_episodes", *(name for names in map(list_columns, TRAFFIC_MEASURES) for name in names)):
        if column not in drivers:
            raise StudyError(f"{path} lacks the column {column}.")
    return drivers


def list_columns(measure: str) -> tuple[str, str, str]:
    """Columns of a measure in simulated traffic: its mean and the ends of its interval."""
    return measure, f"{TRAFFIC_ENDS[measure]}_low", f"{TRAFFIC_ENDS[measure]}_high"


def make_page(results: Results, links: dict[str, str], words: str, traffic: pandas.DataFrame | None) -> str:
    """The whole page as Markdown; `links` leads to the pictures."""
    parts = [
        "# Real drives: why the driver acts",
        "This page is made by `python -m experiments.page` from the rows of `python -m experiments.driving`; do not "
        "edit it.",
        describe_design(results),
        "## What was asked for, and what was reached",
        make_table(["scene", "asked for", "reached", ""], list_goals(results)),
    ]
    for scene in results.names:
        parts += describe_results(results, scene, links)
    if words:
        parts += ["## What the features say", words]
    if traffic is not None:
        parts += ["## Driving in simulated traffic", describe_traffic(traffic)]
    parts += ["## What does not work", describe_shortcomings(results), "## Time", describe_time(results)]
    return "\n\n".join(parts) + "\n"


def describe_design(results: Results) -> str:
    """What was run, in three paragraphs."""
    options = ", ".join(f"{name}={value}" for name, value in results.settings.get("options", {}).items())
    seed = results.settings.get("seed", "unknown")
    return (
        "Sec. 6 of the paper: an observation is the occupancy grid of a frame and of the one before it; the action is "
        "what the driver did. A fifth of the observations is held out, in two ways. Random: rows of any frames, as in "
        "the paper; nearly all have a neighbour a tenth of a second away among the rows to learn from. Blocked: whole "
        f"blocks of {BLOCK_LENGTH} consecutive frames; rows that share a frame with a row held out are not learned "
        "from. Actions that are not among the rows to learn from count as wrong.\n\n"
        f"Our model is `FeaturePolicyClassifier({options})`, for all scenes alike: MMSE averages over draws, MAP is "
        "the consensus of the chains. Existing tools see the same rows. Their settings are chosen by cross-validation "
        f"within the rows to learn from, in blocks where blocks are held out; the NMF has {N_FACTORS} factors. The "
        'smoothing, the root and the mark of the host vehicle are not in the paper, so "raw" shows the same tools on '
        f"grids without them. Seed {seed}.\n\n"
        "All intervals are 95% intervals. Runs split the same frames, so their rows to learn from overlap; the "
        "intervals allow for that (Nadeau & Bengio, 2003). They are about other splits of the same scene, not about "
        "other drives. The MSE is between observation and reconstruction, in heights of the smoothed grids. The "
        "paper's numbers are for LIDAR scans and one hold-out each, predicted by MAP."
    )


def list_goals(results: Results) -> list[list[str]]:
    """A row for each goal: scene, what was asked for, what was reached, and whether that is enough."""
    rows: list[tuple[str, str, str, bool]] = []
    for scene in results.names:
        splits = results.splits(scene)
        if scene in GOALS and "random" in splits:
            accuracy = results.accuracy(scene, "random", "mmse")
            is_met = accuracy.value >= GOALS[scene]
            rows.append((scene, f"accuracy of at least {GOALS[scene]:g}, random", say_share(accuracy), is_met))
        counts = results.runs[results.runs["scene"] == scene]["n_features"]
        is_met = counts.max() <= MOST_FEATURES
        rows.append((scene, f"at most {MOST_FEATURES} features", say_span(counts), is_met))
        if "blocked" in splits:
            best = results.best_baseline(scene, "blocked")
            lead = results.interval(scene, "blocked", "accuracy_mmse", minus=f"accuracy_{best}")
            asked = f"at most {MARGIN:g} below the best tool, blocked"
            rows.append((scene, asked, f"{say_mean(lead, '+.3f')} to {LABELS[best]}", lead.value >= -MARGIN))
    return [[scene, asked, reached, "met" if is_met else "**missed**"] for scene, asked, reached, is_met in rows]


def describe_results(results: Results, scene: str, links: dict[str, str]) -> list[str]:
    """The section of a scene."""
    row = results.scenes.loc[scene]
    parts = [f"## Scene {row['number']}, {row['source']}", describe_scene(results, scene)]
    if f"{scene}-actions" in links:
        parts.append(f"![Acceleration, speed and actions of scene {scene}]({links[f'{scene}-actions']})")
    header, *lines = make_lines(results, scene)
    parts.append(make_table(header, lines))
    parts.append(
        f"The observations have a mean square of {row['mean_square']:.4f} m², the MSE of an empty reconstruction."
    )
    parts += [compare_with_tools(results, scene, split) for split in results.splits(scene)]
    parts.append("Confusions: actions taken down, predicted across, summed over runs.")
    for rule in OURS:
        for title, (actions, matrix) in list_confusions(results, scene, rule).items():
            if title == "the paper" and rule != "map":
                continue
            rows = [
                [ACTIONS.get(action, action), *(f"**{count}**" if taken == predicted else str(count)
                 for predicted, count in enumerate(counts))]
                for taken, (action, counts) in enumerate(zip(actions, matrix, strict=True))
            ]  # fmt: skip
            parts.append(make_table([title, *(ACTIONS.get(action, action) for action in actions)], rows))
    if f"{scene}-features" in links:
        parts.append(f"![Features of scene {scene}]({links[f'{scene}-features']})")
        parts.append(
            "*Features of the consensus in the first random run, those that point most clearly to each action. Above: "
            "the current frame; below: what has changed since the one before.*"
        )
    return parts


def compare_with_tools(results: Results, scene: str, split: str) -> str:
    """Which tools our model is ahead of, behind, or neither, by paired differences."""
    verdicts: dict[str, list[str]] = {"ahead": [], "tie": [], "behind": [], "unknown": []}
    for name, label in LABELS.items():
        if name not in OURS:
            lead = results.interval(scene, split, "accuracy_mmse", minus=f"accuracy_{name}")
            verdicts[lead.verdict].append(f"{label} ({lead.value:+.3f})")
    words = {"ahead": "ahead of", "tie": "indistinguishable from", "behind": "behind"}
    said = [
        f"{words[verdict]} {list_names(names)}" for verdict, names in verdicts.items() if names and verdict in words
    ]
    if not said:
        return f"{split.capitalize()} hold-out: too few runs to compare."
    return f"{split.capitalize()} hold-out, accuracy of ours (MMSE) minus the other's: {'; '.join(said)}."


def describe_traffic(drivers: pandas.DataFrame) -> str:
    """A table of all drivers."""
    rows = []
    for _, driver in drivers.iterrows():
        cells = []
        for measure in TRAFFIC_MEASURES:
            values = driver[list(list_columns(measure))]
            mean, low, high = values
            spec = ".1f" if measure == "speed" else ".3f"
            cells.append("" if values.isna().any() else f"{mean:{spec}} [{low:{spec}}, {high:{spec}}]")
        rows.append([str(driver["driver"]), *cells, str(driver["n_episodes"])])
    return make_table(["driver", *TRAFFIC_MEASURES.values(), "episodes"], rows)


def describe_shortcomings(results: Results) -> str:
    """Where our model falls short, as the rows have it."""
    lines = [
        f"Scene {scene}: missed, {asked} (reached {reached})."
        for scene, asked, reached, verdict in list_goals(results)
        if verdict != "met"
    ]
    for scene in results.names:
        for split in results.splits(scene):
            lines += list_defeats(results, scene, split)
        accuracies = [results.accuracy(scene, split, "mmse").value for split in results.splits(scene)]
        if len(accuracies) == 2 and accuracies[1] < accuracies[0]:
            lines.append(
                f"Scene {scene}: in blocks of frames never seen the accuracy is {accuracies[1]:.3f}, compared with "
                f"{accuracies[0]:.3f} on random rows."
            )
    agree = results.runs["chains_agree"].dropna()
    if len(agree):
        lines.append(f"Chains agree in {int(agree.sum())} of {len(agree)} fits.")
    if (results.scenes["source"] == BOXES).any():
        lines.append(
            f"Scenes of {BOXES}, show only labelled objects within the camera's view: nothing behind the car, no walls "
            "or kerbs. The paper learned from other data, so its numbers are not strictly comparable."
        )
    return "\n".join(f"- {line}" for line in lines)


def list_defeats(results: Results, scene: str, split: str) -> list[str]:
    """Tools that are ahead of our model, and actions that it does not recognise."""
    lines = []
    leads = {
        label: results.interval(scene, split, f"accuracy_{name}", minus="accuracy_mmse")
        for name, label in LABELS.items()
        if name not in OURS
    }
    ahead = [f"{label} ({say_mean(lead, '+.3f')})" for label, lead in leads.items() if lead.verdict == "ahead"]
    if ahead:
        lines.append(f"Scene {scene}, {split}: more accurate than our model: {list_names(ahead)}.")
    matrix = results.confusion(scene, split, "mmse")
    for action, row, hits in zip(results.actions(scene), matrix, matrix.diagonal(), strict=True):
        if row.sum() and hits / row.sum() < LEAST_RECALL:
            lines.append(
                f"Scene {scene}, {split}: {ACTIONS.get(action, action)} is recognised in only {hits} of "
                f"{row.sum()} rows."
            )
    return lines


def describe_time(results: Results) -> str:
    """Seconds of fits, predictions and tools."""
    rows = [
        [str(scene), str(len(part)), f"{part['fit_seconds'].mean():.0f}", f"{part['fit_seconds'].max():.0f}",
         f"{part['predict_seconds'].mean():.1f}", f"{part['baselines_seconds'].mean():.0f}"]
        for scene, part in results.timings.groupby("scene", sort=False)
    ]  # fmt: skip
    header = ["scene", "fits", "mean s a fit", "longest s", "s to predict", "s for all existing tools"]
    return (
        "Wall time, on a machine that had other work to do as well; the chains of a fit run one after the other."
        f"\n\n{make_table(header, rows)}"
    )
