"""Cells that a spreadsheet must not take for a formula.

A spreadsheet runs a cell that begins with =, +, - or @, also after blanks, when someone opens a CSV file; a formula can
start programs and send what is in other cells away. As the guides of spreadsheets say, an apostrophe before it makes it
a text. A cell that would then look like a protected one gets an apostrophe, too, so that `unprotect` finds all cells as
they were. Numbers, such as -1.5, are none that can be run, and stay as they are.
"""

import re

# Also the wide forms of the signs, which some spreadsheets take for the usual ones.
FORMULA = re.compile(r"[\s\x00]*['=+\-@＝＋－＠]|[\t\r\n]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
APOSTROPHE = "'"


def protect(text: str) -> str:
    """Return a cell that is shown as text; `unprotect` undoes it.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from whyact.tables.cells import protect
    >>> protect("=1+1"), protect("-1.5"), protect("brake")
    ("'=1+1", '-1.5', 'brake')
    """
    return APOSTROPHE + text if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def unprotect(text: str) -> str:
    """Return the text that a protected cell stands for; any other cell as it is.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from whyact.tables.cells import unprotect
    >>> unprotect("'=1+1"), unprotect("'tis"), unprotect("brake")
    ('=1+1', "'tis", 'brake')
    """
    if text.startswith(APOSTROPHE) and protect(text[1:]) != text[1:]:
        return text[1:]
    return text
