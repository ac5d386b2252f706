"""From a summary to one HTML file that needs no network.

Names of columns and actions come from anywhere, so they are escaped in three places: by Jinja's autoescape in the
markup, by `to_script_json` in the data for the JavaScript, and there by writing text, never markup. Should one slip
through, the content security policy lets nothing run but the page's own script.
"""

import base64
import hashlib
import re
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from whyact.report.drawings import Axis, band_path, line_path, number_ticks, png_address
from whyact.report.plain import count_of, to_script_json
from whyact.report.words import say_accuracy, say_chains, say_number, say_rows, say_sureness


def render(summary: dict) -> str:
    """Return the page that shows what `summarise` gathered."""
    script, style = read_resource("page.js"), read_resource("page.css")
    return (
        make_environment()
        .get_template("page.html")
        .render(
            summary=summary,
            headline={"number": say_number(summary), "accuracy": say_accuracy(summary), "chains": say_chains(summary)},
            rows=say_rows(summary),
            sureness=say_sureness(summary),
            data=Markup(to_script_json(summary["explorer"] | {"action_names": summary["actions"]})),
            script=Markup(script),
            style=Markup(style),
            policy=content_security_policy(script, style),
        )
    )


def content_security_policy(script: str, style: str) -> str:
    """Nothing may load or run, but this script, this style, and images within the page."""
    return (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def read_resource(name: str) -> str:
    return (files("whyact.report") / "templates" / name).read_text(encoding="utf-8")


def make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("whyact.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": format_percent,
        "number": format_number,
        "places": format_places,
        "options": mark_options,
    }
    environment.globals |= {
        "Axis": Axis,
        "band_path": band_path,
        "count_of": count_of,
        "line_path": line_path,
        "number_ticks": number_ticks,
        "png_address": png_address,
    }
    return environment


def mark_options(text: str) -> Markup:
    """Set parameters and options of the command line apart, so that no line breaks within one."""
    return Markup(re.sub(r"(?<![\w-])(--[a-z][a-z-]*( \d+)?|[a-z]+_[a-z]+)", r"<code>\1</code>", str(escape(text))))


def format_percent(share: float) -> str:
    """A share without false certainty: nothing is 0% or 100% by rounding alone."""
    if 0 < share < 0.01:
        return "less than 1%"
    if 0.99 < share < 1:
        return "more than 99%"
    return f"{share:.0%}"


def format_number(value: float | None, digits: int = 3) -> str:
    """A few digits; a real minus sign."""
    return "–" if value is None else f"{value:.{digits}g}".replace("-", "−")


def format_places(value: float | None, places: int = 2) -> str:
    return "–" if value is None else f"{value:.{places}f}".replace("-", "−")
