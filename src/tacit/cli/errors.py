"""Which errors may be shown, and how they read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Refused(Exception):
    """The command cannot be carried out; the message is a sentence with the remedy.

    Examples
    --------
    >>> from tacit.cli.errors import Refused
    >>> str(Refused("model.tacit is there already; pass --force."))
    'model.tacit is there already; pass --force.'
    """


@contextlib.contextmanager
def before_records() -> Iterator[None]:
    """Show every error of a block that reads no record, whoever raises it.

    Examples
    --------
    >>> from tacit.cli.errors import before_records
    >>> with before_records():
    ...     raise ValueError("epsilon must be above 0, got -1.0.")
    Traceback (most recent call last):
    tacit.cli.errors.Refused: epsilon must be above 0, got -1.0.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error


def sentence_of(error: BaseException) -> str | None:
    """Return what to tell of an error, or None if its text might hold a record's value."""
    if hasattr(error, "format_message"):  # the parser of the command line
        return _of_usage(error)
    if isinstance(error, _speaking()):
        return " ".join(str(error).split())
    if isinstance(error, OSError):
        from tacit.preprocessing.errors import shown_path

        why = (error.strerror or "it cannot be used").lower()
        where = "a file" if error.filename is None else shown_path(error.filename)
        return f"{where}: {why}; check the path, its permissions and the space on the disk."
    if isinstance(error, MemoryError):
        return "there is not enough memory; pass --float32, or declare fewer values."
    return None


def _speaking() -> tuple[type[BaseException], ...]:
    """Return the errors whose text is written by tacit and never repeats a record."""
    from tacit.erm import CannotSolve, NotCertified
    from tacit.ledger import LedgerError
    from tacit.metrics import TooFewRecords
    from tacit.preprocessing import SchemaError, TableError
    from tacit.privacy.accountant import BudgetExceeded, CannotCharge
    from tacit.saving import CannotSave, NotAModel

    own = (SchemaError, TableError, CannotSave, NotAModel, CannotSolve, NotCertified)
    return (Refused, *own, BudgetExceeded, CannotCharge, LedgerError, TooFewRecords)


def _of_usage(error: BaseException) -> str:
    message: str = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    if not message or context is None:  # a group without a command: its help
        return message
    sentence = " ".join(message.split()).rstrip(".")
    if "valid number" in sentence:  # as the parser says of 1,5
        sentence += "; write it with a decimal point, such as 1.5 or 1e-6"
    remedy = "" if sentence.endswith("?") else "."
    return f"{sentence}{remedy} See '{context.command_path} --help'."
