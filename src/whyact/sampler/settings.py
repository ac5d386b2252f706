"""Settings of the paper's own algorithm, apart from its kernels, so that they can be named without compiling."""

from typing import NamedTuple


class AsPublished(NamedTuple):
    """What Table 1 of the paper sets for the algorithm, beside the priors."""

    birth_probability: float = 0.01  # P+: how often a single new feature is proposed, whatever the prior says
    merge_correlation: float = 0.9  # T_corr: features that correlate more are merged
    n_indicators: int = 1000  # N_t: indicators drawn for each action and pooled
