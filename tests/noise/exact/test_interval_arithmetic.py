from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tacit.noise import secure_source
from tacit.noise.exact import interval_arithmetic
from tacit.noise.exact.interval_arithmetic import Arithmetic, LazyUniform, ends
from tests.noise.helpers import WordSource


def test_a_uniform_variable_keeps_the_bits_already_drawn():
    first = LazyUniform(5)
    second = first.refined(WordSource([9]))
    assert second == LazyUniform((5 << 64) | 9, 128)
    assert first.ends[0] <= second.ends[0] < second.ends[1] <= first.ends[1]


@pytest.mark.parametrize(("numerator", "interior"), [(0, False), (1, True), (2**64 - 1, False)])
def test_the_ends_of_the_unit_interval(numerator, interior):
    assert LazyUniform(numerator).is_interior is interior


@pytest.mark.parametrize("precision", [70, 200])
def test_enclosures_contain_the_truth(precision):
    rng = np.random.default_rng()
    arithmetic = Arithmetic(precision)
    context = arithmetic.context
    with mpmath.workprec(1000):
        for x in [*rng.uniform(0.001, 50, 20), 1e-30, 1.0, 3.0]:
            point = Fraction(float(x)) / 3
            exact_point = mpmath.mpf(float(x)) / 3
            for name in ("exp", "log", "sqrt", "sin", "cos"):
                low, high = ends(getattr(context, name)(arithmetic.number(point)))
                truth = getattr(mpmath, name)(exact_point)
                assert mpmath.mpf(low.numerator) / low.denominator <= truth
                assert truth <= mpmath.mpf(high.numerator) / high.denominator
                assert float(high - low) <= 2.0 ** (8 - precision) * (1 + abs(float(truth)))


def test_sums_of_exponentials_are_enclosed():
    uniforms = [LazyUniform(int(word)) for word in secure_source().words(300)]
    arithmetic = Arithmetic(160)
    low, high = ends(arithmetic.sum_of_exponentials(uniforms))
    parts = [ends(arithmetic.exponential(u)) for u in uniforms]
    assert low <= sum(part[1] for part in parts)
    assert sum(part[0] for part in parts) <= high
    assert high - low < Fraction(1, 2**40)
    assert float(low) == pytest.approx(float(sum(part[0] for part in parts)), rel=1e-12)


def test_the_float_functions_are_far_within_their_margin():
    rng = np.random.default_rng()
    cases = {
        "log": 2.0 ** rng.uniform(-64, 4, 200),
        "log1p": -(2.0 ** rng.uniform(-64, -1, 200)),
        "expm1": -(2.0 ** rng.uniform(-200, 9, 200)),
        "sqrt": 2.0 ** rng.uniform(-64, 6, 200),
        "sin": rng.uniform(0, 2 * np.pi, 200),
        "cos": rng.uniform(0, 2 * np.pi, 200),
    }
    with mpmath.workdps(60):
        for name, points in cases.items():
            for x, y in zip(points, getattr(np, name)(points), strict=True):
                truth = getattr(mpmath, name)(mpmath.mpf(float(x)))
                size = 1 if name in ("sin", "cos") else abs(truth)
                assert (
                    abs(mpmath.mpf(float(y)) - truth)
                    <= interval_arithmetic.FUNCTION_ERROR / 64 * size
                )


def test_exponentials_are_far_within_their_errors():
    words = np.concatenate(
        [
            secure_source().words(200),
            2 ** np.arange(64, dtype=np.uint64),
            ~(2 ** np.arange(64, dtype=np.uint64)),
        ]
    )
    values = interval_arithmetic.exponentials(words)
    errors = interval_arithmetic.exponential_errors(words, values)
    with mpmath.workdps(60):
        for word, value, error in zip(words, values, errors, strict=True):
            for numerator in (int(word), int(word) + 1):
                truth = -mpmath.log(1 - mpmath.mpf(numerator) / 2**64)
                assert abs(mpmath.mpf(float(value)) - truth) <= error


@pytest.mark.parametrize(
    "value", [Fraction(1), Fraction(7, 3), Fraction(-1, 1000), Fraction(2**70)]
)
def test_sizes_in_bits(value):
    assert abs(value) < 2 ** interval_arithmetic.magnitude_bits(value)
    assert (
        abs(value) > Fraction(1, 2 ** interval_arithmetic.smallness_bits(value)) or abs(value) >= 1
    )


def test_floats_of_huge_fractions_are_infinite():
    assert interval_arithmetic.nearest_float(Fraction(2) ** 5000) == np.inf
    assert interval_arithmetic.nearest_float(-(Fraction(2) ** 5000)) == -np.inf


def test_dyadic_numbers_are_rounded_outwards_and_doubles_are_exact():
    low, high = ends(Arithmetic(10).dyadic(2**20 + 1, 2**20 + 3, 20))
    assert low <= 1 + Fraction(1, 2**20)
    assert high >= 1 + Fraction(3, 2**20)
    for x in (0.1, -3.5, 0.0, 5e-324, 1.7e308):
        assert ends(Arithmetic(64).double(x)) == (Fraction(x), Fraction(x))
    uniform = LazyUniform(12345, 64)
    low, high = ends(Arithmetic(128).uniform(uniform))
    assert (low, high) == uniform.ends


def test_the_nearest_integer_of_an_interval():
    arithmetic = Arithmetic(80)
    assert (
        interval_arithmetic.nearest_integer(arithmetic.between(Fraction(5, 2), Fraction(11, 4)))
        == 3
    )
    assert (
        interval_arithmetic.nearest_integer(arithmetic.between(Fraction(12, 5), Fraction(13, 5)))
        is None
    )
    assert (
        interval_arithmetic.nearest_integer(arithmetic.between(Fraction(-3, 10), Fraction(3, 10)))
        == 0
    )


def test_the_float_functions_are_given_the_error_of_the_proof():
    # lazily_exact_noise.md, section 4, and what `select`, `sphere` and others say they assume
    assert interval_arithmetic.FUNCTION_ERROR == 2.0**-44


def test_an_interval_without_ends_decides_nothing():
    context = Arithmetic(40).context
    for interval in (
        context.mpf(1) / context.mpf([0, 1]),
        context.mpf(1) / context.mpf([-1, 1]),
        context.log(context.mpf([0, 1])),
        context.mpf("nan"),
    ):
        with pytest.raises(ArithmeticError, match="infinite or undefined end"):
            ends(interval)
        with pytest.raises(ArithmeticError, match="infinite or undefined end"):
            interval_arithmetic.nearest_integer(interval)
    assert ends(context.mpf([0, 1])) == (Fraction(0), Fraction(1))
