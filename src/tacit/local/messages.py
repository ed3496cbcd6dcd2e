"""Encode the messages between server and devices: two kinds, fixed layouts, no pickle."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

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
    >>> from tacit.local import Reason
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
    >>> from tacit.local import Question, Rejected
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
    >>> from tacit.local import Question
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
    >>> from tacit.local import Report
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
