import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.io.values import MISSING, UNKNOWN, code_of, number_of, text_of
from tests.schema.helpers import WORDS


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_is_read_back(number):
    assert number_of(repr(number)) == number
    assert number_of(f" {number!r}\t".encode()) == number


@given(st.integers(-(10**15), 10**15))
def test_a_whole_number_is_one_word_in_every_type(number):
    assert text_of(number) == text_of(float(number)) == text_of(np.float64(number)) == str(number)
    assert text_of(np.int64(number)) == text_of(f" {number} ") == str(number)
    assert text_of(Decimal(number)) == str(number)


@given(st.one_of(WORDS, st.binary(), st.none(), st.floats(), st.integers(), st.decimals()))
@example(10**400)
def test_any_value_is_a_finite_number_or_none(value):
    assert not math.isinf(number_of(value))
    assert code_of(value, {"a": 0}) in (0, UNKNOWN, MISSING)


@pytest.mark.parametrize("word", ["inf", "nan", "1_0", "0x10", "1e", "", "1,5", "\u0661", "1e999"])
def test_other_texts_are_no_numbers(word):
    assert math.isnan(number_of(word))


def test_text_that_is_not_utf8_is_unknown():
    assert code_of(b"\xff", {"a": 0}) == UNKNOWN
    assert code_of(b" a", {"a": 0}) == 0
    assert code_of(object(), {"a": 0}) == MISSING


LARGE = 2**53


@pytest.mark.parametrize("make", [int, float, np.int64, np.float64, Decimal])
def test_a_number_too_large_for_a_float_is_no_word(make):
    place = {str(number): 0 for number in (LARGE - 1, LARGE, LARGE + 1, -LARGE)}
    codes = [code_of(make(number), place) for number in (LARGE - 1, LARGE, LARGE + 1, -LARGE)]
    assert codes == [0, UNKNOWN, UNKNOWN, UNKNOWN]
    assert [code_of(str(number), place) for number in (LARGE, LARGE + 1)] == [0, 0]


HOSTILE = [10**400, 10**5000, np.timedelta64(5, "s"), np.timedelta64(5, "ns"), Decimal("sNaN")]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_no_value_is_an_error(value):
    # digits beyond 4300 and spans of time were: one record refused the whole table
    assert text_of(value) is None
    assert code_of(value, {"5": 0}) == MISSING
    assert math.isnan(number_of(value))


def test_a_complex_number_on_the_real_line_is_a_number():
    # what pandas makes of every number of a column when one of them is complex
    assert [number_of(value) for value in (7.5 + 0j, np.complex64(2))] == [7.5, 2.0]
    assert text_of(3 + 0j) == "3"
    assert math.isnan(number_of(1 + 2j))
    assert code_of(1 + 2j, {"1": 0}) == MISSING
