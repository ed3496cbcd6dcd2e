"""What is kept of a case: numbers by public names, so that a change of one bit shows.

A case is a function that fits something and returns what `pinned`, or a dictionary like it, says of
it. Words that explain are left out; names of settings and kinds of events are kept.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from tacit.noise import Entry

Pins = dict[str, Any]
Case = Callable[[], Mapping[str, Any]]

SEED = 20
# Attributes that repeat what was declared, or the shape of the table.
_DECLARED = ("n_features_in_", "feature_names_in_", "classes_", "row_norm_")
_Remembered = type(lru_cache(lambda: None))
# What a stored event has besides its numbers: sentences, and how it is written.
_LEFT_OUT = ("reason", "version")


def pinned(model: Any, plan: Any = None, /, **more: Any) -> Pins:
    """Return a fitted model's plan, event and released attributes, and what ``more`` says.

    Attributes that are objects (a student, a state) are left out; a case with one says what it
    predicts. The event is left out where it is the planned one.
    """
    shown = getattr(model, "plan_", None) if plan is None else plan
    released = {
        name: encoded(value)
        for name, value in sorted(vars(model).items())
        if name.endswith("_") and name[0] != "_" and name not in _DECLARED and is_plain(value)
    }
    released |= {name: encoded(value) for name, value in more.items()}
    made: Pins = {} if shown is None else {"plan": plan_pins(shown)}
    privacy = getattr(model, "privacy_", None)
    if privacy is not None:
        event = event_pins(privacy.event)
        if shown is None or event != made["plan"]["event"]:
            made["event"] = event
    return {**made, "released": released}


def plan_pins(plan: Any) -> Pins:
    """Return a plan's name, settings and event; what it predicts may be predicted better."""
    settings = rounded(encoded(dict(plan.settings)))
    return {"name": plan.name, "settings": settings, "event": event_pins(plan.event)}


def unheard(case: Case) -> Case:
    """Mark a case that must not be recorded: a local stream that is takes another road."""
    case.is_heard = False  # type: ignore[attr-defined]
    return case


def is_heard(case: Case) -> bool:
    """Return whether the releases of a case are recorded."""
    return getattr(case, "is_heard", True)


def noise_pins(tape: Any) -> list[Any]:
    """Return the kind, norm and sensitivity of every release, in order, and how often in a row."""
    made: list[Any] = []
    for entry in tape.entries:
        if isinstance(entry, Entry):
            bounded = entry.bounded
            now = [entry.kind, bounded.norm.name, rounded(float(bounded.sensitivity))]
            if made and made[-1][:3] == now:
                made[-1][3] += 1
            else:
                made.append([*now, 1])
    return made


def rounded(value: Any) -> Any:
    """Return what is compared to 1e-11 with thirteen digits, which take less room."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.13g}") if isinstance(value, float) else value


def event_pins(event: Any) -> Any:
    """Return an event as files hold it, of a seeded one what it would have been."""
    return rounded(_numbers_of(event.to_dict(), None))


def _numbers_of(stored: Any, relation: str | None) -> Any:
    """Return what is kept of an event; parts that have the relation of the whole do not say so."""
    if isinstance(stored, Mapping):
        if stored.get("would_be") is not None:
            return _numbers_of(stored["would_be"], relation)
        own = stored.get("relation", relation)
        return {
            name: _numbers_of(each, own)
            for name, each in sorted(stored.items())
            if name not in _LEFT_OUT and not (name == "relation" and each == relation)
        }
    if isinstance(stored, list | tuple):
        return [_numbers_of(each, relation) for each in stored]
    return encoded(stored)


def is_plain(value: Any) -> bool:
    """Return whether a value is made of numbers, texts and arrays of them."""
    if isinstance(value, Mapping):
        return all(is_plain(each) for each in value.values())
    if isinstance(value, list | tuple):
        return all(is_plain(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufUS" or all(is_plain(v) for v in value.tolist())
    return value is None or isinstance(value, bool | int | float | str | np.generic)


def encoded(value: Any) -> Any:
    """Return a plain value as JSON has it; floats keep their bits, and their type if not double."""
    if isinstance(value, Mapping):
        return {str(name): encoded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        plain = encoded(value.tolist())
        narrow = value.dtype.kind == "f" and value.dtype != np.float64
        return {value.dtype.name: plain} if narrow else plain
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} cannot be pinned; say what it predicts.")


@contextmanager
def by_itself(name: str) -> Iterator[list[int]]:
    """Run a case in a state of its own: nothing remembered, and keys that follow from its name.

    Keys are for what takes no seed; the list holds the sizes of those that were asked for.
    """
    asked: list[int] = []
    numbers = itertools.count()

    def randbits(k: int) -> int:
        asked.append(k)
        words = f"golden {name} {next(numbers)} {k}".encode()
        return int.from_bytes(hashlib.shake_256(words).digest(-(-k // 8))) >> (-k % 8)

    before, python, numpy = secrets.randbits, random.getstate(), np.random.get_state()  # noqa: NPY002
    secrets.randbits = randbits
    random.seed(name)
    np.random.seed(randbits(32))  # noqa: NPY002
    asked.clear()
    _forget()
    try:
        with warnings.catch_warnings(), _controller().limit(limits=1):
            warnings.simplefilter("ignore", UserWarning)
            yield asked
    finally:
        secrets.randbits = before
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _forget() -> None:
    """Forget plans; tables of noise are costly to make and never change."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tacit."):
            for each in list(vars(module).values()):
                if isinstance(each, _Remembered) and _is_planning(each):
                    each.cache_clear()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _is_planning(cached: Any) -> bool:
    module = getattr(cached, "__module__", "")
    return module.startswith("tacit.") and not module.startswith(
        ("tacit.noise", "tacit.records", "tacit.features", "tacit.cluster", "tacit.local")
    )
