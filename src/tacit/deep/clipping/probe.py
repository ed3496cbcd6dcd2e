"""Whether a model treats records apart, tried on random records that nobody owns.

Nothing here sees data: the shape and type of a record are public, its values are drawn. A model is
tried before anything is charged, and what cannot be clipped is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tacit.deep.clipping.any_layer import Dimensions
from tacit.deep.clipping.book_keeping import REFUSALS, BookKeeper, Loss, losses_of
from tacit.deep.clipping.clip import FlatClip
from tacit.deep.clipping.parts import CannotClip, layers_of
from tacit.deep.clipping.tensors import floats_of, tensors_of
from tacit.deep.clipping.watching import Use, Watcher

_SEED = 20_240
_AT_ONCE = 1 << 21  # numbers in all layers together
_TOLERANCE = 1e-3  # of a gradient's length: float32 in another order
_SHARED = (
    "is used in a way that does not keep records apart: what it is given or returns does not have "
    "one row for each of them. Give it one (table(positions.expand(len(x), -1)) instead of "
    "table(positions)), or make it a parameter of the module that uses it."
)


@dataclass(frozen=True)
class Like:
    """The shape and type of a record, or of its target."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    def drawn(self, n: int, seed: int) -> Tensor:
        """Return random ones: zeros and ones where they are whole numbers, within [0, 1) else."""
        generator = torch.Generator().manual_seed(seed)
        numbers = torch.rand((n, *self.shape), generator=generator)
        return (
            numbers.to(self.dtype)
            if self.dtype.is_floating_point
            else ((numbers > 0.5).to(self.dtype))
        )


def book_keeper(model: nn.Module, loss: Loss, record: Like, target: Like) -> BookKeeper:
    """Return a book-keeper for a model, if its records can be told apart.

    Raises
    ------
    CannotClip
        If a layer mixes records, if a record's gradient is not what hooks see of it, or if the
        model cannot be run on such records; the message names the layer and the remedy.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from tacit.deep.clipping import Like, book_keeper
    >>> loss = nn.CrossEntropyLoss(reduction="none")
    >>> record, target = Like((3,), torch.float32), Like((), torch.int64)
    >>> book_keeper(nn.Linear(3, 2), loss, record, target).n_parameters
    8
    """
    layers = layers_of(model)
    x, y = record.drawn(3, _SEED), target.drawn(3, _SEED + 1)
    with _undisturbed(model):
        try:
            _refuse_keeping(model, x)
            with torch.no_grad():
                if not torch.equal(*(_first(model(x)) for _ in range(2))):
                    model.eval()  # dropout: its draws are no record's
                _refuse_mixing(model, record)
            uses = [_uses(model, loss, x[:n], y[:n]) for n in (2, 3)]
            dimensions = _dimensions(*uses)
            keeper = BookKeeper(model, loss, dimensions, _micro_batch(uses[1]))
            _compare(keeper, x, y)
        except CannotClip:
            raise
        except REFUSALS as why:
            others = [
                layer.name or type(layer.module).__name__ for layer in layers if not layer.rule
            ]
            of = f" (layers without a rule of their own: {', '.join(others)})" if others else ""
            raise CannotClip(
                f"the model could not be run on random records of shape {record.shape} and type "
                f"{record.dtype} with targets of shape {target.shape}{of}: {why} Check the shapes; "
                "a layer that torch.func.vmap cannot take must be written with others, such as "
                "nn.LSTMCell in a loop for nn.LSTM."
            ) from why
    return keeper


@contextmanager
def _undisturbed(model: nn.Module) -> Iterator[None]:
    """Leave the model's mode and torch's random state as they were."""
    modes = {module: module.training for module in model.modules()}
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            for module, training in modes.items():
                module.training = training


def _first(outputs: Any) -> Tensor:
    return floats_of(outputs)[0]


def _refuse_keeping(model: nn.Module, x: Tensor) -> None:
    """Refuse a model that changes a buffer when it meets records: it would leave without noise."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        model(x)
    for name, buffer in model.named_buffers():
        if name not in before or not torch.equal(buffer, before[name]):
            if name in before:
                buffer.copy_(before[name])
            raise CannotClip(
                f"buffer {name!r} changes when the model meets records, and would leave without "
                "noise; keep no averages of records (track_running_stats=False)."
            )


def _refuse_mixing(model: nn.Module, record: Like) -> None:
    """Refuse a model whose answer for two records depends on a third."""
    x = record.drawn(3, _SEED)
    other = torch.cat(
        [x[:2], record.drawn(1, _SEED + 7) * 3 if x.is_floating_point() else 1 - x[2:]]
    )
    answers = [_first(model(batch))[:2] for batch in (x, other, x[:2])]
    for answer in answers[1:]:
        if answer.shape != answers[0].shape or not torch.allclose(
            answer, answers[0], rtol=1e-4, atol=1e-5
        ):
            raise CannotClip(
                "what the model says of one record changes with the others of its batch, so that "
                "no record's gradient is its own; take out what looks across the first dimension "
                "(a mean over the batch, a normalisation by it)."
            )


def _uses(model: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> list[Use]:
    with Watcher(model, layers_of(model)).watching() as watch:
        losses_of(loss, model(x), y)
    for use in watch.uses:
        use.check_untouched()
    return watch.uses


def _dimensions(two: list[Use], three: list[Use]) -> tuple[tuple[Dimensions, Dimensions], ...]:
    """Return where records are in what every layer is given and returns: what grew with them."""
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
    """Return how many records keep what layers meet and return within a cache or so."""
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
    """Refuse a model of which book-keeping and torch find different gradients."""
    wide = FlatClip(1e30)
    together = torch.zeros(keeper.n_parameters, dtype=torch.float64)
    for i in range(len(x)):
        torch_s = _plain(keeper, x[i : i + 1], y[i : i + 1])
        _same(keeper, keeper.strict_sums(x[i : i + 1], y[i : i + 1], wide).value, torch_s)
        together += torch_s
    _same(keeper, keeper.strict_sums(x, y, wide).value, together)


def _plain(keeper: BookKeeper, x: Tensor, y: Tensor) -> Tensor:
    with torch.enable_grad():
        total = losses_of(keeper.loss, keeper.model(x), y).sum()
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
