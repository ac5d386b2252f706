"""Kernels compile when first needed, are cached, and never meet a stale caller."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import whyact
from whyact.sampler import compiling

PACKAGE = Path(whyact.__file__).parent


def run(code, *, package=PACKAGE, **environment):
    """Run code in a fresh interpreter with only the given variables for caches and homes."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "PYTHONPATH", "LOCALAPPDATA")
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_import_is_light():
    code = (
        "import sys, time; start = time.perf_counter(); import whyact; seconds = time.perf_counter() - start\n"
        "heavy = [m for m in ('numba', 'sklearn', 'xarray', 'arviz_base', 'scipy', 'matplotlib') if m in sys.modules]\n"
        "print(seconds, heavy)"
    )
    result = run(code, HOME="/tmp")
    assert result.stdout.split(maxsplit=1)[1].strip() == "[]", result.stderr


def test_naming_the_estimator_does_not_import_numba():
    code = "import sys; from whyact import FeaturePolicyClassifier, Priors; print('numba' in sys.modules)"
    assert run(code, HOME="/tmp").stdout.strip() == "False"


FIT = """
import numpy as np
from whyact import FeaturePolicyClassifier
X = np.random.default_rng(0).random((12, 4))
model = FeaturePolicyClassifier(n_burn_in=5, n_draws=5, n_chains=1, random_state=0, verbose=1).fit(X, np.arange(12) % 2)
print(model.predict_proba(X).shape)
"""


@pytest.mark.long
def test_a_fit_works_where_nothing_can_be_written():
    """No home, and a cache folder that cannot be made (under /dev/null, which stops root as well)."""
    result = run(FIT, HOME="/dev/null/nowhere", NUMBA_CACHE_DIR="/dev/null/nowhere")
    assert result.stdout.strip() == "(12, 2)", result.stderr
    assert "no private cache folder" in result.stderr


@pytest.mark.long
def test_the_first_fit_says_that_it_compiles_and_the_second_takes_the_cache(private_folder):
    first = run(FIT, HOME=str(private_folder))
    assert "compiling the sampler's kernels" in first.stderr
    assert list((private_folder / ".cache" / "whyact").rglob("*.nbc"))
    second = run(FIT, HOME=str(private_folder))
    assert second.stdout == first.stdout
    assert "compiling" not in second.stderr


def test_a_changed_kernel_never_meets_a_stale_caller(tmp_path, private_folder):
    """numba itself only watches the caller's file: change a callee in another file, and ask the caller again."""
    package = tmp_path / "whyact"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import numpy as np; from whyact.sampler.new_rows import climb_substates\n"
        "s = np.zeros(1); rng = np.random.default_rng(0)\n"
        "climb_substates(rng, s, np.ones(1), np.ones((1, 1)), np.full(1, 0.5), 100.0, 11); print(s[0])"
    )
    environment = {"package": package, "HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(private_folder)}
    assert run(code, **environment).stdout.strip() == "1.0"
    assert list(private_folder.rglob("*.nbc"))
    callee = package / "sampler" / "substates.py"
    text = callee.read_text()
    changed = text.replace("return s * (linear - 0.5 * precision * s)", "return -s * (linear - 0.5 * precision * s)")
    assert changed != text
    callee.write_text(changed)
    assert run(code, **environment).stdout.strip() == "0.0"


@pytest.mark.parametrize(
    "name", ["FeaturePolicyClassifier", "Priors", "simulate", "load_demo", "ChainsDisagreeWarning"]
)
def test_public_names_are_there(name):
    assert name in dir(whyact)
    assert getattr(whyact, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = whyact.nothing


def test_kernels_that_check_bounds_have_a_cache_of_their_own(monkeypatch):
    """Or who asked for them once would keep them, and who has kernels would not get them."""
    without = compiling.digest_of_kernels()
    monkeypatch.setattr(compiling.numba.config, "BOUNDSCHECK", 1)
    assert compiling.digest_of_kernels() != without
