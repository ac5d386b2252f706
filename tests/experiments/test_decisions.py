"""The study of real decisions: its data sets, its splits, its contestants, what is measured, its page."""

import json
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from experiments.decisions.__main__ import app as decisions_app
from experiments.decisions.contestants import (
    FROM_ALL_ROWS,
    HIDDEN,
    LABELS,
    PEERS,
    VERSIONS,
    Lesson,
    Spreading,
    find_log_score,
    fit_peer,
    list_versions,
    make_folds,
    make_peer,
    predict,
    rule_out,
    say_available,
)
from experiments.decisions.controllers import CONTROLLERS, N_ROWS
from experiments.decisions.decision_table import DecisionTable
from experiments.decisions.page import CAVEATS, make_page, mark_best, write_page
from experiments.decisions.people import (
    GREENE_MODES,
    GREENE_VALUES,
    MTC_FILE,
    SWISSMETRO_FILE,
    load_statsmodels,
    make_wide,
    read_mtc,
    read_swissmetro,
)
from experiments.decisions.splits import hide_actions, hold_out
from experiments.decisions.study import ALL, Design, list_contestants, make_stores, run_study, table_rows
from experiments.decisions.summary import (
    average_leads,
    average_over_tables,
    find_better,
    find_lead,
    find_means,
    find_worst,
    list_leads,
    read_results,
    sort_by_verdict,
)
from experiments.decisions.tables import SOURCES, load_tables
from experiments.harness.store import StudyError
from experiments.page import app as page_app
from tests.support.paths import ROOT
from whyact import FeaturePolicyClassifier
from whyact.intervals import Interval

NOWHERE = Path("nowhere")
TINY = {"n_burn_in": 20, "n_draws": 20, "n_chains": 2}


def load(name, folder=NOWHERE):
    return load_tables((name,), folder)[0][name]


def find_decisions() -> Path:
    """Folder with the two files that the repository does not hold; without them the test is skipped."""
    folder = Path(os.environ.get("WHYACT_DATA", ROOT.parent / "shared" / "data")) / "decisions"
    if not all((folder / file).exists() for file in (SWISSMETRO_FILE, MTC_FILE)):
        pytest.skip(f"real decisions are not here: no {SWISSMETRO_FILE} and {MTC_FILE} in {folder} (set WHYACT_DATA)")
    return folder


def flatten(text):
    return " ".join(text.replace("│", " ").split())


# --- the data sets --------------------------------------------------------------------------------------------------


def test_swissmetro_hides_what_an_alternative_would_be_like_that_was_not_there(tmp_path):
    answers = pandas.DataFrame(
        {
            "GROUP": 2, "SURVEY": 0, "SP": 1, "ID": [1, 1, 2, 2], "AGE": [3, 3, 4, 4],
            "TRAIN_AV": 1, "CAR_AV": [1, 1, 0, 0], "SM_AV": 1, "TRAIN_TT": [100, 110, 120, 130],
            "SM_TT": [50, 60, 70, 80], "CAR_TT": [90, 95, 0, 0], "CHOICE": [3, 2, 1, 0],
        }
    )  # fmt: skip
    answers.to_csv(tmp_path / SWISSMETRO_FILE, index=False)
    table = read_swissmetro(tmp_path / SWISSMETRO_FILE)
    assert table.columns == ["AGE", "TRAIN_TT", "SM_TT", "CAR_TT"]
    assert table.y.tolist() == ["car", "swissmetro", "train"]  # the last question was not answered
    assert table.groups.tolist() == [1, 1, 2]
    np.testing.assert_array_equal(table.X[:, 3], [90, 95, np.nan])
    assert table.classes.tolist() == ["car", "swissmetro", "train"]
    np.testing.assert_array_equal(table.available, [[True, True, True], [True, True, True], [False, True, True]])


def test_work_trips_become_one_row_a_commuter(tmp_path):
    alternatives = {1: (1, 4), 2: (1, 4, 5), 3: (1, 2, 3, 4, 5, 6)}
    trips = pandas.DataFrame(
        [
            {
                "casenum": case, "altnum": code, "chose": int(code == codes[-1]), "ivtt": 0.0, "ovtt": 1.0 * case,
                "tottime": 10.0 * code + case, "totcost": 0.0, "hhid": 7, "perid": case, "wkzone": 1, "hmzone": 2,
                "wgt": 1, "vocc": code, "age": 30 + case,
            }
            for case, codes in alternatives.items()
            for code in reversed(codes)
        ]
    )  # fmt: skip
    trips.to_csv(tmp_path / MTC_FILE, index=False)
    table = read_mtc(tmp_path / MTC_FILE)
    assert table.y.tolist() == ["transit", "bike", "walk"]
    assert table.groups.tolist() == [7, 7, 7]
    # of the columns that vary: those of the person, and times of alternatives that more than one commuter has
    times = [f"{time} {mode}" for time in ("ovtt", "tottime") for mode in ("drive alone", "transit", "bike")]
    assert table.columns == ["age", *times]
    np.testing.assert_array_equal(table.X[:, table.columns.index("tottime bike")], [np.nan, 52, 53])
    # bike, drive alone, shared ride 2, shared ride 3+, transit, walk
    np.testing.assert_array_equal(table.available, [[0, 1, 0, 0, 1, 0], [1, 1, 0, 0, 1, 0], [1] * 6])


SHAPES = {
    "modechoice": (210, 14, 4), "fair": (6366, 8, 2), "anes96": (944, 9, 2), "cartpole": (N_ROWS, 4, 2),
    "mountaincar": (N_ROWS, 2, 3), "acrobot": (N_ROWS, 6, 3), "traffic": (840, 70, 5), "iris": (150, 4, 3),
    "wine": (178, 13, 3), "cancer": (569, 30, 2), "digits": (1797, 64, 10),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_tables_have_their_shapes(name):
    table = load(name)
    assert (*table.X.shape, len(table.classes)) == SHAPES[name]
    assert len(table.columns) == table.X.shape[1]
    assert len(table.y) == len(table.X)
    assert (table.groups is not None) == (name in (*CONTROLLERS, "traffic"))
    assert np.isfinite(table.X).all()
    assert table.about.endswith(".")
    np.testing.assert_array_equal(table.classes[table.actions], table.y)


def test_real_files_have_their_shapes():
    folder = find_decisions()
    for name, shape, n_groups in (("swissmetro", (10719, 20), 1191), ("mtc", (5029, 44), 4151)):
        table = load(name, folder)
        assert table.X.shape == shape
        assert len(np.unique(table.groups)) == n_groups
        assert table.available.shape == (shape[0], len(table.classes))
        assert table.available[np.arange(shape[0]), table.actions].all()  # what was done was possible
        assert np.isnan(table.X).any()


@pytest.mark.parametrize("combination", ["mixture", "product"])
def test_people_without_a_car_do_not_drive(combination):
    table = read_swissmetro(find_decisions() / SWISSMETRO_FILE)
    learned, judged = np.arange(0, 1800, 15), np.flatnonzero(~table.available[:, 0])[::10]
    model = FeaturePolicyClassifier(combination=combination, n_burn_in=20, n_draws=20, n_chains=1, random_state=0)
    model.fit(table.X[learned], table.actions[learned], available=table.available[learned])
    probabilities = model.predict_proba(table.X[judged], available=table.available[judged])
    assert len(judged) > 100
    assert (probabilities[:, 0] == 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def tell_by_one_column(x, is_taken):
    """Balanced accuracy of a small tree that sees one column and tells whether an action was taken; half to learn."""
    x, order = np.nan_to_num(x[:, None], nan=-1.0), np.random.default_rng(0).permutation(len(x))
    train, test = np.array_split(order, 2)
    tree = DecisionTreeClassifier(max_leaf_nodes=20, class_weight="balanced", random_state=0)
    return balanced_accuracy_score(is_taken[test], tree.fit(x[train], is_taken[train]).predict(x[test]))


def find_leaks(X, y):
    """Highest balanced accuracy with which any column tells whether any action was taken."""
    return max(tell_by_one_column(x, y == action) for action in np.unique(y) for x in X.T)


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.kind == "people"])
def test_no_column_gives_a_persons_action_away(name):
    table = load(name, find_decisions() if SOURCES[name].file else NOWHERE)
    assert not {"choice", "chose", "vote", "affairs", "CHOICE", "vocc", "mode"} & set(table.columns)
    # the party that a person identifies with tells nine votes of ten, and is known before
    assert find_leaks(table.X, table.y) < 0.93


def test_columns_that_are_left_out_would_give_the_action_away():
    rows = load_statsmodels("modechoice")
    observed, y = make_wide(rows, "individual", "mode", "choice", GREENE_VALUES, GREENE_MODES)
    assert find_leaks(observed[["ttme air"]].to_numpy(), y) > 0.95
    trips = pandas.read_csv(find_decisions() / MTC_FILE)
    taken = trips[trips["chose"] == 1]
    assert find_leaks(taken[["vocc"]].to_numpy(float), taken["altnum"].to_numpy()) > 0.95


def test_controllers_have_on_record_what_their_rule_wants():
    for name, controller in CONTROLLERS.items():
        table = load(name)
        wanted = [controller.actions[controller.rule(row)] for row in table.X.astype(np.float32)]
        assert table.y.tolist() == wanted
        np.testing.assert_array_equal(table.X, load(name).X)


def test_files_that_are_not_there_are_left_out_with_a_sentence():
    tables, left_out = load_tables(("swissmetro", "iris", "mtc"), NOWHERE)
    assert list(tables) == ["iris"]
    for sentence, file in zip(left_out, (SWISSMETRO_FILE, MTC_FILE), strict=True):
        for part in (file, "nowhere", "data_warehouse/", "larch, version 6", "--no-deps"):
            assert part in sentence
        assert sentence.count(". ") == 0


@pytest.mark.parametrize(
    ("module", "make", "sentence"),
    [
        ("statsmodels.datasets", lambda: load("fair"), r"statsmodels is not installed; install whyact\[experiments\]"),
        ("interpret.glassbox", lambda: make_peer("ebm", 2, 0), r"interpret is not .*whyact\[experiments\]"),
        ("gymnasium", lambda: load("cartpole"), r"gymnasium is not installed; install whyact\[driving\]"),
    ],
)
def test_extras_that_are_missing_are_named(monkeypatch, module, make, sentence):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=sentence):
        make()


# --- the splits -----------------------------------------------------------------------------------------------------


def make_decisions(n_rows=120, seed=0):
    """Two columns that decide between three actions, the last of which half of the people cannot take."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, 2))
    available = np.ones((n_rows, 3), dtype=bool)
    available[:, 2] = rng.random(n_rows) < 0.5
    y = np.where(available[:, 2] & (X[:, 1] > 0.6), "c", np.where(X[:, 0] > 0.5, "a", "b"))
    X[~available[:, 2], 1] = np.nan
    return DecisionTable(X, y, ["left", "right"], "Made up.", np.arange(n_rows) // 4, available)


def test_groups_are_not_split():
    table = make_decisions()
    for run in range(5):
        split = hold_out("made", table, run, 0, n_train=50, n_test=20)
        assert not set(table.groups[split.train]) & set(table.groups[split.test])
        assert (len(split.train), len(split.test)) == (50, 20)
        assert len(np.unique(split.train)) == 50


def test_rows_without_groups_are_split_at_random():
    table = load("iris")
    split = hold_out("iris", table, 0, 0, n_train=600, n_test=1000)
    assert sorted([*split.train, *split.test]) == list(range(150))
    assert len(split.test) == 45


def test_splits_depend_on_name_run_and_seed_alone():
    table = make_decisions()
    one, again = (hold_out("made", table, 0, 0, 50, 20) for _ in range(2))
    np.testing.assert_array_equal(one.train, again.train)
    for others in (("else", 0, 0), ("made", 1, 0), ("made", 0, 1)):
        name, run, seed = others
        assert not np.array_equal(one.train, hold_out(name, table, run, seed, 50, 20).train)


def test_a_table_with_one_action_is_refused():
    table = make_decisions()._replace(y=np.full(120, "a"))
    with pytest.raises(ValueError, match="only one action is left"):
        hold_out("made", table, 0, 0, 50, 20)


def test_the_few_labels_are_among_the_many():
    actions = np.array([0] * 58 + [1] * 2)
    few, many = (hide_actions(actions, n_labels, 20, seed=3) for n_labels in (20, 50))
    assert ((few >= 0).sum(), (many >= 0).sum()) == (20, 50)
    assert (many[few >= 0] >= 0).all()
    assert set(few) == {HIDDEN, 0, 1}
    with pytest.raises(ValueError, match="it is the same one"):
        hide_actions(np.zeros(60, int), 20, 20, seed=3)


# --- the contestants ------------------------------------------------------------------------------------------------


def make_lesson(n_hidden=0):
    table = make_decisions()
    actions = table.actions.copy()
    actions[:n_hidden] = HIDDEN
    return Lesson(table.X, actions, table.groups, table.available, seed=0)


def test_what_cannot_be_done_has_no_probability():
    probabilities = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]])
    available = np.array([[True, True, False], [True, True, False], [True, True, True]])
    np.testing.assert_allclose(rule_out(probabilities, available), [[0.4, 0.6, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])


def test_peers_rule_out_what_cannot_be_done():
    lesson = make_lesson()
    probabilities = predict(fit_peer("lr", lesson), lesson.X, 3, lesson.available)
    assert (probabilities[~lesson.available] == 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.mean(probabilities.argmax(axis=1) == lesson.actions) > 0.9


def test_ours_is_told_what_can_be_done_if_it_takes_that():
    available = np.array([[True, False, True]])
    told = say_available(lambda X, y, available=None: None, available, np.array([0, 2]))
    assert told["available"].tolist() == [[True, True]]
    assert say_available(lambda X, y: None, available, np.array([0, 2])) == {}
    assert say_available(lambda X, y, available=None: None, None, np.array([0, 2])) == {}


def test_versions_that_whyact_does_not_have_are_left_out(monkeypatch):
    monkeypatch.setitem(VERSIONS, "ours-else", {"no_such_parameter": 1})
    assert "ours" in list_versions()
    assert "ours-else" not in list_versions()
    assert set(list_contestants()) <= set(LABELS)


def test_folds_keep_groups_together_and_learn_from_hidden_rows():
    lesson = make_lesson(n_hidden=40)
    folds = make_folds(lesson, 3)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(40, 120))
    for train, test in folds:
        assert set(range(40)) <= set(train)
        assert not set(lesson.groups[train][lesson.actions[train] != HIDDEN]) & set(lesson.groups[test])


def make_quick(name, n_most, seed):
    """A contestant without a choice of settings, where that takes seconds."""
    candidate = MAKERS[name](n_most, seed)
    if name == "ebm":
        candidate.estimator.set_params(outer_bags=2, max_rounds=50, interactions=0)
    return candidate._replace(settings={}) if name in ("forest", "boosting", "ebm") else candidate


MAKERS = PEERS | FROM_ALL_ROWS


@pytest.mark.parametrize("name", MAKERS)
def test_peers_learn_from_few_labels(name, monkeypatch):
    if name in PEERS:
        monkeypatch.setitem(PEERS, name, partial(make_quick, name))
    lesson = make_lesson(n_hidden=90)
    model = fit_peer(name, lesson)
    np.testing.assert_allclose(predict(model, lesson.X[:40], 3, None).sum(axis=1), 1)
    assert set(model.classes_) == {0, 1, 2}


@pytest.mark.parametrize("name", MAKERS)
def test_peers_have_the_settings_that_they_choose_from(name):
    candidate = make_peer(name, 4, 0)
    assert set(candidate.settings) <= set(candidate.estimator.get_params())
    assert bool(candidate.settings) == (name != "majority")


def test_settings_are_chosen_by_log_score():
    search = fit_peer("lr", make_lesson())
    assert search.scoring is find_log_score
    rows = make_lesson()
    assert find_log_score(search, rows.X, np.full(120, 7)) == pytest.approx(np.log(0.001 / 4))  # an unknown action


def test_spreading_that_reaches_nothing_is_undecided():
    X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    model = Spreading(kernel="knn", n_neighbors=2).fit(X, np.array([0, 1, -1, -1, -1, -1]))
    np.testing.assert_allclose(model.predict_proba(np.array([[9.1]])), [[0.5, 0.5]])


# --- the study ------------------------------------------------------------------------------------------------------

QUICK = Design(
    n_runs=2,
    contestants=("ours", "lr", "majority", "self-training"),
    few_labels=True,
    n_train=40,
    n_test=30,
    options=TINY,
)
QUICK_TABLES = {"swissmetro": make_decisions()}  # under a known name, so that the page can show it


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    run_study(folder, QUICK_TABLES, QUICK, n_jobs=1)
    return folder


def test_every_task_leaves_its_rows(quick):
    rows = {name: store.read() for name, store in make_stores(quick).items()}
    assert {name: len(found) for name, found in rows.items()} == {"runs": 6, "few_labels": 8, "timings": 14}
    assert {row["n_labels"] for row in rows["few_labels"]} == {20}
    assert {row["contestant"] for row in rows["runs"]} == {"ours", "lr", "majority"}
    for row in rows["runs"]:
        assert (row["n_train"], row["n_test"], row["n_labels"]) == (40, 30, ALL)
        assert 0 <= row["accuracy"] <= 1
        assert row["log_score"] <= 0
        assert 0 <= row["calibration_error"] <= 1
        assert (row["n_features"] is not None) == (row["chains_agree"] is not None) == (row["contestant"] == "ours")
    (about,) = table_rows(quick).read()
    assert (about["n_rows"], about["n_columns"], about["n_groups"]) == (120, 2, 30)


def test_a_study_resumes_where_it_was(quick):
    store = make_stores(quick)["runs"]
    before = store.path.read_bytes()
    store.path.write_bytes(before[: before.rfind(b"\n", 0, -1) + 5])  # the last line cut short by a kill
    told = []
    run_study(quick, QUICK_TABLES, QUICK, n_jobs=1, on_start=lambda tasks, undone: told.append(len(undone)))
    assert told == [1]
    assert store.path.read_bytes() == before
    with pytest.raises(StudyError, match="seed = 0, not 1"):
        run_study(quick, QUICK_TABLES, QUICK._replace(seed=1), n_jobs=1)
    with pytest.raises(StudyError, match=r"swissmetro in .* was started with n_rows = 120, not 80"):
        run_study(quick, {"swissmetro": make_decisions(80)}, QUICK, n_jobs=1)


def test_page_of_a_tiny_study(quick, tmp_path):
    text = write_page(quick, tmp_path / "decisions.md")[0].read_text()
    assert "A trial, not the defaults: `FeaturePolicyClassifier(n_burn_in=20, n_draws=20, n_chains=2)`" in text
    assert "2 fresh random splits" in text
    assert "nan" not in text


def test_command_runs_and_says_what_is_left_out(tmp_path):
    out = tmp_path / "study"
    options = ["--runs", "1", "--tables", "mtc,iris", "--contestants", "lr,majority", "--data", str(tmp_path)]
    result = CliRunner().invoke(decisions_app, [*options, "--n-jobs", "1", "--out", str(out)])
    assert result.exit_code == 0, result.output
    said = flatten(result.output)
    assert "mtc is left out because there is no MTCwork.csv.gz" in said
    assert "most frequent action" in said
    result = CliRunner().invoke(page_app, [str(out), "--out", str(tmp_path / "page.md")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "page.md").read_text()
    assert "| iris |" in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--tables", "clouds"], "'clouds' is not one of swissmetro, mtc"),
        (["--contestants", "theirs"], "'theirs' is not one of ours"),
        (["--tables", "mtc", "--data", "nowhere"], "mtc is left out because there is no MTCwork.csv.gz in nowhere"),
        (["--runs", "0"], "0 is less than 1"),
        (["--train-rows", "10"], "10 is less than 20"),
        (["--sweeps", "1"], "1 is less than 10"),
        (["--n-jobs", "0"], "0 jobs would never finish"),
    ],
)
def test_wrong_options_are_named(options, sentence, tmp_path):
    result = CliRunner().invoke(decisions_app, [*options, "--out", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert sentence in flatten(result.output)
    assert not (tmp_path / "x").exists()


# --- the summary and the page, from made-up rows --------------------------------------------------------------------

TABLES = ("fair", "iris")
SHIFTS = {"ours": 0.05, "lr": 0.0, "forest": 0.02, "self-training": -0.01, "label-spreading": -0.02}


def make_row(table, run, n_labels, contestant):
    """Ours is ahead of logistic regression by 0.05 on affairs, with little noise, and behind by 0.05 on iris."""
    shift = SHIFTS[contestant] * (-1 if table == "iris" and contestant == "ours" else 1)
    accuracy = 0.7 + shift + 0.002 * run * (contestant == "ours")
    ours = {"n_features": 3, "chains_agree": run % 2} if contestant == "ours" else dict.fromkeys(
        ("n_features", "chains_agree")
    )  # fmt: skip
    return {
        "table": table, "run": run, "n_labels": n_labels, "contestant": contestant, "n_train": 100, "n_test": 50,
        **ours, "accuracy": accuracy, "log_score": accuracy - 1, "calibration_error": 0.1 - shift,
    }  # fmt: skip


def make_rows(n_labels, names):
    return [make_row(table, run, n_labels, name) for table in TABLES for run in range(4) for name in names]


RUNS = pandas.DataFrame(make_rows(ALL, ("ours", "lr", "forest")))


def test_means_are_in_the_order_of_the_study():
    means = find_means(RUNS, "accuracy")
    assert list(means.index) == ["fair", "iris"]
    assert list(means) == ["ours", "lr", "forest"]
    assert means.loc["fair"].tolist() == pytest.approx([0.753, 0.7, 0.72])
    means.loc["iris", "forest"] = np.nan
    assert average_over_tables(means)["lr"] == pytest.approx(0.7)


def test_leads_are_paired_and_corrected():
    rows = RUNS[RUNS["table"] == "fair"]
    lead = find_lead(rows, "ours", "lr", "accuracy")
    assert lead.value == pytest.approx(0.053)
    error = np.std([0, 0.002, 0.004, 0.006], ddof=1) * np.sqrt(1 / 4 + 50 / 100)
    assert lead.high - lead.value == pytest.approx(3.1824 * error, rel=1e-3)
    assert find_lead(rows[rows["run"] < 2], "ours", "lr", "accuracy").verdict == "unknown"


def test_the_better_one_is_found_for_each_table():
    assert find_better(RUNS[RUNS["table"] == "fair"], "accuracy") == "forest"
    assert find_better(RUNS[RUNS["contestant"] == "lr"], "accuracy") == "lr"
    leads = list_leads(RUNS, "ours", "accuracy", ("lr", "forest"))
    assert leads["fair"].value == pytest.approx(0.033)
    assert list_leads(RUNS, "ours", "accuracy", ("ebm",)) == {}


def test_worst_table_and_verdicts():
    leads = list_leads(RUNS, "ours", "accuracy", ("lr",))
    assert find_worst(leads) == "iris"
    assert sort_by_verdict(leads) == {"ahead": ["fair"], "behind": ["iris"]}
    assert average_leads(leads).value == pytest.approx(0.003)
    assert sort_by_verdict({"iris": Interval(0.1, np.nan, np.nan)}) == {"unknown": ["iris"]}


def test_best_is_bold():
    line = pandas.Series([0.5, 0.7, np.nan, 0.7])
    assert mark_best(line, highest=True) == ["0.500", "**0.700**", "", "**0.700**"]
    assert mark_best(line, highest=False) == ["**0.500**", "0.700", "", "0.700"]


def write_rows(folder, with_few_labels=True):
    """A finished study of made-up rows."""
    few = (*SHIFTS,) if with_few_labels else ()
    rows = {"runs": make_rows(ALL, ("ours", "lr", "forest")), "few_labels": make_rows(20, few) + make_rows(50, few)}
    for name, store in make_stores(folder).items():
        if name != "timings":
            store.rewrite(rows[name])
        else:
            store.rewrite([row | {"fit_seconds": 1.25, "predict_seconds": 0.5} for row in rows["runs"]])
    about = {"n_rows": 150, "n_columns": 4, "n_groups": None, "share_missing": 0.0, "actions": "a 1, b 2"}
    table_rows(folder).rewrite([{"table": name, **about, "about": "Made up."} for name in TABLES])
    settings = {"study": "decisions", "version": "0", "seed": 3, "n_train": 600, "n_test": 1000, "options": {}}
    (folder / "study.json").write_text(json.dumps(settings))
    return folder


def test_page_renders_from_made_up_rows(tmp_path):
    folder = write_rows(tmp_path)
    result = CliRunner().invoke(page_app, [str(folder), "--out", str(tmp_path / "decisions.md")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "decisions.md").read_text()
    for part in (
        "4 fresh random splits of each data set, the same for all contestants (seed 3)",
        "with its defaults",
        "| affairs | **0.753** | 0.700 | 0.720 |",
        "| mean over 2 data sets | 0.703 | 0.700 | **0.720** |",
        "## Differences: feature policies",
        "ahead on affairs; behind on iris. The worst data set is iris (-0.047).",
        "The worst data set is iris (-0.067).",
        "| iris | 3.0 | 50% |",
        "## Few labels",
        "| 20 | 2 |",
        "| all | 2 |",
        "minus self-training LR [95%]",
        "| affairs | 1.8 | 1.8 | 1.8 |",
        "--runs 4 --random-state 3 --tables fair,iris --few-labels --out docs/results/decisions",
        CAVEATS[0],
    ):
        assert part in text, part
    assert "nan" not in text


def test_page_says_if_there_is_nothing_to_compare_with(tmp_path):
    results = read_results(write_rows(tmp_path))
    only_ours = results.runs[results.runs["contestant"] == "ours"]
    text = make_page(results._replace(runs=only_ours, few_labels=results.few_labels[:0]), {})
    assert "Without logistic regression there is nothing to compare with." in text


def test_page_does_without_few_labels_and_without_rows(tmp_path):
    text = make_page(read_results(write_rows(tmp_path, with_few_labels=False)), {"seed": 1})
    assert "## Few labels" not in text
    assert "--few-labels" not in text
    with pytest.raises(StudyError, match="holds no runs of the study of decisions"):
        write_page(tmp_path / "empty", tmp_path / "page.md")
