"""What the documentation shows is run."""

import doctest
import re

import pytest

import whyact.alternatives.cluster.estimator
import whyact.alternatives.pattern.estimator
import whyact.alternatives.per_action
import whyact.estimators.feature_policy
import whyact.simulation
from tests.support.paths import ROOT


@pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
@pytest.mark.parametrize(
    "module",
    [
        whyact.simulation,
        whyact.estimators.feature_policy,
        whyact.alternatives.cluster.estimator,
        whyact.alternatives.pattern.estimator,
        whyact.alternatives.per_action,
    ],
)
def test_examples_of_docstrings_run(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


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
