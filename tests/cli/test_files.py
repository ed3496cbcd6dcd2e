from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import IO, Any

import pytest

from tacit.cli.files import check_new, check_report, room_for
from tacit.cli.running import Refused
from tacit.ledger import Ledger
from tacit.privacy import Budget
from tests.cli.helpers import refused, rows, write_csv

FULL = "/dev/full"


def test_a_new_file_is_fine(tmp_path: Path) -> None:
    check_new(None, False)
    check_new(tmp_path / "new", False)
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_needs_force(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")
    with pytest.raises(Refused, match="--force"):
        check_new(tmp_path / "old", False)
    check_new(tmp_path / "old", True)


@pytest.mark.parametrize("name", ["x" * 5000, "no/such/folder/x", ".", "nul\0byte"])
def test_names_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused) as error:
        check_new(tmp_path / name, True)
    assert len(str(error.value)) < 400


def test_inputs_are_never_overwritten(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("a")
    (tmp_path / "link").symlink_to(data)
    for name in ("data.csv", "link"):
        with pytest.raises(Refused, match="reads or writes"):
            check_new(tmp_path / name, True, None, data)


def test_devices_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refused, match="regular file"):
        check_new(tmp_path / "pipe", True)
    with pytest.raises(Refused, match="regular file"):
        check_new(Path(os.devnull), True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(Refused, match="read-only"):
        check_new(tmp_path / "new", False)


def test_a_report_is_a_new_html_file(tmp_path: Path) -> None:
    check_report(None, False)
    check_report(tmp_path / "report.HTM", False)
    with pytest.raises(Refused, match=r"call it report\.html"):
        check_report(tmp_path / "report.pdf", False)
    (tmp_path / "old.html").write_text("kept")
    with pytest.raises(Refused, match="--force"):
        check_report(tmp_path / "old.html", False)
    with pytest.raises(Refused, match="reads or writes"):
        check_report(tmp_path / "old.html", True, tmp_path / "old.html")


def test_a_link_leads_to_the_folder_that_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "no" / "such" / "folder" / "model.tacit")
    with pytest.raises(Refused, match="no such folder"):
        check_new(tmp_path / "link", True)


def test_a_file_that_only_its_owner_may_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").write_text("kept")
    tmp_path.chmod(0o1777)  # as /tmp is
    check_new(tmp_path / "old", True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    check_new(tmp_path / "new", True)
    with pytest.raises(Refused, match="belongs to another user"):
        check_new(tmp_path / "old", True)


FIT = "fit {people} --schema {schema} -o {folder}/new.tacit --report {folder}/new.html"
PATE = (
    "pate {people} --public {pool} --schema {schema} -o {folder}/new.tacit --teachers 40 "
    "--queries 30 --teacher bayes --student logistic"
)


@pytest.mark.parametrize(
    "words",
    [FIT, PATE, "evaluate {model} {people} --report {folder}/new.html"],
    ids=("fit", "pate", "evaluate"),
)
@pytest.mark.parametrize("why", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_is_found_before_the_charge(
    people: Path,
    schema: Path,
    model: Path,
    tmp_path: Path,
    words: str,
    why: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: int) -> None:
        raise OSError(why, os.strerror(why))

    book, folder = tmp_path / "a.ledger", tmp_path / "out"
    folder.mkdir()
    pool = write_csv(tmp_path / "pool.csv", rows(100))
    Ledger.create(book, Budget(3.0, 1e-6))
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    words = words.format(people=people, schema=schema, model=model, pool=pool, folder=folder)
    said = refused(*words.split(), "-e", 3, "--ledger", book)
    assert os.strerror(why).lower() in said
    assert "nothing was charged; free 32 MiB" in said
    assert Ledger.open(book).spent() == 0.0
    assert list(folder.iterdir()) == []


def test_room_is_held_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allocate, held = os.posix_fallocate, []

    def noted(handle: int, start: int, size: int) -> None:
        held.append(handle)
        allocate(handle, start, size)

    monkeypatch.setattr(os, "posix_fallocate", noted)
    with room_for(tmp_path / "model.tacit", None, tmp_path / "report.html"):
        assert [os.fstat(handle).st_size for handle in held] == [2**25, 2**25]
        assert list(tmp_path.iterdir()) == []
    for handle in held:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(handle)


def test_zeros_where_room_cannot_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", cannot, raising=False)
    with room_for(tmp_path / "model.tacit"):
        assert list(tmp_path.iterdir()) == []

    def full(**where: Any) -> IO[bytes]:
        assert where["dir"] == tmp_path
        return open(FULL, "wb", buffering=0)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    if os.path.exists(FULL):
        with pytest.raises(Refused, match="no space left"), room_for(tmp_path / "model.tacit"):
            raise AssertionError
