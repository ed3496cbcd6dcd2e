"""Encode values as JSON with tags, and arrays as .npy members.

    None, bool, int, float, str, list     themselves
    infinity                              {"float": "inf"}
    tuple                                 {"tuple": [...]}
    dict with words for keys              {"map": {...}}
    dict with numbers for keys            {"pairs": [[key, value], ...]}
    Relation                              {"relation": "replace"}
    Event                                 {"event": {...}}, as in a certificate
    a part (one of `PARTS`)               {"part": "l2_ball", "fields": {...}}
    array                                 {"array": {"dtype", "shape", "fortran_order"}}
    array of Python objects               {"objects": [...]}

An array is stored in the member named after its place, such as ``released.coef_.npy``.

A part is a frozen piece of a model (a mechanism, a set, a loss, a plan). It is stored with its
fields under a short word whose meaning never changes. A file can name only the words of `PARTS`:
no name in a file is ever imported.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

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
from tacit.features.feature_map import GroupedDomain
from tacit.privacy import Budget, Event, Relation, event_from_dict
from tacit.records import Bounds
from tacit.saving.container import CannotSave, NotAModel, is_member_name
from tacit.table_facts import SourceColumn

AnyArray = npt.NDArray[Any]

_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNED = 64
# bool, integers, floats, text, bytes: the kinds that numpy stores without pickle
_KINDS = "biufUS"
_MOST_DIMENSIONS = 8


def describe(array: AnyArray) -> dict[str, Any]:
    """Return the type, shape and order of an array, ready for JSON."""
    if array.dtype.kind not in _KINDS or array.dtype.itemsize == 0:
        raise CannotSave(f"arrays of type {array.dtype} cannot be stored without pickle.")
    return {
        "dtype": array.dtype.newbyteorder("<").str,
        "shape": [int(n) for n in array.shape],
        "fortran_order": bool(array.flags.f_contiguous and not array.flags.c_contiguous),
    }


def to_npy(array: AnyArray) -> bytes:
    """Return the .npy file of an array."""
    facts = describe(array)
    little = array.astype(facts["dtype"], copy=False)
    header = _header(facts["dtype"], tuple(facts["shape"]), facts["fortran_order"])
    return header + little.tobytes("F" if facts["fortran_order"] else "C")


def from_npy(body: bytes, facts: Any) -> AnyArray:
    """Decode a .npy file after checking its declared type, shape and size."""
    dtype, shape, fortran_order = _checked(facts)
    header = _header(dtype.str, shape, fortran_order)
    if body[: len(header)] != header:
        raise NotAModel(f"an array is not of the declared type {dtype} and shape {shape}.")
    # Compare exact integers before any allocation of that size.
    if len(body) - len(header) != math.prod(shape) * dtype.itemsize:
        raise NotAModel(f"an array of shape {shape} has the wrong number of bytes for it.")
    flat = np.frombuffer(body, dtype=dtype, offset=len(header))
    array = flat.astype(dtype.newbyteorder("="), copy=True)
    return array.reshape(shape, order="F" if fortran_order else "C")


def _checked(facts: Any) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    if not isinstance(facts, dict) or set(facts) != {"dtype", "shape", "fortran_order"}:
        raise NotAModel("an array is declared without its dtype, shape and fortran_order.")
    try:
        dtype = np.dtype(facts["dtype"]) if isinstance(facts["dtype"], str) else None
    except (TypeError, ValueError, SyntaxError, MemoryError, OverflowError):
        dtype = None
    # Only plain types in NumPy's own spelling: no structured types, no objects.
    if dtype is None or dtype.str != facts["dtype"] or dtype.kind not in _KINDS:
        raise NotAModel("an array has a type that models do not have.")
    shape = facts["shape"]
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise NotAModel("an array has a shape that is not a short list of sizes.")
    if not all(type(n) is int and n >= 0 for n in shape) or dtype.itemsize == 0:
        raise NotAModel("an array has a size that is not a whole number.")
    if type(facts["fortran_order"]) is not bool:
        raise NotAModel("an array's fortran_order is neither true nor false.")
    return dtype, tuple(shape), facts["fortran_order"]


def _header(dtype: str, shape: tuple[int, ...], fortran_order: bool) -> bytes:
    """Return the header of format 1.0 (numpy.lib.format), with its padding."""
    text = f"{{'descr': '{dtype}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}"
    used = len(_MAGIC) + 2 + len(text) + 1
    text += " " * (-used % _ALIGNED) + "\n"
    return _MAGIC + len(text).to_bytes(2, "little") + text.encode("ascii")


PARTS: Mapping[str, type[Any]] = {
    **KINDS,
    **LOSSES,
    "balanced": Balanced,
    "box": Box,
    "domain": Domain,
    "grouped_domain": GroupedDomain,
    "source_column": SourceColumn,
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


_MOST_INTEGER = 2**63
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}
_SCALARS = (bool, int, float, str, type(None))
_KEYS = (bool, int, float, np.generic)  # types of class labels


@dataclass(frozen=True)
class Writer:
    """Convert values to JSON and collect their arrays."""

    members: dict[str, bytes] = field(default_factory=dict)

    def write(self, value: Any, place: str) -> Any:
        """Convert a value to JSON."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, _SCALARS):
            return _plain(value, place)
        if isinstance(value, Relation):
            return {"relation": value.value}
        if isinstance(value, Event):
            return {"event": value.to_dict()}
        if isinstance(value, list | range):
            return self._all(value, place)
        if isinstance(value, tuple):
            return {"tuple": self._all(value, place)}
        if isinstance(value, Mapping):
            if any(isinstance(key, _KEYS) for key in value):
                return {"pairs": [self._all(pair, place) for pair in value.items()]}
            return {"map": self.write_map(value, place)}
        if word_of(value) is not None:
            fields = self.write_map(fields_of(value), place)
            return {"part": word_of(value), "fields": fields}
        if hasattr(value, "__array__"):
            return self._array(np.asarray(value), place)
        raise CannotSave(
            f"{place} is of type {type(value).__name__}, which a file of JSON and arrays cannot "
            "hold; use mechanisms and sets of tacit, numbers, strings or arrays."
        )

    def write_map(self, values: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Convert a mapping from words to values to JSON."""
        if not all(isinstance(name, str) for name in values):
            raise CannotSave(f"{place} is a mapping whose keys are not words.")
        return {name: self.write(value, f"{place}.{name}") for name, value in values.items()}

    def _all(self, values: Any, place: str) -> list[Any]:
        return [self.write(value, f"{place}.{i}") for i, value in enumerate(values)]

    def _array(self, array: AnyArray, place: str) -> dict[str, Any]:
        if array.dtype.kind == "O":
            items = array.tolist()
            if array.ndim != 1 or not all(isinstance(item, _SCALARS) for item in items):
                raise CannotSave(f"{place} is an array of objects that are not words or numbers.")
            return {"objects": self._all(items, place)}
        if not is_member_name(f"{place}.npy"):
            raise CannotSave(f"{place} cannot be the name of a member.")
        try:
            facts = describe(array)
        except CannotSave as why:
            raise CannotSave(f"{place}: {why}") from None
        self.members[f"{place}.npy"] = to_npy(array)
        return {"array": facts}


def _plain(value: Any, place: str) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            raise CannotSave(f"{place} is NaN; a model with such a value predicts nothing.")
        if math.isinf(value):
            return {"float": "inf" if value > 0 else "-inf"}
    elif isinstance(value, int) and abs(value) >= _MOST_INTEGER:
        raise CannotSave(f"{place} is a whole number of more than 64 bits.")
    return value


@dataclass(frozen=True)
class Reader:
    """Convert JSON back to values; takes arrays from the members and records which it took."""

    members: Mapping[str, bytes]
    used: list[str] = field(default_factory=list)

    def read(self, stored: Any, place: str) -> Any:
        """Read a value that `Writer.write` stored."""
        if isinstance(stored, _SCALARS):
            return stored
        if isinstance(stored, list):
            return self._all(stored, place)
        if set(stored) == {"part", "fields"}:
            return make_part(stored["part"], self.read_map(stored["fields"], place))
        if len(stored) == 1:
            (tag, content), *_ = stored.items()
            if tag in _TAGS:
                return _TAGS[tag](self, content, place)
        raise NotAModel(f"{place[:80]} is stored in a way that this tacit does not know.")

    def read_map(self, stored: Any, place: str) -> dict[str, Any]:
        """Read a mapping that `Writer.write_map` stored."""
        if not isinstance(stored, dict):
            raise NotAModel(f"{place[:80]} is not a mapping.")
        return {name: self.read(value, f"{place}.{name}") for name, value in stored.items()}

    def _all(self, stored: Any, place: str) -> list[Any]:
        if not isinstance(stored, list):
            raise NotAModel(f"{place[:80]} is not a list.")
        return [self.read(value, f"{place}.{i}") for i, value in enumerate(stored)]

    def _tuple(self, content: Any, place: str) -> tuple[Any, ...]:
        return tuple(self._all(content, place))

    def _pairs(self, content: Any, place: str) -> dict[Any, Any]:
        pairs = self._all(content, place)
        for pair in pairs:
            if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], _SCALARS)):
                raise NotAModel(f"{place[:80]} is not a list of keys and values.")
        return dict(pairs)

    def _float(self, content: Any, place: str) -> float:
        if not isinstance(content, str) or content not in _INFINITIES:
            raise NotAModel(f"{place[:80]} is neither a number nor an infinity.")
        return _INFINITIES[content]

    def _relation(self, content: Any, place: str) -> Relation:
        try:
            return Relation(content)
        except ValueError:
            raise NotAModel(f"{place[:80]} is not a relation that tacit knows.") from None

    def _event(self, content: Any, place: str) -> Event:
        return event_of(content, place)

    def _array(self, content: Any, place: str) -> AnyArray:
        name = f"{place}.npy"
        if name not in self.members:
            raise NotAModel(f"the member {name[:80]} is missing.")
        self.used.append(name)
        try:
            return from_npy(self.members[name], content)
        except NotAModel as why:
            raise NotAModel(f"{name}: {why}") from None

    def _objects(self, content: Any, place: str) -> AnyArray:
        items = self._all(content, place)
        if not all(isinstance(item, _SCALARS) for item in items):
            raise NotAModel(f"{place[:80]} holds something that is not a word or a number.")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array


_TAGS: dict[str, Callable[[Reader, Any, str], Any]] = {
    "array": Reader._array,
    "event": Reader._event,
    "float": Reader._float,
    "map": Reader.read_map,
    "objects": Reader._objects,
    "pairs": Reader._pairs,
    "relation": Reader._relation,
    "tuple": Reader._tuple,
}


def event_of(record: Any, place: str) -> Event:
    """Read an event, and check that the record describes it completely."""
    try:
        event = event_from_dict(record)
        whole = event.to_dict() == record
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as why:
        raise NotAModel(f"{place[:80]} is not an event that this tacit knows: {why}") from why
    if not whole:
        raise NotAModel(f"{place[:80]} is not an event as tacit writes it.")
    return event
