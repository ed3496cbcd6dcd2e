"""Write the table of aggregators in docs/pate.md, from their registry.

    python tools/aggregators.py       # writes the page; part of `make trusted-code`

`tests/test_docs.py` fails if the table is not what would be written.
"""

from __future__ import annotations

import re
from pathlib import Path

from tacit.pate.aggregators import AGGREGATORS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pate.md"
_HEAD = "| aggregator | answer | use | cost |\n|---|---|---|---|\n"


def table() -> str:
    """Return one line for each aggregator, those that are tried by default first."""
    kinds = sorted(AGGREGATORS, key=lambda kind: not kind.by_default)
    rows = [f"| `{k.__name__}` | {k.reason} | {k.use} | {k.cost} |\n" for k in kinds]
    return _HEAD + "".join(rows)


def page() -> str:
    """Return the page with the table as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(r"(## Aggregators\n)(?:\|.*\n)*", lambda found: found[1] + table(), text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
