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

from tacit.deep.clipping.parts import CannotClip


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
        self._buffers = {name: tensor.clone() for name, tensor in _buffers(model).items()}
        frozen = {name: p for name, p in model.named_parameters() if not p.requires_grad}
        self._frozen = {name: _digest(p) for name, p in frozen.items()}
        self._seen: dict[str, tuple[int, int]] = {}
        self.begin()

    def begin(self) -> None:
        """Note the parameters before records are met."""
        self._seen = {name: (id(p), p._version) for name, p in self._model.named_parameters()}

    def check(self) -> None:
        """Raise if meeting records changed a buffer or a parameter; put buffers back."""
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
        seen = {name: (id(p), p._version) for name, p in self._model.named_parameters()}
        if seen != self._seen:
            wrong = next(iter({*seen.items()} ^ {*self._seen.items()}))[0]
            raise CannotClip(_changes(wrong))

    def check_frozen(self) -> None:
        """Raise if a frozen parameter is not what it was, to the last bit; before a release."""
        for name, p in self._model.named_parameters():
            if not p.requires_grad and _digest(p) != self._frozen.get(name):
                raise CannotClip(_changes(name))


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
