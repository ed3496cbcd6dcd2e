"""Every case, by area and name. Nothing is fitted before a case is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from tests.golden.pinning import Case

# The areas, each a module here and a file of pins, with what they need that may not be installed.
AREAS: Mapping[str, str | None] = {
    "mechanisms": None,
    "weights_and_people": None,
    "sources": "distributed",
    "tables": None,
    "additive": None,
    "searches": None,
    "votes": None,
    "networks": "torch",
    "protocols": None,
}


def areas() -> list[str]:
    """Return the areas whose cases can be run here."""
    return [area for area, need in AREAS.items() if need is None or find_spec(need)]


@cache
def cases(area: str) -> Mapping[str, Case]:
    """Return an area's cases by name."""
    found: Callable[[], dict[str, Case]] = import_module(f"tests.golden.cases.{area}").cases
    return found()
