"""New rows: the same answer whatever else is asked for, in one call or in three, quickly."""

import copy
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.support.plain import PLAIN
from whyact import FeaturePolicyClassifier
from whyact.prediction import BLOCK_SIZE, N_KEPT, pick_draws


@pytest.fixture(scope="module")
def rows(demo):
    """More rows than a block holds, some with gaps, some that nobody explains."""
    rng = np.random.default_rng(0)
    rows = demo.X[rng.integers(0, 120, 2 * BLOCK_SIZE + 100)] + 0.05 * rng.standard_normal((2 * BLOCK_SIZE + 100, 36))
    rows[rng.random(rows.shape) < 0.02] = np.nan
    rows[5], rows[6], rows[7] = 0.0, 50.0, np.nan
    return rows


@pytest.fixture
def map_model(fitted):
    return copy.deepcopy(fitted).set_params(prediction="map")


def test_map_depends_neither_on_the_block_nor_on_threads(map_model, rows):
    together = map_model.judge(rows)
    threaded = map_model.set_params(n_jobs=2).judge(rows)
    shifted = map_model.judge(rows[17:])
    picks = [0, 5, 6, 7, BLOCK_SIZE - 1, BLOCK_SIZE, len(rows) - 1]
    alone = [map_model.judge(rows[n : n + 1]) for n in picks]
    for i in range(3):
        assert np.array_equal(together[i], threaded[i])
        assert np.array_equal(together[i][17:], shifted[i])
        assert np.array_equal(together[i][picks], np.concatenate([one[i] for one in alone]))


@pytest.mark.parametrize("prediction", ["map", "mmse"])
def test_one_judgement_holds_what_three_methods_say(fitted, demo, prediction):
    model = copy.deepcopy(fitted).set_params(prediction=prediction)
    judged = model.judge(demo.X[80:90])
    assert np.array_equal(judged.probabilities, model.predict_proba(demo.X[80:90]))
    assert np.array_equal(judged.substates, model.transform(demo.X[80:90]))
    assert np.array_equal(judged.familiarity, model.familiarity(demo.X[80:90]))


def test_rows_can_be_judged_without_actions(demo):
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=30, n_draws=20, thin=2, n_chains=1, random_state=0).fit(
        demo.X[:80]
    )
    judged = model.judge(demo.X[80:85])
    assert judged.probabilities.shape == (5, 0)
    assert judged.substates.shape == (5, model.n_components_)


def test_the_record_averages_to_the_prediction(fitted, rows):
    predicted, rounds = fitted._predictor.record(rows[:10], n_jobs=2)
    assert np.array_equal(predicted.probabilities, fitted.predict_proba(rows[:10]))
    n_draws = len(pick_draws(fitted.posterior_, fitted.max_prediction_draws))
    assert rounds.shares.shape == (10, N_KEPT, n_draws)
    observed = ~np.isnan(rows[:10]).all(axis=1)
    familiarity = fitted.familiarity(rows[:10])
    assert np.allclose(rounds.shares.mean(axis=(1, 2))[observed], familiarity[observed], atol=1e-12)
    assert np.allclose(rounds.substates * 99, np.rint(rounds.substates * 99))


@pytest.mark.parametrize("prediction", ["map", "mmse"])
def test_nothing_is_familiar_where_nothing_is_observed(fitted, demo, prediction):
    model = copy.deepcopy(fitted).set_params(prediction=prediction)
    rows = np.vstack([demo.X[80], np.full(36, np.nan), demo.X[81]])
    familiarity = model.familiarity(rows)
    assert familiarity[1] == model.judge(rows).familiarity[1] == 0
    assert familiarity[[0, 2]].min() > 0.9
    assert np.array_equal(familiarity, model._predictor.record(rows)[0].familiarity) or prediction == "map"
    if prediction == "mmse":  # the features of the demonstrations still speak
        assert np.abs(model.predict_proba(rows)[1] - 0.2).max() > 0.01


def test_one_row_is_answered_at_once(map_model, rows):
    """The aim is below a millisecond; a busy machine gets five."""
    map_model.predict_proba(rows[:1])
    times = []
    for row in rows[:50]:
        start = time.perf_counter()
        map_model.predict_proba(row.reshape(1, -1))
        times.append(time.perf_counter() - start)
    assert np.median(times) < 5e-3


@pytest.mark.parametrize("name", ["predict_rows_by_mixture", "predict_rows_by_pattern", "weigh_row"])
def test_kernels_are_found_in_the_cache_again(name):
    """numba's cache looks at the variables that a closure holds; they are other objects in every process."""
    from whyact.alternatives.pattern import new_rows as of_patterns
    from whyact.sampler import new_rows

    module = of_patterns if name.endswith("pattern") else new_rows
    assert getattr(module, name).py_func.__closure__ is None


CODE = """
import numpy as np
from whyact import FeaturePolicyClassifier, load_demo
demo = load_demo()
model = FeaturePolicyClassifier(
    combination="mixture", n_burn_in=5, n_draws=5, n_chains=1, prediction="map", n_jobs={n_jobs}, random_state=0
).fit(demo.X, demo.y)
model.predict_proba(demo.X)
X = np.tile(demo.X, (2000, 1))
print("started", flush=True)
try:
    while True:
        model.predict_proba(X)
except KeyboardInterrupt:
    print("interrupted", model.predict_proba(demo.X).shape, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal of POSIX")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_is_heard_between_blocks(n_jobs):
    process = subprocess.Popen(
        [sys.executable, "-c", CODE.format(n_jobs=n_jobs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline().strip() == "started"
        time.sleep(1.0)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert out.strip() == "interrupted (120, 5)", err
    finally:
        process.kill()


@pytest.mark.parametrize("combination", ["mixture", "product"])
def test_chains_are_compared_by_their_own_predictions(combination, demo):
    options = PLAIN | {"combination": combination, "n_burn_in": 40, "n_draws": 40, "thin": 4, "n_chains": 2}
    model = FeaturePolicyClassifier(**options, random_state=0).fit(demo.X[:60], demo.y[:60])
    predictor = model._predictor
    halves = predictor.split_by_chain()
    shares = np.array([len(half.splits) - 1 for half in halves]) / (len(predictor.many_draws.splits) - 1)
    rows = demo.X[60:90]
    n_kept = N_KEPT if predictor.draws_substates else 0
    alone = [predictor._run(rows, half, n_kept, None)[0].probabilities for half in halves]
    # the average over all draws is that of both chains; a product draws no random numbers, so it is the same
    if combination == "product":
        assert np.allclose(np.tensordot(shares, alone, 1), model.predict_proba(rows))
    near = 0.75 * demo.X[:60] + 0.25 * np.roll(demo.X[:60], -30, axis=0)
    alone = [predictor._run(near, half, n_kept, None)[0].probabilities for half in halves]
    assert model.posterior_.distance == pytest.approx(0.5 * np.abs(alone[0] - alone[1]).sum(axis=1).mean())


def test_one_chain_has_no_other_to_compare_with(demo):
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=20, n_draws=20, n_chains=1).fit(demo.X[:40], demo.y[:40])
    assert model.posterior_.distance is None
