import numpy as np
import pytest

from tacit.preprocessing import ClassTarget, NumberTarget
from tacit.preprocessing.values import ArrayValues


@pytest.mark.parametrize(
    ("classes", "values", "labels", "kept"),
    [
        (("no", "yes"), ["yes", " no", "NO", None], ["yes", "no"], [True, True, False, False]),
        ((0, 1), ["1", 0, 1.0, "1.0", ""], [1, 0, 1], [True, True, True, False, False]),
        ((False, True), ["true", False, "yes"], [True, False], [True, True, False]),
        (("?", "+"), ["?", "-"], ["?"], [True, False]),
    ],
)
def test_labels_are_the_declared_classes(classes, values, labels, kept):
    found, which = ClassTarget("x", classes).encode(ArrayValues(np.array(values, dtype=object)))
    assert found.tolist() == labels
    assert found.dtype == np.array(classes).dtype
    assert which.tolist() == kept


def test_numbers_are_clipped_and_gaps_do_not_count():
    found, which = NumberTarget("x", 0, 10).encode(
        ArrayValues(np.array(["3", "11", "?", "-1", "inf"]))
    )
    assert found.tolist() == [3.0, 10.0, 0.0]
    assert which.tolist() == [True, True, False, True, False]
