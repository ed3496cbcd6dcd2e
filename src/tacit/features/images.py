"""Maps of images: scattering, and slow waves over an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.domain import Domain
from tacit.features.feature_map import FeatureMap
from tacit.features.groups import to_unit
from tacit.features.scattering import N_PATHS, grid_of, longest_scattering, mirrored, scattered

Array = npt.NDArray[np.float64]
Shape = tuple[int, int, int]

# Fewer pixels to a side than this are less than one place and its border.
_LEAST_SIDE = 4


def image_shape_of(shape: Any) -> Shape:
    """Return height, width and channels that were declared, (height, width) being grey.

    Examples
    --------
    >>> from tacit.features.images import image_shape_of
    >>> image_shape_of((28, 28))
    (28, 28, 1)
    """
    sizes = tuple(shape) if isinstance(shape, Sequence) else ()
    if len(sizes) not in (2, 3) or not all(isinstance(n, int | np.integer) for n in sizes):
        raise ValueError(
            f"image_shape must be (height, width) or (height, width, channels), got {shape!r}."
        )
    height, width, channels = (*map(int, sizes), 1)[:3]
    if min(height, width) < _LEAST_SIDE or channels < 1:
        raise ValueError(f"images must have {_LEAST_SIDE} pixels to a side, got {shape!r}.")
    return height, width, channels


@dataclass(frozen=True)
class Scatterings:
    """The scattering of every row, an image with its colours side by side; one row at a time."""

    domain: Domain
    shape: Shape
    centred: bool

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""
        return self.shape[2] * N_PATHS * math.prod(grid_of(*self.shape[:2]))

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows."""
        for row, made in zip(self.domain.held(rows), out, strict=True):
            image = row.reshape(self.shape)
            made[:] = scattered(image, centred=self.centred).reshape(-1)


class Scattering(FeatureMap):
    """The scattering of images: 81 numbers for every four by four pixels of a channel.

    Moduli of wavelet transforms of order 2, J = 2, L = 8 (`tacit.features.scattering`): public and
    without a parameter that is learned.

    Parameters
    ----------
    image_shape : (int, int) or (int, int, int)
        Height, width and channels of an image; a row is one, its channels side by side.
    centred : bool, default=False
        Whether places are the middles of four by four pixels, and not every fourth pixel as usual.
    row_norm : float or None
        The greatest norm of the rows to come, to which they are scaled down; None counts as 1 where
        no ranges are declared.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each pixel, to which they are clipped: (0, 1), say.

    Notes
    -----
    **Guarantee**. No row is longer than `longest_scattering` times the longest that may come. A row
    is a function of its image alone, to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import Scattering
    >>> features = Scattering((8, 8), ranges=(0, 1)).fit(np.zeros((1, 64)))
    >>> features.transform(np.ones((2, 64))).shape
    (2, 324)
    """

    def __init__(
        self,
        image_shape: tuple[int, ...] = (28, 28),
        *,
        centred: bool = False,
        row_norm: float | None = None,
        ranges: Any = None,
    ) -> None:
        self.image_shape = image_shape
        self.centred = centred
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> Scatterings:
        """Return what makes a row of one in the domain."""
        shape = image_shape_of(self.image_shape)
        if math.prod(shape) != domain.n_columns:
            raise ValueError(
                f"images of shape {shape} have {math.prod(shape)} numbers and the rows "
                f"{domain.n_columns}; declare the image_shape of the rows."
            )
        return Scatterings(domain, shape, bool(self.centred))

    def output(self, domain: Domain) -> Domain:
        """Return where the rows it makes are."""
        height, width, channels = self.row_map(domain).shape
        places = range(math.prod(grid_of(height, width)))
        names = tuple(
            f"{channel}.{path}.{place}"
            for channel in range(channels)
            for path in range(N_PATHS)
            for place in places
        )
        longest = longest_scattering(height, width, centred=self.centred)
        return Domain(names, domain.longest * longest)


@dataclass(frozen=True)
class SlowWaves:
    """Cosine waves over the places of each channel, slow ones first; one row at a time."""

    domain: Domain
    grid: tuple[int, int]
    n_waves: int
    mirrored: bool = False

    @property
    def n_channels(self) -> int:
        """How many channels, or paths of channels, a row has."""
        return self.domain.n_columns // math.prod(self.grid)

    @cached_property
    def waves(self) -> list[tuple[int, int]]:
        """Return the waves along and across, slow ones first."""
        most = [min(self.n_waves, side) for side in self.grid]
        pairs = [(i, j) for i in range(most[0]) for j in range(most[1])]
        return sorted(pairs, key=lambda wave: (wave[0] ** 2 + wave[1] ** 2, wave))

    @cached_property
    def matrix(self) -> Array:
        """Return one column for each wave, orthonormal."""
        along, across = (_cosines(side) for side in self.grid)
        columns = [np.multiply.outer(along[i], across[j]).reshape(-1) for i, j in self.waves]
        return np.stack(columns, axis=1)

    @cached_property
    def _pairs(self) -> tuple[npt.NDArray[np.int64], Array, npt.NDArray[np.int64], Array]:
        """Return places and factors of what stays of mirror images: a + b, over sqrt(2) or 2.

        The mirror image of a wave across is itself, or its opposite where it is odd.
        """
        n = self.n_channels * len(self.waves)
        if not self.mirrored:
            return np.arange(n), np.ones(n), np.arange(n), np.zeros(n)
        twin = mirrored(self.n_channels // N_PATHS)
        kept = []
        for k, (_, j) in enumerate(self.waves):
            sign = -1.0 if j % 2 else 1.0
            for channel, other in enumerate(twin):
                own, its = k * len(twin) + channel, k * len(twin) + int(other)
                if channel < other:
                    kept.append((own, math.sqrt(0.5), its, sign * math.sqrt(0.5)))
                elif channel == other and sign > 0:
                    kept.append((own, 1.0, its, 0.0))
        places, factors, others, signs = (np.array(column) for column in zip(*kept, strict=True))
        return places, factors, others, signs

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""
        return len(self._pairs[0])

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows."""
        own, factor, its, sign = self._pairs
        for row, made in zip(self.domain.held(rows), out, strict=True):
            # slow waves first, the channels of one side by side
            waves = (row.reshape(self.n_channels, -1) @ self.matrix).T.reshape(-1)
            made[:] = to_unit(factor * waves[own] + sign * waves[its])


def _cosines(side: int) -> Array:
    """Return cos(pi k (i + 1/2) / n), one row for each k, of norm 1."""
    k, i = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    waves = np.cos(np.pi * k * (i + 0.5) / side) * math.sqrt(2.0 / side)
    waves[0] *= math.sqrt(0.5)
    result: Array = waves
    return result


class CosineWaves(FeatureMap):
    """Slow cosine waves over the places of an image, for every channel or path; rows of norm 1.

    A public projection of scatterings: what varies fast from place to place is left out, and what
    is left stands slow waves first, those of all paths together.

    Parameters
    ----------
    grid : (int, int)
        How many places an image has along and across; `Scattering` has one for every four pixels.
    n_waves : int, default=4
        How many waves along and how many across.
    mirrored : bool, default=False
        Whether an image means the same as its mirror image, left for right: features of both are
        averaged, of which half are left. For scatterings alone.
    row_norm, ranges
        As in `Scattering`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import CosineWaves
    >>> waves = CosineWaves((2, 2), 1).fit(np.zeros((1, 8)))  # two channels of four places
    >>> waves.transform([[0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]])
    array([[0.6, 0.8]])
    """

    def __init__(
        self,
        grid: tuple[int, int] = (7, 7),
        n_waves: int = 4,
        *,
        mirrored: bool = False,
        row_norm: float | None = None,
        ranges: Any = None,
    ) -> None:
        self.grid = grid
        self.n_waves = n_waves
        self.mirrored = mirrored
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> SlowWaves:
        """Return what makes a row of one in the domain."""
        grid = tuple(checks.count("grid", side) for side in self.grid)
        n_waves = checks.count("n_waves", self.n_waves)
        paths = math.prod(grid) * (N_PATHS if self.mirrored else 1)
        if len(grid) != 2 or domain.n_columns % paths:
            raise ValueError(
                f"{domain.n_columns} columns are not channels of {self.grid!r} places"
                + (", of 81 paths each" if self.mirrored else "")
                + "; declare the grid of the features that come."
            )
        return SlowWaves(domain, grid, n_waves, bool(self.mirrored))

    def output(self, domain: Domain) -> Domain:
        """Return where the rows it makes are: on the sphere."""
        n = self.row_map(domain).n_columns
        return Domain(tuple(f"wave_{i}" for i in range(n)), 1.0)
