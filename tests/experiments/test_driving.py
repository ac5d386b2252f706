"""The study of real drives: its scenes, its splits, what is measured, its page."""

import pickle
import shutil
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.driving.__main__ import app as driving_app
from experiments.driving.baselines import RAW, judge_baselines
from experiments.driving.page import TRAFFIC_FILE, WORDS_FILE, write_page
from experiments.driving.scenes import BOXES, HOST_HEIGHT, LIDAR, POWER, read_boxes_scene, read_kitti_scene
from experiments.driving.splits import BLOCK_LENGTH, hold_out
from experiments.driving.study import (
    OPTIONS,
    TOOLS,
    Design,
    fit_ours,
    judge_ours,
    make_stores,
    read_confusion,
    run_study,
    scene_rows,
    write_confusion,
)
from experiments.driving.summary import PAPER, read_results
from experiments.harness.store import StudyError
from experiments.page import app as page_app
from tests.support.kitti_scenes import find_real_data, make_tracking
from tests.support.paths import RESULTS
from whyact.driving.grids import OccupancyGrid, split_frames
from whyact.errors import ArgumentError
from whyact.prediction import Prediction

# tests of the study itself do without the existing tools, which take longest
ACCURACIES_OF_OTHERS = {f"accuracy_{name}": 0.5 for name in TOOLS}
TINY = {"n_burn_in": 5, "n_draws": 10, "n_chains": 2}
N_FRAMES = 80


def drive(n_frames=N_FRAMES):
    """A car ahead comes closer and draws away; the driver brakes when it is near. Distance, acceleration, speed."""
    distance = 15 + 8 * np.cos(np.arange(n_frames) / 8)
    acceleration = np.where(distance < 12, -1.0, np.where(distance > 19, 1.0, 0.0))
    return distance, acceleration, 5 + np.cumsum(acceleration) / 10


def make_boxes(path, n_frames=N_FRAMES, **changes):
    """A file of boxes on a grid of 3 x 12 cells."""
    distance, acceleration, speed = drive(n_frames)
    grids = np.zeros((n_frames, 3, 12), dtype=np.float32)
    grids[np.arange(n_frames), 1, ((distance + 6) // 3).astype(int)] = 1.4
    arrays = {
        "grids": grids,
        "longitudinal_range": np.array([-6.0, 30.0]),
        "lateral_range": np.array([-3.0, 3.0]),
        "speed": speed,
        "acceleration": acceleration,
        "actions": np.array(["D" if a < 0 else "A" if a > 0 else "C" for a in acceleration]),
    }
    np.savez_compressed(path, **{name: value for name, value in (arrays | changes).items() if value is not None})
    return path


def make_kitti(root, name="0011", n_frames=N_FRAMES, lacking=()):
    """The same drive as scans of a tracking sequence."""
    scans = make_tracking(root, name, n_frames, lacking)
    lines = []
    for frame, (distance, acceleration, speed) in enumerate(zip(*drive(n_frames), strict=True)):
        if frame not in lacking:
            points = np.array([[distance, y, z, 0.0] for y in (-0.6, 0.0, 0.6) for z in (-1.7, -1.0, -0.1)])
            points.astype("<f4").tofile(scans / f"{frame:06d}.bin")
        values = [0.0] * 30
        values[8], values[14] = speed, acceleration
        lines.append(" ".join(map(str, values)) + "\n")
    (root / "training" / "oxts" / f"{name}.txt").write_text("".join(lines))
    return root


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return read_boxes_scene(make_boxes(tmp_path_factory.mktemp("boxes") / "0011.npz"), None, None)


# --- the scenes -----------------------------------------------------------------------------------------------------


def test_boxes_become_observations_marked_and_smoothed(scene):
    assert (scene.name, scene.number, scene.source) == ("0011-boxes", "0011", BOXES)
    assert scene.grid == OccupancyGrid(
        (3, 12), (-3.0, 3.0), (-6.0, 30.0), smoothing=2.5, host_height=HOST_HEIGHT, power=POWER
    )
    assert scene.observations.shape == scene.raw.shape == (N_FRAMES - 1, 72)
    assert scene.frames.tolist() == list(range(1, N_FRAMES))
    assert (scene.n_skipped, scene.n_left_out) == (0, 1)
    current, _ = split_frames(scene.raw, (3, 12))
    assert (current.max(axis=(1, 2)) == np.float32(1.4)).all()
    assert (scene.raw > 0).sum() == 2 * len(scene.raw)  # a car in each frame, and no host
    current, _ = split_frames(scene.observations, (3, 12))
    assert (current[:, scene.grid.host_cell[0], scene.grid.host_cell[1]] > 0).all()
    np.testing.assert_array_equal(scene.actions, scene.labels[1:])


def test_scans_become_observations(tmp_path):
    scene = read_kitti_scene(make_kitti(tmp_path, lacking=(30, 31)), 11, None, 1.0)
    assert (scene.name, scene.source) == ("0011", LIDAR)
    assert (scene.n_skipped, scene.n_left_out) == (2, 2)
    assert len(scene.observations) == N_FRAMES - 4
    assert len(scene.labels) == len(scene.motion.speed) == N_FRAMES
    assert scene.grid.smoothing == 1.0
    assert [round(speed, 1) for speed in scene.resolved_speed] == [2.9, 6.2]
    assert set(scene.actions) == {"A", "C", "D"}
    first = read_kitti_scene(tmp_path, 11, 40, 1.0)
    assert (len(first.labels), first.n_skipped, len(first.frames)) == (40, 2, 36)
    np.testing.assert_array_equal(first.observations, scene.observations[:36])


def test_damaged_scans_are_skipped_and_counted(tmp_path):
    make_kitti(tmp_path)
    (tmp_path / "training" / "velodyne" / "0011" / "000040.bin").write_bytes(b"cut short")
    scene = read_kitti_scene(tmp_path, 11, None, None)
    assert (scene.n_skipped, scene.n_left_out) == (1, 2)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"speed": None}, "lacks the array 'speed'"),
        ({"speed": np.zeros(3)}, f"speed must have one value for each of the {N_FRAMES} frames"),
        ({"speed": np.full(N_FRAMES, np.nan)}, "speed must hold finite numbers"),
        ({"grids": np.zeros((N_FRAMES, 36))}, "grids must be an array (frames, rows, columns)"),
        ({"grids": -np.ones((N_FRAMES, 3, 12))}, "without negative heights"),
        ({"lateral_range": np.array([3.0, -3.0])}, "lateral must be two numbers, the smaller one first"),
        ({"longitudinal_range": np.array([5.0, 30.0])}, "a grid that does not hold the origin"),
        ({"actions": np.array(["X"] * N_FRAMES)}, "the action 'X' is none of A, D, C, L, R"),
        ({"actions": np.array(["A", None] * (N_FRAMES // 2))}, "is not an .npz file of plain arrays"),
        ({"actions": np.array(["A"] * N_FRAMES)}, "only one action (A)"),
    ],
)
def test_wrong_boxes_are_refused(changes, sentence, tmp_path):
    path = make_boxes(tmp_path / "0011.npz", **changes)
    with pytest.raises(ArgumentError) as error:
        read_boxes_scene(path, None, None)
    assert sentence in str(error.value)


def test_what_is_no_file_of_boxes_is_refused(tmp_path):
    class Loud:
        def __reduce__(self):
            return print, ("run",)

    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("no zip")
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Loud()))
    for name, sentence in (("array.npy", "only one array"), ("text.npz", "not an"), ("pickle.npz", "not an")):
        with pytest.raises(ArgumentError, match=sentence):
            read_boxes_scene(tmp_path / name, None, None)


def test_first_frames_only(tmp_path):
    path = make_boxes(tmp_path / "0020.npz")
    assert len(read_boxes_scene(path, 50, None).observations) == 49
    with pytest.raises(ArgumentError, match=f"81 is more than the {N_FRAMES} frames"):
        read_boxes_scene(path, 81, None)
    with pytest.raises(ArgumentError, match="has 9 observations; at least 30"):
        read_boxes_scene(path, 10, None)


# --- the splits -----------------------------------------------------------------------------------------------------


def test_random_rows_hold_every_action_in_its_share(scene):
    fold = hold_out(scene, "random", 0, seed=5)
    assert sorted([*fold.train, *fold.test]) == list(range(len(scene.actions)))
    for action in "ACD":
        share = np.mean(scene.actions[fold.test] == action)
        assert share == pytest.approx(np.mean(scene.actions == action), abs=0.06)


def test_blocks_are_whole_and_share_no_frame_with_the_rows_to_learn_from(scene):
    for run in range(5):
        fold = hold_out(scene, "blocked", run, seed=5)
        blocks = (scene.frames - 1) // BLOCK_LENGTH
        assert not set(blocks[fold.test]) & set(blocks[fold.train])
        assert len(np.unique(blocks[fold.test])) == round(len(np.unique(blocks)) / 5)

        def seen(rows):
            return {*scene.frames[rows], *(scene.frames[rows] - 1)}

        assert not seen(fold.test) & seen(fold.train)
        np.testing.assert_array_equal(fold.groups, blocks[fold.train])


def test_splits_depend_on_seed_run_and_nothing_else(scene):
    for split in ("random", "blocked"):
        one, again = (hold_out(scene, split, 1, seed=5) for _ in range(2))
        np.testing.assert_array_equal(one.test, again.test)
        assert one.seed == again.seed
        others = [hold_out(scene, split, 2, seed=5), hold_out(scene, split, 1, seed=6)]
        assert all(one.seed != other.seed for other in others)


def test_blocks_leave_two_actions_to_learn_from(scene):
    labels = np.array(["C"] * N_FRAMES)
    labels[20:25] = "A"  # in one block only
    rare = replace(scene, labels=labels)
    for run in range(10):
        assert len(np.unique(rare.actions[hold_out(rare, "blocked", run, 0).train])) == 2


# --- what is measured -----------------------------------------------------------------------------------------------


def test_confusion_is_counted_and_read_again():
    classes = np.array(["A", "C", "D"])
    text = write_confusion(np.array([0, 0, 0, 1, 2]), np.array([0, 0, 1, 1, 0]), classes)
    assert text == "A>A:2 A>C:1 C>C:1 D>A:1"
    assert read_confusion(text, ["C", "D", "A"]).tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 2]]


class Learned:
    """A model as after a fit that has not seen action D: what is in the first column is A."""

    classes_ = np.array(["A", "C"])
    n_components_ = 1

    class posterior_:
        chains_agree = True
        n_chains = 2

    def __init__(self, n_rows):
        self.substates_ = np.ones((n_rows, 1))

    def predict_proba(self, X):
        return np.where(X[:, :1] > 0, [0.9, 0.1], [0.2, 0.8])

    def judge(self, X, prediction):
        assert prediction == "map"
        return Prediction(self.predict_proba(X), np.ones((len(X), 1)), np.ones(len(X)))

    def inverse_transform(self, S):
        return np.zeros((len(S), 72))


def test_actions_never_seen_count_as_wrong(scene):
    fold = hold_out(scene, "random", 0, seed=0)
    measured = judge_ours(Learned(len(fold.train)), scene, fold)
    taken = scene.actions[fold.test]
    says = np.where(scene.observations[fold.test, 0] > 0, "A", "C")
    assert measured["accuracy_mmse"] == measured["accuracy_map"] == np.mean(says == taken)
    matrix = read_confusion(measured["confusion_mmse"], ["A", "C", "D"])
    assert matrix[2].sum() == np.sum(taken == "D") > 0
    assert matrix[:, 2].sum() == 0
    assert measured["mse_test"] == pytest.approx(np.mean(scene.observations[fold.test] ** (2 / POWER)))
    assert -5 < measured["log_score"] < 0


@pytest.mark.parametrize("split", ["random", "blocked"])
def test_existing_tools_see_both_kinds_of_observations(scene, split):
    accuracies = judge_baselines(scene, hold_out(scene, split, 0, seed=0))
    assert set(accuracies) == set(ACCURACIES_OF_OTHERS)
    if split == "random":  # the distance tells the action, so that all who look at it should know it
        assert all(value > 0.7 for name, value in accuracies.items() if "most_frequent" not in name)
        assert accuracies["accuracy_most_frequent"] < 0.6


def test_paper_is_copied_rightly():
    for paper in PAPER.values():
        assert paper.confusion.trace() / paper.confusion.sum() == pytest.approx(paper.accuracy, abs=5e-5)


# --- the study ------------------------------------------------------------------------------------------------------

QUICK = Design(n_runs=2, seed=7, options=TINY)


@pytest.fixture
def without_tools(monkeypatch):
    monkeypatch.setattr("experiments.driving.study.judge_baselines", lambda scene, fold: ACCURACIES_OF_OTHERS)


@pytest.fixture(scope="module")
def quick(scene, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.driving.study.judge_baselines", lambda scene, fold: ACCURACIES_OF_OTHERS)
        run_study(folder, scene, QUICK, n_jobs=1)
    return folder


def test_every_split_leaves_its_row_and_pictures(quick, scene):
    stores = make_stores(quick)
    rows = stores["runs"].read()
    assert [(row["split"], row["run"]) for row in rows] == [(s, n) for s in ("blocked", "random") for n in (0, 1)]
    assert len(stores["timings"].read()) == 4
    for row in rows:
        assert row["n_train"] + row["n_test"] <= len(scene.actions)
        assert read_confusion(row["confusion_map"], ["A", "C", "D"]).sum() == row["n_test"]
        assert 0 <= row["accuracy_mmse"] <= 1
        assert row["mse_train"] > 0
    assert [row[f"accuracy_logistic_regression{RAW}"] for row in stores["tools"].read()] == [0.5] * 4
    assert [row["scene"] for row in scene_rows(quick).read()] == ["0011-boxes"]
    for picture in ("actions.svg", "actions.png", "features.svg", "features.png"):
        assert (quick / f"0011-boxes-{picture}").stat().st_size > 0
    svg = (quick / "0011-boxes-actions.svg").read_text()
    assert "not LIDAR" in svg


def test_a_stopped_study_resumes_and_ends_with_the_same_rows(quick, scene, tmp_path, monkeypatch, without_tools):
    monkeypatch.setattr("experiments.driving.study.draw_features", lambda *given: [])
    monkeypatch.setattr("experiments.driving.study.draw_actions", lambda *given: [])
    run_study(tmp_path, scene, QUICK._replace(n_runs=1), n_jobs=1)
    rows = make_stores(tmp_path)["runs"].path
    lines = rows.read_text().splitlines(keepends=True)
    rows.write_text("".join(lines[:-1]) + lines[-1][:20])  # killed while it wrote
    told = []
    run_study(tmp_path, scene, QUICK, n_jobs=1, on_start=lambda tasks, undone: told.append((len(tasks), len(undone))))
    assert told == [(4, 3)]
    assert rows.read_bytes() == make_stores(quick)["runs"].path.read_bytes()


def test_ours_runs_again_with_other_options_and_keeps_the_tools(quick, scene, tmp_path, monkeypatch):
    for name in ("draw_features", "draw_actions", "judge_baselines"):  # tools would be refused: None is no row
        monkeypatch.setattr(f"experiments.driving.study.{name}", lambda *given: None)
    for path in quick.iterdir():
        if path.suffix in (".csv", ".json") and path.stem not in ("runs", "timings"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    options = TINY | {"n_draws": 11}
    run_study(tmp_path, scene, QUICK._replace(options=options), n_jobs=1)
    results = read_results(tmp_path)
    assert results.settings["options"] == options
    assert len(results.runs) == len(results.timings) == 4
    assert (tmp_path / "tools.csv").read_bytes() == (quick / "tools.csv").read_bytes()
    with pytest.raises(StudyError, match="seed = 7, not 8"):
        run_study(tmp_path, scene, QUICK._replace(options=options, seed=8), n_jobs=1)


def test_another_seed_or_scene_of_the_same_name_is_refused(quick, scene):
    with pytest.raises(StudyError, match="seed = 7, not 8"):
        run_study(quick, scene, QUICK._replace(seed=8), n_jobs=1)
    with pytest.raises(StudyError, match="started with options"):
        run_study(quick, scene, QUICK._replace(options=TINY | {"n_draws": 11}), n_jobs=1)
    grid = replace(scene.grid, smoothing=1.0)
    with pytest.raises(StudyError, match=r"scene 0011-boxes in .* was started with smoothing = 2.5, not 1.0"):
        run_study(quick, replace(scene, grid=grid), QUICK, n_jobs=1)


def test_results_are_those_of_the_rows(quick):
    results = read_results(quick)
    rows = results.of("0011-boxes", "random")
    assert results.accuracy("0011-boxes", "random", "mmse").value == pytest.approx(rows["accuracy_mmse"].mean())
    assert results.actions("0011-boxes") == ["C", "D", "A"]  # the paper's order
    matrix = results.confusion("0011-boxes", "random", "mmse")
    assert matrix.sum() == rows["n_test"].sum()
    assert matrix.trace() / matrix.sum() == pytest.approx(rows["accuracy_mmse"].mean(), abs=0.02)


def test_page_has_goals_scenes_words_and_traffic(quick, tmp_path):
    page = tmp_path / "driving.md"
    assert write_page(quick, page)[0] == page
    text = page.read_text()
    for part in (
        "## What was asked for, and what was reached",
        "at most 40 features",
        "at most 0.03 below the best tool, blocked",
        "## Scene 0011, grids cast from labelled boxes, not LIDAR",
        "0.743",
        "0.0329",
        "logistic regression, raw",
        "(driving/0011-boxes-features.png)",
        "## What does not work",
        "## Time",
    ):
        assert part in text
    assert "nan" not in text
    assert "What the features say" not in text
    assert "simulated traffic" not in text
    assert (tmp_path / "driving" / "0011-boxes-features.png").exists()


def test_page_takes_in_words_and_drivers(quick, tmp_path):
    folder = tmp_path / "driving"
    shutil.copytree(quick, folder)
    (folder / WORDS_FILE).write_text("A1 is a *car* far ahead.\n")
    columns = "driver,crash_rate,crash_low,crash_high,speed,speed_low,speed_high,agreement,agreement_low,agreement_high"
    table = folder / TRAFFIC_FILE
    table.write_text(
        f"{columns},n_episodes\nours,0.1,0.05,0.2,21.25,20,22,0.9,0.85,0.95,100\nchance,0.8,0.7,0.9,9,8,10,,,,100\n"
    )
    text = write_page(folder, tmp_path / "driving.md")[0].read_text()
    assert "## What the features say\n\nA1 is a *car* far ahead." in text
    assert "| ours | 0.100 [0.050, 0.200] | 21.2 [20.0, 22.0] | 0.900 [0.850, 0.950] | 100 |" in text
    assert "| chance | 0.800 [0.700, 0.900] | 9.0 [8.0, 10.0] |  | 100 |" in text
    table.write_text("driver,crash_rate\nours,0.1\n")
    with pytest.raises(StudyError, match="lacks the column"):
        write_page(folder, tmp_path / "driving.md")


# --- the command ----------------------------------------------------------------------------------------------------


def flatten(text):
    return " ".join(text.replace("│", " ").split())


def test_command_runs_and_writes(tmp_path, monkeypatch, without_tools):
    for name, value in TINY.items():
        monkeypatch.setitem(OPTIONS, name, value)
    runner = CliRunner()
    out = tmp_path / "study"
    make_kitti(tmp_path, "0020", n_frames=60, lacking=(30,))
    options = ["--kitti", str(tmp_path), "--scene", "20", "--runs", "1", "--n-jobs", "1", "--out", str(out)]
    result = runner.invoke(driving_app, [*options])
    assert result.exit_code == 0, result.output
    said = flatten(result.output)
    assert "Scene 0020, LIDAR scans: 57 observations of 60 frames; 1 skipped" in said
    assert "2 left out without the frame before" in said
    assert "12.3 m/s along the road" in said
    assert "0.733" in said
    assert "0.0027" in said
    assert "not LIDAR" not in said
    boxes = make_boxes(tmp_path / "0011.npz")
    options = ["--boxes", str(boxes), "--runs", "1", "--n-jobs", "1", "--out", str(out)]
    result = runner.invoke(driving_app, [*options])
    assert result.exit_code == 0, result.output
    assert BOXES in flatten(result.output)
    result = runner.invoke(page_app, [str(out), "--out", str(tmp_path / "page.md")])
    assert result.exit_code == 0, result.output
    assert read_results(out).names == ["0011-boxes", "0020"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "give one of the two"),
        (["--kitti", "{root}", "--boxes", "{root}/0011.npz"], "give one of the two"),
        (["--kitti", "{root}"], "say which scene of --kitti"),
        (["--boxes", "{root}/0011.npz", "--scene", "11"], "a file of boxes holds only one scene"),
        (["--kitti", "{root}/nowhere", "--scene", "11"], "there is no folder"),
        (["--kitti", "{root}", "--scene", "12"], "has no sequence 0012; there are 0011"),
        (["--boxes", "{root}/nothing.npz"], "there is no file"),
        (["--boxes", "{root}/0011.npz", "--frames", "1"], "1 is less than 2"),
        (["--boxes", "{root}/0011.npz", "--frames", "99"], "99 is more than the 80 frames"),
        (["--boxes", "{root}/0011.npz", "--smoothing", "-1"], "smoothing must be a finite number and not negative"),
        (["--boxes", "{root}/0011.npz", "--runs", "0"], "0 is less than 1"),
        (["--boxes", "{root}/0011.npz", "--n-jobs", "0"], "0 jobs would never finish"),
    ],
)
def test_wrong_options_are_named(options, sentence, tmp_path):
    make_boxes(tmp_path / "0011.npz")
    make_tracking(tmp_path)
    given = [option.replace("{root}", str(tmp_path)) for option in options]
    result = CliRunner().invoke(driving_app, [*given, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert sentence in flatten(result.output)
    assert not (tmp_path / "out").exists()


# --- the real thing -------------------------------------------------------------------------------------------------


def test_real_scans_run_through_the_study(tmp_path, without_tools):
    scene = read_kitti_scene(find_real_data() / "kitti-tracking", 0, 60, None)
    assert scene.observations.shape == (59, 2730)
    run_study(tmp_path, scene, Design(n_runs=1, options=TINY), n_jobs=1)
    assert len(make_stores(tmp_path)["runs"].read()) == 2


def test_real_boxes_are_read():
    folder = find_real_data() / "kitti-boxes"
    for name, frames, n_observations in (("0011", None, 372), ("0020", 301, 300)):
        path = folder / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"real boxes are not here: no {path}")
        scene = read_boxes_scene(path, frames, None)
        assert scene.observations.shape == (n_observations, 2730)


# --- the documented study ---------------------------------------------------------------------------------------------

DOCUMENTED = RESULTS / "driving"


def test_documented_page_is_that_of_its_rows(tmp_path):
    write_page(DOCUMENTED, tmp_path / "driving.md")
    assert (tmp_path / "driving.md").read_text() == DOCUMENTED.with_suffix(".md").read_text()


def test_documented_row_can_be_had_again():
    row = read_results(DOCUMENTED).of("0000", "random").set_index("run").loc[0]
    scene = read_kitti_scene(find_real_data() / "kitti-tracking", 0, None, None)
    fold = hold_out(scene, "random", 0, seed=61)
    measured = judge_ours(fit_ours(scene, fold, OPTIONS), scene, fold)
    assert measured["accuracy_mmse"] == pytest.approx(row["accuracy_mmse"])
    assert measured["n_features"] == row["n_features"]
    assert measured["confusion_mmse"] == row["confusion_mmse"]
