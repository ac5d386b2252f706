"""Weights of chains: the optimum against a grid, the prior, draws in proportion, and what is then shown and stored."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import whyact
from tests.support.plain import PLAIN
from tests.test_posterior import FEATURES, POLICIES, SUBSTATES, fill_chain, make_state, shuffle_columns
from whyact import FeaturePolicyClassifier
from whyact.errors import ModelFileError
from whyact.explanation.support import say_who_finds_them
from whyact.posterior import Posterior
from whyact.prediction import pick_draws
from whyact.report.summary import summarise
from whyact.report.words import say_chains
from whyact.sampler.draws import ChainDraws
from whyact.stacking import find_chain_weights, is_better, share_out, weigh_chains
from whyact.storage.model_file import write_model

QUICK = {**PLAIN, "n_burn_in": 30, "n_draws": 60, "thin": 2, "n_chains": 3, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")


# --- the weights --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pseudo_count", [1.0, 10.0])
def test_the_weights_are_the_best_on_a_grid(seed, pseudo_count):
    rng = np.random.default_rng(seed)
    probabilities = rng.beta([2.0, 3.0, 1.0], [1.0, 1.0, 1.5], (60, 3))
    grid = np.array([w for w in product(np.arange(0.005, 1.0, 0.005), repeat=2) if sum(w) < 0.999])
    grid = np.column_stack([grid, 1.0 - grid.sum(axis=1)])
    gains = np.log(grid @ probabilities.T).sum(axis=1) + pseudo_count * np.log(grid).sum(axis=1)
    found = find_chain_weights(probabilities, pseudo_count)
    assert found.sum() == pytest.approx(1.0)
    assert found == pytest.approx(grid[np.argmax(gains)], abs=0.005)
    gain = np.log(probabilities @ found).sum() + pseudo_count * np.log(found).sum()
    assert gain >= gains.max()


def test_chains_that_predict_alike_have_exactly_equal_weights():
    of_one = np.random.default_rng(0).random(200)
    assert np.array_equal(find_chain_weights(np.tile(of_one[:, None], 3)), np.full(3, 1 / 3))
    assert find_chain_weights(of_one[:, None]).tolist() == [1.0]
    assert find_chain_weights(np.zeros((0, 4))).tolist() == [0.25] * 4


def test_a_chain_that_predicts_worse_gets_little_weight():
    rng = np.random.default_rng(1)
    good = np.clip(0.8 + 0.03 * rng.standard_normal((600, 3)), 0.05, 0.99)
    bad = np.full((600, 1), 0.2)
    weights = find_chain_weights(np.hstack([good, bad]))
    assert weights[3] < 0.05
    assert weights[:3].min() > 0.2


def test_chains_that_know_different_things_share_the_weight():
    """Each is right about one half of the rows, so the best is both, though a third is better than either."""
    rows = np.arange(400) % 2
    probabilities = np.column_stack([np.where(rows, 0.99, 0.01), np.where(rows, 0.01, 0.99), np.full(400, 0.2)])
    assert find_chain_weights(probabilities) == pytest.approx([0.498, 0.498, 0.004], abs=0.001)


def test_few_actions_say_little():
    """Six actions, which one chain predicts far worse, leave it half of an equal weight; 240 do not."""
    probabilities = np.tile([0.9, 0.9, 0.9, 0.3], (6, 1))
    few, many = find_chain_weights(probabilities), find_chain_weights(np.tile(probabilities, (40, 1)))
    assert few[:3].max() < 0.3
    assert many[3] < 0.01 < 0.12 < few[3]


def test_where_chains_differ_by_chance_ten_actions_leave_weights_near_equal():
    rng = np.random.default_rng(5)
    least = [find_chain_weights(np.clip(rng.beta(4, 2, (10, 4)), 0.05, 1)).min() for _ in range(50)]
    assert np.mean(least) > 0.18


def test_what_nobody_thought_possible_says_nothing():
    probabilities = np.tile([0.5, 0.4], (50, 1))
    more = np.vstack([probabilities, [0.0, 0.0]])
    assert np.isfinite(find_chain_weights(more)).all()
    assert find_chain_weights(more) == pytest.approx(find_chain_weights(probabilities), abs=0.01)


def test_draws_of_a_chain_are_averaged_before_chains_are_weighed():
    rng = np.random.default_rng(2)
    draws, chains = rng.random((5, 80)), np.array([0, 0, 1, 1, 1])
    expected = find_chain_weights(np.column_stack([draws[:2].mean(axis=0), draws[2:].mean(axis=0)]))
    assert np.array_equal(weigh_chains(draws, chains, 2, surely=-np.inf), expected)


def test_weights_are_equal_unless_others_surely_predict_better():
    """Chains that differ by chance are not told apart; one that is worse is, once there are rows enough to be sure."""
    rng = np.random.default_rng(6)
    alike = rng.beta(8, 2, (4, 300))
    shares = [np.ptp(weigh_chains(rng.permuted(alike, axis=1)[:, :40], np.arange(4), 4)) > 0 for _ in range(40)]
    assert np.mean(shares) < 0.5
    worse = np.vstack([alike[:3], alike[3] ** 3])
    assert weigh_chains(worse, np.arange(4), 4)[3] < 0.1
    assert np.array_equal(weigh_chains(worse[:, :1], np.arange(4), 4), np.full(4, 0.25))


def test_better_is_judged_by_the_mean_gain_and_its_error():
    probabilities = np.column_stack([np.tile([0.9, 0.5], 20), np.tile([0.6, 0.6], 20)])
    first, second = np.eye(2)
    gains = np.log(probabilities[:, 0] / probabilities[:, 1])
    ratio = gains.mean() / (gains.std(ddof=1) / np.sqrt(40))
    assert is_better(probabilities, first, second, ratio - 0.01)
    assert not is_better(probabilities, first, second, ratio + 0.01)
    assert not is_better(probabilities, first, first, 0.0)


# --- draws in proportion ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_chains", [1, 2, 3, 4, 7, 30, 49])
@pytest.mark.parametrize(("n_draws", "max_draws"), [(300, 200), (20, 200), (1, 200), (300, 1), (10, 33)])
def test_with_equal_weights_draws_are_those_of_before(n_chains, n_draws, max_draws):
    numbers = share_out(np.full(n_chains, 1 / n_chains), n_draws, max_draws)
    assert numbers.tolist() == [max(1, min(n_draws, max_draws // n_chains))] * n_chains


def test_draws_are_shared_out_in_proportion():
    assert share_out(np.array([0.5, 0.3, 0.15, 0.05]), 300, 200).tolist() == [100, 60, 30, 10]
    assert share_out(np.array([0.5, 0.25, 0.25]), 300, 200).tolist() == [99, 50, 49]  # of 198, as with equal weights
    rng = np.random.default_rng(3)
    for weights in rng.dirichlet(np.full(5, 0.4), 200):
        numbers = share_out(weights, 300, 100)
        assert numbers.sum() == 100
        assert (numbers[weights > 0.01] > 0).all()
        assert np.abs(numbers - 100 * weights).max() < 5


def test_no_chain_gives_more_draws_than_it_has():
    """Then the others give fewer: what predicts is the average in proportion to the weights."""
    weights = np.array([0.8, 0.1, 0.1])
    assert share_out(weights, 40, 200).tolist() == [40, 5, 5]
    assert share_out(weights, 1, 200).tolist() == [1, 1, 1]
    assert share_out(np.array([1.0, 0.0]), 40, 200).tolist() == [40, 0]


def test_draws_of_a_chain_are_spread_evenly():
    chains = [fill_chain(40, 30, seed) for seed in range(2)]
    picks = pick_draws(Posterior(chains, chain_weights=np.array([0.75, 0.25])), 8)
    assert picks == [(0, draw) for draw in (0, 8, 16, 23, 31, 39)] + [(1, 0), (1, 39)]
    assert pick_draws(Posterior(chains), 4) == [(0, 0), (0, 39), (1, 0), (1, 39)]


# --- what is shown ------------------------------------------------------------------------------------------


def fill_with_surplus(n_draws):
    """A chain that always holds a third feature."""
    return fill_chain(n_draws, 0, 5)


def test_what_only_a_chain_without_weight_holds_is_not_shown():
    chains = [fill_chain(40, 40, 0), fill_with_surplus(40), fill_with_surplus(40)]
    assert len(Posterior(chains).consensus().presence) == 3
    posterior = Posterior(chains, chain_weights=np.array([0.94, 0.03, 0.03]))
    assert len(posterior.consensus().presence) == 2
    assert posterior.representatives.draw.chain == 0


def test_presence_is_averaged_with_the_weights():
    chains = [fill_chain(40, 30, 0), fill_with_surplus(40)]
    consensus = Posterior(chains, chain_weights=np.array([0.3, 0.7])).consensus()
    assert consensus.presence == pytest.approx([1.0, 1.0, 0.3 * 0.25 + 0.7])
    assert consensus.support.tolist() == [[1.0, 1.0, 0.25], [1.0, 1.0, 1.0]]
    assert consensus.in_all_chains.tolist() == [True, True, False]


def make_posterior(weights, distance=0.01):
    """Three chains with the same features, and one with others."""
    chains = [fill_chain(40, 40, seed) for seed in range(3)] + [shuffle_columns(fill_chain(40, 40, 3))]
    return Posterior(chains, distance=distance, chain_weights=np.array(weights))


def test_a_chain_without_weight_is_not_asked():
    equal, posterior = make_posterior([0.25] * 4), make_posterior([0.33, 0.33, 0.33, 0.01])
    assert not equal.chains_agree
    assert equal.share_in_common == 0.0
    assert "weight" not in equal.agreement()
    assert posterior.chains_agree
    assert posterior.share_in_common == 1.0
    assert posterior.consensus().in_all_chains.all()
    assert posterior.agreement().startswith("The 3 chains that have weight agree: ")
    assert posterior.agreement().endswith("1 of the 4 chains has next to no weight, because it predicts worse.")


def test_one_chain_with_weight_is_no_agreement():
    posterior = make_posterior([0.97, 0.01, 0.01, 0.01])
    assert not posterior.chains_agree
    sentence = posterior.agreement()
    assert "3 of the 4 chains have next to no weight, because they predict worse" in sentence
    assert "more of them (n_chains, or --n-chains on the command line)" in sentence


def test_weights_are_told_where_they_are_clearly_unequal():
    assert "0.30, 0.30, 0.30, 0.10" in make_posterior([0.3, 0.3, 0.3, 0.1]).agreement()
    assert "weight" not in make_posterior([0.28, 0.28, 0.28, 0.16]).agreement()


def test_policies_and_intervals_are_those_of_chains_with_weight():
    def fill(policies):
        chain = ChainDraws(make_state(FEATURES, SUBSTATES, POLICIES), 5)
        for _ in range(6):
            chain.append(make_state(FEATURES, SUBSTATES, policies), -1.0, -1.0)
        return chain

    chains = [fill(POLICIES), fill(POLICIES), fill(POLICIES[:, ::-1])]
    posterior = Posterior(chains, averages_policies=True, chain_weights=np.array([0.5, 0.5, 0.0]))
    order = posterior.representatives.features
    assert np.allclose(posterior.chosen_on_average.policies, POLICIES[order])
    assert np.allclose(posterior.aligned.policies.high, POLICIES[order])
    equal = Posterior(chains, averages_policies=True)
    assert not np.allclose(equal.chosen_on_average.policies, POLICIES[equal.representatives.features])


# --- fitted models ------------------------------------------------------------------------------------------


def mix_up(chain):
    """The same draws, with features in other columns."""
    mixed = ChainDraws(chain.state(0), chain.n_levels)
    order = np.random.default_rng(0).permutation(chain.features.shape[1])
    for i in range(len(chain)):
        state = chain.state(i)
        mixed.append(state._replace(features=state.features[:, order]), -5.0, -1.0)
    return mixed


@pytest.fixture(scope="module")
def model(demo):
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 300, "combination": "product"})
    result = model.fit(demo.X[:80], demo.y[:80])._result
    chains = [*result.chains[:2], mix_up(result.chains[2])]
    model._set_result(model._complete(replace(result, chains=chains, cut=None, chain_weights=None, chosen=None)))
    return model


def test_a_fit_weighs_its_chains(model):
    """The third chain is in a poor mode."""
    weights = model.posterior_.chain_weights
    assert weights.sum() == pytest.approx(1.0)
    assert weights[2] < min(0.2, weights[:2].min())
    numbers = np.bincount(
        [pick.chain for pick in pick_draws(model.posterior_, model.max_prediction_draws)], minlength=3
    )
    assert numbers == pytest.approx(weights * numbers.sum(), abs=1)


def test_weights_come_back_with_the_same_predictions(model, demo, tmp_path):
    model.save(tmp_path / "model.nc")
    loaded = whyact.load(tmp_path / "model.nc")
    assert np.array_equal(loaded.posterior_.chain_weights, model.posterior_.chain_weights)
    assert np.array_equal(loaded.predict_proba(demo.X[80:]), model.predict_proba(demo.X[80:]))
    assert str(loaded) == str(model)
    assert loaded.posterior_.agreement() == model.posterior_.agreement()


def test_predictions_with_weights_are_better_than_with_equal_ones(model, demo):
    result = replace(model._result, chain_weights=None)
    alike = model._make_predictor(replace(result, cut=None), model._summarise(result))
    alike = alike.learn(result.observations, result.actions, None)
    codes = np.searchsorted(model.classes_, demo.y[80:])
    weighed, equal = (
        np.log(
            predictor.predict(demo.X[80:], one_draw=False, maximise=False).probabilities[np.arange(40), codes]
        ).mean()
        for predictor in (model._predictor, alike)
    )
    assert weighed > equal


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ([0.5, 0.5], "does not match its chains"),
        ([1, 0, 0], "does not match its chains"),
        ([0.5, 0.5, np.nan], "is wrong"),
        ([0.7, 0.7, -0.4], "is wrong"),
        ([0.3, 0.3, 0.3], "does not add up to one"),
        ([0.0, 0.0, 0.0], "does not add up to one"),
    ],
)
def test_wrong_weights_are_refused(weights, why, demo, tmp_path):
    model = FeaturePolicyClassifier(**QUICK).fit(demo.X[:40], demo.y[:40])
    result = replace(model._result, chain_weights=np.array(weights))
    write_model(tmp_path / "broken.nc", result, model.posterior_)
    with pytest.raises(ModelFileError, match=f"'chain_weights' {why}"):
        whyact.load(tmp_path / "broken.nc")


def test_policies_for_predictions_must_match_the_weights(demo, tmp_path):
    model = FeaturePolicyClassifier(**QUICK | {"combination": "product"}).fit(demo.X[:40], demo.y[:40])
    result = replace(model._result, chain_weights=np.array([0.9, 0.1, 0.0]))
    write_model(tmp_path / "broken.nc", result, model.posterior_)
    with pytest.raises(ModelFileError, match="do not match its draws"):
        whyact.load(tmp_path / "broken.nc")


def test_chains_weigh_alike_where_nothing_can_tell_them_apart(demo):
    for options, actions in (
        ({"n_chains": 1}, demo.y[:40]),
        ({"sampler": "as-published", "n_chains": 2}, demo.y[:40]),
        ({}, None),
        ({}, demo.y[:40]),  # policies of a mixture have seen all actions
        ({"decisiveness": "auto"}, demo.y[:40]),
    ):
        model = FeaturePolicyClassifier(**QUICK | options).fit(demo.X[:40], actions)
        n_chains = model.posterior_.n_chains
        assert np.array_equal(model.posterior_.chain_weights, np.full(n_chains, 1 / n_chains))


def test_texts_name_the_chains_that_were_asked(demo):
    model = FeaturePolicyClassifier(**QUICK | {"n_chains": 4}).fit(demo.X[:40], demo.y[:40])
    told = {}
    for name, weights in {"three": [0.3, 0.4, 0.29, 0.01], "one": [0.97, 0.01, 0.01, 0.01]}.items():
        model._set_result(replace(model._result, chain_weights=np.array(weights), chosen=None))
        told[name] = str(model), say_who_finds_them(model.posterior_), say_chains(summarise(model))
    assert "ll 3 chains that have weight find" in told["three"][0]
    assert "ll 3 chains that have weight find" in told["three"][1]
    assert "The only chain that has weight finds" in told["one"][0]
    assert told["one"][1].startswith("the only chain that has weight finds")
    assert told["one"][2] == ""  # it is the first of the doubts
