"""Minari datasets of strangers: nothing runs, and no other file is read."""

import json
import time
import tracemalloc
from importlib.util import find_spec

import h5py
import numpy as np
import pytest

from whyact.errors import ArgumentError
from whyact.tables import read_demonstrations, read_minari, source

pytestmark = pytest.mark.skipif(find_spec("minari") is None, reason="needs minari")
BOX = {"type": "Box", "dtype": "float64", "shape": [2], "low": [0.0, 0.0], "high": [9.0, 9.0]}
DISCRETE = {"type": "Discrete", "dtype": "int64", "start": 0, "n": 2}
SEEN = np.arange(8.0).reshape(4, 2)
TAKEN = np.array([0, 1, 0])


@pytest.fixture
def make(tmp_path):
    """A dataset with one episode, into which `build` puts the observations."""

    def make(build=None, observations=BOX, actions=DISCRETE, **metadata):
        folder = tmp_path / "d" / "data"
        folder.mkdir(parents=True, exist_ok=True)
        about = {"data_format": "hdf5", "total_episodes": 1, **metadata}
        spaces = {"observation_space": json.dumps(observations), "action_space": json.dumps(actions)}
        (folder / "metadata.json").write_text(json.dumps(about | spaces))
        with h5py.File(folder / "main_data.hdf5", "w") as file:
            episode = file.create_group("episode_0")
            episode["actions"] = TAKEN
            if build is None:
                episode["observations"] = SEEN
            else:
                build(file, episode)
        return tmp_path / "d"

    return make


def test_a_plain_dataset_is_read(make):
    table = read_demonstrations(make())
    np.testing.assert_array_equal(table.X.to_numpy(), SEEN[:-1])
    assert table.y.tolist() == [0, 1, 0]


def secret(file):
    """Another file, which belongs to the reader and not to the dataset."""
    path = file.filename + ".secret"
    with h5py.File(path, "w") as other:
        other["x"] = SEEN + 1000
    return path


def put_external_storage(file, episode):
    with open(file.filename + ".raw", "wb") as raw:
        raw.write((SEEN + 1000).tobytes())
    episode.create_dataset("observations", (4, 2), "f8", external=[(file.filename + ".raw", 0, 64)])


def put_external_link(file, episode):
    episode["observations"] = h5py.ExternalLink(secret(file), "/x")


def put_soft_link(file, episode):
    file["other"] = SEEN
    episode["observations"] = h5py.SoftLink("/other")


def put_virtual(file, episode):
    layout = h5py.VirtualLayout(shape=(4, 2), dtype="f8")
    layout[:] = h5py.VirtualSource(secret(file), "x", shape=(4, 2))
    episode.create_virtual_dataset("observations", layout)


def link_episode(file, episode):
    path = file.filename + ".episode"
    with h5py.File(path, "w") as other:
        other["e/observations"], other["e/actions"] = SEEN, TAKEN
    del file["episode_0"]
    file["episode_0"] = h5py.ExternalLink(path, "/e")


def put_images(file, episode):
    pieces = episode.create_dataset("observations", (4,), h5py.vlen_dtype(np.uint8))
    pieces[0] = np.zeros(3, np.uint8)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (put_external_storage, "stored in other files"),
        (put_external_link, "a link to elsewhere"),
        (put_soft_link, "a link to elsewhere"),
        (put_virtual, "stored in other files"),
        (link_episode, "a link to elsewhere"),
        (put_images, "holds images as JPEG, .* jpeg_encoding=False"),
        (lambda file, episode: episode.create_group("observations"), "is not an array"),
        (lambda file, episode: None, "'observations' is missing"),
        (lambda file, episode: episode.__setitem__("observations", SEEN[:, :1]), "has the shape"),
        (lambda file, episode: episode.__setitem__("observations", SEEN[:2]), "has 2 observations and 3 actions"),
        (lambda file, episode: episode.__setitem__("observations", np.float64(3)), "has the shape"),
        (lambda file, episode: episode.__setitem__("observations", ["a", "b"]), "neither numbers nor text"),
        (
            lambda file, episode: episode.create_dataset("observations", (10**8, 2), "f8", compression="gzip"),
            "declares a size",
        ),
    ],
)
def test_no_other_file_is_read(build, sentence, make):
    """The first version learned from, and passed on, whatever the links of a dataset pointed to."""
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_demonstrations(make(build))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["main_data.hdf5", "metadata.json"])
def test_a_linked_file_is_no_part_of_a_dataset(name, make, tmp_path):
    folder = make() / "data"
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArgumentError, match="is not a regular file"):
        read_demonstrations(folder)


def test_a_dataset_without_its_file_is_one_sentence(make):
    folder = make() / "data"
    (folder / "main_data.hdf5").unlink()
    with pytest.raises(ArgumentError, match=r"no file .*main_data\.hdf5"):
        read_demonstrations(folder)


HUGE = 10**12


@pytest.mark.parametrize(
    ("spaces", "sentence"),
    [
        ({"actions": DISCRETE | {"n": HUGE}}, r"a space of 1000000000000 actions; at most 1048576 can be read"),
        ({"actions": DISCRETE | {"n": 10**40}}, "more than a quintillion actions"),
        ({"actions": DISCRETE | {"n": -1}}, "does not say in Minari's words what its actions are"),
        ({"actions": DISCRETE | {"n": True}}, "does not say in Minari's words"),
        ({"actions": DISCRETE | {"start": 10**30}}, "does not say in Minari's words"),
        ({"actions": DISCRETE | {"start": 1}}, "has actions that it does not name"),
        ({"actions": BOX}, "are not discrete"),
        ({"observations": DISCRETE | {"n": HUGE}}, "1000000000000 numbers in each of its observations"),
        ({"observations": BOX | {"shape": [10**6, 10**6]}}, "1000000000000 numbers in each"),
        ({"observations": {"type": "MultiBinary", "n": HUGE}}, "1000000000000 numbers in each"),
        ({"observations": {"type": "Dict", "subspaces": {}}}, "0 numbers in each"),
        ({"observations": BOX | {"dtype": "object"}}, "cannot be turned into rows of numbers"),
        ({"observations": {"type": "Text", "max_length": HUGE}}, "cannot be turned into rows of numbers"),
        ({"observations": []}, "does not say in Minari's words"),
        ({"total_episodes": HUGE}, "'episode_1' is missing"),
        ({"total_episodes": "x"}, "how many episodes"),
        ({"total_episodes": 0}, "has no episodes"),
        ({"action_names": ["a"]}, "has actions that it does not name"),
        ({"action_names": 3}, "not a list of texts"),
    ],
)
def test_spaces_without_bounds_are_one_sentence(spaces, sentence, make):
    tracemalloc.start()
    started = time.perf_counter()
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_demonstrations(make(**spaces))
    assert time.perf_counter() - started < 20  # seconds; a hang, not a measure of speed
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    assert "\n" not in str(error.value)


def test_a_small_dataset_cannot_ask_for_much_memory(make, monkeypatch):
    """One number of a space of very many becomes a row of as many numbers."""
    monkeypatch.setattr(source, "ALLOWANCE_OF_TABLE", 2**20)
    many = {"type": "Discrete", "dtype": "int64", "n": 2**19, "start": 0}
    path = make(lambda file, episode: episode.__setitem__("observations", np.zeros(4, int)), many)
    for read in (read_demonstrations, read_minari):
        with pytest.raises(ArgumentError, match=r"asks for .* of memory to be read, more than the"):
            read(path)


def test_names_of_actions_cannot_ask_for_much_memory(make, monkeypatch):
    monkeypatch.setattr(source, "ALLOWANCE_OF_TABLE", 2**20)
    with pytest.raises(ArgumentError, match=r"asks for .* of memory to be read, more than the"):
        read_demonstrations(make(action_names=["a" * 10**6, "b"]))


def test_a_space_has_not_any_number_of_parts(make):
    part = {"type": "Discrete", "dtype": "int64", "n": 2, "start": 0}
    with pytest.raises(ArgumentError, match=r"the observations of .* have 1001 parts; at most"):
        read_demonstrations(make(observations={"type": "Tuple", "subspaces": [part] * 1001}))


def test_spaces_nested_without_end_are_one_sentence(make):
    space = BOX
    for _ in range(400):
        space = {"type": "Tuple", "subspaces": [space]}
    with pytest.raises(ArgumentError, match="cannot be turned into rows"):
        read_demonstrations(make(observations=space))
    folder = make() / "data"
    (folder / "metadata.json").write_text("[" * 100_000)
    with pytest.raises(ArgumentError, match="is not the metadata"):
        read_demonstrations(folder)
