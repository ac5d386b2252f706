"""How the number of features depends on the tolerance, and whether it settles.

All models are wrong by something, so a number of features belongs to how wrong the model may be. A number that stays
the same while the tolerance doubles is a finding about the data; one that changes with every tolerance is not.
"""

from itertools import combinations
from typing import NamedTuple

from whyact.errors import say_options

WIDE = 2.0  # how many times the smallest tolerance of a plateau its largest one is, at least
FEWEST = 3  # tolerances of a plateau
FEWEST_TO_DIFFER = 3  # features, so that one more or less is about the same number
LARGEST_DIFFERENCE = 0.25  # of the smallest number on a plateau
ENOUGH = 5  # tolerances, to say that there is no plateau


class ToleranceCount(NamedTuple):
    """How many features a tolerance leaves."""

    tolerance: float  # share of a column's range
    n_features: float  # which more than half of the draws hold; not whole if it is a mean over trials


class Plateau(NamedTuple):
    """Tolerances over which the number of features stays about the same."""

    low: float
    high: float
    least: int  # number of features
    most: int


class ToleranceCurve(NamedTuple):
    """The number of features over the tolerance.

    Parameters
    ----------
    counts : tuple of ToleranceCount
        In rising order of tolerance, from short chains.
    own : ToleranceCount
        Of the fitted model, with the noise that it has if that was not held.
    n_rows : int
        How many demonstrations the short chains learned from.
    is_given : bool, default=False
        Whether the number of features of the fitted model was given, not found.

    Examples
    --------
    >>> from whyact.explanation.plateau import ToleranceCount, ToleranceCurve
    >>> counts = [(0.03, 9), (0.05, 6), (0.1, 5), (0.15, 5), (0.2, 3), (0.3, 1)]
    >>> curve = ToleranceCurve(tuple(ToleranceCount(*count) for count in counts), ToleranceCount(0.05, 6), 120)
    >>> curve.plateau
    Plateau(low=0.05, high=0.15, least=5, most=6)
    >>> print(curve)
    tolerance  features
         0.03  9
         0.05  6
          0.1  5
         0.15  5
          0.2  3
          0.3  1
    Between tolerances of 0.05 and 0.15 there are 5 to 6 features: the number hardly depends on the tolerance there.
    >>> print(curve._replace(own=ToleranceCount(0.03, 8)).sentence.partition("there. ")[2].partition(". ")[0])
    This model, at 0.03, is below that range: it has 8 features (9 in a short trial)
    """

    counts: tuple[ToleranceCount, ...]
    own: ToleranceCount
    n_rows: int
    is_given: bool = False

    @property
    def plateau(self) -> Plateau | None:
        """The widest one; None if the number of features does not settle."""
        return find_plateau(self.counts)

    @property
    def sentence(self) -> str:
        """Where the number of features settles, and where the fitted model is; nothing if too little was tried."""
        return " ".join(filter(None, [say_plateau(self.counts), say_own(self)]))

    def __str__(self) -> str:
        rows = [f"{count.tolerance:9.3g}  {count.n_features:.0f}" for count in self.counts]
        return "\n".join(["tolerance  features", *rows, self.sentence])


def find_plateau(counts: tuple[ToleranceCount, ...]) -> Plateau | None:
    """The widest range of tolerances over which the number of features stays about the same; None if there is none.

    With large tolerances everything is one feature, or noise, which says little. So a plateau of more features comes
    first, and no features are none.
    """
    found = []
    for first, last in combinations(range(len(counts)), 2):
        numbers = [round(count.n_features) for count in counts[first : last + 1]]
        low, high = counts[first].tolerance, counts[last].tolerance
        # a little less than WIDE, because 0.1 / 0.05 is rounded
        if len(numbers) >= FEWEST and high >= 0.999 * WIDE * low and are_about_the_same(numbers):
            found.append(Plateau(low, high, min(numbers), max(numbers)))
    return max(found, key=lambda plateau: (plateau.least > 1, plateau.high / plateau.low), default=None)


def are_about_the_same(numbers: list[int]) -> bool:
    """Whether numbers of features differ by no more than short chains do."""
    least = min(numbers)
    allowed = max(int(LARGEST_DIFFERENCE * least), int(least >= FEWEST_TO_DIFFER))
    return least > 0 and max(numbers) - least <= allowed


def say_plateau(counts: tuple[ToleranceCount, ...]) -> str:
    """Where the number of features settles, in one sentence; nothing if too few tolerances were tried to tell."""
    plateau = find_plateau(counts)
    if plateau is None:
        return say_no_plateau(counts)
    low, high, least, most = plateau
    if least == most:
        number = f"is {least} feature" if least == 1 else f"are {least} features"
        return (
            f"Between tolerances of {low:.2g} and {high:.2g} there {number}: the number does not depend on the "
            "tolerance there."
        )
    return (
        f"Between tolerances of {low:.2g} and {high:.2g} there are {least} to {most} features: the number hardly "
        "depends on the tolerance there."
    )


def say_own(curve: ToleranceCurve) -> str:
    """Why the fitted model has another number of features than the plateau; nothing if it has not."""
    plateau, own = curve.plateau, curve.own
    if plateau is None or plateau.least <= own.n_features <= plateau.most:
        return ""
    if curve.is_given:
        return f"This model has {own.n_features:.0f} because that number was given."
    has = f"it has {own.n_features:.0f} feature{'s' * (own.n_features != 1)}"
    # a little slack, because tolerances are rounded
    if 0.99 * plateau.low <= own.tolerance <= 1.01 * plateau.high:
        return (
            f"This model is in that range, but {has}: trials are short, and learn from {curve.n_rows} demonstrations."
        )
    where, nearest = ("below", plateau.low) if own.tolerance < plateau.low else ("above", plateau.high)
    tried = next((count for count in curve.counts if abs(count.tolerance - own.tolerance) < 0.01 * own.tolerance), None)
    if tried is not None and round(tried.n_features) != own.n_features:
        has += f" ({tried.n_features:.0f} in a short trial)"
    return (
        f"This model, at {own.tolerance:.2g}, is {where} that range: {has}. "
        f"{say_options(tolerance=nearest)} would put it there."
    )


def say_no_plateau(counts: tuple[ToleranceCount, ...]) -> str:
    """That the number of features says as much about the tolerance as about the data."""
    if len(counts) < ENOUGH:
        return ""
    numbers = [round(count.n_features) for count in counts]
    if max(numbers) == 0:
        return "No tolerance leaves any feature: up to the smallest one, everything looks like noise."
    how = "every tolerance gives another one" if len(set(numbers)) == len(numbers) else "it keeps changing"
    return (
        f"The number of features has no plateau: {how}, from {numbers[0]} at {counts[0].tolerance:.2g} to "
        f"{numbers[-1]} at {counts[-1].tolerance:.2g}, so it says as much about the tolerance as about the data."
    )
