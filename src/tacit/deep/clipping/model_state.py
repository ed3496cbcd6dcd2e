"""Check that a model's untrained state does not change while it processes records.

Trained weights change only by noisy steps. Buffers and frozen parameters are released with the
model unchanged. A buffer that averages records would be released without noise, and would make
each record's gradient depend on the records before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tacit.deep.clipping.layers import CannotClip


class ModelState:
    """A snapshot of the buffers and parameters of a model.

    Parameters
    ----------
    model
        The network. Entries of its ``state_dict`` that are neither a parameter nor a buffer are
        refused, because they cannot be checked for records.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        held = dict(model.named_parameters(remove_duplicate=False)) | _buffers(model)
        for name in model.state_dict():
            if name not in held:
                raise CannotClip(
                    f"the model's state_dict has {name!r}, which is neither a parameter nor a "
                    "buffer and would be released unchecked; make it a buffer, or remove it."
                )
        frozen = {name: p for name, p in model.named_parameters() if not p.requires_grad}
        self._frozen = {name: _digest(p) for name, p in frozen.items()}
        self._buffers: dict[str, Tensor] = {}
        self._marks: dict[str, tuple[int, int]] = {}
        self._weights: dict[str, Tensor] = {}
        self.begin()

    def begin(self) -> None:
        """Take a snapshot before the records of a step are read.

        Changes since the last one are public: by an optimiser's step, or by a callback.
        """
        self._weights = {
            name: p.detach().clone()
            for name, p in self._model.named_parameters()
            if p.requires_grad
        }
        buffers_before, marks = self._buffers, _marks(self._model)
        self._buffers = {
            # A clone that is still valid is reused, because buffers may be large.
            name: buffers_before[name]
            if name in buffers_before and marks[name] == self._marks[name]
            else tensor.clone()
            for name, tensor in _buffers(self._model).items()
        }
        self._marks = marks

    def check(self) -> None:
        """Raise if records changed a buffer or a parameter; restore both."""
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
                f"buffer {changed[0]!r} changes when the model processes records, and would be "
                "released without noise; store no averages of records (track_running_stats=False)."
            )
        parameters = dict(self._model.named_parameters())
        for name, before in self._weights.items():
            if name not in parameters or not _same_bits(parameters[name], before):
                if name in parameters:
                    _put_back(parameters[name], before)
                raise CannotClip(_changes(name))
        # Frozen parameters may be large; their bits are compared once at the end (`check_frozen`).
        marks = _marks(self._model)
        for name in parameters:
            if self._marks.get(name) != marks[name]:
                raise CannotClip(_changes(name))

    def check_frozen(self) -> None:
        """Raise if a bit of a frozen parameter has changed; called before a release."""
        for name, p in self._model.named_parameters():
            if name in self._frozen and _digest(p) != self._frozen[name]:
                raise CannotClip(_changes(name))


def _marks(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Return the identity and the version counter of all buffers and parameters."""
    held = dict(model.named_parameters()) | _buffers(model)
    return {name: (id(tensor), tensor._version) for name, tensor in held.items()}


def _changes(name: str) -> str:
    return (
        f"parameter {name!r} changes when the model processes records, and would be released "
        "without noise; let the forward pass change no parameter."
    )


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_buffers(remove_duplicate=False))


def _digest(tensor: Tensor) -> bytes:
    return hashlib.blake2b(_bytes(tensor).numpy().tobytes(), digest_size=16).digest()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8)


def _same_bits(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are bitwise equal; NaN equals itself."""
    return bool(a.shape == b.shape and a.dtype == b.dtype and torch.equal(_bytes(a), _bytes(b)))


def _put_back(now: Tensor, before: Tensor) -> None:
    if now.shape == before.shape:
        with torch.no_grad():
            now.copy_(before)


@contextmanager
def in_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Set training mode on or off, and restore the mode of each module afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.train(training)
    try:
        yield
    finally:
        for module, was in modes.items():
            module.training = was
