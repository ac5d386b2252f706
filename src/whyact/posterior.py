"""Draws of a changing number of features, and what they say (Sec. 4.2).

The draws of a chain are stored flat: the features of all draws below each other, with row splits that tell where a
draw begins. Nothing is padded. Features have no order that means something, so quantities that do not depend on it are
diagnosed (K, noise variance, ...), and features are aligned by assignment before they are averaged.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from whyact.model import sharpen
from whyact.sampler.draws import TRACES, ChainDraws

DIAGNOSED = ("n_features", "noise_variance", "log_joint", "n_active", "log_action_likelihood")
# Chains that agree have an R-hat below this (Vehtari et al., 2021, ask for 1.01 with long chains).
R_HAT_LIMIT = 1.1
# The number of features grows if the last third of the draws has so many times as many as the first.
GROWTH = 1.2
# Two features are taken for the same if the cosines of their entries and of their substates multiply to this.
SAME_FEATURE = 0.5


class DrawId(NamedTuple):
    """Which draw."""

    chain: int
    draw: int


@dataclass(frozen=True)
class AlignedFeatures:
    """Features of all draws matched to those of one reference draw.

    Attributes
    ----------
    reference : DrawId
        The draw whose features give the order.
    presence : array (K,)
        Share of the draws that hold the feature.
    features, policies, substates : dict of arrays
        "mean", "low" and "high" (a central interval) over the draws that hold the feature; shapes (K, D), (K, U)
        and (K, N). Policies are what the features say alone (`Posterior.speak_alone`).
    interval : float
        Probability of the interval.
    """

    reference: DrawId
    presence: np.ndarray
    features: dict[str, np.ndarray] = field(repr=False)
    policies: dict[str, np.ndarray] = field(repr=False)
    substates: dict[str, np.ndarray] = field(repr=False)
    interval: float = 0.9


class Posterior:
    """The draws of all chains, in the unit of the observations.

    Parameters
    ----------
    chains : list of ChainDraws
    unit : float
        What the observations were divided by before sampling. Features, weight scale and noise variance are given
        back in the observations' own unit.
    feature_values : str
        "positive" or "real": whether the weight scale is a mean or a variance.
    center : float or array (D,)
        What was taken off the observations before that; it is added to the features again.
    of_clusters : bool
        Whether the rows of `features` are the means of clusters, whose policies are not part of the joint density.
    best_is_modal : bool
        Whether the draw that stands for all is sought among those with the most probable number of features. If not,
        it is the paper's MAP.
    decisiveness : float
        Power of the mixture of policies.
    """

    def __init__(
        self,
        chains: list[ChainDraws],
        unit: float = 1.0,
        feature_values: str = "positive",
        best_is_modal: bool = True,
        center=0.0,
        of_clusters: bool = False,
        decisiveness: float = 1.0,
    ):
        if not chains or not all(len(chain) for chain in chains):
            raise ValueError("a posterior needs at least one draw in each chain.")
        self.chains = chains
        self.unit = unit
        self.feature_values = feature_values
        self.best_is_modal = best_is_modal
        self.center = center
        self.of_clusters = of_clusters
        self.decisiveness = decisiveness

    @property
    def n_chains(self) -> int:
        return len(self.chains)

    @property
    def n_draws(self) -> int:
        """Kept draws per chain."""
        return min(len(chain) for chain in self.chains)

    def __repr__(self) -> str:
        return f"<Posterior: {self.n_chains} chains of {self.n_draws} draws, K = {self.modal_n_features}>"

    @cached_property
    def traces(self) -> dict[str, np.ndarray]:
        """One number a draw, arrays (chain, draw), for each name of TRACES and single number of the state.

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
        return features * self.unit + self.center

    def speak_alone(self, policies: np.ndarray) -> np.ndarray:
        """What each feature makes the teacher do where no other is present: its policy, to the power of tau."""
        return sharpen(policies, self.decisiveness)

    def state(self, chain: int, draw: int):
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

    # --- the draw that stands for all -----------------------------------------------------------------------

    @cached_property
    def _log_joint_in_logs(self) -> np.ndarray:
        """Log joint density with respect to the logarithms of the policies, arrays (chain, draw).

        The Dirichlet density of Eq. (model::posterior) has no bound as a probability goes to zero; in the
        coordinates of log-odds it has.
        """
        if self.of_clusters:
            return self.traces["log_joint"]
        added = [
            np.add.reduceat(np.append(np.log(chain.policies).sum(axis=1), 0.0), chain.row_splits[:-1])
            * (np.diff(chain.row_splits) > 0)
            for chain in self.chains
        ]
        return self.traces["log_joint"] + np.stack([values[: self.n_draws] for values in added])

    def best_draw(self) -> DrawId:
        """The draw of highest density among those with the modal number of features (see `best_is_modal`)."""
        if not self.best_is_modal:
            return self.highest_joint_draw()
        density = np.where(self.traces["n_features"] == self.modal_n_features, self._log_joint_in_logs, -np.inf)
        return DrawId(*(int(i) for i in np.unravel_index(np.argmax(density), density.shape)))

    def chosen_state(self, reference: DrawId | None = None):
        """The best draw (or another), its features sorted by how much of them is in the rows, most first.

        In the sampler's unit, as `chains` are.
        """
        reference = self.best_draw() if reference is None else reference
        state = self.chains[reference.chain].state(reference.draw)
        order = np.argsort(-state.substates.sum(axis=1), kind="stable")
        return state._replace(
            features=state.features[order], policies=state.policies[order], substates=state.substates[order]
        )

    def highest_joint_draw(self) -> DrawId:
        """The paper's MAP: the draw of highest joint density, over all numbers of features.

        It compares densities of different dimension, so it changes with the unit of the observations, and a
        policy close to zero outweighs everything else. Prefer `best_draw`.
        """
        density = self.traces["log_joint"]
        return DrawId(*(int(i) for i in np.unravel_index(np.argmax(density), density.shape)))

    # --- features over all draws ----------------------------------------------------------------------------

    def match(self, reference: DrawId) -> list[np.ndarray]:
        """For each chain, which feature of the reference draw each row of `features` is, and -1 for none of them.

        Features of the reference draw are counted as in `chosen_state`. Two features are alike as far as both their
        entries and their substates are: the similarity is the product of the two cosines, which does not depend on the
        scale of either. Clusters are alike as far as their rows are. The assignment maximises its sum; pairs less alike
        than SAME_FEATURE stay unmatched.
        """
        from scipy.optimize import linear_sum_assignment

        chosen = self.chosen_state(reference)
        unit_features, unit_substates = normalise(chosen.features), normalise(chosen.substates)
        labels = [np.full(len(chain.features), -1) for chain in self.chains]
        for chain, found in zip(self.chains, labels, strict=True):
            for low, high in pairwise(chain.row_splits):
                likeness = normalise(chain.levels[low:high].astype(float)) @ unit_substates.T
                if not self.of_clusters:
                    likeness *= np.abs(normalise(chain.features[low:high]) @ unit_features.T)
                theirs, ours = linear_sum_assignment(likeness, maximize=True)
                alike = likeness[theirs, ours] >= SAME_FEATURE
                found[low + theirs[alike]] = ours[alike]
        return labels

    @cached_property
    def labels(self) -> list[np.ndarray]:
        """For each chain, which feature of the best draw each row of `features` is (see `match`)."""
        return self.match(self.best_draw())

    def align(self, reference: DrawId | None = None, interval: float = 0.9) -> AlignedFeatures:
        """Match the features of every draw to those of a reference draw (the best one), and summarise them.

        Their order is that of `chosen_state`; `match` tells which features are taken for the same.
        """
        labels = self.labels if reference is None else self.match(reference)
        reference = self.best_draw() if reference is None else reference
        chosen = self.chosen_state(reference)
        n_features = len(chosen.features)
        chosen_levels = self.chains[reference.chain].n_levels

        def summarise(rows_of_chain, own, convert=lambda rows: rows):
            summary = {name: np.empty(own.shape) for name in ("mean", "low", "high")}
            for k in range(n_features):
                rows = np.concatenate(
                    [
                        convert(rows_of_chain(chain)[found == k])
                        for chain, found in zip(self.chains, labels, strict=True)
                    ]
                )
                if not len(rows):  # a feature that no row holds matches none, not even itself
                    rows = own[k : k + 1]
                summary["mean"][k] = rows.mean(axis=0)
                summary["low"][k], summary["high"][k] = np.quantile(
                    rows, [(1 - interval) / 2, (1 + interval) / 2], axis=0
                )
            return summary

        n_all = sum(len(chain) for chain in self.chains)
        return AlignedFeatures(
            reference=reference,
            presence=np.array([sum(np.sum(found == k) for found in labels) for k in range(n_features)]) / n_all,
            features=summarise(
                lambda chain: chain.features,
                self.to_unit_of_observations(chosen.features),
                self.to_unit_of_observations,
            ),
            policies=summarise(lambda chain: chain.policies, self.speak_alone(chosen.policies), self.speak_alone),
            substates=summarise(
                lambda chain: chain.levels, chosen.substates, lambda levels: levels * (1.0 / (chosen_levels - 1))
            ),
            interval=interval,
        )

    @cached_property
    def aligned(self) -> AlignedFeatures:
        """The features aligned to the best draw, with 90% intervals."""
        return self.align()

    # --- diagnostics ----------------------------------------------------------------------------------------

    @cached_property
    def _diagnostics(self):
        import arviz_stats

        names = ("r_hat", "ess_bulk", "ess_tail")
        numbers = {}
        for name in DIAGNOSED:
            trace = self.traces[name]
            if self.n_draws < 4 or np.ptp(trace) == 0:  # nothing moved: no chain can disagree
                numbers[name] = dict.fromkeys(names, float("nan")) | {
                    "r_hat": 1.0 if self.n_draws >= 4 else float("nan")
                }
                continue
            with np.errstate(divide="ignore", invalid="ignore"):  # chains stuck at different values: R-hat is infinite
                numbers[name] = {
                    "r_hat": float(arviz_stats.rhat(trace)) if self.n_chains > 1 else float("nan"),
                    "ess_bulk": float(arviz_stats.ess(trace, method="bulk")),
                    "ess_tail": float(arviz_stats.ess(trace, method="tail", prob=(0.05, 0.95))),
                }
        return numbers

    def diagnostics(self):
        """R-hat and effective sample sizes of quantities that do not depend on the order of the features.

        Returns an `xarray.Dataset` with one variable a measure, over the dimension "quantity".
        """
        import xarray

        return xarray.Dataset(
            {
                measure: ("quantity", [self._diagnostics[name][measure] for name in DIAGNOSED])
                for measure in ("r_hat", "ess_bulk", "ess_tail")
            },
            coords={"quantity": list(DIAGNOSED)},
        )

    def agreement(self) -> str:
        """Say in one sentence whether the chains agree, and what to do if they do not."""
        if self.n_chains < 2:
            return "One chain cannot tell whether it has converged; run at least two (n_chains)."
        if self.n_draws < 4:
            return f"{self.n_draws} draws a chain are too few to tell whether the chains agree; raise n_draws."
        r_hats = {name: self._diagnostics[name]["r_hat"] for name in DIAGNOSED}
        worst = max(r_hats, key=lambda name: np.inf if np.isnan(r_hats[name]) else r_hats[name])
        if self.chains_agree:
            return f"The {self.n_chains} chains agree (largest R-hat {r_hats[worst]:.2f}, {worst})."
        what = "clusters" if self.of_clusters else "features"
        modes = [int(np.bincount(row.astype(int)).argmax()) for row in self.traces["n_features"]]
        numbers = (
            f"; their most frequent numbers of {what} are {', '.join(map(str, modes))}" if len(set(modes)) > 1 else ""
        )
        advice = "raise n_burn_in and n_draws, or n_chains, and fit again"
        if growth := self.growth():
            advice += (
                f"; the number of {what} still grows (from {growth[0]:.0f} to {growth[1]:.0f}): if longer chains do "
                "not end that, bound it (max_features) or give the observations less weight (observation_weight)"
            )
        return f"The {self.n_chains} chains disagree (R-hat of {worst} is {r_hats[worst]:.2f}{numbers}): {advice}."

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
    def chains_agree(self) -> bool:
        """Whether R-hat of every diagnosed quantity is below R_HAT_LIMIT; True if that cannot be asked."""
        if self.n_chains < 2 or self.n_draws < 4:
            return True
        return all(self._diagnostics[name]["r_hat"] < R_HAT_LIMIT for name in DIAGNOSED)

    def plot_ranks(self, figure=None):
        """Draw rank plots of the diagnosed quantities: chains that mix have flat ones. Needs matplotlib."""
        from whyact.plotting import plot_ranks

        return plot_ranks(self, figure)

    # --- export ---------------------------------------------------------------------------------------------

    def to_arviz(self):
        """Return an `xarray.DataTree` that arviz-stats' `summary` and `rhat` accept.

        The groups "posterior" and "sample_stats" hold one number a draw. The group "features" holds the features
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


def normalise(rows: np.ndarray) -> np.ndarray:
    """Scale each row to length one; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
