"""Compute epsilon and delta of a one-dimensional mechanism from two densities, by quadrature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.privacy.roots import decreasing_root

Array = npt.NDArray[np.float64]
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
