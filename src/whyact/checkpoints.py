"""Runs that survive: a folder from which a stopped run goes on, with the draws it would have had.

`state.nc` holds the state and the random numbers' state of each chain, and how many files of draws count. Draws are
written once, in parts: first the new part, then `state.nc`, each file whole or not at all. Whenever a run is killed,
`state.nc` speaks of files that are there; a part that it does not speak of is written again.
"""

import hashlib
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyact.files import HIDDEN
from whyact.netcdf import DamagedFileError, Group, Variable, read_netcdf, write_netcdf
from whyact.posterior import N_ARRAYS, ChainDraws

if TYPE_CHECKING:
    from whyact.sampler.chain import Progress

logger = logging.getLogger("whyact")

SCHEMA = 1
STATE_FILE = "state.nc"
RUN_FILE = "run.nc"  # what is to be fitted, if it was begun from the command line
LOCK_FILE = "lock"
PART_FILE = "draws-{:05d}.nc"
N_ENTROPY = 5
# A checkpoint is put off until the run has taken so many times as long as all of them took to write: 2% at most.
LEAST_SHARE_OF_RUNNING = 50


class CheckpointError(ValueError):
    """A run cannot go on from this folder; the message is for the user."""


class Ends(NamedTuple):
    """Where a run ended: with its draws, all that is needed to go on."""

    identity: str  # of the run, by `identify`
    entropy: list[int]  # what its random numbers began with
    n_done: int  # sweeps of each chain
    states: list[Any]
    rng_states: list[Any]


def identify(problem, classes: np.ndarray, thin: int, n_burn_in: int, n_chains: int) -> str:
    """A digest of all that the draws depend on, but the random numbers and the number of draws."""
    digest = hashlib.sha256()
    algorithm = problem.algorithm
    parts = [algorithm.kernel, algorithm.start.__qualname__, getattr(algorithm.run, "keywords", {}), problem.unit]
    parts += [classes.tolist(), thin, n_burn_in, n_chains, *problem.target, problem.data.observations.shape]
    digest.update(repr(parts).encode())
    for values in (problem.data.observations, problem.data.actions, problem.data.row_splits, problem.data.row_gaps):
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


class Checkpoints:
    """The checkpoints of one run.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    every : float
        Seconds between two checkpoints, at least; see LEAST_SHARE_OF_RUNNING.
    identity : str
        Of the run, by `identify`.
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
        self.latest: tuple[Progress, list[int]] | None = None  # as it was when it was last told
        self.n_latest: list[int] = []  # draws of each chain at that time
        make_folder(self.folder)
        self._lock = lock_folder(self.folder)
        for path in self.folder.glob(f"{HIDDEN}*"):  # remains of a write that was killed
            path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()

    # --- reading --------------------------------------------------------------------------------------------

    def read(self, data, target, kind: type) -> "tuple[list[int], Progress] | None":
        """What the run began with and where it was; None if nothing was written yet. `kind` is that of its states."""
        from whyact.sampler.chain import Progress

        path = self.folder / STATE_FILE
        if not path.exists():
            return None
        groups = read_file(path)
        about = groups["/"].attributes
        check_about(path, about)
        if about.get("identity") != self.identity:
            raise CheckpointError(
                f"checkpoint: {self.folder} holds a run on other data or with other options; give another folder, or "
                "the same data and options as before."
            )
        n_done, n_parts = about["n_done"], about["n_parts"]
        try:
            entropy = decode_entropy(about["entropy"])
            widths = {"substates": len(data.observations), "features": data.observations.shape[1]}
            ends = decode_ends(groups, "chain-{}", kind, widths)
        except DamagedFileError as error:
            raise CheckpointError(f"checkpoint: {path} is not a checkpoint of whyact: {error}.") from None
        states, rngs = [state for state, _ in ends], [make_rng(rng_state) for _, rng_state in ends]
        draws = [ChainDraws(state, target.n_levels) for state in states]
        for part in range(n_parts):
            self._read_part(part, draws)
        self.n_parts = n_parts
        self.n_kept = [len(chain) for chain in draws]
        return entropy, Progress(n_done, n_done, states, rngs, draws)

    def _read_part(self, part: int, draws: list[ChainDraws]) -> None:
        path = self.folder / PART_FILE.format(part)
        groups = read_file(path)
        try:
            for i, chain in enumerate(draws):
                chain.extend_by_arrays({name: found.values for name, found in groups[f"chain-{i}"].variables.items()})
        except (KeyError, ValueError):
            raise CheckpointError(f"checkpoint: {path} does not fit to the run.") from None

    # --- writing --------------------------------------------------------------------------------------------

    def keep(self, progress: "Progress", entropy: list[int]) -> None:
        """Write a checkpoint if it is time for one. If it cannot be written, say so and let the run go on."""
        # a copy of the random numbers' states, since an interrupted segment has gone on with them
        rngs = [make_rng(rng.bit_generator.state) for rng in progress.rngs]
        self.latest = progress._replace(states=list(progress.states), rngs=rngs), entropy
        self.n_latest = [len(chain) for chain in progress.chains]
        now = time.monotonic()
        is_affordable = now - self.began >= LEAST_SHARE_OF_RUNNING * (self.spent + self.last_cost)
        if now - self.last_written >= self.every and is_affordable:
            self.write(progress, entropy)

    def write_latest(self) -> None:
        """Write where the run was when it was last told, unless it has been stopped while it took in new draws."""
        if self.latest is not None and [len(chain) for chain in self.latest[0].chains] == self.n_latest:
            self.write(*self.latest)

    def write(self, progress: "Progress", entropy: list[int]) -> None:
        """Write a checkpoint; if that fails, the last one stays."""
        started = time.monotonic()
        try:
            self._write(progress, entropy)
            self.is_failing = False
        except OSError as error:
            if not self.is_failing:
                logger.warning(
                    "checkpoint: %s cannot be written (%s); the run goes on, and tries again.",
                    self.folder, error.strerror or error,
                )  # fmt: skip
            self.is_failing = True
        self.last_written = time.monotonic()
        self.last_cost = self.last_written - started
        self.spent += self.last_cost

    def _write(self, progress: "Progress", entropy: list[int]) -> None:
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
def save_if_stopped(checkpoints: Checkpoints | None) -> Iterator[None]:
    """On Ctrl-C, write down where the run is before it ends."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoints is not None:
            checkpoints.write_latest()
        raise


def describe_file(what: str) -> dict[str, Any]:
    from whyact import __version__

    return {"title": f"whyact {what}", "whyact_schema": SCHEMA, "whyact_version": __version__}


def read_file(path: Path) -> dict[str, Group]:
    try:
        return read_netcdf(path)
    except DamagedFileError as error:
        raise CheckpointError(f"checkpoint: {path} is not a checkpoint of whyact: {error}.") from None
    except OSError as error:
        raise CheckpointError(f"checkpoint: {path} cannot be read: {error.strerror}.") from None


def check_about(path: Path, about: dict[str, Any]) -> None:
    from whyact import __version__

    are_counts = all(isinstance(about.get(name), int) and about[name] >= 0 for name in ("n_done", "n_parts"))
    if about.get("title") != "whyact checkpoint" or not are_counts or about.get("whyact_schema") != SCHEMA:
        raise CheckpointError(f"checkpoint: {path} is not a checkpoint of whyact.")
    if about.get("whyact_version") != __version__:
        # another version may draw other numbers, and a run is of one piece
        raise CheckpointError(
            f"checkpoint: {path} is of a run that whyact {about.get('whyact_version')} began; go on with that version "
            f"(this is {__version__}), or begin anew in another folder."
        )


def make_folder(folder: Path) -> None:
    """Make the folder, or see that it is one of ours."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = [path.name for path in folder.iterdir() if not is_ours(path)]
    except OSError as error:
        raise CheckpointError(f"checkpoint: the folder {folder} cannot be used: {error.strerror}.") from None
    if strange:
        raise CheckpointError(f"checkpoint: the folder {folder} holds other files ({sorted(strange)[0]}).")


def is_ours(path: Path) -> bool:
    """Whether a file belongs to a run, or is what a killed write leaves behind."""
    is_known = path.name in (LOCK_FILE, STATE_FILE, RUN_FILE) or re.fullmatch(r"draws-\d{5,}\.nc", path.name)
    return path.is_file() and not path.is_symlink() and bool(is_known or path.name.startswith(HIDDEN))


def lock_folder(folder: Path):
    """Keep other processes out as long as this one lives; a lock that no kill can leave behind."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return None
    lock = open(folder / LOCK_FILE, "w")  # noqa: SIM115 (open as long as the run)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise CheckpointError(f"checkpoint: another process is running in {folder}.") from None
    except OSError:  # a file system that knows no locks
        logger.warning("checkpoint: %s cannot be locked; take care that one process only runs in it.", folder)
    return lock


# --- chains as plain arrays ---------------------------------------------------------------------------------


def encode_draws(chain: ChainDraws, first: int) -> Group:
    """The draws of a chain from `first` on."""
    axes = {
        "features": ("feature", "column"),
        "policies": ("feature", "action"),
        "levels": ("feature", "row"),
        "sizes": ("draw",),
        "traces": ("draw", "quantity"),
    }
    return Group({name: Variable(axes[name], values) for name, values in chain.to_arrays(first).items()}, {})


def encode_end(state, rng_state) -> Group:
    """The last state of a chain, and that of its random numbers."""
    axes = (("feature", "row"), ("feature", "column"), ("feature", "action"))
    variables = {
        name: Variable(dimensions, getattr(state, name))
        for name, dimensions in zip(state._fields[:N_ARRAYS], axes, strict=True)
    }
    variables["scalars"] = Variable(("scalar",), np.array(state[N_ARRAYS:], dtype=float))
    variables["rng"] = Variable(("word",), encode_rng(rng_state))
    return Group(variables, {})


def decode_ends(groups: dict[str, Group], name: str, kind: type, widths: dict[str, int]) -> list[tuple[Any, dict]]:
    """State and random numbers of each chain; the groups are called after `name` and the chain's number."""
    found: list[tuple[Any, dict]] = []
    while name.format(len(found)) in groups:
        found.append(decode_end(groups[name.format(len(found))], kind, widths))
    return found


def decode_end(group: Group, kind: type, widths: dict[str, int]) -> tuple[Any, dict]:
    """A state of that kind and the state of its random numbers; `widths` are those of its arrays."""
    arrays = []
    for name in kind._fields[:N_ARRAYS]:  # type: ignore[attr-defined]
        values = take(group, name, 2, "f")
        if values.dtype != np.float64 or not np.isfinite(values).all():
            raise DamagedFileError(f"{name!r} is of another kind")
        if values.shape[1] != widths.get(name, values.shape[1]):
            raise DamagedFileError(f"{name!r} does not fit")
        arrays.append(values)
    scalars = take(group, "scalars", 1, "f")
    n_scalars = len(kind._fields) - N_ARRAYS  # type: ignore[attr-defined]
    are_legal = len(scalars) == n_scalars and np.isfinite(scalars).all() and (scalars > 0).all()
    if not are_legal or len({len(values) for values in arrays}) != 1 or not ((arrays[0] >= 0) & (arrays[0] <= 1)).all():
        raise DamagedFileError("the last states of its chains do not fit")
    return kind(*arrays, *scalars.tolist()), decode_rng(take(group, "rng", 1, "u"))


def decode_entropy(numbers: Any) -> list[int]:
    """What the random numbers of a run began with."""
    if not isinstance(numbers, np.ndarray) or numbers.shape != (N_ENTROPY,) or numbers.dtype.kind != "i":
        raise DamagedFileError("'entropy' is wrong")
    if not ((numbers >= 0) & (numbers < 2**31)).all():
        raise DamagedFileError("'entropy' is wrong")
    return numbers.tolist()


def take(group: Group, name: str, n_axes: int, dtype_kind: str) -> np.ndarray:
    """A variable's values, if they have this number of axes and this kind of type."""
    if name not in group.variables:
        raise DamagedFileError(f"{name!r} is missing")
    values = group.variables[name].values
    if values.ndim != n_axes or values.dtype.kind not in dtype_kind:
        raise DamagedFileError(f"{name!r} is of another kind")
    return values


def encode_rng(state) -> np.ndarray:
    """PCG64's two numbers of 128 bits and its buffered half word."""
    numbers = state["state"]["state"], state["state"]["inc"]
    words = [word for number in numbers for word in (number >> 64, number & (2**64 - 1))]
    return np.array([*words, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def decode_rng(words: np.ndarray) -> dict:
    if len(words) != 6 or words[4] > 1 or words[5] >= 2**32 or not int(words[3]) % 2:
        raise DamagedFileError("the state of the random numbers does not fit")
    high, low, inc_high, inc_low, has_uint32, uinteger = (int(word) for word in words)
    return {
        "bit_generator": "PCG64",
        "state": {"state": (high << 64) + low, "inc": (inc_high << 64) + inc_low},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def make_rng(state) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)
