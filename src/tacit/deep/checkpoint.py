"""Resume a training after a crash: the charged plan, the steps begun, and the weights.

There are two files. ``name`` holds the weights after some step. ``name.steps`` holds the charged
plan and one byte for every step, written before the step reads a record. A step that was begun is
spent, whether or not its weights were saved: it is never repeated. A last byte marks the end of
the training.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tacit.engine import Plan
from tacit.privacy import AnyAccountant, Event, event_from_dict
from tacit.privacy.guarantee import Booking
from tacit.saving.container import write_whole

_STEP, _END = b".", b"!"
_FORMAT = "tacit-training"


class CheckpointError(ValueError):
    """A checkpoint belongs to another training, is in use, or is damaged."""


def checkpoint_path(path: object) -> str | os.PathLike[str]:
    """Return the path of a checkpoint; refuse what is no path."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"checkpoint must be the path of a file, got {path!r}; pass a str.")
    return path


class Checkpoint:
    """The files of one training, locked by one process at a time.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tacit.deep.checkpoint import Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Checkpoint(pathlib.Path(folder) / "run").exists
    False
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._steps_path = self.path.with_name(self.path.name + ".steps")
        self._handle: int | None = None
        self.booking: Booking | None = None
        self.assumptions: tuple[str, ...] = ()
        self.n_begun = 0
        self.is_finished = False

    @property
    def exists(self) -> bool:
        """Whether a training was charged and begun here."""
        return self._steps_path.exists()

    def check_place(self) -> None:
        """Refuse a file that cannot be written, before a training is charged."""
        folder = Path(os.path.realpath(self.path)).parent
        why = None
        if self.path.is_dir():
            why = "it is a folder; name a file in it"
        elif not folder.is_dir():
            why = f"{folder} is not an existing folder; make it first, or name another"
        else:
            try:
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                why = f"{error.strerror}; name another place"
        if why is not None:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} cannot be written: {why}. Nothing was charged."
            )

    @property
    def is_open(self) -> bool:
        """Whether this process is training here."""
        return self._handle is not None

    def start(self, plan: Plan, booking: Booking | None, assumptions: Sequence[str] = ()) -> None:
        """Record that a plan was charged; after the charge, before a record is read."""
        head = {
            "format": _FORMAT,
            "event": plan.event.to_dict(),
            "settings": dict(plan.settings),
            "booking": None if booking is None else booking.to_dict(),
            "assumptions": list(assumptions),
        }
        write_whole(self._steps_path, json.dumps(head).encode() + b"\n")
        self._open()
        self.booking, self.n_begun, self.is_finished = booking, 0, False
        self.assumptions = tuple(assumptions)

    def resume(self, plan: Plan) -> dict[str, Any] | None:
        """Return the last saved weights, if any, of a training with this plan."""
        self._open()
        head, _, steps = self._steps_path.read_bytes().partition(b"\n")
        self.is_finished = steps.endswith(_END)
        steps = steps.removesuffix(_END)
        try:
            found = json.loads(head)
            event, settings = event_from_dict(found["event"]), found["settings"]
            booking = found["booking"] and Booking.from_dict(found["booking"])
            assumptions = tuple(map(str, found.get("assumptions", ())))
            whole = found["format"] == _FORMAT and not steps.strip(_STEP)
        except (KeyError, TypeError, ValueError, AttributeError):
            whole = False
        if not whole:
            raise CheckpointError(f"{self._steps_path} is damaged; its steps are unknown.")
        if event != plan.event or settings != dict(plan.settings):
            raise CheckpointError(
                f"{self.path} has another plan; train with its original settings and budget, "
                "or name another file, which is charged anew."
            )
        self.booking, self.n_begun, self.assumptions = booking or None, len(steps), assumptions
        return self._weights()

    def _weights(self) -> dict[str, Any] | None:
        if not self.path.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, weights_only=True)
        except Exception as why:
            raise CheckpointError(f"{self.path} could not be read: {why}") from why
        if state.get("n_made", 0) > self.n_begun:
            raise CheckpointError(
                f"{self._steps_path} has fewer steps than the weights in {self.path} were made "
                "with: it is an older copy, or was truncated. The steps already made are unknown."
            )
        return state

    def begin_step(self) -> None:
        """Record that a step begins; from here on it is spent."""
        self._append(_STEP)
        self.n_begun += 1

    def finish(self) -> None:
        """Record that the training has ended; after its weights were saved."""
        self._append(_END)
        self.is_finished = True

    def _append(self, byte: bytes) -> None:
        """Write a byte, and flush it to disk before anything else happens."""
        assert self._handle is not None
        os.write(self._handle, byte)
        os.fsync(self._handle)

    def keep(self, state: dict[str, Any]) -> None:
        """Write the weights atomically: a crash leaves the old ones."""
        buffer = io.BytesIO()
        torch.save({**state, "n_made": self.n_begun}, buffer)
        write_whole(self.path, buffer.getvalue())

    def close(self) -> None:
        """Close and unlock the files."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> None:
        if self._handle is not None:
            raise CheckpointError(
                f"{self.path} is in use by a training of this very process; let it end first."
            )
        self._handle = os.open(self._steps_path, os.O_WRONLY | os.O_APPEND)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise CheckpointError(
                f"{self.path} is in use by another process; two would make each step twice."
            ) from None


def has_booked(accountant: AnyAccountant | None, booking: Booking | None, event: Event) -> bool:
    """Return whether the charge of an event is already in this very ledger.

    An accountant in memory does not know the charges of an earlier process, and is charged again. A
    ledger that was restored to an older state does not know them either, and is refused. So is one
    whose charge was for another analyst or partition: the next release
    would be of records without a charge.
    """
    from tacit.ledger import Ledger

    if booking is None or not isinstance(accountant, Ledger):
        return False
    if accountant.head.ledger != booking.ledger:
        return False
    accountant.verify(seen=booking)
    entry = accountant.entry(booking.entry)
    for what, ours in (("partition", accountant.partition), ("analyst", accountant.analyst)):
        if entry.get(what) != ours:
            raise CheckpointError(
                f"the training was charged with {what}={entry.get(what)!r}, but would continue "
                f"with {what}={ours!r}, for which nothing was charged; use the ledger bound as "
                "before, or name another checkpoint, which is charged anew."
            )
    if entry.get("event") != event.to_dict():
        raise CheckpointError(
            f"{booking} is the charge of another release; name another checkpoint, "
            "which is charged anew."
        )
    return True
