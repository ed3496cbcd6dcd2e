"""Define kernels by the law of their frequencies (Bochner): k(x - y) = E cos(<w, x - y>)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtri

from tacit import checks
from tacit.features.feature_map import Domain

Array = npt.NDArray[np.float64]


class Uniforms:
    """Public random numbers in (0, 1), equal for a seed on every machine and in every version.

    NumPy guarantees the bits of a generator, but not the output of its distributions.
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(seed)

    def __call__(self, *shape: int) -> Array:
        """Return an array of this shape; no number is 0 or 1."""
        bits = self._generator.random_raw(math.prod(shape)) >> np.uint64(11)
        return ((bits.astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)

    def normals(self, *shape: int) -> Array:
        """Return standard normal numbers."""
        normals: Array = ndtri(self(*shape))
        return normals


@dataclass(frozen=True)
class Kernel:
    """A kernel that depends on the difference of two rows and is 1 at 0.

    A member draws frequencies for a bandwidth of 1, and defines the typical distance of two rows in
    its own metric.
    """

    bandwidth: float | None = None
    is_round: ClassVar[bool] = True  # whether it is isotropic, a function of ||x - y|| alone

    def __post_init__(self) -> None:
        if self.bandwidth is not None:
            checks.positive("bandwidth", self.bandwidth)

    @abstractmethod
    def value(self, differences: Array) -> Array:
        """Return the kernel of rows of differences, for a bandwidth of 1."""

    @abstractmethod
    def frequencies(self, n_columns: int, n_frequencies: int, draw: Uniforms) -> Array:
        """Return frequencies, one per column, for a bandwidth of 1."""

    def public_bandwidth(self, domain: Domain) -> float:
        """Return the bandwidth: the declared one, or that at which typical rows have kernel 1/e.

        Typical rows are two rows uniform on the ranges of their columns, or on the ball of the row
        norm, whichever is narrower. For isotropic kernels the bandwidth is the root of half the
        mean squared distance: sum of widths^2 / 12, or radius^2 d / (d + 2).
        """
        if self.bandwidth is not None:
            return float(self.bandwidth)
        d = domain.n_columns
        box = float(np.sum(domain.widths**2)) / 12.0
        return math.sqrt(min(box, domain.longest**2 * d / (d + 2)))


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """exp(-||x - y||^2 / (2 bandwidth^2)); frequencies are normal.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import GaussianKernel
    >>> GaussianKernel().value(np.array([[0.0, 0.0], [1.0, 1.0]])).round(3)
    array([1.   , 0.368])
    """

    def value(self, differences: Array) -> Array:
        """Return the kernel of rows of differences, for a bandwidth of 1."""
        return np.asarray(np.exp(-np.sum(differences**2, axis=1) / 2))

    def frequencies(self, n_columns: int, n_frequencies: int, draw: Uniforms) -> Array:
        """Return orthogonal directions, each with the norm of a normal vector."""
        return _orthogonal_normals(n_columns, n_frequencies, draw)


@dataclass(frozen=True)
class MaternKernel(Kernel):
    """The Matern kernel of smoothness ``nu``: functions with about nu derivatives.

    2^(1 - nu) / Gamma(nu) z^nu K_nu(z) with z = sqrt(2 nu) ||x - y|| / bandwidth; nu = 1/2 is
    exp(-||x - y|| / bandwidth), and nu = infinity the Gaussian kernel. Frequencies have Student's
    law with 2 nu degrees of freedom: normal ones divided by sqrt(chi^2_{2 nu} / (2 nu)).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import MaternKernel
    >>> MaternKernel(nu=0.5).value(np.array([[3.0, 4.0]])).round(5)
    array([0.00674])
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("nu", self.nu)

    def value(self, differences: Array) -> Array:
        """Return the kernel of rows of differences, for a bandwidth of 1."""
        from scipy.special import gamma, kv

        z = math.sqrt(2 * self.nu) * np.sqrt(np.sum(differences**2, axis=1))
        safe = np.where(z > 0.0, z, 1.0)
        values = 2 ** (1 - self.nu) / gamma(self.nu) * safe**self.nu * kv(self.nu, safe)
        return np.where(z > 0.0, values, 1.0)

    def frequencies(self, n_columns: int, n_frequencies: int, draw: Uniforms) -> Array:
        """Return orthogonal directions, each with the norm of a Student-distributed vector."""
        normal = _orthogonal_normals(n_columns, n_frequencies, draw)
        # chi^2_{2 nu} / (2 nu) is a gamma variable of shape nu, divided by nu
        spread = gammaincinv(self.nu, draw(n_frequencies)) / self.nu
        return np.asarray(normal / np.sqrt(np.maximum(spread, np.finfo(float).tiny)))


@dataclass(frozen=True)
class LaplacianKernel(Kernel):
    """exp(-||x - y||_1 / bandwidth), of the sum of absolute differences; frequencies are Cauchy.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import LaplacianKernel
    >>> LaplacianKernel().value(np.array([[0.5, -0.5]])).round(3)
    array([0.368])
    """

    is_round: ClassVar[bool] = False

    def value(self, differences: Array) -> Array:
        """Return the kernel of rows of differences, for a bandwidth of 1."""
        return np.asarray(np.exp(-np.sum(np.abs(differences), axis=1)))

    def frequencies(self, n_columns: int, n_frequencies: int, draw: Uniforms) -> Array:
        """Return independent frequencies; orthogonal ones would change the kernel."""
        return np.tan(math.pi * (draw(n_columns, n_frequencies) - 0.5))

    def public_bandwidth(self, domain: Domain) -> float:
        """Return the bandwidth: the declared one, or the mean distance of two uniform rows.

        The mean distance is the sum of widths / 3. In the ball it is d times the mean absolute
        value of a normal number of variance 2 radius^2 / (d + 2).
        """
        if self.bandwidth is not None:
            return float(self.bandwidth)
        d = domain.n_columns
        box = float(np.sum(domain.widths)) / 3.0
        return min(box, 2.0 * d * domain.longest / math.sqrt(math.pi * (d + 2)))


def _orthogonal_normals(n_columns: int, n_frequencies: int, draw: Uniforms) -> Array:
    """Return normal columns, each orthogonal to the next n_columns - 1.

    A normal vector is a direction and an independent norm. The directions of a random rotation are
    each uniform, and more evenly spread than independent ones, so that the estimate of the kernel
    varies less (Yu et al. 2016).
    """
    blocks = []
    for start in range(0, n_frequencies, n_columns):
        k = min(n_columns, n_frequencies - start)
        rotation, upper = np.linalg.qr(draw.normals(n_columns, k))
        # QR leaves signs to the library; fixing them makes the rotation uniform
        rotation = rotation * np.where(np.diag(upper) < 0.0, -1.0, 1.0)
        lengths = np.sqrt(2 * gammaincinv(n_columns / 2, draw(k)))
        blocks.append(rotation * lengths)
    return np.hstack(blocks)


def kernel_of(kernel: Kernel | None) -> Kernel:
    """Return a kernel, Gaussian for None; refuse other values, such as the name of a kernel.

    Examples
    --------
    >>> from tacit.features.kernels import kernel_of
    >>> kernel_of(None)
    GaussianKernel(bandwidth=None)
    """
    if kernel is None:
        return GaussianKernel()
    if not isinstance(kernel, Kernel):
        raise TypeError(
            "kernel must be a GaussianKernel, MaternKernel or LaplacianKernel of tacit.features, "
            f"got {kernel!r}; pass GaussianKernel(), say, or None for it."
        )
    return kernel
