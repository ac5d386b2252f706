"""What is said to the user about what the user gave."""

import difflib
from collections.abc import Iterable, Sequence


class ArgumentError(ValueError):
    """What the user gave cannot be used; the message is for the user, `argument` is the name of what is wrong."""

    def __init__(self, argument: str, message: str):
        super().__init__(message)
        self.argument = argument


def suggest(name: str, names: Iterable[str], n_shown: int = 20) -> str:
    """The end of a sentence that says that a name is not known: the closest one, and the list."""
    names = list(names)
    close = difflib.get_close_matches(name.lower(), [known.lower() for known in names], 1)
    closest = [known for known in names if close and known.lower() == close[0]][:1]
    hint = f", did you mean {closest[0]!r}?" if closest else "."
    return f"{hint} There are {list_names(names, n_shown)}."


def list_names(names: Sequence[str], n_shown: int = 20) -> str:
    """The names, or the first of many."""
    more = f" and {len(names) - n_shown} more" if len(names) > n_shown else ""
    return f"{', '.join(names[:n_shown]) or 'none'}{more}"
