"""Settings from a TOML file, and what is said about those that cannot be used."""

import inspect

import pytest

from whyact import FeaturePolicyClassifier, Priors
from whyact.errors import ArgumentError
from whyact.estimators.settings_file import DATA_KINDS, find_parameter_kinds, read_settings
from whyact.sampler.settings import AsPublished

GOOD = """
action = "u"
columns = ["speed", "distance"]
ignore = ["row"]
available = {brake = "can brake"}
missing_action = "?"
shape = [8, 8]
checkpoint_every = 50
n_chains = 2
combination = "product"
decisiveness = 10
scale_columns = false
observation_weight = "auto"
random_state = 7
n_jobs = -1

[priors]
ibp_mass = [1, 10]
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "whyact.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_parameters_and_data_come_apart(write):
    settings = read_settings(write(GOOD))
    assert settings.parameters == {
        "n_chains": 2, "combination": "product", "decisiveness": 10, "scale_columns": False,
        "observation_weight": "auto", "random_state": 7, "n_jobs": -1, "priors": Priors(ibp_mass=(1, 10)),
    }  # fmt: skip
    assert settings.data == {
        "action": "u", "columns": ["speed", "distance"], "ignore": ["row"], "available": {"brake": "can brake"},
        "missing_action": "?", "shape": (8, 8), "checkpoint_every": 50,
    }  # fmt: skip
    FeaturePolicyClassifier(**settings.parameters)._validate_params()


def test_words_and_truth_values_may_stand_for_the_same_parameter(write):
    for text, value in (("'auto'", "auto"), ("true", True), ("false", False)):
        assert read_settings(write(f"scale_columns = {text}")).parameters == {"scale_columns": value}
    given = read_settings(write("combination = 'auto'\ndecisiveness = 'auto'\n[available]\ncar = 'CAR_AV'"))
    assert given == ({"combination": "auto", "decisiveness": "auto"}, {"available": {"car": "CAR_AV"}})


def test_an_empty_file_changes_nothing(write):
    assert read_settings(write("")) == ({}, {})


def test_every_parameter_can_be_set(write):
    known = {*find_parameter_kinds(), *DATA_KINDS, "priors", "warm_start"}  # which needs an earlier fit
    assert set(inspect.signature(FeaturePolicyClassifier).parameters) <= known
    assert all(kind.words for kind in find_parameter_kinds().values())


@pytest.mark.parametrize("name", find_parameter_kinds())
def test_what_a_file_may_say_is_what_the_estimator_takes(name):
    kind = find_parameter_kinds()[name]
    values = [-1, 0, 1, 2, 65536, 65537, 2**32 - 1, 2**32, -0.5, 0.5, 1.0, "auto", "prior", "real", "map", "exact"]
    for value in values:
        try:
            FeaturePolicyClassifier(**{name: value})._validate_params()
            is_legal = True
        except ValueError:
            is_legal = False
        if name == "verbose" and value == -1:  # `whyact fit` ignores it
            continue
        assert kind.accepts(value) == is_legal, value
    assert not kind.accepts(float("inf"))
    assert not kind.accepts(None)


@pytest.mark.parametrize("sampler", ["", 'sampler = "as-published"\n'])
def test_the_table_of_the_published_algorithm_chooses_it(write, sampler):
    settings = read_settings(write(f"{sampler}[as_published]\nn_indicators = 10\n"))
    assert settings.parameters == {"sampler": AsPublished(n_indicators=10)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n_chain = 2", r"whyact\.toml: there is no setting 'n_chain', did you mean 'n_chains'\?"),
        ("colums = ['x']", "'colums', did you mean 'columns'"),
        ("[priors]\nibp_mas = [1, 1]", r"no setting 'priors\.ibp_mas', did you mean 'ibp_mass'"),
        ("[as_published]\nbirths = 1", "no setting 'as_published.births'"),
        ("n_chains = 2.5", "n_chains must be a whole number of at least 1, not 2.5"),
        ("n_chains = true", "n_chains must be a whole number of at least 1, not True"),
        ("decisiveness = nan", "decisiveness must be a finite number above 0 or 'auto' or 'drawn', not nan"),
        ("combination = 'sum'", "combination must be 'auto' or 'mixture' or 'product', not 'sum'"),
        ("scale_columns = 'yes'", "scale_columns must be true or false or 'auto', not 'yes'"),
        ("scale_columns = 1", "scale_columns must be true or false or 'auto', not 1"),
        ("available = 'CAR_AV'", r"available must be a table of strings, such as \{car = 'CAR_AV'\}, not 'CAR_AV'"),
        ("available = {car = 1}", "available must be a table of strings"),
        ("[available]", "available must be a table of strings"),
        ("action_weight = 'all'", "must be a finite number of at least 0 or 'auto' or 'dimensions', not 'all'"),
        ("n_levels = 1", "n_levels must be a whole number from 2 to 65536, not 1"),
        ("thin = 0", "thin must be a whole number of at least 1, not 0"),
        ("unit = 0", "unit must be a finite number above 0 or 'auto', not 0"),
        ("random_state = -1", "random_state must be a whole number from 0 to 4294967295, not -1"),
        ("start = 1", "start must be 'auto' or 'prior' or 'rows', not 1"),
        ("random_state = '1'", "random_state must be a whole number"),
        ("columns = 'x'", "columns must be a list of strings, not 'x'"),
        ("columns = ['x', 1]", "columns must be a list of strings"),
        ("action = 1", "action must be a string, not 1"),
        ("shape = [8]", "shape must be two or more whole numbers above 0"),
        ("shape = [8, 0]", "shape must be two or more whole numbers above 0"),
        ("checkpoint_every = 'often'", "checkpoint_every must be a finite number of at least 0, not 'often'"),
        ("checkpoint_every = -1", "checkpoint_every must be a finite number of at least 0, not -1"),
        ("priors = 3", "priors must be a table, not 3"),
        ("[priors]\nibp_mass = [1]", r"priors\.ibp_mass must be a pair of numbers, not \[1\]"),
        ("[priors]\nibp_mass = [1, -1]", "ibp_mass must be a pair of positive numbers"),
        ("sampler = 'exact'\n[as_published]\nn_indicators = 10", "needs sampler = 'as-published', not 'exact'"),
        ("n_chains = 2\nn_draws == 3", r"whyact\.toml: it is not TOML: .*line 2"),
        ("n_chains = 2\nn_chains = 3\n", "it is not TOML: Cannot overwrite a value"),
        (b"action = '\xff'", "not text in UTF-8"),
        ("columns = " + "[" * 5000, "nested too deeply"),
        ("n_chains = " + "1" * 5000, r"whyact\.toml: it holds a number with too many digits\.$"),
        ("n_chains = 0x" + "f" * 5000, "n_chains must be .*, not a number with too many digits"),
        ("columns = [0x" + "f" * 5000 + "]", "columns must be a list of strings, not a number with too many digits"),
        ("n_draws = 1" + "0" * 30, "n_draws must be a whole number of at least 1, not 10{30}"),
        ("unit = 1" + "0" * 400, r"unit must be a finite number above 0 or 'auto', not 10{59}\.\.\."),
        ("[priors]\nibp_mass = [1, 1" + "0" * 400 + "]", "ibp_mass must be a pair of numbers"),
        ("#" * 2**21, "at most 1048576 bytes"),
        ("action = {a = '" + "x" * 10_000 + "'}", r"action must be a string, not .{60}\.\.\.\.$"),
    ],
)
def test_wrong_settings_get_one_clear_sentence(write, text, sentence):
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_settings(write(text))
    assert error.value.argument == "config"
    assert "\n" not in str(error.value)


def test_files_that_are_not_there(tmp_path):
    for path, sentence in ((tmp_path / "no.toml", "there is no file"), (tmp_path, "cannot be read: Is a directory")):
        with pytest.raises(ArgumentError, match=sentence) as error:
            read_settings(path)
        assert error.value.argument == "config"


@pytest.mark.parametrize("part", ["a", '"a.b"', "'a=b'", '"\\""'])
@pytest.mark.parametrize("dot", [".", " . "])
def test_a_key_has_not_any_number_of_parts(write, part, dot):
    """Python reads one of 500,000 parts for hours, and Ctrl-C has to wait."""
    for key in (
        f"{dot.join([part] * 101)} = 1",
        f"[{dot.join([part] * 101)}]",
        f"x = {{{dot.join([part] * 101)} = 1}}",
    ):
        with pytest.raises(ArgumentError, match="holds a key of more than 100 parts"):
            read_settings(write(key))
    with pytest.raises(ArgumentError, match="there is no setting"):
        read_settings(write(f"{dot.join([part] * 99)} = 1"))
