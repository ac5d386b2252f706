"""A Minari dataset in its folder, read without Minari and with suspicion.

Minari would make the environment that a dataset names, where its metadata do not say what observations and actions are,
and so import and call whatever that is; and HDF5 would follow links and storage out of the file, so that another file
of the reader's would become part of what is learned and passed on. Here the metadata are plain data, checked before
anything is made of them, and the file is read by the same functions as model files (`storage/hdf5.py`).
"""

import json
import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyact.errors import ArgumentError, DamagedFileError
from whyact.storage.hdf5 import DAMAGED, Budget, get_member, read_array
from whyact.storage.memory import find_limit
from whyact.tables.source import MOST_COLUMNS, check_held

LARGEST_METADATA = 2**26  # bytes
DEEPEST = 8
MOST_PARTS = 1000  # of a Dict or Tuple
NESTED = ("Dict", "Tuple")
NUMBERS = "biuf"  # kinds of numbers that observations can be


class Space(NamedTuple):
    """What an observation or an action can be; the words are those of Gymnasium."""

    kind: str  # "Box", "Discrete", "MultiBinary", "Dict" or "Tuple"
    shape: tuple[int, ...] = ()  # of a Box or MultiBinary
    n: int = 0  # of a Discrete
    start: int = 0
    parts: tuple[tuple[str, "Space"], ...] = ()  # of a Dict or Tuple, by their names in the file

    @property
    def width(self) -> int:
        """How many numbers a flattened observation has."""
        if self.kind in NESTED:
            return sum(part.width for _, part in self.parts)
        return self.n if self.kind == "Discrete" else math.prod(self.shape)


class MinariFolder:
    """Spaces and episodes of a dataset.

    Parameters
    ----------
    dataset : Path or str
        As the user called it, for messages.
    folder : Path
        Where its two files are.
    """

    def __init__(self, dataset: Path | str, folder: Path):
        self.dataset = dataset
        self.path = folder / "main_data.hdf5"
        self.metadata = read_metadata(dataset, folder / "metadata.json")
        self.observation_space = read_space(dataset, "observations", self.metadata["observation_space"])
        self.action_space = read_space(dataset, "actions", self.metadata["action_space"])
        self.action_names = check_names(dataset, self.metadata.get("action_names"))
        n_episodes = self.metadata.get("total_episodes")
        if isinstance(n_episodes, bool) or not isinstance(n_episodes, int) or n_episodes < 0:
            raise ArgumentError("path", f"{dataset} does not say how many episodes it has.")
        self.n_episodes = n_episodes
        with undamaged(dataset):
            self.size = check_regular(self.path).stat().st_size

    def read_episodes(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Observations (steps + 1, D) and actions (steps,) of each episode, as they are read."""
        import h5py  # HDF5 takes its time

        with undamaged(self.dataset):
            file = h5py.File(check_regular(self.path), "r")
        with file:
            budget = Budget(find_limit(self.size))
            for number in range(self.n_episodes):
                with undamaged(self.dataset):
                    episode = get_group(file, f"episode_{number}")
                    actions = read_array("actions", get_member(episode, "actions"), budget, "iu")
                    observations = self._flatten(episode, "observations", self.observation_space, budget)
                yield observations, actions

    def _flatten(self, place: Any, name: str, space: Space, budget: Budget) -> np.ndarray:
        """Observations of an episode as rows of numbers, in the order of `gymnasium.spaces.utils.flatten`."""
        if space.kind in NESTED:
            group = get_group(place, name)
            return np.hstack([self._flatten(group, key, part, budget) for key, part in space.parts])
        values = read_array(name, refuse_pieces(name, get_member(place, name)), budget, NUMBERS)
        if not values.ndim or values.shape[1:] != space.shape:
            raise DamagedFileError(f"{name!r} has the shape {values.shape}, which its metadata do not say")
        check_held(self.dataset, values.shape[0] * space.width * np.dtype(float).itemsize, self.size)
        if space.kind == "Discrete":
            return (values[:, None] == space.start + np.arange(space.n)).astype(float)
        return values.reshape(len(values), space.width).astype(float)


# --- metadata -----------------------------------------------------------------------------------------------


def read_metadata(dataset: Path | str, path: Path) -> dict[str, Any]:
    """What `metadata.json` says."""
    try:
        if check_regular(path).stat().st_size > LARGEST_METADATA:
            raise DamagedFileError("it is too large")
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArgumentError("path", f"there is no Minari dataset {dataset}: no file {path}.") from None
    except DamagedFileError as error:
        raise ArgumentError("path", f"{path} is not the metadata of a Minari dataset: {error}.") from None
    except (OSError, ValueError, RecursionError):
        raise ArgumentError("path", f"{path} is not the metadata of a Minari dataset.") from None
    if not isinstance(metadata, dict) or metadata.get("data_format") != "hdf5":
        raise ArgumentError("path", f"{dataset} is not a Minari dataset in the format hdf5.")
    if not all(isinstance(metadata.get(name), str) for name in ("observation_space", "action_space")):
        raise ArgumentError(
            "path", f"{path} does not say what the observations and actions are. Minari would have to run the "
            "environment that it names to find out, which whyact does not allow; write the dataset with its spaces.",
        )  # fmt: skip
    return metadata


def read_space(dataset: Path | str, what: str, text: str) -> Space:
    """A space from the text that Minari keeps of it; `what` it is of."""
    try:
        described = json.loads(text)
        space = make_space(dataset, what, described, 0)
    except ArgumentError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ArgumentError("path", f"{dataset} does not say in Minari's words what its {what} are.") from None
    if not 0 < space.width <= MOST_COLUMNS:
        noun = "actions" if what == "actions" and space.kind == "Discrete" else f"numbers in each of its {what}"
        number = space.width if space.width < 10**18 else "more than a quintillion"
        raise ArgumentError("path", f"{dataset} has a space of {number} {noun}; at most {MOST_COLUMNS} can be read.")
    return space


def make_space(dataset: Path | str, what: str, described: dict[str, Any], depth: int) -> Space:
    """The same, for a part of a space."""
    kind = described["type"]
    if kind in NESTED and depth < DEEPEST:
        parts = described["subspaces"]
        if len(parts) > MOST_PARTS:
            raise ArgumentError(
                "path", f"the {what} of {dataset} have {len(parts)} parts; at most {MOST_PARTS} can be read."
            )
        # Gymnasium sorts the parts of a Dict
        named = sorted(parts.items()) if kind == "Dict" else [(f"_index_{i}", part) for i, part in enumerate(parts)]
        return Space(kind, parts=tuple((name, make_space(dataset, what, part, depth + 1)) for name, part in named))
    if kind == "Box" and re.fullmatch(r"(float|u?int)\d+|bool", str(described["dtype"])):
        return Space(kind, shape=check_sizes(described["shape"]))
    if kind == "MultiBinary":
        sizes = described["n"]
        return Space(kind, shape=check_sizes(sizes if isinstance(sizes, list) else [sizes]))
    if kind == "Discrete":
        (n,), start = check_sizes([described["n"]]), int(described["start"])
        if abs(start) > 2**53:
            raise ValueError(start)
        return Space(kind, n=n, start=start)
    raise ArgumentError(
        "path", f"the {what} of {dataset} cannot be turned into rows of numbers: they are of the kind {kind!r:.40}."
    )


def check_sizes(sizes: Any) -> tuple[int, ...]:
    """Whole numbers above zero."""
    checked = tuple(sizes)
    if not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in checked):
        raise ValueError(sizes)
    return checked


def check_names(dataset: Path | str, names: Any) -> np.ndarray | None:
    """Names of the actions that `write_minari` stored, if any."""
    if names is None:
        return None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError("path", f"the names of the actions of {dataset} are not a list of texts.")
    return np.array(names, dtype=str)


# --- files --------------------------------------------------------------------------------------------------


def check_regular(path: Path) -> Path:
    """Refuse a file of a dataset that is a link to another one, or a pipe."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise DamagedFileError(f"{path.name} is not a regular file, but perhaps a link to one")
    return path


def get_group(place: Any, name: str) -> Any:
    """A group in a group."""
    import h5py  # HDF5 takes its time

    group = get_member(place, name)
    if not isinstance(group, h5py.Group):
        raise DamagedFileError(f"{name!r} is not a group")
    return group


def refuse_pieces(name: str, array: Any) -> Any:
    """Refuse images that are compressed one by one: in pieces of many lengths, a wrong bit lets HDF5 run forever."""
    import h5py  # HDF5 takes its time

    if isinstance(array, h5py.Dataset) and isinstance(h5py.check_vlen_dtype(array.dtype), np.dtype):
        raise DamagedFileError(f"{name!r} holds images as JPEG, which are not read; write it with jpeg_encoding=False")
    return array


@contextmanager
def undamaged(dataset: Path | str) -> Iterator[None]:
    """Turn what can go wrong with a file into one sentence that names the dataset."""
    try:
        yield
    except ArgumentError:
        raise
    except FileNotFoundError as error:
        raise ArgumentError("path", f"{dataset} is a damaged Minari dataset: no file {error.filename}.") from None
    except DamagedFileError as error:
        raise ArgumentError("path", f"{dataset} is a damaged Minari dataset: {error}.") from None
    except DAMAGED as error:
        raise ArgumentError(
            "path", f"{dataset} is a damaged Minari dataset: HDF5 cannot read it ({type(error).__name__})."
        ) from None
