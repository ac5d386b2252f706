"""How observations are brought to the sampler's unit, and back: a value that is made once, at fit.

It has two steps. Columns may be brought to the range from 0 to 1, for columns of different units; what comes out is
what a fitted model keeps as `observations_`, and features and noise are given back in these terms. Then one centre is
taken off and all entries are divided by one unit, because the priors are not free of a unit.
"""

from dataclasses import dataclass, replace

import numpy as np

from whyact.model import Demonstrations, Priors, count_noisy, make_demonstrations

# Observations are brought to this root mean square before sampling. The priors of Table 1 expect a noise variance near
# 0.001, which at a root mean square of one is the opinion that the signal-to-noise ratio is 30 dB. At a quarter they
# leave 10 dB as plausible as 30 dB.
ROOT_MEAN_SQUARE = 0.25

# Columns are taken for quantities of different kinds if their ranges differ by more than these factors, the largest
# from the smallest, or the ninth decile from the first; if this share of the wide ones keeps away from zero; or if
# nearly all go far below it. Sums of positive features with noise do neither.
LARGEST_RATIO = 100.0
RATIO_OF_DECILES = 20.0
SHARE_ABOVE_ZERO = 0.2
SHARE_BELOW_ZERO = 0.8
FAR_FROM_ZERO = 0.4  # of the range
WIDE = 0.2  # of the ninth decile of the ranges
NEARLY_CENTRED = 0.25  # how far the middle may be from zero, in ranges
# So many columns are the cells of a picture or a scan, in which features do not grow from single cells, and zeros are
# nothing to be surprised at.
MANY_COLUMNS = 300
SHARE_ALIKE = 0.9  # of so many columns, that begin with the same value
SHARE_OF_REPEATS = 0.5  # of the values of a column
LEAST_RANGE_OF_COUNTS = 3  # fewer whole numbers are labels or indicators
# Real tables hold whole numbers, multiples and zeros, which features of their own could explain without any noise.
# With scaled columns the noise is therefore held at a tolerance, a share of a column's range, by a sharp prior. These
# are tried (`estimators/choose_by_trials.py`), or the usual one is taken where nothing can be tried.
TOLERANCES = (0.05, 0.1, 0.2)
USUAL_TOLERANCE = TOLERANCES[0]
SHARPNESS = 1e6  # the noise prior's shape: worth twice as many entries


@dataclass(frozen=True, eq=False)
class Scaling:
    """How observations are brought to the sampler's unit.

    Parameters
    ----------
    unit : float, default=1.0
        What all entries are divided by.
    center : float or ndarray (D,), default=0.0
        What is taken off the columns before that.
    column_low, column_range : ndarray (D,) or None, default=None
        The first step: what is taken off each column, and what it is then divided by. None: columns stay as they are.
    noise : float, default=0.0
        The standard deviation at which the noise is held, after the first step; 0: it is free, as in the paper.
    n_floor : int, default=0
        If above 0, the noise is not held there but has a floor: a prior worth so many entries that are all off by
        `noise`.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.scaling import Scaling
    >>> scaling = Scaling(unit=4.0, column_low=np.array([0.0, 10.0]), column_range=np.array([1.0, 20.0]))
    >>> scaled = scaling.scale_columns(np.array([[0.5, 20.0]]))
    >>> scaled
    array([[0.5, 0.5]])
    >>> scaling.to_sampler(scaled).observations
    array([[0.125, 0.125]])
    >>> scaling.unscale_columns(scaled)
    array([[ 0.5, 20. ]])
    """

    unit: float = 1.0
    center: float | np.ndarray = 0.0
    column_low: np.ndarray | None = None
    column_range: np.ndarray | None = None
    noise: float = 0.0
    n_floor: int = 0

    @property
    def holds_noise(self) -> bool:
        """Whether the noise is held, and not free or only kept above a floor."""
        return self.noise > 0 and not self.n_floor

    def with_noise(self, noise: float, tolerance: float | str | None, observations: np.ndarray) -> "Scaling":
        """The same with noise that is held, or that has a floor: by default for scans, which are not scaled.

        Chains that start from the same few rows all keep about the same number of features; where these explain less
        than the tolerance says, holding the noise would only make as many features as there are rows.
        """
        has_floor = noise > 0 and tolerance == "auto" and self.column_range is None
        return replace(self, noise=noise, n_floor=count_for_floor(observations) if has_floor else 0)

    def scale_columns(self, X: np.ndarray) -> np.ndarray:
        """Observations as they come, to what `observations_` holds."""
        return X if self.column_range is None else (X - self.column_low) / self.column_range

    def unscale_columns(self, observations: np.ndarray) -> np.ndarray:
        """The inverse of `scale_columns`."""
        return observations if self.column_range is None else observations * self.column_range + self.column_low

    def to_sampler(
        self, observations: np.ndarray, actions: np.ndarray | None = None, available: np.ndarray | None = None
    ) -> Demonstrations:
        """What `observations_` holds (NaN where missing), and indices of actions if known, as the sampler sees them.

        `available` (N, U) tells which actions there are in each row; None: all.
        """
        actions = np.full(len(observations), -1) if actions is None else actions
        return make_demonstrations(observations, actions, self.unit, self.center, available)

    def find_width(self, observations: np.ndarray) -> float:
        """What a tolerance is a share of, by observations after the first step; one where nothing varies.

        Where columns are scaled it is the range of the widest one, mostly one. Elsewhere it is the range of a typical
        column: of one that takes all values alike, and varies as much as columns do on average. The widest cell of a
        scan says nothing about the others, most of which are nearly always empty.
        """
        if self.column_range is not None:
            width = float(np.max(np.nanmax(observations, axis=0) - np.nanmin(observations, axis=0)))
        else:
            width = float(np.sqrt(12.0 * np.mean(np.nanvar(observations, axis=0))))
        return width if width > 0 else 1.0

    def range_of_columns(self, n_columns: int) -> np.ndarray:
        """The unit of `observations_` in that of X, column by column, (D,)."""
        return np.ones(n_columns) if self.column_range is None else self.column_range


def scale_by_range(X: np.ndarray) -> Scaling:
    """Bring each column to the range from 0 to 1; one that does not vary keeps its unit."""
    low = np.nanmin(X, axis=0)
    spread = np.nanmax(X, axis=0) - low
    return Scaling(column_low=low, column_range=np.where(spread > 0, spread, 1.0))


def looks_like_table(X: np.ndarray) -> bool:
    """Whether the columns look like those of a table, and not like one kind of signal."""
    if X.shape[1] >= MANY_COLUMNS:
        return holds_counts(X) or (columns_differ(X) and not begin_alike(X))
    return columns_differ(X) or holds_counts(X) or repeats_values(X)


def begin_alike(X: np.ndarray) -> bool:
    """Whether nearly all columns have the same smallest value, as cells of a scan have, some of which are seldom hit.

    Their ranges then differ because some cells see more than others, not because they are of different kinds.
    """
    _, counts = np.unique(np.nanmin(X, axis=0), return_counts=True)
    return bool(counts.max() >= SHARE_ALIKE * X.shape[1])


def holds_counts(X: np.ndarray) -> bool:
    """Whether all entries are whole numbers, and more than a few different ones.

    Features of their own could explain such columns without any noise, or all of them would be called noise.
    """
    observed = X[~np.isnan(X)]
    return bool(np.all(observed == np.rint(observed)) and np.ptp(observed) >= LEAST_RANGE_OF_COUNTS)


def repeats_values(X: np.ndarray) -> bool:
    """Whether in most columns most values occur more than once, and they are not all whole numbers.

    Rounded values and exact zeros do; signals with noise never do. The noise that explains such columns best is none.
    """
    observed = X[~np.isnan(X)]
    if np.all(observed == np.rint(observed)):  # counts, or labels and indicators
        return False
    shares = []
    for column in X.T:
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        if len(values) > 1:
            shares.append(counts[counts > 1].sum() / counts.sum())
    return bool(shares) and float(np.median(shares)) > SHARE_OF_REPEATS


def columns_differ(X: np.ndarray) -> bool:
    """Whether the columns look like quantities of different kinds."""
    low = np.nanmin(X, axis=0)
    spread = np.nanmax(X, axis=0) - low
    low, spread = low[spread > 0], spread[spread > 0]
    if not len(spread):
        return False
    first, ninth = np.quantile(spread, (0.1, 0.9))
    from_zero = (low / spread)[spread >= WIDE * ninth]
    # columns around zero may hold nothing but noise
    smallest = spread[np.abs(low / spread + 0.5) > NEARLY_CENTRED].min(initial=spread.max())
    return bool(
        spread.max() > LARGEST_RATIO * smallest
        or ninth > RATIO_OF_DECILES * first
        or np.mean(from_zero > FAR_FROM_ZERO) >= SHARE_ABOVE_ZERO
        or np.mean(from_zero < -FAR_FROM_ZERO) >= SHARE_BELOW_ZERO
    )


def find_least_tolerance(observations: np.ndarray, n_levels: int) -> float:
    """What the data can carry at least, of columns with a range of one: below it there is nothing to explain.

    Neither the grid of the substates nor rounded values say more than their step does. A value rounded to a step is off
    by the step over the root of 12; here this is that of a typical column. Columns with only two values are indicators,
    which are not rounded.
    """
    steps = []
    for column in observations.T:
        values = np.unique(column[~np.isnan(column)])
        if len(values) > 2:
            steps.append(np.diff(values).min() / (values[-1] - values[0]))
    rounding = float(np.median(steps)) / np.sqrt(12.0) if steps else 0.0
    return float(min(max(rounding, 1.0 / (n_levels - 1)), max(TOLERANCES)))


def hold_noise(priors: Priors, noise: float, n_floor: int = 0) -> Priors:
    """Priors under which the noise has this standard deviation, in the sampler's unit.

    With a floor that is worth as many entries as there are, the variance is that of `noise` and of the residual
    together.
    """
    if n_floor:
        squares = n_floor * noise**2
        return replace(priors, noise_shape=(SHARPNESS, SHARPNESS), noise_rate=(SHARPNESS, 2 * SHARPNESS / squares))
    sharper = 100 * SHARPNESS
    return replace(priors, noise_shape=(SHARPNESS, 1.0), noise_rate=(sharper, sharper / (SHARPNESS * noise**2)))


def count_for_floor(observations: np.ndarray) -> int:
    """How many entries a floor under the noise is worth: as many as tell how much noise there is."""
    missing = np.isnan(observations)
    return count_noisy(np.where(missing, 0.0, observations), missing)


def find_unit(X: np.ndarray, root_mean_square: float = ROOT_MEAN_SQUARE) -> float:
    """What to divide X by, so that it has this root mean square."""
    largest = float(np.nanmax(np.abs(X)))
    if largest == 0:
        return 1.0
    return largest * float(np.sqrt(np.nanmean(np.square(X / largest)))) / root_mean_square
