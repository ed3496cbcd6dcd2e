"""Define the agreement of a server and its devices, and the messages between them."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
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

Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

PROTOCOL_VERSION = 1
TASK_BYTES = 16
TOKEN_BYTES = 16
STEP_TYPES = {2: "<i2", 4: "<i4", 8: "<i8"}

# Larger points are refused: a score of clipped records could overflow.
LARGEST_COORDINATE = 2.0**300

# Little-endian, no padding. The position of mark and version is fixed for all versions.
_QUESTION_MARK, _REPORT_MARK = b"tacQ", b"tacR"
_START = struct.Struct("<4sH")  # mark, protocol version
_QUESTION = struct.Struct("<4sH16sQI")  # ..., task, number, coordinates
_REPORT = struct.Struct("<4sH16sQ16sIB")  # ..., task, number, token, coordinates, bytes per step
_CHECKSUM = struct.Struct("<I")  # CRC-32 of all that precedes it


class Reason(StrEnum):
    """The reason why a message was rejected. The words are stable and may be sent back.

    Examples
    --------
    >>> from tacit.local.protocol import Reason
    >>> Reason.REPLAYED.value
    'replayed'
    """

    MALFORMED = "malformed"
    WRONG_VERSION = "wrong version"
    WRONG_TASK = "wrong task"
    WRONG_DIMENSION = "wrong dimension"
    REPLAYED = "replayed"
    STALE = "stale"
    NEVER_QUERIED = "never asked"
    IMPOSSIBLE = "impossible"


class Rejected(ValueError):
    """A message was refused; the state of the receiver is unchanged.

    Parameters
    ----------
    reason : Reason
        The reason, for a program.
    detail : str
        The reason and the remedy, for a person.

    Examples
    --------
    >>> from tacit.local.protocol import Question, Rejected
    >>> try:
    ...     Question.from_bytes(b"something else")
    ... except Rejected as error:
    ...     print(error)
    malformed: 14 bytes are too few for a question; send whole messages.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Question:
    """The server's question to the next person.

    Parameters
    ----------
    task : bytes
        The 16-byte identifier of the agreement (`tacit.local.Agreement.task`).
    number : int
        The number of reports from which the point was learned.
    point : array of shape (n_features,)
        The server's weights.

    Notes
    -----
    **Guarantee**: `from_bytes` inverts `to_bytes`, bit for bit, or raises
    `Rejected`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.protocol import Question
    >>> data = Question(bytes(16), 7, np.array([0.5, -1.0])).to_bytes()
    >>> len(data), Question.from_bytes(data).number
    (54, 7)
    """

    task: bytes
    number: int
    point: Array

    def __post_init__(self) -> None:
        _check_start(self.task, self.number)
        if self.point.dtype != np.float64 or self.point.ndim != 1 or not self.point.size:
            raise ValueError("point must be a float64 vector; pass the learner's point.")
        if not _is_moderate(self.point):
            raise ValueError("point has a coordinate beyond 2^300; nobody could answer.")

    @staticmethod
    def size(n_features: int) -> int:
        """Return the length of a question in bytes."""
        return _QUESTION.size + 8 * n_features + _CHECKSUM.size

    def to_bytes(self) -> bytes:
        """Encode the question."""
        header = _QUESTION.pack(
            _QUESTION_MARK, PROTOCOL_VERSION, self.task, self.number, self.point.size
        )
        return _sealed(header + self.point.astype("<f8").tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Question:
        """Decode a question, or raise `Rejected`."""
        body = _opened(data, "question", _QUESTION_MARK, _QUESTION.size)
        _, _, task, number, d = _QUESTION.unpack_from(body)
        _check_length("question", data, d, cls.size(d))
        point = np.frombuffer(body, "<f8", offset=_QUESTION.size).astype(np.float64)
        if not _is_moderate(point):
            raise Rejected(Reason.MALFORMED, "the point is not finite or beyond 2^300.")
        return cls(task, number, point)


@dataclass(frozen=True, eq=False)
class Report:
    """One person's sanitised answer: integer steps of a public size.

    Parameters
    ----------
    task : bytes
        As in the question.
    number : int
        The number of the question it answers.
    token : bytes
        16 bytes by which the server recognises a person who has answered.
    steps : array of shape (n_features,)
        int64; the report is ``spacing * steps``.
    step_bytes : {2, 4, 8}
        The number of bytes of a step, from public facts alone.

    Notes
    -----
    **Guarantee**: `from_bytes` inverts `to_bytes`, or raises `Rejected`. The length
    depends on ``n_features`` and ``step_bytes`` alone.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.protocol import Report
    >>> data = Report(bytes(16), 7, bytes(16), np.array([3, -4]), step_bytes=4).to_bytes()
    >>> len(data), Report.from_bytes(data).steps
    (63, array([ 3, -4]))
    """

    task: bytes
    number: int
    token: bytes
    steps: Steps
    step_bytes: int

    def __post_init__(self) -> None:
        _check_start(self.task, self.number)
        check_token(self.token)
        if self.step_bytes not in STEP_TYPES:
            raise ValueError(f"step_bytes must be 2, 4 or 8, got {self.step_bytes!r}.")
        if self.steps.dtype != np.int64 or self.steps.ndim != 1 or not self.steps.size:
            raise ValueError("steps must be an int64 vector; pass whole numbers.")
        limits = np.iinfo(STEP_TYPES[self.step_bytes])
        if self.steps.min() < limits.min or self.steps.max() > limits.max:
            raise ValueError(
                f"steps do not fit {self.step_bytes} bytes each; clip them to "
                f"[{limits.min}, {limits.max}]."
            )

    @staticmethod
    def size(n_features: int, step_bytes: int) -> int:
        """Return the length of a report in bytes."""
        return _REPORT.size + step_bytes * n_features + _CHECKSUM.size

    def to_bytes(self) -> bytes:
        """Encode the report."""
        header = _REPORT.pack(
            _REPORT_MARK,
            PROTOCOL_VERSION,
            self.task,
            self.number,
            self.token,
            self.steps.size,
            self.step_bytes,
        )
        return _sealed(header + self.steps.astype(STEP_TYPES[self.step_bytes]).tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        """Decode a report, or raise `Rejected`."""
        body = _opened(data, "report", _REPORT_MARK, _REPORT.size)
        _, _, task, number, token, d, step_bytes = _REPORT.unpack_from(body)
        if step_bytes not in STEP_TYPES:
            raise Rejected(Reason.MALFORMED, f"steps of {step_bytes} bytes; use 2, 4 or 8.")
        _check_length("report", data, d, cls.size(d, step_bytes))
        packed = np.frombuffer(body, STEP_TYPES[step_bytes], offset=_REPORT.size)
        return cls(task, number, token, packed.astype(np.int64), step_bytes)


def check_token(token: bytes) -> bytes:
    """Check that a token has 16 bytes."""
    if not isinstance(token, bytes) or len(token) != TOKEN_BYTES:
        raise ValueError(
            f"token must be {TOKEN_BYTES} bytes; leave it out for a random one, or hash the "
            "person's account with a secret key."
        )
    return token


def _check_start(task: bytes, number: int) -> None:
    if not isinstance(task, bytes) or len(task) != TASK_BYTES:
        raise ValueError(f"task must be {TASK_BYTES} bytes; pass agreement.task.")
    if not 0 <= number < 2**64:
        raise ValueError(f"number must be in [0, 2^64), got {number!r}; pass the question's.")


def _is_moderate(point: Array) -> bool:
    # A NaN fails the comparison.
    return bool(np.all(np.abs(point) <= LARGEST_COORDINATE))


def _sealed(body: bytes) -> bytes:
    return body + _CHECKSUM.pack(zlib.crc32(body))


def _opened(data: bytes, kind: str, mark: bytes, header_size: int) -> bytes:
    """Check mark, version and checksum, and return the message without its checksum."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a {kind} must be bytes, got {type(data).__name__}.")
    data = bytes(data)
    if len(data) < header_size + _CHECKSUM.size:
        raise Rejected(
            Reason.MALFORMED, f"{len(data)} bytes are too few for a {kind}; send whole messages."
        )
    found, version = _START.unpack_from(data)
    if found != mark:
        raise Rejected(Reason.MALFORMED, f"it does not begin with the mark of a {kind}.")
    if version != PROTOCOL_VERSION:
        raise Rejected(
            Reason.WRONG_VERSION,
            f"a {kind} of protocol version {version}, but this tacit speaks {PROTOCOL_VERSION}; "
            "use one version on both sides.",
        )
    body, checksum = data[: -_CHECKSUM.size], data[-_CHECKSUM.size :]
    if _CHECKSUM.pack(zlib.crc32(body)) != checksum:
        raise Rejected(Reason.MALFORMED, f"the {kind} was damaged on its way; send it again.")
    return body


def _check_length(kind: str, data: bytes, n_features: int, expected: int) -> None:
    if n_features < 1 or len(data) != expected:
        raise Rejected(
            Reason.MALFORMED,
            f"a {kind} of {len(data)} bytes, which is wrong for {n_features} coordinates.",
        )


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
    >>> from tacit.local.protocol import Agreement
    >>> from tacit.local.sanitizers import PrivUnit
    >>> from tacit.local.subgradients import Logistic
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
