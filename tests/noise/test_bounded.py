import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.noise import Grid, Norm
from tacit.noise.bounded import LARGEST_VALUE, Bounded
from tacit.noise.selection.line import select_on_line
from tacit.noise.summation import bounded_sum
from tacit.privacy import Relation
from tests.noise.helpers import bounded


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, 1e200, 1.001 * 2.0**500, np.array([1.0, np.nan])),
        *(np.array([1.0, -np.inf]), np.array([1.0, -1e200]), np.array([-np.inf])),
    ],
)
def test_values_that_are_not_finite_or_huge_are_refused(value):
    with pytest.raises(ValueError, match=r"value .*clip"):
        bounded(value)


def test_the_greatest_value_is_taken():
    # so large that its place on the finest lattice is a double, and no larger
    assert LARGEST_VALUE == 2.0**500
    assert np.array_equal(bounded(np.array([-LARGEST_VALUE])).value, [-LARGEST_VALUE])


def test_an_empty_value_is_refused():
    with pytest.raises(ValueError, match="empty"):
        bounded(np.array([]))


@pytest.mark.parametrize(
    "value", [np.array([1, 2]), np.array([1j]), np.array(["a"]), "a", None, True, [1.0], 1j]
)
def test_values_of_another_type_are_refused(value):
    with pytest.raises(TypeError, match=r"astype|np\.asarray"):
        bounded(value)


def test_a_whole_number_that_is_no_double_is_refused():
    assert bounded(2**53).value == 2.0**53
    with pytest.raises(ValueError, match="not a double"):
        bounded(2**53 + 1)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.nan, math.inf])
def test_sensitivity_must_be_positive_and_finite(sensitivity):
    with pytest.raises(ValueError, match=r"sensitivity must be positive.*needs no noise"):
        bounded(1.0, sensitivity=sensitivity)


def test_norm_and_relation_must_be_named():
    with pytest.raises(TypeError, match=r"Norm\.L1"):
        Bounded(1.0, 1.0, "l1", Relation.REPLACE)
    with pytest.raises(TypeError, match=r"Relation\.ADD_REMOVE"):
        Bounded(1.0, 1.0, Norm.L1, "replace")


def test_values_become_doubles():
    assert bounded(np.float32(0.1)).value == float(np.float32(0.1))
    assert bounded(np.array([0.1], dtype=np.float32)).value.dtype == np.float64
    assert isinstance(bounded(np.array(2.0)).value, float)


def test_norms():
    vector = np.array([[3.0, -4.0], [0.0, 0.0]])
    assert [norm.length(vector) for norm in Norm] == [7.0, 5.0, 4.0]
    assert Norm.L2.length(np.array([3e300, 4e300])) == pytest.approx(5e300)
    assert Norm.L2.length(np.zeros(3)) == 0.0


def _messages():
    line = (np.array([0.0, 0.4321, 1.0]), Grid(0.0, 1.0, 16), 1.0)
    return [
        lambda: Bounded(Fraction(4321, 7), 1.0, Norm.L2, Relation.ADD_REMOVE),
        lambda: Bounded(np.array([1.0, 4.321e200]), 1.0, Norm.L2, Relation.ADD_REMOVE),
        lambda: bounded_sum(np.zeros(4321), 1.0, Norm.L2, Relation.ADD_REMOVE, max_rows=16),
        lambda: bounded_sum(np.zeros((4321, 1, 1)), 1.0, Norm.L2, Relation.ADD_REMOVE),
        lambda: select_on_line(
            line[0],
            Bounded(np.zeros(4321), 1.0, Norm.LINF, Relation.ADD_REMOVE),
            line[1],
            line[2],
        ),
        lambda: select_on_line(
            np.zeros((4321, 2)),
            Bounded(np.zeros(3), 1.0, Norm.LINF, Relation.ADD_REMOVE),
            line[1],
            line[2],
        ),
    ]


@pytest.mark.parametrize("refused", _messages())
def test_a_refusal_tells_nothing_of_the_value(refused):
    with pytest.raises(ValueError, match=r".") as info:
        refused()
    assert "4321" not in str(info.value)
    assert "4.321" not in str(info.value)
