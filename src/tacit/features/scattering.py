"""Scattering of images: moduli of wavelet transforms, twice, averaged over four by four pixels."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]

# J = 2 scales and L = 8 angles: the filters are designed for them.
_SCALES = 2
_ANGLES = 8
_STRIDE = 2**_SCALES
# Of each channel: the average, 16 wavelets, and 8 fine ones followed by 8 coarse ones each.
N_PATHS = 1 + _SCALES * _ANGLES + _ANGLES**2
# How many paths are alike: of one order and scale. A mirror exchanges paths within such groups.
ALIKE = (1, *(_ANGLES,) * _SCALES, _ANGLES**2)
# How far a filter is wrapped around: it is nothing at twice the side of an image.
_WRAPS = range(-2, 3)


class _Filters(NamedTuple):
    """What an image of one size is multiplied with, in single precision."""

    places: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # of the pixels once reflected
    fine: Single  # 8 wavelets, at every frequency
    coarse: Single  # a quarter of 8 wavelets of twice the size
    average: tuple[Single, Single]  # to every fourth pixel, from each side of full size
    average_half: tuple[Single, Single]  # the same from half the size


def grid_of(height: int, width: int) -> tuple[int, int]:
    """Return how many places, each of four by four pixels, features of an image are for."""
    return height // _STRIDE, width // _STRIDE


def scattered(image: Any, *, centred: bool = False) -> Single:
    """Return the scattering of one image (height, width, channels): (channel, path, place).

    The transform of Bruna and Mallat (2013) with Morlet wavelets, J = 2, L = 8, of order 2:

        S0 = x * phi,  S1 = |x * psi_1| * phi,  S2 = ||x * psi_1| * psi_2| * phi

    psi_1 of either scale, psi_2 of a coarser one than psi_1, phi a Gaussian, all of them cut down
    to every fourth pixel, the first one included, or to the middle of every four by four pixels
    if ``centred``: then the mirror image has, all but for rounding to half the pixels, the same
    numbers at other places (`mirrored`). Images are reflected at their border.

    **Guarantee**: a function of the image alone, to the last bit: whatever stands around it, it is
    computed by itself, in arrays of one shape.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.scattering import scattered
    >>> scattered(np.ones((28, 28, 1))).shape
    (1, 81, 49)
    """
    from scipy import fft  # slow to import

    pixels = np.asarray(image, dtype=np.float32)
    height, width, n_channels = pixels.shape
    filters = _filters(height, width, centred)
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
    """Return which path of the mirror image, left for right, each path of an image is.

    At the place across from its own: a wavelet of angle a is one of -a in the mirror.

    Examples
    --------
    >>> from tacit.features.scattering import mirrored
    >>> mirrored(1)[:9]
    array([0, 7, 6, 5, 4, 3, 2, 1, 8])
    """
    # (3 - theta) pi / 8 becomes its opposite, which is the same wavelet as that plus pi
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
def _filters(height: int, width: int, centred: bool) -> _Filters:
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
        (_average(tall, 1, centred), _average(wide, 1, centred)),
        (_average(tall, 2, centred), _average(wide, 2, centred)),
    )


def _reflected(n: int, padded: int) -> npt.NDArray[np.int64]:
    """Return which pixel stands at each place of a side that is reflected at its ends."""
    before = (padded - n) // 2
    return np.pad(np.arange(n), (before, padded - n - before), mode="reflect")


def _average(padded: int, step: int, centred: bool) -> Single:
    """Return the matrix that averages every step-th pixel around every fourth one of an image.

    A Gaussian of std 0.8 * 2 along one side, wrapped around; the border is left out.
    """
    std = 0.8 * 2 ** (_SCALES - 1)
    at = np.arange(0, padded, step)
    centres = np.arange(0, padded, _STRIDE)[1:-1] + ((_STRIDE - 1) / 2 if centred else 0.0)
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


def longest_scattering(height: int, width: int, *, centred: bool = False) -> float:
    """Return the greatest norm of the scattering of an image of norm 1, not quite attained.

    Reflection shows a pixel four times at most. Moduli keep norms, sums of squares of spectra bound
    those of wavelets, cutting down shortens, and an average is a matrix.

    Examples
    --------
    >>> from tacit.features.scattering import longest_scattering
    >>> 1.0 < longest_scattering(28, 28) < 4.0
    True
    """
    filters = _filters(height, width, centred)
    fine, coarse = (float((f**2).sum(axis=0).max()) for f in (filters.fine, 4 * filters.coarse))
    whole, half = (
        float(np.prod([np.linalg.norm(side, 2) ** 2 for side in sides]))
        for sides in (filters.average, filters.average_half)
    )
    squared = 4.0 * (whole * (1 + fine) + half * (coarse + coarse * fine))
    return math.sqrt(squared) * (1 + 1e-5)
