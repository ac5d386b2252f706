"""Runs that survive: a folder from which a stopped run continues, with the draws it would have had.

`state.nc` holds the state of each chain and of its random numbers, and how many files of draws count. Draws are written
once, in parts: first the new part, then `state.nc`, each file whole or not at all. Whenever a run is killed, all the
files that `state.nc` refers to exist; a part that it does not refer to is written again.
"""

import errno
import logging
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from whyact.errors import CheckpointError, DamagedFileError, LockedError
from whyact.sampler.algorithm import Problem
from whyact.sampler.draws import ChainDraws, Progress, make_rng
from whyact.storage.atomic import HIDDEN
from whyact.storage.codec import (
    SCHEMA,
    decode_draws,
    decode_ends,
    decode_entropy,
    describe_file,
    encode_draws,
    encode_end,
)
from whyact.storage.door import Frame, demand, frame_problem
from whyact.storage.folder import find_inode
from whyact.storage.lock import lock_file
from whyact.storage.netcdf import Group, read_netcdf, write_netcdf
from whyact.version import __version__

logger = logging.getLogger("whyact")

STATE_FILE = "state.nc"
RUN_FILE = "run.nc"  # what is to be fitted, if it was started from the command line
LOCK_FILE = "lock"
PART_FILE = "draws-{:05d}.nc"
# A checkpoint waits until the run has taken this many times as long as all checkpoints took to write: 2% at most.
LEAST_SHARE_OF_RUNNING = 50
# What a full disk raises, and too little memory: HDF5 says the latter in words of its own.
NOT_WRITTEN = (OSError, MemoryError, RuntimeError)


class Checkpoints:
    """The checkpoints of one run.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    every : float
        Seconds between two checkpoints, at least; see LEAST_SHARE_OF_RUNNING.
    identity : str
        Of the run, by `sampler.run.identify`.
    """

    def __init__(self, folder: Path, every: float, identity: str):
        self.folder = Path(folder)
        self.every = every
        self.identity = identity
        self.n_parts = 0
        self.n_kept: list[int] = []  # draws of each chain that are in the parts
        self.began = self.last_written = time.monotonic()
        self.spent = self.last_cost = 0.0  # seconds for all checkpoints, and for the last one
        self.is_failing = False
        self.latest: tuple[Progress, list[int]] | None = None  # as last reported
        self.n_latest: list[int] = []  # draws of each chain at that time
        make_folder(self.folder)
        self._inode = find_inode(Path(os.path.realpath(self.folder)))
        try:
            self._lock = lock_file(self.folder / LOCK_FILE)
        except LockedError:
            raise CheckpointError(f"checkpoint: another process is running in {self.folder}.") from None
        for path in self.folder.glob(f"{HIDDEN}*"):  # left behind by a write that was killed
            with suppress(OSError):  # a disk that cannot be written to is met, and said, at the first checkpoint
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let other processes use the folder."""
        self._lock.release()

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, problem: Problem) -> tuple[list[int], Progress] | None:
        """What the run started from and how far it was; None if nothing is written yet."""
        path = self.folder / STATE_FILE
        if not path.exists():
            return None
        groups = read_file(path)
        about = groups["/"].attributes
        check_about(path, about)
        if about.get("identity") != self.identity:
            raise CheckpointError(
                f"checkpoint: {self.folder} holds a run on other data or with other options; choose another folder, or "
                "give the same data and options as before."
            )
        n_done, n_parts = about["n_done"], about["n_parts"]
        frame = frame_problem(problem)
        with naming(path):
            entropy = decode_entropy(about.get("entropy"))
            ends = decode_ends(groups, "chain-{}", frame)
        states, rngs = [state for state, _ in ends], [make_rng(rng_state) for _, rng_state in ends]
        draws = [ChainDraws(state, frame.n_levels) for state in states]
        for part in range(n_parts):
            self._read_part(part, draws, frame)
        self.n_parts = n_parts
        self.n_kept = [len(chain) for chain in draws]
        return entropy, Progress(n_done, n_done, states, rngs, draws)

    def _read_part(self, part: int, draws: list[ChainDraws], frame: Frame) -> None:
        path = self.folder / PART_FILE.format(part)
        groups = read_file(path)
        with naming(path):
            for i, chain in enumerate(draws):
                demand(f"chain-{i}" in groups, "it does not match the run")
                chain.extend_by_arrays(decode_draws(groups[f"chain-{i}"], frame))

    # --- writing --------------------------------------------------------------------------------------------

    def keep(self, progress: Progress, entropy: list[int]) -> None:
        """Write a checkpoint if it is time to. If that fails, say so and let the run continue."""
        # a copy of the random numbers' states, since an interrupted segment has already advanced them
        rngs = [make_rng(rng.bit_generator.state) for rng in progress.rngs]
        self.latest = progress._replace(states=list(progress.states), rngs=rngs), entropy
        self.n_latest = [len(chain) for chain in progress.chains]
        now = time.monotonic()
        is_affordable = now - self.began >= LEAST_SHARE_OF_RUNNING * (self.spent + self.last_cost)
        if now - self.last_written >= self.every and is_affordable:
            self.write(progress, entropy)

    def write_latest(self) -> None:
        """Write the last reported progress, unless the run was stopped while it took in new draws."""
        if self.latest is not None and [len(chain) for chain in self.latest[0].chains] == self.n_latest:
            self.write(*self.latest)

    def write(self, progress: Progress, entropy: list[int]) -> None:
        """Write a checkpoint; if that fails, the last one stays."""
        started = time.monotonic()
        try:
            self._write(progress, entropy)
            self.is_failing = False
        except NOT_WRITTEN as error:
            if not self.is_failing:
                reason = getattr(error, "strerror", None) or str(error) or "there is not enough memory"
                logger.warning(
                    "checkpoint: %s cannot be written (%s); the run continues, and will try again.", self.folder, reason
                )
            self.is_failing = True
        self.last_written = time.monotonic()
        self.last_cost = self.last_written - started
        self.spent += self.last_cost

    def _write(self, progress: Progress, entropy: list[int]) -> None:
        if find_inode(Path(os.path.realpath(self.folder))) != self._inode:  # nothing of ours goes into another one
            raise FileNotFoundError(errno.ENOENT, "the folder was moved, or another one has taken its place")
        n_kept = self.n_kept or [0] * len(progress.chains)
        n_parts = self.n_parts
        if any(len(chain) > n for chain, n in zip(progress.chains, n_kept, strict=True)):
            parts = {
                f"chain-{i}": encode_draws(chain, n)
                for i, (chain, n) in enumerate(zip(progress.chains, n_kept, strict=True))
            }
            parts["/"] = Group({}, describe_file("draws"))
            write_netcdf(self.folder / PART_FILE.format(n_parts), parts, compress=False)  # which would take most time
            n_parts += 1
        about = describe_file("checkpoint") | {
            "identity": self.identity,
            "entropy": np.array(entropy, dtype=np.int64),
            "n_done": progress.n_done,
            "n_parts": n_parts,
        }
        ends = {
            f"chain-{i}": encode_end(state, rng.bit_generator.state)
            for i, (state, rng) in enumerate(zip(progress.states, progress.rngs, strict=True))
        }
        write_netcdf(self.folder / STATE_FILE, {"/": Group({}, about), **ends}, compress=False)
        self.n_parts, self.n_kept = n_parts, [len(chain) for chain in progress.chains]


@contextmanager
def open_checkpoints(folder: Path | str | None, every: float, identity: str) -> Iterator[Checkpoints | None]:
    """Yield the checkpoints in a folder, or None if there is none.

    On Ctrl-C, or for lack of memory, write where the run is before it ends.

    Parameters
    ----------
    folder : path or None
    every : float
        Seconds between two checkpoints.
    identity : str
        Of the run, by `sampler.run.identify`.
    """
    if folder is None:
        yield None
        return
    if not isinstance(every, int | float) or not every >= 0:
        raise ValueError(f"checkpoint_every must be a number of seconds, got {every!r}.")
    checkpoints = Checkpoints(Path(folder), float(every), identity)
    try:
        yield checkpoints
    except (KeyboardInterrupt, BrokenExecutor, MemoryError):
        # who stops a whole group of processes may end one that runs a chain before this one hears of it
        checkpoints.write_latest()
        raise
    finally:
        checkpoints.close()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say which file is not in order."""
    try:
        yield
    except DamagedFileError as error:
        raise CheckpointError(f"checkpoint: {path} is not a whyact checkpoint: {error}.") from None


def read_file(path: Path) -> dict[str, Group]:
    """The content of one of a run's files."""
    try:
        with naming(path):
            return read_netcdf(path)
    except OSError as error:
        raise CheckpointError(f"checkpoint: {path} cannot be read: {error.strerror}.") from None


def check_about(path: Path, about: dict[str, Any]) -> None:
    """The file must be a checkpoint, and of this version."""
    are_counts = all(isinstance(about.get(name), int) and about[name] >= 0 for name in ("n_done", "n_parts"))
    if about.get("title") != "whyact checkpoint" or not are_counts or about.get("whyact_schema") != SCHEMA:
        raise CheckpointError(f"checkpoint: {path} is not a whyact checkpoint.")
    if about.get("whyact_version") != __version__:
        # another version may draw other numbers, and a run is of one piece
        raise CheckpointError(
            f"checkpoint: {path} is from a run that whyact {about.get('whyact_version')} started; continue with that "
            f"version (this is {__version__}), or start over in another folder."
        )


def make_folder(folder: Path) -> None:
    """Create the folder, or check that it is one of ours."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = [path.name for path in folder.iterdir() if not is_ours(path)]
    except OSError as error:
        raise CheckpointError(f"checkpoint: the folder {folder} cannot be used: {error.strerror}.") from None
    if strange:
        raise CheckpointError(f"checkpoint: the folder {folder} holds other files ({sorted(strange)[0]}).")


def is_ours(path: Path) -> bool:
    """Whether a file belongs to a run, or is what a killed write leaves behind."""
    return path.is_file() and not path.is_symlink() and is_our_name(path.name)


def is_our_name(name: str) -> bool:
    """Whether a run gives this name to a file."""
    is_known = name in (LOCK_FILE, STATE_FILE, RUN_FILE) or re.fullmatch(r"draws-\d{5,}\.nc", name)
    return bool(is_known or name.startswith(HIDDEN))
