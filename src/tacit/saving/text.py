"""JSON, read strictly: no constants JSON lacks, no doubled keys, no number too large to mean it."""

from __future__ import annotations

import json
from typing import Any

from tacit.saving.errors import NotAModel

# Room for the names of a million columns; reading takes a small multiple of it as memory.
MOST_TEXT_BYTES = 2**25
_MOST_DIGITS = 19


def to_json(record: dict[str, Any]) -> bytes:
    """Return a record as JSON for people and programs to read."""
    return (json.dumps(record, indent=1, allow_nan=False) + "\n").encode("ascii")


def from_json(body: bytes, name: str) -> dict[str, Any]:
    """Return the record of a JSON member."""
    if len(body) > MOST_TEXT_BYTES:
        raise NotAModel(f"{name} has {len(body)} bytes; at most {MOST_TEXT_BYTES} are read.")
    try:
        record = json.loads(
            body.decode("utf-8"),
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_number,
            object_pairs_hook=_object,
        )
        # An unpaired surrogate can be written in JSON but not printed.
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except NotAModel as why:
        raise NotAModel(f"{name}: {why}") from None
    except (ValueError, RecursionError) as why:
        raise NotAModel(f"{name} is not JSON as tacit writes it.") from why
    if not isinstance(record, dict):
        raise NotAModel(f"{name} is not a JSON object.")
    return record


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise NotAModel("a whole number has more than 19 digits.")
    return int(digits)


def _number(text: str) -> float:
    number = float(text)
    if not -float("inf") < number < float("inf"):
        raise NotAModel("a number is not finite.")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise NotAModel("a key stands twice in one object.")
    return record
