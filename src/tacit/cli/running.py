"""Run a command, and turn whatever goes wrong into a sentence and an exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from typer.core import TyperGroup

from tacit.cli import output


class Refused(Exception):
    """The command cannot be carried out; the message is a sentence with the remedy.

    Examples
    --------
    >>> from tacit.cli.running import Refused
    >>> str(Refused("model.tacit is there already; pass --force."))
    'model.tacit is there already; pass --force.'
    """


@contextlib.contextmanager
def before_records() -> Iterator[None]:
    """Show every error of a block that reads no record, whoever raises it.

    Examples
    --------
    >>> from tacit.cli.running import before_records
    >>> with before_records():
    ...     raise ValueError("epsilon must be above 0, got -1.0.")
    Traceback (most recent call last):
    tacit.cli.running.Refused: epsilon must be above 0, got -1.0.
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
        from tacit.io.errors import shown_path

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
    from tacit.privacy.accountant import BudgetExceeded, CannotCharge
    from tacit.saving import CannotSave, NotAModel
    from tacit.schema import SchemaError, TableError

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


REFUSED, A_BUG, INTERRUPTED, PIPE_CLOSED = 2, 1, 130, 141
_DEBUG = "--debug"


class CommandGroup(TyperGroup):
    """Commands whose errors are one sentence on standard error, without a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit."""
        words, debug = _without_debug(list(sys.argv[1:] if args is None else args))
        if not _has_streams():
            sys.exit(REFUSED)
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a file's name may not be text
                stream.reconfigure(errors="backslashreplace")
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "WEAK PROMISE")  # said once, as a notice
                warnings.showwarning = _shown_once(warnings.showwarning)
                code = super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BaseException as error:
            code = _explain(error, debug)
        else:
            if code == INTERRUPTED:  # typer makes it of a KeyboardInterrupt
                _explain(KeyboardInterrupt(), False)
        sys.exit(code if isinstance(code, int) else 0)


def _has_streams() -> bool:
    """Put something in the place of closed streams; return whether results can be shown.

    Python has no stream for a descriptor that was closed when it started. Its number would go to
    the next file that is opened, a ledger for instance, and whatever writes to it by number would
    write there. What comes after a charge must not fail, so a closed output is refused at once.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None or not _takes_writes(sys.stdout):
        _complain(
            "standard output is closed, and results go there; leave it open, or send it to a file "
            "or, if nobody needs it, to /dev/null."
        )
        return False
    return True


def _takes_writes(stream: TextIO) -> bool:
    """Return whether a stream can be written to, as one that was opened to be read cannot."""
    try:
        os.write(stream.fileno(), b"")
    except OSError as error:
        return error.errno != errno.EBADF
    return True


def _shown_once(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Return what shows tacit's own warnings as a sentence, without the line of code."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category.__module__.startswith("tacit."):
            output.note(str(message))
        else:
            otherwise(message, category, *where, **more)

    return show


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """Return the words without --debug, which may stand anywhere before a ``--``."""
    end = words.index("--") if "--" in words else len(words)
    rest = [word for word in words[:end] if word != _DEBUG]
    return [*rest, *words[end:]], len(rest) < end


def _explain(error: BaseException, debug: bool) -> int:
    """Say what went wrong, and return the exit code."""
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        return PIPE_CLOSED  # typer has taken care of what is still buffered
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else A_BUG
    if isinstance(error, BrokenPipeError):
        # Nobody reads on; what is still buffered must not raise again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    if debug:
        sys.stderr.write(output.shown_lines("".join(traceback.format_exception(error))))
    if isinstance(error, KeyboardInterrupt):
        _complain("interrupted; no file was left half-written.")
        return INTERRUPTED
    known = sentence_of(error)
    if known is None:
        # Not one of tacit's own sentences, so it might repeat a record's value.
        _complain(
            f"something went wrong that should not ({type(error).__name__}); run the command "
            "again with --debug, and report what it shows, without the values of records in it."
        )
        return A_BUG
    _complain(known)
    return REFUSED


def _complain(sentence: str) -> None:
    sys.stderr.write(f"tacit: {output.shown_lines(sentence)}\n")
