"""Run a device: it holds one person's record and answers once."""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.local.append_log import sync_folder, write_all
from tacit.local.protocol import (
    STEP_TYPES,
    TOKEN_BYTES,
    Agreement,
    Question,
    Rejected,
    Report,
    check_token,
)
from tacit.local.subgradients import Hinge, Logistic, clipped
from tacit.noise import Source
from tacit.noise.release import SEEDED
from tacit.privacy import Guarantee, NonPrivate

Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

_WHY_ONCE = (
    "a second answer about the same record would cost epsilon a second time, which the guarantee "
    "excludes. If the first answer was lost, send it again: it is client.report"
)


class AlreadyAnswered(RuntimeError):
    """The client has already answered.

    Examples
    --------
    >>> from tacit.local import AlreadyAnswered
    >>> issubclass(AlreadyAnswered, RuntimeError)
    True
    """


class Client:
    """One person's record, and the right to answer one question about it.

    Parameters
    ----------
    features : array of shape (n_columns,)
        The person's features, without the intercept; clipped to the agreed norm at once.
    label : float
        The person's label: -1 or 1 for `Logistic` and `Hinge`; ignored by losses without
        labels (pass 0).
    agreement : Agreement
        The agreement that the device follows. Check ``agreement.privacy`` before taking part.
    token : bytes, optional
        16 bytes by which the server recognises a person who has answered. By default random; a
        deployment with accounts can pass a keyed hash of the account.
    answered_path : path, optional
        A file that is created before the answer, and prevents another after a restart. It stores
        the answer, so that it can be sent again.
    source : Source, optional
        The source of noise, for tests. By default a new `secure_source`.

    Notes
    -----
    **Guarantee**

    1. At most one answer is sent, for any questions and any number of threads; with
       ``answered_path``, for any number of processes.
    2. The answer costs ``privacy``, for any question: a dishonest server gains nothing.
    3. Whether a question is refused depends on the question, the agreement and whether one was
       answered, never on the record.
    4. The right to answer is spent before the noise is drawn: after a crash it stays spent.

    **Assumes** that there is one client for each person and that the token does not depend on the
    record. A record that is refused here never answers, which others may notice: pass a record of
    zeros instead if that would reveal something.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.local.protocol import Agreement
    >>> from tacit.local.client import Client
    >>> from tacit.local.protocol import Question
    >>> from tacit.local.sanitizers import PrivUnit
    >>> from tacit.local.subgradients import Logistic
    >>> agreement = Agreement(Logistic(), PrivUnit(epsilon=2.0, n_features=2))
    >>> client = Client([0.6, -0.1], 1.0, agreement)
    >>> question = Question(agreement.task, 0, np.zeros(2)).to_bytes()
    >>> len(client.answer(question))
    63
    >>> client.answer(question)
    Traceback (most recent call last):
    ...
    tacit.local.client.AlreadyAnswered: this client has answered: a second answer ...
    >>> client.privacy.epsilon(0.0)
    2.0
    """

    def __init__(
        self,
        features: npt.ArrayLike,
        label: float,
        agreement: Agreement,
        *,
        token: bytes | None = None,
        answered_path: str | os.PathLike[str] | None = None,
        source: Source | None = None,
    ) -> None:
        if not isinstance(agreement, Agreement):
            raise TypeError(f"agreement must be an Agreement, got {type(agreement).__name__}.")
        self._features = _checked_features(features, agreement)
        self._label = _checked_label(label, agreement)
        self._token = check_token(secrets.token_bytes(TOKEN_BYTES) if token is None else token)
        self._agreement = agreement
        self._source = source
        self._path = None if answered_path is None else os.path.abspath(answered_path)
        self._report: bytes | None = None
        # Acquired by the first answer and never released.
        self._spent = threading.Lock()
        if self._path is not None and os.path.exists(self._path):
            self._spent.acquire()
            self._report = _stored_report(self._path, agreement)

    @property
    def agreement(self) -> Agreement:
        """The agreement that the device follows."""
        return self._agreement

    @property
    def token(self) -> bytes:
        """The token by which the server recognises a person who has answered."""
        return self._token

    @property
    def has_answered(self) -> bool:
        """Whether the one answer is spent."""
        return self._spent.locked()

    @property
    def report(self) -> bytes | None:
        """The answer, which may be sent any number of times; None if there is none.

        It is also None after a crash between spending the right to answer and storing the answer.
        """
        return self._report

    @property
    def privacy(self) -> Guarantee:
        """The guarantee of the one answer."""
        promise = self._agreement.privacy
        if self._source is None or self._source.is_secure:
            return promise
        event = NonPrivate(reason=SEEDED, would_be=promise.event, relation=promise.relation)
        return Guarantee(event, promise.target_delta, promise.assumptions)

    def answer(self, question: bytes) -> bytes:
        """Return this person's one report.

        Parameters
        ----------
        question : bytes
            The bytes of `Server.question`.

        Raises
        ------
        AlreadyAnswered
            If the client has answered before.
        Rejected
            If the question does not match this agreement; the answer is then not spent.
        """
        if self.has_answered:
            raise AlreadyAnswered(f"this client has answered: {_WHY_ONCE}.")
        parsed = Question.from_bytes(question)
        self._agreement.check(parsed)
        flag = self._spend()
        try:
            steps = self._sanitized(self._pull(parsed.point))
            step_bytes = self._agreement.step_bytes
            report = Report(parsed.task, parsed.number, self._token, steps, step_bytes).to_bytes()
            _keep(flag, report)
        finally:
            if flag is not None:
                os.close(flag)
        self._report = report
        return report

    def _spend(self) -> int | None:
        """Spend the right to answer, permanently, and return the file that records it."""
        if not self._spent.acquire(blocking=False):
            raise AlreadyAnswered(f"this client has answered: {_WHY_ONCE}.")
        if self._path is None:
            return None
        try:
            flag = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            raise AlreadyAnswered(f"{self._path} says that it was answered: {_WHY_ONCE}.") from None
        except OSError:
            # Nothing was drawn and no file was created: the right to answer is not spent.
            self._spent.release()
            raise
        os.fsync(flag)
        sync_folder(self._path)
        return flag

    def _pull(self, point: Array) -> Array:
        """Return the negative subgradient, clipped to enforce the bound."""
        loss = self._agreement.loss
        with np.errstate(all="ignore"):
            pull = np.asarray(loss.pull(point, self._features, self._label, loss.width))
            return clipped(pull, self._agreement.sanitizer.norm)

    def _sanitized(self, pull: Array) -> Steps:
        release = self._agreement.sanitizer.sanitize(pull, self._source)
        # The release is spacing * steps with steps below 2^52, so rounding recovers the steps.
        steps = np.rint(release.value / self._agreement.spacing)
        # Post-processing: the server would refuse a step that does not fit.
        limits = np.iinfo(STEP_TYPES[self._agreement.step_bytes])
        return np.clip(steps.astype(np.int64), limits.min, limits.max)

    def __repr__(self) -> str:
        return f"Client(has_answered={self.has_answered})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(
            "a Client cannot be copied or pickled: each copy could answer, and each answer costs "
            "epsilon; make the one client where the record is."
        )


def _checked_features(features: npt.ArrayLike, agreement: Agreement) -> Array:
    row = checks.vector("features", features, agreement.n_columns)
    with np.errstate(over="ignore"):
        row = clipped(row, agreement.row_norm)
    return np.array(row) if agreement.intercept is None else np.append(row, agreement.intercept)


def _checked_label(label: float, agreement: Agreement) -> float:
    # The messages do not quote the label, because they may be logged.
    try:
        number = float(label)
    except (TypeError, ValueError):
        raise TypeError("label must be a real number; pass a float.") from None
    if not np.isfinite(number):
        raise ValueError("label must be finite; a record without a label cannot answer.")
    if isinstance(agreement.loss, Logistic | Hinge) and number not in (-1.0, 1.0):
        raise ValueError(
            f"label must be -1 or 1 for the {agreement.loss.kind} loss; code the two classes so."
        )
    return number


def _keep(flag: int | None, report: bytes) -> None:
    if flag is None:
        return
    write_all(flag, report)
    os.fsync(flag)


def _stored_report(path: str, agreement: Agreement) -> bytes | None:
    """Return the stored answer, if it is complete and matches this agreement."""
    with open(path, "rb") as file:
        data = file.read(agreement.report_size + 1)
    with suppress(Rejected):
        agreement.check(Report.from_bytes(data))
        return data
    return None
