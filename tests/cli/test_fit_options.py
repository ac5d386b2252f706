"""The options of `whyact fit` are those of the estimator, with the same defaults, and reach the model."""

import re
from inspect import signature

import pytest

from tests.support.command_line import invoke
from whyact import FeaturePolicyClassifier, Priors
from whyact.cli import fitting
from whyact.cli.fit_options import NOT_OPTIONS, OWN_DEFAULTS, TABLE
from whyact.estimators.base import LENGTH
from whyact.estimators.settings_file import DATA_KINDS, find_kinds

PARAMETERS = signature(FeaturePolicyClassifier).parameters
ROWS = {row.name: row for row in TABLE}

# What --help says instead of None.
NONE_IN_WORDS = {
    "n_components": "inferred",
    "max_features": "no limit",
    "missing_action": "empty fields only",
    "priors": "Table 1 of the paper",
}

# A text for each option, not its default, and what the run must get.
EXAMPLES = {
    "action": ("kind", "kind"),
    "columns": ('alcohol, "a,b"', ["alcohol", "a,b"]),
    "ignore": ("", [""]),
    "available": ("car=CAR_AV, bus = BUS_AV", {"car": "CAR_AV", "bus": "BUS_AV"}),
    "missing_action": ("?", "?"),
    "shape": ("2,3x4", (2, 3, 4)),
    "feature_values": ("real", "real"),
    "n_components": ("5", 5),
    "max_features": ("7", 7),
    "combination": ("product", "product"),
    "decisiveness": ("10", 10.0),
    "action_weight": ("dimensions", "dimensions"),
    "observation_weight": ("0.3", 0.3),
    "unit": ("2", 2.0),
    "scale_columns": ("yes", True),
    "tolerance": ("0.1", 0.1),
    "n_levels": ("50", 50),
    "priors": ("ibp_mass=2,5", Priors(ibp_mass=(2.0, 5.0))),
    "n_burn_in": ("0", 0),
    "n_draws": ("40", 40),
    "thin": ("2", 2),
    "n_chains": ("1", 1),
    "start": ("rows", "rows"),
    "sampler": ("as-published", "as-published"),
    "random_state": ("3", 3),
    "n_jobs": ("2", 2),
    "checkpoint_every": ("0.5", 0.5),
    "prediction": ("map", "map"),
    "max_prediction_draws": ("20", 20),
}


class Reached(Exception):
    """The settings are complete."""


@pytest.fixture
def merged(monkeypatch):
    """Settings as they are before any file is read."""
    seen = {}

    def keep(config, given, merge=fitting.merge_settings):
        settings = merge(config, given)
        seen.update(settings.parameters | settings.data)
        raise Reached

    monkeypatch.setattr(fitting, "merge_settings", keep)
    return seen


def test_every_parameter_has_an_option_or_a_reason_why_not():
    assert set(PARAMETERS) == (set(ROWS) & set(PARAMETERS)) | set(NOT_OPTIONS)
    assert not set(ROWS) & set(NOT_OPTIONS)
    assert set(ROWS) - set(PARAMETERS) <= set(DATA_KINDS)
    assert all(NOT_OPTIONS.values())


def test_every_setting_of_a_file_has_an_option():
    assert set(find_kinds()) - set(NOT_OPTIONS) <= set(ROWS)


def test_options_are_called_like_parameters():
    other = {row.name: row.option for row in TABLE if row.option != f"--{row.name.replace('_', '-')}"}
    assert other == {"priors": "--prior"}  # one at a time


@pytest.mark.parametrize("name", sorted(set(ROWS) & set(PARAMETERS)))
def test_defaults_are_those_of_the_estimator(name):
    default = PARAMETERS[name].default
    if name == "n_jobs":
        assert (ROWS[name].default, OWN_DEFAULTS[name]) == ("all cores", -1)
    elif name in OWN_DEFAULTS:
        assert ROWS[name].default == str(OWN_DEFAULTS[name])
    elif default is None:
        assert ROWS[name].default == NONE_IN_WORDS.get(name, str(LENGTH.get(name)))
    else:
        assert ROWS[name].default == (f"{default:g}" if isinstance(default, float) else str(default))


def test_other_defaults_are_what_the_command_uses(merged):
    assert isinstance(invoke("fit", "d.csv", "-o", "m.nc").exception, Reached)
    assert merged == OWN_DEFAULTS


def test_checkpoints_are_as_frequent_as_in_python():
    default = signature(FeaturePolicyClassifier.fit).parameters["checkpoint_every"].default
    assert (OWN_DEFAULTS["checkpoint_every"], ROWS["checkpoint_every"].default) == (default, f"{default:g}")


def test_help_shows_every_option_with_its_default():
    lines = invoke("fit", "--help").output.splitlines()
    for row in TABLE:
        [line] = [line for line in lines if re.search(rf" {row.option} ", line)]
        assert row.help in line
        assert (f"[default: ({row.default})]" in line) == bool(row.default)


def test_every_option_is_tried():
    assert set(EXAMPLES) == set(ROWS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_options_reach_the_run(merged, name):
    text, value = EXAMPLES[name]
    result = invoke("fit", "d.csv", "-o", "m.nc", ROWS[name].option, text)
    assert isinstance(result.exception, Reached), result.output
    assert merged[name] == value
    assert type(merged[name]) is type(value)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("--scale-columns", "no", False),
        ("--scale-columns", "auto", "auto"),
        ("--decisiveness", "auto", "auto"),
        ("--tolerance", "free", "free"),
        ("--available", '"a, b=c, d"', {"a, b": "c, d"}),
    ],
)
def test_words_mean_what_they_say(merged, option, text, value):
    assert isinstance(invoke("fit", "d.csv", "-o", "m.nc", option, text).exception, Reached)
    assert merged[option[2:].replace("-", "_")] == value


def test_the_command_line_wins_over_the_file(merged, tmp_path):
    (tmp_path / "fit.toml").write_text("n_chains = 2\nthin = 3\nn_jobs = 1\nverbose = 1\ncheckpoint_every = 5\n")
    result = invoke("fit", "d.csv", "-o", "m.nc", "--config", tmp_path / "fit.toml", "--thin", "4")
    assert isinstance(result.exception, Reached), result.output
    assert merged == {"n_chains": 2, "thin": 4, "n_jobs": 1, "random_state": 0, "checkpoint_every": 5}
