"""Shared by the tests of the sampler."""

import tempfile
from pathlib import Path

import pytest

from whyact.sampler.private_folders import NotPrivateError, make_private_folder


@pytest.fixture
def private_folder():
    """A folder that nobody else can write to; pytest's own lie below one that all can write to."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as name:
        try:
            folder = make_private_folder(Path(name))
        except NotPrivateError as error:
            pytest.skip(f"there is no private folder here: {error}")
        yield folder
