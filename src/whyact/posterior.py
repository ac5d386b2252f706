"""Draws of a changing number of features, and what they say (Sec. 4.2).

The draws of a chain are stored flat: the features of all draws below each other, with row splits that tell where a
draw begins. Nothing is padded. The order of features means nothing, so only quantities that do not depend on it are
diagnosed (K, noise variance, ...), and features are aligned by assignment before they are averaged.

What is shown to a person is the consensus: features that more than half of all draws hold. To say of each feature
whether it is there, with errors of both kinds equally bad, this is the best that can be said given the draws. A draw
mostly holds some more, which belong to a row or two, and which another draw does not confirm; so does a chain that is
caught in a poor mode. If it also predicts worse, it counts less (`stacking.py`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import softmax

from whyact.errors import say_options
from whyact.intervals import Interval, quantile_interval
from whyact.matching import Prototypes, compare, make_prototypes, match_chain, refine
from whyact.model import sharpen
from whyact.plotting import plot_ranks
from whyact.sampler.draws import TRACES, ChainDraws
from whyact.strengths import find_strengths

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

DIAGNOSED = ("n_features", "noise_variance", "log_joint", "n_active", "log_action_likelihood")
# An R-hat above this says that the chains differ in a number (Vehtari et al., 2021, ask for 1.01 with long chains).
R_HAT_LIMIT = 1.1
# Chains agree if this share of what features explain is in features that all of them find, and if their predictions
# differ by no more than this on average (total variation: the probability that is placed otherwise).
LEAST_IN_COMMON = 0.8
LARGEST_DISTANCE = 0.05
LEAST_DRAWS = 4  # of each chain; with fewer nothing can be compared
# The number of features grows if the last third of the draws has this many times as many as the first.
GROWTH = 1.2
# A chain whose weight is below this share of an equal one is not asked: 0.05 for four chains.
LEAST_SHARE = 0.2
# Weights are worth a sentence if one is below this share of an equal one.
UNEQUAL = 0.5


class DrawId(NamedTuple):
    """Which draw."""

    chain: int
    draw: int


class Chosen(NamedTuple):
    """Features of one draw."""

    draw: DrawId
    features: np.ndarray  # which of its features, in the order in which they are shown


@dataclass(frozen=True)
class AlignedFeatures:
    """Features of all draws matched to those of one reference draw.

    Attributes
    ----------
    reference : DrawId
        The draw whose features give the order.
    presence : array (K,)
        Share of the draws that hold the feature, with the weights of their chains.
    support : array (chains, K)
        Share of the draws of each chain that hold it.
    counts : array (chains,) of bool
        Which chains have weight (`Posterior.counts`).
    features, policies, substates : Interval of arrays
        Mean and central interval over the draws of these chains that hold the feature; shapes (K, D), (K, U) and
        (K, N). Policies are what the features say alone, as sampled (`Posterior.speak_alone`). Those that a product
        predicts with are learned after sampling: `policies_` has them.
    interval : float
        Probability of the interval.
    """

    reference: DrawId
    presence: np.ndarray
    support: np.ndarray
    counts: np.ndarray
    features: Interval = field(repr=False)
    policies: Interval = field(repr=False)
    substates: Interval = field(repr=False)
    interval: float = 0.9

    @property
    def in_all_chains(self) -> np.ndarray:
        """Whether more than half of the draws of every chain that has weight hold the feature, (K,)."""
        return find_in_all(self.support, self.counts)


class Posterior:
    """The draws of all chains, in the unit of the observations.

    A fitted model has it as `posterior_`.

    Parameters
    ----------
    chains : list of ChainDraws
        The draws of each chain, in the sampler's unit.
    unit : float, default=1.0
        What the observations were divided by before sampling. Features, weight scale and noise variance are given
        back in the observations' own unit.
    feature_values : {"positive", "real"}, default="positive"
        Whether the weight scale is a mean or a variance.
    representative : {"consensus", "modal", "joint"}, default="consensus"
        What stands for all draws. "consensus": of the densest draws of the chains (each among those with the chain's
        most frequent number of features) the one that the others confirm most, and of its features those that more than
        half of all draws hold, counted with the weights of their chains. "modal": the densest draw among those with the
        most frequent number of features, as it is. "joint": the paper's MAP.
    chosen : Chosen or None, default=None
        What stands for all draws, if that is known.
    averages_policies : bool, default=False
        Whether the representative draw speaks with policies that are averaged over all draws of its features.
    adds_up : bool, default=False
        Whether features of a mixture speak as parts of a whole (`strengths.py`).
    distance : float or None, default=None
        How far the predictions of single chains are apart, the mean total variation between two of them, if known.
    chain_weights : ndarray (chains,) or None, default=None
        How much each chain counts, by how well it predicts (`stacking.py`); None: all alike.

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
    >>> posterior = model.fit(demo.X[:80], demo.y[:80]).posterior_
    >>> posterior
    <Posterior: 2 chains of 120 draws, K = 5>
    >>> posterior.align().features.value.shape
    (5, 36)
    >>> list(posterior.diagnostics())
    ['r_hat', 'ess_bulk', 'ess_tail']
    """

    _noun = "features"  # what the rows of `features` are called in a sentence
    _least_in_common = LEAST_IN_COMMON

    def __init__(
        self,
        chains: list[ChainDraws],
        unit: float = 1.0,
        feature_values: str = "positive",
        representative: str = "consensus",
        chosen: Chosen | None = None,
        averages_policies: bool = False,
        adds_up: bool = False,
        distance: float | None = None,
        chain_weights: np.ndarray | None = None,
    ):
        if not chains or not all(len(chain) for chain in chains):
            raise ValueError("a posterior needs at least one draw in each chain.")
        self.chains = chains
        self.unit = unit
        self.feature_values = feature_values
        self.representative = representative
        self.averages_policies = averages_policies
        self.adds_up = adds_up
        self.distance = distance
        self.chain_weights = np.full(len(chains), 1.0 / len(chains)) if chain_weights is None else chain_weights
        if chosen is not None:
            self.__dict__["representatives"] = chosen  # the cached property has nothing to find

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.chains)

    @property
    def n_draws(self) -> int:
        """Kept draws per chain."""
        return min(len(chain) for chain in self.chains)

    @property
    def counts(self) -> np.ndarray:
        """Which chains have weight, (chains,): those without are not asked whether they find a feature."""
        return self.chain_weights * self.n_chains >= LEAST_SHARE

    def _average(self, support: np.ndarray) -> np.ndarray:
        """Of what is known of each chain, (chains, K), by their weights."""
        # with weights of 1/3 rounding could make half of the draws a little more than half
        return support.mean(axis=0) if np.ptp(self.chain_weights) == 0 else self.chain_weights @ support

    def __repr__(self) -> str:
        return f"<Posterior: {self.n_chains} chains of {self.n_draws} draws, K = {self.modal_n_features}>"

    @cached_property
    def traces(self) -> dict[str, np.ndarray]:
        """One number per draw, arrays (chain, draw), for each name of TRACES and single number of the state.

        In the unit of the observations.
        """
        names = (*TRACES, *self.chains[0].scalars)
        of_chains = [chain.traces for chain in self.chains]
        traces = {name: np.stack([trace[name][: self.n_draws] for trace in of_chains]) for name in names}
        for name, power in self.unit_powers.items():
            if name in traces:
                traces[name] = traces[name] * self.unit**power
        return traces

    @property
    def unit_powers(self) -> dict[str, int]:
        """Traces that have a unit: which power of that of the observations."""
        return {"noise_variance": 2, "noise_rate": 2, "weight_scale": 1 if self.feature_values == "positive" else 2}

    def to_unit_of_observations(self, features: np.ndarray) -> np.ndarray:
        """Features as the chains hold them, in the unit of the observations."""
        return features * self.unit

    @property
    def decisiveness(self) -> float:
        """The power tau of the mixture of policies, the geometric mean over the draws."""
        return float(getattr(self.chosen_on_average, "decisiveness", 1.0))

    def find_votes(self, state: Any) -> np.ndarray:
        """What each feature of a mixture votes for where it is full, (K, U): its policy, times how loudly it speaks."""
        return state.policies * find_strengths(state.substates)[:, None] if self.adds_up else state.policies

    def speak_alone(self, state: Any) -> np.ndarray:
        """What each feature makes the teacher do where no other is present, (K, U)."""
        return combine_alone(
            state.policies, getattr(state, "decisiveness", 1.0), getattr(state, "base_policy", np.zeros(0))
        )

    def _speak_alone_in(self, chain: ChainDraws) -> np.ndarray:
        """`speak_alone` for the features of all draws of a chain, (sum of K, U)."""
        sizes = np.diff(chain.row_splits)
        decisiveness = np.repeat(chain.traces.get("decisiveness", np.ones(len(chain))), sizes)[:, None]
        base = chain.vectors.get("base_policy", np.zeros((len(chain), 0)))
        return combine_alone(chain.policies, decisiveness, np.repeat(base, sizes, axis=0))

    def state(self, chain: int, draw: int) -> Any:
        """Return one draw, in the unit of the observations."""
        state = self.chains[chain].state(draw)
        scalars = {name: float(self.traces[name][chain, draw]) for name in self.chains[chain].scalars}
        return state._replace(features=self.to_unit_of_observations(state.features), **scalars)

    # --- the number of features -----------------------------------------------------------------------------

    @cached_property
    def n_features_probabilities(self) -> dict[int, float]:
        """P(K | data)."""
        values, counts = np.unique(self.traces["n_features"].astype(int), return_counts=True)
        return dict(zip(values.tolist(), (counts / counts.sum()).tolist(), strict=True))

    @property
    def modal_n_features(self) -> int:
        """The most probable number of features (the smaller one of two equals)."""
        return max(self.n_features_probabilities, key=lambda k: (self.n_features_probabilities[k], -k))

    def n_features_interval(self, interval: float = 0.9) -> tuple[int, int]:
        """A central interval of the number of features of a draw."""
        tail = (1 - interval) / 2
        low, high = np.quantile(self.traces["n_features"], [tail, 1 - tail], method="inverted_cdf")
        return int(low), int(high)

    # --- the draw that stands for all -----------------------------------------------------------------------

    @cached_property
    def _log_joint_in_logs(self) -> np.ndarray:
        """Log joint density with respect to the logarithms of the policies, arrays (chain, draw).

        The Dirichlet density of Eq. (model::posterior) has no bound as a probability goes to zero; in the
        coordinates of log-odds it has. The density of a product is in these coordinates already.
        """
        if self.chains[0].vectors:
            return self.traces["log_joint"]
        added = [
            np.add.reduceat(np.append(np.log(chain.policies).sum(axis=1), 0.0), chain.row_splits[:-1])
            * (np.diff(chain.row_splits) > 0)
            for chain in self.chains
        ]
        return self.traces["log_joint"] + np.stack([values[: self.n_draws] for values in added])

    @cached_property
    def representatives(self) -> Chosen:
        """The features that stand for those of all draws (see the parameter `representative`)."""
        if self.representative == "joint":
            return self._all_of(self.highest_joint_draw())
        if self.representative == "modal":
            return self._all_of(self._densest_draw(range(self.n_chains)))
        candidates = [self._all_of(self._densest_draw([chain])) for chain in range(self.n_chains) if self.counts[chain]]
        confirmed = [
            self._average(self.find_support(labels, len(candidate.features))) - 0.5
            for candidate, labels in zip(candidates, self._match([*map(self._show, candidates)]), strict=True)
        ]
        density = self._log_joint_in_logs
        best = max(
            range(len(candidates)),
            key=lambda i: (float(np.maximum(confirmed[i], 0.0).sum()), density[candidates[i].draw]),
        )
        candidate = candidates[best]
        is_held = self._average(self.find_support(self._match_means(candidate), len(candidate.features))) > 0.5
        # where the draws have nothing in common, one of them is better than nothing
        return candidate._replace(features=candidate.features[is_held]) if is_held.any() else candidate

    def _densest_draw(self, chains: Iterable[int]) -> DrawId:
        """The draw of highest density of these chains, among those with their most frequent number of features."""
        among = np.isin(np.arange(self.n_chains), list(chains))[:, None]
        counts = self.traces["n_features"].astype(int)
        most_frequent = np.bincount(counts[among[:, 0]].ravel()).argmax()
        density = np.where(among & (counts == most_frequent), self._log_joint_in_logs, -np.inf)
        return DrawId(*(int(i) for i in np.unravel_index(np.argmax(density), density.shape)))

    def _all_of(self, draw: DrawId) -> Chosen:
        """All features of a draw, sorted by how much of them is in the rows, most first."""
        use = self.chains[draw.chain].state(draw.draw).substates.sum(axis=1)
        return Chosen(draw, np.argsort(-use, kind="stable"))

    def _take(self, chosen: Chosen) -> Any:
        """The draw with these features only, in the sampler's unit."""
        state = self.chains[chosen.draw.chain].state(chosen.draw.draw)
        parts = {name: getattr(state, name)[chosen.features] for name in ("features", "policies", "substates")}
        return state._replace(**parts)

    def best_draw(self) -> DrawId:
        """The draw whose features stand for those of all draws."""
        return self.representatives.draw

    @cached_property
    def chosen_on_average(self) -> Any:
        """The chosen draw, with each policy averaged over all draws of its feature, and the mean decisiveness.

        One draw of the policies is noisy; given the features, their average is what MAP predicts with. Unless
        `averages_policies`, the chosen draw stays as it is, as in the paper.
        """
        chosen = self.chosen
        if not self.averages_policies:
            return chosen
        policies = chosen.policies.copy()
        for k in range(len(policies)):
            rows = self._find_rows(lambda chain: chain.policies, self.labels, k)
            if len(rows):
                policies[k] = rows.mean(axis=0)
        decisiveness = self.traces.get("decisiveness", np.ones((self.n_chains, 1)))[self.counts]
        return chosen._replace(policies=policies, decisiveness=float(np.exp(np.log(decisiveness).mean())))

    def _find_rows(
        self, rows_of_chain: Callable[[ChainDraws], np.ndarray], labels: list[np.ndarray], k: int
    ) -> np.ndarray:
        """What the draws of the chains that have weight say of feature k of a reference, by `match`."""
        asked = (i for i in range(self.n_chains) if self.counts[i])
        return np.concatenate([rows_of_chain(self.chains[i])[labels[i] == k] for i in asked])

    @cached_property
    def chosen(self) -> Any:
        """The draw that stands for all, with the features that do, in the sampler's unit."""
        return self._take(self.representatives)

    def highest_joint_draw(self) -> DrawId:
        """The paper's MAP: the draw of highest joint density, over all numbers of features.

        It compares densities of different dimension, so it changes with the unit of the observations, and a
        policy close to zero outweighs everything else. Prefer `consensus`.
        """
        density = self.traces["log_joint"]
        return DrawId(*(int(i) for i in np.unravel_index(np.argmax(density), density.shape)))

    # --- features over all draws ----------------------------------------------------------------------------

    def match(self, reference: DrawId | None = None) -> list[np.ndarray]:
        """For each chain, which feature of a reference each row of `features` is, and -1 for none of them.

        The reference is a draw, its features sorted by how much of them is in the rows, or, by default, what stands for
        all draws. `matching.py` says which features are taken for the same.
        """
        return self._match_means(self.representatives if reference is None else self._all_of(reference))

    def _match_means(self, reference: Chosen) -> list[np.ndarray]:
        """`match` with the means that are found from a reference, by the chains that have weight."""
        asked = [chain for chain, is_asked in zip(self.chains, self.counts, strict=True) if is_asked]
        return self._match([refine(asked, self._show(reference), self._compare)])[0]

    def _match(self, several: list[Prototypes]) -> list[list[np.ndarray]]:
        """For each set of prototypes and each chain, which one each row of `features` is."""
        found = [match_chain(chain, several, self._compare) for chain in self.chains]
        return [list(labels) for labels in zip(*found, strict=True)]

    def _show(self, reference: Chosen) -> Prototypes:
        """The features of a reference, to compare others with."""
        state = self._take(reference)
        return make_prototypes(state.features, state.substates)

    # how alike features are
    _compare = staticmethod(compare)

    def find_support(self, labels: list[np.ndarray], n_features: int) -> np.ndarray:
        """Share of the draws of each chain that hold each feature of a reference, by `match`, (chains, K)."""
        return np.stack(
            [
                np.bincount(found[found >= 0], minlength=n_features) / len(chain)
                for chain, found in zip(self.chains, labels, strict=True)
            ]
        )

    @cached_property
    def labels(self) -> list[np.ndarray]:
        """For each chain, which feature of `chosen` each row of `features` is (see `match`)."""
        return self.match()

    def consensus(self, interval: float = 0.9) -> AlignedFeatures:
        """The features that more than half of all draws hold, summarised over these draws.

        Parameters
        ----------
        interval : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        AlignedFeatures
            Its `support` tells which chains hold them, `in_all_chains` which of them all chains do.

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
        >>> consensus = model.fit(demo.X[:80], demo.y[:80]).posterior_.consensus()
        >>> consensus.in_all_chains
        array([ True,  True,  True,  True,  True])
        """
        return self.align(interval=interval)

    def align(self, reference: DrawId | None = None, interval: float = 0.9) -> AlignedFeatures:
        """Match the features of every draw to those of a reference, and summarise them.

        `match` says which features are taken for the same.

        Parameters
        ----------
        reference : DrawId or None, default=None
            All features of this draw, most used first; None: what stands for all draws, as `consensus`.
        interval : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        AlignedFeatures
        """
        labels = self.labels if reference is None else self.match(reference)
        chosen = self.chosen if reference is None else self._take(self._all_of(reference))
        n_features = len(chosen.features)
        top_level = self.chains[0].n_levels - 1

        def summarise(
            rows_of_chain: Callable[[ChainDraws], np.ndarray],
            own: np.ndarray,
            convert: Callable[[np.ndarray], np.ndarray],
        ) -> Interval:
            summary = Interval(*(np.empty(own.shape) for _ in range(3)))
            for k in range(n_features):
                rows = convert(self._find_rows(rows_of_chain, labels, k))
                if not len(rows):  # a feature that no row holds matches none, not even itself
                    rows = own[k : k + 1]
                summary.value[k], summary.low[k], summary.high[k] = quantile_interval(rows, interval, rows.mean(axis=0))
            return summary

        support = self.find_support(labels, n_features)
        alone = {id(chain): self._speak_alone_in(chain) for chain in self.chains}
        return AlignedFeatures(
            reference=self.best_draw() if reference is None else reference,
            presence=self._average(support),
            support=support,
            counts=self.counts,
            features=summarise(
                lambda chain: chain.features,
                self.to_unit_of_observations(chosen.features),
                self.to_unit_of_observations,
            ),
            policies=summarise(lambda chain: alone[id(chain)], self.speak_alone(chosen), lambda policies: policies),
            substates=summarise(
                lambda chain: chain.levels, chosen.substates, lambda levels: levels * (1.0 / top_level)
            ),
            interval=interval,
        )

    @cached_property
    def aligned(self) -> AlignedFeatures:
        """The consensus, with 90% intervals."""
        return self.consensus()

    # --- diagnostics ----------------------------------------------------------------------------------------

    @cached_property
    def _diagnostics(self) -> dict[str, dict[str, float]]:
        import arviz_stats  # two seconds, which a fit need not wait for

        names = ("r_hat", "ess_bulk", "ess_tail")
        numbers = {}
        for name in DIAGNOSED:
            trace = self.traces[name]
            if self.n_draws < LEAST_DRAWS or np.ptp(trace) == 0:  # nothing moved: no chain can disagree
                numbers[name] = dict.fromkeys(names, float("nan")) | {
                    "r_hat": 1.0 if self.n_draws >= LEAST_DRAWS else float("nan")
                }
                continue
            with np.errstate(divide="ignore", invalid="ignore"):  # chains stuck at different values: R-hat is infinite
                numbers[name] = {
                    "r_hat": float(arviz_stats.rhat(trace)) if self.n_chains > 1 else float("nan"),
                    "ess_bulk": float(arviz_stats.ess(trace, method="bulk")),
                    "ess_tail": float(arviz_stats.ess(trace, method="tail", prob=(0.05, 0.95))),
                }
        return numbers

    def diagnostics(self) -> "xarray.Dataset":
        """R-hat and effective sample sizes of quantities that do not depend on the order of the features.

        Returns
        -------
        xarray.Dataset
            One variable per measure, over the dimension "quantity".
        """
        import xarray

        return xarray.Dataset(
            {
                measure: ("quantity", [self._diagnostics[name][measure] for name in DIAGNOSED])
                for measure in ("r_hat", "ess_bulk", "ess_tail")
            },
            coords={"quantity": list(DIAGNOSED)},
        )

    @cached_property
    def share_in_common(self) -> float:
        """Share of what the features of all draws explain that is in features which every chain finds.

        Chains without weight are left out. A chain finds a feature of the consensus if more than half of its draws hold
        it. What a feature explains is the sum over rows and columns of its part of the observations, which does not
        depend on how large it is drawn.
        """
        found, everything = 0.0, 0.0
        n_features = len(self.chosen.features)
        in_all = np.append(find_in_all(self.find_support(self.labels, n_features), self.counts), False)
        for i in np.flatnonzero(self.counts):
            parts = self._find_parts(self.chains[i])
            everything += parts.sum()
            found += parts[in_all[self.labels[i]]].sum()
        return float(found / everything) if everything > 0 else 1.0

    def _find_parts(self, chain: ChainDraws) -> np.ndarray:
        """How much each feature of all draws of a chain explains, (sum of K,)."""
        return chain.levels.sum(axis=1, dtype=float) * np.abs(chain.features).sum(axis=1)

    def agreement(self) -> str:
        """Whether the chains agree, in what they do not, and what helps."""
        if self.n_chains < 2:
            return f"With a single chain, convergence cannot be checked; run at least two: {say_options(n_chains=2)}."
        if self.n_draws < LEAST_DRAWS:
            return (
                f"{self.n_draws} draws per chain are too few to tell whether the chains agree; raise n_draws "
                "(--n-draws on the command line)."
            )
        n_counting = int(self.counts.sum())
        if n_counting == 1:
            return f"The {self.n_chains} chains disagree: {self._say_weights()} {self._advise()}"
        told = [f"{self.share_in_common:.0%} of what the {self._noun} explain is in {self._noun} that all of them find"]
        if self.distance is not None:
            told.append(f"their predictions differ by {self.distance:.2f} on average")
        chains = f"{n_counting} chains" + " that have weight" * (n_counting < self.n_chains)
        weights = f" {self._say_weights()}".rstrip()
        if self.chains_agree:
            so_far = " so far" * (self.growth() is not None)
            return f"The {chains} agree{so_far}: {', and '.join(told)}.{weights}"
        told[0] = f"only {told[0]}" if self.share_in_common < self._least_in_common else told[0]
        modes = [int(np.bincount(row.astype(int)).argmax()) for row in self.traces["n_features"]]
        if len(set(modes)) > 1:
            told.append(f"their most frequent numbers of {self._noun} are {', '.join(map(str, modes))}")
        return f"The {chains} disagree: {'; '.join(told)}.{weights} {self._advise()}"

    def _say_weights(self) -> str:
        """How chains differ in weight, in a sentence; nothing where they do not clearly."""
        n_without = int(np.sum(~self.counts))
        if n_without == 1:
            return f"1 of the {self.n_chains} chains has next to no weight, because it predicts worse."
        if n_without:
            return f"{n_without} of the {self.n_chains} chains have next to no weight, because they predict worse."
        if self.chain_weights.min() * self.n_chains >= UNEQUAL:
            return ""
        weights = ", ".join(f"{weight:.2f}" for weight in self.chain_weights)
        return f"Chains that predict worse have less weight (their weights are {weights})."

    def _advise(self) -> str:
        """What helps where chains disagree."""
        if growing := self.say_growth():
            return growing
        if self.counts.sum() == 1:
            return (
                "All that is shown is of a single chain; more of them (n_chains, or --n-chains on the command line) "
                "would tell if others end there."
            )
        advice = []
        if self.share_in_common < self._least_in_common:
            advice.append(f"Trust the {self._noun} that all chains find (posterior_.consensus() tells which).")
        if self.distance is not None and self.distance > LARGEST_DISTANCE:
            advice.append(
                "Predictions average over the chains; more of them (n_chains, or --n-chains on the command line) make "
                "the average steadier."
            )
        return " ".join(advice)

    def say_growth(self) -> str:
        """That the number of features is still growing, and what helps; nothing if it is not."""
        growth = self.growth()
        if growth is None:
            return ""
        return (
            f"The number of {self._noun} is still growing (from {growth[0]:.0f} to {growth[1]:.0f}): raise n_burn_in; "
            "if longer chains do not settle it, set a larger tolerance, or max_features (--n-burn-in, --tolerance and "
            "--max-features on the command line)."
        )

    def growth(self) -> tuple[float, float] | None:
        """Mean number of features in the first and the last third of the draws, if it has clearly grown."""
        counts = self.traces["n_features"]
        third = self.n_draws // 3
        if third < 2:  # too few to tell
            return None
        first, middle, last = (
            float(part.mean()) for part in (counts[:, :third], counts[:, third:-third], counts[:, -third:])
        )
        return (first, last) if last > max(GROWTH * first, first + 1, middle) else None

    @property
    def can_compare_chains(self) -> bool:
        """Whether there are enough chains and draws to tell if the chains agree."""
        return self.n_chains > 1 and self.n_draws >= LEAST_DRAWS

    @property
    def chains_agree(self) -> bool:
        """Whether chains find the same features and make the same predictions; True if that cannot be determined.

        R-hat of single numbers is in `diagnostics`. Chains that differ in nothing that matters may have a high one: in
        the density of policies near zero, or in features that a row or two hold.
        """
        if not self.can_compare_chains:
            return True
        if self.counts.sum() < 2:
            return False
        is_near = self.distance is None or self.distance <= LARGEST_DISTANCE
        return is_near and self.share_in_common >= self._least_in_common

    def plot_ranks(self, figure: "Figure | None" = None) -> "Figure":
        """Draw rank plots of the diagnosed quantities: chains that mix have flat ones. Needs matplotlib.

        Parameters
        ----------
        figure : matplotlib Figure or None, default=None
            Where to draw; None: a new one.

        Returns
        -------
        matplotlib Figure
        """
        return plot_ranks({name: self.traces[name] for name in DIAGNOSED}, figure)

    # --- export ---------------------------------------------------------------------------------------------

    def to_arviz(self) -> "xarray.DataTree":
        """The draws as a tree that ArviZ's `summary` and `rhat` accept.

        Returns
        -------
        xarray.DataTree
            The groups "posterior" and "sample_stats" hold one number per draw. The group "features" holds the features
            of all draws flat, with `row_splits` over the draws, chain after chain.
        """
        import xarray
        from arviz_base import from_dict

        stats = {"lp": self.traces["log_joint"], "log_action_likelihood": self.traces["log_action_likelihood"]}
        tree = from_dict(
            {
                "posterior": {name: trace for name, trace in self.traces.items() if name not in ("log_joint",)},
                "sample_stats": stats,
            }
        )
        kept = [(chain, slice(0, chain.row_splits[self.n_draws])) for chain in self.chains]
        sizes = np.concatenate([np.diff(chain.row_splits[: self.n_draws + 1]) for chain in self.chains])
        tree["features"] = xarray.DataTree(
            xarray.Dataset(
                {
                    "features": (
                        ("feature", "dimension"),
                        self.to_unit_of_observations(np.concatenate([chain.features[rows] for chain, rows in kept])),
                    ),
                    "policies": (("feature", "action"), np.concatenate([chain.policies[rows] for chain, rows in kept])),
                    "levels": (("feature", "row"), np.concatenate([chain.levels[rows] for chain, rows in kept])),
                    "row_splits": (("split",), np.concatenate([[0], np.cumsum(sizes)])),
                },
                attrs={"n_levels": self.chains[0].n_levels, "unit": self.unit},
            )
        )
        return tree


def find_in_all(support: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Whether more than half of the draws of each chain that has weight hold a feature, (K,), by their support."""
    return np.all(support[counts] > 0.5, axis=0)


def combine_alone(policies: np.ndarray, decisiveness: float | np.ndarray, base: np.ndarray) -> np.ndarray:
    """Policies (K, U) of features that are alone: times the base policy of a product, or to the power of tau."""
    if base.shape[-1]:
        return softmax(np.log(policies) + np.log(base), axis=-1)
    return sharpen(policies, decisiveness) if policies.shape[1] else policies
