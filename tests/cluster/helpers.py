"""Records in parts, and a client that works at once, in this process."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import cloudpickle
import numpy as np

from tacit.cluster import DaskRecords
from tacit.records import Bounds, MemoryRecords

BOUNDS = Bounds(row_norm=2.0, intercept=0.5, n_records=600)


def data(n: int = 600, d: int = 5, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)).astype(np.float32).astype(float)
    return rows, np.where(rows[:, 0] + rng.normal(0, 0.5, n) > 0, 1.0, -1.0)


def pairs(rows: Any, labels: Any, *edges: int) -> list[tuple[Any, Any]]:
    cuts = [0, *edges, len(rows)]
    return [(rows[a:b], None if labels is None else labels[a:b]) for a, b in pairwise(cuts)]


class Done:
    """A future that is done."""

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, "done"


class AtOnce:
    """As much of a client as records use; whatever is sent is pickled, as on a wire."""

    def __init__(
        self,
        tamper: Callable[[list[Any]], list[Any]] = lambda results: results,
        wire: Callable[[Any], Any] | None = None,
    ) -> None:
        self.tamper, self.wire = tamper, wire or over_the_wire

    def submit(self, function: Any, *arguments: Any, pure: bool) -> Done:
        assert not pure
        sent = [a.value if isinstance(a, Done) else self.wire(a) for a in arguments]
        return Done(self.wire(function)(*sent))

    def scatter(self, values: list[Any], **how: bool) -> list[Done]:
        assert how == {"hash": False}  # a key must not be what a part holds
        return [Done(self.wire(value)) for value in values]

    def gather(self, futures: list[Done]) -> list[Any]:
        return self.tamper([future.value for future in futures])


def over_the_wire(value: Any) -> Any:
    return pickle.loads(cloudpickle.dumps(value))


def in_parts(rows: Any, labels: Any, bounds: Bounds, *edges: int) -> DaskRecords:
    parts = pairs(rows, labels, *edges)
    return DaskRecords.from_delayed(parts, rows.shape[1], bounds, AtOnce())


def in_memory() -> MemoryRecords:
    return MemoryRecords(*data(), BOUNDS)
