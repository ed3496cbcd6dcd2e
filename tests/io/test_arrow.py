import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.io.arrow import ArrowValues
from tacit.io.values import ArrayValues, number_of
from tacit.schema import TableError
from tests.schema.helpers import WORDS

PLACE = {"Oslo": 0, "1": 1, "true": 2, "yes": 3}
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
TEXTS += [pa.binary_view(), pa.dictionary(pa.int32(), pa.string())]


def same(array, values):
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    read, expected = ArrowValues(array, "x"), ArrayValues(objects)
    assert np.array_equal(read.numbers(), expected.numbers(), equal_nan=True)
    assert np.array_equal(read.codes(PLACE), expected.codes(PLACE))


@given(st.lists(st.one_of(WORDS, st.none()), max_size=10), st.sampled_from(TEXTS))
def test_text_reads_as_it_does_one_by_one(values, kind):
    array = pa.array(values, pa.string()).cast(pa.binary() if "binary" in str(kind) else kind)
    same(array.cast(kind) if not pa.types.is_dictionary(kind) else array, values)


@given(WORDS)
def test_a_word_is_read_the_same_beside_one_that_is_no_number(word):
    # The two take different roads: all at once, and word by word.
    alone = ArrowValues(pa.array([word]), "x").numbers()
    beside = ArrowValues(pa.array([word, "no number"]), "x").numbers()
    assert np.array_equal(alone, beside[:1], equal_nan=True)
    assert np.array_equal(alone, [number_of(word)], equal_nan=True)


@given(st.lists(st.one_of(st.floats(), st.none())), st.lists(st.one_of(st.booleans(), st.none())))
def test_numbers_and_booleans(floats, booleans):
    same(pa.array(floats, pa.float64()), floats)
    same(pa.array(booleans, pa.bool_()), booleans)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(38, 2)])
def test_other_numbers(kind):
    values = [None, 1, 3, 100]
    same(pa.array(values).cast(kind), values)


def test_slices_and_dictionaries_with_gaps():
    array = pa.array(["x", "Oslo", None, "7", "yes"]).dictionary_encode()[1:4]
    same(array, ["Oslo", None, "7"])
    gap = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["Oslo", None]))
    same(gap, ["Oslo", None, None])
    same(pa.array([1, 3, None]).dictionary_encode(), [1, 3, None])
    same(pa.nulls(2), [None, None])
    assert ArrowValues(array, "x").different() == [b"Oslo", b"7"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()], ids=str)
@pytest.mark.parametrize("odd", [[2, 100], [-1, -2, 100], [None, 2]], ids=str)
def test_an_index_without_a_word_is_missing_and_the_others_are_read(kind, odd):
    if kind == pa.uint64():
        odd = [2**63 if index == 100 else index for index in odd if index is None or index >= 0]
    indices = pa.array([0, *odd, 1], kind)
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["Oslo", "7"]), safe=False)
    same(array, ["Oslo", *[None] * len(odd), "7"])


def test_text_that_is_not_utf8_is_unknown():
    array = pa.array([b"\xff", b"Oslo"])
    assert ArrowValues(array, "x").codes(PLACE).tolist() == [-1, 0]
    assert np.array_equal(ArrowValues(array, "x").numbers(), [np.nan] * 2, equal_nan=True)


@pytest.mark.parametrize(
    "array",
    [pa.array([[1]]), pa.array([datetime.date(2020, 1, 1)]), pa.array([{"a": 1}])],
    ids=str,
)
def test_other_types_are_refused(array):
    for ask in (lambda v: v.numbers(), lambda v: v.codes(PLACE), lambda v: v.different()):
        with pytest.raises(TableError, match=r"'visit' is of type.*ignored"):
            ask(ArrowValues(array, "visit"))
