"""Rows of Minari datasets, read and written. minari is an extra (`pip install whyact[driving]`).

Nothing that is read can run code or reach another file: `minari_folder.py` reads `metadata.json` and the HDF5 file by
itself.
"""

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from whyact.errors import ArgumentError
from whyact.tables.minari_folder import MinariFolder
from whyact.tables.recording import ACTIONS, EPISODE, OBSERVATIONS, Recording, check_arrays
from whyact.tables.source import Block, check_finite, check_held, check_name, say_row


def read_minari(dataset: Path | str) -> Recording:
    """Read a Minari dataset: each observation with the action taken in it.

    The last observation of an episode has no action and is left out. Actions must be discrete; they are names if
    `write_minari` stored names. Observations that have parts are flattened in Gymnasium's order.

    Parameters
    ----------
    dataset : Path or str
        Folder of a dataset, or the name of one that Minari has stored, such as "D4RL/door/human-v2".

    Returns
    -------
    Recording
        Episodes are numbered from 0.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest import mock
    >>> from whyact.tables import read_minari, write_minari
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     mock.patch.dict(os.environ, MINARI_DATASETS_PATH=folder),  # instead of ~/.minari
    ... ):
    ...     write_minari("drives/short-v0", [[0.1, 0.9], [0.8, 0.2]], ["keep", "brake"], episode=[7, 8])
    ...     recording = read_minari("drives/short-v0")
    >>> recording.actions.tolist(), recording.episode.tolist()
    (['keep', 'brake'], [0, 1])
    """
    rows = MinariRows(dataset)
    episodes = []
    n_bytes = 0
    for episode in rows.read_episodes():
        episodes.append(episode)
        n_bytes += sum(part.nbytes for part in episode)
        check_held(dataset, n_bytes, rows.size)
    return Recording(*(np.concatenate(parts) for parts in zip(*episodes, strict=True)))


class MinariRows:
    """Rows of a Minari dataset, episode by episode. Columns are called x0, x1, ..., labels `actions` and `episode`."""

    is_positional: bool = True
    default_action: str | None = ACTIONS
    default_groups: str | None = EPISODE

    def __init__(self, dataset: Path | str) -> None:
        self.dataset = dataset
        self.folder = open_minari(dataset)
        self.size = self.folder.size
        actions, space = self.folder.action_space, self.folder.observation_space
        if actions.kind != "Discrete":
            raise ArgumentError("path", f"the actions of {dataset} are not discrete: {actions.kind}.")
        self.shape: tuple[int, ...] | None = space.shape if space.kind == "Box" and len(space.shape) > 1 else None
        self.names = [f"x{column}" for column in range(space.width)]

    def check_label(self, name: str, argument: str) -> None:
        """Check that the name is one of the two labels."""
        check_name(self.dataset, name, (ACTIONS, EPISODE), argument)

    def blocks(self, observed: Sequence[str], labels: Sequence[str] = (), advice: str = "") -> Iterator[Block]:
        """Read observed columns in the given order, one block per episode."""
        import pandas

        places = {name: place for place, name in enumerate(self.names)}
        columns = [places[name] for name in observed]
        n_before = 0
        for episode in self.read_episodes():
            values = episode.observations[:, columns]
            check_finite(self.dataset, values, observed, partial(say_row, n_before))
            n_before += len(values)
            columns_of = {ACTIONS: episode.actions, EPISODE: episode.episode}
            found = {name: pandas.Series(columns_of[name]) for name in labels}
            yield Block(values, found, episode.actions.nbytes)

    def read_episodes(self) -> Iterator[Recording]:
        """Read each observation with the action taken in it; the last one of an episode has none."""
        if not self.folder.n_episodes:
            raise ArgumentError("path", f"{self.dataset} has no episodes.")
        for number, (seen, taken) in enumerate(self.folder.read_episodes()):
            if taken.ndim != 1 or len(seen) != len(taken) + 1:
                raise ArgumentError(
                    "path", f"episode {number} of {self.dataset} has {len(seen)} observations and {len(taken)} actions;"
                    " there must be one more observation than actions.",
                )  # fmt: skip
            yield Recording(seen[:-1], self.name_actions(taken.astype(int)), np.full(len(taken), number))

    def name_actions(self, numbers: np.ndarray) -> np.ndarray:
        """Turn numbers into the names that `write_minari` stored, if any."""
        names, space = self.folder.action_names, self.folder.action_space
        places = numbers - space.start
        if len(places) and not 0 <= places.min() <= places.max() < (space.n if names is None else len(names)):
            raise ArgumentError("path", f"{self.dataset} has actions that it does not name.")
        if names is None:
            return numbers
        check_held(self.dataset, len(places) * names.itemsize, self.size)
        return names[places]


def open_minari(dataset: Path | str) -> MinariFolder:
    """Open a dataset, without ever making its environment."""
    need_minari()
    from minari.storage.datasets_root_dir import get_dataset_path

    folder = Path(dataset) if Path(dataset).is_dir() else get_dataset_path(str(dataset))
    return MinariFolder(dataset, folder / "data" if (folder / "data").is_dir() else folder)


def write_minari(
    dataset_id: str,
    observations: ArrayLike,
    actions: ArrayLike,
    episode: ArrayLike,
    description: str = "Demonstrations",
) -> None:
    """Write demonstrations as a Minari dataset, into the folder where Minari keeps its datasets.

    Episodes are renumbered 0, 1, ... in the order of the rows. Minari wants one more observation than actions. What was
    seen after the last action is not known here, so the last observation is written twice.

    Parameters
    ----------
    dataset_id : str
        Name of the dataset, such as "traffic/idm-v0"; it must not exist yet.
    observations : array-like of shape (N, D)
        What the teacher saw.
    actions : array-like of shape (N,)
        What the teacher did: names, or whole numbers from 0.
    episode : array-like of shape (N,)
        Episode of each row; rows of an episode must be consecutive.
    description : str, default="Demonstrations"
        Text for the dataset's metadata.

    See Also
    --------
    read_minari : Read a dataset back, with an example.

    Examples
    --------
    >>> import os, tempfile
    >>> from unittest import mock
    >>> from whyact.tables import write_minari
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     mock.patch.dict(os.environ, MINARI_DATASETS_PATH=folder),  # instead of ~/.minari
    ... ):
    ...     write_minari("drives/short-v0", [[0.1, 0.9], [0.8, 0.2]], ["keep", "brake"], episode=[0, 0])
    ...     print(os.listdir(folder))
    ['drives']
    """
    need_minari()
    arrays = Recording(np.asarray(observations), np.asarray(actions), np.asarray(episode))._asdict()
    check_arrays("the demonstrations", arrays, OBSERVATIONS)
    names, numbers = None, arrays[ACTIONS]
    if numbers.dtype.kind == "U":
        names, numbers = np.unique(numbers, return_inverse=True)
    elif numbers.min() < 0:
        raise ArgumentError("actions", "actions must be names, or whole numbers from 0.")
    written = store_episodes(dataset_id, arrays[OBSERVATIONS].astype(float), numbers, arrays[EPISODE], description)
    if names is not None:
        written.storage.update_metadata({"action_names": names.tolist()})


def store_episodes(
    dataset_id: str, observations: np.ndarray, numbers: np.ndarray, episode: np.ndarray, description: str
) -> Any:
    """Let Minari create the dataset; actions are numbers."""
    import minari
    from gymnasium import spaces

    buffers = [fill_buffer(observations[rows], numbers[rows]) for rows in split_episodes(episode)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there is no author, no environment, ...
        try:
            return minari.create_dataset_from_buffers(
                dataset_id, buffers, description=description, algorithm_name="whyact",
                observation_space=spaces.Box(-np.inf, np.inf, observations.shape[1:], np.float64),
                action_space=spaces.Discrete(int(numbers.max()) + 1),
            )  # fmt: skip
        except ValueError as error:
            raise ArgumentError("dataset_id", f"{dataset_id} cannot be written: {error}") from None


def split_episodes(episode: np.ndarray) -> list[np.ndarray]:
    """Numbers of the rows of each episode."""
    starts = np.flatnonzero(np.r_[True, np.diff(episode) != 0])
    if len(starts) != len(np.unique(episode)):
        raise ArgumentError("episode", "rows of an episode must be consecutive.")
    return np.split(np.arange(len(episode)), starts[1:])


def fill_buffer(observations: np.ndarray, numbers: np.ndarray) -> Any:
    """Put an episode into Minari's form; it ends because the recording does."""
    from minari.data_collector.episode_buffer import EpisodeBuffer

    n_steps = len(numbers)
    return EpisodeBuffer(
        observations=[*observations, observations[-1]], actions=numbers.astype(np.int64).tolist(),
        rewards=[0.0] * n_steps, terminations=[False] * n_steps, truncations=[*[False] * (n_steps - 1), True],
    )  # fmt: skip


def need_minari() -> None:
    """Say what to install if minari is missing."""
    try:
        import minari  # noqa: F401
    except ImportError:
        raise ImportError("Minari datasets need minari: install whyact[driving].") from None
