"""Print the last entries of a ledger for ``tacit ledger show``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tacit.cli import output
from tacit.ledger import Ledger
from tacit.ledger.entries import File, Line, lines

_SHOWN = 10
_DIGITS = 12  # of a SHA-256: enough to tell files apart; --json and the page have all 64


def last_lines(ledger: Ledger, files: Mapping[int, File]) -> list[Line]:
    """Return the last entries, newest first."""
    # A recorded file is an entry of its own and no line, so that twice as many are read.
    found = lines(ledger.export(last=2 * _SHOWN), ledger.terms, files)
    return found[: -_SHOWN - 1 : -1]


def show_history(found: Sequence[Line]) -> None:
    """Print entries: day, person, what was released from which table and why, and its cost."""
    header = ("entry", "when", "who", "what", "epsilon", "delta")
    rows = [_row(line) for line in found]
    output.table(f"The last {len(rows)} entries", header, rows, texts=4)


def records_of(found: Sequence[Line]) -> list[dict[str, Any]]:
    """Return entries ready for JSON."""
    return [asdict(line) for line in found]


def _row(line: Line) -> tuple[str, ...]:
    epsilon = "" if line.epsilon is None else f"{line.epsilon:.4g}"
    delta = "" if line.delta is None else f"{line.delta:.3g}"
    return str(line.number), line.day, line.who, _what(line), epsilon, delta


def _what(line: Line) -> str:
    said = f"{line.what} ({line.how})" if line.how else line.what
    said += f" from {line.table}" * bool(line.table) + f", on {line.partition}" * bool(
        line.partition
    )
    file = line.file
    sealed = "" if file is None else f"{file.name or 'file'}, SHA-256 {file.sha256[:_DIGITS]}..."
    return "; ".join(filter(None, (said, line.label, line.purpose, sealed)))
