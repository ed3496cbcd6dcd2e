"""Serve records of any kind as tensors, in batches."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tacit.deep.clipping import Clip
from tacit.deep.clipping.book_keeping import BookKeeper, Sums, added
from tacit.deep.clipping.mixing_check import Like
from tacit.deep.clipping.randomness import (
    Keys,
    blank_keys,
    drawing_by,
    global_randomness,
    record_keys,
)
from tacit.noise import Source
from tacit.queries import Facts
from tacit.records.splits import DrawsWords as Words
from tacit.records.splits import Sample, poisson_choice

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PublicData:
    """Records declared public, for evaluations; the caller vouches for it.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.deep import PublicData
    >>> len(PublicData(np.zeros((4, 2)), np.zeros(4)).y)
    4
    """

    X: Any
    y: Any


@dataclass(frozen=True)
class TensorRecords:
    """Arrays, tensors or memory maps of records and targets, read on demand."""

    x: Any
    y: Any
    assumptions = ()
    may_draw = False

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError("X and y are of different lengths; pass one target for each record.")

    def __len__(self) -> int:
        return len(self.x)

    def likes(self) -> tuple[Like, Like]:
        """Return the shape and type of a record and of a target."""
        return _like(self.x), _like(self.y)

    def opened(self) -> TensorRecords:
        """Return the records, which are already open."""
        return self

    def take(self, indices: Indices, keys: Keys) -> tuple[Tensor, Tensor, Keys]:
        """Return the records at some indices, their targets and their keys."""
        return _taken(self.x, indices), _taken(self.y, indices), keys


# How often the first item of a dataset is read to detect its own random draws.
_READ = 4


class _DrawsByItself(Exception):
    """An item of a dataset is not a function of its record and the global generators."""


def _alike(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(torch.equal(one.nan_to_num(), other.nan_to_num()))


@dataclass
class DatasetRecords:
    """A map-style dataset: ``len(dataset)`` records, ``dataset[i]`` a record and its target.

    An item that raises, or differs in shape from the first one, counts as absent: an error would
    reveal it. A dataset whose items draw random numbers (to crop or rotate an image)
    is read with the global generators of torch, NumPy and Python seeded by the key of each record.
    With sequential draws, one more record would shift the draws of all later ones.
    """

    dataset: Any
    may_draw = True
    _draws: bool = field(default=False, repr=False)

    def __len__(self) -> int:
        return len(self.dataset)

    assumptions = (
        "the shape and type of the dataset's first item are those agreed for all records, "
        "whatever it holds; items of others do not count",
        "an item of the dataset follows from its own record and from the global generators of "
        "torch, NumPy and Python, not from its place or from a generator of the dataset's own",
    )

    def likes(self) -> tuple[Like, Like]:
        """Return the shape and type of the first record and target, which are public."""
        return self._likes

    @cached_property
    def _likes(self) -> tuple[Like, Like]:
        try:
            x, y = self._first_item()
        except _DrawsByItself:
            raise ValueError(
                "the first item of the dataset differs each time, whatever the global "
                "generators are: it draws from a generator of its own, item by item, "
                "so that one more record would shift the draws of all later ones. Draw from "
                "torch's, NumPy's or Python's global generator, which is seeded by a secret key "
                "of each record."
            ) from None
        except Exception as error:
            raise ValueError(
                "the first item of the dataset, whose shape is that of all, could not be read as a "
                f"record and its target ({type(error).__name__}; its message may quote the record "
                "and is left out); let dataset[0] return two tensors, arrays or numbers."
            ) from None
        return Like(tuple(x.shape), _float32(x).dtype), Like(tuple(y.shape), _float32(y).dtype)

    def _first_item(self) -> tuple[Tensor, Tensor]:
        """Read the first item several times: equal keys must give equal items."""
        key, found = np.zeros(16, np.uint8), []
        for _ in range(_READ):
            with drawing_by(key):
                x, y = (torch.as_tensor(part) for part in self.dataset[0])
            found.append((x.clone(), y.clone()))
        for x, y in found[1:]:
            if not (_alike(x, found[0][0]) and _alike(y, found[0][1])):
                raise _DrawsByItself
        return found[0]

    def opened(self) -> DatasetRecords:
        """Return the records, which are read one by one."""
        return self

    def take(self, indices: Indices, keys: Keys) -> tuple[Tensor, Tensor, Keys]:
        """Return the readable records at some indices, their targets and their keys."""
        likes = self.likes()
        before = None if self._draws else global_randomness()
        items = [self._item(int(i), likes, key) for i, key in zip(indices, keys, strict=True)]
        if before is not None and global_randomness() != before:
            # Some item draws: from now on all items, including these, draw by their keys.
            self._draws = True
            return self.take(indices, keys)
        read = [place for place, item in enumerate(items) if item is not None]
        pairs = [item for item in items if item is not None]
        if not pairs:
            x, y = (torch.zeros(0, *like.shape, dtype=like.dtype) for like in likes)
            return x, y, keys[:0]
        return torch.stack([x for x, _ in pairs]), torch.stack([y for _, y in pairs]), keys[read]

    def _item(
        self, i: int, likes: tuple[Like, Like], key: npt.NDArray[np.uint8]
    ) -> tuple[Tensor, Tensor] | None:
        try:
            with drawing_by(key) if self._draws else nullcontext():
                x, y = (_float32(torch.as_tensor(part)) for part in self.dataset[i])
        except Exception:
            return None
        found = (Like(tuple(x.shape), x.dtype), Like(tuple(y.shape), y.dtype))
        return (x, y) if found == likes else None


Records = TensorRecords | DatasetRecords


class Unread(Protocol):
    """Records of which only public facts have been read."""

    def likes(self) -> tuple[Like, Like]:
        """Return the shape and type of a record and of a target."""

    def opened(self) -> Records:
        """Return the records, after the charge."""


@dataclass(frozen=True, eq=False)
class Batches:
    """Records, or a batch of them, with the network that they train, for a session.

    ``source`` draws the records' keys; ``micro_batch`` is the number of records per
    pass, and ``places`` are the positions of a batch.
    """

    records: Records
    keeper: BookKeeper
    source: Source
    micro_batch: int | None = None
    places: Indices = field(default_factory=lambda: np.arange(0))

    def __len__(self) -> int:
        return len(self.records)

    def batch(self, places: Indices) -> Batches:
        """Return the records at some positions."""
        return replace(self, places=places)

    def poisson_sample(self, rate: float, words: Words) -> Sample:
        """Return a Poisson sample and its rate."""
        return Sample(self.batch(np.flatnonzero(poisson_choice(rate, len(self), words))), rate)

    def clipped(self, clip: Clip) -> Sums:
        """Return the sum of a batch's clipped gradients, one micro-batch at a time."""
        some, parts = self.micro_batch or self.keeper.micro_batch, list[Sums]()
        keys = keys_for(self.keeper, self.records, len(self.places), self.source)
        with self.keeper.unchanged():
            for start in range(0, len(self.places), some):
                part = slice(start, start + some)
                x, y, own = self.records.take(self.places[part], keys[part])
                parts = [added([*parts, self.keeper.sums(x, y, clip, some, own)])]
        return parts[0] if parts else self.keeper.empty()


def keys_for(keeper: BookKeeper, records: Records, n: int, source: Source) -> Keys:
    """Return fresh keys for the records of a batch; blank ones if nothing is drawn from them."""
    if keeper.has_dropout or records.may_draw:
        return record_keys(n, source)
    return blank_keys(n)


@dataclass(frozen=True, eq=False)
class Opened:
    """A view that opens records for the network that they train."""

    keeper: BookKeeper
    micro_batch: int | None

    def apply(self, records: Unread, facts: Facts, source: Source) -> tuple[Batches, Facts]:
        """Return the records in batches."""
        return Batches(records.opened(), self.keeper, source, self.micro_batch), facts


def records_of(X: Any, y: Any = None) -> Records:
    """Wrap records without reading them.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.deep.records import records_of
    >>> len(records_of(np.zeros((5, 2)), np.zeros(5)))
    5
    """
    if y is not None:
        return TensorRecords(_indexable("X", X), _indexable("y", y))
    if hasattr(X, "__getitem__") and hasattr(X, "__len__") and not hasattr(X, "shape"):
        return DatasetRecords(X)
    raise TypeError(
        "fit takes X and y, arrays or tensors with one row a record, or a map-style Dataset alone "
        f"(with __len__ and __getitem__); got {type(X).__name__} without y."
    )


def _indexable(name: str, values: Any) -> Any:
    if isinstance(values, Tensor):
        return values.detach().cpu()
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise TypeError(
            f"{name} must hold numbers, one row a record, got an array of type {array.dtype} and "
            f"{array.ndim} dimensions; encode words and dates first (tacit.preprocessing)."
        )
    return array


def _like(values: Any) -> Like:
    if isinstance(values, Tensor):
        return Like(tuple(values.shape[1:]), _float32(values[:0]).dtype)
    empty = torch.as_tensor(np.zeros(0, values.dtype.newbyteorder("=")))
    return Like(tuple(values.shape[1:]), _float32(empty).dtype)


def _taken(values: Any, indices: Indices) -> Tensor:
    if isinstance(values, Tensor):
        return _float32(values[torch.from_numpy(indices)])
    return _float32(
        torch.from_numpy(
            np.ascontiguousarray(values[indices]).astype(values.dtype.newbyteorder("="), copy=False)
        )
    )


def _float32(values: Tensor) -> Tensor:
    """Convert floats to float32 and integers to int64."""
    return values.float() if values.is_floating_point() else values.long()
