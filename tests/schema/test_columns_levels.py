"""References: one level less to encode, no row longer, and no level mistaken for another."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.schema import (
    Category,
    Fill,
    Indicator,
    Intervals,
    Number,
    Schema,
    SchemaEncoder,
    SchemaError,
)

WARDS = ("A", "B", "C")


@pytest.mark.parametrize("reference", WARDS)
def test_each_level_but_the_reference_has_a_feature(reference: str) -> None:
    column = Category("ward", WARDS, reference=reference)
    others = [word for word in WARDS if word != reference]
    assert column.names() == [f"ward={word}" for word in others]
    rows = column.encode(np.array([*others, reference, "elsewhere", "?"]))
    third = np.full(2, 1 / 3)
    np.testing.assert_array_equal(rows, [*np.eye(2), np.zeros(2), third, third])


def test_a_record_without_a_level_scores_as_the_average_of_the_levels() -> None:
    column = Category("ward", WARDS, reference="B")
    scores = column.encode(np.array([*WARDS, "elsewhere"])) @ [2.0, -1.0]
    assert scores[-1] == pytest.approx(scores[:-1].mean())


def test_a_missing_level_has_a_feature_of_its_own_or_is_filled() -> None:
    marked = Category("ward", WARDS, Indicator(), reference="A")
    assert marked.names() == ["ward=B", "ward=C", "ward is missing"]
    rows = marked.encode(np.array(["A", "C", "?", "elsewhere"]))
    third = 1 / 3
    np.testing.assert_array_equal(rows, [[0, 0, 0], [0, 1, 0], [0, 0, 1], [third, third, 0]])
    filled = Category("ward", WARDS, Fill("C"), reference="A")
    np.testing.assert_array_equal(filled.encode(np.array(["?", "A"])), [[0, 1], [0, 0]])
    at_it = Category("ward", WARDS, Fill("A"), reference="A")
    np.testing.assert_array_equal(at_it.encode(np.array(["?"])), [[0, 0]])


def test_intervals_are_compared_with_one_of_them() -> None:
    ages = Intervals("age", (20, 40), reference="20 <= age < 40")
    assert ages.names() == ["age < 20", "age >= 40"]
    rows = ages.encode(np.array([5.0, 20.0, 80.0, np.nan]))
    np.testing.assert_array_equal(rows, [[1, 0], [0, 0], [0, 1], [1 / 3, 1 / 3]])
    assert Intervals("age", (20, 40)).with_reference().reference == "age < 20"


@pytest.mark.parametrize("n_levels", [2, 3, 40])
def test_no_row_is_longer_than_the_norm_and_one_is_as_long(n_levels: int) -> None:
    words = tuple(f"w{place}" for place in range(n_levels))
    schema = Schema((Number("age", 0, 100), Category("ward", words))).with_references()
    table = {"age": [100] * (n_levels + 2), "ward": [*words, "elsewhere", "?"]}
    norms = np.linalg.norm(SchemaEncoder(schema).fit().transform(table), axis=1)
    assert norms.max() == pytest.approx(schema.row_norm, rel=1e-15)


def test_with_an_intercept_no_feature_is_one_too_many() -> None:
    schema = Schema((Category("ward", WARDS, Indicator()), Intervals("age", (20, 40))))
    table = {"ward": [*WARDS, "?"] * 3, "age": [5] * 4 + [30] * 4 + [50] * 4}

    def rank_lacks(of: Schema) -> int:
        rows = SchemaEncoder(of).fit().transform(table)
        design = np.column_stack([rows, np.ones(len(rows))])
        return design.shape[1] - int(np.linalg.matrix_rank(design))

    assert rank_lacks(schema) == 2
    assert rank_lacks(schema.with_references()) == 0


def test_references_are_kept_in_files_and_change_the_digest() -> None:
    schema = Schema((Category("ward", WARDS, reference="B"), Intervals("age", (20,))))
    whole = schema.with_references()
    assert whole.references == {"ward": "B", "age": "age < 20"}
    assert whole.with_references() == whole
    assert Schema.from_dict(whole.to_dict()) == whole
    assert 'reference = "B"' in whole.to_toml()
    assert len({schema.digest(), whole.digest()}) == 2
    assert "reference" not in Schema((Category("ward", WARDS),)).to_toml()


def test_one_value_alone_has_nothing_to_be_compared_with() -> None:
    alone = Schema((Category("ward", ("A",)),))
    assert alone.with_references() == alone
    with pytest.raises(SchemaError, match="needs at least two levels"):
        Category("ward", ("A",), reference="A")


@pytest.mark.parametrize("reference", ["D", "", 3, ["A"]])
def test_a_reference_is_one_of_the_levels(reference: object) -> None:
    line = {"kind": "category", "values": list(WARDS), "reference": reference}
    with pytest.raises(SchemaError, match=r"'ward'.*reference = .*'A', 'B', 'C'"):
        Schema.from_dict({"columns": {"ward": line}})
