"""Draw dropout masks from a secret key of each record.

torch draws masks by a record's position in its batch, from one generator that most scripts seed
with a public number. One more record then shifts the masks of all later records, and the sum of
their gradients moves by many clips. Here each record of a batch has its own secret key, from which
its masks are derived. The record's gradient is then a function of the record, its key and the
weights alone (docs/proofs/networks.md, section 1).

Privacy needs keys that are secret and independent. It does not need good random numbers *from* a
key; SHAKE-128 gives good ones anyway.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tacit.deep.clipping.layers import CannotClip, DependsOnRecords
from tacit.noise import Source, secure_source

# One row of 16 bytes per record.
Keys = npt.NDArray[np.uint8]

_KEY_BYTES = 16
_WORD = np.dtype("<u2")  # 16 random bits decide whether a value is dropped
_WORDS = 1 << 16
# The value of a dropped unit in a network of SELU units: -scale alpha (Klambauer et al. 2017).
_SELU_FLOOR = -1.7580993408473766


def record_keys(n: int, source: Source | None = None) -> Keys:
    """Return ``n`` secret keys, one per record, each fresh and independent of all others.

    Examples
    --------
    >>> from tacit.deep.clipping.randomness import record_keys
    >>> record_keys(3).shape
    (3, 16)
    """
    words = (secure_source() if source is None else source).words(2 * n)
    return np.ascontiguousarray(words).view(np.uint8).reshape(n, _KEY_BYTES)


def blank_keys(n: int) -> Keys:
    """Return keys of ``n`` records for which nothing random is drawn."""
    return np.zeros((n, 0), np.uint8)


class _ReplacedDropouts(TorchFunctionMode):
    """Call `_dropped` for every dropout that drops something; run everything else unchanged."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run a function of torch, or what replaces it."""
        if func not in _DROPOUTS:
            return func(*args, **(kwargs or {}))
        x, p, inplace = _arguments(*args, **(kwargs or {}))
        return x if p == 0.0 else self._dropped(func, x, p, inplace)

    def _dropped(self, func: Callable[..., Any], x: Tensor, p: float, inplace: bool) -> Tensor:
        raise NotImplementedError


class RecordMasks(_ReplacedDropouts):
    """Replace torch's dropout masks by masks from the records' keys.

    Parameters
    ----------
    keys
        One key per record of the batch.
    dimensions
        For each dropout of a forward pass, in order: the dimension of records in its input,
        as `DropoutShapes` found it.

    Notes
    -----
    **Guarantee**. Row i of the input of the k-th dropout of a pass has a mask that is a function
    of key i, k, the shape of a row and the probability. If rows are records in their order, of
    equal shapes, a record's mask is a function of its own key.
    """

    def __init__(self, keys: Keys, dimensions: Sequence[int]) -> None:
        super().__init__()
        self._keys = [key.tobytes() for key in keys]
        self._dimensions = tuple(dimensions)
        self.n_masks = 0

    def _dropped(self, func: Callable[..., Any], x: Tensor, p: float, inplace: bool) -> Tensor:
        if self.n_masks >= len(self._dimensions):
            raise DependsOnRecords(_DEPENDS)
        dim = self._dimensions[self.n_masks]
        self.n_masks += 1
        if x.ndim <= dim or x.shape[dim] != len(self._keys):
            raise DependsOnRecords(_DEPENDS)
        shape_of, applied = _DROPOUTS[func]
        return applied(x, *self._mask(shape_of(x, dim), dim, p), inplace)

    def check_all_used(self) -> None:
        """Raise after a pass that used fewer dropouts than the model has."""
        if self.n_masks != len(self._dimensions):
            raise DependsOnRecords(_DEPENDS)

    def _mask(self, shape: tuple[int, ...], dim: int, p: float) -> tuple[Tensor, float]:
        """Return the mask of kept values, one row of bits per record, and its probability."""
        each = shape[:dim] + shape[dim + 1 :]
        size, number = _WORD.itemsize * math.prod(each), self.n_masks.to_bytes(4)
        drawn = b"".join([hashlib.shake_128(key + number).digest(size) for key in self._keys])
        threshold = round((1.0 - p) * _WORDS)
        retained = np.frombuffer(drawn, _WORD).reshape(len(self._keys), *each) < threshold
        return torch.from_numpy(retained).movedim(0, dim), threshold / _WORDS


class DropoutShapes(_ReplacedDropouts):
    """Disable dropout, and record the shape of each dropout's input."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[torch.Size] = []

    def _dropped(self, func: Callable[..., Any], x: Tensor, p: float, inplace: bool) -> Tensor:
        self.shapes.append(x.shape)
        return x


@contextmanager
def no_other_draws() -> Iterator[None]:
    """Refuse a pass that draws from torch's own generator, and restore the generator."""
    before = torch.get_rng_state()
    try:
        yield
    finally:
        has_drawn = not torch.equal(torch.get_rng_state(), before)
        if has_drawn:
            torch.set_rng_state(before)
    refuse_draws(has_drawn)


def refuse_draws(has_drawn: bool) -> None:
    """Refuse a model that drew random numbers other than by dropout."""
    if has_drawn:
        raise CannotClip(
            "the model or the loss draws random numbers from torch's generator, NumPy's or "
            "Python's, in sequence for all records of a batch, so that one more record "
            "shifts those of others. "
            "Draw them with torch.nn.Dropout or torch.nn.functional.dropout outside of other "
            "layers, whose masks belong to a record; torch.nn.functional.dropout(torch.ones(n, 1), "
            "p) drops whole records. Set the dropout inside attention and recurrent layers to 0."
        )


def global_randomness() -> tuple[bytes, object, object]:
    """Return the states of the global generators of torch, NumPy and Python, for comparison."""
    name, words, *rest = np.random.get_state()  # noqa: NPY002 - whatever a dataset draws from
    state = name, np.asarray(words).tobytes(), *rest
    return torch.get_rng_state().numpy().tobytes(), state, random.getstate()


@contextmanager
def drawing_by(key: npt.NDArray[np.uint8]) -> Iterator[None]:
    """Seed the global generators by a record's key, and restore them afterwards."""
    words = np.frombuffer(hashlib.shake_128(key.tobytes() + b"item").digest(16), "<u4")
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    torch.default_generator.manual_seed(int(words[0]))
    np.random.seed(words)  # noqa: NPY002
    random.seed(key.tobytes())
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        random.setstate(states[2])


_DEPENDS = (
    "the dropouts that the model uses, or their shapes, depend on the records; let it use the same "
    "ones for every batch."
)


def _arguments(
    input: Tensor,  # noqa: A002 - torch's own name
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    train: bool | None = None,
) -> tuple[Tensor, float, bool]:
    """Return the arguments of torch's dropout functions; probability 0 if they are disabled."""
    on = training if train is None else train
    return input, float(p) if on else 0.0, inplace


def _scaled(x: Tensor, retained: Tensor, chance: float, inplace: bool) -> Tensor:
    """Drop values, and scale the others: x m / P(m = 1)."""
    factor = retained.to(x.dtype) / (chance or 1.0)
    return x.mul_(factor) if inplace else x * factor


def _self_normalising(x: Tensor, retained: Tensor, chance: float, inplace: bool) -> Tensor:
    """Replace dropped values by SELU's floor, and preserve mean 0 and variance 1.

    a (x m + f (1 - m)) + b,  a = (P + f^2 P (1 - P))^-1/2,  b = -a f (1 - P),  P = P(m = 1)
    """
    if chance == 0.0:
        return x.mul_(0.0) if inplace else x * 0.0
    floor = _SELU_FLOOR
    a = (chance + floor**2 * chance * (1.0 - chance)) ** -0.5
    b = -a * floor * (1.0 - chance)
    made = torch.where(retained, x, torch.full_like(x, floor)) * a + b
    return x.copy_(made) if inplace else made


def _values(x: Tensor, _: int) -> tuple[int, ...]:
    """Return the shape of a mask of single values."""
    return tuple(x.shape)


def _channels(x: Tensor, dim: int) -> tuple[int, ...]:
    """Return the shape of a mask of channels: one bit for each of the first two dimensions."""
    if dim != 0 or x.ndim < 2:
        raise CannotClip(
            "a dropout of channels is given a tensor whose first dimension is not that of records; "
            "give it one (records, channels, ...), or use torch.nn.Dropout."
        )
    return (*x.shape[:2], *(1 for _ in x.shape[2:]))


# Each dropout function of torch: the shape of its mask, and how the mask is applied.
_DROPOUTS: dict[
    Callable[..., Any], tuple[Callable[..., tuple[int, ...]], Callable[..., Tensor]]
] = {
    functional.dropout: (_values, _scaled),
    torch.dropout: (_values, _scaled),
    functional.dropout1d: (_channels, _scaled),
    functional.dropout2d: (_channels, _scaled),
    functional.dropout3d: (_channels, _scaled),
    functional.alpha_dropout: (_values, _self_normalising),
    functional.feature_alpha_dropout: (_channels, _self_normalising),
}
