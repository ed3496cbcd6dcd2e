"""Random Fourier features: rows whose inner products are nearly those of a kernel.

    x = cos(2 pi t), y = sin(2 pi t)

With r = t - round(t), of size at most 1/2, s = sin(pi r) and c = cos(pi r) by their Taylor series
of 11 terms, whose rest is below 3e-17, and x = 1 - 2 s^2, y = 2 s c. Rounding to the nearest turn
is exact, so that there is nothing to reduce, and every operation is on one number at a time: the
compiled loop and NumPy give the same bits, whatever stands around a number.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.features.feature_map import Domain, FeatureMap
from tacit.features.kernels import Kernel, Uniforms, kernel_of

Array = npt.NDArray[np.float64]

# t + _WHOLE - _WHOLE is t rounded to a whole number, for |t| <= 2^51.
_WHOLE = 1.5 * 2.0**52
_TERMS = 11
_SIN = tuple((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(_TERMS))
_COS = tuple((-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(_TERMS))
# Compiling takes about as long as so many numbers do without.
WORTH_COMPILING = 1 << 26
# Rows at a time without a compiler: what they need stays in the cache.
_TILE = 1 << 14


def waves(turns: Array, length: float, out: Array, *, compiled: bool = False) -> None:
    """Write ``length`` times the cosines, then the sines, of every row of ``turns`` to ``out``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.fourier import waves
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
    """Return the same loop in machine code, or None without numba (the extra ``fast``)."""
    try:
        from numba import njit
    except ImportError:
        return None
    s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10 = _SIN
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10 = _COS
    whole = _WHOLE

    # Horner written out, and each half of a row by itself: so the loop becomes vector code.
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


# Rows are read in steps of 2^-20 bandwidths, up to 256 of them: 28 bits. Frequencies have the other
# 25 bits of a double's 53, so that no product of the two, and no sum of such products, is rounded.
_STEP_BITS = 20
_RANGE_BITS = 8
_FREQUENCY_BITS = 53 - _STEP_BITS - _RANGE_BITS
# Turns a bandwidth. A wave that is shorter than a row's step tells rows apart and nothing else.
_FASTEST = 2.0**_STEP_BITS
_MOST_COLUMNS = 2**22


class Waves:
    """(cos(2 pi <w_j, x>), sin(2 pi <w_j, x>))_j / sqrt(m) for m frequencies w_j.

    **Guarantee**: a row depends on the row it is made of alone. Proof: numbers of the row are
    rounded to multiples of 2^-20 of size at most 2^8, those of w_j to multiples of 2^-b with
    2^b sum |w_j| <= 2^25, so that every partial sum of <w_j, x> is at most 2^53 steps of
    2^-(20 + b): a double holds it, and the product is exact in whichever order it is added up.
    `waves` goes number by number.

    Parameters
    ----------
    frequencies
        One a column, in turns per bandwidth; rounded as above.
    bandwidth
        The unit in which rows are measured.
    """

    def __init__(self, frequencies: Array, bandwidth: float) -> None:
        self.frequencies = rounded_frequencies(frequencies)
        self.bandwidth = bandwidth
        self._n_made = 0

    @property
    def n_columns(self) -> int:
        """How many numbers a row has that it makes."""
        return 2 * int(self.frequencies.shape[1])

    def __call__(self, rows: Any, out: Array) -> None:
        """Write what it makes of finite rows."""
        if hasattr(rows, "tocsr"):
            rows = rows.astype(np.float64)
            rows.data = self._in_steps(rows.data)
        else:
            rows = self._in_steps(np.asarray(rows, dtype=np.float64))
        # Compiled from where it pays, with the same bits.
        self._n_made += out.size
        compiled = self._n_made > WORTH_COMPILING
        waves(rows @ self.frequencies, math.sqrt(2.0 / self.n_columns), out, compiled=compiled)

    def _in_steps(self, values: Array) -> Array:
        with np.errstate(over="ignore"):  # infinity is clipped like any other
            steps = values * (2.0**_STEP_BITS / self.bandwidth)
        np.rint(steps, out=steps)
        most = 2.0 ** (_STEP_BITS + _RANGE_BITS)
        np.clip(steps, -most, most, out=steps)
        steps *= 2.0**-_STEP_BITS
        return steps


def rounded_frequencies(frequencies: Array) -> Array:
    """Return frequencies, one a column in turns, rounded so that no product of theirs is.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features.fourier import rounded_frequencies
    >>> rounded_frequencies(np.array([[1 / 3], [0.5]])).ravel() * 2.0**25
    array([11184811., 16777216.])
    """
    limited = np.clip(frequencies, -_FASTEST, _FASTEST)
    n = len(limited)
    # 2^b sum |w| + n / 2 <= 2^25: what rounding may add is n / 2
    room = 2.0**_FREQUENCY_BITS - n / 2
    sums = np.maximum(np.abs(limited).sum(axis=0), 2.0**-500)
    bits = np.floor(np.log2(room / sums * (1 - 2.0**-20)))
    scaled: Array = np.rint(np.ldexp(limited, bits.astype(int)))
    return np.asarray(np.ldexp(scaled, -bits.astype(int)))


class RandomFourierFeatures(FeatureMap):
    """Rows of norm 1 whose inner products are those of a kernel, up to 1 / sqrt(2 n_frequencies).

    Pairs of a cosine and a sine at random frequencies (Rahimi and Recht 2007; Algorithm 3 of
    Chaudhuri, Monteleoni and Sarwate 2011), orthogonal where the kernel is round. A linear model of
    these features is a kernel machine, and a record moves it by no more than a row of norm 1 does.

    Parameters
    ----------
    kernel : Kernel or None
        `GaussianKernel`, `MaternKernel` or `LaplacianKernel`, with a bandwidth or without; None is
        GaussianKernel(). Without, the bandwidth comes from public bounds: see
        `Kernel.public_bandwidth`. It is never read off rows.
    n_frequencies : int, default=128
        How many frequencies, each with a cosine and a sine. The kernel is off by about
        1 / sqrt(2 n_frequencies), 6 % of its greatest value for 128; half of that takes four times
        as many features, each with its noise.
    seed : int or None
        Of the frequencies, which are public; None draws one when it is first needed, and keeps it
        in ``seed_``.
    row_norm : float or None
        The greatest norm of the rows to come, for the bandwidth alone; None counts as 1. Rows are
        not scaled down to it.
    ranges : (float, float), sequence of such pairs, or None
        The least and greatest value of each column, for the bandwidth alone.

    Attributes
    ----------
    seed_ : int
        The seed in use.
    bandwidth_ : float
        The bandwidth in use, where the columns are known.
    domain_ : Domain
        Where rows may be, as declared or as the facts of a table say.

    Notes
    -----
    **Guarantee**. Every row has norm 1, to 1e-12, whatever it is made of; it is a function of its
    own record alone, to the last bit, and the same on every machine but for the last bits of the
    frequencies. Numbers are read in steps of a millionth of the bandwidth, up to 256 bandwidths.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.features import GaussianKernel
    >>> from tacit.features.fourier import RandomFourierFeatures
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
        """Note the columns of a table, or the facts that come with it; no value is read."""
        self.__dict__.pop("seed_", None)  # of an earlier fit
        super().fit(X)
        self._seed()
        if X is not None:
            self.bandwidth_ = self._kernel().public_bandwidth(self.domain_)
        return self

    def row_map(self, domain: Domain, bandwidth: float | None = None) -> Waves:
        """Return what makes a row of one in the domain, with a bandwidth for it if one is given."""
        kernel, n = self._kernel(), checks.count("n_frequencies", self.n_frequencies)
        if domain.n_columns > _MOST_COLUMNS:
            raise ValueError(f"at most {_MOST_COLUMNS} columns, got {domain.n_columns}.")
        drawn = kernel.frequencies(domain.n_columns, n, Uniforms(self._seed()))
        return Waves(drawn / (2.0 * math.pi), bandwidth or kernel.public_bandwidth(domain))

    def output(self, domain: Domain) -> Domain:
        """Return where the rows it makes are: on the sphere."""
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
