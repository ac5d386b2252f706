"""The room as a whole: its names are found, and it is light to import."""

import subprocess
import sys

import pytest

import whyact.tables


def test_public_names_are_found_where_they_live():
    assert sorted(whyact.tables._HOMES) == sorted(whyact.tables.__all__)
    for name, home in whyact.tables._HOMES.items():
        assert getattr(whyact.tables, name).__module__ == home
        assert name in dir(whyact.tables)
    with pytest.raises(AttributeError, match=r"module 'whyact\.tables' has no attribute 'nothing'"):
        whyact.tables.nothing  # noqa: B018


def test_importing_it_imports_neither_numpy_nor_pandas():
    code = "import sys, whyact, whyact.tables; print({'numpy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"
