"""Predictions as a CSV file, written block by block.

The rows of a block are laid out in a matrix of bytes, with every field as wide as its widest entry. Blanks are then
dropped all at once. That is about five times as fast as formatting row by row.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from whyact.errors import ArgumentError
from whyact.prediction import FAMILIAR
from whyact.storage.atomic import write_streamed
from whyact.tables.cells import protect
from whyact.visible import make_visible

BLANK = 0xFF  # never part of UTF-8
LEAST_AMOUNT = 0.01  # of a feature; smaller ones are not named
N_ROWS = 2**14  # formatted at once; their bytes fit into the cache
STANDARD_OUTPUT = "-"
LAST_FIELD = (",false\n", ",true\n")  # whether the observation is unfamiliar


class PredictionWriter:
    """Write the action, the probability of each action, the features present, and how familiar the observation is.

    Parameters
    ----------
    file : binary file
        The header is written with the first rows, so that a file that cannot be predicted leaves nothing behind.
    classes : sequence of labels of length U
        The actions, in the order of the probabilities; empty if only features were learned.
    feature_names : sequence of str of length K, or None, default=None
        Names without spaces, colons, commas or quotes. None: numbers from 0.
    protect_labels : bool, default=True
        Write an apostrophe before labels that a spreadsheet would run as a formula, such as =1+1; whyact's readers
        take it away again.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from whyact.tables import PredictionWriter
    >>> file = io.BytesIO()
    >>> writer = PredictionWriter(file, ["brake", "keep"])
    >>> writer.write(np.array([[0.25, 0.75]]), np.array([[0.0, 0.38, 0.62]]), np.array([0.97]))
    >>> print(file.getvalue().decode(), end="")
    action,p(brake),p(keep),features,familiarity,unfamiliar
    keep,0.250000,0.750000,2:0.62 1:0.38,0.970,false
    """

    def __init__(
        self,
        file: IO[bytes],
        classes: Sequence[Any],
        feature_names: Sequence[str] | None = None,
        protect_labels: bool = True,
    ) -> None:
        self.file = file
        names = [str(label) for label in classes]
        self.actions = to_fields([quote(protect(name) if protect_labels else name) for name in names])
        self.feature_names = None if feature_names is None else check_feature_names(feature_names)
        header = [*(["action"] if names else []), *(f"p({name})" for name in names), "features", "familiarity"]
        self.header = encode(",".join(quote(name) for name in [*header, "unfamiliar"]) + "\n")

    def write(self, probabilities: np.ndarray, substates: np.ndarray, familiarity: np.ndarray) -> None:
        """Write some rows.

        Parameters
        ----------
        probabilities : ndarray of shape (n, U)
            Probability of each action.
        substates : ndarray of shape (n, K)
            How much of each feature is present.
        familiarity : ndarray of shape (n,)
            Share of each observation that the features explain.
        """
        self.append(self.format(probabilities, substates, familiarity))

    def append(self, rows: bytes) -> None:
        """Write rows that `format` has made; before the first ones, the names of the columns.

        Parameters
        ----------
        rows : bytes
        """
        self.file.write(self.header + rows)
        self.header = b""

    def format(self, probabilities: np.ndarray, substates: np.ndarray, familiarity: np.ndarray) -> bytes:
        """Return what `write` would write; safe to call from several threads.

        Parameters
        ----------
        probabilities, substates, familiarity : ndarray
            As for `write`.

        Returns
        -------
        bytes
        """
        parts = [slice(first, first + N_ROWS) for first in range(0, len(familiarity), N_ROWS)]
        return b"".join(self._format_part(probabilities[rows], substates[rows], familiarity[rows]) for rows in parts)

    def _format_part(self, probabilities: np.ndarray, substates: np.ndarray, familiarity: np.ndarray) -> bytes:
        n_rows = len(familiarity)
        commas = np.full((n_rows, 1), ord(","), dtype=np.uint8)
        fields = []
        if len(self.actions):
            fields = [self.actions[probabilities.argmax(axis=1)], commas]
        for column in probabilities.T:
            fields += [format_decimals(column, 6), commas]
        names = [str(k) for k in range(substates.shape[1])] if self.feature_names is None else self.feature_names
        fields += [format_amounts(substates, to_fields(names)), commas, format_decimals(familiarity, 3)]
        fields += [to_fields(LAST_FIELD)[(~(familiarity >= FAMILIAR)).astype(np.intp)]]
        rows = np.concatenate(fields, axis=1)
        text: bytes = rows[rows != BLANK].tobytes()
        return text


@contextmanager
def open_predictions(
    path: Path | str,
    classes: Sequence[Any],
    feature_names: Sequence[str] | None = None,
    protect_labels: bool = True,
) -> Iterator[PredictionWriter]:
    """Open a CSV file for predictions, which appears whole at the end of the `with` block or not at all.

    Parameters
    ----------
    path : Path or str
        File to write; "-" is standard output.
    classes : sequence of labels of length U
        The actions, in the order of the probabilities; empty if only features were learned.
    feature_names : sequence of str of length K, or None, default=None
        Names without spaces, colons, commas or quotes. None: numbers from 0.
    protect_labels : bool, default=True
        As for `PredictionWriter`.

    Returns
    -------
    context manager of PredictionWriter

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from whyact.tables import open_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_predictions(Path(folder) / "out.csv", ["brake", "keep"], ["near", "far"]) as writer:
    ...         writer.write(np.array([[0.9, 0.1]]), np.array([[1.0, 0.0]]), np.array([0.3]))
    ...     print((Path(folder) / "out.csv").read_text(), end="")
    action,p(brake),p(keep),features,familiarity,unfamiliar
    brake,0.900000,0.100000,near:1.00,0.300,true
    """
    if str(path) == STANDARD_OUTPUT:
        if sys.stdout is None:  # as Python has it where the shell has closed it
            raise ArgumentError("path", "standard output is closed; give a file to write to.")
        # a terminal must not run what is in a label; a pipe gets it as it is
        shown = [make_visible(label) for label in classes] if sys.stdout.isatty() else classes
        writer = PredictionWriter(sys.stdout.buffer, shown, feature_names, protect_labels)
        yield writer
        writer.append(b"")
        sys.stdout.buffer.flush()
        return
    with write_streamed(Path(path)) as file:
        writer = PredictionWriter(file, classes, feature_names, protect_labels)
        yield writer
        writer.append(b"")


def check_feature_names(names: Sequence[str]) -> list[str]:
    """Check that each name is one word in the file."""
    for name in names:
        if not name or name != make_visible(name) or any(character in name for character in ' :,"'):
            raise ArgumentError(
                "feature_names", f"{name!r} would not be one word in the file; use letters and digits only."
            )
    return list(names)


def quote(text: str) -> str:
    """Write a text as a field of a CSV file."""
    if text != text.strip() or any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def encode(text: str) -> bytes:
    """Encode as UTF-8, whatever the text holds."""
    # an array of names can hold half a character, which must not stop the writing
    return text.encode(errors="backslashreplace")


def to_fields(texts: Sequence[str]) -> np.ndarray:
    """Turn texts (n,) into bytes (n, width), padded with blanks."""
    coded = [encode(text) for text in texts]
    width = max(map(len, coded), default=0)
    fill = bytes([BLANK])
    return np.frombuffer(b"".join(text.ljust(width, fill) for text in coded), np.uint8).reshape(len(texts), width)


def format_decimals(numbers: np.ndarray, n_decimals: int) -> np.ndarray:
    """Write numbers from 0 to 1 (n,) as bytes (n, 2 + n_decimals); NaN stays blank."""
    known = np.isfinite(numbers)
    whole = np.rint(np.clip(np.where(known, numbers, 0.0), 0.0, 1.0) * 10**n_decimals).astype(np.uint32)
    texts = np.empty((len(numbers), 2 + n_decimals), dtype=np.uint8)
    texts[:, 1] = ord(".")
    for place in [*range(n_decimals + 1, 1, -1), 0]:
        rest = whole // np.uint32(10)
        texts[:, place] = whole - np.uint32(10) * rest + ord("0")
        whole = rest
    texts[~known] = BLANK
    return texts


def format_amounts(substates: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Write how much of each feature is in each row, largest first, such as "2:0.62 5:0.38"."""
    n_rows = len(substates)
    n_named = int((substates >= LEAST_AMOUNT).sum(axis=1).max(initial=0))
    order = np.argsort(-substates, axis=1, kind="stable")[:, :n_named]
    amounts = np.take_along_axis(substates, order, axis=1)
    width = names.shape[1] + 6  # a space, the name, a colon, 0.12
    texts = np.empty((n_rows, n_named, width), dtype=np.uint8)
    texts[:, :, 0] = ord(" ")
    texts[:, :1, 0] = BLANK
    texts[:, :, 1:-5] = names[order]
    texts[:, :, -5] = ord(":")
    texts[:, :, -4:] = format_decimals(amounts.ravel(), 2).reshape(n_rows, n_named, 4)
    texts[amounts < LEAST_AMOUNT] = BLANK
    return texts.reshape(n_rows, n_named * width)
