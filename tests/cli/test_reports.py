from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tacit.cli.errors import Refused
from tacit.cli.reports import check_reports


def test_no_report_is_fine() -> None:
    check_reports(None)
    check_reports(Path("report.html"))


def test_a_report_is_html() -> None:
    with pytest.raises(Refused, match=r"report\.html"):
        check_reports(Path("report.pdf"))


def test_without_the_report_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tacit.report", None)
    with pytest.raises(Refused, match="leave --report out"):
        check_reports(Path("report.html"))
