"""Which features matter for the decisions: the fewest with which predictions are nearly the same as with all.

What a model knows about the actions is how far its predictions for the demonstrations are from their mean, in nats: the
mean divergence of each from it. Features are left out one by one, always the one whose loss is least, and the policies
of those that stay are fitted to the predictions of all (a projection, as in Piironen & Vehtari, 2017). The fewest that
lose at most a twentieth of what is known are the ones that matter.
"""

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
RIDGE = 1e-4  # keeps the log odds of a projection finite, per row


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
        """What is lost with these features (indices), if those of a product fit their policies to all predictions."""
        if not self.is_product:
            return find_divergence(reference, self.combine(np.isin(np.arange(len(self.votes)), kept)))
        columns = np.column_stack([np.ones(len(self.amounts)), self.amounts[:, kept]])
        shape = (columns.shape[1], self.votes.shape[1])
        n_rows = len(columns)

        def lose(flat: np.ndarray) -> tuple[float, np.ndarray]:
            log_odds = flat.reshape(shape)
            logs = self._normalise(columns @ log_odds)
            loss = -np.sum(reference * np.where(reference > 0, logs, 0.0)) / n_rows
            slope = columns.T @ (np.exp(logs) - reference) / n_rows
            return loss + 0.5 * RIDGE * flat @ flat / n_rows, (slope + RIDGE * log_odds / n_rows).ravel()

        start = np.vstack([self.base + (self.amounts.mean(axis=0) @ self.votes), self.votes[kept]])
        start[0] -= self.amounts[:, kept].mean(axis=0) @ self.votes[kept]
        found = minimize(lose, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
        return find_divergence(reference, np.exp(self._normalise(columns @ found.x.reshape(shape))))

    def _normalise(self, tallies: np.ndarray) -> np.ndarray:
        return log_softmax(restrict_log_odds(tallies, self.available), axis=1)


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
