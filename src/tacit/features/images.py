"""Map images to features: colour spaces, scattering transforms, and low-frequency cosines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.feature_map import Domain, FeatureMap, RowByRow
from tacit.features.normalization import to_unit

Array = npt.NDArray[np.float64]

N_COLOURS = 3


@dataclass(frozen=True)
class Opponents(RowByRow):
    """Lightness and two colour differences of each pixel."""

    def features(self, row: Array) -> Array:
        """Return the three channels of each pixel, side by side."""
        red, green, blue = row.reshape(-1, N_COLOURS).T
        lightness = (red + green + blue) / math.sqrt(3.0)
        across = (red - blue) / math.sqrt(2.0)
        return np.stack(
            [lightness, across, (red - 2.0 * green + blue) / math.sqrt(6.0)], axis=1
        ).reshape(-1)


class OpponentColours(FeatureMap):
    """Replace red, green and blue of every pixel by lightness and two colour differences.

        (R + G + B) / sqrt(3),  (R - B) / sqrt(2),  (R - 2 G + B) / sqrt(6)

    The three colours of a photograph are nearly equal images; these channels are less correlated,
    and so carry more information each. The map is a rotation: rows keep their norm, and no
    information is lost, for any three channels.

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
        """Return the row map on a domain."""
        if domain.n_columns % N_COLOURS:
            raise ValueError(
                f"{domain.n_columns} columns are not pixels of red, green and blue; declare the "
                "image_shape of the rows, and leave grey images as they are."
            )
        return Opponents(domain)

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows."""
        self.row_map(domain)
        # rounded up
        return Domain(domain.names, domain.longest * (1 + 1e-12))


Single = npt.NDArray[np.float32]

# J = 2 scales and L = 8 angles: the filters are designed for them.
_SCALES = 2
_ANGLES = 8
_STRIDE = 2**_SCALES
# Per channel: the average, 16 wavelets, and 8 fine wavelets each followed by 8 coarse ones.
N_PATHS = 1 + _SCALES * _ANGLES + _ANGLES**2
# Sizes of groups of paths of equal order and scale. A mirror image permutes paths within groups.
ALIKE = (1, *(_ANGLES,) * _SCALES, _ANGLES**2)
# Periods over which a filter is wrapped around: it vanishes at twice the side of an image.
_WRAPS = range(-2, 3)


class _Filters(NamedTuple):
    """The filters for images of one size, in single precision."""

    places: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # pixel indices after reflection
    fine: Single  # 8 wavelets, at every frequency
    coarse: Single  # a quarter of 8 wavelets of twice the size
    average: tuple[Single, Single]  # to every fourth pixel, from each side at full size
    average_half: tuple[Single, Single]  # the same from half the size


def grid_of(height: int, width: int) -> tuple[int, int]:
    """Return the number of places, one per four by four pixels, along each side of an image."""
    return height // _STRIDE, width // _STRIDE


def scattered(image: Any, *, centered: bool = False) -> Single:
    """Return the scattering of one image (height, width, channels): (channel, path, place).

    The transform of Bruna and Mallat (2013) with Morlet wavelets, J = 2, L = 8, of order 2:

        S0 = x * phi,  S1 = |x * psi_1| * phi,  S2 = ||x * psi_1| * psi_2| * phi

    psi_1 has either scale, psi_2 a coarser scale than psi_1, and phi is a Gaussian. All are
    subsampled to every fourth pixel, the first included, or to the middle of every four by four
    pixels if ``centered``. The mirror image then has, up to rounding to half the pixels, equal
    numbers at mirrored places (`mirrored`). Images are reflected at their border.

    **Guarantee**: a function of the image alone, to the last bit: each image is computed on its
    own, in arrays of one shape.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.images import scattered
    >>> scattered(np.ones((28, 28, 1))).shape
    (1, 81, 49)
    """
    from scipy import fft  # slow to import

    pixels = np.asarray(image, dtype=np.float32)
    height, width, n_channels = pixels.shape
    filters = _filters(height, width, centered)
    rows, columns = filters.places
    whole = fft.fft2(pixels.transpose(2, 0, 1)[:, rows[:, None], columns])
    fine = np.abs(fft.ifft2(whole[:, None] * filters.fine))
    half = np.abs(fft.ifft2(_halved(whole[:, None], filters.coarse)))
    again = fft.fft2(fine)
    both = np.abs(fft.ifft2(_halved(again[:, :, None], filters.coarse)))
    padded = pixels.transpose(2, 0, 1)[:, None, rows[:, None], columns]
    parts = [
        _averaged(padded, filters.average),
        _averaged(fine, filters.average),
        _averaged(half, filters.average_half),
        _averaged(both.reshape(n_channels, -1, *both.shape[-2:]), filters.average_half),
    ]
    return np.concatenate(parts, axis=1).reshape(n_channels, N_PATHS, -1)


def mirrored(n_channels: int) -> npt.NDArray[np.int64]:
    """Return for each path of an image the corresponding path of its mirror image.

    The place is mirrored too, left for right. A wavelet of angle a becomes one of angle -a.

    Examples
    --------
    >>> from tacit.features.images import mirrored
    >>> mirrored(1)[:9]
    array([0, 7, 6, 5, 4, 3, 2, 1, 8])
    """
    # (3 - theta) pi / 8 changes its sign; adding pi gives the same wavelet
    angles = (2 * 3 - np.arange(_ANGLES)) % _ANGLES
    ones = 1 + np.arange(_SCALES)[:, None] * _ANGLES + angles
    twos = 1 + _SCALES * _ANGLES + angles[:, None] * _ANGLES + angles
    paths = np.concatenate([[0], ones.reshape(-1), twos.reshape(-1)])
    return np.asarray(np.arange(n_channels)[:, None] * N_PATHS + paths).reshape(-1)


def _averaged(fields: Any, sides: tuple[Single, Single]) -> Single:
    left, right = sides
    result: Single = left @ fields @ right.T
    return result


def _halved(spectra: Any, wavelets: Single) -> Any:
    """Return the spectra of every second pixel of fields filtered by each wavelet.

    x[::2] has the spectrum (X[k] + X[k + n/2]) / 2 along each side; a quarter is in the wavelets.
    """
    high, wide = spectra.shape[-2] // 2, spectra.shape[-1] // 2
    corners = [
        (..., rows, columns)
        for rows in (slice(high), slice(high, None))
        for columns in (slice(wide), slice(wide, None))
    ]
    total = spectra[corners[0]] * wavelets[corners[0]]
    for corner in corners[1:]:
        total += spectra[corner] * wavelets[corner]
    return total


@lru_cache(maxsize=8)
def _filters(height: int, width: int, centered: bool) -> _Filters:
    sides = [(n, (n // _STRIDE + 2) * _STRIDE) for n in (height, width)]
    tall, wide = (padded for _, padded in sides)
    fine, coarse = (
        np.array([_wavelet(tall, wide, scale, angle) for angle in range(_ANGLES)])
        for scale in range(_SCALES)
    )
    return _Filters(
        (_reflected(*sides[0]), _reflected(*sides[1])),
        fine.astype(np.float32),
        (coarse / 4).astype(np.float32),
        (_average(tall, 1, centered), _average(wide, 1, centered)),
        (_average(tall, 2, centered), _average(wide, 2, centered)),
    )


def _reflected(n: int, padded: int) -> npt.NDArray[np.int64]:
    """Return the pixel index at each place of a side that is reflected at its ends."""
    before = (padded - n) // 2
    return np.pad(np.arange(n), (before, padded - n - before), mode="reflect")


def _average(padded: int, step: int, centered: bool) -> Single:
    """Return the matrix that averages every step-th pixel around every fourth one of an image.

    A Gaussian of std 0.8 * 2 along one side, wrapped around; the border is left out.
    """
    std = 0.8 * 2 ** (_SCALES - 1)
    at = np.arange(0, padded, step)
    centres = np.arange(0, padded, _STRIDE)[1:-1] + ((_STRIDE - 1) / 2 if centered else 0.0)
    away = centres[:, None] - at
    weights = sum(np.exp(-((away + wrap * padded) ** 2) / (2 * std**2)) for wrap in _WRAPS)
    matrix: Single = (step * weights / (math.sqrt(2 * math.pi) * std)).astype(np.float32)
    return matrix


def _wavelet(tall: int, wide: int, scale: int, angle: int) -> Array:
    """Return a Morlet wavelet at every frequency: a wave under a Gaussian, less the Gaussian.

    std 0.8 * 2^j, frequency (3/4) pi / 2^j at angle (3 - theta) pi / 8, slant 1/2.
    """
    std, slant = 0.8 * 2**scale, 4.0 / _ANGLES
    turn, speed = (3 - angle) * math.pi / _ANGLES, 0.75 * math.pi / 2**scale
    u, v = np.meshgrid(*(_wrapped(side) for side in (tall, wide)), indexing="ij")
    along = u * math.cos(turn) + v * math.sin(turn)
    across = v * math.cos(turn) - u * math.sin(turn)
    envelope = np.exp(-(along**2 + (slant * across) ** 2) / (2 * std**2))
    wave = envelope * np.exp(1j * speed * along)
    shape = (len(_WRAPS), tall, len(_WRAPS), wide)
    wave, envelope = (field.reshape(shape).sum(axis=(0, 2)) for field in (wave, envelope))
    wave -= wave.sum() / envelope.sum() * envelope
    spectrum: Array = np.fft.fft2(wave / (2 * math.pi * std**2 / slant)).real
    return spectrum


def _wrapped(side: int) -> Array:
    return np.arange(_WRAPS.start * side, _WRAPS.stop * side, dtype=np.float64)


def longest_scattering(height: int, width: int, *, centered: bool = False) -> float:
    """Return an upper bound on the norm of the scattering of an image of norm 1, nearly attained.

    Reflection shows a pixel at most four times. Moduli keep norms, sums of squares of spectra bound
    those of wavelets, subsampling shortens, and an average is a matrix.

    Examples
    --------
    >>> from tacit.features.images import longest_scattering
    >>> 1.0 < longest_scattering(28, 28) < 4.0
    True
    """
    filters = _filters(height, width, centered)
    fine, coarse = (float((f**2).sum(axis=0).max()) for f in (filters.fine, 4 * filters.coarse))
    whole, half = (
        float(np.prod([np.linalg.norm(side, 2) ** 2 for side in sides]))
        for sides in (filters.average, filters.average_half)
    )
    squared = 4.0 * (whole * (1 + fine) + half * (coarse + coarse * fine))
    return math.sqrt(squared) * (1 + 1e-5)


Shape = tuple[int, int, int]

# Images with fewer pixels per side are smaller than one place and its border.
_LEAST_SIDE = 4


def image_shape_of(shape: Any) -> Shape:
    """Return the declared height, width and channels; (height, width) is one channel.

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
        raise ValueError(f"images need at least {_LEAST_SIDE} pixels per side, got {shape!r}.")
    return height, width, channels


@dataclass(frozen=True)
class Scatterings(RowByRow):
    """The scattering of every row, an image with its channels interleaved."""

    shape: Shape
    centered: bool

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return self.shape[2] * N_PATHS * math.prod(grid_of(*self.shape[:2]))

    def features(self, row: Array) -> Single:
        """Return the scattering of an image."""
        return scattered(row.reshape(self.shape), centered=self.centered).reshape(-1)


class Scattering(FeatureMap):
    """The scattering of images: 81 numbers for every four by four pixels of a channel.

    Moduli of wavelet transforms of order 2, J = 2, L = 8 (`tacit.features.images`). The transform
    is public and has no learned parameter.

    Parameters
    ----------
    image_shape : (int, int) or (int, int, int)
        Height, width and channels of an image; a row is one, its channels side by side.
    centered : bool, default=False
        Whether places are the middles of four by four pixels, instead of every fourth pixel.
    row_norm : float or None
        The greatest norm of a row; longer rows are scaled down to it. None counts as 1 if no ranges
        are declared.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each pixel, such as (0, 1); values outside are clipped.

    Notes
    -----
    **Guarantee**. No output row is longer than `longest_scattering` times the greatest norm of an
    input row. A row is a function of its image alone, to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import Scattering
    >>> features = Scattering((8, 8), ranges=(0, 1)).fit(np.zeros((1, 64)))
    >>> features.transform(np.ones((2, 64))).shape
    (2, 324)
    """

    @checks.names_of_today
    def __init__(
        self,
        image_shape: tuple[int, ...] = (28, 28),
        *,
        centered: bool = False,
        row_norm: float | None = None,
        ranges: Any = None,
    ) -> None:
        self.image_shape = image_shape
        self.centered = centered
        self.row_norm = row_norm
        self.ranges = ranges

    def row_map(self, domain: Domain) -> Scatterings:
        """Return the row map on a domain."""
        shape = image_shape_of(self.image_shape)
        if math.prod(shape) != domain.n_columns:
            raise ValueError(
                f"images of shape {shape} have {math.prod(shape)} numbers and the rows "
                f"{domain.n_columns}; declare the image_shape of the rows."
            )
        return Scatterings(domain, shape, bool(self.centered))

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows."""
        height, width, channels = self.row_map(domain).shape
        places = range(math.prod(grid_of(height, width)))
        names = tuple(
            f"{channel}.{path}.{place}"
            for channel in range(channels)
            for path in range(N_PATHS)
            for place in places
        )
        longest = longest_scattering(height, width, centered=self.centered)
        return Domain(names, domain.longest * longest)


@dataclass(frozen=True)
class SlowWaves(RowByRow):
    """Cosine waves over the places of each channel, low frequencies first."""

    grid: tuple[int, int]
    n_waves: int
    mirrored: bool = False

    @property
    def n_channels(self) -> int:
        """The number of channels, or paths of channels, in a row."""
        return self.domain.n_columns // math.prod(self.grid)

    @cached_property
    def waves(self) -> list[tuple[int, int]]:
        """Return the frequencies along and across, in ascending order."""
        most = [min(self.n_waves, side) for side in self.grid]
        pairs = [(i, j) for i in range(most[0]) for j in range(most[1])]
        return sorted(pairs, key=lambda wave: (wave[0] ** 2 + wave[1] ** 2, wave))

    @cached_property
    def matrix(self) -> Array:
        """Return an orthonormal matrix with one column per wave."""
        along, across = (_cosines(side) for side in self.grid)
        columns = [np.multiply.outer(along[i], across[j]).reshape(-1) for i, j in self.waves]
        return np.stack(columns, axis=1)

    @cached_property
    def _pairs(self) -> tuple[npt.NDArray[np.int64], Array, npt.NDArray[np.int64], Array]:
        """Return places and factors of the mirror-symmetric part: a + b, over sqrt(2) or 2.

        The mirror image of a wave across is itself, or its negative if its frequency is odd.
        """
        n = self.n_channels * len(self.waves)
        if not self.mirrored:
            return np.arange(n), np.ones(n), np.arange(n), np.zeros(n)
        twin = mirrored(self.n_channels // N_PATHS)
        retained = []
        for k, (_, j) in enumerate(self.waves):
            sign = -1.0 if j % 2 else 1.0
            for channel, other in enumerate(twin):
                own, its = k * len(twin) + channel, k * len(twin) + int(other)
                if channel < other:
                    retained.append((own, math.sqrt(0.5), its, sign * math.sqrt(0.5)))
                elif channel == other and sign > 0:
                    retained.append((own, 1.0, its, 0.0))
        places, factors, others, signs = (
            np.array(column) for column in zip(*retained, strict=True)
        )
        return places, factors, others, signs

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return len(self._pairs[0])

    def features(self, row: Array) -> Array:
        """Return the waves, or their mirror-symmetric part, scaled to norm 1."""
        own, factor, its, sign = self._pairs
        # low frequencies first, the channels of each frequency side by side
        waves = (row.reshape(self.n_channels, -1) @ self.matrix).T.reshape(-1)
        return to_unit(factor * waves[own] + sign * waves[its])


def _cosines(side: int) -> Array:
    """Return cos(pi k (i + 1/2) / n), one row of norm 1 for each k."""
    k, i = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    waves = np.cos(np.pi * k * (i + 0.5) / side) * math.sqrt(2.0 / side)
    waves[0] *= math.sqrt(0.5)
    result: Array = waves
    return result


class CosineWaves(FeatureMap):
    """Low-frequency cosines over the places of an image, per channel or path; rows of norm 1.

    A public projection of scatterings. It drops what varies fast from place to place. Low
    frequencies come first, those of all paths together.

    Parameters
    ----------
    grid : (int, int)
        The number of places along and across; `Scattering` has one for every four pixels.
    n_waves : int, default=4
        The number of waves along, and across.
    mirrored : bool, default=False
        Whether an image and its mirror image, left for right, are equivalent: their features are
        averaged, which leaves half of them. For scatterings only.
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
        """Return the row map on a domain."""
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
        """Return the domain of the output rows: the unit sphere."""
        n = self.row_map(domain).n_columns
        return Domain(tuple(f"wave_{i}" for i in range(n)), 1.0)
