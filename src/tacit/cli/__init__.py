"""Run the command line: from a table to a private model, its guarantee and a report."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 refused, 130 interrupted.

    Parameters
    ----------
    args
        The words after the program's name; by default the arguments of this process.

    Examples
    --------
    >>> from tacit.cli import main
    >>> main(["--version"])
    Traceback (most recent call last):
    SystemExit: 0
    """
    try:
        from tacit.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        if sys.stderr is not None:  # None if the stream was closed
            sys.stderr.write(
                f"tacit: the command line needs {error.name}, which is not installed; "
                f"pip install {error.name} (it belongs to the extra cli).\n"
            )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    app(args=args, prog_name="tacit")
