import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tacit.noise import Cap, Norm, recording, replaying, secure_source, seeded_source
from tacit.noise.bounded import Bounded
from tacit.noise.spherical_cap import cap
from tacit.privacy import NonPrivate, PureEpsilon, Relation

MODULE = sys.modules["tacit.noise.spherical_cap"]


def _share(d, gamma):
    if d == 1:
        return mpmath.mpf(1) / 2
    gamma = mpmath.mpf(gamma)
    half = mpmath.mpf(1) / 2
    tail = mpmath.betainc(mpmath.mpf(d - 1) / 2, half, 0, 1 - gamma**2, regularized=True) / 2
    return tail if gamma >= 0 else 1 - tail


def _loss(law):
    """Return log of the largest ratio of densities, to 60 digits."""
    q, p = _share(law.d, law.gamma), mpmath.mpf(law.p)
    return mpmath.log(p / q / ((1 - p) / (1 - q)))


def _laws():
    rng = np.random.default_rng()
    yield Cap(1, 1.0, 0.75)
    yield Cap(2, 0.99999, 1 - 2**-53)
    for d in (1, 2, 3, 10, 50, 301):
        for gamma in rng.uniform(-1, 1, 4) * min(0.9, 4 / math.sqrt(d)):
            share = float(_share(d, float(gamma)))
            yield Cap(d, float(gamma), share + (1 - share) * float(rng.uniform(0.1, 1)))


def test_epsilon_is_never_below_the_loss():
    with mpmath.workdps(60):
        for law in _laws():
            loss = _loss(law)
            assert mpmath.mpf(law.epsilon) >= loss
            # and a double below would be: the bound is the least double, within a unit
            assert mpmath.mpf(math.nextafter(law.epsilon, 0)) < loss * (1 + mpmath.mpf(2) ** -100)


def test_epsilon_rounded_down_would_be_seen(monkeypatch):
    monkeypatch.setattr(MODULE, "_epsilon", lambda law: math.nextafter(_nearest(law), 0.0))
    with pytest.raises(AssertionError):
        test_epsilon_is_never_below_the_loss()


def _nearest(law):
    with mpmath.workdps(60):
        return float(_loss(law))


def test_the_half_sphere_is_randomised_response():
    for d in (1, 2, 50):
        law = Cap(d, 0.0, 0.75)
        assert law.share == 0.5
        assert law.epsilon == pytest.approx(math.log(3), rel=1e-15)
        assert law.event == PureEpsilon(law.epsilon, Relation.REPLACE)


@pytest.mark.parametrize(("d", "bits"), [(1, 20), (2, 20), (4, 21), (50, 22), (2**20, 30)])
def test_the_spacing_is_a_power_of_two_and_steps_fit_32_bits(d, bits):
    law = Cap(d, 0.0, 0.9)
    assert law.spacing == 2.0**-bits
    assert law.spacing == Cap(d, 0.0, 0.6).spacing
    assert 1.0 / law.spacing < 2**31


def test_shares_are_enclosed():
    low, high = Cap(7, 0.3, 0.9).enclose_share(200)
    assert 0 < high - low < Fraction(1, 2**200)
    with mpmath.workdps(80):
        assert float(low) == pytest.approx(float(_share(7, 0.3)), rel=1e-15)


def test_laws_that_make_no_sense_are_refused():
    for gamma in (-1.0, 1.0, 1.5, math.nan):
        with pytest.raises(ValueError, match="gamma must be in"):
            Cap(3, gamma, 0.9)
    for p in (0.0, 1.0, -0.5, math.nan, 2.0**-12):
        with pytest.raises(ValueError, match="p must be in"):
            Cap(3, 0.1, p)
    with pytest.raises(ValueError, match="not above the cap's share"):
        Cap(3, 0.0, 0.5)
    with pytest.raises(ValueError, match="share of"):
        Cap(1000, 0.9, 0.9)
    with pytest.raises(ValueError, match="d must be in"):
        Cap(0, 0.1, 0.9)
    for bad in ((3.0, 0.1, 0.9), (3, "0", 0.9), (3, 0.1, None), (True, 0.0, 0.9)):
        with pytest.raises(TypeError):
            Cap(*bad)


def _gradient(value, sensitivity=2.0, norm=Norm.L2):
    return Bounded(value, sensitivity, norm, Relation.REPLACE)


def test_a_release():
    law = Cap(4, 0.3, 0.9)
    release = cap(_gradient(np.array([0.1, 0.2, 0.3, 0.4])), law)
    assert release.event == PureEpsilon(law.epsilon, Relation.REPLACE)
    assert release.value.shape == (4,)
    assert np.linalg.norm(release.value) == pytest.approx(1.0, abs=1e-5)
    steps = release.value / law.spacing
    assert np.array_equal(steps, np.rint(steps))
    one = cap(_gradient(-0.5), Cap(1, 0.0, 0.9)).value
    assert isinstance(one, float)
    assert abs(one) == 1.0
    seeded = cap(_gradient(-0.5), Cap(1, 0.0, 0.9), seeded_source(1))
    assert isinstance(seeded.event, NonPrivate)


def test_a_release_leans_towards_the_value():
    law, value = Cap(3, 0.4, 0.97), np.array([0.0, -1.5, 2.0])
    source = secure_source()
    n = 4000
    draws = np.array([cap(_gradient(value, 5.0), law, source).value for _ in range(n)])
    share = np.mean(draws @ value / 2.5 >= 0.4)
    assert abs(share - 0.97) < 7 * math.sqrt(0.97 * 0.03 / n)


def test_zero_leans_nowhere():
    source = secure_source()
    n = 4000
    law = Cap(2, 0.6, 0.99)
    draws = np.array([cap(_gradient(np.zeros(2)), law, source).value for _ in range(n)])
    assert np.max(np.abs(draws.mean(axis=0))) < 7 / math.sqrt(n)


def test_a_tape_replays():
    law = Cap(2, 0.3, 0.9)
    with recording() as tape:
        first = cap(_gradient(np.array([0.0, 1.0])), law).value
    with replaying(tape):
        assert np.array_equal(cap(_gradient(np.array([0.0, -1.0])), law).value, first)
    with pytest.raises(AssertionError, match=r"(public|event) differs"), replaying(tape):
        cap(_gradient(np.array([0.0, -1.0])), Cap(2, 0.3, 0.8))


def test_bad_values_are_refused_before_anything_is_drawn():
    class Never:
        is_secure = True

        def words(self, n):
            raise AssertionError("drawn")

    law = Cap(2, 0.3, 0.9)
    with pytest.raises(ValueError, match="longer than norm"):
        cap(_gradient(np.array([1.0, 0.1])), law, Never())
    with pytest.raises(ValueError, match="about 2 coordinates"):
        cap(_gradient(np.zeros(3)), law, Never())
    with pytest.raises(ValueError, match="about 2 coordinates"):
        cap(_gradient(np.zeros((1, 2))), law, Never())
    with pytest.raises(ValueError, match=r"needs .*Norm\.L2"):
        cap(_gradient(np.zeros(2), norm=Norm.LINF), law, Never())
    with pytest.raises(TypeError, match="law must be a Cap"):
        cap(_gradient(np.zeros(2)), 1.0, Never())
    with pytest.raises(TypeError, match="accepts a Bounded"):
        cap(np.zeros(2), law, Never())


def test_epsilon_takes_the_worse_end_of_the_share(monkeypatch):
    wide = Fraction(2, 10), Fraction(3, 10)
    monkeypatch.setattr(Cap, "enclose_share", lambda self, precision: wide)
    # log(p (1 - Q) / ((1 - p) Q)) at Q = 1/5
    assert Cap(3, 0.123, 0.75).epsilon == pytest.approx(math.log(12), rel=1e-15)


def test_more_coordinates_than_margins_are_made_for_are_refused():
    assert Cap(2**20, 0.0, 0.9).d == 2**20
    with pytest.raises(ValueError, match="d must be"):
        Cap(2**20 + 1, 0.0, 0.9)
