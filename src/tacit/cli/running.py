"""Run a command, and turn errors into a sentence and an exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from typer.core import TyperCommand, TyperGroup

from tacit.cli import output


class Refused(Exception):
    """The command is refused; the message is a sentence with the remedy.

    Examples
    --------
    >>> from tacit.cli.running import Refused
    >>> str(Refused("model.tacit is there already; pass --force."))
    'model.tacit is there already; pass --force.'
    """


@contextlib.contextmanager
def before_records() -> Iterator[None]:
    """Turn every error of a block that reads no record into a printable refusal.

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
    """Return the message of an error, or None if its text may contain a record's value."""
    if hasattr(error, "format_message"):  # an error of the argument parser
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
    """Return the error types whose messages come from tacit and never contain a record."""
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
    if not message or context is None:  # a group without a command prints its help
        return message
    sentence = " ".join(message.split()).rstrip(".")
    if "valid number" in sentence:  # the parser's message for input such as 1,5
        sentence += "; write it with a decimal point, such as 1.5 or 1e-6"
    remedy = "" if sentence.endswith("?") else "."
    return f"{sentence}{remedy} See '{context.command_path} --help'."


REFUSED, A_BUG, INTERRUPTED, PIPE_CLOSED = 2, 1, 130, 141
_DEBUG = "--debug"


class OnceCommand(TyperCommand):
    """A command that refuses an option given twice, of which the last would count in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words; refuse an option with a value that occurs more than once."""
        *_, given = self.make_parser(ctx).parse_args(list(args))
        for place, option in enumerate(given):
            several = getattr(option, "multiple", True) or getattr(option, "is_flag", True)
            if not several and option in given[:place]:
                name = max(option.opts, key=len)
                raise Refused(
                    f"{name} is given twice, and only one can count; pass it once. See "
                    f"'{ctx.command_path} --help'."
                )
        return super().parse_args(ctx, args)


def is_option(parameter: Any) -> bool:
    """Return whether a parameter of a command is an option, not an argument."""
    return bool(parameter.param_type_name == "option")


class CommandGroup(TyperGroup):
    """A command group that prints errors as one sentence, without a traceback."""

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
            if hasattr(stream, "reconfigure"):  # file names may not be valid text
                stream.reconfigure(errors="backslashreplace")
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "WEAK PROMISE")  # printed once, as a notice
                warnings.showwarning = _shown_once(warnings.showwarning)
                code = super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BaseException as error:
            code = _explain(error, debug)
        else:
            if code == INTERRUPTED:  # typer's code for a KeyboardInterrupt
                _explain(KeyboardInterrupt(), False)
        sys.exit(code if isinstance(code, int) else 0)


def _has_streams() -> bool:
    """Replace closed streams; return whether standard output can be written.

    Python sets a stream to None if its descriptor was closed at start. The next opened file, such
    as a ledger, would get that number, and writes by number would go to that file. Output after a
    charge must not fail, so a closed standard output is refused at once.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None or not _takes_writes(sys.stdout):
        _complain(
            "standard output is closed, but results go there; leave it open, or redirect it to a "
            "file or to /dev/null."
        )
        return False
    return True


def _takes_writes(stream: TextIO) -> bool:
    """Return whether a stream accepts writes; one opened for reading does not."""
    try:
        os.write(stream.fileno(), b"")
    except OSError as error:
        return error.errno != errno.EBADF
    return True


def _shown_once(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Return a hook that prints tacit's own warnings without the line of code."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category.__module__.startswith("tacit."):
            output.note(str(message))
        else:
            otherwise(message, category, *where, **more)

    return show


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """Remove --debug from the words before a ``--``."""
    end = words.index("--") if "--" in words else len(words)
    rest = [word for word in words[:end] if word != _DEBUG]
    return [*rest, *words[end:]], len(rest) < end


def _explain(error: BaseException, debug: bool) -> int:
    """Print the error, and return the exit code."""
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        return PIPE_CLOSED  # typer has flushed the buffers
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else A_BUG
    if isinstance(error, BrokenPipeError):
        # The reader closed the pipe; the remaining buffer must not raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    if debug:
        sys.stderr.write(output.shown_lines("".join(traceback.format_exception(error))))
    if isinstance(error, KeyboardInterrupt):
        _complain("interrupted; no file was left half-written.")
        return INTERRUPTED
    known = sentence_of(error)
    if known is None:
        # Not an error of tacit, so its text may contain a record's value.
        _complain(
            f"unexpected error ({type(error).__name__}); run the command "
            "again with --debug, and report the traceback, without the values of records in it."
        )
        return A_BUG
    _complain(known)
    return REFUSED


def _complain(sentence: str) -> None:
    sys.stderr.write(f"tacit: {output.shown_lines(sentence)}\n")
