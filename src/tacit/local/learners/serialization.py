"""Encode learners as dictionaries for JSON and their states as bytes: exact, versioned."""

from __future__ import annotations

import dataclasses
import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.local.learners.banco import Banco, BancoState, PosterBanco
from tacit.local.learners.base import Learner
from tacit.local.learners.gradient_descent import GradientDescent, GradientDescentState
from tacit.local.sanitizers.base import Tail

_MAGIC = b"tacit-state"
_VERSION = 1
# The order is stored in files: append, never reorder.
_STATES: tuple[type[Any], ...] = (BancoState, GradientDescentState)
_SCALARS = {BancoState: 2, GradientDescentState: 0}
_VECTORS = {BancoState: 3, GradientDescentState: 2}
_HEADER = struct.Struct("<BBIQ")  # version, kind of state, number of features, number of reports
_LEARNERS: dict[str, Any] = {c.kind: c for c in (Banco, PosterBanco, GradientDescent)}


def state_to_bytes(state: Any) -> bytes:
    """Encode a learner's state as bytes, exactly.

    Examples
    --------
    >>> from tacit.local import GradientDescent, state_from_bytes, state_to_bytes
    >>> state = GradientDescent(rate=1.0).init(3)
    >>> state_from_bytes(state_to_bytes(state)).n_reports
    0
    """
    kind = type(state)
    if kind not in _STATES:
        raise TypeError(f"state must be a learner's state, got {kind.__name__}.")
    fields = tuple(state)
    header = _HEADER.pack(_VERSION, _STATES.index(kind), state.point.size, state.n_reports)
    scalars = np.array(fields[1 : 1 + _SCALARS[kind]], dtype="<f8").tobytes()
    vectors = b"".join(np.asarray(v, dtype="<f8").tobytes() for v in fields[1 + _SCALARS[kind] :])
    body = _MAGIC + header + scalars + vectors
    return body + struct.pack("<I", zlib.crc32(body))


def state_from_bytes(data: bytes) -> Any:
    """Decode the bytes of `state_to_bytes`; refuse anything else with a reason.

    Examples
    --------
    >>> from tacit.local import state_from_bytes
    >>> state_from_bytes(b"something else")
    Traceback (most recent call last):
    ...
    ValueError: not a tacit learner state: it does not begin with its mark.
    """
    start = len(_MAGIC) + _HEADER.size
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("not a tacit learner state: it does not begin with its mark.")
    if len(data) < start + 4:
        raise ValueError(f"the state is truncated after {len(data)} bytes; use a whole file.")
    if struct.unpack("<I", data[-4:])[0] != zlib.crc32(data[:-4]):
        raise ValueError("the state is damaged: its checksum differs; use an undamaged copy.")
    version, code, d, n_reports = _HEADER.unpack(data[len(_MAGIC) : start])
    if version != _VERSION or code >= len(_STATES):
        raise ValueError(
            f"the state has version {version} and kind {code}, unknown to this tacit; read it "
            "with the version that wrote it, or newer."
        )
    kind = _STATES[code]
    n_scalars, n_vectors = _SCALARS[kind], _VECTORS[kind]
    if d < 1 or len(data) != start + 8 * (n_scalars + n_vectors * d) + 4:
        raise ValueError(f"the state has {len(data)} bytes, which is wrong for {d} features.")
    numbers = np.frombuffer(data[start:-4], dtype="<f8").astype(np.float64)
    if not np.all(np.isfinite(numbers)):
        raise ValueError("the state has a number that is not finite.")
    scalars = [float(x) for x in numbers[:n_scalars]]
    vectors = [v.copy() for v in numbers[n_scalars:].reshape(n_vectors, d)]
    return kind(n_reports, *scalars, *vectors)


def learner_from_dict(record: Mapping[str, Any]) -> Learner:
    """Make the learner that ``to_dict`` described.

    Examples
    --------
    >>> from tacit.local import GradientDescent
    >>> from tacit.local.learners.serialization import learner_from_dict
    >>> learner_from_dict(GradientDescent(rate=1.0).to_dict())
    GradientDescent(rate=1.0, decay=0.5, radius=inf, averaging=3.0)
    """
    fields = dict(record)
    kind = fields.pop("kind", None)
    if kind not in _LEARNERS:
        raise ValueError(f"unknown learner kind {kind!r}: this tacit knows {sorted(_LEARNERS)}.")
    names = {field.name for field in dataclasses.fields(_LEARNERS[kind])}
    if set(fields) != names:
        raise ValueError(
            f"a {kind!r} learner has the parameters {sorted(names)}, got {sorted(fields)}; pass "
            "what to_dict returned."
        )
    if "tail" in fields:
        tail = fields["tail"]
        if not isinstance(tail, Mapping) or set(tail) != {"variance", "reach"}:
            raise ValueError("tail must have a variance and a reach; pass what to_dict returned.")
        fields["tail"] = Tail(tail["variance"], _or_infinity(tail["reach"]))
    if "radius" in fields:
        fields["radius"] = _or_infinity(fields["radius"])
    learner: Learner = _LEARNERS[kind](**fields)
    return learner


def _or_infinity(value: Any) -> Any:
    # JSON has no infinity.
    return math.inf if value is None else value
