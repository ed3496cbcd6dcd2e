"""Check output files and reserve disk space before any work is done; write reports."""

from __future__ import annotations

import contextlib
import datetime
import errno
import glob
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tacit.cli.running import Refused

# Bytes reserved for each file that is written after a charge. Models of a few hundred columns,
# students and reports need less than 1 MiB; the size is unknown before the records are read.
_ROOM = 32 * 2**20
_NO_FALLOCATE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


def check_new(path: Path | None, force: bool, *inputs: Path | None) -> None:
    """Refuse an output file that cannot be written, exists, or is one of the inputs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tacit.cli.files import check_new
    >>> check_new(Path("no", "such", "folder", "model.tacit"), False)
    Traceback (most recent call last):
    tacit.cli.running.Refused: 'no/such/folder': there is no such folder; make it first, ...
    """
    if path is None:
        return
    from tacit.io.errors import shown_path

    shown = shown_path(path)
    try:
        folder = _folder(path)
        if not folder.is_dir():
            where = shown_path(folder)
            raise Refused(f"{where}: there is no such folder; make it first, or name another.")
        exists = _exists(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "the path is not valid"
        raise Refused(f"{shown} cannot be written ({why}); choose another name.") from None
    if path.is_dir():
        raise Refused(f"{shown} is a folder; name a file in it.")
    if exists and not path.is_file():
        raise Refused(f"{shown} is not a regular file and would be replaced; name another.")
    read_too = {os.path.realpath(other) for other in inputs if other is not None}
    if os.path.realpath(path) in read_too:
        raise Refused(f"{shown} is also a file this command reads or writes; choose another name.")
    if exists and not force:
        raise Refused(f"{shown} exists; name another file, or pass --force.")
    if exists and _is_database(path):
        raise Refused(
            f"{shown} is a database, such as a ledger, whose entries would be lost; name another "
            "file, or delete it yourself."
        )
    if not os.access(folder, os.W_OK):
        raise Refused(f"{shown} cannot be written: its folder is read-only; choose another.")
    if exists and _is_held_by_another(path, folder):
        raise Refused(
            f"{shown} belongs to another user, and its folder lets only that user replace it; "
            "choose another name."
        )


def table_files(data: str) -> tuple[Path, ...]:
    """Return the local files of a table, which no output may replace: a pattern may name several.

    Examples
    --------
    >>> from tacit.cli.files import table_files
    >>> [path.name for path in table_files("file:///no/such/folder/people.csv")]
    ['people.csv']
    """
    local = data.removeprefix("file://")
    return (Path(local), *map(Path, glob.glob(local)))


def ledger_files(address: str | None) -> tuple[Path, ...]:
    """Return the files of a ledger, which no output may replace; none if it is in a database.

    Examples
    --------
    >>> from tacit.cli.files import ledger_files
    >>> [path.name for path in ledger_files("survey.ledger")]
    ['survey.ledger', 'survey.ledger-wal', 'survey.ledger-shm', 'survey.ledger-journal']
    """
    if address is None or "://" in address:
        return ()
    return tuple(Path(address + end) for end in ("", "-wal", "-shm", "-journal"))


@contextlib.contextmanager
def room_for(*paths: Path | None) -> Iterator[None]:
    """Reserve disk space for files that are written after a charge, or refuse before it.

    Unnamed temporary files in the target folders hold the space, so a killed process leaves
    nothing behind. The space is freed when the block ends, for the files written next.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tacit.cli.files import room_for
    >>> with tempfile.TemporaryDirectory() as folder, room_for(Path(folder, "model.tacit"), None):
    ...     list(Path(folder).iterdir())  # here the budget is spent
    []
    """
    from tacit.io.errors import shown_path

    with contextlib.ExitStack() as held:
        for path in paths:
            if path is None:
                continue
            try:
                _fill(held.enter_context(tempfile.TemporaryFile(dir=_folder(path), buffering=0)))
            except OSError as error:
                why = (error.strerror or "the system refuses").lower()
                raise Refused(
                    f"{shown_path(path)} could not be written ({why}), and nothing was charged; "
                    f"free {_ROOM // 2**20} MiB on its disk, or name another place."
                ) from None
        yield


def _fill(file: IO[bytes]) -> None:
    """Make a file occupy its space on the disk."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, _ROOM)
        except OSError as error:
            if error.errno not in _NO_FALLOCATE:
                raise
        else:
            return
    zeros = bytes(2**20)
    for _ in range(_ROOM // len(zeros)):
        file.write(zeros)


def _folder(path: Path) -> Path:
    """Return the folder in which a file is written; links are followed."""
    return Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent


def _is_held_by_another(path: Path, folder: Path) -> bool:
    """Return whether a sticky folder such as /tmp keeps other users from replacing the file."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return False
    around = folder.stat()
    owners = (around.st_uid, path.stat().st_uid)
    return bool(around.st_mode & stat.S_ISVTX) and os.geteuid() not in owners


def _is_database(path: Path) -> bool:
    """Return whether a file is of SQLite, as ledgers are."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def _exists(path: Path) -> bool:
    try:
        os.stat(path)  # unlike Path.exists, raises for invalid names
    except FileNotFoundError:
        return False
    return True


def check_public(public: Path, data: Path) -> None:
    """Refuse the sensitive table as the file of public rows, by any name or link.

    The contents are not compared: whether a table equals a chosen file is itself a fact about its
    records, and revealing it would cost budget.
    """
    try:
        same = os.path.samefile(public, data)
    except (OSError, ValueError):  # the reader of the file reports this in more detail
        return
    if same:
        raise Refused(
            "--public names the sensitive table itself, and public rows are shown without noise; "
            "name a file of other rows that need no protection."
        )


def check_report(path: Path | None, force: bool, *inputs: Path | None) -> None:
    """Refuse a report as `check_new` does, or if its name is not that of an HTML file."""
    check_new(path, force, *inputs)
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise Refused(f"{path.name!r}: a report is an HTML file; call it report.html.")


def write_model_report(path: Path, model: Any, accuracy: Any = None) -> None:
    """Write the report of a fitted model."""
    from tacit.report import facts_of, write_report

    write_report(path, facts_of(model, accuracy=accuracy, made_on=today()))


def write_comparison(path: Path, curves: Any, picture: Any, budget: str) -> None:
    """Write the scores of a comparison, on a page without a guarantee."""
    from tacit.report.write import render_comparison
    from tacit.saving.container import write_whole

    title = f"Comparison: {curves.model} of {curves.target}"
    remark = f"{curves.rule} {budget}".strip()
    page = render_comparison(title, picture, remark=remark, made_on=today())
    write_whole(path, page.encode("utf-8"))


def write_evaluation(path: Path, title: str, evaluation: Any) -> None:
    """Write a private evaluation, on a page that begins with its guarantee."""
    from tacit.report.write import render_evaluation
    from tacit.saving.container import write_whole

    write_whole(path, render_evaluation(title, evaluation, made_on=today()).encode("utf-8"))


def write_student(path: Path, title: str, model: Any, scores: Any) -> None:
    """Write the page of a PATE student."""
    from tacit.report.pages import render_student
    from tacit.saving.container import write_whole

    write_whole(path, render_student(title, model, scores, made_on=today()).encode("utf-8"))


def today() -> str:
    """Return the date, for a page."""
    return datetime.date.today().isoformat()
