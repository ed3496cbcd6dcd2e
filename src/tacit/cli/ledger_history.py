"""Print the last entries of a ledger for ``tacit ledger show``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.cli import output
from tacit.ledger import Ledger
from tacit.ledger.state import WHOLE

_SHOWN = 10
_DECLARED = {"created": "made", "analyst": "share of", "partition": "part"}


def show_history(ledger: Ledger) -> None:
    """Print the last entries, newest first: time, person, purpose and cost."""
    header = ("entry", "when", "who", "what", "per cent of the budget")
    rows = [_row(entry) for entry in reversed(list(ledger.export(last=_SHOWN)))]
    output.table(f"The last {len(rows)} entries", header, rows, texts=4)


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    # As on the ledger's page: the cost by the most expensive component of the rule.
    cost = f"{100 * max(entry['cost']) / WHOLE:.3g}" if "cost" in entry else ""
    who, analyst = entry["who"], entry.get("analyst")
    whom = f"{who} for {analyst}" if analyst and analyst != who else who
    return str(entry["number"]), entry["when"][:10], whom, _what(entry), cost


def _what(entry: Mapping[str, Any]) -> str:
    if entry["kind"] != "charge":
        return f"{_DECLARED[entry['kind']]} {entry.get('name', '')}".strip()
    kind = str(entry["event"]["kind"]).replace("_", " ")
    if entry["partition"] is not None:
        kind += f", on {entry['partition']}"
    return "; ".join(filter(None, (entry["label"], entry["purpose"], kind)))
