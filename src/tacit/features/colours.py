"""Colours as lightness and two differences, which photographs tell apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.features.domain import Domain
from tacit.features.feature_map import FeatureMap

Array = npt.NDArray[np.float64]

N_COLOURS = 3


@dataclass(frozen=True)
class Opponents:
    """Lightness and two differences of each pixel; one row at a time."""

    domain: Domain

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""
        return self.domain.n_columns

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows."""
        for row, made in zip(self.domain.held(rows), out, strict=True):
            red, green, blue = row.reshape(-1, N_COLOURS).T
            made[0::N_COLOURS] = (red + green + blue) / math.sqrt(3.0)
            made[1::N_COLOURS] = (red - blue) / math.sqrt(2.0)
            made[2::N_COLOURS] = (red - 2.0 * green + blue) / math.sqrt(6.0)


class OpponentColours(FeatureMap):
    """Red, green and blue of every pixel by lightness, red against blue and green against both.

        (R + G + B) / sqrt(3),  (R - B) / sqrt(2),  (R - 2 G + B) / sqrt(6)

    The three colours of a photograph are nearly the same image; these are not, so that what is made
    of each channel says more. A rotation: rows keep their norm and nothing is lost, whatever three
    channels there are.

    Parameters
    ----------
    row_norm, ranges
        As in `Scattering`.

    Examples
    --------
    >>> from tacit.features import OpponentColours
    >>> OpponentColours(ranges=(0, 1)).fit([[0.0] * 3]).transform([[1.0, 1.0, 0.0]]).round(3)
    array([[ 1.155,  0.707, -0.408]])
    """

    def __init__(self, *, row_norm: float | None = None, ranges: Any = None) -> None:
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> Opponents:
        """Return what makes a row of one in the domain."""
        if domain.n_columns % N_COLOURS:
            raise ValueError(
                f"{domain.n_columns} columns are not pixels of red, green and blue; declare the "
                "image_shape of the rows, and leave grey images as they are."
            )
        return Opponents(domain)

    def output(self, domain: Domain) -> Domain:
        """Return where the rows it makes are."""
        self.row_map(domain)
        # rounded up
        return Domain(domain.names, domain.longest * (1 + 1e-12))
