"""Whose and on what a charge counts, and what is noted with it for people."""

from __future__ import annotations

import getpass
import unicodedata
from dataclasses import dataclass

_LONGEST = 1000


@dataclass(frozen=True)
class Bound:
    """What is noted with the charges of a ledger, and whose and on what they count."""

    analyst: str | None = None
    partition: str | None = None
    label: str = ""
    purpose: str = ""
    who: str = ""


def account() -> str:
    """Return the name of the account that the process runs under, or nothing."""
    try:
        return text("who", getpass.getuser()[:_LONGEST])
    except (KeyError, OSError, ImportError):  # no name for the process's number
        return ""


def text(name: str, value: object) -> str:
    """Return a note for people, of bounded length."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError(f"{name} must be a text of at most {_LONGEST} characters.")
    return value.encode("utf-8", "replace").decode("utf-8")


def name(kind: str, value: object) -> str:
    """Return a name by which something is found again: what looks the same is the same."""
    found = unicodedata.normalize("NFC", value) if isinstance(value, str) else ""
    if not 0 < len(found) <= 200 or not found.isprintable() or found != found.strip():
        raise ValueError(
            f"{kind} must be a name of 1 to 200 printable characters without spaces around it, got "
            f"{value!r:.300}."
        )
    return found
