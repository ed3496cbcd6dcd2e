"""The HTML report of a model, or of a comparison, where a command is asked for one."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from tacit.cli.errors import Refused


def check_reports(path: Path | None) -> None:
    """Refuse, before any work, a report that could not be written."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise Refused(f"--report {path.name!r}: a report is an HTML file; call it report.html.")
    try:
        from tacit.report import facts_of, write_report  # noqa: F401
    except ImportError:
        raise Refused(
            "this installation of tacit cannot write reports; leave --report out, or install a "
            "complete tacit."
        ) from None


def write_model_report(path: Path, model: Any, accuracy: Any = None) -> None:
    """Write the report of a fitted model."""
    from tacit.report import facts_of, write_report

    today = datetime.date.today().isoformat()
    write_report(path, facts_of(model, accuracy=accuracy, made_on=today))


def write_comparison(path: Path, curves: Any, picture: Any, budget: str) -> None:
    """Write the scores of a comparison, on a page that promises nothing."""
    from tacit.report.writing import render_comparison
    from tacit.saving.files import write_whole

    title = f"Comparison: {curves.model} of {curves.target}"
    today, remark = datetime.date.today().isoformat(), f"{curves.rule} {budget}".strip()
    page = render_comparison(title, picture, remark=remark, made_on=today)
    write_whole(path, page.encode("utf-8"))
