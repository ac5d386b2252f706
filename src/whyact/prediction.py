"""Prediction of actions for new observations (Sec. 4.3).

MMSE averages the policy over draws of everything and over the substates of the new row. MAP takes one chosen draw and
the most probable substates. Every row is predicted by itself with the same random numbers, so that the answer does
not depend on which other rows are asked for.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, cached_property, partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
from scipy.special import logsumexp
from scipy.stats import chi2

from whyact.cut_decisiveness import Decisiveness, learn_decisiveness
from whyact.cut_policies import (
    N_DRAWS_FOR_SCALE,
    CutPolicies,
    HeldOut,
    hold_out_some,
    learn_cut_policies,
    spread_out,
)
from whyact.errors import DamagedFileError
from whyact.model import State, Target, center_log_odds
from whyact.posterior import DrawId, Posterior
from whyact.progress import N_LINES_IN_PASSING, open_bar
from whyact.stacking import share_out, weigh_chains
from whyact.strengths import find_strengths

if TYPE_CHECKING:
    from whyact.sampler.new_rows import FlatDraws, Rounds

PREDICTIONS = ("mmse", "map")
N_WARM = 6
N_KEPT = 4
N_KEPT_OF_ONE_DRAW = 60
# A residual above this quantile of what noise can do is not noise.
NOISE_QUANTILE = 0.999
# A row of which the features explain less, noise aside, is unlike the demonstrations.
FAMILIAR = 0.5
# This many rows go to a kernel at once if they need no random numbers: Ctrl-C waits for them.
BLOCK_SIZE = 1024
# Rows by which the predictions of single chains are compared.
N_ROWS_COMPARED = 200
SHARE_OF_OTHER = 0.25
# What voices hold for each feature; the rest they hold for each draw.
OF_FEATURES = ("policies", "log_odds")


class Prediction(NamedTuple):
    """Predictions for new rows."""

    probabilities: np.ndarray  # (N, U)
    substates: np.ndarray  # mean substates of the chosen draw, (N, K); without one (N, 0)
    # share of each observation that the features explain, noise aside, (N,); 0 if nothing is observed
    familiarity: np.ndarray


def pick_draws(posterior: Posterior, max_draws: int) -> list[DrawId]:
    """At most this many draws, of each chain in proportion to its weight, evenly spread; see `stacking.share_out`."""
    numbers = share_out(posterior.chain_weights, posterior.n_draws, max_draws)
    return [
        DrawId(chain, int(draw))
        for chain, number in enumerate(numbers)
        for draw in spread_out(posterior.n_draws, int(number))
    ]


def take_draws(draws: "FlatDraws", first: int, last: int) -> "FlatDraws":
    """Some consecutive draws of many."""
    rows = slice(draws.splits[first], draws.splits[last])
    entries = slice(draws.gram_splits[first], draws.gram_splits[last])
    which = slice(first, last)
    voices = draws.voices._make(
        values[rows] if name in OF_FEATURES else values[which] for name, values in draws.voices._asdict().items()
    )
    return draws._replace(
        features=draws.features[rows],
        zero_priors=draws.zero_priors[rows],
        splits=draws.splits[first : last + 1] - draws.splits[first],
        grams=draws.grams[entries],
        gram_splits=draws.gram_splits[first : last + 1] - draws.gram_splits[first],
        noise_variances=draws.noise_variances[which],
        scales=draws.scales[which],
        voices=voices,
    )


def spread_over_chains(posterior: Posterior, max_draws: int) -> list[Any]:
    """The draws that `pick_draws` names, in the sampler's unit."""
    return [posterior.chains[chain].state(draw) for chain, draw in pick_draws(posterior, max_draws)]


@cache
def find_thread_pools() -> Any:
    """The thread pools of all loaded libraries; looking for them takes longer than predicting a row."""
    import scipy.linalg.cython_blas  # noqa: F401  the BLAS of the kernels must be among them
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """A context in which BLAS starts no threads of its own, which would also make it round differently."""
    return find_thread_pools().limit(limits=1, user_api="blas")


class Predictor:
    """Predict from a posterior.

    Parameters
    ----------
    posterior : Posterior
    target : Target
        The distribution that was sampled.
    max_draws : int
        MMSE takes at most this many draws, of each chain in proportion to its weight (`pick_draws`).
    seed : int
        Of the random numbers that every row is predicted with.
    """

    climbs_at_random = False  # whether the kernel needs random numbers also for MAP
    is_product = False  # whether policies are multiplied, so that terms are log odds
    draws_substates = True  # whether MMSE averages over draws of a row's substates

    def __init__(self, posterior: Posterior, target: Target, max_draws: int, seed: int):
        self.posterior = posterior
        self.target = target
        self.max_draws = max_draws
        self.seed = seed

    def flatten(self, states: list[State]) -> "FlatDraws":
        """Put the draws below each other, with what the kernels need of each."""
        # numba is imported at the first prediction, not with the package
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

    def find_voices(self, states: list[State]) -> Any:
        """What the substates of each draw say about the action."""
        # numba is imported at the first prediction, not with the package
        from whyact.sampler.new_rows import MixtureVoices

        return MixtureVoices(
            np.concatenate([self.posterior.find_votes(state) for state in states]),
            np.array([state.decisiveness for state in states]),
        )

    @property
    def predict_rows(self) -> Callable[..., None]:
        """The kernel that understands these voices."""
        # numba is imported at the first prediction, not with the package
        from whyact.sampler.new_rows import predict_rows_by_mixture

        return predict_rows_by_mixture

    @cached_property
    def many_draws(self) -> "FlatDraws":
        """The draws that MMSE averages over."""
        return self.flatten(spread_over_chains(self.posterior, self.max_draws))

    @cached_property
    def chains_of_draws(self) -> np.ndarray:
        """The chain of each of `many_draws`, in order, (draws,)."""
        return np.array([pick.chain for pick in pick_draws(self.posterior, self.max_draws)])

    def split_by_chain(self) -> list["FlatDraws"]:
        """Those of `many_draws` that are of the same chain, for each chain that has weight."""
        borders = np.searchsorted(self.chains_of_draws, np.arange(self.posterior.n_chains + 1))
        return [
            take_draws(self.many_draws, first, last)
            for (first, last), is_asked in zip(pairwise(borders), self.posterior.counts, strict=True)
            if is_asked and first < last
        ]

    @cached_property
    def labels(self) -> np.ndarray:
        """Which feature of the chosen draw each row of `many_draws.features` is, -1 for none, (sum of K,)."""
        splits = [chain.row_splits for chain in self.posterior.chains]
        return np.concatenate(
            [
                self.posterior.labels[chain][splits[chain][draw] : splits[chain][draw + 1]]
                for chain, draw in pick_draws(self.posterior, self.max_draws)
            ]
        )

    @property
    def n_rounds(self) -> int:
        """How many numbers MMSE averages for each row."""
        return (N_KEPT if self.draws_substates else 1) * (len(self.many_draws.splits) - 1)

    @cached_property
    def _best_draw(self) -> "FlatDraws":
        return self.flatten([self.posterior.chosen_on_average])

    def log_density(self, observations: np.ndarray) -> np.ndarray:
        """Log density of each row, its substates summed out, averaged over the draws (an estimate, see `weigh_row`).

        Rows (NaN where missing) in the unit of the observations; densities in the sampler's.
        """
        # numba is imported at the first prediction, not with the package
        from whyact.sampler.interrupts import interrupts_between_kernels
        from whyact.sampler.new_rows import weigh_row

        draws = self.many_draws
        observations, missing = self._scale(observations)
        log_weights = np.empty((len(observations), len(draws.splits) - 1))
        with single_threaded_blas(), interrupts_between_kernels() as deliver_interrupt:
            for row, gaps, filled in zip(observations, missing, log_weights, strict=True):
                rng = np.random.Generator(np.random.PCG64(self.seed))
                weigh_row(rng, row, np.nonzero(gaps)[0], self.target.n_levels, draws, filled)
                deliver_interrupt()
        return logsumexp(log_weights, axis=1) - np.log(log_weights.shape[1])

    def _scale(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Observations in the sampler's unit, zero where missing, and where that is."""
        missing = np.isnan(observations)
        return np.where(missing, 0.0, observations / self.posterior.unit), missing

    @cached_property
    def _noise_limits(self) -> np.ndarray:
        """What noise can do at most, in units of its variance, to a row, by its number of observed entries."""
        n_dimensions = self.posterior.chains[0].features.shape[1]
        return chi2.ppf(NOISE_QUANTILE, np.maximum(np.arange(n_dimensions + 1), 1))

    def predict(
        self,
        observations: np.ndarray,
        *,
        one_draw: bool,
        maximise: bool,
        available: np.ndarray | None = None,
        n_jobs: int | None = None,
    ) -> Prediction:
        """Predict rows (NaN where missing), given in the unit of the observations.

        `available` (N, U) tells which actions there are in each row; None: all.
        """
        draws = self._best_draw if one_draw else self.many_draws
        n_kept = 0 if maximise or not self.draws_substates else N_KEPT_OF_ONE_DRAW if one_draw else N_KEPT
        return self._run(observations, draws, n_kept, n_jobs, available, keep_substates=one_draw)[0]

    def compare_chains(
        self, observations: np.ndarray, available: np.ndarray | None = None, n_jobs: int | None = None
    ) -> float | None:
        """How far the predictions of single chains are apart, on rows near some of these.

        The mean over rows and pairs of chains of the total variation, the probability that one of the two places
        otherwise. Chains without weight are left out; None for a single one. Policies have been fitted to the
        demonstrations, where chains agree more than on new rows; so each is moved a quarter of the way to another one.
        """
        if self.posterior.counts.sum() < 2:
            return None
        rows = spread_out(len(observations), N_ROWS_COMPARED)
        others = (rows + len(observations) // 2) % len(observations)
        near = (1 - SHARE_OF_OTHER) * observations[rows] + SHARE_OF_OTHER * observations[others]
        mask = None if available is None else available[rows]
        n_kept = N_KEPT if self.draws_substates else 0
        probabilities = [
            self._run(near, draws, n_kept, n_jobs, mask)[0].probabilities for draws in self.split_by_chain()
        ]
        return float(np.mean([0.5 * np.abs(a - b).sum(axis=1).mean() for a, b in combinations(probabilities, 2)]))

    def learn_decisiveness(
        self, observations: np.ndarray, actions: np.ndarray, available: np.ndarray | None, n_jobs: int | None = None
    ) -> tuple[Decisiveness, Decisiveness]:
        """How decisive the teacher of these rows is (`cut_decisiveness.py`); action -1 where missing.

        Features speak by their substates alone, or as parts of a whole.
        """
        draws, states = self.many_draws, spread_over_chains(self.posterior, self.max_draws)
        policies = np.concatenate([state.policies for state in states])
        strengths = np.concatenate([find_strengths(state.substates) for state in states])
        plain, as_parts = learn_decisiveness(
            lambda rows: self.record(observations[rows], n_jobs=n_jobs)[1].substates,
            [policies, policies * strengths[:, None]],
            draws.splits,
            actions,
            available,
            self.target.decisiveness_shape,
            self.target.decisiveness_rate,
        )
        return plain, as_parts

    def record(
        self, observations: np.ndarray, *, available: np.ndarray | None = None, n_jobs: int | None = None
    ) -> tuple[Prediction, "Rounds"]:
        """The MMSE prediction, as `predict` gives it, and every round that it averages over."""
        n_kept = N_KEPT if self.draws_substates else 0
        return self._run(observations, self.many_draws, n_kept, n_jobs, available, keep_rounds=True)

    def _run(
        self,
        observations: np.ndarray,
        draws: "FlatDraws",
        n_kept: int,
        n_jobs: int | None,
        available: np.ndarray | None = None,
        keep_substates: bool = False,
        keep_rounds: bool = False,
    ) -> tuple[Prediction, "Rounds"]:
        """Answer rows block by block. Where random numbers are drawn, each row is a block and starts them again."""
        # numba is imported at the first prediction, not with the package
        from whyact.sampler.interrupts import interrupts_between_kernels
        from whyact.sampler.new_rows import Rounds

        n_rows, n_features, n_draws = len(observations), len(draws.features), len(draws.splits) - 1
        n_warm = N_WARM if n_kept else 0
        block_size = 1 if n_kept or self.climbs_at_random else BLOCK_SIZE
        answers = Prediction(
            np.zeros((n_rows, self.target.n_actions)),
            np.zeros((n_rows, n_features if keep_substates else 0)),
            np.zeros(n_rows),
        )
        n_recorded = n_rows if keep_rounds else 0
        rounds = Rounds(
            np.zeros((n_recorded, max(n_kept, 1), n_features)), np.zeros((n_recorded, max(n_kept, 1), n_draws))
        )
        predict_rows, noise_limits = self.predict_rows, self._noise_limits
        everything = np.zeros((0, 0), np.bool_)

        def predict_part(first: int, last: int) -> None:
            scratch = np.zeros((block_size, n_features))
            with interrupts_between_kernels() as deliver_interrupt:
                for start in range(first, last, block_size):
                    rows = slice(start, min(start + block_size, last))
                    block = Prediction(*(array[rows] for array in answers))
                    if not keep_substates:
                        block = block._replace(substates=scratch)
                    scaled, missing = self._scale(observations[rows])
                    predict_rows(
                        np.random.Generator(np.random.PCG64(self.seed)), scaled, missing,
                        everything if available is None else available[rows], self.target.n_levels, n_warm, n_kept,
                        noise_limits[(~missing).sum(axis=1)], draws, block,
                        Rounds(*(array[rows] for array in rounds)),
                    )  # fmt: skip
                    block.familiarity[missing.all(axis=1)] = 0.0
                    deliver_interrupt()

        n_threads = joblib.effective_n_jobs(n_jobs)
        with single_threaded_blas():
            if n_threads == 1 or n_rows <= block_size:
                predict_part(0, n_rows)
            else:
                borders = np.linspace(0, n_rows, min(4 * n_threads, n_rows) + 1).astype(int)
                joblib.Parallel(n_jobs=n_threads, prefer="threads")(
                    joblib.delayed(predict_part)(first, last) for first, last in pairwise(borders.tolist())
                )
        return answers, rounds


def check_match(cut: CutPolicies, posterior: Posterior, max_draws: int) -> None:
    """The policies for predictions must belong to the draws that predictions average over."""
    picks = pick_draws(posterior, max_draws)
    n_features = sum(int(posterior.traces["n_features"][pick.chain, pick.draw]) for pick in picks)
    sizes = (len(cut.log_odds), len(cut.base), len(cut.chosen_log_odds))
    if sizes != (n_features, len(picks), len(posterior.chosen.features)):
        raise DamagedFileError("its policies for predictions do not match its draws")


class ProductPredictor(Predictor):
    """Predict with policies that are multiplied, learned from what a new row can show (`cut_policies.py`)."""

    is_product = True
    draws_substates = False

    def __init__(self, posterior: Posterior, target: Target, max_draws: int, seed: int, cut: CutPolicies | None):
        super().__init__(posterior, target, max_draws, seed)
        self.cut = cut
        if cut is not None:
            check_match(cut, posterior, max_draws)

    @property
    def predict_rows(self) -> Callable[..., None]:
        """The kernel that multiplies policies."""
        # numba is imported at the first prediction, not with the package
        from whyact.sampler.new_rows import predict_rows_by_product

        return predict_rows_by_product

    def find_voices(self, states: list[State]) -> Any:
        """As the sampler has drawn them, without the cut; draws of a mixture have no base policy."""
        # numba is imported at the first prediction, not with the package
        from whyact.sampler.new_rows import ProductVoices

        uniform = np.ones(self.target.n_actions)
        bases = [state.base_policy if len(state.base_policy) else uniform for state in states]
        log_odds = np.concatenate([center_log_odds(state.policies) for state in states])
        return ProductVoices(log_odds, np.stack([center_log_odds(base) for base in bases]))

    @cached_property
    def many_draws(self) -> "FlatDraws":
        """The draws that MMSE averages over."""
        draws = self.flatten(spread_over_chains(self.posterior, self.max_draws))
        if self.cut is None:
            return draws
        return draws._replace(voices=draws.voices._replace(log_odds=self.cut.log_odds, base=self.cut.base))

    @cached_property
    def _best_draw(self) -> "FlatDraws":
        draws = self.flatten([self.posterior.chosen_on_average])
        if self.cut is None:
            return draws
        return draws._replace(
            voices=draws.voices._replace(log_odds=self.cut.chosen_log_odds, base=self.cut.chosen_base[None])
        )

    def hold_out(
        self, observations: np.ndarray, actions: np.ndarray, available: np.ndarray | None, n_jobs: int | None = None
    ) -> HeldOut:
        """How well policies that are learned from some of these rows predict the others; action -1 where missing.

        By some of `many_draws`, evenly spread, at least one of each chain.
        """
        draws = spread_over_chains(self.posterior, self.max_draws)
        which = spread_out(len(draws), max(N_DRAWS_FOR_SCALE, self.posterior.n_chains))
        with single_threaded_blas():
            return hold_out_some(
                partial(self.find_amounts, observations), draws, which, actions, self._fill(available, len(actions)),
                n_jobs,
            )  # fmt: skip

    def weigh_chains(self, probabilities: np.ndarray) -> np.ndarray:
        """Weights of the chains, by how probable some of `many_draws`, evenly spread, find actions, (draws, N)."""
        chains = self.chains_of_draws
        return weigh_chains(probabilities, chains[spread_out(len(chains), len(probabilities))], self.posterior.n_chains)

    def learn(
        self,
        observations: np.ndarray,
        actions: np.ndarray,
        available: np.ndarray | None,
        n_jobs: int | None = None,
        verbose: int = 0,
        scale: float | None = None,
    ) -> "ProductPredictor":
        """The same, with policies for predictions that are learned from these rows; action -1 where missing.

        `scale` is what `hold_out` has found, if it was asked.
        """
        draws = spread_over_chains(self.posterior, self.max_draws)
        chosen = self.posterior.chosen_on_average
        text = "policies for predictions"
        # from many threads at once BLAS would only be slower, and the rounding would depend on their number
        bar = open_bar(verbose, len(draws), "draws", text, n_lines=N_LINES_IN_PASSING)
        with single_threaded_blas(), bar as show:
            cut = learn_cut_policies(
                partial(self.find_amounts, observations), draws, chosen, actions, self._fill(available, len(actions)),
                scale, n_jobs, lambda n_done: show(n_done, text),
            )  # fmt: skip
        return ProductPredictor(self.posterior, self.target, self.max_draws, self.seed, cut)

    def _fill(self, available: np.ndarray | None, n_rows: int) -> np.ndarray:
        """Which actions are available in each row, (N, U)."""
        return np.ones((n_rows, self.target.n_actions), bool) if available is None else available

    def find_amounts(self, observations: np.ndarray, state: State) -> np.ndarray:
        """What rows show of the features of a draw, (N, K)."""
        return self._run(observations, self.flatten([state]), 0, None, keep_substates=True)[0].substates
