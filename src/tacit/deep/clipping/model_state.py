"""What a model holds beside its trained weights: it must not change while records are met.

Trained weights change by noisy steps alone. Buffers and frozen parameters leave with the model as
they are, so that a buffer that averages records would leave without noise, and would tie each
record's gradient to the records before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tacit.deep.clipping.layers import CannotClip


class ModelState:
    """The buffers and parameters of a model as they were when this was made.

    Parameters
    ----------
    model
        The network. What is in its ``state_dict`` and neither a parameter nor a buffer is refused:
        nobody could tell whether it holds records.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        held = dict(model.named_parameters(remove_duplicate=False)) | _buffers(model)
        for name in model.state_dict():
            if name not in held:
                raise CannotClip(
                    f"the model's state_dict has {name!r}, which is neither a parameter nor a "
                    "buffer and would leave as it is; make it a buffer, or take it out."
                )
        frozen = {name: p for name, p in model.named_parameters() if not p.requires_grad}
        self._frozen = {name: _digest(p) for name, p in frozen.items()}
        self._buffers: dict[str, Tensor] = {}
        self._marks: dict[str, tuple[int, int]] = {}
        self._weights: dict[str, Tensor] = {}
        self.begin()

    def begin(self) -> None:
        """Note buffers and parameters before the records of a step are met.

        What changed since the last time is public: an optimiser's step, or a callback's doing.
        """
        self._weights = {
            name: p.detach().clone()
            for name, p in self._model.named_parameters()
            if p.requires_grad
        }
        buffers_before, marks = self._buffers, _marks(self._model)
        self._buffers = {
            # A clone that is still right is kept: buffers may be large.
            name: buffers_before[name]
            if name in buffers_before and marks[name] == self._marks[name]
            else tensor.clone()
            for name, tensor in _buffers(self._model).items()
        }
        self._marks = marks

    def check(self) -> None:
        """Raise if meeting records changed a buffer or a parameter; put both back."""
        now = _buffers(self._model)
        changed = [name for name in now if name not in self._buffers]
        for name, before in self._buffers.items():
            if name not in now:
                changed.append(name)
            elif not _same_bits(now[name], before):
                changed.append(name)
                _put_back(now[name], before)
        if changed:
            raise CannotClip(
                f"buffer {changed[0]!r} changes when the model meets records, and would leave "
                "without noise; keep no averages of records (track_running_stats=False)."
            )
        parameters = dict(self._model.named_parameters())
        for name, before in self._weights.items():
            if name not in parameters or not _same_bits(parameters[name], before):
                if name in parameters:
                    _put_back(parameters[name], before)
                raise CannotClip(_changes(name))
        # Of frozen parameters, which may be large, bits are compared at the end (`check_frozen`).
        marks = _marks(self._model)
        for name in parameters:
            if self._marks.get(name) != marks[name]:
                raise CannotClip(_changes(name))

    def check_frozen(self) -> None:
        """Raise if a frozen parameter is not what it was, to the last bit; before a release."""
        for name, p in self._model.named_parameters():
            if name in self._frozen and _digest(p) != self._frozen[name]:
                raise CannotClip(_changes(name))


def _marks(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Return which tensors buffers and parameters are, and how often each was changed."""
    held = dict(model.named_parameters()) | _buffers(model)
    return {name: (id(tensor), tensor._version) for name, tensor in held.items()}


def _changes(name: str) -> str:
    return (
        f"parameter {name!r} changes when the model meets records, and would leave without noise; "
        "let the forward pass change no parameter."
    )


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_buffers(remove_duplicate=False))


def _digest(tensor: Tensor) -> bytes:
    return hashlib.blake2b(_bytes(tensor).numpy().tobytes(), digest_size=16).digest()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8)


def _same_bits(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are alike to the last bit: a NaN is like itself."""
    return bool(a.shape == b.shape and a.dtype == b.dtype and torch.equal(_bytes(a), _bytes(b)))


def _put_back(now: Tensor, before: Tensor) -> None:
    if now.shape == before.shape:
        with torch.no_grad():
            now.copy_(before)


@contextmanager
def in_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Put a model in training mode or out of it, and each of its modules back afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.train(training)
    try:
        yield
    finally:
        for module, was in modes.items():
            module.training = was
