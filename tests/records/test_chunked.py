from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from tacit.erm import NoisyGradient, NoisySGD, Objective, QuantileOnALine, minimize
from tacit.erm.losses import QuantileLoss
from tacit.linear_model import LogisticRegression
from tacit.noise import seeded_source
from tacit.privacy import Budget
from tacit.records import Block, Bounds, ChunkedRecords, MemoryRecords
from tacit.records import block as block_sums

BOUNDS = Bounds(row_norm=2.0, label_range=(-1.0, 1.0), intercept=0.5)
N = 1003


def table(n: int = N) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 5)) * 2, rng.normal(0, 2, n)


def in_blocks(X: Any, y: Any, *sizes: int) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of these sizes, the last one of them again and again."""
    n, start = X.shape[0], 0
    for size in itertools.chain(sizes, itertools.repeat(sizes[-1])):
        if start >= n:
            return
        yield X[start : start + size], None if y is None else y[start : start + size]
        start += size


def chunked(X: Any, y: Any, *sizes: int, bounds: Bounds = BOUNDS) -> ChunkedRecords:
    return ChunkedRecords(lambda: in_blocks(X, y, *sizes), X.shape[1], bounds)


def everything(block: Block) -> tuple[Any, ...]:
    scores = block.scores(np.linspace(-1.0, 1.0, block.points().shape[1]))
    assert block.labels is not None
    return (
        block.weighted_sum(np.tanh(scores)),
        block.gram(1.0 / (1.0 + scores**2)),
        block.points().sum(axis=0),
        block.labels.sum(),
    )


def bits(records: Any, fine: bool = False) -> bytes:
    return b"".join(np.asarray(part).tobytes() for part in records.sum(everything, fine=fine))


KINDS: dict[str, Any] = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "whole": lambda X: np.rint(X).astype(np.int16),
    "csr": scipy.sparse.csr_array,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fine", [False, True])
def test_no_bit_depends_on_where_blocks_end(
    kind: str, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_sums, "_BLOCK_BYTES", 1)
    monkeypatch.setattr(block_sums, "_FEWEST_ROWS", 100)
    monkeypatch.setattr(block_sums, "_FINE_ROWS", (25, 25))
    X, y = table(303)
    X = KINDS[kind](X)
    expected = bits(MemoryRecords(X, y, BOUNDS), fine)
    for sizes in ((303,), (1,), (100,), (99, 0, 2, 0, 150, 1)):
        assert bits(chunked(X, y, *sizes), fine) == expected
    assert bits(chunked(np.asfortranarray(X) if kind != "csr" else X, y, 7), fine) == expected


def test_tables_of_any_kind() -> None:
    X, y = table(90)
    expected = bits(MemoryRecords(X, y, BOUNDS))
    names = list("abcde")
    frame = pd.DataFrame(X, columns=names)
    for made in (
        lambda s: (frame[s], pd.Series(y)[s]),
        lambda s: (pl.DataFrame(X[s], schema=names), pl.Series(y[s])),
        lambda s: (pa.Table.from_pandas(frame[s]), y[s]),
        lambda s: (X[s].tolist(), y[s].tolist()),
    ):

        def read(made: Any = made) -> Iterator[Any]:
            return (made(slice(at, at + 30)) for at in range(0, 120, 30))  # the last one is empty

        assert bits(ChunkedRecords(read, 5, BOUNDS)) == expected


def test_a_reader_may_use_its_memory_again() -> None:
    X, y = table(100)
    rows, labels = np.empty((7, 5)), np.empty(7)

    def read() -> Iterator[Any]:
        for at in range(0, 98, 7):
            rows[:], labels[:] = X[at : at + 7], y[at : at + 7]
            yield rows, labels

    found = ChunkedRecords(read, 5, BOUNDS)
    assert bits(found) == bits(MemoryRecords(X[:98], y[:98], BOUNDS))
    assert bits(found.every(3)) == bits(MemoryRecords(X[:98:3], y[:98:3], BOUNDS))


@pytest.mark.parametrize("blocks", [[], [(np.empty((0, 5)), np.empty(0))], [([], [])]])
def test_no_records_at_all(blocks: Any) -> None:
    records = ChunkedRecords(lambda: blocks, 5, BOUNDS)
    assert records.count() == 0
    assert records.sum_error() > 0.0
    for fine in (False, True):
        assert all(not np.any(part) for part in records.sum(everything, fine=fine))


def test_samples_are_those_of_records_in_memory() -> None:
    X, y = table()
    local = MemoryRecords(X, y, BOUNDS)
    for rate in (0.0, 0.3, 1.0):
        far = chunked(X, y, 64).poisson_sample(rate, seeded_source(1).words)
        near = local.poisson_sample(rate, seeded_source(1).words)
        assert bits(far.records) == bits(near.records)
        assert far.rate == rate


def test_rows_are_never_all_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_sums, "_BLOCK_BYTES", 400_000)
    n, size = 100_000, 1000
    block, labels = np.random.default_rng(0).standard_normal((size, 20)), np.zeros(size)

    def read() -> Iterator[Any]:
        for _ in range(n // size):
            yield block.copy(), labels.copy()

    records = ChunkedRecords(read, 20, BOUNDS)
    chunked(*table(10), 3).sum(everything)  # imports
    tracemalloc.start()
    records.sum(everything)
    records.sum(everything, fine=True)
    records.every(2).sum(everything)
    records.poisson_sample(1.0, seeded_source(0).words).records.sum(everything)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * n * 20 * 8


# --- a source that changes ----------------------------------------------------------------------


def passes(*tables: tuple[Any, Any], size: int = 64, kind: Any = np.asarray) -> ChunkedRecords:
    """Return records that are another table in each pass."""
    turn = itertools.count()

    def read() -> Iterator[Any]:
        X, y = tables[min(next(turn), len(tables) - 1)]
        return in_blocks(kind(X), y, size)

    return ChunkedRecords(read, 5, BOUNDS)


def one_changed(values: Any) -> Any:
    values = values.copy()
    values[500] += 1e-9
    return values


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("what", ["fewer", "more", "row", "label", "order", "sample"])
def test_records_that_change_between_passes_are_refused(what: str, kind: Any) -> None:
    X, y = table()
    other = {
        "fewer": (X[:-1], y[:-1]),
        "more": (np.vstack([X, X[:1]]), np.append(y, y[0])),
        "row": (one_changed(X), y),
        "label": (X, one_changed(y)),
        "order": (X[::-1], y[::-1]),
        "sample": (X[::-1], y[::-1]),
    }[what]
    records = passes((X, y), other, kind=kind)
    if what == "sample":
        # read in another order, the words would belong to other records: a second sample
        some = records.poisson_sample(0.5, seeded_source(0).words).records
        with pytest.raises(ValueError, match="same records in the same order"):
            some.sum(everything)
        return
    records.sum(everything)
    with pytest.raises(ValueError, match="same records in the same order"):
        records.sum(everything)


def test_blocks_may_end_elsewhere_in_another_pass() -> None:
    X, y = table()
    sizes = itertools.count(1)
    records = ChunkedRecords(lambda: in_blocks(X, y, 50 * next(sizes)), 5, BOUNDS)
    assert len({bits(records) for _ in range(4)}) == 1


def test_an_iterator_is_refused() -> None:
    X, y = table()
    with pytest.raises(TypeError, match="called once a pass"):
        ChunkedRecords(in_blocks(X, y, 10), 5, BOUNDS)  # type: ignore[arg-type]
    once = in_blocks(X, y, 10)
    records = ChunkedRecords(lambda: once, 5, BOUNDS)
    records.count()
    with pytest.raises(ValueError, match="same records"):
        records.sum(everything)


# --- errors -------------------------------------------------------------------------------------


def hostile() -> dict[str, tuple[list[tuple[Any, Any]], str]]:
    X, y = np.full((41, 2), 0.5), np.zeros(41)
    wide = np.full((3, 3), 7777777.0)
    return {
        "ragged blocks": ([(X, y), (wide, y[:3])], "another number of columns than n_features=2"),
        "ragged rows": ([([[0.5, 0.5], [7777777.0]], [0, 0])], "not all of one length"),
        "text": ([(X, y), (np.array([["7777777", "a"]]), y[:1])], "not numbers"),
        "missing": ([(np.array([[7777777.0, np.nan]]), y[:1])], "contains NaN.*column 1"),
        "labels": ([(X, ["7777777 is"] * 41)], "y holds something else than numbers"),
        "few labels": ([(X, y[:40])], "different lengths"),
        "labels of nothing": ([(X[:0], y)], "0 sample"),
        "a label missing": ([(X, np.where(np.arange(41) == 7, np.nan, 7777777.0))], "NaN"),
        "now and then": ([(X, y), (X, None)], "make all of them alike"),
        "sparse too": ([(X, y), (scipy.sparse.csr_array(X), y)], "make all of them alike"),
        "no pairs": ([(X, y), (7777777.0,)], "failed with ValueError.*Pairs"),  # type: ignore[list-item]
    }


@pytest.mark.parametrize("name", hostile())
def test_errors_name_no_value(name: str) -> None:
    blocks, why = hostile()[name]
    with pytest.raises((ValueError, TypeError, RuntimeError), match=why) as caught:
        ChunkedRecords(lambda: blocks, 2, Bounds()).sum(lambda b: (b.points().sum(axis=0),))
    assert "7777777" not in str(caught.value)
    assert "41" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_a_reader_says_is_not_passed_on() -> None:
    def read() -> Iterator[Any]:
        yield np.ones((3, 2)), None
        float("7777777 is my number")

    with pytest.raises(RuntimeError, match="failed with ValueError") as caught:
        ChunkedRecords(read, 2, Bounds()).count()
    assert "7777777" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_columns_are_declared() -> None:
    with pytest.raises(ValueError, match="n_features must be at least 1"):
        ChunkedRecords(list, 0, Bounds())


# --- fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    ["objective_perturbation", "output_perturbation", NoisyGradient(10), NoisySGD(0.1, 10)],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fits_agree_with_those_on_records_in_memory(mechanism: Any, n_classes: int) -> None:
    X, _ = table(803)
    codes = np.digitize(X[:, 0], [0.0, 1.0][: n_classes - 1])
    targets = np.where(codes == 1, 1.0, -1.0) if n_classes == 2 else codes.astype(float)
    model = LogisticRegression(
        1.0,
        1e-6,
        classes=range(n_classes),
        row_norm=3.0,
        n_records=803,
        mechanism=mechanism,
        random_state=5,
    )
    bounds = model.plan(5).problem.objective.bounds
    plain = model.fit(X, codes)
    expected, promise = np.hstack([plain.coef_.ravel(), plain.intercept_]), plain.privacy_
    for records in (
        MemoryRecords(X, targets, bounds),
        chunked(X, targets, 100, 0, 333, bounds=bounds),
        chunked(X.astype(np.float32), targets, 250, bounds=bounds),
    ):
        fitted = model.fit(records, None)
        found = np.hstack([fitted.coef_.ravel(), fitted.intercept_])
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert fitted.privacy_ == promise
        assert fitted.n_features_in_ == 5


def test_an_exact_quantile_needs_memory() -> None:
    X = np.linspace(0.0, 1.0, 50)[:, None]
    objective = Objective(QuantileLoss(0.5), Bounds())
    records = ChunkedRecords(lambda: [(X, None)], 1, Bounds())
    with pytest.raises(ValueError, match="needs records in memory"):
        minimize(records, objective, Budget(1.0), QuantileOnALine(0.0, 1.0))
