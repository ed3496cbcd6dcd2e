"""Where the data files are."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TACIT_DATA"


def find_file(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a data file.

    Parameters
    ----------
    name
        The file inside the folder, such as "adult/adult.data.gz".
    folder
        The folder with the data sets. By default the environment variable ``TACIT_DATA``; else
        ``shared/data`` beside the repository that holds the working directory.

    Raises
    ------
    FileNotFoundError
        If the file is not there; says what to set.
    """
    places = _places(folder)
    for place in places:
        if (place / name).is_file():
            return place / name
    looked = ", ".join(map(str, places)) or "no folder: none is set"
    raise FileNotFoundError(
        f"the data file {name!r} was not found (looked in {looked}); pass folder=... or set the "
        f"environment variable {VARIABLE} to the folder that holds it."
    )


def _places(folder: str | os.PathLike[str] | None) -> list[Path]:
    # What the user names is the only place looked at, so that a typing error is not papered over.
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if named:
        return [Path(named)]
    here = Path.cwd()
    repositories = [path for path in (here, *here.parents) if (path / ".git").exists()]
    return [path.parent / "shared" / "data" for path in repositories[:1]]
