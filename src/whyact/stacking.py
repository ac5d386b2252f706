"""Weights of chains by how well each of them predicts actions (stacking; Yao, Vehtari & Gelman, 2022).

Where chains do not mix, the number that ended in a mode says where they started, not how probable the mode is. Chains
can still be combined by what each one predicts. The weights w, which add up to one, maximise

    sum_n log sum_c w_c p_c(u_n)  +  a sum_c log w_c,

where p_c(u_n) is the probability that chain c gave the action of demonstration n without having learned from it
(`cut_policies.hold_out`). The policies of a mixture have learned from all of them, so its chains keep equal weights:
the one with the most features would look best. The second term is a Dirichlet(1 + a) prior that pulls towards equal
weights: each chain is credited with `PSEUDO_COUNT` demonstrations before any is looked at. Unless these weights surely
predict better than equal ones, weights are equal: chains that differ by chance should not be told apart.
"""

import numpy as np

PSEUDO_COUNT = 1.0  # a, demonstrations for each chain
SURELY = 2.0  # standard errors by which weights must predict better than equal ones
LEFT_OUT = 0.01  # a chain with a weight above this predicts with one draw at least
SMALLEST = 1e-300  # probability
# The iteration stops where no weights can gain more than this, in nats of all rows together.
PRECISION = 1e-4
MAX_STEPS = 100_000
ROUNDING = 1e-9


def find_chain_weights(probabilities: np.ndarray, pseudo_count: float = PSEUDO_COUNT) -> np.ndarray:
    """Find the weights with which the average over chains best predicts.

    By expectation maximisation: a chain's new weight is its share of the responsibility for the actions, with the
    pseudo-counts of the prior added. The objective is concave, so the largest slope bounds what is left to gain.

    Parameters
    ----------
    probabilities : ndarray (N, chains)
        Of the actions taken, by each chain.
    pseudo_count : float
        Demonstrations that each chain is credited with before any is looked at.

    Returns
    -------
    ndarray (chains,)
        Exactly equal where no chain predicts better than another.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.stacking import find_chain_weights
    >>> probabilities = np.tile([0.5, 0.5, 0.1], (500, 1))
    >>> find_chain_weights(probabilities).round(2)
    array([0.5, 0.5, 0. ])
    """
    n_rows, n_chains = probabilities.shape
    weights = np.full(n_chains, 1.0 / n_chains)
    probabilities = np.maximum(probabilities, SMALLEST)
    if not n_rows or np.all(probabilities == probabilities[:, :1]):
        return weights
    total = n_rows + n_chains * pseudo_count
    for _ in range(MAX_STEPS):
        slopes = (probabilities / (probabilities @ weights)[:, None]).sum(axis=0) + pseudo_count / weights
        if slopes.max() - total < PRECISION:  # weights @ slopes is the total, whatever the weights are
            break
        weights = weights * slopes / total
    return weights / weights.sum()


def weigh_chains(
    probabilities: np.ndarray,
    chains: np.ndarray,
    n_chains: int,
    pseudo_count: float = PSEUDO_COUNT,
    surely: float = SURELY,
) -> np.ndarray:
    """Find the weights of chains by draws of each of them; equal ones unless they surely predict worse.

    Parameters
    ----------
    probabilities : ndarray (draws, N)
        Of the actions taken, by each draw.
    chains : ndarray (draws,)
        The chain of each draw; every chain has one.
    n_chains : int
    pseudo_count : float
        As for `find_chain_weights`.
    surely : float
        How many standard errors are sure.

    Returns
    -------
    ndarray (chains,)
    """
    of_chains = [probabilities[chains == chain].mean(axis=0) for chain in range(n_chains)]
    by_chain = np.stack(of_chains, axis=1)
    weights = find_chain_weights(by_chain, pseudo_count)
    equal = np.full(n_chains, 1.0 / n_chains)
    return weights if is_better(by_chain, weights, equal, surely) else equal


def is_better(probabilities: np.ndarray, weights: np.ndarray, others: np.ndarray, surely: float) -> bool:
    """Whether the mean log score of some weights is above that of others by this many standard errors."""
    if len(probabilities) < 2:  # too few to tell
        return False
    scores = (np.log(np.maximum(probabilities @ one, SMALLEST)) for one in (weights, others))
    gains = np.subtract(*scores)
    return bool(gains.mean() > surely * gains.std(ddof=1) / np.sqrt(len(gains)))


def share_out(weights: np.ndarray, n_draws: int, max_draws: int) -> np.ndarray:
    """How many draws to take of each chain, in proportion to its weight (largest remainder).

    Parameters
    ----------
    weights : ndarray (chains,)
    n_draws : int
        Of each chain. Where the heaviest chain has too few of them, fewer are taken of the others.
    max_draws : int
        Of all chains, but at least as many as there are chains.

    Returns
    -------
    ndarray (chains,) of int
        At least one for each chain that has a weight above `LEFT_OUT`.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.stacking import share_out
    >>> share_out(np.array([0.6, 0.38, 0.02, 0.0]), n_draws=300, max_draws=20).tolist()
    [12, 7, 1, 0]
    """
    n_chains = len(weights)
    least = (weights > LEFT_OUT).astype(int)
    total = n_chains * max(1, min(n_draws, max_draws // n_chains))
    total = max(min(total, int(n_draws / weights.max() + ROUNDING)), least.sum())
    wanted = total * weights
    counts = np.maximum(np.floor(wanted).astype(int), least)
    while counts.sum() < total:
        counts[np.argmax(wanted - counts)] += 1
    while counts.sum() > total:
        counts[np.argmin(np.where(counts > least, wanted - counts, np.inf))] -= 1
    return counts
