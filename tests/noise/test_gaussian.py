import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import kstest, norm

from tacit.noise import Norm, seeded_source
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.gaussian import GaussianLaw, gaussian
from tacit.privacy import Gaussian, NonPrivate, Relation
from tests.noise.helpers import ACCEPT, N_DRAWS, REJECT, WordSource, bounded


@pytest.mark.parametrize("value", [0.0, 1e6 + math.pi])
@pytest.mark.parametrize(("multiplier", "sensitivity"), [(1.0, 1.0), (0.7, 3e-4), (25.0, 1e5)])
def test_the_noise_has_the_stated_size(value, multiplier, sensitivity):
    release = gaussian(bounded(np.full(N_DRAWS, value), sensitivity), multiplier)
    noise = (release.value - value) / (multiplier * sensitivity)
    assert kstest(noise, norm.cdf).pvalue > ACCEPT
    assert kstest(noise / 0.9, norm.cdf).pvalue < REJECT
    assert kstest(noise / 1.1, norm.cdf).pvalue < REJECT


def test_coordinates_are_independent():
    noise = np.asarray(gaussian(bounded(np.zeros((N_DRAWS, 2))), 1.0).value)
    for lagged in (noise[:, 0] * noise[:, 1], noise[1:, 0] * noise[:-1, 1]):
        assert abs(lagged.mean()) < 7 / math.sqrt(N_DRAWS)


def test_the_tails_are_not_cut():
    from scipy.stats import binomtest

    noise = np.abs(gaussian(bounded(np.zeros(2_000_000)), 1.0).value)
    for z in (2.5, 3.5, 4.5):
        exceed = int((noise > z).sum())
        spacing = lattice_spacing(1.0)
        probability = 2 * norm.sf((math.floor(z / spacing) + 0.5) * spacing)
        assert binomtest(exceed, noise.size, probability).pvalue > ACCEPT


def test_the_event_says_what_was_drawn():
    release = gaussian(bounded(np.zeros(2), 3.0, relation=Relation.REPLACE), 2.5)
    assert release.event == Gaussian(2.5, Relation.REPLACE)


def test_a_seeded_release_repeats_and_is_not_private():
    value = bounded(np.zeros(5))
    first, second = (gaussian(value, 1.0, seeded_source(1)) for _ in range(2))
    assert np.array_equal(first.value, second.value)
    assert isinstance(first.event, NonPrivate)
    assert first.event.would_be == Gaussian(1.0)
    assert "seeded" in first.event.reason


def test_the_noise_is_rounded_up(monkeypatch):
    from tacit.noise.bounded import round_up

    assert round_up(0.1 * 0.1) > 0.1 * 0.1
    stds = []

    def add(value, noise_std, *rest):
        stds.append(Fraction(noise_std))
        return value

    monkeypatch.setattr(sys.modules["tacit.noise.gaussian"], "add_rounded", add)
    # about half of these products are rounded down
    for k in range(1, 30):
        gaussian(bounded(1.0, sensitivity=0.1 * k), 0.7 / k)
        product = Fraction(0.1 * k) * Fraction(0.7 / k)
        assert product <= stds[-1] <= product * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("precision", [64, 128, 200])
@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(2), Fraction(25, 3), Fraction(39)])
def test_the_enclosure_of_the_tail_holds_it(x, precision):
    with mpmath.workprec(precision + 300):
        tail = mpmath.erfc(mpmath.mpf(x.numerator) / x.denominator / mpmath.sqrt(2)) / 2
        truth = Fraction(*mpmath.libmp.to_rational(tail._mpf_))
    low, high = GaussianLaw().enclose_tail(x, precision)
    # clearly within: what mpmath leaves out is far below the slack
    room = truth / 2 ** (precision + 2)
    assert low < truth - room < truth + room < high
    assert high - low < truth / 2 ** (precision - 3)
    # and the slack is the one of the proof: erfc is taken to be right within 2^-precision
    assert high - low == (high + low) / 2**precision


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan, math.inf])
def test_a_noise_multiplier_must_be_positive_and_finite(multiplier):
    with pytest.raises(ValueError, match=r"noise_multiplier .*calibrate"):
        gaussian(bounded(1.0), multiplier)


@pytest.mark.parametrize("multiplier", ["1", None, True])
def test_a_noise_multiplier_must_be_a_number(multiplier):
    with pytest.raises(TypeError, match=r"noise_multiplier .*calibrate"):
        gaussian(bounded(1.0), multiplier)


def test_the_norm_must_bound_the_euclidean_one():
    with pytest.raises(ValueError, match=r"gaussian needs .*Norm\.L2"):
        gaussian(bounded(np.zeros(2), norm=Norm.LINF), 1.0)
    gaussian(bounded(np.zeros(2), norm=Norm.L1), 1.0)
    gaussian(bounded(0.0, norm=Norm.LINF), 1.0)


def test_a_bare_value_is_refused():
    with pytest.raises(TypeError, match=r"Bounded\(value, sensitivity"):
        gaussian(np.zeros(2), 1.0)


def test_nothing_is_drawn_before_the_checks():
    untouched = WordSource([])
    with pytest.raises(ValueError, match="noise_multiplier"):
        gaussian(bounded(1.0), 0.0, untouched)
    with pytest.raises(ValueError, match="noise_std"):
        gaussian(bounded(1.0, 2.0**-450), 2.0**-100, untouched)


@pytest.mark.parametrize("source", [7, "secure", np.random.default_rng()])
def test_a_source_must_be_one_of_ours(source):
    with pytest.raises(TypeError, match="seeded_source"):
        gaussian(bounded(1.0), 1.0, source)
