"""The study of the paper's alternatives: its data, what is measured, its page."""

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.alternatives.__main__ import app as alternatives_app
from experiments.alternatives.demonstrations import KINDS, Demos
from experiments.alternatives.page import make_page, write_page
from experiments.alternatives.study import (
    METHODS,
    NOISY_SNR_DB,
    SAMPLED,
    Design,
    Task,
    make_stores,
    measure,
    predict_from_substates,
    run_study,
    set_wrongly,
)
from experiments.alternatives.summary import read_results
from experiments.harness.store import StudyError, read_settings
from experiments.page import app as page_app
from tests.support.paths import RESULTS
from whyact.prediction import Prediction


def draw(kind, run=0, snr_db=20.0, seed=0):
    return Task(kind, snr_db, run, "lr", seed).draw()


# --- the data -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_data_have_the_number_and_the_noise_that_they_should(kind):
    for run in range(3):
        demos = draw(kind, run)
        assert len(demos.features) == KINDS[kind][run] == demos.substates.shape[1]
        states = demos.substates @ demos.features
        snr = np.mean(states**2) / np.mean((demos.observations - states) ** 2)
        assert 10 * np.log10(snr) == pytest.approx(20, abs=1.0)
        assert len(np.unique(demos.train[1])) > 1
        assert len(demos.train[1]) == (80 if kind == "paper" else 150)
        assert len(demos.test[1]) == (20 if kind == "paper" else 60)


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_set_does_not_depend_on_the_others(kind):
    one, again, other = draw(kind), draw(kind), draw(kind, run=3)
    np.testing.assert_array_equal(one.observations, again.observations)
    assert not np.array_equal(one.observations, other.observations)


def test_actions_follow_the_kinds_assumption():
    patterns = draw("patterns", 2)
    codes = patterns.substates @ 2 ** np.arange(5)
    assert all(len(np.unique(patterns.actions[codes == code])) == 1 for code in np.unique(codes))
    few = draw("few-patterns", 2)
    codes = few.substates @ 2 ** np.arange(8)
    assert len(np.unique(codes)) == 20
    assert all(len(np.unique(few.actions[codes == code])) == 1 for code in np.unique(codes))
    clusters = draw("clusters", 1)
    assert set(np.unique(clusters.substates)) == {0.0, 1.0}
    np.testing.assert_array_equal(clusters.substates.sum(axis=1), 1.0)
    per_action = draw("per-action", 1)
    for action in (0, 1):
        others = per_action.substates[per_action.actions == action][:, 3 * (1 - action) : 3 * (2 - action)]
        assert not others.any()
    single = draw("single", 1)
    assert np.all((single.substates > 0).sum(axis=1) == 1)
    assert single.substates.max() > 0.9 > 0.3 > single.substates[single.substates > 0].min()
    features = draw("features", 2)
    assert np.all(features.substates.any(axis=1))


# --- wrong bits -----------------------------------------------------------------------------------------------------


class Learned:
    """A pattern model as after a fit: two features, an action for each pattern that was seen."""

    components_ = np.array([[1.0, 0.0], [0.0, 2.0]])
    substates_ = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    patterns_ = np.array([[True, False], [False, False], [False, True]])
    policies_ = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.2, 0.0, 0.8]])
    classes_ = np.array(["a", "b", "c"])

    def judge(self, X, prediction):
        assert prediction == "map"
        return Prediction(np.empty((len(X), 3)), (X / [1.0, 2.0] > 0.5).astype(float), np.ones(len(X)))


def test_action_of_given_substates_is_that_of_their_pattern():
    actions, known = predict_from_substates(Learned(), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    assert actions.tolist() == ["a", "c", "a"]  # the pattern never seen has the uniform policy
    assert known.tolist() == [True, True, False]


def test_wrong_bits_are_counted():
    substates = np.vstack([np.tile([1.0, 0.0], (20, 1)), np.tile([0.0, 1.0], (20, 1))])
    observations = substates @ Learned.components_
    observations[-5:] = [0.0, 0.0]  # the last five look as if they held nothing
    demos = Demos(
        np.vstack([Learned.substates_ @ Learned.components_, observations]),
        np.array([*"baca", *"a" * 20, *"c" * 20]),
        Learned.components_,
        np.vstack([Learned.substates_, substates]),
    )
    demos = Demos(
        *(part[-24:] for part in demos[:2]), demos.features, demos.substates[-24:]
    )  # 4 to learn, 20 to predict
    measured = set_wrongly(Learned(), demos._replace(substates=np.vstack([Learned.substates_, substates[20:]])), 0)
    assert measured["share_all_bits_right"] == 0.75
    assert measured["accuracy_map"] == 0.75
    assert measured["accuracy_if_right"] == 1.0
    assert measured["accuracy_if_wrong"] == 0.0
    assert measured["share_unseen"] == 0.0
    # one flipped bit of (0, 1) is (0, 0) or (1, 1), of (0, 0) it is (1, 0) or (0, 1)
    assert measured["accuracy_one_flipped"] < 0.3
    assert 0.2 < measured["share_unseen_one_flipped"] < 0.6


# --- the study ------------------------------------------------------------------------------------------------------

QUICK = Design(
    n_runs=2, kinds=("few-patterns", "clusters"), methods=("features", "patterns", "clusters", "nmf", "lr"), sweeps=20
)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    run_study(folder, QUICK, n_jobs=1)
    return folder


def test_every_task_leaves_its_rows(quick):
    stores = make_stores(quick)
    runs = stores["runs"].read()
    assert len(runs) == len(QUICK.tasks()) == 2 * (5 + 2 * len(NOISY_SNR_DB) + 5)
    assert len(stores["timings"].read()) == len(runs)
    assert {(row["kind"], row["method"]) for row in stores["bits"].read()} == {("few-patterns", "patterns")}
    assert all(row["n_found"] is None for row in runs if row["method"] == "lr")
    assert all(0 <= row["accuracy"] <= 1 and row["log_score"] <= 0 for row in runs)


def test_a_study_resumes_where_it_was(quick):
    before = make_stores(quick)["runs"].path.read_bytes()
    told = []
    run_study(quick, QUICK, n_jobs=1, on_start=lambda tasks, undone: told.append(len(undone)))
    assert told == [0]
    assert make_stores(quick)["runs"].path.read_bytes() == before
    with pytest.raises(StudyError, match="seed = 0, not 1"):
        run_study(quick, QUICK._replace(seed=1), n_jobs=1)


def test_page_answers_the_papers_arguments(quick):
    page = make_page(read_results(quick), read_settings(quick), "figure.svg")
    for question in ("recover its own data", "wrong bit", "many more features", "like the cluster model"):
        assert question in page
    assert "nan" not in page
    assert "2 x 20 sweeps" in page


def test_commands_run_and_write(tmp_path):
    runner = CliRunner()
    out = tmp_path / "study"
    options = ["--runs", "2", "--kinds", "clusters", "--models", "nmf,lr", "--n-jobs", "1", "--out", str(out)]
    result = runner.invoke(alternatives_app, [*options])
    assert result.exit_code == 0, result.output
    assert "logistic regression" in result.output
    result = runner.invoke(page_app, [str(out), "--out", str(tmp_path / "page.md")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "page.svg").exists()
    assert (tmp_path / "page.png").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--kinds", "clouds"], "'clouds' is not one of features, patterns"),
        (["--models", "ours"], "'ours' is not one of features, patterns"),
        (["--runs", "0"], "0 is less than 1"),
        (["--sweeps", "1"], "1 is less than 10"),
        (["--n-jobs", "0"], "0 jobs would never finish"),
    ],
)
def test_wrong_options_are_named(options, sentence, tmp_path):
    result = CliRunner().invoke(alternatives_app, [*options, "--out", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.replace("│", " ").split())
    assert not (tmp_path / "x").exists()


def test_page_of_an_unknown_study_is_refused(tmp_path):
    (tmp_path / "study.json").write_text('{"study": "else"}')
    result = CliRunner().invoke(page_app, [str(tmp_path)])
    assert result.exit_code == 2
    assert "holds the study 'else', which has no page" in " ".join(result.output.replace("│", " ").split())


def test_tasks_come_run_by_run():
    tasks = Design(n_runs=3).tasks()
    assert len(tasks) == 3 * (len(KINDS) * len(METHODS) + 2 * len(NOISY_SNR_DB))
    assert [task.run for task in tasks] == sorted(task.run for task in tasks)


# --- what is documented ---------------------------------------------------------------------------------------------

DOCUMENTED = RESULTS / "alternatives"


def test_documented_page_is_that_of_its_rows(tmp_path):
    written = write_page(DOCUMENTED, tmp_path / "alternatives.md")
    page = DOCUMENTED.with_suffix(".md")
    assert written[0].read_text() == page.read_text()


def test_each_model_recovers_its_own_data_in_the_documented_rows():
    results = read_results(DOCUMENTED)
    for kind, method in results.own_kinds:
        runs = results.of(kind, method)
        assert len(runs) >= 20
        assert (runs["n_found"] == runs["n_true"]).mean() >= 0.9, (kind, method)


def test_documented_rows_can_be_had_again():
    settings = read_settings(DOCUMENTED)
    documented = {make_stores(DOCUMENTED)["runs"].key(row): row for row in make_stores(DOCUMENTED)["runs"].read()}
    for method in SAMPLED:
        task = Task("clusters", 20.0, 0, method, settings["seed"], settings["sweeps"])
        again, row = measure(task)["runs"], documented[task.key()]
        assert (again["n_found"], again["accuracy"]) == (row["n_found"], row["accuracy"])
        assert again["log_score"] == pytest.approx(row["log_score"], abs=1e-6)
