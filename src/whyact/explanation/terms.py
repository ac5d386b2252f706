"""How much each feature favours each action.

Of a mixture, in one draw, with substates s and policies phi, the probability of action u is

    p(u) = c q(u) + (1 - c) / U,   q(u) proportional to m(u)^tau,   m(u) = sum_k s_k phi_k(u),

c the familiarity of the row (Eq. (model::mixture) for c = tau = 1). Feature k's term is c q(u) s_k phi_k(u) / m(u), and
the rest, (1 - c) / U, belongs to what is unfamiliar. The terms add up to p(u), and so do their averages over draws,
once the features of each draw are matched to those of the chosen one.

Of a product, log p(u) = eta_0(u) + sum_k s_k eta_k(u) + constant, so here terms are log odds: feature k's term is
s_k eta_k(u), the base policy's eta_0(u), both centred over the actions. They add up to log p(u) minus its mean over the
actions. What a feature does to the probabilities follows from them: without it, p(u) would be proportional to the
exponential of the sum of the other terms.

If not all actions are available in a row, U, q and the centre are over those that are. The others have no probability,
and no log odds: their terms are 0 in a mixture, NaN in a product.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax

from whyact.model import restrict, sharpen
from whyact.prediction import Predictor

if TYPE_CHECKING:
    from whyact.sampler.new_rows import Rounds

PROBABILITY, LOG_ODDS = "probability", "log odds"  # what terms are


def find_terms(
    substates: np.ndarray,
    shares: np.ndarray,
    policies: np.ndarray,
    decisiveness: float,
    labels: np.ndarray,
    n_labels: int,
    available: np.ndarray | None = None,
) -> np.ndarray:
    """How much each feature favours each action in one draw of a mixture, (..., n_labels + 2, U).

    `substates` (..., K) and the familiar shares (...) of any rows; `labels` (K,) tell which feature of the chosen draw
    each one is, -1 for none. Rows without any feature come with a share of zero. `available` (..., U); None: all.
    """
    contributions = substates[..., None] * policies
    votes = contributions.sum(axis=-2)  # m(u)
    mixture = sharpen(restrict(votes, available), decisiveness)  # q(u)
    uniform = restrict(np.zeros(votes.shape), available)
    # q(u) / m(u): where nothing speaks for an action, no feature does
    per_vote = shares[..., None] * mixture / np.where(votes > 0, votes, np.inf)
    terms = np.zeros((*shares.shape, n_labels + 2, policies.shape[1]))
    for k, label in enumerate(labels):
        terms[..., label if label >= 0 else n_labels, :] += contributions[..., k, :] * per_vote
    terms[..., -1, :] = (1.0 - shares)[..., None] * uniform
    if available is not None:  # if nothing speaks for any available action, all of them are alike
        terms[..., -1, :] += np.where(votes > 0, 0.0, shares[..., None] * mixture)
    return terms


def find_log_odds(
    substates: np.ndarray,
    log_odds: np.ndarray,
    base: np.ndarray,
    labels: np.ndarray,
    n_labels: int,
    available: np.ndarray | None = None,
) -> np.ndarray:
    """How much each feature, and at last the base policy, favours each action in one draw of a product.

    As `find_terms`; `log_odds` (K, U) are those of the policies, `base` (U,) those of the base policy.
    """
    n_actions = len(base)
    terms = np.zeros((*substates.shape[:-1], n_labels + 2, n_actions))
    for k, label in enumerate(labels):
        terms[..., label if label >= 0 else n_labels, :] += substates[..., k, None] * log_odds[k]
    terms[..., -1, :] = base
    if available is None:
        return terms - terms.mean(axis=-1, keepdims=True)
    there = available[..., None, :]
    centre = np.where(there, terms, 0.0).sum(axis=-1, keepdims=True) / there.sum(axis=-1, keepdims=True)
    return np.where(there, terms - centre, np.nan)


def find_terms_of_draws(
    rounds: "Rounds", predictor: Predictor, n_labels: int, available: np.ndarray | None = None
) -> np.ndarray:
    """The terms in every draw and kept round, (N, draws x rounds, K + 2, U)."""
    draws, labels = predictor.many_draws, predictor.labels
    voices, splits = draws.voices, draws.splits
    there = None if available is None else available[:, None]
    terms = []
    for i in range(len(splits) - 1):
        of_draw = slice(splits[i], splits[i + 1])
        substates = rounds.substates[..., of_draw]
        if predictor.is_product:
            found = find_log_odds(substates, voices.log_odds[of_draw], voices.base[i], labels[of_draw], n_labels, there)
        else:
            found = find_terms(
                substates, rounds.shares[..., i], voices.policies[of_draw], voices.decisiveness[i], labels[of_draw],
                n_labels, there,
            )  # fmt: skip
        terms.append(found)
    return np.concatenate(terms, axis=1)


def find_log_probabilities(log_odds: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities that log odds (..., U) make; minus infinity where those are NaN."""
    return log_softmax(np.where(np.isnan(log_odds), -np.inf, log_odds), axis=-1)


def find_probabilities_without(terms: np.ndarray) -> np.ndarray:
    """The probabilities of a product without each source of its terms, (..., K + 2, U)."""
    return np.exp(find_log_probabilities(terms.sum(axis=-2, keepdims=True) - terms))
