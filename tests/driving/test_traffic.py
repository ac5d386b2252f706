"""Simulated traffic: what is seen and what is done in it, files of it, and drivers in it."""

import importlib.util
import io
import json
import subprocess
import sys
import zipfile
from importlib import resources

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from tests.support.stand_in import make_model
from whyact.driving.agent import (
    Expert,
    IdleDriver,
    PolicyAgent,
    RandomDriver,
    compare_drivers,
    drive,
)
from whyact.driving.datasets import load_traffic, save_traffic
from whyact.driving.traffic import (
    ACTIONS,
    CAR_LENGTH,
    CAR_WIDTH,
    ROADSIDE,
    SPEED_CHANGE,
    Simulator,
    TrafficGrid,
    record_demonstrations,
)
from whyact.errors import ArgumentError
from whyact.intervals import mean_interval, wilson_interval
from whyact.tables.minari import read_minari, write_minari
from whyact.tables.numpy import load_arrays, save_arrays


def needs(module):
    is_there = importlib.util.find_spec(module) is not None
    return pytest.mark.skipif(not is_there, reason=f"{module} is not installed (pip install whyact[driving])")


needs_highway_env = needs("highway_env")
needs_minari = needs("minari")


@pytest.fixture(scope="module")
def traffic():
    return load_traffic()


@pytest.fixture(scope="module")
def tree(traffic):
    return DecisionTreeClassifier(max_depth=5, random_state=0).fit(traffic.observations, traffic.actions)


# What is seen


def test_cars_are_drawn_by_their_share_of_the_cells():
    grid = TrafficGrid()
    frame = grid.draw_cars(np.array([[11.5, 0.0]]))  # from 9 to 14 m
    assert frame.sum() == pytest.approx(1)
    assert frame[1, 2] == pytest.approx(0.2)
    assert frame[1, 3] == pytest.approx(0.8)
    assert grid.column_names[frame.shape[1] + 3] == "now own 10..20 m"
    crossing = grid.draw_cars(np.array([[15.0, 1.5]]))  # three quarters of it in the own lane
    np.testing.assert_allclose(crossing[:, 3], [0.25, 0.75, 0])


def test_drawing_agrees_with_fine_points():
    grid, rng = TrafficGrid(), np.random.default_rng(0)
    x, y = np.meshgrid((np.arange(100) + 0.5) / 100 - 0.5, (np.arange(100) + 0.5) / 100 - 0.5)
    for place in rng.uniform((-15, -5), (75, 5), (20, 2)):
        xs, ys = place[0] + CAR_LENGTH * x.ravel(), place[1] + CAR_WIDTH * y.ravel()
        counts, _, _ = np.histogram2d(-ys, xs, bins=(-grid.y_edges, grid.x_edges))
        np.testing.assert_allclose(grid.draw_cars(place), counts / x.size, atol=0.02)


def test_car_hides_the_one_behind_it():
    grid = TrafficGrid()
    both = np.array([[15.0, 0.0], [45.0, 0.5], [45.0, 4.0], [-15.0, 0.0]])
    frame = grid.draw_cars(both)
    np.testing.assert_array_equal(frame, grid.draw_cars(both[[0, 2, 3]]))
    assert frame[1, 6] == 0
    assert frame[0, 6] == 1


def test_roadsides_are_seen():
    grid = TrafficGrid()
    rightmost = grid.draw_roadsides(8.0, 3)
    assert (rightmost[0] == 1).all()
    assert (rightmost[1:] == 0).all()
    halfway = grid.draw_roadsides(2.0, 3)  # changing from the leftmost lane
    np.testing.assert_allclose(halfway[:, 0], [0, 0, 0.5])
    frame = grid.draw_frame(np.array([[15.0, -4.0]]), 8.0, 3)
    np.testing.assert_allclose(frame[:, 3], [ROADSIDE, 0, 1])


def test_needle_moves_with_the_speed():
    grid = TrafficGrid()
    middles = (grid.speed_edges[:-1] + grid.speed_edges[1:]) / 2
    for speed in (5.0, 9.0, 13.4):
        needle = grid.draw_speed(speed)
        assert needle @ middles / needle.sum() == pytest.approx(speed)
    assert grid.draw_speed(-1.0).max() == grid.draw_speed(40.0).max() == 1


@needs_highway_env
@pytest.mark.parametrize("self_driving", [True, False])
def test_observer_follows_the_vehicle(self_driving):
    simulator = Simulator(n_steps=5)
    for episode in range(3):
        simulator.reset(3, episode, self_driving=self_driving)
        abandoned = simulator.vehicle
        for action in (0, 3, 2):
            observation, *_ = simulator.step(None if self_driving else action)
            env, own = simulator.env, simulator.vehicle
            assert own is abandoned
            assert own in env.road.vehicles
            assert env.observation_type.observer_vehicle is own
            assert env.action_type.controlled_vehicle is own
            assert type(own).__name__ == ("IDMVehicle" if self_driving else "MDPVehicle")
            places = np.array([car.position - own.position for car in env.road.vehicles if car is not own])
            frame = simulator.grid.draw_frame(places, own.position[1], 3)
            n_cells = frame.size
            np.testing.assert_array_equal(observation[:n_cells], frame.ravel())
            # highway-env's own grid, [x, y] with y to the right: the middles of all cars, and the observer in its cell
            presence = env.observation_type.observe()[0].T[::-1]
            assert presence[1, 2] == 1
            everyone = sum(simulator.grid.draw_cars(place[None]) for place in [*places, np.zeros(2)])
            assert (everyone[presence == 1] > 0).all()
            visible = frame[(presence == 0) & (simulator.grid.draw_roadsides(own.position[1], 3) == 0)]
            assert (visible < 1).all()


@needs_highway_env
def test_observer_would_be_left_behind_by_the_old_vehicle():
    simulator = Simulator()
    simulator.reset(0, 0, self_driving=True)
    old = simulator.vehicle
    observer = simulator.env.observation_type
    simulator.reset(0, 1)
    assert observer is not simulator.env.observation_type
    assert simulator.env.observation_type.observer_vehicle is not old


@needs_highway_env
def test_second_frame_is_the_first_of_the_step_before():
    simulator = Simulator(n_steps=4)
    n_cells = np.prod(simulator.grid.frame_shape)
    before, _ = simulator.reset(0, 0, self_driving=True)
    for _ in range(3):
        after, *_ = simulator.step(None)
        np.testing.assert_array_equal(after[n_cells : 2 * n_cells], before[:n_cells])
        before = after


# What is done


@needs_highway_env
def test_labels_are_what_the_vehicle_did_next():
    recorded = record_demonstrations(6, seed=4, n_steps=3)
    simulator, row = Simulator(n_steps=3), 0
    for episode in range(6):
        observation, _ = simulator.reset(4, episode, self_driving=True)
        for _ in range(3):
            np.testing.assert_array_equal(recorded.observations[row], observation)
            foreseen = simulator.ask_expert()
            lane, speed = simulator.vehicle.target_lane_index[2], simulator.vehicle.speed
            observation, *_ = simulator.step(None)
            change = simulator.vehicle.speed - speed
            moved = simulator.vehicle.target_lane_index[2] - lane
            expected = {-1: "LANE_LEFT", 1: "LANE_RIGHT"}.get(moved) or (
                "FASTER" if change > SPEED_CHANGE else "SLOWER" if change < -SPEED_CHANGE else "IDLE"
            )
            assert recorded.actions[row] == expected == foreseen
            row += 1
    assert row == len(recorded.actions)


@needs_highway_env
def test_asking_the_expert_changes_nothing():
    simulator = Simulator()
    simulator.reset(1, 1)
    before = [(car.position.copy(), car.speed) for car in simulator.env.road.vehicles]
    simulator.ask_expert()
    for car, (position, speed) in zip(simulator.env.road.vehicles, before, strict=True):
        np.testing.assert_array_equal(car.position, position)
        assert car.speed == speed


@needs_highway_env
def test_same_seed_same_demonstrations():
    first, again, other = (record_demonstrations(2, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.observations, again.observations)
    np.testing.assert_array_equal(first.actions, again.actions)
    assert not np.array_equal(first.observations, other.observations)


# Files


def test_shipped_file_is_small_and_balanced(traffic):
    assert (resources.files("whyact") / "data" / "traffic.npz").stat().st_size <= 1_000_000
    assert traffic.observations.shape == (840, 70)
    assert traffic.observations.shape[1] == len(traffic.grid.column_names) == np.prod(traffic.grid.image_shape)
    assert traffic.observations.min() == 0
    assert traffic.observations.max() == 1
    names, counts = np.unique(traffic.actions, return_counts=True)
    assert set(names) == set(ACTIONS)
    assert counts.min() > 0.08 * len(traffic.actions)
    assert counts.max() < 0.45 * len(traffic.actions)
    assert len(np.unique(traffic.episode)) == 420


def test_shipped_file_loads_without_highway_env_and_minari():
    code = (
        "import sys\n"
        "for name in ('highway_env', 'gymnasium', 'minari', 'h5py', 'pygame'): sys.modules[name] = None\n"
        "from whyact.driving.datasets import load_traffic\n"
        "from whyact.driving.traffic import record_demonstrations\n"
        "from whyact.tables import read_minari\n"
        "assert len(load_traffic().actions) == 840\n"
        "for call in (lambda: read_minari('x-v0'), lambda: record_demonstrations(1)):\n"
        "    try: call()\n"
        "    except ImportError as error: assert 'install whyact[driving]' in str(error)\n"
        "    else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_highway_env
def test_first_episodes_are_the_shipped_rows(traffic, tmp_path):
    again = record_demonstrations(3)
    save_traffic(tmp_path / "again.npz", again)
    rows = len(again.actions)
    shades = np.load(tmp_path / "again.npz")["observations"]
    np.testing.assert_array_equal(shades / 255, traffic.observations[:rows])
    np.testing.assert_array_equal(again.actions, traffic.actions[:rows])
    np.testing.assert_array_equal(again.episode, traffic.episode[:rows])
    np.testing.assert_array_equal(again.step, traffic.step[:rows])


@pytest.mark.parametrize("names", [True, False])
def test_arrays_come_back_as_they_were(traffic, tmp_path, names):
    path = tmp_path / "rows.npz"
    actions = traffic.actions if names else np.unique(traffic.actions, return_inverse=True)[1]
    save_arrays(path, traffic.observations, actions, traffic.episode)
    loaded = load_arrays(path)
    np.testing.assert_array_equal(loaded.observations, traffic.observations)
    np.testing.assert_array_equal(loaded.actions, actions)
    np.testing.assert_array_equal(loaded.episode, traffic.episode)
    assert [file.name for file in tmp_path.iterdir()] == ["rows.npz"]
    np.savez(path, observations=[[1.0]], actions=["go"])
    assert load_arrays(path).episode.tolist() == [0]


class Trap:
    def __reduce__(self):
        return exec, ("raise RuntimeError('a pickle was run')",)


def write_bad_file(path, kind):
    good = {"observations": np.zeros((3, 2)), "actions": np.array(["a", "b", "a"])}
    bad = {
        "pickle": good | {"actions": np.array([Trap()] * 3, dtype=object)},
        "no actions": {"observations": good["observations"]},
        "too few actions": good | {"actions": np.array(["a", "b"])},
        "no rows": good | {"observations": np.zeros(3)},
        "words": good | {"observations": np.array([["x", "y"]] * 3)},
        "fractions": good | {"actions": np.array([0.5, 1, 2])},
        "episode": good | {"episode": np.zeros((3, 1), dtype=int)},
    }
    np.savez(path, **bad.get(kind, good))
    content = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif kind == "flipped":
        path.write_bytes(content[:130] + bytes(255 - byte for byte in content[130:190]) + content[190:])
    elif kind == "text":
        path.write_text("observations, actions\n")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "npy":
        np.save(path.with_suffix(".npy"), np.zeros((3, 2)))
        path.write_bytes(path.with_suffix(".npy").read_bytes())
    elif kind == "larger than memory":
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**8, 10**6)})
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("observations.npy", header.getvalue())
    elif kind == "pickled file":
        import pickle

        path.write_bytes(pickle.dumps(Trap()))


@pytest.mark.parametrize(
    "kind", ["pickle", "no actions", "too few actions", "no rows", "words", "fractions", "episode", "truncated",
             "flipped", "text", "empty", "npy", "larger than memory", "pickled file"],
)  # fmt: skip
def test_bad_files_are_refused(tmp_path, kind):
    path = tmp_path / "bad.npz"
    write_bad_file(path, kind)
    with pytest.raises(ArgumentError, match=r"bad\.npz") as caught:
        load_arrays(path)
    assert "\n" not in str(caught.value)
    assert caught.value.argument == "path"


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ArgumentError, match=r"there is no file .*nothing\.npz"):
        load_arrays(tmp_path / "nothing.npz")
    with pytest.raises(ArgumentError, match="cannot be written"):
        save_arrays(tmp_path / "no folder" / "x.npz", [[1.0]], [0])


@pytest.fixture
def minari_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


@needs_minari
def test_minari_round_trip(traffic, minari_folder):
    rows = slice(0, 60)
    given = [column[rows] for column in (traffic.observations, traffic.actions, traffic.episode)]
    write_minari("traffic/idm-v0", *given)
    for dataset in ("traffic/idm-v0", minari_folder / "traffic" / "idm-v0"):
        for written, read in zip(given, read_minari(dataset), strict=True):
            np.testing.assert_array_equal(written, read)
    with pytest.raises(ArgumentError, match="already exists"):
        write_minari("traffic/idm-v0", *given)
    with pytest.raises(ArgumentError, match="rows of an episode must be consecutive"):
        write_minari("traffic/mixed-v0", given[0][:3], given[1][:3], [0, 1, 0])


@needs_minari
@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_minari_pairs_each_action_with_what_was_seen_before_it(minari_folder):
    import minari
    from gymnasium import spaces
    from minari.data_collector.episode_buffer import EpisodeBuffer

    space = spaces.Dict({"place": spaces.Box(-9, 9, (2, 1)), "mode": spaces.Discrete(3)})
    buffers = [
        EpisodeBuffer(
            observations={
                "mode": [t % 3 for t in range(n + 1)],
                "place": [np.full((2, 1), t + 0.5) for t in range(n + 1)],
            },
            actions=[10 + t for t in range(n)], rewards=[0.0] * n, terminations=[False] * n, truncations=[False] * n,
        )
        for n in (2, 3)
    ]  # fmt: skip
    dataset = minari.create_dataset_from_buffers(
        "parts-v0", buffers, observation_space=space, action_space=spaces.Discrete(5, start=10)
    )
    read = read_minari("parts-v0")
    assert read.actions.tolist() == [10, 11, 10, 11, 12]
    assert read.episode.tolist() == [0, 0, 1, 1, 1]
    first = {"place": np.full((2, 1), 1.5, dtype=np.float32), "mode": 1}
    np.testing.assert_array_equal(read.observations[1], spaces.utils.flatten(dataset.observation_space, first))


@needs_minari
@pytest.mark.parametrize("damage", ["environment", "not json", "other format", "cut", "nothing"])
def test_bad_minari_datasets_are_refused(minari_folder, damage):
    write_minari("bad-v0", [[1.0], [2.0]], ["a", "b"], [0, 0])
    data = minari_folder / "bad-v0" / "data"
    metadata = json.loads((data / "metadata.json").read_text())
    if damage == "environment":  # Minari would call this to find out what the observations are
        del metadata["observation_space"]
        spec = {"id": "trap-v0", "entry_point": "os:mkdir", "additional_wrappers": [], "vector_entry_point": None}
        mark = minari_folder / "was run"
        metadata["env_spec"] = json.dumps(spec | {"kwargs": {"path": str(mark)}})
    elif damage == "other format":
        metadata["data_format"] = "arrow"
    (data / "metadata.json").write_text("{" if damage == "not json" else json.dumps(metadata))
    if damage == "cut":
        (data / "main_data.hdf5").write_bytes((data / "main_data.hdf5").read_bytes()[:500])
    with pytest.raises(ArgumentError, match="nothing-v0" if damage == "nothing" else "bad-v0"):
        read_minari("nothing-v0" if damage == "nothing" else "bad-v0")
    assert not (minari_folder / "was run").exists()


@needs_minari
@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_minari_actions_must_be_discrete(minari_folder):
    import minari
    from gymnasium import spaces
    from minari.data_collector.episode_buffer import EpisodeBuffer

    row = np.zeros(2, dtype=np.float32)
    buffer = EpisodeBuffer(
        observations=[row, row], actions=[row], rewards=[0.0], terminations=[False], truncations=[True]
    )
    space = spaces.Box(-1, 1, (2,))
    minari.create_dataset_from_buffers("smooth-v0", [buffer], observation_space=space, action_space=space)
    with pytest.raises(ArgumentError, match="not discrete"):
        read_minari("smooth-v0")


# Drivers


def test_agent_does_what_the_model_predicts(traffic, tree):
    agent = PolicyAgent(tree)
    rows = traffic.observations[::40]
    numbers = [agent.act(row) for row in rows]
    assert [ACTIONS[number] for number in numbers] == tree.predict(rows).tolist()
    with pytest.raises(ArgumentError, match="'brake' is not a meta-action"):
        PolicyAgent(DecisionTreeClassifier().fit([[0.0], [1.0]], ["brake", "IDLE"]))
    by_number = PolicyAgent(DecisionTreeClassifier().fit([[0.0], [1.0]], [4, 1]))
    assert by_number.act(np.zeros(1)) == 4


def test_agent_takes_only_what_is_available(traffic, tree):
    agent, rows = PolicyAgent(tree), traffic.observations[:20]
    numbers = [ACTIONS.index(name) for name in tree.classes_]
    for row, first in zip(rows, tree.predict(rows), strict=True):
        mask = np.ones(len(ACTIONS), bool)
        assert agent.act(row, mask) == ACTIONS.index(first)
        mask[ACTIONS.index(first)] = False
        left = np.where(mask[numbers], tree.predict_proba([row])[0], -1.0)
        assert agent.act(row, mask) == numbers[int(np.argmax(left))]
    with pytest.raises(ArgumentError, match="whether it can be taken"):
        agent.act(rows[0], [True, False])
    with pytest.raises(ArgumentError, match="knows none of the meta-actions"):
        agent.act(rows[0], np.zeros(len(ACTIONS), bool))


def test_agent_tells_a_model_that_knows_of_it_what_is_available():
    policies = np.tile([1 - 2e-12, 1.5e-12, 5e-13], (3, 1))  # nothing would be left of it to the power of 30
    model = make_model(labels=["FASTER", "IDLE", "SLOWER"], policies=policies, decisiveness=30.0, prediction="map")
    present = model.observations_[model.judge(model.observations_).familiarity > 0.5]
    assert len(present) > 5
    mask = np.array([name in ("IDLE", "SLOWER") for name in ACTIONS])
    assert {ACTIONS[PolicyAgent(model).act(row, mask)] for row in present} == {"IDLE"}


@needs_highway_env
def test_meta_actions_do_what_they_say():
    for name in ACTIONS:
        simulator = Simulator()
        simulator.reset(0, 27)
        lane, speed = simulator.vehicle.target_lane_index[2], simulator.vehicle.speed
        assert lane == 1  # in the middle, so that both sides are possible
        *_, info = simulator.step(ACTIONS.index(name))
        moved = simulator.vehicle.target_lane_index[2] - lane
        assert moved == {"LANE_LEFT": -1, "LANE_RIGHT": 1}.get(name, 0)
        if name in ("FASTER", "SLOWER"):
            assert info["action"] == name
            assert (info["speed"] > speed) == (name == "FASTER")


@needs_highway_env
def test_drivers_start_in_the_same_state_and_are_compared(tree):
    starts = []
    for self_driving in (True, False):
        simulator = Simulator()
        starts.append(simulator.reset(2, 7, self_driving=self_driving)[0])
    np.testing.assert_array_equal(*starts)
    drivers = {"learned": PolicyAgent(tree), "expert": Expert(), "copy": Expert(True), "random": RandomDriver()}
    table = compare_drivers(drivers, n_episodes=2, seed=1, n_steps=2)
    assert table.index.tolist() == list(drivers)
    assert table.loc["expert", "agreement"] == table.loc["copy", "agreement"] == 1
    for name in ("crash_rate", "mean_speed", "agreement"):
        assert (table[f"{name}_low"] <= table[name]).all()
        assert (table[name] <= table[f"{name}_high"]).all()
    first, again = (drive(IdleDriver(), 1, 1, n_steps=2) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_intervals_cover():
    rng, n_runs = np.random.default_rng(0), 1000
    rate = 0.1
    intervals = [wilson_interval(n, 50) for n in range(51)]
    is_covered = np.array([interval.low <= rate <= interval.high for interval in intervals])
    assert 0.93 < stats.binom.pmf(range(51), 50, rate) @ is_covered < 0.98
    means = [mean_interval(values) for values in rng.normal(3, 2, (n_runs, 12))]
    assert np.mean([interval.low <= 3 <= interval.high for interval in means]) == pytest.approx(0.95, abs=0.02)
    assert mean_interval(np.array([0.0, 1.0]), 0.0, 1.0)[1:] == (0.0, 1.0)
    assert np.isnan(mean_interval(np.array([1.0])).low)
