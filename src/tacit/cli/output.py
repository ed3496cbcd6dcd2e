"""Print results: formatted on a terminal, plain in pipes, JSON for programs.

Results go to standard output, notices and progress to standard error.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import math
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.privacy import Guarantee

_WIDEST = 100


def console(stderr: bool = False) -> Console:
    """Return the console of a stream."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if made.is_terminal and made.width > _WIDEST:
        made.width = _WIDEST
    return made


def is_watched() -> bool:
    """Return whether results go to a terminal."""
    return console().is_terminal


def say(text: str = "", style: str | None = None) -> None:
    """Print a result; into a pipe unchanged, without colours or line breaks."""
    out, text = console(), shown_lines(text)
    if out.is_terminal:
        out.print(text, style=style)
    else:
        sys.stdout.write(text + "\n")


def written(text: str) -> None:
    """Print the content of a file: unchanged into a pipe, escaped on a terminal."""
    sys.stdout.write((shown_lines(text) if sys.stdout.isatty() else text) + "\n")


def written_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print CSV row by row: unchanged into a pipe, escaped on a terminal."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if not sys.stdout.isatty():
        writer.writerow(header)
        writer.writerows(rows)
        return
    for row in itertools.chain([header], rows):
        writer.writerow([shown(cell) if isinstance(cell, str) else cell for cell in row])


def note(text: str) -> None:
    """Print a notice to standard error."""
    out, text = console(stderr=True), shown_lines(text)
    if out.is_terminal:
        out.print(text, style="yellow")
    else:
        sys.stderr.write(text + "\n")


def boxed(title: str, text: str, style: str = "green") -> None:
    """Print an important paragraph."""
    out, text = console(), shown_lines(text)
    if not out.is_terminal:
        sys.stdout.write(f"{title}: {text}\n")
        return
    from rich.panel import Panel
    from rich.text import Text

    out.print(Panel(Text(text), title=title, title_align="left", border_style=style))


def guarantee(privacy: Guarantee, statement: str) -> None:
    """Print the statement of a guarantee, coloured by what it rests on."""
    style = "red" if privacy.voided_by else "yellow" if privacy.assumptions else "green"
    boxed("Guarantee", statement, style)


def shown(text: str) -> str:
    """Replace control characters, because names in a file may be hostile to a terminal.

    Examples
    --------
    >>> from tacit.cli.output import shown
    >>> shown("ann" + chr(27) + "[31m")
    'ann�[31m'
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c).startswith("C") else c for c in text
    )


def shown_lines(text: str) -> str:
    """Replace control characters in each line; tabs stay."""
    return "".join(c if c in "\n\t" else shown(c) for c in text)


def facts(pairs: Mapping[str, str]) -> None:
    """Print names and values, one pair a line."""
    out = console()
    pairs = {name: "\n".join(map(shown, value.split("\n"))) for name, value in pairs.items()}
    if not out.is_terminal:
        for name, value in pairs.items():
            sys.stdout.write(f"{name}: {value}\n")
        return
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, value in pairs.items():
        grid.add_row(Text(name, style="bold"), Text(value))
    out.print(grid)


def table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: int = 1,
    long_names: bool = False,
) -> None:
    """Print a table; into a pipe one line a row, separated by tabs.

    ``texts`` is the number of leading columns of text; numbers are right-aligned. Long names
    break over several lines; numbers do not.
    """
    out = console()
    header, *rows = [[shown(cell) for cell in row] for row in (header, *rows)]
    if not out.is_terminal:
        for row in (header, *rows):
            sys.stdout.write("\t".join(row) + "\n")
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(
        title=title, title_justify="left", title_style="bold", pad_edge=False, box=box.SIMPLE_HEAD
    )
    for place, name in enumerate(header):
        side: Literal["left", "right"] = "left" if place < texts else "right"
        whole = place >= texts if long_names else place == 0
        made.add_column(name, justify=side, no_wrap=whole, overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))
    out.print(made)


def bar(share: float, width: int = 40) -> str:
    """Return a share as a bar of characters.

    Examples
    --------
    >>> from tacit.cli.output import bar
    >>> bar(0.25, 8)
    '[##......]'
    """
    # Rounded up, so that spent budget is never understated.
    full = min(math.ceil(share * width - 1e-9), width)
    return "[" + "#" * full + "." * (width - full) + "]"


def document(record: Mapping[str, Any]) -> None:
    """Print one JSON document; numbers that JSON lacks become null."""
    written(json.dumps(_plain(record), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextlib.contextmanager
def progress(what: str, then: str = "") -> Iterator[Callable[[float], None]]:
    """Show progress, if a person is watching; ``step`` takes shares from 0 to 1.

    ``then`` is shown after the share has reached 1 while the block still runs.
    """
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda share: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), console=out, transient=True) as bar:
        task = bar.add_task(what, total=1.0)

        def step(share: float) -> None:
            bar.update(task, completed=share)
            if share >= 1.0 and then:
                bar.update(task, description=then, total=None)

        yield step


@contextlib.contextmanager
def counted(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show progress in ``total`` equal steps."""
    with progress(what) as share:
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            share(done / total)

        yield step
