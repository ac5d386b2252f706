"""Where the number of features settles as the tolerance grows."""

import pytest

from whyact.explanation.plateau import Plateau, ToleranceCount, ToleranceCurve, find_plateau, say_own, say_plateau

TOLERANCES = (0.03, 0.05, 0.1, 0.15, 0.2, 0.3)


def count(*numbers, tolerances=TOLERANCES):
    return tuple(ToleranceCount(*pair) for pair in zip(tolerances, numbers, strict=False))


@pytest.mark.parametrize(
    ("numbers", "plateau"),
    [
        ((9, 6, 5, 5, 3, 1), Plateau(0.05, 0.15, 5, 6)),
        ((5, 5, 5, 2, 1, 1), Plateau(0.03, 0.1, 5, 5)),
        ((4, 3, 2, 2, 2, 2), Plateau(0.1, 0.3, 2, 2)),
        ((17, 15, 8, 4, 2, 1), None),
        ((6, 4, 2, 2, 1, 1), None),  # two tolerances are no plateau
        ((9, 7, 5, 3, 2, 1), None),
        ((4, 4, 4, 1, 1, 1), Plateau(0.03, 0.1, 4, 4)),  # a single feature always stays, which says little
        ((1, 1, 1, 1, 1, 1), Plateau(0.03, 0.3, 1, 1)),
        ((5, 2, 1, 0, 0, 0), None),
        ((20, 18, 17, 6, 3, 2), Plateau(0.03, 0.1, 17, 20)),
    ],
)
def test_a_plateau_is_where_the_number_stays_about_the_same(numbers, plateau):
    assert find_plateau(count(*numbers)) == plateau


def test_a_plateau_spans_a_factor_of_two():
    assert find_plateau(count(5, 5, 5, tolerances=(0.05, 0.06, 0.07))) is None
    assert find_plateau(count(5, 5, 5, tolerances=(0.05, 0.07, 0.1))) == Plateau(0.05, 0.1, 5, 5)


def test_it_is_said_in_one_sentence():
    said = say_plateau(count(9, 6, 5, 5, 3, 1))
    assert said.startswith("Between tolerances of 0.05 and 0.15 there are 5 to 6 features: the number hardly depends")
    assert "there is 1 feature:" in say_plateau(count(1, 1, 1, 1, 1, 1))
    assert "every tolerance gives another one, from 17 at 0.03 to 1 at 0.3" in say_plateau(count(17, 15, 8, 4, 2, 1))
    assert "it keeps changing, from 6 at 0.03 to 1 at 0.3" in say_plateau(count(6, 4, 2, 2, 1, 1))
    assert "looks like noise" in say_plateau(count(0, 0, 0, 0, 0, 0))
    assert say_plateau(count(9, 3)) == say_plateau(()) == ""  # too few to tell


@pytest.mark.parametrize(
    ("numbers", "own", "told"),
    [
        (
            (6, 4, 2, 2, 2, 2),
            (0.05, 3),
            "This model, at 0.05, is below that range: it has 3 features (4 in a short trial).",
        ),
        ((3, 3, 3, 2, 1, 1), (0.2, 1), "This model, at 0.2, is above that range: it has 1 feature."),
        (
            (5, 5, 5, 2, 1, 1),
            (0.05, 6),
            "This model is in that range, but it has 6 features: trials are short, and learn",
        ),
    ],
)
def test_a_model_that_is_not_on_the_plateau_says_why(numbers, own, told):
    curve = ToleranceCurve(count(*numbers), ToleranceCount(*own), 80)
    assert f" {told}" in curve.sentence
    assert curve.sentence.startswith("Between tolerances of")
    assert str(curve).endswith(curve.sentence)
    assert "because that number was given" in curve._replace(is_given=True).sentence


def test_a_model_below_the_plateau_is_told_how_to_get_there():
    curve = ToleranceCurve(count(6, 4, 2, 2, 2, 2), ToleranceCount(0.05, 3), 80)
    assert curve.sentence.endswith("tolerance=0.1 (--tolerance 0.1 on the command line) would put it there.")


def test_on_the_plateau_there_is_nothing_to_add():
    assert say_own(ToleranceCurve(count(5, 5, 5, 2, 1, 1), ToleranceCount(0.05, 5), 80)) == ""
    assert say_own(ToleranceCurve(count(17, 15, 8, 4, 2, 1), ToleranceCount(0.05, 9), 80)) == ""


def test_means_of_trials_are_rounded():
    assert find_plateau(count(5.4, 5.25, 4.75)) == Plateau(0.03, 0.1, 5, 5)


def test_a_curve_prints_as_a_table_with_a_sentence():
    lines = str(ToleranceCurve(count(5, 5, 5, 2), ToleranceCount(0.05, 5.0), 80)).splitlines()
    assert lines[1].split() == ["0.03", "5"]
    assert len(lines) == 6
    assert lines[-1].startswith("Between")
