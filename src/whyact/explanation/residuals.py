"""Whether what the features leave unexplained looks like noise, as the model says it is.

Under the model the residual is white: its columns are uncorrelated, and so are neighbouring rows. Real data leave
structure. The effective number of dimensions of the residual is (sum of l)^2 / sum of l^2 over the eigenvalues l of the
correlation matrix of its columns: D for uncorrelated ones, one if all are the same. With N rows of white noise it is
about D / (1 + (D - 1) / N).
"""

from typing import Any, NamedTuple

import numpy as np

LEAST_DIMENSIONS = 0.7  # share of what white noise has; below this the columns of the residual belong together
LARGEST_CORRELATION = 0.2  # of neighbouring rows


class Residual(NamedTuple):
    """What is left of the observations."""

    n_dimensions: float  # effective number
    expected: float  # of white noise of the same size
    of_neighbours: float  # mean correlation of a row's residual with that of the next row

    @property
    def has_common_columns(self) -> bool:
        """Whether its columns belong together."""
        return self.n_dimensions < LEAST_DIMENSIONS * self.expected

    @property
    def looks_like_noise(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.has_common_columns and self.of_neighbours <= LARGEST_CORRELATION


def examine_residual(model: Any) -> Residual | None:
    """Compare the residual of the chosen draw, with all of its features, with white noise.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.

    Returns
    -------
    Residual or None
        None if there is too little of it to tell.

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> from whyact.explanation.residuals import examine_residual
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
    >>> examine_residual(model.fit(demo.X[:80], demo.y[:80])).looks_like_noise
    True
    """
    state = model.posterior_.state(*model.posterior_.best_draw())
    residual = model.observations_ - state.substates.T @ state.features
    residual = residual - np.nanmean(residual, axis=0)
    spread = np.sqrt(np.nanmean(np.square(residual), axis=0))
    used = spread > 1e-9 * max(float(spread.max()), np.finfo(float).tiny)
    n_rows, n_columns = len(residual), int(used.sum())
    if n_rows < 10 or n_columns < 2:
        return None
    whitened = np.nan_to_num(residual[:, used] / spread[used])  # a gap says nothing
    # the sum of squares of the correlation matrix, by the smaller one of the two Gram matrices
    gram = whitened @ whitened.T if n_rows < n_columns else whitened.T @ whitened
    trace = float(np.sum(np.square(whitened)))
    n_dimensions = trace**2 / float(np.sum(np.square(gram)))
    neighbours = float(np.sum(whitened[1:] * whitened[:-1])) / trace
    return Residual(n_dimensions, n_columns / (1 + (n_columns - 1) / n_rows), neighbours)


def say_residual(found: Residual | None) -> str:
    """In one sentence; nothing if there is too little to tell."""
    if found is None:
        return ""
    if found.looks_like_noise:
        return "What the features leave unexplained looks like noise."
    told = []
    if found.has_common_columns:
        told.append(f"it has {found.n_dimensions:.0f} effective dimensions, noise would have {found.expected:.0f}")
    if found.of_neighbours > LARGEST_CORRELATION:
        told.append(f"neighbouring rows correlate by {found.of_neighbours:.2f}")
    return (
        f"What the features leave unexplained is not only noise ({'; '.join(told)}): there may be more structure than "
        "these features tell."
    )
