"""How much of a feature counts as much as how much of another.

A substate is a share of a feature's full size, and the prior leaves that size to the demonstrations: it ends near the
largest amount that any of them holds. A feature that was never seen alone then looks smaller than it is, and in the
mixture of policies it speaks too loudly. Where the features of a row are parts of a whole, as in the paper's design,
the rows themselves tell the sizes: with the right strengths g,

    sum_k g_k s_nk = 1  in every row n,

so g is the non-negative least-squares solution, and the mixture is sum_k g_k s_nk phi_k(u). Whether rows are such
wholes is judged by how well actions are predicted (`cut_decisiveness.py`).
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

# How firmly strengths are held at one: as a row that holds this share of every feature, each by itself, would.
FIRMNESS = 0.05
# No feature falls silent, and none drowns all others.
RANGE = (0.1, 10.0)


def find_strengths(substates: np.ndarray) -> np.ndarray:
    """What a full feature counts for, so that all that a row holds adds up to about one.

    Parameters
    ----------
    substates : ndarray (K, N)
        Of all rows.

    Returns
    -------
    ndarray (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.strengths import find_strengths
    >>> shares = np.array([[0.5, 0.1, 0.3], [0.5, 0.9, 0.7]])
    >>> find_strengths(np.repeat(shares / [[0.5], [0.9]], 40, axis=1)).round(2)
    array([0.5, 0.9])
    """
    if not len(substates):
        return np.ones(0)
    # the same solution by K x K numbers: |R g - R^-T b| with R'R = S S' + firmness, b = S 1 + firmness
    gram = substates @ substates.T
    gram.flat[:: len(gram) + 1] += FIRMNESS
    root = cholesky(gram)
    wanted = solve_triangular(root, substates.sum(axis=1) + FIRMNESS, trans="T")
    return np.clip(nnls(root, wanted)[0], *RANGE)
