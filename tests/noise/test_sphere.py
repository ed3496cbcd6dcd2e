import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import beta, gamma, ks_2samp, kstest

from tacit.noise import Norm, secure_source, seeded_source
from tacit.noise.bounded import Bounded
from tacit.noise.exact.interval_arithmetic import exponentials
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.laplace import laplace
from tacit.noise.sphere import _Draw, add_sphere, sphere
from tacit.noise.sphere import sphere as sphere_function
from tacit.privacy import PureEpsilon, Relation
from tests.noise.helpers import ACCEPT, REJECT, WordSource, bounded

MODULE = sys.modules["tacit.noise.sphere"]


def _sample(d, n, epsilon=0.5, sensitivity=2.0, value=0.0):
    vector = bounded(np.full(d, value), sensitivity)
    source = secure_source()
    draws = np.array([sphere(vector, epsilon, source).value for _ in range(n)])
    return (draws - value) / (sensitivity / epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 40, *(pytest.param(d, marks=pytest.mark.slow) for d in (2, 5))])
def test_length_and_direction(d):
    noise = _sample(d, {1: 30_000, 2: 15_000}.get(d, 10_000), value=math.pi * 1e4)
    length = np.linalg.norm(noise, axis=1)
    assert kstest(length, gamma(d).cdf).pvalue > ACCEPT
    for wrong in (0.9, 1.1):
        assert kstest(length / wrong, gamma(d).cdf).pvalue < REJECT
    if d > 1:
        # One coordinate of a uniform direction: (1 + x) / 2 ~ Beta((d - 1) / 2, (d - 1) / 2).
        law = beta((d - 1) / 2, (d - 1) / 2)
        for i in {0, 1, d - 1}:
            assert kstest((1 + noise[:, i] / length) / 2, law.cdf).pvalue > ACCEPT
    assert abs(noise.mean()) < 7 * math.sqrt((d + 1) / noise.size)


@pytest.mark.slow
def test_no_two_coordinates_go_together():
    noise = _sample(5, 10_000)
    angle = np.sign(noise)
    products = angle.T @ angle / len(noise)
    assert np.max(np.abs(products - np.eye(5))) < 7 / math.sqrt(len(noise))


@pytest.mark.slow
def test_one_coordinate_is_laplace():
    n = 20_000
    one = _sample(1, n, epsilon=0.7, sensitivity=1.3)[:, 0]
    other = laplace(bounded(np.zeros(n), 1.3, Norm.L1), 0.7).value / (1.3 / 0.7)
    assert ks_2samp(one, other).pvalue > ACCEPT
    assert ks_2samp(one, other * 1.5).pvalue < ACCEPT


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_the_exact_path_agrees_with_floats(d, monkeypatch):
    for _ in range(30):
        words = secure_source().words(2 * ((d + 1) // 2) + d)
        value = np.random.default_rng().standard_normal(d) * 1e3
        fast = add_sphere(value, 1.3, WordSource(words, secure_source()))
        with monkeypatch.context() as patch:
            patch.setattr(MODULE, "FUNCTION_ERROR", 1.0)
            slow = add_sphere(value, 1.3, WordSource(words, secure_source()))
        assert np.array_equal(fast, slow)


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_floats_are_far_within_their_margin(d):
    for _ in range(20):
        draw = _Draw.new(d, secure_source())
        floats, margin = draw.floats(1000.0)
        with mpmath.workdps(40):
            energy = [-mpmath.log(1 - mpmath.mpf(int(w)) / 2**64) for w in draw.radius_words]
            angle = [2 * mpmath.pi * int(w) / mpmath.mpf(2) ** 64 for w in draw.angle_words]
            pairs = [
                mpmath.sqrt(2 * e) * turn(a)
                for e, a in zip(energy, angle, strict=True)
                for turn in (mpmath.cos, mpmath.sin)
            ][:d]
            norm = mpmath.sqrt(sum(x * x for x in pairs))
            length = sum(-mpmath.log(1 - mpmath.mpf(int(w)) / 2**64) for w in draw.length_words)
            for x, z, error in zip(pairs, floats, margin, strict=True):
                assert abs(1000 * length * x / norm - mpmath.mpf(float(z))) < error / 32


def test_extreme_words_go_the_exact_way():
    words = [0, 2**64 - 1, 5, 2**62, 7, 2**63, 2**64 - 1, 0]
    value = np.zeros(3)
    result = add_sphere(value, 1.0, WordSource(words[:7], seeded_source(0)))
    assert np.all(np.isfinite(result))


def test_outputs_lie_on_the_public_lattice():
    spacing = lattice_spacing(1.0 * math.sqrt(8))
    for value in (0.0, 1e6 + math.pi):
        output = sphere(bounded(np.full(7, value)), 1.0).value
        assert np.array_equal(output / spacing, np.rint(output / spacing))
    zeros = np.concatenate([sphere(bounded(np.full(999, -1e-9)), 1.0).value for _ in range(60)])
    assert not np.signbit(zeros[zeros == 0]).any()


def test_many_coordinates():
    noise = sphere(bounded(np.zeros((200, 1000))), 1.0).value
    assert noise.shape == (200, 1000)
    assert np.linalg.norm(noise) == pytest.approx(200_000, rel=0.02)


def test_scalars_events_and_refusals():
    assert isinstance(sphere_function(bounded(1.0), 1.0).value, float)
    event = sphere(bounded(np.zeros(2), relation=Relation.REPLACE), 0.2).event
    assert event == PureEpsilon(0.2, Relation.REPLACE)
    with pytest.raises(ValueError, match=r"sphere needs .*Norm\.L2"):
        sphere(bounded(np.zeros(2), norm=Norm.LINF), 1.0)
    with pytest.raises(ValueError, match="epsilon must be positive"):
        sphere(bounded(np.zeros(2)), 0.0)


def test_the_noise_is_rounded_up(monkeypatch):
    widths = []

    def add(value, width, source):
        widths.append(Fraction(width))
        return value

    monkeypatch.setattr(sys.modules["tacit.noise.sphere"], "add_sphere", add)
    # about half of these quotients are rounded down
    for k in range(1, 30):
        sphere(bounded(np.zeros(3), sensitivity=0.1 * k), 0.7 / (k + 1))
        quotient = Fraction(0.1 * k) / Fraction(0.7 / (k + 1))
        assert quotient <= widths[-1] <= quotient * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_the_error_of_floats_is_that_of_the_proof(d):
    # lazily_exact_noise.md, section 4
    ratio = 1000.0
    for _ in range(10):
        draw = _Draw.new(d, secure_source())
        z, found = draw.floats(ratio)
        energy, lengths = exponentials(draw.radius_words), exponentials(draw.length_words)
        energy_error = 2.0**-44 * energy + 1.0 / ~draw.radius_words
        r = np.sqrt(2.0 * energy)
        angle = draw.angle_words * (2.0 * np.pi / 2.0**64)
        g = np.column_stack([r * np.cos(angle), r * np.sin(angle)]).ravel()[:d]
        r_error = 2.0 * energy_error / r + 2.0**-44 * r
        g_error = np.array([r_error[i // 2] for i in range(d)])
        square, square_error = 2.0 * energy, 2.0 * energy_error
        if d % 2:  # |x^2 - y^2| <= |x - y| (2 |x| + |x - y|)
            square[-1] = g[-1] ** 2
            square_error[-1] = g_error[-1] * (2.0 * abs(g[-1]) + g_error[-1])
        norm = math.sqrt(square.sum())
        length = ratio * lengths.sum()
        length_error = ratio * (2.0**-44 * lengths + 1.0 / ~draw.length_words).sum()
        relative = length_error / length + square_error.sum() / norm**2 + 2.0**-49
        error = 2.0 * (np.abs(z) * relative + g_error * length / norm) + 2.0**-51
        np.testing.assert_allclose(found, error, rtol=1e-9)


@pytest.mark.parametrize(("d", "width"), [(1, 1.5), (2, 3e3), (3, 1e-5), (8, 0.3)])
def test_the_output_is_the_value_and_its_noise_rounded(d, width):
    n_pairs = (d + 1) // 2
    spacing = Fraction(lattice_spacing(width * math.sqrt(d + 1)))
    for seed in range(10):
        words = [int(word) for word in seeded_source(seed).words(2 * n_pairs + d)]
        value = 100.0 * width * np.random.default_rng(seed).standard_normal(d)
        found = np.asarray(add_sphere(value, width, WordSource(words)))
        with mpmath.workdps(40):
            uniform = [mpmath.mpf(word) / 2**64 for word in words]
            radius = [mpmath.sqrt(-2 * mpmath.log(1 - u)) for u in uniform[:n_pairs]]
            angle = [2 * mpmath.pi * u for u in uniform[n_pairs : 2 * n_pairs]]
            length = -sum(mpmath.log(1 - u) for u in uniform[2 * n_pairs :])
            pairs = zip(radius, angle, strict=True)
            g = [r * turn(a) for r, a in pairs for turn in (mpmath.cos, mpmath.sin)][:d]
            norm = mpmath.sqrt(sum(x * x for x in g))
            for i in range(d):
                noisy = mpmath.mpf(value[i]) + width * length * g[i] / norm
                steps = int(mpmath.floor(noisy * spacing.denominator / spacing.numerator + 0.5))
                assert Fraction(found[i]) == steps * spacing


@pytest.mark.parametrize("end", [0, 2**64 - 1])
def test_each_word_at_an_end_draws_more_bits(end):
    usual = [3 << 60, 5 << 60, 1 << 61, 3 << 61]  # radius, angle, and two of the length
    for place in (0, 2, 3):
        words = list(usual)
        words[place] = end
        source = WordSource(words, seeded_source(1))
        # small energies of the length alone are known well enough
        exact = place == 0 or end > 0
        assert np.isfinite(add_sphere(np.zeros(2), 1.0, source)).all()
        assert (source.n_extra > 0) is exact


def test_a_number_that_may_be_zero_has_no_direction_yet():
    # a quarter turn: zero is an end of what the word leaves open
    for angle, sign in (((1 << 62) - 1, 1.0), (1 << 62, -1.0)):
        source = WordSource([3 << 60, angle, 3 << 62], WordSource([5, 1 << 63, 5]))
        assert np.sign(add_sphere(0.0, 1.0, source)) == sign
        assert source.n_extra == 3


def test_the_most_coordinates():
    class Many(Bounded):
        n = 2**31

        @property
        def n_coordinates(self):
            return self.n

    many = Many(np.zeros(2), 1.0, Norm.L2, Relation.ADD_REMOVE)
    assert sphere(many, 1.0).value.shape == (2,)
    Many.n += 1
    with pytest.raises(ValueError, match=r"above 2\^31"):
        sphere(many, 1.0)
