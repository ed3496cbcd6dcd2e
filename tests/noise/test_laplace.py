import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import expon, kstest
from scipy.stats import laplace as laplace_law

from tacit.noise import Norm, seeded_source
from tacit.noise.laplace import LaplaceLaw, laplace
from tacit.privacy import NonPrivate, PureEpsilon, Relation
from tests.noise.helpers import ACCEPT, N_DRAWS, REJECT, bounded


@pytest.mark.parametrize("value", [0.0, -1e6 - math.pi])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1.0), (0.03, 2.0), (20.0, 1e-3)])
def test_the_noise_has_the_stated_size(value, epsilon, sensitivity):
    release = laplace(bounded(np.full(N_DRAWS, value), sensitivity, Norm.L1), epsilon)
    noise = (release.value - value) / (sensitivity / epsilon)
    assert kstest(noise, laplace_law.cdf).pvalue > ACCEPT
    # The size alone tells wrong widths apart more sharply.
    size = np.abs(noise)
    assert kstest(size, expon.cdf).pvalue > ACCEPT
    assert kstest(size / 0.9, expon.cdf).pvalue < REJECT
    assert kstest(size / 1.1, expon.cdf).pvalue < REJECT


def test_the_ratio_of_neighbours_stays_below_epsilon():
    from scipy.stats import beta

    epsilon, n = 1.0, 400_000
    first, second = (
        laplace(bounded(np.full(n, v), norm=Norm.L1), epsilon).value for v in (0.0, 1.0)
    )
    for threshold in (0.0, -1.0, -2.0):
        count, other = int((first <= threshold).sum()), int((second <= threshold).sum())
        low = beta.ppf(1e-9, count, n - count + 1)
        high = beta.ppf(1 - 1e-9, other + 1, n - other)
        assert math.log(low / high) <= epsilon
        assert math.log(count / other) > epsilon - 0.1  # and the noise is not too large


def test_the_event_says_what_was_drawn():
    value = bounded(0.0, norm=Norm.L1, relation=Relation.REPLACE)
    assert laplace(value, 0.3).event == PureEpsilon(0.3, Relation.REPLACE)
    seeded = laplace(value, 0.3, seeded_source(0)).event
    assert isinstance(seeded, NonPrivate)
    assert seeded.would_be == PureEpsilon(0.3, Relation.REPLACE)
    assert seeded.relation is Relation.REPLACE


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_must_be_positive_and_finite(epsilon):
    with pytest.raises(ValueError, match=r"epsilon .*Budget.*NonPrivate"):
        laplace(bounded(0.0, norm=Norm.L1), epsilon)


@pytest.mark.parametrize("norm", [Norm.L2, Norm.LINF])
def test_the_norm_must_be_l1(norm):
    with pytest.raises(ValueError, match=r"laplace needs .*Norm\.L1"):
        laplace(bounded(np.zeros(2), norm=norm), 1.0)
    laplace(bounded(np.zeros(1), norm=norm), 1.0)


def test_the_noise_is_rounded_up(monkeypatch):
    widths = []

    def add(value, width, *rest):
        widths.append(Fraction(width))
        return value

    monkeypatch.setattr(sys.modules["tacit.noise.laplace"], "add_rounded", add)
    # about half of these quotients are rounded down
    for k in range(1, 30):
        laplace(bounded(1.0, 0.1 * k, Norm.L1), 0.7 / (k + 1))
        quotient = Fraction(0.1 * k) / Fraction(0.7 / (k + 1))
        assert quotient <= widths[-1] <= quotient * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("precision", [64, 128, 200])
@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(2), Fraction(25, 3), Fraction(700)])
def test_the_enclosure_of_the_tail_holds_it(x, precision):
    with mpmath.workprec(precision + 300):
        tail = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) / 2
        truth = Fraction(*mpmath.libmp.to_rational(tail._mpf_))
    low, high = LaplaceLaw().enclose_tail(x, precision)
    assert low < truth < high
    assert high - low < truth / 2**precision
