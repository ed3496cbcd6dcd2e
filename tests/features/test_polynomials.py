"""Interactions of the columns of a schema: none of one category with itself, and chosen pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.features import Interactions
from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import PrivateStandardScaler
from tacit.saving import load, save
from tacit.saving.container import from_json, to_json
from tacit.saving.model_file import members_of, stored_in
from tacit.schema import Category, ClassTarget, Indicator, Number, Schema, SchemaEncoder

RNG = np.random.default_rng(4)
N = 3000
COLUMNS = (
    Number("age", 0, 100),
    Category("sex", ("f", "m")),
    Category("ward", ("A", "B", "C")),
    Number("dose", 0, 10, missing=Indicator()),
)
TABLE = pd.DataFrame(
    {
        "age": RNG.uniform(0, 100, N),
        "sex": RNG.choice(["f", "m"], N),
        "ward": RNG.choice(["A", "B", "C", "?"], N),
        "dose": RNG.uniform(0, 12, N),
        "ill": RNG.choice(["no", "yes"], N),
    }
)
SCHEMA = Schema(COLUMNS, ClassTarget("ill", ("no", "yes")))
ENCODED = SchemaEncoder(SCHEMA).fit(TABLE).transform(TABLE)


def pipeline(step: Any, *before: Any, epsilon: float | None = None) -> PrivatePipeline:
    steps = [("encode", SchemaEncoder(SCHEMA)), *before, ("pairs", step)]
    own = 5.0 if epsilon is None else None
    return PrivatePipeline([*steps, ("model", LogisticRegression(own))], epsilon=epsilon)


def test_features_of_one_column_are_not_multiplied() -> None:
    names = Interactions().facts_out(SCHEMA.facts).names
    products = [name for name in names if name not in SCHEMA.feature_names]
    assert "age sex=f" in products
    assert "sex=m ward=C" in products
    assert not {"sex=f sex=m", "ward=A ward=B", "dose dose is missing"} & set(products)
    # 1 x 2 + 1 x 3 + 1 x 2 + 2 x 3 + 2 x 2 + 3 x 2 pairs of features of two columns
    assert len(products) == 23
    assert len(Interactions("all").facts_out(SCHEMA.facts).names) == 8 + 8 * 7 // 2


def test_the_norm_is_that_of_the_longest_record() -> None:
    facts = Interactions().facts_out(SCHEMA.facts)
    squares = np.array([column.largest**2 for column in COLUMNS])
    total = squares.sum()
    longest = total + (total**2 - np.sum(squares**2)) / 2
    assert facts.row_norm**2 == pytest.approx(longest, rel=1e-5)
    one = Interactions([("sex", "ward")]).facts_out(SCHEMA.facts)
    assert one.row_norm**2 == pytest.approx(total + 1.0, rel=1e-5)
    for step, norm in ((Interactions(), facts.row_norm), (Interactions([(0, 1)]), None)):
        made = step.fit(SCHEMA.facts).transform(ENCODED)
        assert np.linalg.norm(made, axis=1).max() <= (norm or step.facts_out().row_norm)
        np.testing.assert_array_equal(made[:, : ENCODED.shape[1]], ENCODED)


@pytest.mark.parametrize("pairs", [None, [("sex", "ward"), ("age", "sex"), ("age", "dose")]])
def test_rows_that_no_record_makes_are_within_the_norm(pairs: Any) -> None:
    hostile = 100 * RNG.standard_normal((500, 8)) * (RNG.random((500, 8)) < 0.5)
    after = SCHEMA.facts.through(PrivateStandardScaler(columns=["age"], bounds=(-1, 1)))
    for facts in (SCHEMA.facts, after):
        step = Interactions(pairs).fit(facts)
        norm = step.facts_out(facts).row_norm
        assert norm <= Interactions("all").facts_out(facts).row_norm
        for rows in (hostile, np.abs(hostile)):
            assert np.linalg.norm(step.transform(rows), axis=1).max() <= norm * (1 + 1e-12)


def test_a_scaler_keeps_the_columns_apart() -> None:
    scaler = ("scale", PrivateStandardScaler(columns=["age"], bounds=(-1, 1)))
    model = pipeline(Interactions(), scaler, epsilon=9.0).fit(TABLE)
    names = model.feature_names_met or ()
    assert "age sex=f" in names
    assert "sex=f sex=m" not in names


def test_pairs_are_columns_features_or_places() -> None:
    def products(*pairs: Any) -> list[str]:
        return list(Interactions(list(pairs)).facts_out(SCHEMA.facts).names[8:])

    assert products(("age", "sex")) == ["age sex=f", "age sex=m"]
    assert products(("ward=B", "age")) == ["age ward=B"]
    assert products((0, 1), ("age", "dose")) == ["age sex=f", "age dose", "age dose is missing"]
    assert products() == []
    rows = Interactions([("ward", "age")]).fit(SCHEMA.facts).transform(ENCODED)
    np.testing.assert_array_equal(rows[:, 8:], ENCODED[:, 3:6] * ENCODED[:, [0]])


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([("age", "size")], "'size', and there is none"),
        ([(0, 8)], "8, and there is none"),
        ([("sex=f", "sex=m")], "the same column"),
        ([("age", "age")], "the same column"),
        ([("age", "sex"), ("sex", "age")], "a second time"),
        ([("age", "sex", "ward")], "pairs of columns"),
        (["age"], "pairs of columns"),
        ("some", "a list of pairs, None or 'all'"),
    ],
)
def test_other_pairs_are_refused(pairs: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        pipeline(Interactions(pairs)).plan()


def test_many_columns_with_a_few_pairs_stay_few() -> None:
    columns = tuple(Number(f"x{j}", -1, 1) for j in range(58))
    table = pd.DataFrame(RNG.uniform(-1, 1, (20_000, 58)), columns=[c.name for c in columns])
    # The sign of a product: no line separates it without the pair.
    table["ill"] = np.where(table["x1"] * table["x2"] > 0, "yes", "no")
    chosen = [("x1", "x2"), *((f"x{j}", f"x{j + 1}") for j in (10, 20, 30, 40))]
    schema = Schema(columns, ClassTarget("ill", ("no", "yes")))
    steps = [("encode", SchemaEncoder(schema)), ("pairs", Interactions(chosen))]
    model = PrivatePipeline([*steps, ("model", LogisticRegression(5.0))], epsilon=None).fit(table)
    assert model.estimator_.n_features_in_ == 63
    assert model.score(table) > 0.8


def test_files_keep_their_pairs(tmp_path: Path) -> None:
    path = tmp_path / "model.tacit"
    for step in (Interactions(), Interactions([("age", "sex"), ("age", "ward=A")])):
        model = pipeline(step).fit(TABLE)
        path.unlink(missing_ok=True)
        save(model, path)
        again = load(path)
        assert again.feature_names_met == model.feature_names_met
        np.testing.assert_array_equal(again.predict_proba(TABLE), model.predict_proba(TABLE))


def test_a_file_of_before_has_all_products() -> None:
    model = pipeline(Interactions("all")).fit(TABLE)
    members = members_of(model)
    record = from_json(members["model.json"], "model.json")
    assert record["steps"][1]["parameters"].pop("pairs") == "all"  # tacit 0.1 had no such parameter
    again: Any = stored_in({**members, "model.json": to_json(record)}).model
    assert again.estimator_.n_features_in_ == 36
    np.testing.assert_array_equal(again.predict_proba(TABLE), model.predict_proba(TABLE))
