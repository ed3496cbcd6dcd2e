"""Run the server: it holds a learner's state and sees only sanitised reports."""

from __future__ import annotations

import json
import os
import struct
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.local.agreement import Agreement
from tacit.local.append_log import Journal
from tacit.local.learners import Learner, state_from_bytes, state_to_bytes
from tacit.local.learners.serialization import learner_from_dict
from tacit.local.messages import (
    STEP_TYPES,
    TOKEN_BYTES,
    Question,
    Reason,
    Rejected,
    Report,
)
from tacit.privacy import Guarantee
from tacit.privacy.fork import generation

Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]
Path = str | os.PathLike[str]

# Sizes in bytes of the facts (JSON) and of the learner's state, and the number of tokens.
_SIZES = struct.Struct("<IIQ")


@dataclass(frozen=True)
class Accepted:
    """A report that was counted.

    Examples
    --------
    >>> from tacit.local.server import Accepted
    >>> Accepted(n_reports=1)
    Accepted(n_reports=1)
    """

    n_reports: int


class Server:
    """Ask people in turn, and learn from their reports.

    Parameters
    ----------
    learner : Learner
        The learner, such as ``Banco(sanitizer.tail, sanitizer.norm)``.
    agreement : Agreement
        The agreement that the devices follow.
    patience : int, default=0
        The age, in questions, up to which a report counts. With 0 each question is answered once,
        in turn, as the learners' guarantees assume. With k, k + 1 people can be asked
        at a time, and learning uses slightly old answers; privacy is the same.

    Notes
    -----
    **Guarantee**

    1. The server stores the learner's state and 16 bytes for each person who has answered.
       A saved server also stores the accepted reports since the last `save` in its file.
    2. A report counts if and only if `receive` returns; otherwise nothing changes.
    3. No token is counted twice.
    4. After `save`, a report is in the file before it counts: a server that was killed
       at any moment and loaded by `load` has, bit for bit, the state of one that never stopped.

    Examples
    --------
    >>> from tacit.local import Banco
    >>> from tacit.local import Agreement
    >>> from tacit.local import Client
    >>> from tacit.local import PrivUnit
    >>> from tacit.local import Server
    >>> from tacit.local import Logistic
    >>> sanitizer = PrivUnit(epsilon=2.0, n_features=2)
    >>> agreement = Agreement(Logistic(), sanitizer)
    >>> server = Server(Banco(sanitizer.tail, sanitizer.norm), agreement)
    >>> person = Client([0.6, -0.1], 1.0, agreement)
    >>> report = person.answer(server.question())
    >>> server.receive(report)
    Accepted(n_reports=1)
    >>> server.receive(report)
    Traceback (most recent call last):
    ...
    tacit.local.messages.Rejected: replayed: ...
    """

    def __init__(self, learner: Learner, agreement: Agreement, *, patience: int = 0) -> None:
        if not isinstance(agreement, Agreement):
            raise TypeError(f"agreement must be an Agreement, got {type(agreement).__name__}.")
        self._learner = learner
        self._agreement = agreement
        self._patience = checks.count("patience", patience, least=0)
        self._state = learner.init(agreement.n_features)
        self._tokens: set[bytes] = set()
        self._journal: Journal | None = None
        self._lock = threading.Lock()
        self._generation = generation()
        # False while file and memory differ, and permanently if something fails in between.
        self._is_whole = True

    @property
    def learner(self) -> Learner:
        """What learns."""
        return self._learner

    @property
    def agreement(self) -> Agreement:
        """The agreement that the devices follow."""
        return self._agreement

    @property
    def patience(self) -> int:
        """The age, in questions, up to which a report counts."""
        return self._patience

    @property
    def state(self) -> Any:
        """The learner's state."""
        return self._state

    @property
    def n_reports(self) -> int:
        """The number of people counted; also the number of the current question."""
        return int(self._state.n_reports)

    @property
    def estimate(self) -> Array:
        """The estimate: the average of the points of all questions."""
        return np.array(self._state.estimate)

    @property
    def privacy(self) -> Guarantee:
        """The guarantee of every person, against this server."""
        return self._agreement.privacy

    def has_counted(self, token: bytes) -> bool:
        """Return whether the person with this token was counted."""
        return token in self._tokens

    def question(self) -> bytes:
        """Return the question for the next person."""
        state = self._state
        return Question(self._agreement.task, int(state.n_reports), state.point).to_bytes()

    def receive(self, report: bytes) -> Accepted:
        """Count a report, or raise `Rejected` and change nothing.

        Parameters
        ----------
        report : bytes
            The bytes of `Client.answer`. A second copy is rejected as
            ``Reason.REPLAYED``, which tells its sender that the first was counted.

        Raises
        ------
        Rejected
            With the ``reason``.
        OSError
            If the log cannot be written; then the server refuses to continue until it is loaded
            again, and the report may or may not count.
        """
        message = Report.from_bytes(report)
        self._agreement.check(message)
        self._refuse_forked()
        with self._lock:
            self._check_whole()
            self._check_new(message)
            self._count(message.token, message.steps)
            return Accepted(self.n_reports)

    def save(self, path: Path | None = None, *, synced: bool = True) -> None:
        """Write the state to a file, and append every report accepted from now on.

        Parameters
        ----------
        path : path, optional
            The file of the server; leave it out once it has a file. Saving again merges the
            reports accepted since into the snapshot.
        synced : bool, default=True
            Whether to wait for the disk at each report. False is faster and as safe if the
            process is killed, but not if the power fails.
        """
        self._refuse_forked()
        with self._lock:
            self._check_whole()
            old = self._journal
            place = old.path if path is None and old else os.path.abspath(_given(path))
            if old is not None and place != old.path:
                raise ValueError(
                    f"this server has its file at {old.path}, and two files would diverge; save "
                    "there, and copy the file for a backup."
                )
            try:
                self._journal = Journal.create(
                    place,
                    self._snapshot(),
                    record_size=TOKEN_BYTES
                    + self._agreement.step_bytes * self._agreement.n_features,
                    synced=synced,
                    replaces=old,
                )
            except BaseException:
                # The new file may already have replaced the old one: nothing may be counted here.
                self._is_whole = old is None
                raise
            if old is not None:
                old.close()

    @classmethod
    def load(cls, path: Path, *, synced: bool = True) -> Server:
        """Load the server from a file, as it was when it last counted a report.

        A report that was being written when the server was killed does not count, and its sender
        got no confirmation. Damage of any other kind is a ValueError.
        """
        journal, snapshot, records = Journal.open(os.path.abspath(path), synced=synced)
        try:
            server = cls._from_snapshot(snapshot)
            for record in records:
                server._replay(record)
        except BaseException:
            journal.close()
            raise
        server._journal = journal
        return server

    def close(self) -> None:
        """Close the file; all counted reports are in it."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()
                self._journal, self._is_whole = None, False

    def _refuse_forked(self) -> None:
        # Checked before the lock, which another thread may have held at the fork.
        if self._generation != generation():
            raise RuntimeError(
                "this server was made in a process that was then forked, and both processes would "
                "count the same people into one file; make or load it in the process that counts."
            )

    def _check_whole(self) -> None:
        if not self._is_whole:
            raise RuntimeError(
                "this server was closed or could not write its file; go on with Server.load."
            )

    def _check_new(self, message: Report) -> None:
        if message.token in self._tokens:
            raise Rejected(
                Reason.REPLAYED, "this person was already counted; there is nothing more to do."
            )
        now = self.n_reports
        if message.number > now:
            raise Rejected(
                Reason.NEVER_QUERIED,
                f"it answers question {message.number}, but question {now} is the latest.",
            )
        if message.number < now - self._patience:
            raise Rejected(
                Reason.STALE,
                f"it answers question {message.number}, but question {now} is asked now and "
                f"patience is {self._patience}; ask fewer people at a time, or raise patience.",
            )
        if not self._agreement.sanitizer.is_possible(message.steps):
            raise Rejected(
                Reason.IMPOSSIBLE, "no honest device sends these steps; look at the sender."
            )

    def _count(self, token: bytes, steps: Steps) -> None:
        report: Array = steps * np.float64(self._agreement.spacing)
        state = self._learner.update(self._state, report)
        self._is_whole = False
        if self._journal is not None:
            packed = steps.astype(STEP_TYPES[self._agreement.step_bytes]).tobytes()
            self._journal.append(token + packed)
        self._tokens.add(token)
        self._state = state
        self._is_whole = True

    def _replay(self, record: bytes) -> None:
        token, packed = record[:TOKEN_BYTES], record[TOKEN_BYTES:]
        steps = np.frombuffer(packed, STEP_TYPES[self._agreement.step_bytes]).astype(np.int64)
        self._check_new(
            Report(self._agreement.task, self.n_reports, token, steps, self._agreement.step_bytes)
        )
        self._count(token, steps)

    def _snapshot(self) -> bytes:
        facts = {
            "agreement": self._agreement.to_json(),
            "learner": self._learner.to_dict(),
            "patience": self._patience,
        }
        text = json.dumps(facts, sort_keys=True, allow_nan=False).encode()
        state = state_to_bytes(self._state)
        # Sorted, so that the order of the answers is not stored.
        tokens = b"".join(sorted(self._tokens))
        return _SIZES.pack(len(text), len(state), len(self._tokens)) + text + state + tokens

    @classmethod
    def _from_snapshot(cls, data: bytes) -> Server:
        n_text, n_state, n_tokens = _SIZES.unpack_from(data)
        facts = json.loads(data[_SIZES.size : _SIZES.size + n_text])
        server = cls(
            learner_from_dict(facts["learner"]),
            Agreement.from_json(facts["agreement"]),
            patience=facts["patience"],
        )
        at = _SIZES.size + n_text + n_state
        server._state = state_from_bytes(data[at - n_state : at])
        server._tokens = {
            data[i : i + TOKEN_BYTES] for i in range(at, at + TOKEN_BYTES * n_tokens, TOKEN_BYTES)
        }
        if len(server._tokens) != server.n_reports or len(data) != at + TOKEN_BYTES * n_tokens:
            raise ValueError("the file's people and reports are not equally many; use a good copy.")
        return server


def _given(path: Path | None) -> Path:
    if path is None:
        raise ValueError("this server has no file yet; pass save(path).")
    return path
