"""Define kernels by the law of their frequencies, and rows whose inner products approximate them.

By Bochner's theorem, k(x - y) = E cos(<w, x - y>). Random Fourier features are such waves:

    x = cos(2 pi t), y = sin(2 pi t)

Let r = t - round(t), of size at most 1/2. s = sin(pi r) and c = cos(pi r) are Taylor series of 11
terms with a remainder below 3e-17; x = 1 - 2 s^2, y = 2 s c. Rounding to the nearest turn is exact,
so that no argument reduction is needed. Every operation is elementwise: the compiled loop and NumPy
give the same bits, whatever the other elements are.
"""

from __future__ import annotations

import math
import secrets
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtri

from tacit import checks
from tacit.features.feature_map import Domain, FeatureMap

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
    >>> from tacit.features.kernels import GaussianKernel
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
    >>> from tacit.features.kernels import MaternKernel
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
    >>> from tacit.features.kernels import LaplacianKernel
    >>> LaplacianKernel().value(np.array([[0.5, -0.5]])).round(3)
    array([0.368])
    """

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


# t + _WHOLE - _WHOLE is t rounded to a whole number, for |t| <= 2^51.
_WHOLE = 1.5 * 2.0**52
_TERMS = 11
_SIN = tuple((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(_TERMS))
_COS = tuple((-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(_TERMS))
# Compiling takes about as long as computing this many numbers without it.
WORTH_COMPILING = 1 << 26
# Rows per block without a compiler: the working set fits the cache.
_TILE = 1 << 14


def waves(turns: Array, length: float, out: Array, *, compiled: bool = False) -> None:
    """Write ``length`` times the cosines, then the sines, of every row of ``turns`` to ``out``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.kernels import waves
    >>> out = np.empty((1, 4))
    >>> waves(np.array([[0.0, 7.25]]), 2.0, out)
    >>> out.round(12)
    array([[2., 0., 0., 2.]])
    """
    loop = _compiled() if compiled else None
    (loop or _plain)(turns, length, out)


def _plain(turns: Array, length: float, out: Array) -> None:
    n, half = turns.shape
    step = max(1, _TILE // max(half, 1))
    for start in range(0, n, step):
        t, at = turns[start : start + step], slice(start, start + step)
        r = t + _WHOLE
        r -= _WHOLE
        np.subtract(t, r, out=r)
        square = r * r
        s = _series(_SIN, square)
        s *= r
        c = _series(_COS, square)
        c *= s
        c *= 2.0
        np.multiply(c, length, out=out[at, half:])
        s *= s
        s *= 2.0
        np.subtract(1.0, s, out=s)
        np.multiply(s, length, out=out[at, :half])


def _series(coefficients: tuple[float, ...], square: Array) -> Array:
    total = square * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= square
    total += coefficients[0]
    return total


@lru_cache(maxsize=1)
def _compiled() -> Callable[[Array, float, Array], None] | None:
    """Return the same loop compiled, or None without numba (the extra ``fast``)."""
    try:
        from numba import njit
    except ImportError:
        return None
    s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10 = _SIN
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10 = _COS
    whole = _WHOLE

    # Horner's scheme written out, and one loop per half of a row: the compiler then vectorises
    # both.
    def loop(turns: Array, length: float, out: Array) -> None:
        n, half = turns.shape
        for i in range(n):
            t, x, y = turns[i], out[i, :half], out[i, half:]
            for j in range(half):
                r = t[j] - ((t[j] + whole) - whole)
                z = r * r
                s = ((((s10 * z + s9) * z + s8) * z + s7) * z + s6) * z + s5
                s = ((((s * z + s4) * z + s3) * z + s2) * z + s1) * z + s0
                s = s * r
                c = ((((c10 * z + c9) * z + c8) * z + c7) * z + c6) * z + c5
                c = ((((c * z + c4) * z + c3) * z + c2) * z + c1) * z + c0
                x[j] = (1.0 - s * s * 2.0) * length
                y[j] = c * s * 2.0 * length

    function: Callable[[Array, float, Array], None] = njit(nogil=True)(loop)
    return function


# Rows are rounded to steps of 2^-20 bandwidths, up to 256 bandwidths: 28 bits. Frequencies have the
# other 25 bits of a double's 53. No product of the two, and no sum of such products, is rounded.
_STEP_BITS = 20
_RANGE_BITS = 8
_FREQUENCY_BITS = 53 - _STEP_BITS - _RANGE_BITS
# In turns per bandwidth. A wavelength below a row's step carries no information about distance.
_FASTEST = 2.0**_STEP_BITS
_MOST_COLUMNS = 2**22


class Waves:
    """(cos(2 pi <w_j, x>), sin(2 pi <w_j, x>))_j / sqrt(m) for m frequencies w_j.

    **Guarantee**: an output row depends on its input row alone. Proof: the row's numbers are
    rounded to multiples of 2^-20 of size at most 2^8, those of w_j to multiples of 2^-b with 2^b
    sum |w_j| <= 2^25. Every partial sum of <w_j, x> is at most 2^53 steps of 2^-(20 + b): a double
    holds it, and the product is exact in any order of addition. `waves` is elementwise.

    Parameters
    ----------
    frequencies
        One per column, in turns per bandwidth; rounded as above.
    bandwidth
        The unit in which rows are measured.
    """

    def __init__(self, frequencies: Array, bandwidth: float) -> None:
        self.frequencies = rounded_frequencies(frequencies)
        self.bandwidth = bandwidth
        self._n_made = 0

    @property
    def n_columns(self) -> int:
        """The number of output columns."""
        return 2 * int(self.frequencies.shape[1])

    def __call__(self, rows: Any, out: Array) -> None:
        """Write the features of finite rows to ``out``."""
        if hasattr(rows, "tocsr"):
            rows = rows.astype(np.float64)
            rows.data = self._in_steps(rows.data)
        else:
            rows = self._in_steps(np.asarray(rows, dtype=np.float64))
        # Compile once it pays; the bits are the same.
        self._n_made += out.size
        compiled = self._n_made > WORTH_COMPILING
        waves(rows @ self.frequencies, math.sqrt(2.0 / self.n_columns), out, compiled=compiled)

    def _in_steps(self, values: Array) -> Array:
        with np.errstate(over="ignore"):  # infinity is clipped like any other value
            steps = values * (2.0**_STEP_BITS / self.bandwidth)
        np.rint(steps, out=steps)
        most = 2.0 ** (_STEP_BITS + _RANGE_BITS)
        np.clip(steps, -most, most, out=steps)
        steps *= 2.0**-_STEP_BITS
        return steps


def rounded_frequencies(frequencies: Array) -> Array:
    """Round frequencies, one per column in turns, so that products with them are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.kernels import rounded_frequencies
    >>> rounded_frequencies(np.array([[1 / 3], [0.5]])).ravel() * 2.0**25
    array([11184811., 16777216.])
    """
    limited = np.clip(frequencies, -_FASTEST, _FASTEST)
    n = len(limited)
    # 2^b sum |w| + n / 2 <= 2^25, since rounding adds at most n / 2
    room = 2.0**_FREQUENCY_BITS - n / 2
    sums = np.maximum(np.abs(limited).sum(axis=0), 2.0**-500)
    bits = np.floor(np.log2(room / sums * (1 - 2.0**-20)))
    scaled: Array = np.rint(np.ldexp(limited, bits.astype(int)))
    return np.asarray(np.ldexp(scaled, -bits.astype(int)))


class RandomFourierFeatures(FeatureMap):
    """Rows of norm 1 whose inner products are those of a kernel, up to 1 / sqrt(2 n_frequencies).

    Pairs of a cosine and a sine at random frequencies (Rahimi and Recht 2007; Algorithm 3 of
    Chaudhuri, Monteleoni and Sarwate 2011), orthogonal if the kernel is isotropic. A linear model
    of these features is a kernel machine, and the sensitivity to a record is that of a row of norm
    1.

    Parameters
    ----------
    kernel : Kernel or None
        `GaussianKernel`, `MaternKernel` or `LaplacianKernel`; None is GaussianKernel(). Without a
        declared bandwidth, it is derived from public bounds: see `Kernel.public_bandwidth`. It is
        never read off rows.
    n_frequencies : int, default=128
        The number of frequencies, each with a cosine and a sine. The error of the kernel is about
        1 / sqrt(2 n_frequencies), 6 % of its greatest value for 128. Half of that error takes four
        times as many features, each with its noise.
    seed : int or None
        The seed of the frequencies, which are public; None draws one at first use, stored in
        ``seed_``.
    row_norm : float or None
        The greatest norm of a row, for the bandwidth alone; None counts as 1. Rows are not scaled
        down to it.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each column, for the bandwidth alone.

    Attributes
    ----------
    seed_ : int
        The seed in use.
    bandwidth_ : float
        The bandwidth in use, once the columns are known.
    domain_ : Domain
        The domain of the rows, as declared or from the facts of a table.

    Notes
    -----
    **Guarantee**. Every output row has norm 1, to 1e-12, for any input. It is a function of its own
    record alone, to the last bit. It is equal on every machine up to the last bits of the
    frequencies. Input is rounded to steps of a millionth of the bandwidth, up to 256 bandwidths.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.kernels import GaussianKernel
    >>> from tacit.features.kernels import RandomFourierFeatures
    >>> rows = np.array([[0.0, 0.0], [0.6, 0.8]])
    >>> features = RandomFourierFeatures(GaussianKernel(1.0), 2048, seed=0).transform(rows)
    >>> np.linalg.norm(features, axis=1)
    array([1., 1.])
    >>> round(float(features[0] @ features[1]), 1), round(float(np.exp(-0.5)), 1)
    (0.6, 0.6)
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_frequencies: int = 128,
        *,
        seed: int | None = None,
        row_norm: float | None = None,
        ranges: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_frequencies = n_frequencies
        self.seed = seed
        self.row_norm = row_norm
        self.ranges = ranges

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Record the columns of a table, or its facts; no value is read."""
        self.__dict__.pop("seed_", None)  # left from an earlier fit
        super().fit(X)
        self._seed()
        if X is not None:
            self.bandwidth_ = self._kernel().public_bandwidth(self.domain_)
        return self

    def row_map(self, domain: Domain, bandwidth: float | None = None) -> Waves:
        """Return the row map on a domain, with the given bandwidth or that of the domain."""
        kernel, n = self._kernel(), checks.count("n_frequencies", self.n_frequencies)
        if domain.n_columns > _MOST_COLUMNS:
            raise ValueError(f"at most {_MOST_COLUMNS} columns, got {domain.n_columns}; drop some.")
        drawn = kernel.frequencies(domain.n_columns, n, Uniforms(self._seed()))
        return Waves(drawn / (2.0 * math.pi), bandwidth or kernel.public_bandwidth(domain))

    def output(self, domain: Domain) -> Domain:
        """Return the domain of the output rows: the unit sphere."""
        n = checks.count("n_frequencies", self.n_frequencies)
        names = [f"{wave}_{j}" for wave in ("cos", "sin") for j in range(n)]
        most = math.sqrt(1.0 / n)
        return Domain(tuple(names), 1.0, ((-most, most),) * (2 * n))

    def _kernel(self) -> Kernel:
        return kernel_of(self.kernel)

    def _seed(self) -> int:
        if self.seed is not None:
            self.seed_ = checks.count("seed", self.seed, least=0)
        elif not hasattr(self, "seed_"):
            self.seed_ = secrets.randbits(31)
        return self.seed_
