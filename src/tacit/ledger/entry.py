"""Seal entries of a ledger into a hash chain.

    hash_n = SHA-256(hash_(n-1), newline, body_n)        hash_(-1) = 64 zeros

The hash of the last entry, the head, therefore depends on all entries and their order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tacit.ledger.errors import LedgerDamaged

GENESIS = "0" * 64
Content = Mapping[str, Any]
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Entry(NamedTuple):
    """An entry as it is stored: number, text and hash; ``key`` is a copy of the text's, for lookup.

    Examples
    --------
    >>> from tacit.ledger.entry import GENESIS, sealed
    >>> first = sealed({"number": 0, "kind": "created"}, GENESIS)
    >>> first.body
    '{"kind":"created","number":0}'
    """

    number: int
    body: str
    hash: str
    key: str | None = None

    @property
    def content(self) -> Content:
        """The parsed text."""
        found: Content = json.loads(self.body)
        return found

    def check(self, previous: str) -> None:
        """Raise if the entry's hash does not follow from the hash before it."""
        if self.hash != digest(f"{previous}\n{self.body}"):
            raise LedgerDamaged(
                f"entry {self.number} was changed, or the one before it: its hash does not follow "
                f"from them. {REMEDY}"
            )


REMEDY = (
    "Nothing was booked. Keep the ledger as it is for whoever looks into it, and restore the "
    "newest copy that 'tacit ledger verify' accepts with the newest certificate."
)


def canonical(record: Any) -> str:
    """Return the canonical JSON of a record: sorted keys, ASCII, no spaces, no NaN."""
    return _CANONICAL.encode(record)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class Draft:
    """An entry's content without its place in the chain, encoded once for all entries of it.

    Examples
    --------
    >>> from tacit.ledger.entry import GENESIS, Draft
    >>> Draft({"kind": "created", "who": "me"}).sealed({"number": 0}, GENESIS).body
    '{"kind":"created","number":0,"who":"me"}'
    """

    def __init__(self, content: Content) -> None:
        self.content = content
        self._texts = _texts(content)

    def sealed(self, more: Content, previous: str) -> Entry:
        """Return the entry with the content ``more``, at least its number, sealed after a hash."""
        texts = self._texts | _texts(more)
        # Equals `canonical` of the whole content; the shared texts are not encoded again.
        body = f"{{{','.join([texts[name] for name in sorted(texts)])}}}"
        return Entry(more["number"], body, digest(f"{previous}\n{body}"), more.get("key"))


def _texts(content: Content) -> dict[str, str]:
    return {name: f'"{name}":{_text(value)}' for name, value in content.items()}


def _text(value: Any) -> str:
    return str(value) if type(value) is int else canonical(value)


def sealed(content: Content, previous: str) -> Entry:
    """Return the entry of a content, sealed after the hash ``previous``."""
    return Draft({}).sealed(content, previous)
