from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import beta, gamma, kstest, norm

from tacit.noise import (
    Norm,
    ReplayMismatch,
    SensitivityViolation,
    perturbed_minimizer,
    secure_source,
    seeded_source,
)
from tacit.noise.bounded import Bounded
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.perturbed_minimizer import (
    GaussianPerturbation,
    SpherePerturbation,
    release_minimizer,
)
from tacit.privacy import Gaussian, NonPrivate, Relation
from tacit.testing import replay
from tests.noise.helpers import ACCEPT, REJECT, WordSource


class Recorder:
    """A source that remembers every word it gave, in order."""

    is_secure = True

    def __init__(self, then):
        self._then = then
        self.given = []

    def words(self, n):
        words = self._then.words(n)
        self.given += [int(w) for w in words]
        return words


# The law


@pytest.mark.parametrize("noise_std", [1.0, 37.0])
def test_the_gaussian_perturbation_is_gaussian(noise_std):
    law = GaussianPerturbation(noise_std, 1.0, (100_000,))
    b = law.draw(secure_source()) / noise_std
    assert kstest(b, norm.cdf).pvalue > ACCEPT
    for wrong in (0.9, 1.1):
        assert kstest(b * wrong, norm.cdf).pvalue < REJECT
    assert GaussianPerturbation(2.0, 1.0, (4, 3)).draw(secure_source()).shape == (4, 3)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_the_sphere_perturbation_has_its_length_and_direction(d):
    n, radius = {1: 30_000, 2: 20_000}.get(d, 8_000), 3.0
    law, source = SpherePerturbation(radius, 1.0, (d,)), secure_source()
    b = np.array([law.draw(source) for _ in range(n)]) / radius
    length = np.linalg.norm(b, axis=1)
    assert kstest(length, gamma(d).cdf).pvalue > ACCEPT
    for wrong in (0.9, 1.1):
        assert kstest(length * wrong, gamma(d).cdf).pvalue < REJECT
    assert abs(b.mean()) < 7 * math.sqrt((d + 1) / b.size)
    if d > 1:
        # One coordinate of a uniform direction: (1 + x) / 2 ~ Beta((d - 1) / 2, (d - 1) / 2).
        uniform = beta((d - 1) / 2, (d - 1) / 2)
        for i in {0, 1, d - 1}:
            assert kstest((1 + b[:, i] / length) / 2, uniform.cdf).pvalue > ACCEPT


def test_the_sphere_perturbation_keeps_its_shape():
    assert SpherePerturbation(2.0, 1.0, (4, 3)).draw(secure_source()).shape == (4, 3)


def test_draws_in_the_far_tail_follow_the_law():
    # words below 2^40: a Gaussian beyond 5.3, given that it is; the tail is nearly exponential
    rng = np.random.default_rng()
    words = rng.integers(0, 1 << 38, 20_000, dtype=np.uint64)
    source = WordSource(words, secure_source())
    z = GaussianPerturbation(1.0, 1.0, (words.size,)).draw(source)
    share = norm.sf(z) / 2.0**-26
    assert kstest(share, "uniform").pvalue > ACCEPT
    assert z.min() > 5.5


# The distance from the ideal


def ideal_uniform(head, more):
    """Return the interval of the uniform variable whose bits are known so far."""
    value, n_bits = head, 64
    for word in more:
        value, n_bits = value << 64 | word, n_bits + 64
    scale = mpmath.mpf(2) ** n_bits
    return value / scale, (value + 1) / scale


def normal_quantile(p):
    """Return z with P[Z > z] = p, by Newton's method on log erfc."""
    z = mpmath.mpf(-float(norm.ppf(float(p))))
    for _ in range(60):
        tail = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        density = mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)
        step = (tail - p) / density
        z += step
        if abs(step) < mpmath.mpf(10) ** -40 * (1 + abs(z)):
            break
    return z


def tail_and_sign(word):
    return (word, 1) if word < 1 << 63 else ((1 << 64) - 1 - word, -1)


SPECIAL = [
    *(0, 1, 5, (1 << 20) + 3, (1 << 39) + 1, (1 << 40) - 1, 1 << 40, (1 << 41) - 1, 1 << 41),
    *(1 << 45, 1 << 60, (1 << 62) + 12345, (1 << 63) - 1, 1 << 63, (1 << 63) + 77),
    *((1 << 64) - 1, (1 << 64) - 6, (1 << 64) - (1 << 41)),
]


def test_every_gaussian_is_within_its_error_of_every_ideal_one():
    words = SPECIAL + [int(w) for w in secure_source().words(60)]
    for word in words:
        extra = Recorder(secure_source())
        law = GaussianPerturbation(1.0, 1.0, (1,))
        z = mpmath.mpf(float(law.draw(WordSource([word], extra))[0]))
        tail, sign = tail_and_sign(word)
        with mpmath.workdps(60):
            for p in ideal_uniform(tail, extra.given):
                if p > 0:  # the ideal variable is anywhere between the two ends
                    assert abs(z - sign * normal_quantile(p)) <= law.error


@pytest.mark.parametrize("kind", [GaussianPerturbation, SpherePerturbation])
def test_words_of_zeros_are_refined_until_the_variable_is_known(kind):
    # probability 2^-87 and less, but a pure guarantee has no delta to hide it in
    extra = Recorder(WordSource([0, 1 << 20, 5, 1 << 50], secure_source()))
    head = [0] if kind is GaussianPerturbation else [1 << 60, 0]
    law = kind(1.0, 1.0, (1,))
    b = abs(mpmath.mpf(float(law.draw(WordSource(head, extra))[0])))
    with mpmath.workdps(60):
        low, high = ideal_uniform(0, extra.given)
        assert (high - low) / high < 2.0**-40
        quantile = normal_quantile if kind is GaussianPerturbation else lambda p: -mpmath.log(p)
        assert abs(b - quantile(high)) <= law.error


def test_a_gaussian_vector_is_within_its_error():
    for shape in [(1,), (7,), (3, 4)]:
        recorder = Recorder(secure_source())
        law = GaussianPerturbation(12.5, 1.0, shape)
        b = law.draw(recorder).ravel()
        assert len(recorder.given) == b.size  # the far tail has probability 2^-23
        with mpmath.workdps(60):
            off = mpmath.mpf(0)
            for word, x in zip(recorder.given, b, strict=True):
                tail, sign = tail_and_sign(word)
                gaps = [
                    abs(mpmath.mpf(float(x)) - sign * 12.5 * normal_quantile(p))
                    for p in ideal_uniform(tail, [])
                ]
                off += max(gaps) ** 2
            assert mpmath.sqrt(off) <= law.error


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_a_sphere_vector_is_within_its_error(d):
    law = SpherePerturbation(5.0, 1.0, (d,))
    compared = 0
    for _ in range(25):
        recorder = Recorder(secure_source())
        b = law.draw(recorder)
        given = recorder.given
        first, last = given[-2 * d : -d], given[-d:]  # the accepted direction, then the radius
        if min(tail_and_sign(w)[0] for w in first) < 1 << 41 or min(last) < 1 << 41:
            continue  # a refined draw: covered one by one above
        compared += 1
        with mpmath.workdps(60):
            for end in (0, 1):
                g = [
                    tail_and_sign(w)[1]
                    * normal_quantile(ideal_uniform(tail_and_sign(w)[0], [])[end])
                    for w in first
                ]
                radius = sum(-mpmath.log(ideal_uniform(w, [])[end]) for w in last)
                size = mpmath.sqrt(sum(x * x for x in g))
                gap = mpmath.sqrt(
                    sum(
                        (mpmath.mpf(float(x)) - 5 * radius * y / size) ** 2
                        for x, y in zip(b, g, strict=True)
                    )
                )
                assert gap <= law.error
    assert compared >= 20


@pytest.mark.parametrize("word", [0, 3, 1 << 30, (1 << 41) - 1, 1 << 41, 1 << 63, (1 << 64) - 1])
def test_the_radius_of_extreme_words_is_within_the_error(word):
    law = SpherePerturbation(1.0, 1.0, (1,))
    extra = Recorder(secure_source())
    b = law.draw(WordSource([1 << 60, word], extra))
    with mpmath.workdps(60):
        for p in ideal_uniform(word, extra.given):
            if p > 0:
                assert abs(abs(mpmath.mpf(float(b[0]))) + mpmath.log(p)) <= law.error


def test_a_direction_that_floats_cannot_tell_is_drawn_again():
    # 2^63 and its neighbour are Gaussians of about 1e-19: their direction is rounding error
    flat = [1 << 63, (1 << 63) - 1]
    law = SpherePerturbation(1.0, 1.0, (2,))
    source = WordSource([*flat, 1 << 60, 1 << 61, 1 << 62, 1 << 62])
    usual = law.draw(WordSource([1 << 60, 1 << 61, 1 << 62, 1 << 62]))
    assert np.array_equal(law.draw(source), usual)


def test_errors_grow_with_noise_and_dimension():
    for kind in (GaussianPerturbation, SpherePerturbation):
        assert kind(2.0, 1.0, (5,)).error == pytest.approx(
            2 * kind(1.0, 1.0, (5,)).error, rel=1e-6, abs=0.0
        )
        assert kind(1.0, 1.0, (4, 5)).error == kind(1.0, 1.0, (20,)).error
        assert kind(1.0, 1.0, (20,)).error > kind(1.0, 1.0, (5,)).error
        assert kind(1.0, 1.0, (20,)).error < 1e-6


def test_errors_are_those_of_the_proof():
    # docs/proofs/objective_perturbation.md, section 10
    assert GaussianPerturbation(3.0, 1.0, (2, 8)).error == 3.0 * 2.0**-38 * 4.0
    sphere = SpherePerturbation(3.0, 5.0, (2, 8))
    assert sphere.error == 3.0 * 2.0**-33 * (16 + 17 * 4 + 140)
    assert sphere.output_std == 5.0 * math.sqrt(17)
    with mpmath.workdps(80):
        for d in (1, 2, 5, 40, 1000):
            reach = SpherePerturbation(1.0, 1.0, (d,)).error * 2.0**33
            assert mpmath.gammainc(d, reach, regularized=True) < mpmath.mpf(2) ** -200


# The release


def fit(rows, *, sensitivity=1.0, source=None, minimize=None):
    """Release the minimiser of sum <x, w> + |w|^2 + <b, w>: the gradient sum is that of rows."""
    total = np.sum(rows, axis=0)
    law = GaussianPerturbation(2.0, 1e-3, (2,))
    return release_minimizer(
        law,
        minimize or (lambda b: -(total + b) / 2),
        lambda w: Bounded(total, sensitivity, Norm.L2, Relation.ADD_REMOVE),
        Gaussian(2.0),
        source,
    )


ROWS = np.array([[0.6, 0.8], [0.0, 0.5]])


def test_the_release_is_on_the_lattice_and_carries_its_event():
    release = fit(ROWS)
    spacing = lattice_spacing(1e-3)
    assert np.array_equal(release.value / spacing, np.rint(release.value / spacing))
    assert release.event == Gaussian(2.0)
    seeded = fit(ROWS, source=seeded_source(0))
    assert isinstance(seeded.event, NonPrivate)
    assert np.array_equal(seeded.value, fit(ROWS, source=seeded_source(0)).value)


@pytest.mark.parametrize("kind", [GaussianPerturbation, SpherePerturbation])
def test_output_noise_has_the_stated_size(kind):
    law = kind(1.0, 0.5, (20_000,) if kind is GaussianPerturbation else (1,))
    if kind is GaussianPerturbation:
        noise = law.add_output_noise(np.full(20_000, 3.0), secure_source()) - 3.0
        assert kstest(noise / 0.5, norm.cdf).pvalue > ACCEPT
        assert kstest(noise / 0.6, norm.cdf).pvalue < ACCEPT
    else:
        source = secure_source()
        noise = [law.add_output_noise(np.array([3.0]), source)[0] - 3.0 for _ in range(5_000)]
        assert kstest(np.abs(noise) / 0.5, "expon").pvalue > ACCEPT
        assert kstest(np.abs(noise) / 0.6, "expon").pvalue < ACCEPT


def test_replay_accepts_a_neighbour():
    assert replay(fit, ROWS, ROWS[:1]) == 1
    assert replay(fit, ROWS[:1], ROWS) == 1


def test_replay_does_not_minimise_again():
    def refuse(b):
        raise AssertionError("the released value is on the tape")

    runs = iter([None, refuse])
    assert replay(lambda rows: fit(rows, minimize=next(runs)), ROWS, ROWS[:1]) == 1


def test_replay_catches_a_gradient_sum_that_moves_too_far():
    with pytest.raises(SensitivityViolation, match="moved by 1"):
        replay(lambda rows: fit(rows, sensitivity=0.9), ROWS, ROWS[1:])
    with pytest.raises(SensitivityViolation):
        replay(fit, ROWS, np.vstack([ROWS, [[3.0, 0.0]]]))


def test_replay_catches_a_sensitivity_read_off_the_data():
    with pytest.raises(ReplayMismatch, match="sensitivity"):
        replay(lambda rows: fit(rows, sensitivity=float(len(rows))), ROWS, ROWS[:1])


def test_the_audit_looks_at_the_released_point():
    seen = []

    def both(rows):
        def implied(w):
            seen.append(w.copy())
            return Bounded(rows.sum(axis=0), 1.0, Norm.L2, Relation.ADD_REMOVE)

        law = GaussianPerturbation(1.0, 1e-3, (2,))
        return release_minimizer(law, lambda b: -b, implied, Gaussian(1.0)).value

    assert replay(both, ROWS, ROWS[:1]) == 1
    assert len(seen) == 2
    assert np.array_equal(seen[0], seen[1])


# What the errors rest on


@pytest.mark.parametrize(
    "draw", [perturbed_minimizer._gaussian_floats, perturbed_minimizer._exponential_floats]
)
def test_uniform_variables_are_refined_to_41_bits(draw):
    for word, n_extra in (((1 << 41) - 1, 1), (1 << 41, 0)):
        source = WordSource([word], WordSource([1 << 63]))
        draw(1, source)
        assert source.n_extra == n_extra


@pytest.mark.parametrize("tail", [1 << 41, (1 << 41) + 1, (1 << 45) + 3])
def test_a_float_is_that_of_the_middle_of_its_interval(tail):
    # so that no end is further than half of the interval
    middle = math.ldexp(tail + 0.5, -64)
    assert perturbed_minimizer._gaussian_floats(1, WordSource([tail]))[0] == -ndtri(middle)
    assert perturbed_minimizer._gaussian_floats(1, WordSource([(1 << 64) - 1 - tail]))[0] == ndtri(
        middle
    )
    assert perturbed_minimizer._exponential_floats(1, WordSource([tail]))[0] == -math.log(middle)
    refined = perturbed_minimizer._refined(0, WordSource([tail]))
    assert refined == math.ldexp(tail + 0.5, -128)


@pytest.mark.parametrize("d", [2, 9])
def test_the_shortest_direction_is_that_of_the_error(d):
    # 2 * 2^-43 (1 + 1 / s), relative, for a vector of length s sqrt(d): within 2^-33 for s = 2^-8,
    # with the error of the radius, and not for s = 2^-9
    def direction(length):
        word = int(norm.sf(length) * 2.0**64)  # every coordinate the same
        later = [1 << 60] * d
        source = WordSource([word] * d, WordSource([*later, *[1 << 62] * d, *[1 << 62] * d]))
        SpherePerturbation(1.0, 1.0, (d,)).draw(source)
        return source.n_extra

    assert direction(2.0**-8 * 1.001) == d
    assert direction(2.0**-8 * 0.999) == 2 * d
