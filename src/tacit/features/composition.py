"""Compose feature maps: one after another, or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.features.feature_map import Domain, FeatureMap
from tacit.features.normalization import to_unit
from tacit.records import RowMap

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Chain:
    """Several maps one after another: each takes the rows of the one before."""

    maps: tuple[RowMap, ...]

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return self.maps[-1].n_columns

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the features of finite rows to ``out``."""
        for each in self.maps[:-1]:
            made = np.empty((rows.shape[0], each.n_columns))
            each(rows, made)
            rows = made
        self.maps[-1](rows, out)


@dataclass(frozen=True)
class SideBySide:
    """Several maps of the same rows, side by side, each multiplied by its weight.

    Output rows have norm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import Domain, GroupNormalization
    >>> from tacit.features.composition import SideBySide
    >>> one = GroupNormalization(1).row_map(Domain(("a", "b"), 1.0))
    >>> out = np.empty((1, 4))
    >>> SideBySide((one, one), (4.0, 3.0))(np.array([[0.1, 0.3]]), out)
    >>> (out * 2**0.5).round(6)
    array([[-0.8,  0.8, -0.6,  0.6]])
    """

    maps: tuple[RowMap, ...]
    weights: tuple[float, ...]

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return sum(each.n_columns for each in self.maps)

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the features of finite rows to ``out``."""
        parts = [np.empty((rows.shape[0], each.n_columns)) for each in self.maps]
        for each, part in zip(self.maps, parts, strict=True):
            each(rows, part)
        for i, made in enumerate(out):
            pieces = [w * part[i] for w, part in zip(self.weights, parts, strict=True)]
            made[:] = to_unit(np.concatenate(pieces))


def chained(maps: Sequence[FeatureMap], domain: Domain) -> tuple[Chain, Domain]:
    """Return several maps as one chain, and the domain of its output.

    Examples
    --------
    >>> from tacit.features import Domain, GroupNormalization, Logarithms
    >>> from tacit.features.composition import chained
    >>> both, there = chained([Logarithms(), GroupNormalization(1)], Domain(("a", "b"), 9.0))
    >>> both.n_columns, there.longest
    (2, 1.0)
    """
    functions = []
    for each in maps:
        functions.append(each.row_map(domain))
        domain = each.output(domain)
    return Chain(tuple(functions)), domain
