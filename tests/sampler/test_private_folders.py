"""What lies in the cache of the kernels is run, so nobody else may be able to put it there."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from whyact.sampler import compiling, private_folders
from whyact.sampler.private_folders import NotPrivateError, check_files, make_private_folder

needs_user_ids = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs the rights of POSIX")
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs other users")
pytestmark = needs_user_ids

SOMEBODY_ELSE = 54321


@pytest.fixture
def open_umask():
    """The umask that gives all rights to all."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_made_for_their_owner_alone(private_folder, open_umask):
    folder = make_private_folder(private_folder / "home" / ".cache", "whyact", "0123")
    assert folder == private_folder / "home" / ".cache" / "whyact" / "0123"
    for path in (folder, *folder.parents[:3]):
        assert mode_of(path) == 0o700
    assert make_private_folder(private_folder / "home" / ".cache", "whyact", "0123") == folder


def test_a_strict_umask_does_not_lock_its_owner_out(private_folder):
    before = os.umask(0o777)
    try:
        folder = make_private_folder(private_folder, "whyact")
    finally:
        os.umask(before)
    assert mode_of(folder) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702], ids=oct)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_no_folder_on_the_path_may_be_open_to_others(private_folder, mode, depth):
    """Also not a sticky one, as /tmp is."""
    folder = make_private_folder(private_folder, "a", "b", "c")
    [folder, *folder.parents][depth].chmod(mode)
    with pytest.raises(NotPrivateError, match="others can write to"):
        make_private_folder(private_folder, "a", "b", "c")


def test_a_relative_path_is_refused(private_folder, monkeypatch):
    monkeypatch.chdir(private_folder)
    with pytest.raises(NotPrivateError, match="not an absolute path"):
        make_private_folder(Path("cache"))
    assert list(private_folder.iterdir()) == []


def test_what_a_link_leads_to_is_checked(private_folder, tmp_path):
    (private_folder / "link").symlink_to(tmp_path)  # which lies below a folder that all can write to
    with pytest.raises(NotPrivateError, match="others can write to"):
        make_private_folder(private_folder / "link", "whyact")
    (private_folder / "own").mkdir()
    (private_folder / "inside").symlink_to(private_folder / "own")
    assert make_private_folder(private_folder / "inside", "whyact") == private_folder / "own" / "whyact"


def test_a_link_in_place_of_our_own_folder_is_refused(private_folder):
    (private_folder / "elsewhere").mkdir()
    (private_folder / "whyact").symlink_to(private_folder / "elsewhere")
    with pytest.raises(NotPrivateError, match="is not a folder"):
        make_private_folder(private_folder, "whyact")


def test_a_folder_of_another_user_is_refused(private_folder, monkeypatch):
    monkeypatch.setattr(private_folders.os, "geteuid", lambda: SOMEBODY_ELSE)
    folder = make_private_folder(Path("/"))  # all of it is root's
    assert folder == Path("/")
    if private_folder.stat().st_uid == 0:
        monkeypatch.setattr(Path, "lstat", lambda path: SimpleNamespace(st_mode=stat.S_IFDIR | 0o700, st_uid=1))
    with pytest.raises(NotPrivateError, match="belongs to another user"):
        make_private_folder(private_folder)


@needs_root
def test_a_folder_of_a_real_other_user_is_refused(private_folder):
    folder = make_private_folder(private_folder, "a", "b")
    os.chown(folder.parent, SOMEBODY_ELSE, SOMEBODY_ELSE)
    with pytest.raises(NotPrivateError, match="belongs to another user"):
        make_private_folder(private_folder, "a", "b")


@needs_root
def test_a_planted_file_is_found(private_folder):
    (private_folder / "below").mkdir()
    planted = private_folder / "below" / "kernel.nbi"
    planted.write_bytes(b"")
    check_files(private_folder)
    os.chown(planted, SOMEBODY_ELSE, SOMEBODY_ELSE)
    with pytest.raises(NotPrivateError, match=r"kernel\.nbi belongs to another user"):
        check_files(private_folder)


def test_a_planted_link_is_found(private_folder, tmp_path):
    (tmp_path / "kernel.nbi").write_bytes(b"")
    (private_folder / "kernel.nbi").symlink_to(tmp_path / "kernel.nbi")
    with pytest.raises(NotPrivateError, match="neither a file nor a folder"):
        check_files(private_folder)


# --- the cache itself ---------------------------------------------------------------------------------------


@pytest.fixture
def no_variables(monkeypatch):
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_no_cache_in_a_folder_for_all(variable, no_variables, private_folder, monkeypatch):
    shared = private_folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv(variable, str(shared))
    cache = compiling.find_cache()
    assert cache.folder is None
    assert "others can write to" in cache.reason
    assert list(shared.iterdir()) == []


def test_a_private_cache_is_used(no_variables, private_folder, open_umask, monkeypatch):
    monkeypatch.setenv("HOME", str(private_folder))
    cache = compiling.find_cache()
    assert cache.folder == private_folder / ".cache" / "whyact" / compiling.digest_of_kernels()
    assert mode_of(cache.folder) == 0o700


@needs_root
def test_no_cache_where_a_file_was_planted(no_variables, private_folder, monkeypatch):
    """As it lay there when the folder was still open."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(private_folder))
    planted = compiling.find_cache().folder / "kernel.nbi"
    planted.write_bytes(b"")
    os.chown(planted, SOMEBODY_ELSE, SOMEBODY_ELSE)
    assert compiling.find_cache().folder is None


@pytest.mark.parametrize("home", ["", ".", "somewhere"])
def test_no_cache_below_the_working_folder(no_variables, home, private_folder, monkeypatch):
    """Also for a user that has no home at all: then ~ stays as it is."""
    monkeypatch.chdir(private_folder)
    monkeypatch.setattr(compiling.os.path, "expanduser", lambda path: path.replace("~", home) if home else path)
    cache = compiling.find_cache()
    assert cache.folder is None
    assert "not an absolute path" in cache.reason
    assert list(private_folder.iterdir()) == []


def test_the_reason_is_said(monkeypatch, capsys):
    reason = "no private cache folder: others can write to /home (chmod go-w forbids it)"
    monkeypatch.setattr(compiling, "CACHE", compiling.Cache(None, reason))
    compiling.announce_compilation(1, "run_sweeps")
    assert f"({reason}; so every run compiles)" in capsys.readouterr().err
