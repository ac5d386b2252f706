"""Settings of the published algorithm, apart from its kernels: importing them does not import numba."""

from typing import NamedTuple


class AsPublished(NamedTuple):
    """Settings of the published algorithm; the defaults are those of Table 1 of the paper.

    Give it as `FeaturePolicyClassifier(sampler=AsPublished(...))`.

    Parameters
    ----------
    birth_probability : float, default=0.01
        P+: how often a single new feature is proposed, whatever the prior says. At least 0 and below 1.
    merge_correlation : float, default=0.9
        T_corr: features whose entries correlate by more than this are merged. From -1 to 1.
    n_indicators : int, default=1000
        N_t: indicators drawn for each action and pooled.

    Examples
    --------
    >>> from whyact import AsPublished, FeaturePolicyClassifier
    >>> FeaturePolicyClassifier(sampler=AsPublished(merge_correlation=0.95)).sampler.n_indicators
    1000
    """

    birth_probability: float = 0.01
    merge_correlation: float = 0.9
    n_indicators: int = 1000
