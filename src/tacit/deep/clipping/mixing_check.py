"""Test on random records whether a model processes records independently.

Nothing here sees data: the shape and type of a record are public, its values are drawn. A model is
tested before anything is charged, and a layer that cannot be clipped is refused by name.

Each trial runs in training mode, as the training does. The model is tested with its own weights on
few records, and with random weights (a gate that starts at zero hides the layers behind it). The
latter tests use few records and a large batch, of a hundred records or of a micro-batch
(some layers mix large batches only), with small and with large values. Mixing that none of
these shows is not found (docs/known_limits.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from tacit.deep.clipping.book_keeping import BookKeeper, Loss, Use, Watcher, losses_of
from tacit.deep.clipping.clip import FlatClip
from tacit.deep.clipping.layer_rules import Dimensions, floats_of, tensors_of
from tacit.deep.clipping.layers import CannotClip, layers_of
from tacit.deep.clipping.model_state import ModelState, in_mode
from tacit.deep.clipping.randomness import (
    DropoutShapes,
    Keys,
    RecordMasks,
    global_randomness,
    no_other_draws,
    refuse_draws,
)

_SEED = 20_240
_AT_ONCE = 1 << 21  # numbers in all layers together, for the default micro-batch
_TOLERANCE = 1e-3  # relative, for float32 sums in another order
_MANY = 100  # records of a large batch: more than hard-example mining or a group uses
_WIDE = 10.0  # standard deviation of large values
_SHARED = (
    "mixes records: its input or output does not have "
    "one row for each of them. Give it one (table(positions.expand(len(x), -1)) instead of "
    "table(positions)), or make it a parameter of the module that uses it."
)


@dataclass(frozen=True)
class Like:
    """The shape and type of a record, or of its target."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    def drawn(self, n: int, seed: int, *, wide: bool = False) -> Tensor:
        """Draw random values: 0 or 1 for integers, in [0, 1) otherwise.

        ``wide`` draws floats of both signs, most of them above 1.
        """
        generator = torch.Generator().manual_seed(seed)
        if wide and self.dtype.is_floating_point:
            return (_WIDE * torch.randn((n, *self.shape), generator=generator)).to(self.dtype)
        numbers = torch.rand((n, *self.shape), generator=generator)
        return (
            numbers.to(self.dtype)
            if self.dtype.is_floating_point
            else ((numbers > 0.5).to(self.dtype))
        )


def book_keeper(
    model: nn.Module, loss: Loss, record: Like, target: Like, micro_batch: int | None = None
) -> BookKeeper:
    """Return a book-keeper for a model, if it processes records independently.

    ``micro_batch`` is the number of records per pass: larger batches need not be tested.

    Raises
    ------
    CannotClip
        If a layer mixes records, if a record's gradient is not what hooks see of it, or if the
        model cannot be run on such records; the message names the layer and the remedy.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from tacit.deep.clipping.mixing_check import Like, book_keeper
    >>> loss = nn.CrossEntropyLoss(reduction="none")
    >>> record, target = Like((3,), torch.float32), Like((), torch.int64)
    >>> book_keeper(nn.Linear(3, 2), loss, record, target).n_parameters
    8
    """
    layers = layers_of(model)
    x, y = record.drawn(3, _SEED), target.drawn(3, _SEED + 1)
    with torch.random.fork_rng(devices=[]), in_mode(model, training=True):
        try:
            state = ModelState(model)
            dropouts = _dropouts(model, loss, x, y)
            state.check()
            with RecordMasks(_keys(2), dropouts):
                two = _uses(model, loss, x[:2], y[:2])
            with RecordMasks(_keys(3), dropouts):
                three = _uses(model, loss, x, y)
            keeper = BookKeeper(model, loss, _dimensions(two, three), _micro_batch(three), dropouts)
            many = min(_MANY, micro_batch or keeper.micro_batch)
            with keeper.unchanged():
                _try_on_few(keeper, record, target)
            _try_with_random_weights(keeper, record, target, many)
        except CannotClip:
            raise
        except Exception as why:
            others = [
                layer.name or type(layer.module).__name__ for layer in layers if not layer.rule
            ]
            of = f" (layers without a rule of their own: {', '.join(others)})" if others else ""
            raise CannotClip(
                f"the model could not be run on random records of shape {record.shape} and type "
                f"{record.dtype} with targets of shape {target.shape}{of}: "
                f"{type(why).__name__}: {why} Check the shapes; "
                "a layer that torch.func.vmap cannot take must be written with others, such as "
                "nn.LSTMCell in a loop for nn.LSTM."
            ) from why
    return keeper


def _keys(n: int, first: int = 0) -> Keys:
    """Return the keys of made-up records: key i depends on i alone."""
    words = [hashlib.blake2b(b"%d" % i, digest_size=16).digest() for i in range(first, first + n)]
    return np.frombuffer(b"".join(words), np.uint8).reshape(n, 16)


def _dropouts(model: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> tuple[int, ...]:
    """Return the dimension of records in the input of each dropout: the one that grows."""
    found = []
    for n in (2, 3):
        with no_other_draws(), torch.no_grad(), DropoutShapes() as seen:
            losses_of(loss, model(x[:n]), y[:n])
        found.append(seen.shapes)
    if len(found[0]) != len(found[1]):
        raise CannotClip("which dropouts the model uses depends on the number of records.")
    dimensions = []
    for small, large in zip(*found, strict=True):
        try:
            dim = _grown_in(small, large)
        except CannotClip:
            raise CannotClip(
                "a dropout is given a tensor in which records do not have one row each, such as "
                "(records times heads, places, places); reshape it to (records, ...) before."
            ) from None
        if dim is None:
            raise CannotClip(
                "a dropout is given a tensor that has no row for each record, so that its mask "
                "would be one for all of them; give it one with the records, or take it out."
            )
        dimensions.append(dim)
    return tuple(dimensions)


def _try_on_few(keeper: BookKeeper, record: Like, target: Like) -> None:
    """Refuse a model that mixes three records, or whose gradients its layers do not explain."""
    x, y, keys = record.drawn(3, _SEED), target.drawn(3, _SEED + 1), _keys(3)
    before = global_randomness()
    with torch.no_grad():
        once, again = (keeper.answers(x, y, keys) for _ in range(2))
    refuse_draws(global_randomness() != before)
    if not all(_same_bits(a, b) for a, b in zip(once, again, strict=True)):
        raise CannotClip(
            "the model's outputs for the same records change from one call to the next: it draws "
            "random numbers, or stores something of the records. Draw with "
            "torch.nn.Dropout, whose masks belong to a record, and store nothing."
        )
    _refuse_mixing(keeper, record, target, 3)
    _compare(keeper, x, y)


def _try_on_many(keeper: BookKeeper, record: Like, target: Like, n: int) -> None:
    """Refuse a model that mixes the records of a large batch, or large values."""
    _refuse_mixing(keeper, record, target, n)
    try:
        _refuse_mixing(keeper, record, target, n, wide=True)
    except CannotClip:
        raise
    except Exception:
        pass  # a model may refuse values that its records never have


def _try_with_random_weights(keeper: BookKeeper, record: Like, target: Like, many: int) -> None:
    """Test a model with random weights, if it can be run with them.

    Parameters that must stay positive are scaled if adding noise breaks the model.
    """
    for change in (_noise_added, _scaled):
        with _random_weights(keeper, change):
            if _can_be_run(keeper, record, target):
                with keeper.unchanged():
                    _try_on_few(keeper, record, target)
                    _try_on_many(keeper, record, target, many)
                return
    with keeper.unchanged():
        _try_on_many(keeper, record, target, many)


def _can_be_run(keeper: BookKeeper, record: Like, target: Like) -> bool:
    try:
        with torch.no_grad():
            found = keeper.answers(record.drawn(3, _SEED), target.drawn(3, _SEED + 1), _keys(3))
        return all(bool(answer.isfinite().all()) for answer in found)
    except Exception:
        return False


def _noise_added(p: Tensor, generator: torch.Generator) -> Tensor:
    """Add noise as large as typical initial weights to a parameter."""
    width = p[0].numel() if p.ndim > 1 else 4
    return p + torch.randn(p.shape, generator=generator) / max(width, 1) ** 0.5


def _scaled(p: Tensor, generator: torch.Generator) -> Tensor:
    """Scale a parameter, keeping its signs; zeros become small numbers."""
    noise = torch.randn(p.shape, generator=generator)
    return torch.where(p == 0, 0.05 * noise.abs(), p * torch.exp(0.5 * noise))


@contextmanager
def _random_weights(
    keeper: BookKeeper, change: Callable[[Tensor, torch.Generator], Tensor]
) -> Iterator[None]:
    """Replace all trained parameters, and restore them afterwards."""
    before = [p.detach().clone() for p in keeper.parameters]
    generator = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        for p in keeper.parameters:
            p.copy_(change(p, generator))
    try:
        yield
    finally:
        with torch.no_grad():
            for p, was in zip(keeper.parameters, before, strict=True):
                p.copy_(was)


def _refuse_mixing(
    keeper: BookKeeper, record: Like, target: Like, n: int, *, wide: bool = False
) -> None:
    """Refuse a model whose losses or gradients of some records depend on the others.

    The first records of a batch are run with the others, with different others, and alone.
    """
    first = (n + 1) // 2
    x, y = record.drawn(n, _SEED, wide=wide), target.drawn(n, _SEED + 1)
    others = record.drawn(n, _SEED + 7, wide=wide)[first:]
    if not x.is_floating_point():
        others = 1 - x[first:]
    elif wide:
        others = others * 3
    changed = torch.cat([x[:first], others])
    labels = torch.cat([y[:first], target.drawn(n, _SEED + 8)[first:]])
    own, together = _keys(first), _keys(n)
    elsewhere = np.concatenate([own, _keys(n - first, n)])
    batches = (x, y, together), (changed, labels, elsewhere), (x[:first], y[:first], own)
    with torch.no_grad():
        answers = [keeper.answers(*batch) for batch in batches]
    for answer in answers[1:]:
        for one, other in zip(answers[0], answer, strict=True):
            if not _close(one[:first], other[:first]):
                raise CannotClip(_MIXES)
    if n > 3:
        return
    clip = FlatClip(1e30)
    parts = [
        keeper.strict_sums(x[part], y[part], clip, together[part]).value
        for part in (slice(first), slice(first, None))
    ]
    whole = keeper.strict_sums(x, y, clip, together).value
    scale = max(float(torch.linalg.vector_norm(part)) for part in (*parts, whole))
    if float(torch.linalg.vector_norm(whole - parts[0] - parts[1])) > _TOLERANCE * scale + 1e-6:
        raise CannotClip(_MIXES)


_MIXES = (
    "what the model or the loss says of one record changes with the others of its batch, so that "
    "no record's gradient is its own; take out what looks across the first dimension (a mean over "
    "the batch, a normalisation by it, a choice of the hardest records)."
)


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())


def _close(a: Tensor, b: Tensor) -> bool:
    """Return whether two outputs agree up to float32 rounding."""
    if a.shape != b.shape:
        return False
    finite = a.isfinite() & b.isfinite()
    largest = float(a[finite].abs().max()) if bool(finite.any()) else 0.0
    return bool(torch.allclose(a, b, rtol=1e-4, atol=1e-5 + 1e-4 * largest, equal_nan=True))


def _uses(model: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> list[Use]:
    with Watcher(model, layers_of(model)).watching() as watch:
        losses_of(loss, model(x), y)
    for use in watch.uses:
        use.check_untouched()
    return watch.uses


def _dimensions(two: list[Use], three: list[Use]) -> tuple[tuple[Dimensions, Dimensions], ...]:
    """Return the dimension of records in the inputs and outputs of every layer."""
    if [use.layer.name for use in two] != [use.layer.name for use in three]:
        raise CannotClip("which layers the model uses depends on the number of records in a batch.")
    found = []
    for small, large in zip(two, three, strict=True):
        given = _grown(
            tensors_of((small.call.args, small.call.kwargs)),
            tensors_of((large.call.args, large.call.kwargs)),
        )
        returned = _grown(floats_of(small.call.outputs), floats_of(large.call.outputs))
        if None in returned or set(given) == {None}:
            raise CannotClip(f"layer {small.layer.name!r} {_SHARED}")
        found.append((given, returned))
    return tuple(found)


def _micro_batch(uses: list[Use]) -> int:
    """Return the number of records whose activations fit about in the cache."""
    calls = [use.call for use in uses]
    tensors = [t for call in calls for t in tensors_of((call.args, call.kwargs, call.outputs))]
    each = sum(tensor.numel() for tensor in tensors) // 3 + 1
    return int(min(max(_AT_ONCE // each, 32), 4096))


def _grown(small: Sequence[Tensor], large: Sequence[Tensor]) -> Dimensions:
    return tuple(_grown_in(a.shape, b.shape) for a, b in zip(small, large, strict=True))


def _grown_in(small: torch.Size, large: torch.Size) -> int | None:
    """Return the one dimension that is 2 for two records and 3 for three."""
    grown = [dim for dim, (a, b) in enumerate(zip(small, large, strict=True)) if a != b]
    if not grown:
        return None
    if len(grown) > 1 or (small[grown[0]], large[grown[0]]) != (2, 3):
        raise CannotClip("a layer is given a tensor in which records do not have one row each.")
    return grown[0]


def _compare(keeper: BookKeeper, x: Tensor, y: Tensor) -> None:
    """Refuse a model for which book-keeping and torch give different gradients."""
    wide = FlatClip(1e30)
    together = torch.zeros(keeper.n_parameters, dtype=torch.float64)
    keys = _keys(len(x))
    for i in range(len(x)):
        one = x[i : i + 1], y[i : i + 1]
        torch_s = _plain(keeper, *one, keys[i : i + 1])
        _same(keeper, keeper.strict_sums(*one, wide, keys[i : i + 1]).value, torch_s)
        together += torch_s
    _same(keeper, keeper.strict_sums(x, y, wide, keys).value, together)


def _plain(keeper: BookKeeper, x: Tensor, y: Tensor, keys: Keys) -> Tensor:
    with torch.enable_grad():
        total = keeper.answers(x, y, keys)[1].sum()
        found = torch.autograd.grad(total, keeper.parameters, allow_unused=True)
    flat = [
        torch.zeros(p.numel()) if g is None else g.flatten()
        for p, g in zip(keeper.parameters, found, strict=True)
    ]
    return torch.cat(flat).double()


def _same(keeper: BookKeeper, ours: Tensor, torch_s: Tensor) -> None:
    if (
        torch.linalg.vector_norm(ours - torch_s)
        <= _TOLERANCE * torch.linalg.vector_norm(torch_s) + 1e-6
    ):
        return
    worst = int(torch.argmax((ours - torch_s).abs()))
    names = [name for name, p in keeper.model.named_parameters() if p.requires_grad]
    ends = torch.cumsum(torch.tensor([p.numel() for p in keeper.parameters]), 0)
    name = names[int(torch.searchsorted(ends, worst, right=True))]
    raise CannotClip(
        f"the gradient of parameter {name!r} is not what its layer's inputs and outputs say: it is "
        "used outside the forward pass of its layer. Use it through the layer, or make it a "
        "parameter of the module that uses it."
    )
