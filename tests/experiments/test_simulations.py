"""The paper's simulation study: ground truth, measures, peers, rows that survive, the page."""

import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from typer.testing import CliRunner

from experiments.harness.estimates import average, root_mean_square
from experiments.harness.ground_truth import DataSet
from experiments.harness.store import RowStore, StudyError, check_settings, locked
from experiments.page import app as page_app
from experiments.simulations.__main__ import app as simulations_app
from experiments.simulations.measures import compare_with_truth
from experiments.simulations.page import write_page
from experiments.simulations.peers import ACCURACIES, COUNTS, run_peers
from experiments.simulations.study import (
    N_TRAIN,
    Design,
    peer_rows,
    run_sampler,
    run_study,
    sampler_rows,
    timing_rows,
)
from experiments.simulations.summary import read_results
from tests.support.paths import RESULTS
from whyact.simulation import draw_ground_truth

runner = CliRunner()
SMALL = Design(n_features=(5,), snr_db=(20.0, 30.0), n_runs=2, sweeps=20, peers=False)


# --- ground truth -----------------------------------------------------------------------------------------------


def test_ground_truth_follows_the_paper():
    truths = [draw_ground_truth(np.random.default_rng(i), 9, 15.0) for i in range(200)]
    features = np.stack([truth.features for truth in truths])
    assert features.shape == (200, 9, 30)
    assert np.mean(features > 0) == pytest.approx(0.5, abs=0.01)
    # the mean of gamma_w is 100 / 99
    assert features[features > 0].mean() == pytest.approx(100 / 99, abs=0.03)
    for truth in truths:
        np.testing.assert_allclose(truth.substates.sum(axis=1), 1.0)
        signal_power = np.mean((truth.substates @ truth.features) ** 2)
        assert 10 * np.log10(signal_power / truth.noise_variance) == pytest.approx(15.0)
        np.testing.assert_array_equal(truth.actions, (truth.substates @ truth.policies).argmax(axis=1))
        np.testing.assert_allclose(np.sort(truth.policies, axis=1)[:, -1], 0.95)
    noise = [
        np.std(truth.observations - truth.substates @ truth.features) ** 2 / truth.noise_variance for truth in truths
    ]
    assert np.mean(noise) == pytest.approx(1.0, abs=0.01)


def test_drawn_actions_follow_the_mixture():
    truth = draw_ground_truth(np.random.default_rng(0), 5, 20.0, n_rows=20_000, peak=0.7, action_rule="drawn")
    mixture = truth.substates @ truth.policies
    shares = np.bincount(truth.actions, minlength=4) / len(mixture)
    # four standard errors
    np.testing.assert_allclose(shares, mixture.mean(axis=0), atol=4 * 0.5 / np.sqrt(len(mixture)))


def test_data_sets_depend_on_their_cell_and_run_alone():
    first, again = DataSet(5, 20.0, 3, seed=1).draw(), DataSet(5, 20.0, 3, seed=1).draw()
    np.testing.assert_array_equal(first.observations, again.observations)
    for other in (DataSet(5, 20.0, 4, seed=1), DataSet(5, 25.0, 3, seed=1), DataSet(5, 20.0, 3, seed=2)):
        assert not np.array_equal(first.observations, other.draw().observations)


def test_training_rows_always_hold_two_actions():
    # with two features a quarter of all first draws have one favourite action only
    for run in range(40):
        assert len(np.unique(DataSet(2, 20.0, run).draw().train[1])) > 1


# --- measures ---------------------------------------------------------------------------------------------------


@pytest.fixture
def truth():
    return DataSet(5, 20.0, 0).draw()


def test_the_truth_has_no_error(truth):
    errors = compare_with_truth(truth.features, truth.substates, truth.policies, *truth[3:1:-1], truth.policies)
    assert errors == (0.0, 0.0, 0.0, 0.0)


def test_errors_do_not_depend_on_order_and_scale(truth):
    rng = np.random.default_rng(0)
    features = truth.features + 0.05 * rng.random(truth.features.shape)
    substates = truth.substates * rng.uniform(0.9, 1.1, truth.substates.shape)
    policies = np.full_like(truth.policies, 0.25)
    known = (truth.features, truth.substates, truth.policies)
    errors = compare_with_truth(features, substates, policies, *known)
    order, scale = rng.permutation(5), np.array([1e-6, 0.3, 1.0, 50.0, 1e6])
    moved = compare_with_truth(features[order] * scale[:, None], substates[:, order] / scale, policies[order], *known)
    np.testing.assert_allclose(errors, moved, rtol=1e-9)
    assert min(errors) > 0


def test_a_missing_feature_counts_as_zero_and_has_the_uniform_policy(truth):
    keep = [0, 1, 3, 4]
    errors = compare_with_truth(
        truth.features[keep], truth.substates[:, keep], truth.policies[keep],
        truth.features, truth.substates, truth.policies,
    )  # fmt: skip
    assert errors.rmse_features == pytest.approx(np.sqrt(np.sum(truth.features[2] ** 2) / truth.features.size))
    assert errors.rmse_substates == pytest.approx(np.sqrt(np.sum(truth.substates[:, 2] ** 2) / truth.substates.size))
    assert errors.mad_policies == pytest.approx(np.abs(truth.policies[2] - 0.25).sum() / truth.policies.size)


def test_a_tiny_or_an_empty_feature_cannot_blow_up_an_error(truth):
    for tiny in (1e-12, 0.0):
        features, substates = truth.features.copy(), truth.substates.copy()
        features[0] *= tiny
        errors = compare_with_truth(
            features, substates, truth.policies, truth.features, truth.substates, truth.policies
        )
        assert np.isfinite(errors).all()
        assert errors.rmse_substates <= np.sqrt(np.mean(truth.substates**2))


def test_surplus_features_show_in_the_reconstruction_only(truth):
    features = np.vstack([truth.features, np.full(30, 0.1)])
    substates = np.hstack([truth.substates, np.full((100, 1), 0.5)])
    policies = np.vstack([truth.policies, np.full(4, 0.25)])
    errors = compare_with_truth(features, substates, policies, truth.features, truth.substates, truth.policies)
    assert errors.rmse_features == errors.rmse_substates == errors.mad_policies == 0.0
    assert errors.rmse_states == pytest.approx(0.05)


def test_averages_and_their_errors():
    assert average([1.0, 3.0]) == (2.0, 1.0)
    assert np.isnan(average([1.0]).error)
    assert root_mean_square([3.0, 3.0, 3.0]) == (3.0, 0.0)
    rng = np.random.default_rng(0)
    samples = [root_mean_square(rng.normal(2, 1, 50)) for _ in range(4000)]
    assert np.std([s.value for s in samples]) == pytest.approx(np.mean([s.error for s in samples]), rel=0.05)


# --- runs -------------------------------------------------------------------------------------------------------


def test_both_samplers_recover_an_easy_data_set():
    for sampler, sweeps in (("exact", 1200), ("as-published", 3000)):
        measured = run_sampler(DataSet(5, 30.0, 0), sampler, sweeps)
        assert abs(measured["n_features_found"] - 5) <= 1, sampler
        assert measured["accuracy_mmse"] >= 0.9, sampler
        assert measured["rmse_features"] < 0.1, sampler
        assert measured["rmse_states"] < 0.05, sampler


@pytest.fixture(scope="module")
def easy_truths():
    return [DataSet(k, 25.0, run).draw() for k in (5, 12) for run in range(2)]


@pytest.fixture(scope="module")
def peers_of_some(easy_truths):
    return [run_peers(truth, run) for run, truth in enumerate(easy_truths)]


def test_peers_are_tuned_not_straw_men(peers_of_some, easy_truths):
    """Four data sets, 80 rows to predict: nobody may be worse than scikit-learn's defaults, noise aside.

    For peers as good as the defaults a false alarm has a probability below 0.2% each; the seeds are fixed.
    """
    n_rows = sum(len(truth.test[1]) for truth in easy_truths)
    mean = {name: np.mean([row[f"accuracy_{name}"] for row in peers_of_some]) for name in ACCURACIES}
    defaults = {
        "lr": LogisticRegression(max_iter=1000),
        "lda": LinearDiscriminantAnalysis(),
        "svm": SVC(),
        "knn": KNeighborsClassifier(),
        "forest": RandomForestClassifier(random_state=0),
        "boosting": GradientBoostingClassifier(random_state=0),
        "mlp": MLPClassifier(max_iter=1000, random_state=0),
    }
    for name, estimator in defaults.items():
        untuned = np.mean([estimator.fit(*truth.train).score(*truth.test) for truth in easy_truths])
        # rows on which the two differ are at most their errors together; three standard errors of the difference
        noise = 3 * math.sqrt((2 - mean[name] - untuned) / n_rows)
        assert mean[name] >= untuned - noise, f"{name}: {mean[name]:.3f}, but {untuned:.3f} without any tuning"
    assert mean["simplex"] > 0.95
    assert mean["ceiling"] > 0.97
    assert mean["nmf_lr_known"] > 0.9
    for name in ("minka", "bicv"):
        found = [
            row[f"n_features_{name}"] == len(t.features) for row, t in zip(peers_of_some, easy_truths, strict=True)
        ]
        assert sum(found) >= 3, name
    assert set(peers_of_some[0]) == {f"accuracy_{n}" for n in ACCURACIES} | {f"n_features_{n}" for n in COUNTS}


def test_peers_see_the_training_rows_only():
    truth = DataSet(5, 20.0, 1).draw()
    spoiled = truth.actions.copy()
    spoiled[N_TRAIN:] = (spoiled[N_TRAIN:] + 1) % 4
    right, wrong = run_peers(truth, 0), run_peers(truth._replace(actions=spoiled), 0)
    for name in ACCURACIES:
        assert right[f"accuracy_{name}"] + wrong[f"accuracy_{name}"] <= 1.0 + 1e-12, name


# --- rows that survive --------------------------------------------------------------------------------------------


def read_files(folder):
    return [(folder / name).read_bytes() for name in ("runs.csv", "peers.csv", "study.json")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    run_study(folder, SMALL, n_jobs=1)
    return folder


def test_a_study_has_one_row_a_run_in_order(whole):
    rows = sampler_rows(whole).read()
    assert [(row["snr"], row["run"], row["sampler"]) for row in rows] == [
        (snr, run, sampler) for snr in (20.0, 30.0) for run in range(2) for sampler in ("as-published", "exact")
    ]
    header = (whole / "runs.csv").read_text().splitlines()[0]
    assert "snr [dB]" in header
    assert "accuracy_map [share]" in header
    assert len(timing_rows(whole).read()) == 8


def test_a_study_stopped_between_runs_ends_with_the_same_rows(whole, tmp_path):
    class Stop(Exception):
        pass

    seen = []

    def stop_after_three(task):
        seen.append(task)
        if len(seen) == 3:
            raise Stop

    with pytest.raises(Stop):
        run_study(tmp_path, SMALL, n_jobs=1, on_done=stop_after_three)
    assert len(sampler_rows(tmp_path).read()) == 3
    started = {}
    run_study(tmp_path, SMALL, n_jobs=1, on_start=lambda tasks, undone: started.update(all=tasks, undone=undone))
    assert len(started["undone"]) == 5
    assert not {task.key() for task in started["undone"]} & {task.key() for task in seen}
    assert read_files(tmp_path) == read_files(whole)


@pytest.mark.parametrize("n_bytes", [1, 25, 90])
def test_a_line_cut_short_is_done_again(whole, tmp_path, n_bytes):
    check_settings(tmp_path, SMALL.settings())
    (tmp_path / "runs.csv").write_bytes((whole / "runs.csv").read_bytes()[:-n_bytes])
    run_study(tmp_path, SMALL, n_jobs=1)
    assert read_files(tmp_path) == read_files(whole)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_study_killed_at_any_time_ends_with_the_same_rows(whole, tmp_path):
    """kill -9 at moments of the run that differ, over and over, then to the end."""
    code = (
        "import sys; from pathlib import Path; from experiments.simulations.study import Design, run_study;"
        f"run_study(Path(sys.argv[1]), {SMALL!r}, n_jobs=2)"
    )
    command = [sys.executable, "-c", f"from experiments.simulations.study import *; {code}", str(tmp_path)]
    n_rows = []
    for pause in (0.05, 0.4, 0.1, 0.7):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 240
        before = n_rows[-1] if n_rows else 0
        # let it write at least one more row, then a little more
        while process.poll() is None and time.monotonic() < deadline:
            path = tmp_path / "runs.csv"
            if path.exists() and path.read_bytes().count(b"\n") - 1 > before:
                time.sleep(pause)
                break
            time.sleep(0.02)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        n_rows.append(len(sampler_rows(tmp_path).read()))
    assert n_rows[0] >= 1
    run_study(tmp_path, SMALL, n_jobs=1)
    assert read_files(tmp_path) == read_files(whole)


def test_runs_can_be_added(whole, tmp_path):
    run_study(tmp_path, SMALL._replace(n_runs=1, samplers=("exact",)), n_jobs=1)
    run_study(tmp_path, SMALL._replace(n_runs=1, samplers=("as-published",)), n_jobs=1)
    run_study(tmp_path, SMALL, n_jobs=1)
    assert read_files(tmp_path) == read_files(whole)


def test_processes_do_not_change_the_rows(whole, tmp_path):
    run_study(tmp_path, SMALL, n_jobs=2)
    assert read_files(tmp_path) == read_files(whole)


def test_another_seed_or_budget_needs_another_folder(whole):
    before = read_files(whole)
    with pytest.raises(StudyError, match="started with seed = 0, not 1"):
        run_study(whole, SMALL._replace(seed=1), n_jobs=1)
    with pytest.raises(StudyError, match="with 20 sweeps, not 30"):
        run_study(whole, SMALL._replace(sweeps=30), n_jobs=1)
    assert read_files(whole) == before


def test_two_studies_do_not_write_to_one_folder(tmp_path):
    check_settings(tmp_path, SMALL.settings())
    with locked(tmp_path), pytest.raises(StudyError, match="another study is writing"), locked(tmp_path):
        pass


def test_foreign_files_are_refused_and_left_alone(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(StudyError, match=r"no study\.json"):
        check_settings(tmp_path, {})
    (tmp_path / "study.json").write_text("[1]")
    with pytest.raises(StudyError, match="not the JSON file of a study"):
        check_settings(tmp_path, {})
    store = RowStore(tmp_path / "data.csv", {"a": int, "c": int}, ("a",), {})
    with pytest.raises(StudyError, match="other columns"):
        store.read()
    store = RowStore(tmp_path / "rows.csv", {"a": int, "b": float}, ("a",), {"b": "m"})
    (tmp_path / "rows.csv").write_text("a,b [m]\n1,2.5\nx,3\n")
    with pytest.raises(StudyError, match="line 3"):
        store.read()


def test_a_run_that_fails_does_not_stop_the_others(whole, tmp_path, monkeypatch):
    def fail_once(data_set, sampler, sweeps):
        if (data_set.snr_db, data_set.run, sampler) == (20.0, 1, "exact"):
            raise FloatingPointError("too hot")
        return run_sampler(data_set, sampler, sweeps)

    monkeypatch.setattr("experiments.simulations.study.run_sampler", fail_once)
    with pytest.raises(StudyError, match=r"1 of 8 runs failed, the first one \(K = 5, 20 dB, run 1, exact\)"):
        run_study(tmp_path, SMALL, n_jobs=1)
    assert len(sampler_rows(tmp_path).read()) == 7
    monkeypatch.undo()
    run_study(tmp_path, SMALL, n_jobs=1)
    assert read_files(tmp_path) == read_files(whole)


def test_design_lists_every_run_once():
    tasks = Design(n_runs=20).tasks()
    assert len(tasks) == len({task.key() for task in tasks}) == 30 * 20 * 3
    # a study stopped early has seen every cell
    assert len({task.key()[:2] for task in tasks[:90]}) == 30


# --- command line and page ------------------------------------------------------------------------------------------


def test_command_prints_the_table_and_draws_the_figure(whole, tmp_path):
    for path in whole.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert all(row["chains_agree"] is None for row in sampler_rows(whole).read() if row["sampler"] != "exact")
    options = ["--features", "5", "--snr", "20,30", "--runs", "2", "--sweeps", "20", "--no-peers", "--n-jobs", "1"]
    result = runner.invoke(simulations_app, [*options, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "0 to do, 8 already done" in result.output
    assert "as-published, MAP" in result.output
    assert (tmp_path / "figure2.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "figure2.svg").read_text()
    assert "<svg" in svg
    assert read_files(tmp_path) == read_files(whole)


def unwrap(output):
    """The words of a message, without its box and its line breaks."""
    return " ".join(output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sampler", "gibbs"], "'gibbs' is not one of exact, as-published"),
        (["--runs", "0"], "0 is less than 1"),
        (["--sweeps", "1"], "1 is less than 2"),
        (["--snr", "ten"], "'ten' is not a number"),
        (["--snr", "10,nan"], "'nan' is not a number"),
        (["--snr", ""], "'' is not a number"),
        (["--features", "5.5"], "'5.5' is not a whole number"),
        (["--features", "1"], "1 is not between 2"),
        (["--features", "31"], "and 30, the dimension"),
        (["--snr", "4000"], "4000 dB is not between"),
        (["--features", "9" * 400], "is not a whole number"),
        (["--peak", "0.2"], "0.2 is not between"),
        (["--actions", "random"], "'random' is not most-probable or drawn"),
        (["--n-jobs", "0"], "0 jobs would never finish"),
        (["--random-state", "-1"], "-1 is not a whole number from 0"),
        (["--sampler", "none", "--no-peers"], "nothing to run"),
    ],
)
def test_bad_options_get_one_clear_sentence(tmp_path, options, sentence):
    result = runner.invoke(simulations_app, [*options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert sentence in unwrap(result.output)
    assert options[0] in result.output
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    result = runner.invoke(simulations_app, ["--out", str(blocker)])
    assert result.exit_code == 2
    assert "cannot be written" in unwrap(result.output)
    result = runner.invoke(page_app, [str(tmp_path / "nothing")])
    assert result.exit_code == 2
    assert "holds no study" in unwrap(result.output)


@pytest.fixture(scope="module")
def with_peers(whole, tmp_path_factory, peers_of_some):
    folder = tmp_path_factory.mktemp("peers")
    for path in whole.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    cells = [(snr, run) for snr in (20.0, 30.0) for run in range(2)]
    peer_rows(folder).rewrite(
        {"n_features": 5, "snr": snr, "run": run, **row}
        for (snr, run), row in zip(cells, peers_of_some[:4], strict=True)
    )
    return folder


def test_page_holds_what_the_rows_hold(with_peers, tmp_path):
    page = tmp_path / "docs" / "simulations.md"
    result = runner.invoke(page_app, [str(with_peers), "--out", str(page)])
    assert result.exit_code == 0, result.output
    text = page.read_text()
    results = read_results(with_peers)
    assert f"| exact, MMSE | 4 | {average(results.of('exact')['accuracy_mmse']):.4f} |" in text
    for label in ACCURACIES.values():
        assert label in text
    for claim in ("over 90% accuracy", "slightly below 70%", "off by only four", "no reliable reconstruction"):
        assert claim in text
    assert "simulations-figure2.svg" in text
    assert (page.parent / "simulations-figure2.svg").exists()
    first = page.read_bytes(), (page.parent / "simulations-figure2.svg").read_bytes()
    runner.invoke(page_app, [str(with_peers), "--out", str(page)])
    assert first == (page.read_bytes(), (page.parent / "simulations-figure2.svg").read_bytes())


# --- the results that the documentation shows -------------------------------------------------------------------------

DOCS = RESULTS


@pytest.fixture(scope="module")
def shown():
    return read_results(DOCS / "simulations")


def test_documented_page_is_made_from_the_stored_rows(tmp_path):
    page = tmp_path / "simulations.md"
    write_page(DOCS / "simulations", page)
    assert page.read_text() == (DOCS / "simulations.md").read_text()


def test_documented_study_has_the_size_asked_for(shown):
    counts = {sampler: shown.of(sampler).groupby(["n_features", "snr"]).size() for sampler in shown.samplers}
    assert {sampler: len(cells) for sampler, cells in counts.items()} == {"exact": 30, "as-published": 30}
    assert counts["exact"].min() >= 20
    assert counts["as-published"].min() >= 5
    assert set(shown.of("as-published")["sweeps"]) == {10_000}


def test_documented_peers_are_as_strong_as_others_measured_them(shown):
    """Figures of an earlier trial of the strongest ones; weaker rows would flatter the exact sampler."""
    assert shown.peers["accuracy_simplex"].mean() > 0.955
    assert shown.peers["accuracy_ceiling"].mean() > 0.975
    assert (shown.peers["n_features_minka"] == shown.peers["n_features"]).mean() > 0.9


def test_documented_rows_can_be_had_again(shown):
    """One row of each kind, computed again."""
    data_set = DataSet(5, 30.0, 0, seed=1702)
    for sampler in shown.samplers:
        rows = shown.of(sampler)
        row = rows[(rows["n_features"] == 5) & (rows["snr"] == 30.0) & (rows["run"] == 0)].iloc[0]
        measured = run_sampler(data_set, sampler, int(row["sweeps"]))
        assert measured["n_features_found"] == row["n_features_found"], sampler
        # floating point differs a little between processors, and a chain magnifies it
        assert measured["accuracy_mmse"] == pytest.approx(row["accuracy_mmse"], abs=0.051), sampler
        assert measured["rmse_features"] == pytest.approx(row["rmse_features"], rel=0.3), sampler
