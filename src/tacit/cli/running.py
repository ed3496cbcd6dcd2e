"""One road for every command: run it, and turn whatever goes wrong into a sentence and a code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from typer.core import TyperGroup

from tacit.cli import output
from tacit.cli.errors import sentence_of

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
                warnings.showwarning = _told(warnings.showwarning)
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


def _told(otherwise: Callable[..., None]) -> Callable[..., None]:
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
    kept = [word for word in words[:end] if word != _DEBUG]
    return [*kept, *words[end:]], len(kept) < end


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
