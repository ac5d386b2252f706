"""Which features matter for the decisions: the fewest with which predictions are nearly the same as with all.

What a model knows about the actions is how far its predictions for the demonstrations are from their mean, in nats: the
mean divergence of each from it. Features are left out one by one, always the one whose loss is least, and the policies
of those that stay are fitted to the predictions of all (a projection, as in Piironen & Vehtari, 2017): the log odds of
a product, the votes of a mixture. The fewest that lose at most a twentieth of what is known are the ones that matter.
`docs/sampler.md` says what this cannot tell.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from whyact.cut_policies import spread_out
from whyact.explanation.voices import find_chosen_voices, is_product
from whyact.model import action_probabilities, restrict, restrict_log_odds

LARGEST_LOSS = 0.05  # of what is known about the actions
N_ROWS = 400  # demonstrations to judge by
SMALLEST = 1e-12  # probability
SMALLEST_VOTE = 1e-6
RIDGE = 1e-4  # keeps what a projection fits finite


class WhatMatters(NamedTuple):
    """The features that matter."""

    features: np.ndarray  # indices, those that matter most first
    known: float  # what all features tell about the actions, nats for each decision
    share: float  # of it that these features tell


def find_what_matters(model: Any) -> WhatMatters | None:
    """Find the fewest features that keep nearly all that a fitted model knows about the actions.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.

    Returns
    -------
    WhatMatters or None
        None if the model knows nothing about actions.

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> from whyact.explanation.matter import find_what_matters
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
    >>> matters = find_what_matters(model.fit(demo.X[:80], demo.y[:80]))
    >>> len(matters.features) <= model.n_components_, matters.share >= 0.95
    (True, True)
    """
    if not len(model.classes_) or not model.n_components_:
        return None
    rows = spread_out(len(model.observations_), N_ROWS)
    amounts = model._predictor.predict(model.observations_[rows], one_draw=True, maximise=True).substates
    available = None if model._result.available is None else model._result.available[rows]
    speakers = Speakers(model, amounts, available)
    everything = np.ones(model.n_components_, bool)
    reference = speakers.combine(everything)
    known = find_divergence(reference, restrict(np.broadcast_to(reference.mean(axis=0), reference.shape), available))
    if not known > 1e-6:
        return None
    order = leave_out(speakers, reference)  # the last one left comes first
    few, many = 0, len(order)
    while many - few > 1:  # the least number that is enough
        middle = (few + many) // 2
        loss = speakers.project(order[:middle], reference)
        few, many = (few, middle) if loss <= LARGEST_LOSS * known else (middle, many)
    return WhatMatters(order[:many], known, 1.0 - max(speakers.project(order[:many], reference), 0.0) / known)


class Speakers:
    """What features say together, all of them or some."""

    def __init__(self, model: Any, amounts: np.ndarray, available: np.ndarray | None):
        self.amounts, self.available = amounts, available
        self.is_product = is_product(model)
        chosen = model.posterior_.chosen_on_average
        if self.is_product:
            self.votes, self.base = find_chosen_voices(chosen, model._result.cut)
        else:
            self.votes, self.decisiveness = model.posterior_.find_votes(chosen), chosen.decisiveness

    def combine(self, kept: np.ndarray) -> np.ndarray:
        """Probabilities (N, U) with these features (K,) alone: of a product the others are at their means."""
        if not self.is_product:
            return action_probabilities(self.amounts[:, kept].T, self.votes[kept], self.decisiveness, self.available)
        amounts = np.where(kept, self.amounts, self.amounts.mean(axis=0))
        return np.exp(self._normalise(self.base + amounts @ self.votes))

    def project(self, kept: np.ndarray, reference: np.ndarray) -> float:
        """What is lost with these features (indices), if their policies are fitted to the predictions of all."""
        fit = self._fit_log_odds if self.is_product else self._fit_votes
        return find_divergence(reference, fit(kept, reference))

    def _fit_log_odds(self, kept: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Probabilities (N, U) of a product whose log odds, and those of its base, are fitted to a reference."""
        columns = np.column_stack([np.ones(len(self.amounts)), self.amounts[:, kept]])
        start = np.vstack([self.base + (self.amounts.mean(axis=0) @ self.votes), self.votes[kept]])
        start[0] -= self.amounts[:, kept].mean(axis=0) @ self.votes[kept]

        def find_slope(log_odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            logs = self._normalise(columns @ log_odds)
            return logs, columns.T @ (np.exp(logs) - reference)

        return minimise_divergence(find_slope, start, np.zeros_like(start), reference)

    def _fit_votes(self, kept: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Probabilities (N, U) of a mixture whose votes, which stay positive, are fitted to a reference.

        Where none of these features is present, a mixture says nothing, whatever its votes are.
        """
        amounts = self.amounts[:, kept]
        speaks = amounts.sum(axis=1, keepdims=True) > 0
        start = np.log(np.maximum(self.votes[kept], SMALLEST_VOTE))

        def find_slope(log_votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            votes = np.exp(log_votes)
            sums = np.where(speaks, amounts @ votes, 1.0)
            logs = self._normalise(self.decisiveness * np.log(sums))
            per_vote = np.where(speaks, self.decisiveness * (np.exp(logs) - reference) / sums, 0.0)
            return logs, votes * (amounts.T @ per_vote)

        return minimise_divergence(find_slope, start, start, reference)

    def _normalise(self, tallies: np.ndarray) -> np.ndarray:
        """Log probabilities (N, U)."""
        return log_softmax(restrict_log_odds(tallies, self.available), axis=1)


def minimise_divergence(
    find_slope: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    centre: np.ndarray,
    reference: np.ndarray,
) -> np.ndarray:
    """The probabilities (N, U) that are nearest to a reference, over the parameters that `find_slope` takes.

    For parameters of the shape of `start` it returns log probabilities, and the slope of the sum of divergences over
    rows. A weak pull to `centre` keeps the parameters finite.
    """
    n_rows = len(reference)

    def lose(flat: np.ndarray) -> tuple[float, np.ndarray]:
        logs, slope = find_slope(flat.reshape(start.shape))
        away = flat - centre.ravel()
        loss = -np.sum(reference * np.where(reference > 0, logs, 0.0)) / n_rows
        return loss + 0.5 * RIDGE * away @ away / n_rows, (slope.ravel() + RIDGE * away) / n_rows

    found = minimize(lose, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.exp(find_slope(found.x.reshape(start.shape))[0])


def leave_out(speakers: Speakers, reference: np.ndarray) -> np.ndarray:
    """Indices of all features, in the reverse of the order in which they are left out, least loss first."""
    kept = np.ones(len(speakers.votes), bool)
    left_out: list[int] = []
    while kept.any():
        candidates = np.flatnonzero(kept)
        losses = []
        for k in candidates:
            kept[k] = False
            losses.append(find_divergence(reference, speakers.combine(kept)))
            kept[k] = True
        worst = int(candidates[int(np.argmin(losses))])
        kept[worst] = False
        left_out.append(worst)
    return np.array(left_out[::-1], dtype=int)


def find_divergence(reference: np.ndarray, others: np.ndarray) -> float:
    """Mean over rows of the divergence of other probabilities (N, U) from those of reference, in nats."""
    ratio = np.log(np.maximum(reference, SMALLEST)) - np.log(np.maximum(others, SMALLEST))
    return float(np.sum(reference * ratio, axis=1).mean())
