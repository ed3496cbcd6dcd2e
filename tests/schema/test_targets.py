import numpy as np
import pytest

from tacit.io.values import ArrayValues
from tacit.schema import ClassTarget, NumberTarget, SchemaError


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


def test_merged_classes_stand_for_several_values():
    target = ClassTarget.merged("x", {"early": ["<30"], "other": [">30", "NO", 0]})
    values = np.array([">30", " <30", "NO", "other", 0.0, None, "?"], dtype=object)
    found, which = target.encode(ArrayValues(values))
    assert found.tolist() == ["other", "early", "other", "other"]
    assert which.tolist() == [True, True, True, False, True, False, False]
    counts = target.check(ArrayValues(values))
    assert (counts.missing, counts.unreadable) == (2, 1)


@pytest.mark.parametrize(
    ("classes", "words", "why"),
    [
        (("a", "b"), (("x",),), "a list of values for each class"),
        (("a", "b"), 3, "a list of values for each class"),
        ((0, 1), (("x",), ("y",)), "have names"),
        (("a", "b"), (("x",), ("y", "x")), "'x' is in the classes 'a' and 'b'"),
        (("a", "b"), (("x",), ()), "'b' is empty"),
        (("a",), (("x", "y"),), "at least two"),
    ],
)
def test_merges_that_are_refused(classes, words, why):
    with pytest.raises(SchemaError, match=why):
        ClassTarget("x", classes, words)


def test_numbers_are_clipped_and_gaps_do_not_count():
    found, which = NumberTarget("x", 0, 10).encode(
        ArrayValues(np.array(["3", "11", "?", "-1", "inf"]))
    )
    assert found.tolist() == [3.0, 10.0, 0.0]
    assert which.tolist() == [True, True, False, True, False]
