import math

import mpmath
import numpy as np
import pytest

from tacit.local import HalfSphere, PrivUnit
from tacit.local.sanitizers.cap import (
    _SHORTEST,
    LEARNER_RATE,
    _chords,
    _log_phi,
    _near_zero,
    _over_lengths_of_g,
    best_gamma,
    cap_variance,
    closed_variance,
    mean_length,
    second_moment,
    widest_cap,
)
from tests.local.sanitizers.helpers import exact_logarithm, gradient, reports

CAPS = [(d, e, best) for d in (2, 3, 5, 50, 300) for e in (0.3, 1.0, 4.0, 8.0) for best in (0, 1)]
# Of those whose moments take long, a few of every kind.
FEW = [
    case
    if case[0] in (2, 5, 300) and case[1] in (1.0, 8.0)
    else pytest.param(*case, marks=pytest.mark.slow)
    for case in CAPS
]


def _cap(d, epsilon, best):
    return widest_cap(d, best_gamma(d, epsilon) if best else 0.0, epsilon)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 49, 299])
def test_the_bound_on_phi(k):
    x = np.geomspace(1e-3, 300.0, 60)
    with mpmath.workdps(40):
        logs = [mpmath.log(mpmath.hyp0f1(mpmath.mpf(k) / 2, mpmath.mpf(y) ** 2 / 4)) for y in x]
    exact = np.array(logs, dtype=np.float64)
    bound = _log_phi(k, x.copy())
    assert np.all(bound >= exact * (1.0 - 1e-12))
    assert np.all(exact <= x**2 / (2 * k) * (1.0 + 1e-12))
    # tight: to the second order at zero, and never far off
    assert bound[0] == pytest.approx(x[0] ** 2 / (2 * k), rel=1e-5, abs=0.0)
    assert np.all(bound - exact <= 0.6 * np.log1p(x))
    # one half more in c, and it is no bound
    c, b = k / 2 - 0.5, k / 2 + 1.5
    root = np.sqrt(x**2 + b**2)
    assert np.any((root - b) - c * np.log((c + root) / (c + b)) < exact - 1e-6)


@pytest.mark.parametrize(("d", "epsilon", "best"), FEW)
def test_the_constant_holds_and_is_tight(d, epsilon, best):
    cap = _cap(d, epsilon, best)
    mean = mean_length(cap)
    reach = LEARNER_RATE / mean
    bound = cap_variance(cap, reach)
    greatest = 0.0
    for z in np.geomspace(0.05, reach, 9):
        for angle in (0.0, 0.5, 1.1, math.pi / 2):
            logarithm = exact_logarithm(cap, mean, np.linspace(-1.0, 1.0, 21), angle, z)
            greatest = max(greatest, 2.0 * logarithm.max() / z**2)
    assert greatest <= bound
    # The variance of some gradient is nearly as large: the constant cannot be 2 % smaller.
    along = second_moment(cap)
    greatest = max(greatest, along, (1.0 - along) / (d - 1))
    assert greatest >= 0.98 * bound
    assert bound <= 1.0 if greatest < 0.98 else bound <= 1.01


@pytest.mark.parametrize("sanitizer", [HalfSphere(1.0, 5), PrivUnit(2.0, 5), PrivUnit(1.0, 50)])
@pytest.mark.parametrize("length", [0.0, 0.6, 1.0])
def test_reports_obey_the_tail(sanitizer, length):
    d, tail = sanitizer.n_features, sanitizer.tail
    truth = gradient(d, length)
    u = truth / length if length else gradient(d)
    other = np.linalg.svd(u[None, :])[2][1]
    xi = reports(sanitizer, truth, 400_000 if d == 5 else 40_000) - truth
    for a in (u, -u, other, (u + other) / math.sqrt(2.0)):
        along = xi @ a
        for v in (tail.largest_rate / 3, tail.largest_rate):
            sample = np.exp(v * along)
            estimate, error = sample.mean(), sample.std() / math.sqrt(sample.size)
            assert estimate - 5.0 * error <= math.exp(v**2 * tail.variance / 2)
    # With a fifth of the constant the same test would fail somewhere.
    v = tail.largest_rate
    worst = max(np.exp(v * (xi @ a)).mean() for a in (u, -u, other))
    assert worst > math.exp(v**2 * tail.variance / 5 / 2)


@pytest.mark.parametrize(("d", "epsilon", "best"), CAPS)
def test_the_closed_form_is_a_bound_too(d, epsilon, best):
    cap = _cap(d, epsilon, best)
    # Holley and Stroock, Hoeffding: never below what the quadrature finds, but for its slack.
    assert closed_variance(cap) >= cap_variance(cap, LEARNER_RATE / mean_length(cap)) / 1.01


@pytest.mark.parametrize(("d", "epsilon", "best"), CAPS)
def test_short_lengths(d, epsilon, best):
    cap = _cap(d, epsilon, best)
    along = second_moment(cap)
    variance = max(along, (1.0 - along) / (d - 1))
    assert variance <= _near_zero(cap) <= variance * 1.002
    for z in (_SHORTEST, _SHORTEST / 4):
        for angle in (0.0, math.pi / 2):
            r = np.linspace(-1.0, 1.0, 21)
            logarithm = exact_logarithm(cap, mean_length(cap), r, angle, z).max()
            assert 2.0 * logarithm / z**2 <= _near_zero(cap) + 1e-9


def test_chords_bound_a_convex_function_between_its_points():
    lengths = np.geomspace(0.01, 10.0, 40)
    for f in (lambda z: z**2 / 2, lambda z: np.logaddexp(z, -z) - math.log(2.0)):
        fine = np.linspace(0.01, 10.0, 10_000)
        truth = np.max(2.0 * f(fine) / fine**2)
        assert truth <= _chords(lengths, f(lengths)) <= truth * 1.02


def test_the_worst_length_of_g():
    rng = np.random.default_rng()
    down, up = np.sort(rng.uniform(-2.0, 5.0, (2, 100)), axis=0)
    shift = rng.uniform(0.0, 0.7, 100)
    r = np.linspace(-1.0, 1.0, 4001)[:, None]
    grid = np.log((1 + r) / 2 * np.exp(up) + (1 - r) / 2 * np.exp(down)) - r * shift
    found = _over_lengths_of_g(up, down, shift)
    assert np.all(found >= grid.max(axis=0) - 1e-12)
    assert np.all(found <= grid.max(axis=0) + 1e-5)


@pytest.mark.parametrize("d", [1, 2, 7, 100, 10_000])
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 30.0, 100.0])
def test_the_tail_exists_everywhere(d, epsilon):
    for sanitizer in (HalfSphere(epsilon, d, 3.0), PrivUnit(epsilon, d, 3.0)):
        tail = sanitizer.tail
        assert tail.largest_rate >= LEARNER_RATE / 3.0
        # at least the variance of a coordinate, at most Hoeffding's constant
        assert 1.0 / d <= tail.variance / sanitizer.radius**2 <= 1.0 + 2.0**-18
