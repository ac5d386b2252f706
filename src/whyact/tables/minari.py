"""Rows of Minari datasets."""

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from whyact.errors import ArgumentError
from whyact.tables.numpy import ACTIONS, EPISODE, Demonstrations, check_arrays
from whyact.tables.source import Block, check_finite, check_name, say_row

# What Minari raises on a dataset that is not what its metadata say.
DAMAGED = (OSError, ValueError, KeyError, TypeError, AssertionError, RuntimeError, StopIteration)


def read_minari(dataset: Path | str) -> Demonstrations:
    """Read a Minari dataset: each observation with the action taken in it.

    The last observation of an episode has no action and is left out. Actions must be discrete; they are names where
    `write_minari` has kept them. Observations that have parts are flattened in Gymnasium's order.

    Parameters
    ----------
    dataset : Path or str
        Folder of a dataset, or the name of one that Minari has stored, such as "D4RL/door/human-v2".
    """
    rows = MinariRows(dataset)
    episodes = list(rows.read_episodes())
    return Demonstrations(*(np.concatenate(parts) for parts in zip(*episodes, strict=True)))


class MinariRows:
    """Rows of a Minari dataset, episode by episode; columns are called x0, x1, ..., labels `actions` and `episode`."""

    is_positional: bool = True
    default_action: str | None = ACTIONS
    default_groups: str | None = EPISODE

    def __init__(self, dataset: Path | str):
        self.dataset = dataset
        self.storage = open_minari(dataset)
        from gymnasium import spaces

        if not isinstance(self.storage.action_space, spaces.Discrete):
            raise ArgumentError("path", f"the actions of {dataset} are not discrete: {self.storage.action_space}.")
        space = self.storage.observation_space
        self.shape: tuple[int, ...] | None = (
            space.shape if isinstance(space, spaces.Box) and len(space.shape) > 1 else None
        )
        self.names = [f"x{column}" for column in range(count_columns(dataset, space))]

    def check_label(self, name: str, argument: str) -> None:
        check_name(self.dataset, name, (ACTIONS, EPISODE), argument)

    def blocks(self, observed: Sequence[str], labels: Sequence[str] = (), advice: str = "") -> Iterator[Block]:
        """Observed columns in the given order, one block an episode."""
        import pandas

        places = {name: place for place, name in enumerate(self.names)}
        columns = [places[name] for name in observed]
        n_before = 0
        for episode in self.read_episodes():
            values = episode.observations[:, columns]
            check_finite(self.dataset, values, observed, partial(say_row, n_before))
            n_before += len(values)
            columns_of = {ACTIONS: episode.actions, EPISODE: episode.episode}
            yield Block(values, {name: pandas.Series(columns_of[name]) for name in labels})

    def read_episodes(self) -> Iterator[Demonstrations]:
        """Each observation with the action taken in it; the last one has none."""
        n_episodes = self.storage.total_episodes
        if not n_episodes:
            raise ArgumentError("path", f"{self.dataset} has no episodes.")
        episodes = iter(self.storage.get_episodes(range(n_episodes)))
        for number in range(n_episodes):
            with undamaged(self.dataset):
                content = next(episodes)
                taken = np.asarray(content["actions"])
                seen = flatten(self.dataset, self.storage.observation_space, content["observations"])
            if taken.ndim != 1 or len(seen) != len(taken) + 1:
                raise ArgumentError(
                    "path", f"episode {number} of {self.dataset} has {len(seen)} observations and {len(taken)} actions;"
                    " there must be one observation more.",
                )  # fmt: skip
            yield Demonstrations(seen[:-1], self.name_actions(taken.astype(int)), np.full(len(taken), number))

    def name_actions(self, numbers: np.ndarray) -> np.ndarray:
        """The names that `write_minari` has kept, if any."""
        names = self.storage.metadata.get("action_names")
        if names is None:
            return numbers
        places = numbers - int(self.storage.action_space.start)
        if len(places) and not 0 <= places.min() <= places.max() < len(names):
            raise ArgumentError("path", f"{self.dataset} has actions without a name.")
        return np.array(names, dtype=str)[places]


def open_minari(dataset: Path | str) -> Any:
    """The dataset's storage, without ever making its environment."""
    need_minari()
    from minari.dataset.minari_storage import MinariStorage
    from minari.storage.datasets_root_dir import get_dataset_path

    folder = Path(dataset) if Path(dataset).is_dir() else get_dataset_path(str(dataset))
    folder = folder / "data" if (folder / "data").is_dir() else folder
    path = folder / "metadata.json"
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArgumentError("path", f"there is no Minari dataset {dataset}: no file {path}.") from None
    except (OSError, ValueError):
        raise ArgumentError("path", f"{path} is not the metadata of a Minari dataset.") from None
    if not isinstance(metadata, dict) or metadata.get("data_format") != "hdf5":
        raise ArgumentError("path", f"{dataset} is not a Minari dataset in the format hdf5.")
    if not all(isinstance(metadata.get(name), str) for name in ("observation_space", "action_space")):
        raise ArgumentError(
            "path", f"{path} does not say what the observations and actions are; to find out, the environment that "
            "it names would have to be run, which is not done.",
        )  # fmt: skip
    with undamaged(dataset):
        return MinariStorage.read(folder)


@contextmanager
def undamaged(dataset: Path | str) -> Iterator[None]:
    """Say in one sentence that a dataset is not what its metadata say."""
    try:
        yield
    except ArgumentError:
        raise
    except DAMAGED as error:
        reason = str(error).split("\n")[0]
        raise ArgumentError("path", f"{dataset} is a damaged Minari dataset: {reason}.") from None


def count_columns(dataset: Path | str, space: Any) -> int:
    """Length of a flattened observation."""
    from gymnasium import spaces

    with undamaged(dataset):
        return int(spaces.utils.flatdim(space))


def flatten(dataset: Path | str, space: Any, values: Any) -> np.ndarray:
    """Observations of an episode as rows of numbers, in the order of `gymnasium.spaces.utils.flatten`."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return np.hstack([flatten(dataset, part, values[name]) for name, part in space.spaces.items()])
    if isinstance(space, spaces.Tuple):
        return np.hstack([flatten(dataset, part, value) for part, value in zip(space.spaces, values, strict=True)])
    if isinstance(space, spaces.Discrete):
        return (np.asarray(values)[:, None] == space.start + np.arange(space.n)).astype(float)
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        values = np.asarray(values)
        return values.reshape(len(values), -1).astype(float)
    raise ArgumentError("path", f"observations of {dataset} cannot be made rows of numbers: {space}.")


def write_minari(dataset_id: str, observations, actions, episode, description: str = "Demonstrations") -> None:
    """Write demonstrations as a Minari dataset, into the folder where Minari keeps its own.

    Episodes are numbered anew, 0, 1, ... in the order in which they come. Minari wants one more observation than
    actions; what was seen after the last action is not known here, so the last observation stands there twice.

    Parameters
    ----------
    dataset_id : str
        Such as "traffic/idm-v0"; it must not exist yet.
    observations : array-like (N, D)
    actions : array-like (N,)
        Names, or whole numbers from 0 on.
    episode : array-like (N,)
        Rows of an episode must follow each other.
    description : str
    """
    need_minari()
    import minari
    from gymnasium import spaces
    from minari.data_collector.episode_buffer import EpisodeBuffer

    arrays = {"observations": np.asarray(observations), "actions": np.asarray(actions), "episode": np.asarray(episode)}
    check_arrays("the demonstrations", arrays, "observations")
    names, numbers = None, arrays["actions"]
    if numbers.dtype.kind == "U":
        names, numbers = np.unique(numbers, return_inverse=True)
    elif numbers.min() < 0:
        raise ArgumentError("actions", "actions must be names, or whole numbers from 0 on.")
    seen = arrays["observations"].astype(float)
    starts = np.flatnonzero(np.r_[True, np.diff(arrays["episode"]) != 0])
    if len(starts) != len(np.unique(arrays["episode"])):
        raise ArgumentError("episode", "rows of an episode must follow each other.")
    buffers = []
    for rows in np.split(np.arange(len(numbers)), starts[1:]):
        zeros = [False] * (len(rows) - 1)
        buffers.append(EpisodeBuffer(
            observations=list(seen[[*rows, rows[-1]]]), actions=numbers[rows].astype(np.int64).tolist(),
            rewards=[0.0] * len(rows), terminations=[*zeros, False], truncations=[*zeros, True],
        ))  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there is no author, no environment, ...
        try:
            written = minari.create_dataset_from_buffers(
                dataset_id, buffers, description=description, algorithm_name="whyact",
                observation_space=spaces.Box(-np.inf, np.inf, seen.shape[1:], np.float64),
                action_space=spaces.Discrete(int(numbers.max()) + 1),
            )  # fmt: skip
        except ValueError as error:
            raise ArgumentError("dataset_id", f"{dataset_id} cannot be written: {error}") from None
    if names is not None:
        written.storage.update_metadata({"action_names": names.tolist()})


def need_minari() -> None:
    try:
        import minari  # noqa: F401
    except ImportError:
        raise ImportError("Minari datasets need minari: install whyact[driving].") from None
