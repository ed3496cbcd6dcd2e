import numpy as np
import pytest

from tacit.io.values import ArrayValues

PLACE = {"1": 0, "true": 1, "0": 2, "false": 3}


@pytest.mark.parametrize("order", [1, -1])
def test_equal_values_of_other_types_are_other_words(order):
    # 1 == 1.0 == True, and all three have one hash: which comes first must not matter.
    values = np.array([1, True, 1.0, False, 0, "1", "x", None], dtype=object)[::order]
    codes = [0, 1, 0, 3, 2, 0, -1, -2][::order]
    assert ArrayValues(values).codes(PLACE).tolist() == codes


def test_objects_of_any_kind_are_missing():
    values = np.empty(3, dtype=object)
    values[:] = [[1], {"a": 1}, object()]
    assert ArrayValues(values).codes(PLACE).tolist() == [-2, -2, -2]
    assert np.isnan(ArrayValues(values).numbers()).all()


def test_arrays_of_numbers_are_not_changed():
    values = np.array([1.0, np.inf])
    assert np.array_equal(ArrayValues(values).numbers(), [1.0, np.nan], equal_nan=True)
    assert values.tolist() == [1.0, np.inf]
    assert ArrayValues(np.array([0, 1])).codes(PLACE).tolist() == [2, 0]
    assert ArrayValues(np.array([0.0, 0.5])).codes(PLACE).tolist() == [2, -1]
    assert ArrayValues(np.array([False])).codes(PLACE).tolist() == [3]
    assert ArrayValues(np.array([b"1", b" x"])).codes(PLACE).tolist() == [0, -1]


def test_no_number_gives_a_warning():
    # warnings are errors here: a signalling NaN, and what no double holds
    signalling = np.array([0x7FA00001, 0x3F800000], dtype=np.uint32).view(np.float32)
    huge = np.array([np.longdouble("1e4000"), np.longdouble(1)])
    for values in (signalling, huge):
        assert np.array_equal(ArrayValues(values).numbers(), [np.nan, 1.0], equal_nan=True)
