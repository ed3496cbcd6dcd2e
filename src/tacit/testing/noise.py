"""Check noise samplers: the right law, its exact epsilon, a lattice the data cannot change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.noise import Source, secure_source
from tacit.privacy.accounting.root_finding import decreasing_root

LogDensity = Callable[[Array], Array]


def _nodes(support: tuple[float, float], n_panels: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on equal panels."""
    x, w = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(*support, n_panels + 1)
    half = np.diff(edges)[:, None] / 2
    centre = (edges[:-1] + edges[1:])[:, None] / 2
    return (centre + half * x).ravel(), (half * w).ravel()


def exact_delta_1d(
    log_density_a: LogDensity,
    log_density_b: LogDensity,
    epsilon: float,
    support: tuple[float, float],
    n_panels: int = 500,
) -> float:
    """Return the exact delta at ``epsilon``, the worse of the two directions.

    delta = max( int (p - e^epsilon q)_+, int (q - e^epsilon p)_+ )

    Parameters
    ----------
    log_density_a, log_density_b
        Logarithms of the output densities on two neighbouring data sets; vectorised, normalised.
    support
        An interval that contains all mass that matters at the requested delta.
    n_panels
        Number of eight-point Gauss-Legendre panels; double it to check that the answer is stable.

    Examples
    --------
    >>> from tacit.testing import exact_delta_1d
    >>> normal = lambda x: -x**2 / 2 - 0.9189385332
    >>> delta = exact_delta_1d(normal, lambda x: normal(x - 1 / 3.730632), 1.0, (-12, 12))
    >>> round(delta, 8)
    1e-05
    """
    x, weight = _nodes(support, n_panels)
    log_p, log_q = log_density_a(x), log_density_b(x)

    def one_way(log_top: Array, log_bottom: Array) -> float:
        # (p - e^eps q)_+ = p (1 - e^{eps - loss})_+ keeps its digits for tiny p
        gap = np.minimum(epsilon - (log_top - log_bottom), 0.0)
        return float(np.sum(weight * np.exp(log_top) * -np.expm1(gap)))

    return max(one_way(log_p, log_q), one_way(log_q, log_p))


def exact_epsilon_1d(
    log_density_a: LogDensity,
    log_density_b: LogDensity,
    support: tuple[float, float],
    delta: float = 0.0,
    n_panels: int = 500,
) -> float:
    """Return the exact epsilon at ``delta``, the worse of the two directions.

    At delta 0 it is the greatest absolute log ratio on the nodes of ``support``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.testing import exact_epsilon_1d
    >>> laplace = lambda x: -np.abs(x) - np.log(2)
    >>> round(exact_epsilon_1d(laplace, lambda x: laplace(x - 0.5), (-30, 30)), 6)
    0.5
    """
    x, _ = _nodes(support, n_panels)
    if delta == 0.0:
        return float(np.max(np.abs(log_density_a(x) - log_density_b(x))))

    def excess(epsilon: float) -> float:
        at = exact_delta_1d(log_density_a, log_density_b, epsilon, support, n_panels)
        return float(np.log(max(at, 1e-300) / delta))

    return 0.0 if excess(0.0) <= 0.0 else decreasing_root(excess, 1.0, 1e-10)


Sampler = Callable[[Array, Source], Array]

_ACCEPT, _REJECT = 1e-9, 1e-12  # p-values of the stated law, and of noise scaled by 0.9 or 1.1
_LOW_BITS = 64  # residues of a multiple that must be equally frequent


class EvenlySpacedWords:
    """A deterministic source whose first ``total`` words divide [0, 2^64) evenly.

    Further words, which refine a draw, are midpoints.

    Examples
    --------
    >>> from tacit.testing.noise import EvenlySpacedWords
    >>> EvenlySpacedWords(2).words(3).tolist()
    [4611686018427387904, 13835058055282163712, 9223372036854775808]
    """

    is_secure = False

    def __init__(self, total: int) -> None:
        self._total = total
        self._given = 0

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Return the next n midpoints of ``total`` equal parts."""
        step = 2**64 // self._total
        index = np.arange(self._given, self._given + n, dtype=np.uint64)
        self._given += n
        even = index * np.uint64(step) + np.uint64(step // 2)
        return np.where(index < self._total, even, np.uint64(2**63))


def check_noise(
    sampler: Sampler,
    cdf: Callable[[Array], Array],
    spacing: float,
    *,
    inputs: Sequence[float] = (0.0, 1.0, np.pi * 1e6, 2.0**-30),
    n_samples: int = 100_000,
    enumerate_words: bool = True,
) -> None:
    """Raise AssertionError unless ``sampler`` adds the stated noise on the stated lattice.

    Guarantee: 1. Noise around every input follows ``cdf`` (Kolmogorov-Smirnov, p > 1e-9), and
    the same test rejects noise scaled by 0.9 and 1.1, so it has power. 2. Every output is a
    multiple of ``spacing`` for any input. 3. The low bits of the multiple are uniform for every
    input (no missing outputs, Mironov 2012; no precision that depends on the input, Haney et al.
    2022). 4. With words enumerated evenly, every quantile is within one step of the stated law (one
    word per sample; pass ``enumerate_words=False`` otherwise).

    Parameters
    ----------
    sampler
        ``sampler(values, source)`` returns values plus independent noise on each.
    cdf
        The stated law of the noise.
    spacing
        The stated lattice spacing.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import ndtr
    >>> from tacit.noise import Norm
    >>> from tacit.noise.exact.lattice import lattice_spacing
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.gaussian import gaussian
    >>> from tacit.privacy import Relation
    >>> from tacit.testing import check_noise
    >>> def sampler(values, source):
    ...     bounded = Bounded(values, 1.0, Norm.L2, Relation.ADD_REMOVE)
    ...     return gaussian(bounded, 2.0, source).value
    >>> check_noise(sampler, lambda x: ndtr(x / 2.0), lattice_spacing(2.0), n_samples=20_000)
    """
    for value in inputs:
        values = np.full(n_samples, value)
        outputs = np.asarray(sampler(values, secure_source()), dtype=np.float64)
        _check_lattice(value, outputs, spacing)
        _check_law(value, outputs - value, cdf)
    if enumerate_words:
        _check_enumeration(sampler, cdf, spacing, n_samples)


def _check_lattice(value: float, outputs: Array, spacing: float) -> None:
    from scipy.stats import chisquare

    index = outputs / spacing
    off = np.count_nonzero(index != np.rint(index))
    assert off == 0, f"{off} of {outputs.size} outputs around {value} are off the lattice"
    counts = np.bincount(np.mod(index, _LOW_BITS).astype(np.int64), minlength=_LOW_BITS)
    p = float(chisquare(counts).pvalue)
    assert p > _ACCEPT, f"low bits of outputs around {value} are not uniform (p = {p:.2g})"


def _check_law(value: float, noise: Array, cdf: Callable[[Array], Array]) -> None:
    from scipy.stats import kstest

    p = float(kstest(noise, cdf).pvalue)
    assert p > _ACCEPT, f"noise around {value} does not follow the stated law (p = {p:.2g})"
    for factor in (0.9, 1.1):
        wrong = float(kstest(noise * factor, cdf).pvalue)
        limit = _REJECT if noise.size >= 100_000 else 1e-3
        assert wrong < limit, f"noise scaled by {factor} would pass (p = {wrong:.2g}): no power"


def _check_enumeration(
    sampler: Sampler, cdf: Callable[[Array], Array], spacing: float, n: int
) -> None:
    outputs = np.sort(sampler(np.zeros(n), EvenlySpacedWords(n)))
    # The i-th of n even quantiles rounds to the lattice: cdf half a step on either side encloses
    # it.
    quantiles = (np.arange(n) + 0.5) / n
    below, above = cdf(outputs - 0.51 * spacing), cdf(outputs + 0.51 * spacing)
    wrong = np.count_nonzero((below > quantiles + 1e-9) | (above < quantiles - 1e-9))
    assert wrong == 0, f"{wrong} of {n} enumerated quantiles are not those of the stated law"
