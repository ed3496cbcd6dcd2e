from __future__ import annotations

import pytest

from tacit.saving import NotAModel
from tacit.saving.container import MOST_TEXT_BYTES, from_json, to_json


def test_round_trip() -> None:
    record = {"a": [1, 0.1, None, True, "größe"], "b": {"c": 2**62, "d": -0.0, "e": 5e-324}}
    assert from_json(to_json(record), "x") == record


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"a": NaN}', "not finite"),
        (b'{"a": Infinity}', "not finite"),
        (b'{"a": 1e999}', "not finite"),
        (b'{"a": ' + b"9" * 5000 + b"}", "more than 19 digits"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": "\\ud800"}', "not JSON as"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": ' * 50_000, "not JSON"),
        (b" " * (MOST_TEXT_BYTES + 1), "are read"),
    ],
)
def test_what_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(NotAModel, match=why):
        from_json(text, "x.json")
