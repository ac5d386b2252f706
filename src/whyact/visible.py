"""Text from files, as it may go to a terminal.

A label or a name can hold anything: sequences that move a terminal's cursor, colour or rename it, ends of lines that
forge a line of ours, marks that turn the direction of what follows. So what names things in a sentence passes
`make_visible`, and so do the messages of errors and every line that the command line prints.
"""

import re

# C0 and DEL, C1, marks and overrides of direction, separators of lines and paragraphs, halves of characters.
UNSEEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def make_visible(text: object) -> str:
    r"""Return one line of text with its control characters written out.

    Parameters
    ----------
    text : object
        A text, or what is to be written as text, such as a label.

    Returns
    -------
    str

    Examples
    --------
    >>> from whyact.visible import make_visible
    >>> print(make_visible("left\n\x1b[2Jaccuracy 1.00"))
    left\n\x1b[2Jaccuracy 1.00
    """
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))
