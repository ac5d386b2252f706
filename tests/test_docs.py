"""What the documentation shows is run."""

import doctest
import importlib
import re

import pytest

from tests.support.paths import ROOT

PACKAGE = ROOT / "src" / "whyact"
MODULES = [
    ".".join(("whyact", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text()
]
# What the examples of a module need beside whyact itself.
NEEDED = {
    "whyact.tables.minari": "minari",
    "whyact.driving.agent": "highway_env",
    "whyact.driving.traffic": "highway_env",
    "whyact.driving.pictures": "matplotlib",
    "whyact.plotting": "matplotlib",
}


@pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name], reason=f"the examples of {name} need {NEEDED[name]}")
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_the_example_of_the_readme_runs(capsys):
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "5 features explain 80 demonstrations" in out
    assert "r_hat" in out


@pytest.mark.parametrize("name", ["LICENSE", "CITATION.cff", "CONTRIBUTING.md", "CHANGELOG.md", "docs/images/demo.png"])
def test_files_that_the_readme_needs_are_there(name):
    assert (ROOT / name).stat().st_size > 0
