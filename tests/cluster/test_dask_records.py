"""Records in parts: the bits of one process, or no result at all."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from tacit.cluster import DaskRecords, dask_records
from tacit.erm import NoisyGradient, NoisySGD, Objective, minimize
from tacit.erm.losses import LogisticLoss
from tacit.linear_model import LogisticRegression
from tacit.noise import seeded_source
from tacit.privacy import Budget
from tacit.records import Bounds, RecordSource
from tacit.records.exact.lattice import exact_moment
from tacit.records.reweighted import ClassWeights, ReweightedRecords
from tacit.schema import ClassTarget, Number, Schema
from tacit.testing import check_record_source
from tests.cluster.helpers import BOUNDS, AtOnce, Done, data, in_memory, in_parts, pairs

MECHANISMS = [NoisyGradient(n_steps=10), "objective_perturbation", "output_perturbation"]


def fitted(records: RecordSource, mechanism: Any) -> Any:
    objective = Objective(LogisticLoss(), BOUNDS)
    budget = Budget(1.0, 1e-6)
    return minimize(records, objective, budget, mechanism, source=seeded_source(5)).weights


def test_exact_sums_have_the_bits_of_one_process() -> None:
    expected = fitted(in_memory(), NoisyGradient(n_steps=10))
    moment = exact_moment(in_memory())
    for edges in ((), (1,), (100, 100, 300), (13, 14, 15, 599)):
        records = in_parts(*data(), BOUNDS, *edges)
        assert np.array_equal(fitted(records, NoisyGradient(n_steps=10)), expected)
        assert np.array_equal(exact_moment(records), moment)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_same_parts_give_the_same_bits(mechanism: Any) -> None:
    first, again = (fitted(in_parts(*data(), BOUNDS, 200, 310), mechanism) for _ in range(2))
    assert np.array_equal(first, again)
    assert np.allclose(first, fitted(in_memory(), mechanism), rtol=1e-6)


def test_samples_go_by_a_key_and_a_part() -> None:
    records = in_parts(*data(), BOUNDS, 200, 400)
    sampled = [fitted(records, NoisySGD(0.2, 5)) for _ in range(2)]
    assert np.array_equal(*sampled)

    def members(seed: int) -> Any:
        sample: Any = records.poisson_sample(0.5, seeded_source(seed).words).records
        return [held.value.records.rows[:, 0] for held in sample._parts]

    one, same, other = members(1), members(1), members(2)
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(np.concatenate(one), np.concatenate(other))
    # parts have streams of their own: alike records are not in or out together
    twins = [(np.ones((400, 1)), None) for _ in range(2)]
    alike = DaskRecords.from_delayed(twins, 1, Bounds(), AtOnce())
    sample: Any = alike.poisson_sample(0.5, seeded_source(1).words).records
    counts = [held.value.records.count() for held in sample._parts]
    assert counts[0] != counts[1]
    assert all(120 < count < 280 for count in counts)


def test_functions_that_hold_their_records_can_be_sent() -> None:
    bounds = Bounds(row_norm=2.0, n_classes=2, max_weight=1.0)
    records = ReweightedRecords(in_parts(*data(), bounds, 100), ClassWeights((0.5, 1.0)))
    (total,) = records.sum(lambda block: (block.weighed(np.ones(block.n_rows)).sum(),))
    n_ones = int((data()[1] > 0).sum())
    assert total == n_ones + (600 - n_ones) / 2


@pytest.mark.parametrize("what", ["missing", "doubled", "late", "other records"])
def test_a_partial_sum_too_few_or_too_many_releases_nothing(what: str) -> None:
    kept: list[Any] = []

    def tamper(results: list[Any]) -> list[Any]:
        kept.append(results)
        if len(kept) < 3:
            return results
        if what == "missing":
            return results[:-1]
        if what == "doubled":
            return [*results, results[0]]
        if what == "late":
            return [*results[:-1], kept[-2][-1]]
        return [*results[:-1], results[-1]._replace(checksum=1)]

    parts = pairs(*data(), 200, 400)
    records = DaskRecords.from_delayed(parts, 5, BOUNDS, AtOnce(tamper))
    with pytest.raises((RuntimeError, ValueError)) as refused:
        fitted(records, NoisyGradient(n_steps=10))
    assert len(kept) == 3
    assert "nothing was released" in str(refused.value) or "same records" in str(refused.value)


def test_no_words_of_a_worker_come_back() -> None:
    def leaky(block: Any) -> Any:
        raise ValueError(f"the first row is {block.rows[0]}")

    with pytest.raises(RuntimeError, match="failed with ValueError") as refused:
        in_parts(*data(), BOUNDS, 100).sum(leaky)
    assert "row is" not in str(refused.value)
    text = (np.full((3, 5), "471147", dtype=object), np.zeros(3))
    text[0][1, 1] = "secret 471147"
    records = DaskRecords.from_delayed([text], 5, BOUNDS, AtOnce())
    with pytest.raises(RuntimeError, match="failed with ValueError") as refused:
        records.count()
    assert "471147" not in str(refused.value)


def test_a_bad_record_is_a_row_of_zeros() -> None:
    rows, labels = data()
    worse = np.vstack([rows, np.full(5, np.nan), np.full(5, np.inf)])
    signs = np.append(labels, [1.0, -1.0])
    (more,) = in_parts(worse, signs, BOUNDS, 300).sum(lambda b: (b.weighted_sum(b.labels),))
    (fewer,) = in_memory().sum(lambda b: (b.weighted_sum(b.labels),))
    np.testing.assert_allclose(more, fewer, atol=1e-9)


def test_files_that_workers_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    schema = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
    for number in range(3):
        age = rng.uniform(0, 100, 200)
        table = pa.table({"age": age, "ill": np.where(age > 50, "yes", "no")})
        pyarrow.parquet.write_table(table, tmp_path / f"{number}.parquet")
    bounds = Bounds(row_norm=1.0)
    records = DaskRecords.from_files(f"{tmp_path}/*.parquet", schema, bounds, AtOnce())
    assert records.count() == 600
    (total,) = records.sum(lambda block: (block.weighted_sum(block.labels),))
    assert total[0] > 100


def test_frames_of_numbers() -> None:
    import dask.dataframe as dd
    import pandas as pd

    rows, labels = data()
    frame = pd.DataFrame(rows, columns=list("abcde")).assign(y=labels)

    class Computing(AtOnce):
        def compute(self, delayed: Any) -> Any:
            return Done(delayed.compute(scheduler="synchronous"))

    pieces = dd.from_pandas(frame, npartitions=3)
    records = DaskRecords.from_frame(pieces, "y", BOUNDS, Computing())
    assert np.array_equal(exact_moment(records), exact_moment(in_memory()))
    with pytest.raises(ValueError, match="no column 'z'"):
        DaskRecords.from_frame(pieces, "z", BOUNDS, Computing())
    words = dd.from_pandas(frame.assign(a="x"), npartitions=1)
    with pytest.raises(TypeError, match="'a' is not of numbers"):
        DaskRecords.from_frame(words, "y", BOUNDS, Computing())


def test_the_bound_on_float_error_grows_with_parts() -> None:
    many = in_parts(*data(), BOUNDS, *range(1, 400))
    few = in_parts(*data(), BOUNDS)
    unit = 600 * 2.0**-53
    assert few.sum_error() == pytest.approx((600 + 1 + 8 + 1) * unit, rel=1e-6, abs=0.0)
    # the last part has 201 records
    assert many.sum_error() == pytest.approx((201 + 1 + 8 + 400) * unit, rel=1e-6, abs=0.0)
    assert many.sum_error(fine=True) == pytest.approx(
        (201 + 9 + math.log2(400) + 1) * unit, 0.02, abs=0.0
    )
    with pytest.raises(ValueError, match="at least one"):
        DaskRecords([], 3, BOUNDS, AtOnce())


@pytest.mark.slow
@pytest.mark.parametrize("edges", [(), (20, 50)])
def test_a_source_is_sound(edges: tuple[int, ...]) -> None:
    def make(rows: Any, labels: Any, bounds: Bounds) -> RecordSource:
        # what is looked at must not be lost on a wire
        client = AtOnce(wire=lambda value: value)
        parts = pairs(rows, labels, *edges)
        return DaskRecords.from_delayed(parts, rows.shape[1], bounds, client)

    check_record_source(make, takes_sparse=False, keyed_samples=True)


def test_a_part_that_is_given_twice_is_refused() -> None:
    # its records would count twice
    one, other = pairs(*data(), 300)
    with pytest.raises(ValueError, match="given twice"):
        DaskRecords.from_delayed([one, other, one], 5, BOUNDS, AtOnce())
    loaded = dask.delayed(one)
    with pytest.raises(ValueError, match="given twice"):
        DaskRecords.from_delayed([loaded, other, dask.delayed(loaded)], 5, BOUNDS, AtOnce())
    assert DaskRecords.from_delayed([one, (*one,)], 5, BOUNDS, AtOnce()).count() == 600


class Keyed(AtOnce):
    """A client whose futures have the keys that Dask gives: hashes of what was called."""

    def future(self, pair: Any) -> Done:
        future = Done(pair)
        future.key = dask.base.tokenize(pair)
        return future

    def compute(self, piece: Any) -> Done:
        return Done(piece.compute(scheduler="sync"))


def parts_of_one_key(kind: str, client: Keyed) -> list[Any]:
    one, other = pairs(*data(), 300)
    if kind == "futures":
        return [client.future(one), client.future((*one,)), client.future(other)]
    load = dask.delayed(lambda pair: pair, pure=kind == "pure")
    return [load(one), load((*one,)), load(other)]


@pytest.mark.parametrize("kind", ["futures", "pure", "delayed"])
def test_a_key_decides_nothing_and_the_guarantee_says_what_is_assumed(kind: str) -> None:
    client = Keyed()
    parts = parts_of_one_key(kind, client)
    assert (parts[0].key == parts[1].key) == (kind != "delayed")
    records = DaskRecords.from_delayed(parts, 5, BOUNDS, client)
    assert records.count() == 900  # one record in the second part less must not be 300 less
    rows, labels = data()
    moved = [parts[0], (rows[:299], labels[:299]), parts[2]]
    assert DaskRecords.from_delayed(moved, 5, BOUNDS, client).count() == 899
    objective, budget = Objective(LogisticLoss(), BOUNDS), Budget(1.0, 1e-6)
    mechanism = NoisyGradient(n_steps=2)
    sampled: Any = records.poisson_sample(0.5, seeded_source(1).words).records
    for source in (records, records.every(2), sampled):
        promise = minimize(source, objective, budget, mechanism).privacy
        assert any("delayed parts" in sentence for sentence in promise.assumptions)
    model = LogisticRegression(row_norm=2.0, classes=[0, 1], mechanism=mechanism)
    bounds = model.plan(5).problem.objective.bounds
    model.fit(DaskRecords.from_delayed(parts, 5, bounds, client), None)
    assert "no two of the futures" in model.privacy_.statement()
    with pytest.raises(ValueError, match="given twice"):
        DaskRecords.from_delayed([*parts, parts[0]], 5, BOUNDS, client)


def test_pairs_and_frames_need_no_assumption() -> None:
    promise = minimize(
        in_parts(*data(), BOUNDS, 300), Objective(LogisticLoss(), BOUNDS), Budget(1.0, 1e-6)
    ).privacy
    assert not promise.assumptions


def test_records_of_a_frame_may_lie_apart_in_memory() -> None:
    frame = pd.DataFrame(np.arange(18.0).reshape(6, 3), columns=["a", "b", "ill"])
    held = dask_records.load_frame(frame[::2], ["a", "b"], "ill", BOUNDS)
    assert isinstance(held, dask_records.Part)
    assert held.records.count() == 3


def test_a_pass_does_not_mind_another_at_the_same_time() -> None:
    class Meanwhile(AtOnce):
        """Lets another thread's pass in between two parts of one."""

        busy = True  # while parts are loaded

        def submit(self, function: Any, *arguments: Any, pure: bool) -> Any:
            if not self.busy:
                self.busy = True
                assert records.count() == 600
            return super().submit(function, *arguments, pure=pure)

    client = Meanwhile()
    records = DaskRecords.from_delayed(pairs(*data(), 200, 400), 5, BOUNDS, client)
    client.busy = False
    (total,) = records.sum(lambda block: (block.labels.sum(),))
    assert total == data()[1].sum()


def test_a_sample_of_other_records_than_those_counted_is_refused() -> None:
    rows, labels = data()
    records = DaskRecords.from_delayed(pairs(rows, labels, 300), 5, BOUNDS, AtOnce())
    assert records.count() == 600
    moved = dask_records.load_pair((rows[250:], labels[250:]), 5, BOUNDS)
    records._parts[1].value = moved  # 50 records are in two parts now
    for some in (records.every(2), records.poisson_sample(0.5, seeded_source(1).words).records):
        with pytest.raises(ValueError, match="loaded again"):
            some.count()
