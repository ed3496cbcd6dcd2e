"""List the frozen parts of a model that a file may name: mechanisms, sets, losses, plans.

A part is stored with its fields under a short word whose meaning never changes. A file can name
only these words: no name in a file is ever imported.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from numbers import Real
from typing import Any

from tacit.engine import Plan as PlanOfSteps
from tacit.erm import (
    Balanced,
    Box,
    L1Ball,
    L2Ball,
    NoisePace,
    Objective,
    Plan,
    Problem,
    SecondMoment,
    Simplex,
    WholeSpace,
)
from tacit.erm.inference import PlanWithErrors
from tacit.erm.losses import LOSSES
from tacit.erm.minimization import KINDS
from tacit.features import Domain, GaussianKernel, LaplacianKernel, MaternKernel
from tacit.privacy import Budget
from tacit.records import Bounds
from tacit.saving.container import NotAModel

PARTS: Mapping[str, type[Any]] = {
    **KINDS,
    **LOSSES,
    "balanced": Balanced,
    "box": Box,
    "domain": Domain,
    "l1_ball": L1Ball,
    "l2_ball": L2Ball,
    "gaussian_kernel": GaussianKernel,
    "laplacian_kernel": LaplacianKernel,
    "matern_kernel": MaternKernel,
    "noise_pace": NoisePace,
    "second_moment": SecondMoment,
    "simplex": Simplex,
    "whole_space": WholeSpace,
    "bounds": Bounds,
    "budget": Budget,
    "objective": Objective,
    "plan": Plan,
    "plan_of_steps": PlanOfSteps,
    "plan_with_errors": PlanWithErrors,
    "problem": Problem,
}
_WORDS = {part: word for word, part in PARTS.items()}

# Old names in files of version 1, and their current names: fields by the part's word, and
# keys of a plan's settings.
_OLD_FIELDS: Mapping[str, Mapping[str, str]] = {"plan_with_errors": {"asked": "clipping_norms"}}
_OLD_SETTINGS: Mapping[str, str] = {"steadying": "slope_ridge"}


def word_of(value: Any) -> str | None:
    """Return the word of a part, or None if it is not one."""
    return _WORDS.get(type(value))


def fields_of(part: Any) -> dict[str, Any]:
    """Return the constructor arguments of a part."""
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.init}


def make_part(word: Any, fields: Mapping[str, Any]) -> Any:
    """Make a part anew, so that its own checks run again."""
    part = PARTS.get(word) if isinstance(word, str) else None
    if part is None:
        raise NotAModel(f"it names a part {str(word)[:60]!r}, unknown to this tacit.")
    fields = _translated(str(word), fields)
    hints = typing.get_type_hints(part)
    names = {f.name for f in dataclasses.fields(part) if f.init}
    for name, value in fields.items():
        if name not in names or not _fits(value, hints[name]):
            raise NotAModel(f"the part {word} has no such field as {name[:60]!r} with that value.")
    try:
        return part(**fields)
    except (TypeError, ValueError, ArithmeticError) as why:
        raise NotAModel(f"the part {word} is not possible: {why}") from why


def _translated(word: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields under their current names."""
    old = _OLD_FIELDS.get(word, {})
    found = {old.get(name, name): value for name, value in fields.items()}
    settings = found.get("settings")
    if isinstance(settings, dict):
        found["settings"] = {_OLD_SETTINGS.get(key, key): v for key, v in settings.items()}
    return found


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value has the declared type of a field, as far as files can hold it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in inner)
    if hint in (None, types.NoneType):
        return value is None
    if hint is float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        return number and not math.isnan(value)
    if hint is int:
        return type(value) is int
    if origin is tuple:
        rest = inner[-1:] == (...,)
        kinds = inner[:1] * len(value) if rest and isinstance(value, tuple) else inner
        return (
            isinstance(value, tuple) and len(value) == len(kinds) and all(map(_fits, value, kinds))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(_fits(item, inner[1]) for item in value.values())
    if getattr(hint, "_is_protocol", False):
        return word_of(value) is not None
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else False
