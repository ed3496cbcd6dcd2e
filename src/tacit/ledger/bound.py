"""Describe the context of a charge: analyst, partition, label, purpose."""

from __future__ import annotations

import getpass
import unicodedata
from dataclasses import dataclass

_LONGEST = 1000

# Characters of a note; one entry must not fill the disk.


@dataclass(frozen=True)
class Bound:
    """Analyst and partition that a charge counts for, and notes for people."""

    analyst: str | None = None
    partition: str | None = None
    label: str = ""
    purpose: str = ""
    who: str = ""


def account() -> str:
    """Return the name of the account that runs the process, or an empty text if it has none."""
    try:
        return text("who", getpass.getuser()[:_LONGEST])
    except (KeyError, OSError, ImportError):  # the user id has no name
        return ""


def text(name: str, value: object) -> str:
    """Return a note for people; raise if it is no text or too long."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError(f"{name} must be a text of at most {_LONGEST} characters.")
    return value.encode("utf-8", "replace").decode("utf-8")


def name(kind: str, value: object) -> str:
    """Return a name in Unicode normal form, so that names which look alike are equal."""
    found = unicodedata.normalize("NFC", value) if isinstance(value, str) else ""
    if not 0 < len(found) <= 200 or not found.isprintable() or found != found.strip():
        raise ValueError(
            f"{kind} must be a name of 1 to 200 printable characters without spaces around it, got "
            f"{value!r:.300}."
        )
    return found
