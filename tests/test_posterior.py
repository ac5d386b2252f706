"""Draws of a changing K: storage, modal K, the chosen draw, alignment, diagnostics, export."""

import arviz_stats
import numpy as np
import pytest

from whyact.model import State
from whyact.posterior import DIAGNOSED, Chosen, DrawId, Posterior
from whyact.sampler.draws import ChainDraws


def make_state(features, substates, policies, noise_variance=0.1):
    return State(np.array(substates), np.array(features), np.array(policies), noise_variance, 1, 1, 1, 1, 1, 1)


FEATURES = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]])
SUBSTATES = np.array([[0.5, 1.0, 0.0, 0.25], [0.0, 0.5, 1.0, 0.75]])
POLICIES = np.array([[0.9, 0.1], [0.2, 0.8]])


def fill_chain(n_draws, extra_from, seed):
    """Draws that hold two features in random order, and a third one from `extra_from` on."""
    rng = np.random.default_rng(seed)
    chain = ChainDraws(make_state(FEATURES, SUBSTATES, POLICIES), 5)
    for i in range(n_draws):
        order = rng.permutation(2)
        features = FEATURES[order] * (1 + 0.01 * rng.standard_normal((2, 1)))
        substates, policies = SUBSTATES[order], POLICIES[order]
        if i >= extra_from:
            features = np.vstack([features, [0.0, 0.0, 3.0]])
            substates = np.vstack([substates, [0.0, 0.0, 0.0, 1.0]])
            policies = np.vstack([policies, [0.5, 0.5]])
        chain.append(
            make_state(features, substates, policies, 0.1 + 0.01 * rng.random()),
            -5.0 + rng.random(),
            -1.0 - rng.random(),
        )
    return chain


@pytest.fixture
def posterior():
    return Posterior([fill_chain(40, 30, 0), fill_chain(40, 30, 1)], unit=2.0)


def test_draws_are_flat_with_row_splits(posterior):
    chain = posterior.chains[0]
    assert chain.features.shape == (2 * 30 + 3 * 10, 3)
    assert chain.levels.dtype == np.uint8
    assert np.array_equal(np.diff(chain.row_splits), [2] * 30 + [3] * 10)
    assert np.isfinite(chain.features).all()
    state = chain.state(35)
    assert state.features.shape == (3, 3)
    assert set(np.unique(state.substates)) <= {0, 0.25, 0.5, 0.75, 1.0}


def test_number_of_features_has_probabilities(posterior):
    assert posterior.n_features_probabilities == {2: 0.75, 3: 0.25}
    assert posterior.modal_n_features == 2


def test_best_draw_is_the_densest_if_all_are_confirmed_alike(posterior):
    best = posterior.best_draw()
    assert posterior.traces["n_features"][best] == 2
    inside = posterior.traces["n_features"] == 2
    # the policies are the same in all draws, so the joint density decides
    assert posterior.traces["log_joint"][best] == posterior.traces["log_joint"][inside].max()


def test_highest_joint_draw_ignores_the_number(posterior):
    posterior.traces["log_joint"][1, 39] = 100.0
    assert posterior.highest_joint_draw() == DrawId(1, 39)
    assert posterior.traces["n_features"][posterior.best_draw()] == 2


def test_draws_of_a_product_keep_their_base_policy_and_are_judged_by_their_density_alone():
    """The density of a product is in log odds already; that of a mixture counts in logarithms."""
    bases = np.array([[0.5, 0.5], [0.8, 0.2], [0.3, 0.7]])
    policies = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.999, 0.001], [0.2, 0.8]], [[0.5, 0.5], [0.2, 0.8]]])
    plain = make_state(FEATURES, SUBSTATES, POLICIES)
    multiplied = plain._replace(policy_scale=1.7, base_policy=bases[0])
    chains = {}
    for kind, state in (("mixture", plain), ("product", multiplied)):
        chains[kind] = ChainDraws(state, 5)
        for i, log_joint in enumerate([-1.0, 0.0, -2.0]):
            base_policy = bases[i] if kind == "product" else state.base_policy
            chains[kind].append(state._replace(policies=policies[i], base_policy=base_policy), log_joint, 0.0)
    product = chains["product"]
    assert np.array_equal(product.vectors["base_policy"], bases)
    assert chains["mixture"].vectors == {}
    assert np.array_equal(product.state(1).base_policy, bases[1])
    assert product.state(1).policy_scale == 1.7
    assert len(chains["mixture"].state(1).base_policy) == 0
    # the second is the densest, but not with respect to the logarithms of its policies
    assert Posterior([product]).best_draw() == DrawId(0, 1)
    assert Posterior([chains["mixture"]]).best_draw() != DrawId(0, 1)
    again = ChainDraws(multiplied, 5)
    again.extend(product)
    assert np.array_equal(again.state(2).base_policy, bases[2])


# --- the consensus ------------------------------------------------------------------------------------------


def test_features_that_few_draws_hold_are_not_in_the_consensus():
    """Even if most draws of one chain hold them, and that chain is the densest."""
    invents = fill_chain(40, 0, 0)
    posterior = Posterior([invents, fill_chain(40, 40, 1), fill_chain(40, 30, 2)])
    posterior.traces["log_joint"][0] += 100.0
    assert posterior.modal_n_features == 2
    consensus = posterior.consensus()
    assert consensus.features.value.shape == (2, 3)
    assert consensus.support.tolist() == [[1.0, 1.0]] * 3
    assert consensus.in_all_chains.all()
    # the densest draw of the densest chain, without its third feature
    assert consensus.reference.chain == 0
    assert len(posterior.representatives.features) == 2
    assert posterior.align(consensus.reference).support.tolist() == [[1, 1, 1], [1, 1, 0], [1, 1, 0.25]]
    assert posterior.chosen.features.shape == (2, 3)
    assert posterior.chosen.substates.shape == (2, 4)
    assert {label for labels in posterior.labels for label in labels} == {-1, 0, 1}


def test_features_that_most_draws_hold_are_in_the_consensus_though_the_densest_chain_lacks_them():
    posterior = Posterior([fill_chain(40, 40, 0), fill_chain(40, 0, 1), fill_chain(40, 5, 2)])
    posterior.traces["log_joint"][0] += 100.0
    consensus = posterior.consensus()
    assert consensus.reference.chain in (1, 2)
    assert consensus.presence == pytest.approx([1.0, 1.0, (0 + 40 + 35) / 120])
    assert consensus.in_all_chains.tolist() == [True, True, False]


def test_half_of_the_draws_is_not_enough():
    posterior = Posterior([fill_chain(40, 40, 0), fill_chain(40, 0, 1)])
    assert len(posterior.consensus().presence) == 2


def test_without_anything_in_common_one_draw_is_shown():
    def fill(d):
        chain = ChainDraws(make_state(FEATURES, SUBSTATES, POLICIES), 5)
        features, substates = np.eye(3)[[d]], SUBSTATES[:1]
        for _ in range(6):
            chain.append(make_state(features, substates, POLICIES[:1]), -1.0 - d, -1.0)
        return chain

    consensus = Posterior([fill(0), fill(1), fill(2)]).consensus()
    assert consensus.presence == pytest.approx([1 / 3])
    assert not consensus.in_all_chains.any()
    assert consensus.reference.chain == 0  # the densest


def test_what_stands_for_all_is_not_searched_for_if_it_is_known(posterior):
    chosen = Chosen(DrawId(1, 35), np.array([2, 0]))
    known = Posterior(posterior.chains, unit=2.0, chosen=chosen)
    assert known.best_draw() == DrawId(1, 35)
    assert np.array_equal(known.chosen.features, posterior.chains[1].state(35).features[[2, 0]])
    assert known.consensus().presence.tolist() == [0.25, 1.0]


def test_one_draw_as_it_is_can_stand_for_all(posterior):
    chosen = {}
    for representative in ("consensus", "modal", "joint"):
        one = Posterior(posterior.chains, representative=representative)
        one.traces["log_joint"][1, 39] = 100.0  # has three features
        one.traces["log_joint"][0, 7] = 50.0
        chosen[representative] = one.best_draw(), len(one.chosen.features)
    assert chosen == {"consensus": ((0, 7), 2), "modal": ((0, 7), 2), "joint": ((1, 39), 3)}


def test_features_are_aligned_whatever_their_order(posterior):
    aligned = posterior.align()
    assert np.allclose(aligned.presence, 1.0)
    # sorted by how much of each is in the rows, in the unit of the observations
    assert np.allclose(aligned.features.value, 2.0 * FEATURES[[1, 0]], rtol=0.02)
    assert np.allclose(aligned.policies.value, POLICIES[[1, 0]])
    assert np.allclose(aligned.substates.value, SUBSTATES[[1, 0]])
    assert np.all(aligned.features.low <= aligned.features.value + 1e-12)
    assert np.all(aligned.features.high >= aligned.features.value - 1e-12)


def test_a_feature_of_some_draws_has_its_presence(posterior):
    aligned = posterior.align(DrawId(0, 39))
    assert aligned.presence.tolist() == [1.0, 1.0, 0.25]


def test_a_state_is_given_in_the_unit_of_the_observations(posterior):
    state = posterior.state(0, 0)
    assert np.allclose(state.features, 2.0 * posterior.chains[0].state(0).features)
    assert state.noise_variance == pytest.approx(4.0 * posterior.chains[0].state(0).noise_variance)


def test_diagnostics_are_label_invariant_numbers(posterior):
    diagnostics = posterior.diagnostics()
    assert list(diagnostics["quantity"].values) == list(DIAGNOSED)
    assert np.isfinite(diagnostics["r_hat"]).all()
    assert np.isfinite(diagnostics["ess_bulk"]).all()


def test_chains_that_agree_say_so(posterior):
    # both chains change K at the same draw
    assert posterior.agreement().startswith("The 2 chains agree") == posterior.chains_agree


def test_what_is_in_common_is_counted_by_what_features_explain():
    """The two features explain 1.75 * 1.5 and 2.25 * 2 in every draw, the third one 3 in those of one chain."""
    posterior = Posterior([fill_chain(40, 40, 0), fill_chain(40, 0, 1)])
    both = 1.75 * 1.5 + 2.25 * 2.0
    assert posterior.share_in_common == pytest.approx(2 * both / (2 * both + 3.0), abs=0.01)
    assert posterior.chains_agree
    assert "83% of what the features explain is in features that all of them find" in posterior.agreement()


def shuffle_columns(chain):
    """Other features in the same rows, as a chain has them that is caught in another mode."""
    shuffled = ChainDraws(chain.state(0), 5)
    for i in range(len(chain)):
        state = chain.state(i)
        shuffled.append(state._replace(features=state.features[:, [2, 0, 1]]), -5.0, -1.0)
    return shuffled


def test_chains_that_disagree_say_so_and_what_to_do():
    posterior = Posterior([fill_chain(40, 40, 0), shuffle_columns(fill_chain(40, 0, 1))], distance=0.01)
    assert not posterior.chains_agree
    sentence = posterior.agreement()
    assert "disagree" in sentence
    assert "2, 3" in sentence
    assert "only 0% of what the features explain" in sentence
    assert "Trust the features that all chains find" in sentence
    assert "raise n_burn_in" not in sentence  # nothing grows, so longer chains would not help
    assert "\n" not in sentence


def test_chains_that_predict_differently_disagree():
    chains = [fill_chain(40, 40, 0), fill_chain(40, 40, 1)]
    assert Posterior(chains, distance=0.05).chains_agree
    posterior = Posterior(chains, distance=0.2)
    assert not posterior.chains_agree
    assert "their predictions differ by 0.20 on average" in posterior.agreement()
    assert "more of them (n_chains, or --n-chains on the command line)" in posterior.agreement()
    assert "Trust" not in posterior.agreement()  # the features are the same


def test_one_chain_cannot_tell():
    posterior = Posterior([fill_chain(40, 30, 0)])
    assert "With a single chain, convergence cannot be checked" in posterior.agreement()
    assert posterior.chains_agree


def test_arviz_accepts_the_export(posterior):
    tree = posterior.to_arviz()
    summary = arviz_stats.summary(tree)
    assert {"n_features", "noise_variance", "ibp_mass"} <= set(summary.index)
    rhat = arviz_stats.rhat(tree)
    assert np.isfinite(float(rhat["noise_variance"]))
    flat = tree["features"]
    assert flat["features"].shape == (180, 3)
    assert int(flat["row_splits"][-1]) == 180
    assert flat["row_splits"].shape == (81,)


def test_rank_plots_show_every_diagnosed_quantity(posterior):
    figure = posterior.plot_ranks()
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["number of features", "noise variance", "log joint", "number of active", "log action likelihood"]


def test_a_posterior_needs_draws():
    with pytest.raises(ValueError, match="at least one draw"):
        Posterior([])


def test_draws_without_any_feature_are_kept():
    chain = ChainDraws(make_state(FEATURES, SUBSTATES, POLICIES), 5)
    for _ in range(6):
        chain.append(make_state(np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 2))), -1.0, -1.0)
    posterior = Posterior([chain, chain])
    assert posterior.modal_n_features == 0
    assert posterior.align().presence.shape == (0,)
    assert posterior.chosen.features.shape == (0, 3)


def test_a_feature_that_no_row_holds_is_no_obstacle():
    chain = ChainDraws(make_state(FEATURES, SUBSTATES, POLICIES), 5)
    features = np.vstack([FEATURES, [0.0, 0.0, 9.0]])
    substates = np.vstack([SUBSTATES, np.zeros(4)])
    for _ in range(6):
        chain.append(make_state(features, substates, np.vstack([POLICIES, [0.5, 0.5]])), -1.0, -1.0)
    posterior = Posterior([chain])
    aligned = posterior.align(DrawId(0, 0))
    assert aligned.presence.tolist() == [1.0, 1.0, 0.0]
    assert aligned.features.value[2].tolist() == [0.0, 0.0, 9.0]
    assert posterior.consensus().presence.tolist() == [1.0, 1.0]
