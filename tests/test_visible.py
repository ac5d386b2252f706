"""What comes from a file is shown with its control characters written out, wherever it is shown."""

import ast

import numpy as np
import pandas as pd
import pytest

from tests.support.paths import ROOT
from tests.support.plain import PLAIN
from whyact import FeaturePolicyClassifier
from whyact.errors import ArgumentError, WhyactError, warn_user
from whyact.visible import UNSEEN, make_visible

HOSTILE = [
    "\x1b[2J", "\x1b]0;title\x07", "a\nb", "a\r", "\t", "\x7f", "\x9b31m", "\x85", "\u202egnp", "\u2066", "\u2028",
    "\u2029", "\u200f", "\udc80", "\x00", "\x08",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_control_characters_are_written_out(text):
    shown = make_visible(text)
    assert shown.isprintable()
    assert "\\" in shown
    assert make_visible(shown) == shown


@pytest.mark.parametrize("text", ["brake", "über", "左", "'quoted' \\ back", "🚗", "e\u0301", "نعم"])
def test_words_stay(text):
    assert make_visible(text) == text


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_errors_and_warnings_are_visible(text):
    assert not UNSEEN.search(str(WhyactError(f"there is no {text}")))
    assert not UNSEEN.search(str(ArgumentError("path", f"there is no {text}")))
    with pytest.warns(UserWarning, match="there is no") as caught:
        warn_user(f"there is no {text}")
    assert not UNSEEN.search(str(caught[0].message))


@pytest.fixture(scope="module")
def hostile():
    """A model of columns and actions that are all called something hostile."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((40, 4)), columns=["\x1b[2J", "a\nfile:", "\u202egnp", "\x9b31m"])
    y = np.array(["keep\nAccuracy: 1.00", "\x1b]0;x\x07"])[(X.to_numpy()[:, 0] > 0.5).astype(int)]
    return FeaturePolicyClassifier(**PLAIN, n_burn_in=20, n_draws=20, n_chains=2, random_state=0).fit(X, y), X


@pytest.mark.filterwarnings("ignore::whyact.errors.ChainsDisagreeWarning")
@pytest.mark.parametrize("combination", ["mixture", "product"])
def test_no_text_about_a_model_shows_them_raw(hostile, combination):
    model, X = hostile
    if combination == "product":
        options = model.get_params() | {"combination": "product", "decisiveness": "auto"}
        model = FeaturePolicyClassifier(**options).fit(X, model.classes_[model.actions_])
    described, explained = str(model), str(model.explain(X[:5]))
    for text in (described, explained):
        assert not UNSEEN.search(text.replace("\n", ""))
    # no name has begun a line of its own
    assert not [line for line in described.split("\n") if line.startswith(("file:", "Accuracy:"))]
    assert all(line.startswith(("Row ", "  ")) for line in explained.split("\n"))
    assert "\\x1b" in described


def test_the_command_line_prints_through_one_door():
    """`say` in cli/arguments.py; nothing else there prints, except for what rich draws."""
    calls = []
    for path in (ROOT / "src" / "whyact" / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "typer.echo", "sys.stdout.write"):
                calls.append((path.name, ast.unparse(node.func)))
    assert calls == [("arguments.py", "typer.echo")]
