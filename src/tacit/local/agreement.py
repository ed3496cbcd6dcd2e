"""Define the public agreement of a server and its devices, made before any question."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit import checks
from tacit.local.messages import (
    PROTOCOL_VERSION,
    TASK_BYTES,
    Question,
    Reason,
    Rejected,
    Report,
)
from tacit.local.sanitizers.base import Sanitizer, sanitizer_from_dict
from tacit.local.subgradients import (
    Absolute,
    Distance,
    Hinge,
    Huber,
    LocalLoss,
    Logistic,
    SumOfDistances,
)
from tacit.privacy import Guarantee

_FORMAT = "tacit-agreement"
# The meaning of a kind never changes: a new loss is a new kind.
_LOSSES: dict[str, type[Any]] = {
    loss.kind: loss for loss in (Logistic, Hinge, Absolute, Huber, Distance, SumOfDistances)
}
# Relative tolerance for norms that were rounded differently on the two sides.
_NORM_TOLERANCE = 1e-9
# The exponent of its square is far from overflow.
_LARGEST_NORM = 2.0**200
_ASSUMPTIONS = (
    "each person answers once, on one device that keeps its record",
    "the time, the address and the token of an answer do not depend on the record",
)


@dataclass(frozen=True)
class Agreement:
    """Loss, sanitizer and bounds: equal on the server and on every device.

    Parameters
    ----------
    loss : LocalLoss
        The loss to minimise, such as ``Logistic()``.
    sanitizer : Sanitizer
        The random map that a device applies to a subgradient. Its ``n_features`` includes the
        intercept, and its ``norm`` is at least that of the loss's subgradients.
    row_norm : float, default=1.0
        Devices clip records to this Euclidean norm.
    intercept : float, optional
        A constant to append to every record after clipping; by default none.
    name : str, default=""
        Distinguishes two studies with otherwise equal agreements, so that a report to one is not
        valid for the other.

    Notes
    -----
    **Guarantee**

    1. Two agreements have the same ``task`` if and only if all of these are equal, except for a
       collision of 128-bit hashes. Privacy does not depend on the hash: a device follows its own
       agreement, whatever a question says.
    2. The length of a question and of a report depends on these alone.

    Examples
    --------
    >>> from tacit.local import Agreement
    >>> from tacit.local import PrivUnit
    >>> from tacit.local import Logistic
    >>> agreement = Agreement(Logistic(), PrivUnit(epsilon=2.0, n_features=5))
    >>> agreement.question_size, agreement.report_size
    (78, 75)
    >>> Agreement.from_json(agreement.to_json()) == agreement
    True
    """

    loss: LocalLoss
    sanitizer: Sanitizer
    row_norm: float = 1.0
    intercept: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        _check_loss(self.loss)
        if not isinstance(self.sanitizer, Sanitizer):
            raise TypeError(f"sanitizer must be a Sanitizer, got {self.sanitizer!r}.")
        if not math.isfinite(self.sanitizer.epsilon):
            raise ValueError(
                f"the {self.sanitizer.kind} sanitizer has no guarantee, and a device sends nothing "
                "unsanitised; choose a finite epsilon."
            )
        object.__setattr__(self, "row_norm", _checked_norm("row_norm", self.row_norm))
        if self.intercept is not None:
            object.__setattr__(self, "intercept", _checked_norm("intercept", self.intercept))
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a str, got {self.name!r}; pass name='study 1'.")
        if self.n_columns < 1:
            raise ValueError(
                "the sanitizer has n_features = 1, which is the intercept alone; count the columns "
                "of a record too."
            )
        needed = self.loss.norm(self.n_features, self.total_norm)
        if self.sanitizer.norm < needed * (1.0 - _NORM_TOLERANCE):
            raise ValueError(
                f"the sanitizer's norm {self.sanitizer.norm!r} is below {needed!r}, the norm of "
                f"the {self.loss.kind} loss's subgradients: answers would be clipped and biased; "
                f"build the sanitizer with norm={needed!r}."
            )

    @property
    def n_features(self) -> int:
        """The length of a point and of a report."""
        return self.sanitizer.n_features

    @property
    def n_columns(self) -> int:
        """The number of features of a record, without the intercept."""
        return self.n_features - (self.intercept is not None)

    @property
    def total_norm(self) -> float:
        """The norm of a clipped record with its intercept: sqrt(row_norm^2 + intercept^2)."""
        return math.hypot(self.row_norm, self.intercept or 0.0)

    @cached_property
    def privacy(self) -> Guarantee:
        """The guarantee of a person, against the server and everybody else."""
        return Guarantee(self.sanitizer.event, self.sanitizer.delta, _ASSUMPTIONS)

    @cached_property
    def spacing(self) -> float:
        """The size of one step of a report."""
        return self.sanitizer.spacing

    @cached_property
    def step_bytes(self) -> int:
        """The number of bytes of a step: the least of 2, 4 and 8 that holds every step.

        Possible steps lie in a ball about 0 or on a sphere of 2^k steps. Either way the largest
        one is below 2^(k+1), with k the last for which (2^k, 0, ..., 0) is possible.
        """
        along = np.zeros(self.n_features, dtype=np.int64)
        for k in range(62, -1, -1):
            along[0] = 2**k
            if self.sanitizer.is_possible(along):
                return 2 if k + 1 < 16 else 4 if k + 1 < 32 else 8
        return 2

    @property
    def question_size(self) -> int:
        """The length of every question, in bytes."""
        return Question.size(self.n_features)

    @property
    def report_size(self) -> int:
        """The length of every report, in bytes."""
        return Report.size(self.n_features, self.step_bytes)

    @cached_property
    def task(self) -> bytes:
        """The 16-byte identifier of the agreement in messages: BLAKE2b of the JSON text."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=TASK_BYTES).digest()

    def check(self, message: Question | Report) -> None:
        """Raise `Rejected` unless a message has this agreement and dimension."""
        if message.task != self.task:
            raise Rejected(
                Reason.WRONG_TASK,
                "the message belongs to another agreement; load the server's agreement on the "
                "device, loss, sanitizer, bounds and name included.",
            )
        found = message.point.size if isinstance(message, Question) else message.steps.size
        if found != self.n_features:
            raise Rejected(
                Reason.WRONG_DIMENSION,
                f"the message has {found} coordinates, the agreement {self.n_features}.",
            )
        if isinstance(message, Report) and message.step_bytes != self.step_bytes:
            raise Rejected(
                Reason.MALFORMED,
                f"steps of {message.step_bytes} bytes where {self.step_bytes} are agreed on.",
            )

    def to_json(self) -> str:
        """Return the agreement as canonical JSON for devices."""
        loss = {"kind": self.loss.kind, "width": float(self.loss.width)}
        record = {
            "format": _FORMAT,
            "version": PROTOCOL_VERSION,
            "loss": loss,
            "sanitizer": self.sanitizer.to_dict(),
            "row_norm": self.row_norm,
            "intercept": self.intercept,
            "name": self.name,
        }
        return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Agreement:
        """Read an agreement; check its ``privacy`` before taking part."""
        record = json.loads(text)
        if not isinstance(record, dict) or (record.get("format"), record.get("version")) != (
            _FORMAT,
            PROTOCOL_VERSION,
        ):
            raise ValueError(
                f"not a {_FORMAT} of version {PROTOCOL_VERSION}; pass text written by "
                "Agreement.to_json."
            )
        try:
            return cls(
                _loss_from_dict(record["loss"]),
                sanitizer_from_dict(record["sanitizer"]),
                record["row_norm"],
                record["intercept"],
                record["name"],
            )
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"the agreement is incomplete or damaged: {error}.") from error


def _checked_norm(name: str, value: object) -> float:
    number = checks.positive(name, value)
    if number > _LARGEST_NORM:
        raise ValueError(f"{name} must be at most 2^200, got {number!r}; use larger units.")
    return number


def _check_loss(loss: Any) -> None:
    if type(loss) not in _LOSSES.values():
        raise TypeError(f"loss must be one of {sorted(_LOSSES)}, got {loss!r}; pass Logistic().")


def _loss_from_dict(record: Mapping[str, Any]) -> LocalLoss:
    kind = record["kind"]
    if kind not in _LOSSES:
        raise ValueError(f"unknown loss kind {kind!r}: this tacit knows {sorted(_LOSSES)}.")
    loss: LocalLoss = Huber(record["width"]) if kind == Huber.kind else _LOSSES[kind]()
    if loss.width != record["width"]:
        raise ValueError(f"the {kind} loss has no width, got {record['width']!r}.")
    return loss
