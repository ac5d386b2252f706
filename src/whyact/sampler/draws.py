"""The kept draws of a chain, stored flat: features of all draws below each other, row splits to tell them apart."""

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

# What is traced of every model, before the single numbers of its state.
TRACES = ("n_features", "n_active", "log_joint", "log_action_likelihood")


N_ARRAYS = 3  # a state begins with substates, features and policies
VECTORS = ("base_policy",)  # what a state holds once for all features; empty if the model has none


def name_scalars(kind: type) -> tuple[str, ...]:
    """Names of the single numbers of a kind of state."""
    return tuple(name for name in kind._fields[N_ARRAYS:] if name not in VECTORS)  # type: ignore[attr-defined]


class GrowingRows:
    """Rows appended to one block of memory that grows in place, so that no second copy is ever needed."""

    def __init__(self, width: int, dtype: DTypeLike):
        self._block = np.empty((0, width), dtype)
        self.n_rows = 0

    def append(self, rows: np.ndarray, spare: int = 0) -> None:
        """Append rows; with `spare`, make room for some more if there is none."""
        needed = self.n_rows + len(rows)
        if needed > len(self._block):
            self._block.resize((needed + spare, self._block.shape[1]), refcheck=False)
        self._block[self.n_rows : needed] = rows
        self.n_rows = needed

    @property
    def values(self) -> np.ndarray:
        """The rows."""
        return self._block[: self.n_rows]


class ChainDraws:
    """The kept draws of one chain.

    Attributes
    ----------
    features, policies : arrays (sum of K, D) and (sum of K, U)
    levels : array (sum of K, N)
        Substates as whole levels of the grid; divide by L - 1.
    row_splits : array (n_draws + 1,)
        Draw i holds the rows row_splits[i] to row_splits[i + 1].
    vectors : dict
        Arrays (n_draws, U) of what the state holds once for all features: the base policy of a product, or nothing.
    traces : dict
        One number per draw for each name of TRACES, and for each single number of the state.
    """

    def __init__(self, example: Any, n_levels: int):
        """Begin without a draw. `example` is a state: of which kind, and how wide."""
        self.n_levels = n_levels
        self.kind = type(example)
        self.scalars = name_scalars(self.kind)
        widths = {name: len(getattr(example, name, ())) for name in VECTORS}
        self._vectors = {name: GrowingRows(width, np.float64) for name, width in widths.items() if width}
        self._features = GrowingRows(example.features.shape[1], np.float64)
        self._policies = GrowingRows(example.policies.shape[1], np.float64)
        self._levels = GrowingRows(example.substates.shape[1], np.min_scalar_type(n_levels - 1))
        self._splits = [0]
        self._traces: list[tuple[float, ...]] = []

    def __len__(self) -> int:
        return len(self._traces)

    def append(self, state: Any, log_joint: float, log_action_likelihood: float) -> None:
        """Keep a state."""
        spare = 8 + self._splits[-1] // 8
        self._features.append(state.features, spare)
        self._policies.append(state.policies, spare)
        self._levels.append(np.rint(state.substates * (self.n_levels - 1)).astype(self.levels.dtype), spare)
        self._splits.append(self._splits[-1] + len(state.features))
        n_active = int(np.count_nonzero(state.features))
        for name, rows in self._vectors.items():
            rows.append(getattr(state, name)[None], spare)
        scalars = (getattr(state, name) for name in self.scalars)
        self._traces.append((len(state.features), n_active, log_joint, log_action_likelihood, *scalars))

    def with_scalar(self, name: str, value: float) -> "ChainDraws":
        """The same draws, with another value of a single number of the state; arrays are shared."""
        place = self.trace_names.index(name)
        changed = copy.copy(self)
        changed._traces = [(*trace[:place], value, *trace[place + 1 :]) for trace in self._traces]
        return changed

    def extend(self, other: "ChainDraws") -> None:
        """Append the draws of a later segment of the same chain."""
        self.extend_by_arrays(other.to_arrays())

    def to_arrays(self, first: int = 0) -> dict[str, np.ndarray]:
        """The draws from `first` on as plain arrays, as `extend_by_arrays` wants them."""
        rows = slice(self._splits[first], None)
        return {
            "features": self.features[rows],
            "policies": self.policies[rows],
            "levels": self.levels[rows],
            "sizes": np.diff(self.row_splits[first:]),  # K of each draw
            "traces": self._table[first:],  # (draws, names of `traces`)
            **{name: rows[first:] for name, rows in self.vectors.items()},
        }

    def extend_by_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Append draws that were kept as plain arrays."""
        self._features.append(arrays["features"])
        self._policies.append(arrays["policies"])
        self._levels.append(arrays["levels"])
        self._splits.extend((self._splits[-1] + np.cumsum(arrays["sizes"])).tolist())
        self._traces.extend(map(tuple, arrays["traces"].tolist()))
        for name, rows in self._vectors.items():
            rows.append(arrays[name])

    @property
    def features(self) -> np.ndarray:
        """Features of all draws, (sum of K, D)."""
        return self._features.values

    @property
    def policies(self) -> np.ndarray:
        """Policies of all draws, (sum of K, U)."""
        return self._policies.values

    @property
    def levels(self) -> np.ndarray:
        """Substates of all draws as levels of the grid, (sum of K, N)."""
        return self._levels.values

    @property
    def vectors(self) -> dict[str, np.ndarray]:
        """What each draw holds once for all features, (n_draws, U), by name."""
        return {name: rows.values for name, rows in self._vectors.items()}

    @property
    def row_splits(self) -> np.ndarray:
        """Where each draw begins, (n_draws + 1,)."""
        return np.array(self._splits, dtype=np.int64)

    @property
    def trace_names(self) -> tuple[str, ...]:
        """Names of `traces`."""
        return (*TRACES, *self.scalars)

    @property
    def _table(self) -> np.ndarray:
        return np.array(self._traces, dtype=float).reshape(len(self), len(self.trace_names))

    @property
    def traces(self) -> dict[str, np.ndarray]:
        """One number per draw, by name."""
        return dict(zip(self.trace_names, self._table.T, strict=True))

    def state(self, draw: int) -> Any:
        """Return one draw as a state."""
        rows = slice(self._splits[draw], self._splits[draw + 1])
        scalars = dict(zip(self.scalars, self._traces[draw][len(TRACES) :], strict=True))
        vectors = {name: values[draw] for name, values in self.vectors.items()}
        substates = self.levels[rows] / (self.n_levels - 1)
        return self.kind(substates, self.features[rows], self.policies[rows], **scalars, **vectors)


def make_rng(state: Any) -> np.random.Generator:
    """A generator that continues from the state of another."""
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)


class Progress(NamedTuple):
    """How far the chains are: all that they need to continue."""

    n_done: int  # sweeps of each chain
    n_total: int
    states: list[Any]  # the present state of each chain
    rngs: list[np.random.Generator]
    chains: list[ChainDraws]  # the draws kept so far
    at_milestone: bool = False


class RunEnd(NamedTuple):
    """Where a run ended: together with its draws, all that is needed to draw more."""

    identity: str  # of the run, by `sampler.run.identify`
    entropy: list[int]  # what its random numbers started from
    n_done: int  # sweeps of each chain
    states: list[Any]
    rng_states: list[Any]
