from __future__ import annotations

import os
from pathlib import Path

import pytest

from tacit.cli.errors import Refused
from tacit.cli.files import check_new, check_report


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
    with pytest.raises(Refused, match="ordinary"):
        check_new(tmp_path / "pipe", True)
    with pytest.raises(Refused, match="ordinary"):
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
