"""From a summary to one HTML file that needs no network.

Names of columns and actions can come from anywhere, so they are made harmless in three places: Jinja's autoescape
handles the markup, `to_script_json` the data for the JavaScript, and the JavaScript writes text, never markup. Should
one slip through, the content security policy lets only the page's own script run.
"""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from whyact.explanation.names import name_label
from whyact.explanation.text import WORTH_TIMES, say_factor
from whyact.report.drawings import Axis, band_path, line_path, number_ticks, place_counts, png_address
from whyact.report.plain import Plain, count_of, to_script_json
from whyact.report.words import say_accuracy, say_chains, say_combination, say_number, say_rows, say_sureness


def render(summary: Plain) -> str:
    """Make the page that shows what `summarise` gathered.

    Parameters
    ----------
    summary : dict
        What `summarise` returns.

    Returns
    -------
    str
        HTML that needs no network and no other file.

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> from whyact.report import render, summarise
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=100, n_draws=50, n_chains=1, random_state=0).fit(demo.X, demo.y)
    >>> page = render(summarise(model, title="What the driver reacts to"))
    >>> "<h1><bdi>What the driver reacts to</bdi></h1>" in page
    True
    """
    script, style = read_resource("page.js"), read_resource("page.css")
    return (
        make_environment()
        .get_template("page.html")
        .render(
            summary=summary,
            headline={"number": say_number(summary), "accuracy": say_accuracy(summary), "chains": say_chains(summary)},
            rows=say_rows(summary),
            sureness=say_sureness(summary),
            combination=say_combination(summary),
            data=Markup(to_script_json(summary["explorer"] | {"action_names": summary["actions"]})),
            script=Markup(script),
            style=Markup(style),
            policy=content_security_policy(script, style),
        )
    )


def content_security_policy(script: str, style: str) -> str:
    """A policy under which nothing loads or runs except this script, this style, and images within the page."""
    return (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """The SHA-256 of a script or style, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def read_resource(name: str) -> str:
    """The text of a file in `templates`."""
    return (files("whyact.report") / "templates" / name).read_text(encoding="utf-8")


@cache  # compiling the templates takes most of the time that a page takes
def make_environment() -> Environment:
    """Jinja with the templates, and the filters and functions that they use."""
    environment = Environment(
        loader=PackageLoader("whyact.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": format_percent,
        "times": format_times,
        "number": format_number,
        "places": format_places,
        "probability": format_probability,
        "options": mark_options,
    }
    environment.globals |= {
        "name_label": name_label,
        "Axis": Axis,
        "band_path": band_path,
        "count_of": count_of,
        "line_path": line_path,
        "place_counts": place_counts,
        "number_ticks": number_ticks,
        "png_address": png_address,
    }
    return environment


def mark_options(text: str) -> Markup:
    """Mark up parameters and command line options as code, so that no line breaks within one."""
    option = r"--[a-z][a-z-]*( (\d[\d.]*\d|\d|auto|exact|real)\b)?"
    parameter = r"[a-z]+(_[a-z]+)+(=(&#34;\w+&#34;|[\d.]*\d))?(\(\))?|[a-z]+=(&#34;\w+&#34;|[\d.]*\d)"
    return Markup(re.sub(rf"(?<![\w-])({option}|{parameter})", r"<code>\1</code>", str(escape(text))))


def format_percent(share: float) -> str:
    """A share in percent; rounding alone never makes it 0% or 100%."""
    if 0 < share < 0.01:
        return "less than 1%"
    if 0.99 < share < 1:
        return "more than 99%"
    return f"{share:.0%}"


def format_times(factor: float) -> str:
    """How many times as probable, in words."""
    if 1 / WORTH_TIMES < factor < WORTH_TIMES:
        return "about as likely"
    return f"{say_factor(factor)}× more likely" if factor > 1 else f"{say_factor(1 / factor)}× less likely"


def format_number(value: float | None, digits: int = 3) -> str:
    """A number with a few significant digits and a real minus sign."""
    return "–" if value is None else f"{value:.{digits}g}".replace("-", "−")


def format_probability(value: float) -> str:
    """A probability with three decimal places; rounding alone never makes it 0."""
    return "below 0.001" if 0 < value < 0.001 else f"{value:.3g}" if value < 0.9995 else "1"


def format_places(value: float | None, places: int = 2) -> str:
    """A number with a few decimal places and a real minus sign."""
    return "–" if value is None else f"{value:.{places}f}".replace("-", "−")
