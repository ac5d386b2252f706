"""The size of a feature, against that of its substates.

Only s_nk f_k is seen, so a feature and its substates change size together, against many Gibbs steps that each hold one
of them. Here the whole feature is multiplied by a factor c, log-normal around one, its column of substates summed out
and then drawn again. Given theta_k, with m active entries and R the evidence of the column (`births.refine_evidence`),

    log A = m log c + log p(c w) - log p(w) + log R(c f) - log R(f);

c^m is the Jacobian of the factor. Where the actions are no part of the evidence, what they say about the new column
and the old one is added. A step that is rejected leaves everything as it was.
"""

import math

import numpy as np

from whyact.sampler.births import Newcomer, draw_column, draw_sparsity, sum_contributions
from whyact.sampler.combining import find_votes, is_plain, log_gain_of_column, tally_rows
from whyact.sampler.compiling import kernel
from whyact.sampler.whole_features import sum_evidence

# Standard deviations of log c: small ones for features that many rows hold, large ones for those that few do.
SHORTEST, LONGEST = 0.02, 0.5


@kernel
def project_feature(k, substates, features, data):
    """f_k . r_n over what is observed of each row's residual r_n without feature k, and f_k . f_k, (N,) each."""
    feature = features[k].copy()
    projections = np.dot(data.observations, feature)
    gram = np.dot(features, feature)
    squares = np.full(len(projections), gram[k])
    for j in range(len(features)):
        if j != k and gram[j] != 0.0:
            for n in range(len(projections)):
                projections[n] -= substates[j, n] * gram[j]
    for n in range(len(projections)):
        for i in range(data.row_splits[n], data.row_splits[n + 1]):
            d = data.row_gaps[i]
            if feature[d] != 0.0:
                squares[n] -= feature[d] * feature[d]
                for j in range(len(features)):
                    if j != k:
                        projections[n] += substates[j, n] * features[j, d] * feature[d]
        if not squares[n] > 1e-14 * gram[k]:  # all that it has is missing there
            squares[n], projections[n] = 0.0, 0.0
    return projections, squares


@kernel
def log_jacobian(feature, factor):
    """Log of the Jacobian of multiplying a feature by a factor: c to the power of how many entries are active."""
    return np.sum(feature != 0.0) * math.log(factor)


@kernel
def log_weights(feature, weight_scale, positive):
    """Log density of the weights of a feature, up to what a factor does not change."""
    if positive:
        return -feature.sum() / weight_scale
    return -0.5 * np.sum(feature * feature) / weight_scale


@kernel
def draw_size(rng, substates, features, policies, scale, state, data, target):
    """Draw the size of one feature, together with its substates, in place."""
    if len(features) == 0:
        return
    k = int(rng.random() * len(features))
    n_rows = substates.shape[1]
    old = substates[k].copy()
    n_nonzero = np.sum(old > 0.0)
    zero_prior = draw_sparsity(rng, target.sparsity_zero + n_rows - n_nonzero, target.sparsity_nonzero + n_nonzero)
    step = SHORTEST * (LONGEST / SHORTEST) ** rng.random()
    factor = math.exp(step * rng.standard_normal())
    projections, squares = project_feature(k, substates, features, data)
    contributions, totals = np.zeros(n_rows), np.zeros(n_rows)
    if is_plain(data, target):
        sum_contributions(substates, policies, k, contributions, totals, data)
    policy = policies[k].copy()
    slopes, precisions = scale * projections, scale * squares
    before = Newcomer(zero_prior, policy, slopes, precisions, contributions, totals)
    after = Newcomer(zero_prior, policy, factor * slopes, factor * factor * precisions, contributions, totals)
    cells = np.empty(target.n_levels + 1)
    feature = factor * features[k]
    log_ratio = log_jacobian(feature, factor)
    log_ratio += log_weights(feature, state.weight_scale, target.positive)
    log_ratio -= log_weights(features[k], state.weight_scale, target.positive)
    log_ratio += sum_evidence(cells, after, data, target) - sum_evidence(cells, before, data, target)
    new = np.empty(n_rows)
    draw_column(rng, cells, new, after, data, target)
    if not is_plain(data, target):
        votes = find_votes(policies, state.base_policy, state.decisiveness, target)
        tallies = tally_rows(substates, k, votes)
        vote = votes.of_features[k].copy()
        log_ratio += log_gain_of_column(tallies, new, vote, votes, data, target)
        log_ratio -= log_gain_of_column(tallies, old, vote, votes, data, target)
    if -rng.standard_exponential() < log_ratio:
        features[k] = feature
        substates[k] = new
