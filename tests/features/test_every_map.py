"""What every map of rows promises: norms that are attained, rows of one record, facts, streams."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import tacit
from tacit.features import (
    CosineWaves,
    FeatureMap,
    GroupNormalization,
    OpponentColours,
    Scattering,
)
from tacit.linear_model import LogisticRegression
from tacit.records import Bounds, MemoryRecords
from tacit.records import memory as memory_module
from tacit.records.lazy_table import MappedRows
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
from tacit.table_facts import EncodedTable, TableFacts
from tests.declared import concrete
from tests.features.helpers import BOUNDS, maps

NAMES = list(maps())
ROWS = np.random.default_rng(0).uniform(-1.5, 1.5, (400, 3))


def test_no_map_is_left_out() -> None:
    # tests.features.test_images
    of_images = {CosineWaves, GroupNormalization, OpponentColours, Scattering}
    found = concrete(under=FeatureMap) - {FeatureMap}
    assert {type(step) for step in maps().values()} | of_images == found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "bounds", ["ranges", *(pytest.param(b, marks=pytest.mark.slow) for b in ("norm", "both"))]
)
def test_the_norm_holds_and_is_attained(name: str, bounds: str) -> None:
    step = maps(**BOUNDS[bounds])[name].fit(ROWS)
    norm = step.facts_out().row_norm
    hostile = np.vstack([100 * ROWS, ROWS, 1e-9 * ROWS])
    norms = np.linalg.norm(step.transform(hostile), axis=1)
    assert norms.max() <= norm * (1 + 1e-12)
    if "splines" in name and bounds != "ranges":
        return  # exact where each number goes by itself
    if name == "lines" and bounds == "both":
        return

    def short(x: np.ndarray) -> float:
        return -float(np.linalg.norm(step.transform(x[None])))

    starts = hostile[np.argsort(norms)[-2:]]
    found = max(-minimize(short, x, method="Nelder-Mead").fun for x in starts)
    assert found >= norm * (1 - 1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_names_facts_and_columns_agree(name: str) -> None:
    step = maps(ranges=(-2.0, 2.0))[name].fit(pd.DataFrame(ROWS, columns=["a", "b", "c"]))
    names = step.get_feature_names_out()
    out = step.transform(pd.DataFrame(ROWS, columns=["a", "b", "c"]))
    assert out.shape == (len(ROWS), len(names))
    assert len(set(names)) == len(names)
    came = TableFacts(("a", "b", "c"), 3.0, 50, label_range=(0.0, 1.0), assumptions=("so",))
    facts = step.facts_out(came)
    assert facts.names == tuple(names)
    assert (facts.n_records, facts.label_range, facts.assumptions) == (50, (0.0, 1.0), ("so",))
    if facts.ranges is not None:
        low, high = np.array(facts.ranges).T
        assert np.all((out >= low - 1e-15) & (out <= high + 1e-15))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_made_of_its_record_alone(name: str) -> None:
    step = maps(row_norm=1.0)[name].fit(ROWS)
    whole = step.transform(ROWS)
    for rows, at in ((ROWS[:1], slice(1)), (ROWS[3:200], slice(3, 200)), (ROWS[7:8], slice(7, 8))):
        assert step.transform(rows).tobytes() == np.ascontiguousarray(whole[at]).tobytes()
    for same in (np.asfortranarray(ROWS), csr_array(ROWS), ROWS.tolist()):
        assert step.transform(same).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_is_not_finite_is_zeros_and_changes_no_other(name: str) -> None:
    step = maps(row_norm=1.0)[name].fit(ROWS)
    odd = ROWS.copy()
    odd[[2, 5]] = [[np.nan, 0, 0], [0, np.inf, 1]]
    expected = step.transform(ROWS)
    expected[[2, 5]] = 0.0
    for rows in (odd, csr_array(odd)):
        assert np.array_equal(np.asarray(step.mapped(rows)), expected)
    with pytest.raises(ValueError, match="NaN"):
        step.transform(odd)


@pytest.mark.parametrize("name", NAMES)
def test_a_pass_gives_the_sums_of_the_whole_table(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = maps(row_norm=1.0)[name].fit(ROWS)
    bounds = Bounds(row_norm=step.facts_out().row_norm, intercept=0.25)
    labels = np.sign(ROWS[:, 0])
    whole = MemoryRecords(step.transform(ROWS), labels, bounds)
    monkeypatch.setattr(memory_module, "CACHED_BYTES", 0)
    streamed = MemoryRecords(step.mapped(ROWS), labels, bounds)
    assert isinstance(streamed.rows, MappedRows)

    def gradient(block: object) -> tuple[np.ndarray, ...]:
        scores = block.scores(np.ones(streamed.n_features + 1))  # type: ignore[attr-defined]
        return (block.weighted_sum(np.tanh(scores)), block.gram(scores**2))  # type: ignore[attr-defined]

    for fine in (False, True):
        for a, b in zip(
            whole.sum(gradient, fine=fine), streamed.sum(gradient, fine=fine), strict=True
        ):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_facts_flow_through_a_pipeline(name: str) -> None:
    step = clone(maps()[name])
    schema = Schema(
        (Number("a", 0, 100), Number("b", 0, 1), Number("c", 0, 9)),
        ClassTarget("ill", ("no", "yes")),
    )
    rng = np.random.default_rng(1)
    table = {"a": rng.uniform(0, 100, 4000), "b": rng.random(4000), "c": rng.uniform(0, 9, 4000)}
    ill = np.where(table["a"] > 50, "yes", "no")
    estimator = LogisticRegression(3.0)
    steps = [("encode", SchemaEncoder(schema)), ("map", step), ("model", estimator)]
    model = tacit.PrivatePipeline(steps, epsilon=None)
    facts = SchemaEncoder(schema).facts_out()
    assert model.plan().problem.objective.bounds.row_norm == step.facts_out(facts).row_norm
    model.fit(table, ill)
    assert model["model"].row_norm_ == step.facts_out(facts).row_norm
    assert model["map"].domain_.ranges == facts.ranges
    assert model.score(table, ill) > 0.75


def test_a_table_is_not_read_by_fit() -> None:
    def read() -> None:
        raise AssertionError("read")

    facts = TableFacts(("a", "b", "c"), 2.0)
    for step in maps().values():
        step.fit(EncodedTable(facts, read))  # type: ignore[arg-type]
        step.fit(facts)
        step.fit(np.full((2, 3), np.nan))


READS_NOTHING = {
    "check_estimators_nan_inf": "fit reads no value; transform refuses",
    "check_complex_data": "fit reads no value; transform refuses",
    "check_dtype_object": "fit reads no value; transform refuses",
}


def not_read(_: object) -> dict[str, str]:
    return READS_NOTHING


@parametrize_with_checks([maps(row_norm=20.0)["waves"]], expected_failed_checks=not_read)
def test_sklearn_compatible(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]


# They share its code.
OTHERS = [maps(row_norm=20.0)[name] for name in ("cubes", "interactions", "splines")]


@pytest.mark.slow
@parametrize_with_checks(OTHERS, expected_failed_checks=not_read)
def test_others_are_sklearn_compatible(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]
