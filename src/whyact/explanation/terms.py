"""How much each feature favours each action.

In one draw, with substates s and policies phi, the probability of action u is

    p(u) = c q(u) + (1 - c) / U,   q(u) proportional to m(u)^tau,   m(u) = sum_k s_k phi_k(u),

c the familiarity of the row (Eq. (model::mixture) for c = tau = 1). Feature k's term is c q(u) s_k phi_k(u) / m(u), and
the rest, (1 - c) / U, belongs to what is unfamiliar. The terms add up to p(u), and so do their averages over draws,
once the features of each draw are matched to those of the chosen one.
"""

from typing import TYPE_CHECKING

import numpy as np

from whyact.model import sharpen

if TYPE_CHECKING:
    from whyact.prediction import Predictor
    from whyact.sampler.new_rows import Rounds


def find_terms(
    substates: np.ndarray,
    shares: np.ndarray,
    policies: np.ndarray,
    decisiveness: float,
    labels: np.ndarray,
    n_labels: int,
) -> np.ndarray:
    """How much each feature favours each action in one draw, (..., n_labels + 2, U).

    `substates` (..., K) and the familiar shares (...) of any rows; `labels` (K,) tell which feature of the chosen draw
    each one is, -1 for none. Rows without any feature come with a share of zero.
    """
    n_actions = policies.shape[1]
    contributions = substates[..., None] * policies
    votes = contributions.sum(axis=-2)  # m(u)
    total = votes.sum(axis=-1, keepdims=True)
    mixture = sharpen(np.where(total > 0, votes / np.where(total > 0, total, 1.0), 1.0 / n_actions), decisiveness)
    # q(u) / m(u): where nothing speaks for an action, no feature does
    per_vote = shares[..., None] * mixture / np.where(votes > 0, votes, np.inf)
    terms = np.zeros((*shares.shape, n_labels + 2, n_actions))
    for k, label in enumerate(labels):
        terms[..., label if label >= 0 else n_labels, :] += contributions[..., k, :] * per_vote
    terms[..., -1, :] = ((1.0 - shares) / n_actions)[..., None]
    return terms


def find_terms_of_draws(rounds: "Rounds", predictor: "Predictor", n_labels: int) -> np.ndarray:
    """The terms in every draw and kept round, (N, draws x rounds, K + 2, U)."""
    draws = predictor.many_draws
    splits = draws.splits
    terms = [
        find_terms(
            rounds.substates[..., splits[i] : splits[i + 1]],
            rounds.shares[..., i],
            draws.voices.policies[splits[i] : splits[i + 1]],
            draws.voices.decisiveness,
            predictor.labels[splits[i] : splits[i + 1]],
            n_labels,
        )
        for i in range(len(splits) - 1)
    ]
    return np.concatenate(terms, axis=1)
