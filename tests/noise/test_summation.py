import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.noise import Norm
from tacit.noise.summation import bounded_sum
from tacit.privacy import Relation

ADD = Relation.ADD_REMOVE


def _exact_length(difference, norm):
    parts = [abs(Fraction(float(x))) for x in np.ravel(difference)]
    if norm is Norm.L1:
        return float(sum(parts))
    if norm is Norm.LINF:
        return float(max(parts))
    return math.sqrt(sum(x * x for x in parts))


def _exact_difference(first, second):
    a, b = np.atleast_1d(first.value), np.atleast_1d(second.value)
    return [Fraction(float(x)) - Fraction(float(y)) for x, y in zip(a, b, strict=True)]


def test_the_adversarial_data_of_casacuberta_et_al():
    # A float sum: the small rows vanish beside 2^53, or not, according to one large row.
    n = 1 << 12
    rows = np.concatenate([[2.0**53], np.full(n, 1.0 + 2.0**-52), [-(2.0**53)]])
    naive = abs(np.cumsum(rows)[-1] - np.cumsum(rows[1:])[-1] - 2.0**53)
    assert naive > 100  # removing one row moved the rest of a float sum by hundreds
    first = bounded_sum(rows, 2.0**53, Norm.LINF, ADD, max_rows=2**13)
    second = bounded_sum(rows[1:], 2.0**53, Norm.LINF, ADD, max_rows=2**13)
    assert abs(_exact_difference(first, second)[0]) <= Fraction(first.sensitivity)


def test_large_and_small_rows_in_any_order():
    rng = np.random.default_rng()
    rows = np.ldexp(rng.standard_normal(20_000), rng.integers(-60, 60, 20_000))
    expected = bounded_sum(rows, 2.0**50, Norm.L1, ADD)
    for _ in range(5):
        rng.shuffle(rows)
        assert bounded_sum(rows, 2.0**50, Norm.L1, ADD).value == expected.value


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("order", ["C", "F"])
def test_no_block_size_or_layout_matters(order, norm, monkeypatch):
    # few rows, so that steps are fine and the last bit of a length shows now and then
    tables = np.random.default_rng().standard_normal((300, 16, 70))
    expected = [bounded_sum(rows, 2.0, norm, ADD, max_rows=16).value for rows in tables]
    for numbers in (70, 500):
        monkeypatch.setattr("tacit.noise.summation._BLOCK_NUMBERS", numbers)
        for rows, value in zip(tables, expected, strict=True):
            again = bounded_sum(np.asarray(rows, order=order), 2.0, norm, ADD, max_rows=16)
            assert np.array_equal(again.value, value)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    norm=st.sampled_from(Norm),
    d=st.sampled_from([1, 2, 3, 50]),
    log_bound=st.floats(-30, 30),
    log_rows=st.integers(-40, 40),
    max_rows=st.sampled_from([32, 1000, 2**31]),
)
def test_removing_or_replacing_a_row_stays_within_the_sensitivity(
    seed, norm, d, log_bound, log_rows, max_rows
):
    rng = np.random.default_rng(seed)
    bound = 2.0**log_bound
    rows = bound * np.ldexp(rng.standard_normal((20, d)), log_rows)
    whole = bounded_sum(rows, bound, norm, ADD, max_rows=max_rows)
    less = bounded_sum(rows[1:], bound, norm, ADD, max_rows=max_rows)
    assert _exact_length(_exact_difference(whole, less), norm) <= whole.sensitivity * (1 + 1e-15)
    other = rows.copy()
    other[0] = -other[0]
    replaced = bounded_sum(other, bound, norm, Relation.REPLACE, max_rows=max_rows)
    moved = _exact_length(_exact_difference(whole, replaced), norm)
    assert moved <= replaced.sensitivity * (1 + 1e-15)


@pytest.mark.parametrize(("norm", "spread"), [(Norm.L1, 9), (Norm.L2, 3), (Norm.LINF, 1)])
def test_the_sensitivity_is_the_bound_and_the_rounding(norm, spread):
    for bound in (0.1, 0.7, 1.0, 3.3):
        total = bounded_sum(np.zeros((1, 9)), bound, norm, ADD)
        # bits = 52 - 31
        step = Fraction(2) ** (math.ceil(math.log2(bound)) - 21)
        exact = Fraction(bound) + step / 2 * spread
        assert exact < Fraction(total.sensitivity) < exact * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_of_either_sign_are_clipped(norm, sign):
    rows = sign * np.array([[3e5, 1.0, 2e6]])
    total = bounded_sum(rows, 1.5, norm, ADD)
    assert norm.length(total.value) <= total.sensitivity
    assert norm.length(total.value) == pytest.approx(1.5, rel=1e-5)
    assert bounded_sum(-rows, 1.5, norm, ADD).value.tolist() == (-total.value).tolist()


def test_the_sensitivity_is_tight():
    rows = np.array([[0.6, 0.8]] * 3)
    total = bounded_sum(rows, 1.0, Norm.L2, ADD, max_rows=100)
    assert 1.0 < total.sensitivity < 1.0 + 1e-12
    assert np.allclose(total.value, [1.8, 2.4], atol=1e-12)
    double = bounded_sum(rows, 1.0, Norm.L2, Relation.REPLACE, max_rows=100)
    assert double.sensitivity == 2 * total.sensitivity


def test_rows_are_clipped_to_the_norm():
    rows = np.array([[3e80, 4e80], [1e-320, 0.0], [1e200, 0.0]])
    total = bounded_sum(rows, 10.0, Norm.L2, ADD)
    assert np.allclose(total.value, [6.0, 8.0], atol=1e-4)
    assert np.allclose(bounded_sum(rows, 7.0, Norm.L1, ADD).value, [3.0, 4.0], atol=1e-4)
    assert np.allclose(bounded_sum(rows, 4.0, Norm.LINF, ADD).value, [3.0, 4.0], atol=1e-4)


def test_as_many_rows_as_allowed_stay_exact():
    # The largest sum that max_rows allows is still a whole number of steps below 2^53.
    from tacit.noise.summation import _step

    for limit in (1, 2, 3, 1000, 2**20, 2**31):
        for bound in (1.0, 1.5, 2.0**-30, 7.3):
            step = _step(bound, limit)
            assert limit * (bound / step * (1 + 2.0**-40) + 1) <= 2.0**53


def test_a_single_column_and_no_rows():
    assert bounded_sum(np.array([0.5, 0.25]), 1.0, Norm.L1, ADD).value == 0.75
    assert bounded_sum(np.empty((0, 3)), 1.0, Norm.L1, ADD).value.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        (np.array([1.0, np.nan]), {}, ValueError, "NaN or infinity"),
        (np.array([1, 2]), {}, TypeError, "astype"),
        ([1.0], {}, TypeError, "astype"),
        (np.zeros((2, 2, 2)), {}, ValueError, "reshape"),
        (np.zeros(3), {"max_rows": 2}, ValueError, "more rows than max_rows=2; .*public bound"),
        (np.zeros(3), {"max_rows": 2**32}, ValueError, "in parts"),
        (np.zeros(3), {"row_bound": 0.0}, ValueError, "row_bound must be positive"),
        (np.zeros(3), {"row_bound": 2.0**450}, ValueError, "units"),
        (np.zeros(3), {"norm": "l2"}, TypeError, r"Norm\.L1"),
        (np.zeros(3), {"relation": "replace"}, TypeError, "Relation"),
    ],
)
def test_nonsense_is_refused(rows, options, error, message):
    arguments = {"row_bound": 1.0, "norm": Norm.L2, "relation": ADD} | options
    with pytest.raises(error, match=message):
        bounded_sum(rows, **arguments)
