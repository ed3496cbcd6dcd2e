from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import scipy.special

from tacit.noise.exact import sphere_coordinate
from tacit.noise.exact.interval_arithmetic import Arithmetic, ends
from tacit.noise.exact.sphere_coordinate import Latitude

DIMENSIONS = [2, 3, 4, 5, 10, 51, 400]


def _tail(d, t):
    with mpmath.workdps(120):
        t = mpmath.mpf(t.numerator) / t.denominator
        half = mpmath.mpf(1) / 2
        tail = mpmath.betainc(mpmath.mpf(d - 1) / 2, half, 0, 1 - t * t, regularized=True) / 2
        return _fraction(tail if t >= 0 else 1 - tail)


def _fraction(x):
    return Fraction(*mpmath.libmp.to_rational(x._mpf_))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_tails_are_enclosed(d):
    for t in np.random.default_rng().uniform(-1, 1, 8) * min(1.0, 5 / np.sqrt(d)):
        t = Fraction(float(t))
        low, high = Latitude(d).enclose_tail(t, 100)
        assert high - low <= low / 2**100
        assert low - low / 2**95 <= _tail(d, t) <= high + high / 2**95


def test_tails_of_two_and_three_dimensions():
    t = Fraction(3, 5)
    low, high = Latitude(3).enclose_tail(t, 80)
    assert low <= Fraction(1, 5) <= high
    low, high = Latitude(2).enclose_tail(Fraction(1, 2), 80)
    assert low <= Fraction(1, 3) <= high


@pytest.mark.parametrize("d", [2, 3, 10, 50])
def test_the_density_and_mills_ratio(d):
    law = Latitude(d)
    tail = np.geomspace(1e-6, 0.5, 400)
    density = law.density(tail)
    assert density[-1] == pytest.approx(law.peak, rel=1e-12, abs=0.0)
    # the bound on which all margins rest, and that it is reached
    assert np.max(tail / density) <= law.mills * (1 + 1e-12)
    assert tail[-1] / density[-1] == pytest.approx(law.mills, rel=1e-12, abs=0.0)
    slope = np.gradient(tail, law.quantile(tail))
    assert -slope[200] == pytest.approx(density[200], rel=1e-2)


def _quantile(d, tail):
    arithmetic = Arithmetic(220)
    exact = Fraction(float(tail))
    t, _ = Latitude(d).enclose_quantile(
        arithmetic.between(exact, exact + exact / 2**120), arithmetic
    )
    return sum(ends(t)) / 2


@pytest.mark.parametrize("d", [2, 3, 4, 10, 50, 51, 1000])
def test_the_table_is_far_within_its_error(d):
    rng = np.random.default_rng()
    law = Latitude(d)
    # random points, ends of segments and of octaves
    segments = 2.0 ** -rng.integers(2, 20, 6) * (1 + rng.integers(0, 33, 6) / 32)
    tails = np.concatenate(
        [0.5 * 2.0 ** -rng.uniform(0, 30, 20), segments, np.nextafter(segments, 0), [0.5, 0.25]]
    )
    tails = np.minimum(tails, 0.5)
    for tail, t in zip(tails, law.fast_quantile(tails, 40), strict=True):
        error = abs(float(Fraction(float(t)) - _quantile(d, tail)))
        assert error <= law.mills * law.quantile_error / 8 + 2.0**-53


def test_a_shorter_table_would_be_seen(monkeypatch):
    law = Latitude(10)
    tails = np.random.default_rng().uniform(0.01, 0.4, 1000)
    whole = law.fast_quantile(tails, 20)
    sphere_coordinate._taylor_table.cache_clear()
    monkeypatch.setattr(sphere_coordinate, "_DEGREE", 5)
    try:
        error = np.max(np.abs(law.fast_quantile(tails, 20) - whole))
    finally:
        sphere_coordinate._taylor_table.cache_clear()
    assert error > 2 * law.mills * law.quantile_error


def test_tails_below_the_table_are_unknown():
    assert np.isnan(Latitude(5).fast_quantile(np.array([2.0**-40, 0.0]), 20)).all()
    assert np.isfinite(Latitude(5).fast_quantile(np.array([2.0**-20]), 20)).all()


@pytest.mark.parametrize("d", [2, 3, 4, 9, 50])
@pytest.mark.parametrize("tail", [0.5, 0.499, 0.75, 1e-3, 1e-18, 1 - 1e-9])
def test_quantiles_are_enclosed(d, tail):
    low = Fraction(tail)
    high = low + Fraction(1, 2**150)
    arithmetic = Arithmetic(300)
    t, r = Latitude(d).enclose_quantile(arithmetic.between(low, high), arithmetic)
    t_low, t_high = ends(t)
    assert t_high - t_low < Fraction(1, 2**60)
    # tails fall with t: the ends of t have tails beyond the ends of the interval
    assert _tail(d, t_low) >= high * (1 - Fraction(1, 2**250))
    assert _tail(d, t_high) <= low * (1 + Fraction(1, 2**250))
    r_low, r_high = ends(r)
    assert r_low * r_low + t_low * t_low <= 1 + Fraction(1, 2**40)
    assert float(r_low) == pytest.approx(float(r_high), rel=1e-9, abs=0.0)
    assert float(r_low) ** 2 + float(t_low) ** 2 == pytest.approx(1.0, abs=1e-12)


def test_too_little_precision_is_said():
    arithmetic = Arithmetic(60)
    tail = arithmetic.between(Fraction(1, 2**70), Fraction(1, 2**69))
    assert Latitude(50).enclose_quantile(tail, arithmetic) is None
    assert (
        Latitude(5).enclose_quantile(arithmetic.between(Fraction(0), Fraction(1, 9)), arithmetic)
        is None
    )


def test_precision_may_grow_without_end():
    # as the exact path draws more bits, the enclosure must keep narrowing
    for n_bits in (64, 256, 1024):
        arithmetic = Arithmetic(n_bits + 80)
        low = Fraction(1, 3)
        tail = arithmetic.between(low, low + Fraction(1, 1 << n_bits))
        t, _ = Latitude(6).enclose_quantile(tail, arithmetic)
        assert ends(t)[1] - ends(t)[0] < Fraction(1, 1 << (n_bits - 6))


def test_the_error_of_quantiles_is_that_of_the_proof():
    # cap_mechanism.md, section 3
    assert Latitude(2**16).quantile_error == 2.0**-45
    assert Latitude(2**18).quantile_error == 2.0**-43


def test_a_step_of_newton_mends_the_inverse(monkeypatch):
    law, tails = Latitude(10), np.array([0.4, 0.1, 1e-3])
    good, inverse = law.quantile(tails), scipy.special.betainccinv
    for off in (2.0**-20, -(2.0**-20)):
        monkeypatch.setattr(
            scipy.special, "betainccinv", lambda a, b, y, off=off: inverse(a, b, y) * (1 + off)
        )
        # an error of 2^-20 is left with about its square
        assert np.max(np.abs(law.quantile(tails) - good)) < 2.0**-34
        monkeypatch.undo()


@pytest.mark.parametrize("d", [2, 3, 10])
def test_the_quantile_of_an_interval_about_a_half_is_about_zero(d):
    arithmetic = Arithmetic(200)
    half, tiny = Fraction(1, 2), Fraction(1, 2**80)
    t, _ = Latitude(d).enclose_quantile(arithmetic.between(half - tiny, half + tiny), arithmetic)
    low, high = ends(t)
    assert -Fraction(1, 2**70) < low < 0 < high < Fraction(1, 2**70)


@pytest.mark.parametrize("bits", [8, 12, 40])
def test_nested_sums_are_rounded_outwards(bits):
    arithmetic = Arithmetic(bits)
    for last in (2, 4, 8):
        for k in range(0, 1000, 7):
            x = arithmetic.between(Fraction(k, 1000), Fraction(k + 1, 1000))
            low, high = ends(x)
            below = above = Fraction(1)
            for j in range(last, 1, -2):
                below = 1 + Fraction(j, j + 1) * low * below
                above = 1 + Fraction(j, j + 1) * high * above
            found = ends(sphere_coordinate._nested(x, 2, last, arithmetic))
            assert found[0] <= below
            assert above <= found[1]


@pytest.mark.parametrize("off", [0.0, 2.0**-30, -(2.0**-30)])
@pytest.mark.parametrize("t", [Fraction(-9, 10), Fraction(0), Fraction(1, 3), Fraction(99, 100)])
def test_arc_cosines_hold_the_truth_whatever_the_guess(t, off, monkeypatch):
    real = mpmath.mp.clone()
    real.prec = 300
    exact = real.acos(real.mpf(t.numerator) / t.denominator)
    guess = SimpleNamespace(prec=0, mpf=real.mpf, acos=lambda x: real.acos(x) + off)
    monkeypatch.setattr(mpmath.mp, "clone", lambda: guess)
    low, high = ends(sphere_coordinate._arc_cosine(t, 100))
    assert low < _fraction(exact) < high
    assert high - low < max(Fraction(1, 2**80), 10 * Fraction(abs(off)))
