"""Share code of all loaders: the data folder, the data set, and its public schema.

A schema here is a tuple of columns, written with literals. `OneHot` and `Intervals` are
columns of `tacit.schema`; `Scaled` and `LogScaled` are numbers on a linear and a logarithmic
scale, from 0 to 1 as in published results.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.schema import Category as OneHot
from tacit.schema import Intervals, Number
from tacit.schema.columns import Column as Feature
from tacit.schema.columns import ColumnCheck
from tacit.schema.encoding import encode_rows as encode

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
        If the file does not exist; the message says what to set.
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
    # Only the named folder is searched, so that a misspelt one is not silently replaced.
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if named:
        return [Path(named)]
    here = Path.cwd()
    repositories = [path for path in (here, *here.parents) if (path / ".git").exists()]
    return [path.parent / "shared" / "data" for path in repositories[:1]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and labels to train on and to test on.

    Parameters
    ----------
    train_rows, test_rows
        Arrays of shape (n, n_features), encoded by a public schema. No intercept column, and no
        row is scaled: an estimator clips rows to its own ``row_norm``.
    train_labels, test_labels
        One label per row.
    feature_names
        One name per column.
    description
        The target, the features, the split and the source of the data.
    train_unit, test_unit
        The person of each row, if a person can have several; no feature depends on it.

    Notes
    -----
    **Guarantee**

    1. A row depends only on its own record and on literals of the schema: encoding
       some of the records gives those rows of the encoding of all.
    2. A person with several records is on one side of the split.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets import Dataset
    >>> rows, labels = np.eye(3), np.arange(3)
    >>> Dataset(rows, labels, rows, labels, ("x", "y", "z"), "Three points.").description
    'Three points.'
    """

    train_rows: npt.NDArray[Any]
    train_labels: npt.NDArray[Any]
    test_rows: npt.NDArray[Any]
    test_labels: npt.NDArray[Any]
    feature_names: tuple[str, ...]
    description: str
    train_unit: npt.NDArray[Any] | None = None
    test_unit: npt.NDArray[Any] | None = None


__all__ = [
    "Feature",
    "FromZero",
    "Intervals",
    "LogScaled",
    "OneHot",
    "Scaled",
    "encode",
    "feature_names",
]

Array = npt.NDArray[np.float64]
Table = npt.NDArray[np.void]


@dataclass(frozen=True)
class FromZero:
    """A number as `tacit.schema` encodes it, shifted to [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.base import FromZero
    >>> from tacit.schema import Number
    >>> FromZero(Number("hours", 0, 50)).encode(np.array([0.0, 50.0]))
    array([[0.],
           [1.]])
    """

    kind: ClassVar[str] = "number from zero"
    number: Number
    largest: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        """The column's name in the table."""
        return self.number.name

    def names(self) -> list[str]:
        """Return the name of its feature."""
        return self.number.names()

    def ranges(self) -> list[tuple[float, float]]:
        """Return the range of its feature."""
        return [(0.0, 1.0)]

    def effect_units(self) -> list[tuple[str, float]]:
        """Return the name of its feature and the step whose effect is told."""
        return self.number.effect_units()

    def write(self, values: Any, out: npt.NDArray[Any]) -> None:
        """Scale."""
        self.number.write(values, out)
        out += 0.5

    def check(self, values: Any) -> ColumnCheck:
        """Count values that are missing, not a number, or outside the range."""
        return self.number.check(values)

    def encode(self, values: npt.NDArray[Any]) -> Array:
        """Return the feature of an array of values."""
        return self.number.encode(values) + 0.5


def Scaled(column: str, low: float, high: float) -> FromZero:  # noqa: N802
    """Return a number clipped to [low, high] and mapped to [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.base import Scaled
    >>> Scaled("hours", 0.0, 50.0).encode(np.array([10.0, 99.0]))
    array([[0.2],
           [1. ]])
    """
    return FromZero(Number(column, low, high))


def LogScaled(column: str, high: float) -> FromZero:  # noqa: N802
    """Return a count clipped to [0, high] and mapped to [0, 1] by log(1 + v) / log(1 + high).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.datasets.base import LogScaled
    >>> LogScaled("bytes", 99.0).encode(np.array([0.0, 9.0, 1e6]))
    array([[0. ],
           [0.5],
           [1. ]])
    """
    return FromZero(Number(column, 0.0, high, log=True))


def feature_names(schema: Sequence[Feature]) -> tuple[str, ...]:
    """Return the names of all features of a schema, in the order of the columns."""
    return tuple(name for feature in schema for name in feature.names())
