"""Prediction of actions for new observations (Sec. 4.3).

MMSE averages the policy over draws of everything and over the substates of the new row. MAP takes one chosen draw and
the most probable substates. Every row is predicted by itself with the same random numbers, so that the answer does
not depend on which other rows are asked for.
"""

from functools import cached_property
from typing import NamedTuple

import joblib
import numpy as np
from scipy.stats import chi2

from whyact.model import State, Target
from whyact.posterior import Posterior

N_WARM = 6
N_KEPT = 4
N_KEPT_OF_ONE_DRAW = 60
# A residual above this quantile of what noise can do is not noise.
NOISE_QUANTILE = 0.999


class Prediction(NamedTuple):
    """What is said about new rows."""

    probabilities: np.ndarray  # (N, U)
    substates: np.ndarray  # mean substates of the chosen draw, (N, K); without one (N, 0)
    familiarity: np.ndarray  # share of each observation that the features explain, noise aside, (N,)


def spread_over_chains(posterior: Posterior, max_draws: int) -> list:
    """At most so many draws, evenly spread over the chains, and at least one of each; in the sampler's unit."""
    per_chain = max(1, min(posterior.n_draws, max_draws // posterior.n_chains))
    picks = np.unique(np.linspace(0, posterior.n_draws - 1, per_chain).round().astype(int))
    return [chain.state(int(draw)) for chain in posterior.chains for draw in picks]


class Predictor:
    """Predict from a posterior.

    Parameters
    ----------
    posterior : Posterior
    target : Target
        The distribution that was sampled.
    max_draws : int
        MMSE takes at most so many draws, spread evenly over the chains, and at least one a chain.
    seed : int
        Of the random numbers that every row is predicted with.
    """

    def __init__(self, posterior: Posterior, target: Target, max_draws: int, seed: int):
        self.posterior = posterior
        self.target = target
        self.max_draws = max_draws
        self.seed = seed

    def flatten(self, states: list[State]):
        """Put the draws below each other, with what the kernels need of each."""
        from whyact.sampler.new_rows import FlatDraws

        sizes = [len(state.features) for state in states]
        n_rows = states[0].substates.shape[1]
        n_zero = np.concatenate([(state.substates == 0).sum(axis=1) for state in states])
        alpha_zero, alpha_nonzero = self.target.sparsity_zero, self.target.sparsity_nonzero
        return FlatDraws(
            features=np.concatenate([state.features for state in states]),
            zero_priors=(n_zero + alpha_zero) / (n_rows + alpha_zero + alpha_nonzero),
            splits=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            grams=np.concatenate([(state.features @ state.features.T).ravel() for state in states]),
            gram_splits=np.concatenate([[0], np.cumsum(np.square(sizes))]).astype(np.int64),
            noise_variances=np.array([state.noise_variance for state in states]),
            scales=np.array([self.target.observation_weight / state.noise_variance for state in states]),
            voices=self.find_voices(states),
        )

    def find_voices(self, states: list[State]):
        """What the substates of each draw say about the action."""
        from whyact.sampler.new_rows import MixtureVoices

        return MixtureVoices(np.concatenate([state.policies for state in states]), self.target.decisiveness)

    @property
    def predict_row(self):
        """The kernel that understands these voices."""
        from whyact.sampler.new_rows import predict_row_by_mixture

        return predict_row_by_mixture

    @cached_property
    def _many_draws(self):
        return self.flatten(spread_over_chains(self.posterior, self.max_draws))

    @cached_property
    def _best_draw(self):
        return self.flatten([self.posterior.chosen_state()])

    def log_density(self, observations: np.ndarray) -> np.ndarray:
        """Log density of each row, its substates summed out, averaged over the draws (an estimate, see `weigh_row`).

        Rows (NaN where missing) in the unit of the observations; densities in the sampler's.
        """
        from scipy.special import logsumexp
        from threadpoolctl import threadpool_limits

        from whyact.sampler.interrupts import interrupts_between_kernels
        from whyact.sampler.new_rows import weigh_row

        draws = self._many_draws
        observations, missing = self._scale(observations)
        log_weights = np.empty((len(observations), len(draws.splits) - 1))
        with threadpool_limits(limits=1, user_api="blas"), interrupts_between_kernels() as deliver_interrupt:
            for row, gaps, filled in zip(observations, missing, log_weights, strict=True):
                rng = np.random.Generator(np.random.PCG64(self.seed))
                weigh_row(rng, row, np.nonzero(gaps)[0], self.target.n_levels, draws, filled)
                deliver_interrupt()
        return logsumexp(log_weights, axis=1) - np.log(log_weights.shape[1])

    def _scale(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Observations in the sampler's unit, zero where missing, and where that is."""
        missing = np.isnan(observations)
        return np.where(missing, 0.0, observations / self.posterior.unit), missing

    def predict(
        self, observations: np.ndarray, *, one_draw: bool, maximise: bool, n_jobs: int | None = None
    ) -> Prediction:
        """Predict rows (NaN where missing), given in the unit of the observations."""
        from threadpoolctl import threadpool_limits

        from whyact.sampler.interrupts import interrupts_between_kernels

        draws = self._best_draw if one_draw else self._many_draws
        predict_row = self.predict_row
        observations, missing = self._scale(observations)
        limits = chi2.ppf(NOISE_QUANTILE, np.maximum((~missing).sum(axis=1), 1))
        n_kept = 0 if maximise else N_KEPT_OF_ONE_DRAW if one_draw else N_KEPT
        n_warm = 0 if maximise else N_WARM
        result = Prediction(
            np.zeros((len(observations), self.target.n_actions)),
            np.zeros((len(observations), len(draws.features) if one_draw else 0)),
            np.zeros(len(observations)),
        )

        def predict_rows(rows):
            scratch = np.empty(len(draws.features))
            with interrupts_between_kernels() as deliver_interrupt:
                for n in rows:
                    rng = np.random.Generator(np.random.PCG64(self.seed))
                    result.familiarity[n] = predict_row(
                        rng, observations[n], np.nonzero(missing[n])[0], self.target.n_levels, n_warm, n_kept,
                        limits[n], draws, result.probabilities[n], result.substates[n] if one_draw else scratch,
                    )  # fmt: skip
                    deliver_interrupt()

        with threadpool_limits(limits=1, user_api="blas"):
            n_threads = joblib.effective_n_jobs(n_jobs)
            if n_threads == 1 or len(observations) < 2:
                predict_rows(range(len(observations)))
            else:
                parts = np.array_split(np.arange(len(observations)), min(4 * n_threads, len(observations)))
                joblib.Parallel(n_jobs=n_threads, prefer="threads")(
                    joblib.delayed(predict_rows)(rows) for rows in parts
                )
        return result
