from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tacit.saving import NotAModel
from tacit.saving.files import read_bounded, write_whole


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
    with pytest.raises(FileNotFoundError, match=r"none is not a folder that is there; make it"):
        write_whole(tmp_path / "none" / "a", b"all of it")
