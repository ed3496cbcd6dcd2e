from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tacit.saving import NotAModel
from tacit.saving.container import read_bounded, write_whole


def test_written_and_read(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"one")
    write_whole(str(tmp_path / "a"), b"two")
    assert read_bounded(tmp_path / "a") == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interruption_leaves_the_old_file(
    step: str, error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "a", b"old")

    def broken(*args: Any) -> None:
        raise error("no more")

    if step == "write":
        opened = os.fdopen

        def half(*args: Any) -> Any:
            file = opened(*args)
            file.raw.close()  # the next write to it fails
            return file

        monkeypatch.setattr(os, "fdopen", half)
        error = ValueError
    else:
        monkeypatch.setattr(os, step, broken)
    with pytest.raises(error):
        write_whole(tmp_path / "a", b"new")
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_link_keeps_pointing_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(mode)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    write_whole(tmp_path / "link", b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone may give files away")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    os.chown(tmp_path / "a", 1234, 4321)
    write_whole(tmp_path / "a", b"new")
    found = (tmp_path / "a").stat()
    assert (found.st_uid, found.st_gid) == (1234, 4321)


def test_a_group_that_cannot_be_kept_hands_its_rights_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o664)
    monkeypatch.setattr(os, "fchown", refuse)
    write_whole(tmp_path / "a", b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o604


def test_nobody_else_reads_what_replaces_a_secret_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look(_: int) -> None:
        (part,) = tmp_path.glob(".*.part")
        seen.append(stat.S_IMODE(part.stat().st_mode))

    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    monkeypatch.setattr(os, "fsync", look)
    with contextlib.suppress(ValueError):  # of the folder, once the part has its name
        write_whole(tmp_path / "a", b"new")
    assert seen == [0o600]


def test_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, b"")
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "no" / "such" / "folder", b"")
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)  # a terabyte on paper
    with pytest.raises(NotAModel, match="at most 1073741824"):
        read_bounded(tmp_path / "sparse")
    (tmp_path / "ten").write_bytes(b"0123456789")
    assert len(read_bounded(tmp_path / "ten", 10)) == 10
    with pytest.raises(NotAModel, match="at most 9"):
        read_bounded(tmp_path / "ten", 9)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none is not an existing folder; make it"):
        write_whole(tmp_path / "none" / "a", b"all of it")
