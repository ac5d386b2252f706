"""The report: what it says (summary) and the page that shows it, without a browser."""

import itertools
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.support.stand_in import make_model
from whyact import FeaturePolicyClassifier
from whyact.comparison.scoring import calibration_error, score
from whyact.explanation.plateau import ToleranceCount, ToleranceCurve
from whyact.explanation.voices import align_policies, find_times, find_usual_policy
from whyact.fit_result import ToleranceTrial
from whyact.prediction import Prediction
from whyact.report import render, summarise, write_report
from whyact.report.drawings import number_ticks, place_counts, png_address
from whyact.report.explorer import pack_features, pack_observations
from whyact.report.page import format_percent, format_probability, mark_options
from whyact.report.plain import to_name, to_script_json
from whyact.report.quality import find_bins, to_keys
from whyact.report.words import say_chains, say_sureness

HOSTILE = [
    "</script><script>alert(1)</script>",
    "{{7*7}}",
    "`${alert(1)}`",
    "'\"><img src=x onerror=alert(1)>",
    "long " * 1000,
    "שלום עולם",
    "🚗",
    "",
    "\u2028\u2029&amp;",
    "--><!--",
    "a\x00b",
    "\ud800",
]


class Page(HTMLParser):
    """The elements of a page, and the text of its data block."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text, self.data, self._in_data = "", "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in_data = dict(attrs).get("id") == "data"

    def handle_data(self, data):
        if self._in_data:
            self.data += data
        else:
            self.text += data

    def handle_endtag(self, tag):
        self._in_data = False

    def count(self, tag: str, **attributes) -> int:
        return sum(name == tag and attributes.items() <= found.items() for name, found in self.tags)


def check_plain(value):
    """Only what JSON holds, in Python's own types."""
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        for inner in value.values():
            check_plain(inner)
    elif isinstance(value, list):
        for inner in value:
            check_plain(inner)
    else:
        assert type(value) in (str, int, float, bool, type(None)), type(value)
        assert not isinstance(value, float) or math.isfinite(value)


@pytest.fixture(scope="module")
def fitted(demo):
    """The paper's mixture, fitted to the first 80 demonstrations of the demo; do not change it."""
    model = FeaturePolicyClassifier(
        n_burn_in=600, n_draws=400, thin=4, n_chains=2, random_state=0, combination="mixture", decisiveness=1.0,
        scale_columns=False,
    )  # fmt: skip
    return model.fit(demo.X[:80], demo.y[:80])


@pytest.fixture(scope="module")
def summary(fitted, demo):
    return summarise(fitted, test=(demo.X[80:], demo.y[80:]), shape=(6, 6))


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({}, {}),
        ({"n_features": 0}, {}),
        ({"n_features": 0, "labels": ()}, {}),
        ({"labels": ()}, {}),
        ({"feature_values": "real", "share_missing": 0.2, "n_unknown": 5}, {"shape": (2, 3)}),
        ({"n_unknown": 30}, {}),
        ({"labels": (False, True)}, {"kind": "curve"}),
        ({"labels": (0.5, 1.5)}, {"shape": (2, 3), "kind": "curve"}),
        ({"labels": (3, 5), "n_columns": 12}, {"shape": (3, 2, 2)}),
        ({"names": HOSTILE, "n_columns": len(HOSTILE), "labels": HOSTILE[:-1]}, {"title": HOSTILE[0]}),
        ({"n_draws": 2}, {}),
        ({"n_runs": 1, "random_state": np.random.RandomState(0)}, {}),
        ({"n_features": 1, "n_columns": 1}, {}),
        ({"scale_columns": True, "share_missing": 0.2, "names": list("abcdef")}, {"source": "table.csv"}),
        ({"n_features": 90, "numbers": [2, 90, 40, 7, 8, 9]}, {}),
        ({"decisiveness": "auto"}, {}),
        ({"combination": "product"}, {}),
        ({"combination": "product", "n_features": 0}, {}),
        ({"combination": "product", "names": HOSTILE, "n_columns": len(HOSTILE), "labels": HOSTILE[:-1]}, {}),
        ({"combination": "product", "available": np.eye(3, dtype=bool)[np.arange(30) % 3]}, {"shape": (2, 3)}),
    ],
)
def test_a_summary_is_plain_data_and_becomes_a_page(parameters, options):
    summary = summarise(make_model(**parameters), **options)
    check_plain(summary)
    json.dumps(summary, allow_nan=False)
    page = Page(render(summary))
    assert page.count("main") == page.count("h1") == page.count("noscript") == 1
    is_product = summary["fit"]["combination"] == "product"  # what the teacher does without any feature has a card, too
    assert page.count("article") == len(summary["features"]) + is_product
    assert not any("style" in attributes or "onerror" in attributes for _, attributes in page.tags)


def test_numbers_of_the_summary_are_those_of_the_model(fitted, summary):
    aligned = fitted.posterior_.aligned
    assert summary["number"]["count"] == fitted.n_components_ == len(summary["features"])
    assert {bar["count"]: bar["probability"] for bar in summary["number"]["probabilities"]} == (
        fitted.posterior_.n_features_probabilities
    )
    for k, feature in enumerate(summary["features"]):
        assert feature["prevalence"] == np.mean(fitted.substates_[:, k] > 0)
        assert [value["low"] for value in feature["policy"]] == aligned.policies.low[k].tolist()
        assert feature["entries"][0]["mean"] == np.abs(aligned.features.value[k]).max()
        np.testing.assert_array_equal(feature["panels"][0]["values"], aligned.features.value[k].reshape(6, 6))
    assert summary["fit"]["parameters"][0] == {"name": "action_weight", "value": "1.0", "is_default": True}
    assert summary["diagnostics"]["sentence"] == fitted.posterior_.agreement()


def test_quality_on_new_demonstrations_is_that_of_the_predictions(fitted, demo, summary):
    quality = summary["quality"]
    X, y = demo.X[80:], demo.y[80:]
    assert quality["rows"] == "new"
    assert quality["accuracy"]["value"] == fitted.score(X, y)
    assert quality["accuracy"]["low"] < fitted.score(X, y) < quality["accuracy"]["high"]
    predicted, actions = fitted.predict(X), fitted.classes_.tolist()
    for row, counts in enumerate(quality["confusion"]["counts"]):
        assert counts == [int(np.sum((y == actions[row]) & (predicted == action))) for action in actions]
    assert quality["calibration"]["error"] == calibration_error(fitted.predict_proba(X).max(axis=1), predicted == y)


def test_without_new_demonstrations_the_page_says_that_quality_is_optimistic(fitted):
    summary = summarise(fitted)
    text = Page(render(summary)).text
    assert summary["quality"]["rows"] == "learned from"
    assert "too optimistic" in text
    assert "that the model learned from" in text


@pytest.mark.parametrize("scale_columns", [False, True])
def test_rows_of_the_test_that_were_learned_from_are_counted(scale_columns):
    model = make_model(n_rows=40, scale_columns=scale_columns, share_missing=0.1)
    X = model._result.scaling.unscale_columns(model.observations_)
    y = model.classes_[model.actions_]
    new = X + 0.01
    mixed = summarise(model, test=(np.vstack([new[:30], X[:10]]), np.r_[y[:30], y[:10]]))
    assert mixed["quality"]["n_seen"] == 10
    text = Page(render(mixed)).text
    assert text.count("10 of the 40 rows are among those the model learned from") == 2  # headline and quality
    assert "these figures flatter it" in text
    assert "had not seen" not in text
    assert "did not learn from" not in text

    every = Page(render(summarise(model, test=(X, y)))).text
    assert "too optimistic" in every
    assert "the model learned from, although they were given as new" in every
    assert "had not seen" not in every

    none = summarise(model, test=(new, y))
    assert none["quality"]["n_seen"] == 0
    assert "had not seen" in Page(render(none)).text


def test_an_observation_with_another_action_was_not_learned_from():
    model = make_model(n_unknown=5)
    X, others = model.observations_, model.classes_[(model.actions_ + 1) % 3]
    assert summarise(model, test=(X, others))["quality"]["n_seen"] == 0
    assert summarise(model, test=(X, np.full(len(X), None)))["quality"]["n_seen"] == len(X)


def test_rows_are_the_same_up_to_rounding():
    rows = np.array([[0.1 + 0.2, -0.0, np.nan, 1e300], [0.3, 0.0, -np.nan, 1e300], [0.3001, 0.0, np.nan, 1e300]])
    first, second, third = to_keys(rows)
    assert first == second != third


def test_demonstrations_are_predicted_once_and_as_the_model_holds_them(monkeypatch):
    model = make_model(scale_columns=True, share_missing=0.1)
    predicted = []
    predict = model._predictor.predict

    def record(observations, *, one_draw, **how):
        if not one_draw:  # the many draws of MMSE are what takes time
            predicted.append(observations)
        return predict(observations, one_draw=one_draw, **how)

    monkeypatch.setattr(model._predictor, "predict", record)
    summarise(model)
    (observations,) = predicted
    np.testing.assert_array_equal(observations, model.observations_)


def test_a_teacher_who_seems_decisive_is_said_to_be():
    summary = summarise(make_model(n_rows=60))
    quality = summary["quality"]
    assert say_sureness(summary) == ""  # its actions have nothing to do with the features
    quality["accuracy"]["value"] = quality["mean_confidence"] + 0.2
    assert "decisiveness above 1 (--decisiveness 10 on the command line)" in say_sureness(summary)
    assert "<code>--decisiveness 10</code>" in render(summary)
    quality["accuracy"]["n"] = 29
    assert say_sureness(summary) == ""


def test_no_advice_about_a_decisiveness_that_nobody_has_set():
    for parameters in ({"decisiveness": "auto"}, {"combination": "product"}):
        summary = summarise(make_model(n_rows=60, **parameters))
        summary["quality"]["accuracy"]["value"] = summary["quality"]["mean_confidence"] + 0.2
        assert say_sureness(summary) == ""


def test_the_page_says_how_features_act_together():
    mixed = Page(render(summarise(make_model()))).text
    assert "Features share the decision" in mixed
    assert "decisive than these votes" not in mixed
    model = make_model(decisiveness="auto")
    learned = summarise(model)
    assert learned["fit"]["decisiveness"] == model.decisiveness_
    assert learned["fit"]["is_decisiveness_learned"]
    text = Page(render(learned)).text
    assert f"to the power of {model.decisiveness_:.3g} (decisiveness). This was learned" in text
    assert f"decisiveness {model.decisiveness_:.3g}, learned" in text
    model = make_model(combination="product")
    model.combination_scores_ = {"mixture": -0.741, "product": -0.613}
    summary = summarise(model)
    assert summary["fit"]["combination"] == "product"
    assert summary["fit"]["combination_scores"] == model.combination_scores_
    assert summary["fit"]["base_policy"] == model.base_policy_.tolist()
    text = Page(render(summary)).text
    assert "Features multiply" in text
    assert "Both were tried: on hidden actions its log score was -0.61, the mixture's -0.74 (0 is perfect)." in text
    assert summary["fit"]["usual_policy"] == find_usual_policy(model).tolist()
    assert "With as much of every feature as there is on average" in text
    assert "Compared with none of it" in text
    assert "log odds" not in text.partition('"use strict"')[0]


def test_the_page_says_in_what_the_runs_agree():
    summary = summarise(make_model(combination="product"))
    summary["diagnostics"] |= {"verdict": "agree", "is_growing": False, "n_chains": 4, "n_chains_with_weight": 4}
    (row,) = [row for row in summary["diagnostics"]["quantities"] if row["name"] == "n_features"]
    row["r_hat"], row["is_stuck"] = 1.01, False
    same = "4 independent runs of the computation found the same features and predict alike"
    assert say_chains(summary) == f"{same}."
    row["r_hat"] = 1.65
    assert say_chains(summary) == f"{same}; the number of small features still differs."
    summary["diagnostics"]["n_chains_with_weight"] = 3
    assert say_chains(summary).startswith("3 of 4 independent runs")
    summary["diagnostics"]["is_growing"] = True
    assert say_chains(summary).startswith("So far, 3 of 4 independent runs")


def test_small_probabilities_are_told_in_words():
    assert [format_probability(value) for value in (0.0, 1.51e-81, 0.0123, 0.99999, 1.0)] == [
        "0", "below 0.001", "0.0123", "1", "1",
    ]  # fmt: skip
    summary = summarise(make_model(combination="product"))
    summary["features"][0]["policy"][0] |= {"mean": 1e-82, "low": 0.0, "high": 1.51e-81}
    summary["features"][0]["policy"][1] |= {"mean": 0.1, "low": 1e-90, "high": 0.25}
    page = render(summary)
    assert "e−" not in page.partition('<h2 id="explorer-title"')[0].partition('<section id="features"')[2]
    assert '<span class="quiet">, below 0.001</span>' in page
    assert '<span class="quiet">, below 0.001 to 0.25</span>' in page


def test_labels_that_are_numbers_are_called_actions():
    page = render(summarise(make_model(combination="product", labels=(3, 5, 7))))
    assert re.search(r"it makes <b><bdi>action [357]</bdi></b>", page)


def test_a_product_shows_the_policies_that_predict():
    model = make_model(combination="product")
    summary = summarise(model)
    policies, times = align_policies(model), find_times(model)
    for k, feature in enumerate(summary["features"]):
        assert [value["mean"] for value in feature["policy"]] == policies.value[k].tolist()
        assert [value["times"] for value in feature["policy"]] == times[k].tolist()
    explorer, cut = summary["explorer"], model._result.cut
    assert explorer["combination"] == "product"
    assert explorer["policies"] == []
    np.testing.assert_array_equal(explorer["log_odds"], cut.chosen_log_odds)
    np.testing.assert_array_equal(explorer["base"], cut.chosen_base)
    np.testing.assert_array_equal(explorer["substates"], model.judge_demonstrations(prediction="map").substates)


def test_no_false_warning_about_names_of_columns():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summarise(make_model(names=list("abcdef")))


def test_actions_never_shown_count_as_wrong(fitted, demo):
    y = demo.y[80:].astype(object)
    y[:4] = "honk"
    quality = summarise(fitted, test=(demo.X[80:], y))["quality"]
    assert quality["n_never_shown"] == 4
    assert quality["confusion"]["extra"][0]["name"] == "honk"
    assert sum(quality["confusion"]["extra"][0]["counts"]) == 4
    assert quality["accuracy"]["n"] == 40
    only_new = summarise(fitted, test=(demo.X[80:84], y[:4]))
    assert only_new["quality"]["log_score"] is None
    assert "honk" in Page(render(only_new)).text


def test_scores_are_among_what_was_available(fitted, demo):
    """With two actions in each row, guessing is right every other time; with one, everything is certain."""
    X, y = demo.X[80:], demo.y[80:]
    only = y[:, None] == fitted.classes_
    quality = summarise(fitted, test=(X, y, only))["quality"]
    assert quality["log_score"] == pytest.approx(0.0, abs=1e-12)
    assert quality["log_score_of_guessing"] == 0.0
    two = only | np.roll(only, 1, axis=1)
    quality = summarise(fitted, test=(X, y, two))["quality"]
    assert quality["log_score_of_guessing"] == pytest.approx(-np.log(2))
    expected = score(fitted.predict_proba(X, two), np.argmax(only, axis=1), two)["log_score"]
    assert quality["log_score"] == pytest.approx(expected)
    bound = make_model(n_rows=40, available=np.zeros((40, 3), bool))
    assert summarise(bound)["quality"]["log_score_of_guessing"] == 0.0


def test_unknown_actions_of_the_test_are_left_out(fitted, demo):
    y = demo.y[80:].astype(object)
    y[:10] = None
    assert summarise(fitted, test=(demo.X[80:], y))["quality"]["accuracy"]["n"] == 30


def test_at_most_2000_rows_are_predicted():
    model = make_model(n_rows=2500)
    summary = summarise(model)
    assert summary["quality"]["n_rows"] == 2000
    assert summary["quality"]["n_available"] == 2500
    assert "evenly spread among 2,500" in Page(render(summary)).text


def test_bins_of_the_calibration_curve_add_up_to_the_calibration_error():
    rng = np.random.default_rng(0)
    confidences = rng.uniform(0.3, 1.0, 333).round(2)
    correct = rng.random(333) < confidences**2
    bins = find_bins(confidences, correct)
    error = sum(bin["n"] * abs(bin["confidence"] - bin["value"]) for bin in bins) / 333
    assert error == pytest.approx(calibration_error(confidences, correct))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"shape": (2, 2)}, "shape"),
        ({"shape": (6,)}, "shape"),
        ({"shape": (2.5, 2.4)}, "shape"),
        ({"shape": "ab"}, "shape"),
        ({"shape": (-2, -3)}, "shape"),
        ({"kind": "image"}, "shape"),
        ({"kind": "pie"}, "kind"),
        ({"origin": "left"}, "origin"),
        ({"max_demonstrations": 0}, "max_demonstrations"),
        ({"test": 3}, "test"),
        ({"test": (np.zeros((2, 6)), ["go"])}, "test"),
    ],
)
def test_errors_name_the_option(options, name):
    with pytest.raises(ValueError, match=name):
        summarise(make_model(), **options)


def test_panels_follow_the_shape():
    def panels(kind, *shape):
        summary = summarise(make_model(n_columns=12), shape=shape, kind=kind)
        return [panel["name"] for panel in summary["features"][0]["panels"]]

    assert panels(None, 3, 4) == [""]
    assert panels(None, 2, 2, 3) == ["frame", "difference"]
    assert panels(None, 3, 2, 2) == ["channel 0", "channel 1", "channel 2"]
    assert panels("curve", 12) == [""]
    assert panels("curve", 2, 6) == ["channel 0", "channel 1"]
    assert panels("bars", 3, 4) == []


@pytest.mark.parametrize("kind", ["image", "curve"])
def test_of_many_channels_only_the_strongest_are_drawn(kind):
    model = make_model(n_columns=2730, n_features=40, n_draws=3)
    shape = (273, 2, 5) if kind == "image" else (273, 10)
    summary = summarise(model, shape=shape, kind=kind)
    assert [len(feature["panels"]) for feature in summary["features"]] == [6] * 40
    text = render(summary)
    assert "The 6 strongest of 273 channels." in text
    assert len(text.encode()) < 2_000_000


def test_only_fitted_models_of_features_with_policies_have_a_report():
    from sklearn.exceptions import NotFittedError

    from whyact import PatternPolicyClassifier

    with pytest.raises(NotFittedError):
        summarise(FeaturePolicyClassifier())
    with pytest.raises(TypeError, match="PatternPolicyClassifier"):
        summarise(PatternPolicyClassifier())


def test_no_address_in_memory_is_shown():
    summary = summarise(make_model(random_state=np.random.RandomState(0)))
    assert {"name": "random_state", "value": "RandomState(MT19937)", "is_default": False} in summary["fit"][
        "parameters"
    ]


def test_the_explorer_keeps_every_digit_of_substates_and_policies():
    model = make_model(decisiveness=3.0)
    explorer = summarise(model)["explorer"]
    np.testing.assert_array_equal(explorer["substates"], model.substates_)
    np.testing.assert_array_equal(explorer["policies"], model.posterior_.chosen.policies)
    assert explorer["decisiveness"] == 3.0
    assert explorer["actions"] == model.actions_.tolist()


def test_packed_pictures_are_close_to_the_arrays():
    import base64

    rng = np.random.default_rng(0)
    observations = rng.normal(size=(20, 5)) * [1, 100, 1e-6, 0, 1]
    observations[3, 0] = np.nan
    packed = pack_observations(observations)
    codes = np.frombuffer(base64.b64decode(packed["data"]), np.uint8).reshape(20, 5)
    assert (codes == 255).sum() == 1
    assert codes[3, 0] == 255
    unpacked = np.array(packed["lows"]) + np.array(packed["steps"]) * codes
    errors = np.abs(unpacked - observations) / np.maximum(
        np.nanmax(observations, 0) - np.nanmin(observations, 0), 1e-12
    )
    assert np.nanmax(errors) < 0.003

    features = rng.normal(size=(3, 5))
    features[1] = 0
    packed = pack_features(features)
    whole = np.frombuffer(base64.b64decode(packed["data"]), "<i2").reshape(3, 5)
    np.testing.assert_allclose(np.array(packed["scales"])[:, None] * whole, features, atol=1e-4)


def test_fewer_demonstrations_are_evenly_spread_and_the_page_says_how_many():
    summary = summarise(make_model(n_rows=50), max_demonstrations=10)
    rows = summary["explorer"]["rows"]
    assert (len(rows), rows[0], rows[-1]) == (10, 0, 49)
    assert set(np.diff(rows)) <= {5, 6}
    assert "10 of 50 demonstrations" in Page(render(summary)).text


def test_hostile_names_stay_text():
    names = [f"{name}{i}" for i, name in enumerate(HOSTILE)]
    model = make_model(names=names, n_columns=len(names), labels=sorted(set(HOSTILE)), n_rows=60)
    text = render(summarise(model, title=HOSTILE[0], source=HOSTILE[3]))
    page = Page(text)
    assert page.count("script") == 2  # the data and the page's own
    assert page.count("img") == 0
    shown = set(re.findall(r"<bdi>(.*?)</bdi>", text))
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "{{7*7}}" in shown
    assert "49" not in shown
    assert not set("<>&\u2028\u2029") & set(page.data)
    assert json.loads(page.data)["action_names"] == [to_name(name) for name in sorted(set(HOSTILE))]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("", "(empty)"),
        (" \t", "(empty)"),
        ("\u200b", "(empty)"),
        ("a\x00b\nc", "a\ufffdb c"),
        ("\ud800", "?"),
        (True, "True"),
        (1.5, "1.5"),
        ("x" * 81, "x" * 79 + "…"),
    ],
)
def test_names_can_be_shown(label, name):
    assert to_name(label) == name


def test_script_data_has_no_character_that_ends_it():
    data = {"<!--</script>": ["&", "\u2028", "\u2029", "é"]}
    assert not set("<>&\u2028\u2029") & set(to_script_json(data))
    assert json.loads(to_script_json(data)) == data


def test_the_page_loads_nothing_and_allows_no_other_script():
    text = render(summarise(make_model(n_columns=6), shape=(2, 3)))
    page = Page(text)
    (policy,) = [found["content"] for tag, found in page.tags if found.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    addresses = [found[name] for _, found in page.tags for name in ("src", "href") if name in found]
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert "innerHTML" not in text
    assert "http://www.w3.org/2000/svg" in text  # the only address, and only a name
    assert len(re.findall(r"https?://", text)) == 1


def test_headings_are_in_order_and_tables_have_scopes(summary):
    page = Page(render(summary))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert all(found.get("scope") in ("row", "col") for tag, found in page.tags if tag == "th")
    identifiers = [found["id"] for _, found in page.tags if "id" in found]
    assert len(identifiers) == len(set(identifiers))
    assert all(found.get("alt") for tag, found in page.tags if tag == "img")


def test_the_headline_says_what_was_found(summary):
    text = Page(render(summary)).text
    assert "5 features explain 80 demonstrations." in text
    assert "demonstrations that the model had not seen" in text
    assert "J. Hahn, A. M. Zoubir" in text
    assert "No feature was found" in Page(render(summarise(make_model(n_features=0)))).text
    assert "No actions were given" in Page(render(summarise(make_model(labels=())))).text
    at_the_limit = summarise(make_model(n_features=3, max_features=3))
    assert "there may be more" in Page(render(at_the_limit)).text


def test_the_headline_counts_the_features_that_the_chains_confirm():
    model = make_model(n_features=9, numbers=[7, 5, 9, 8, 6, 9, 5, 7])
    text = Page(render(summarise(model))).text
    assert f"{len(model.posterior_.consensus().presence)} features explain 30 demonstrations." in text
    assert "Both chains find all of them. 90% of the draws have 5 to 9 features." in text
    assert "Those that at most half of the draws hold are not shown." in text
    assert "still growing" not in text


def test_a_number_that_still_grows_is_said_to_grow():
    summary = summarise(make_model(n_features=9, numbers=[2, 2, 3, 5, 6, 7, 8, 9]))
    text = Page(render(summary)).text
    assert "90% of the draws have 2 to 9 features." in text
    assert text.count("The number of features is still growing (from 2 to 8): raise n_burn_in") >= 1
    assert "--tolerance and --max-features" in text


def test_bars_of_the_numbers_of_features_stand_where_their_numbers_are():
    def places(numbers):
        text = render(summarise(make_model(n_features=max(numbers), numbers=numbers)))
        figure = text[text.index('<figure class="numbers">') : text.index("</figure>")]
        return np.diff([float(x) for x in re.findall(r'<rect [^>]* x="([\d.]+)"', figure)])

    np.testing.assert_allclose(places([1, 2, 4, 9] * 2), 26 * np.array([1, 2, 5]))
    np.testing.assert_allclose(places([1, 2, 4, 40] * 2), 312 / 40 * np.array([1, 2, 36]), atol=0.02)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (3, 5, [3, 4, 5]),
        (0, 0, [0]),
        (11, 65, [15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65]),
        (0, 1000, range(0, 1001, 100)),
    ],
)
def test_ticks_are_round_numbers(low, high, ticks):
    assert number_ticks(low, high) == list(ticks)


def test_scaled_columns_are_said_to_be_shares_of_their_range():
    sentence = "0 is its smallest value among the demonstrations, 1 its largest"
    text = Page(render(summarise(make_model(scale_columns=True)))).text
    assert text.count(sentence) == 3  # features, explorer, how it was made
    assert sentence not in Page(render(summarise(make_model()))).text


def test_without_actions_no_words_are_about_actions():
    summary = summarise(make_model(labels=()))
    text = Page(render(summary)).text
    for words in (
        "favours",
        "exam",
        "the action is not known",
        "How well it predicts",
        "and did",
        "Why the teacher acts",
    ):
        assert words not in text, words
    assert "30, without actions" in text
    assert "log_action_likelihood" not in [row["name"] for row in summary["diagnostics"]["quantities"]]


def test_small_and_large_shares_are_no_certainties():
    assert [format_percent(share) for share in (0, 0.004, 0.5, 0.996, 1)] == [
        "0%", "less than 1%", "50%", "more than 99%", "100%",
    ]  # fmt: skip


def test_the_page_says_what_it_was_learned_from():
    text = Page(render(summarise(make_model(), source="digits.csv"))).text
    assert "learned from digits.csv" in text
    assert "Learned from" in text
    assert "Learned from" not in Page(render(summarise(make_model()))).text


LARGE = {
    "1800 x 64, 15 features": (
        {"n_rows": 1800, "n_columns": 64, "n_features": 15, "labels": range(10)},
        {"shape": (8, 8)},
    ),
    "372 x 2730, 40 features": (
        {"n_rows": 372, "n_columns": 2730, "n_features": 40, "labels": [f"action {u}" for u in range(20)]},
        {"shape": (2, 21, 65)},
    ),
    "the same with hostile names": (
        {
            "n_rows": 372,
            "n_columns": 2730,
            "n_features": 40,
            "labels": [f"{u:02}" + "<" * 100 for u in range(20)],
            "names": ["<" * 100 + str(d) for d in range(2730)],
        },
        {},
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_pages_stay_below_two_megabytes(name, monkeypatch):
    parameters, options = LARGE[name]
    model = make_model(n_draws=4, **parameters)
    # the size does not depend on what is predicted, which takes long for thousands of columns
    monkeypatch.setattr(
        model,
        "judge_demonstrations",
        lambda rows: Prediction(np.repeat(model.policies_[:1], len(rows), axis=0), np.empty(0), np.ones(len(rows))),
    )
    summary = summarise(model, **options)
    size = len(render(summary).encode())
    print(f"{name}: {size:,} bytes, {len(summary['explorer']['rows'])} demonstrations to explore")
    assert size < 2_000_000


def test_images_are_png_files_that_show_the_sign():
    Image = pytest.importorskip("PIL.Image")
    import base64
    import io

    address = png_address([[1.0, 0.0, -0.5], [0.0, 0.0, 0.0]], 1.0)
    image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGBA")
    assert image.size == (3, 2)
    assert image.getpixel((0, 0)) == (0, 114, 178, 254)
    assert image.getpixel((1, 0))[3] == 0
    assert image.getpixel((2, 0))[:3] == (213, 94, 0)
    assert 120 < image.getpixel((2, 0))[3] < 135
    upside_down = png_address([[1.0, 0.0, -0.5], [0.0, 0.0, 0.0]], 1.0, "lower")
    assert Image.open(io.BytesIO(base64.b64decode(upside_down.partition(",")[2]))).convert("RGBA").getpixel((0, 1))[3]


def test_the_same_model_gives_the_same_file(tmp_path):
    model = make_model()
    path = write_report(model, tmp_path / "report.html", title="T")
    assert path.read_text(encoding="utf-8") == render(summarise(model, title="T"))
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_pages_are_made_of_files_that_the_wheel_holds():
    from importlib.resources import files

    names = {file.name for file in (files("whyact.report") / "templates").iterdir()}
    assert {"page.html", "macros.html", "page.css", "page.js"} <= names


# --- the number of features over the tolerance --------------------------------------------------------------


def draw_curve(numbers, own=(0.05, 3), tolerances=(0.03, 0.05, 0.1, 0.15, 0.2, 0.3)):
    counts = [ToleranceCount(*pair) for pair in zip(tolerances, map(float, numbers), strict=True)]
    return ToleranceCurve(tuple(counts), ToleranceCount(own[0], float(own[1])), 30)


def test_the_curve_of_tolerances_is_drawn_and_said():
    summary = summarise(make_model(), tolerances=draw_curve([6, 4, 3, 3, 3, 1]))
    check_plain(summary)
    html = render(summary)
    text = Page(html).text
    assert text.count("Between tolerances of 0.05 and 0.2 there are 3 to 4 features") == 2  # the finding, and below
    assert "The ring is this model: 3 features at 0.05." in text
    assert "--tolerances" not in text
    label = re.search(r'aria-label="(Number of features by tolerance[^"]*)"', html).group(1)
    assert label.endswith("0.03: 6, 0.05: 4, 0.1: 3, 0.15: 3, 0.2: 3, 0.3: 1; this model, at 0.05: 3")
    assert 'class="plateau"' in html


def test_without_a_plateau_nothing_is_shaded():
    html = render(summarise(make_model(), tolerances=draw_curve([9, 7, 5, 3, 2, 1])))
    assert "every tolerance gives another one" in html
    assert 'class="plateau"' not in html


def test_without_other_tolerances_the_page_says_how_to_try_them(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("a report runs chains only if it was asked to")

    monkeypatch.setattr("whyact.report.summary.count_features_over_tolerance", refuse)
    text = Page(render(summarise(make_model()))).text
    assert "The fit has tried no other tolerance." in text
    assert "whyact report --tolerances" in text
    with pytest.raises(AssertionError):
        summarise(make_model(), tolerances=True)


def test_trials_of_the_fit_are_shown_for_free():
    model = make_model()
    model.tolerance_ = 0.05
    model.tolerance_trials_ = (ToleranceTrial(0.05, -0.5, 0.0, 0.0, 4.5), ToleranceTrial(0.1, -0.6, 0.1, 0.01, 2.25))
    text = Page(render(summarise(model))).text
    assert "Only the tolerances that the fit has tried are shown." in text
    assert "0.05 (taken)" in text


def test_places_of_the_curve_stay_apart():
    summary = summarise(make_model(), tolerances=draw_curve([5, 4, 3, 2], (0.05, 5), (0.05, 0.051, 0.1, 0.2)))
    picture = place_counts(summary["tolerance"], 300, 100)
    assert [place.has_tick for place in picture.counts] == [True, False, True, True]
    assert [place.x for place in picture.counts][::3] == [0, 300]
    assert [place.y for place in picture.counts] == [0, 20, 40, 60]
    assert picture.own[:2] == picture.counts[0][:2]
    assert picture.counts[1].label > picture.counts[1].y  # the ring would cover it above
    far = summarise(make_model(), tolerances=draw_curve([5, 4, 3, 2], (1e-6, 5), (0.05, 0.07, 0.1, 0.2)))
    assert place_counts(far["tolerance"], 300, 100).own is None


def test_options_within_sentences_are_marked_up():
    marked = mark_options('set tolerance=0.1 (--tolerance 0.1 on it), a_b="real", --n-chains 2, x=y.')
    assert marked == (
        "set <code>tolerance=0.1</code> (<code>--tolerance 0.1</code> on it), <code>a_b=&#34;real&#34;</code>, "
        "<code>--n-chains 2</code>, x=y."
    )
