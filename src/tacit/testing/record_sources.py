"""Check that a record source gives sums of clipped records, and nothing else."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array
from tacit.erm import NoisyGradient, Objective, minimize
from tacit.erm.losses import LogisticLoss
from tacit.privacy import Budget
from tacit.records import Block, Bounds, MemoryRecords, RecordSource
from tacit.row_clipping import clipped_rows
from tacit.testing.readers import shown_errors
from tacit.testing.replay import replay

Make = Callable[[Any, Any, Bounds], RecordSource]

_UNIT = 2.0**-53  # unit roundoff of a double
_ACCEPT = 1e-9  # least p-value of a sampler that passes
_SECRET = "7777777"
_SECRET_COUNT = 4177


def check_record_source(
    make_source: Make, *, takes_sparse: bool = True, keyed_samples: bool = False
) -> None:
    """Raise AssertionError unless ``make_source`` makes a sound source of sums.

    Guarantee: 1. The numbers of records and of columns and the bounds are those of the input.
    2. Sums are those of `MemoryRecords`, within the float error that both admit, and reproducible.
    3. No row exceeds its norm, in real numbers, and no label its range; shorter rows are not
    changed, and duplicate entries of a sparse row are added up first. 4. `sum_error` bounds the
    error of hostile sums, computed exactly, and is no less than theory requires for the observed
    blocks. 5. `every` takes the records that it states. 6. `poisson_sample` takes each record at
    the stated rate, independently, afresh each time and by its own random word; the sample stays
    the same when it is read again, and its event names the rate. 7. One record more moves the
    releases of a fit by at most their sensitivity. 8. If the bounds declare classes, records of
    other classes do not count. 9. No error repeats a value, or reveals the number of records.

    Parameters
    ----------
    make_source
        Called with rows, labels (or None) and bounds; returns the source to check. Rows are a
        float64 array of numbers that single precision represents too, and in one hostile case an
        array of objects.
    takes_sparse
        Whether it also accepts SciPy sparse arrays.
    keyed_samples
        Whether samples use a key of two words, not one of the caller's words per record.

    Notes
    -----
    A source may cut its records into blocks in any way: check it with several ways, including
    empty blocks. Random words are seeded, so the result is reproducible.

    Examples
    --------
    >>> from tacit.records import MemoryRecords
    >>> from tacit.testing import check_record_source
    >>> check_record_source(MemoryRecords)
    """
    _check_facts(make_source)
    _check_sums(make_source)
    _check_clipping(make_source)
    if takes_sparse:
        _check_sparse(make_source)
    _check_float_error(make_source)
    _check_every(make_source)
    _check_sampling(make_source, keyed_samples)
    _check_neighbours(make_source)
    _check_classes(make_source)
    _check_silence(make_source)


def _rows(n: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 4)) * rng.choice([0.125, 1.0, 16.0], (n, 1))
    rounded: Array = rows.astype(np.float32).astype(np.float64)
    return rounded


def _seen(records: RecordSource, *, fine: bool = False) -> tuple[Array, Array, list[int]]:
    """Return the summed vectors and labels, sorted by label, and the sizes of the blocks."""
    points, labels, sizes = [], [], []

    def look(block: Block) -> tuple[Array]:
        points.append(block.points().copy())
        labels.append(np.zeros(0) if block.labels is None else block.labels.copy())
        sizes.append(block.n_rows)
        return (np.zeros(1),)

    records.sum(look, fine=fine)
    names = np.concatenate(labels)
    order = np.argsort(names, kind="stable") if names.size else slice(None)
    return np.concatenate(points)[order], names[order], sizes


def _check_facts(make_source: Make) -> None:
    bounds = Bounds(row_norm=2.0, label_range=(-1.0, 1.0), intercept=0.5)
    for n in (0, 1, 300):
        records = make_source(_rows(n), np.zeros(n), bounds)
        assert isinstance(records, RecordSource), f"{type(records).__name__} is no RecordSource"
        assert records.count() == n, f"{n} records went in and {records.count()} are counted"
        assert records.n_features == 4, f"4 columns went in and there are {records.n_features}"
        assert records.bounds == bounds, f"the bounds are {records.bounds} and should be {bounds}"


def _everything(block: Block) -> tuple[Array, ...]:
    weights = np.linspace(-1.0, 1.0, block.points().shape[1])
    scores = block.scores(weights)
    labels = np.zeros(0) if block.labels is None else block.labels
    return (
        block.weighted_sum(np.ones(block.n_rows)),
        block.weighted_sum(np.tanh(scores)),
        block.gram(np.exp(-np.abs(scores))),
        block.points().sum(axis=0),
        labels.sum(),
    )


def _check_sums(make_source: Make) -> None:
    bounds = Bounds(row_norm=2.0, label_range=(-1.0, 2.0), intercept=0.5)
    size, scale = bounds.total_norm, max(bounds.total_norm, 1.0) ** 2
    for n in (0, 1, 2, 1003):
        rows, labels = _rows(n), np.linspace(-3.0, 3.0, n)
        for y in (labels, None):
            local, records = MemoryRecords(rows, y, bounds), make_source(rows, y, bounds)
            for fine in (False, True):
                # The error of both sums, and of each record's own term: a score of 5 terms, and its
                # tanh.
                own = (5 + 16) * _UNIT * n * (1 + size * math.sqrt(5.0))
                error = local.sum_error(fine=fine) + records.sum_error(fine=fine) + own
                found = records.sum(_everything, fine=fine)
                for a, b in zip(found, local.sum(_everything, fine=fine), strict=True):
                    off = float(np.max(np.abs(a - b)))
                    assert np.shape(a) == np.shape(b), f"a sum has shape {np.shape(a)}"
                    assert off <= error * scale, (
                        f"a sum over {n} records is off by {off:.2g} from that of the same records "
                        f"in memory, and float error explains {error * scale:.2g}"
                    )
                again = records.sum(_everything, fine=fine)
                same = all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))
                assert same, "a sum is not the same when it is asked for again"


def _check_clipping(make_source: Make) -> None:
    rows = np.vstack([_rows(50), np.eye(4) * 2.0**60, -np.eye(4) * 2.0**-60, np.zeros((1, 4))])
    labels = np.linspace(-1e6, 1e6, len(rows))
    for norm in (0.5, 2.0, 1e4):
        bounds = Bounds(row_norm=norm)
        points, _, _ = _seen(make_source(rows, labels, bounds))
        _check_lengths(points, rows, norm)
    ranged = Bounds(label_range=(-2.0, 3.0))
    _, found, _ = _seen(make_source(rows, labels, ranged))
    expected = np.clip(labels, -2.0, 3.0)
    assert np.array_equal(found, expected), "labels are not clipped to their range, or not only so"


def _check_lengths(points: Array, rows: Array, norm: float) -> None:
    lengths = [sum(Fraction(float(x)) ** 2 for x in point) for point in points]
    longest = max(lengths)
    assert longest <= Fraction(norm) ** 2, (
        f"a row of norm {math.sqrt(longest):.6g} is summed, and the bound is {norm:g}: privacy "
        "would be overstated"
    )
    np.testing.assert_allclose(
        points,
        clipped_rows(rows, norm),
        rtol=1e-12,
        err_msg="rows are not those that went in, scaled down to their bound where they are longer",
    )


def _check_sparse(make_source: Make) -> None:
    from scipy.sparse import csr_array

    # 0.75 twice at one place: within the bound only if each were squared alone.
    entries = np.array([0.75, 0.75, 2.0**60, -(2.0**60), 0.5, 0.25, 0.25])
    places, starts = [0, 0, 1, 1, 2, 2, 0], [0, 2, 5, 5, 7]
    rows = csr_array((entries, places, starts), shape=(4, 3))
    points, _, _ = _seen(make_source(rows, np.arange(4.0), Bounds(row_norm=1.0)))
    _check_lengths(points, rows.toarray(), 1.0)


def _terms(n: int) -> list[Array]:
    """Return terms of size at most 1 whose float sums have large errors."""
    rng = np.random.default_rng(n)
    size = 10.0 ** rng.uniform(-18, 0, n)
    return [
        size * np.resize([1.0, -1.0], n),
        np.full(n, 1.0 / 3.0),
        np.sort(size),
        np.concatenate([[1.0], np.full(n - 1, 2.0**-54)]),
        rng.uniform(-1, 1, n),
    ]


def _check_float_error(make_source: Make) -> None:
    for n in (1, 100, 3000):
        for terms in _terms(n):
            columns = np.stack([terms, terms[::-1], np.zeros(n)], axis=1)
            rows = columns.astype(np.float32).astype(np.float64)
            records = make_source(rows, None, Bounds(row_norm=4.0))  # no row is clipped
            exact = [sum(map(Fraction, column.tolist()), Fraction(0)) for column in rows.T]
            for fine in (False, True):
                _check_exactly(records, exact, fine)
                _check_theory(records, n, fine)


def _check_exactly(records: RecordSource, exact: list[Fraction], fine: bool) -> None:
    def sums(block: Block) -> tuple[Array, Array]:
        one_by_one = np.cumsum(np.vstack([np.zeros((1, 3)), block.points()]), axis=0)[-1]
        return block.weighted_sum(np.ones(block.n_rows)), one_by_one

    for total in records.sum(sums, fine=fine):
        gaps = [float(Fraction(float(a)) - b) for a, b in zip(total, exact, strict=True)]
        error, bound = math.hypot(*gaps), math.sqrt(2.0) * records.sum_error(fine=fine)
        assert error <= bound, f"a sum is off by {error:.3g}, and sum_error admits {bound:.3g}"


def _check_theory(records: RecordSource, n: int, fine: bool) -> None:
    # A function may add up its block in any order, m - 1 roundings deep, and b block sums need at
    # least log2(b) more; each rounding is u times sums of up to n.
    _, _, sizes = _seen(records, fine=fine)
    needed = (max(sizes) - 1 + math.ceil(math.log2(len(sizes)))) * _UNIT * n
    declared = records.sum_error(fine=fine)
    assert declared >= needed, (
        f"sum_error is {declared:.3g} where theory proves no less than {needed:.3g} for the blocks "
        "that were seen: privacy would be overstated"
    )


def _check_every(make_source: Make) -> None:
    n, bounds = 100, Bounds(row_norm=2.0, intercept=0.5)
    rows, names = _rows(n), np.arange(100.0)
    records = make_source(rows, names, bounds)
    points, _, _ = _seen(records)
    for step in (1, 7, n + 5):
        some = records.every(step)
        found, which, _ = _seen(some)
        assert np.array_equal(which, names[::step]), f"every({step}) takes other records"
        assert np.array_equal(found, points[::step]), f"every({step}) changes records"
        assert some.count() == which.size, f"every({step}) miscounts"
        assert some.bounds == bounds, f"every({step}) has other bounds"
        assert np.array_equal(_seen(records.every(step))[1], which), "every is not always the same"


class _Words:
    """Seeded words that count how many were drawn."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(seed)
        self.drawn = 0

    def __call__(self, n: int) -> npt.NDArray[np.uint64]:
        self.drawn += n
        words: npt.NDArray[np.uint64] = self._generator.random_raw(n)
        return words


def _check_sampling(make_source: Make, keyed: bool) -> None:
    n, bounds = 300, Bounds(row_norm=2.0, intercept=0.5)
    rows, names = _rows(n), np.arange(300.0)
    records = make_source(rows, names, bounds)
    points, _, _ = _seen(records)
    words = _Words(0)
    for rate, expected in ((0.0, 0), (1.0, n)):
        taken = records.poisson_sample(rate, words).records.count()
        assert taken == expected, f"a sample at rate {rate:g} holds {taken} of {n} records"
    before = words.drawn
    sample = records.poisson_sample(0.5, words)
    assert sample.rate == 0.5, f"a sample at rate 0.5 says {sample.rate}"
    for _ in range(2):
        found, which, _ = _seen(sample.records)
        assert np.array_equal(found, points[which.astype(int)]), "sampling changes records"
        assert which.size == sample.records.count() == len(set(which)), "a sample miscounts"
    assert np.array_equal(which, _seen(sample.records)[1]), "a sample changes when read again"
    drawn = words.drawn - before
    if keyed:
        assert drawn == 2, f"{drawn} words are drawn for the key of a sample, which has two"
    else:
        assert drawn == n, f"{drawn} words are drawn for a sample of {n} records, one for each"
        _check_own_words(records, n)
    for rate in (0.2, 0.5, 0.9):
        _check_rate(records, n, rate, words)


def _check_own_words(records: RecordSource, n: int) -> None:
    # As many records are in as words say so, at any rate.
    for share in (0.1, 0.5):
        scripted = np.where(np.arange(n) < share * n, 0, 2**64 - 1).astype(np.uint64)
        given = iter(scripted.tolist())

        def words(k: int, given: Any = given) -> npt.NDArray[np.uint64]:
            return np.array([next(given) for _ in range(k)], dtype=np.uint64)

        found = records.poisson_sample(0.3, words).records.count()
        assert found == round(share * n), "records are not in or out by a word of their own"


def _check_rate(records: RecordSource, n: int, rate: float, words: _Words) -> None:
    from scipy.stats import binom, chi2

    repeats = 60
    member = np.zeros((repeats, n))
    for row in member:
        row[_seen(records.poisson_sample(rate, words).records)[1].astype(int)] = 1.0
    total = member.sum()
    law = binom(repeats * n, rate)
    p = 2 * min(law.cdf(total), law.sf(total - 1))
    assert p > _ACCEPT, (
        f"at rate {rate:g} records are in with frequency {total / (repeats * n):.4g}: p = {p:.2g}"
    )
    # Too little or too much spread: samples of one size, or the same records each time.
    for axis, what in ((0, "single records are in"), (1, "samples are large")):
        counts = member.sum(axis=axis)
        trials = member.shape[axis]
        spread = np.sum((counts - trials * rate) ** 2) / (trials * rate * (1 - rate))
        p = 2 * min(chi2.cdf(spread, counts.size), chi2.sf(spread, counts.size))
        assert p > _ACCEPT, f"how often {what} is not as of independent records: p = {p:.2g}"


def _check_neighbours(make_source: Make) -> None:
    bounds = Bounds(row_norm=1.5, intercept=0.375)
    objective, budget = Objective(LogisticLoss(), bounds), Budget(1.0, 1e-6)
    rows = _rows(60) / 8
    labels = np.where(rows[:, 0] > 0, 1.0, -1.0)
    far = np.array([[2.0**20, -(2.0**18), 2.0**20, 0.0]])

    for mechanism in ("objective_perturbation", NoisyGradient(n_steps=5)):

        def fit(data: tuple[Array, Array], mechanism: Any = mechanism) -> object:
            return minimize(make_source(*data, bounds), objective, budget, mechanism)

        first = np.insert(rows, 0, far, axis=0), np.insert(labels, 0, -1.0)
        last = np.insert(rows, 60, far, axis=0), np.insert(labels, 60, -1.0)
        replay(fit, (rows, labels), first)
        replay(fit, last, (rows, labels))


def _check_classes(make_source: Make) -> None:
    rows = _rows(60)
    for k, odd in ((2, (2.0, -2.0, 0.5)), (3, (3.0, -1.0, 1.5))):
        bounds = Bounds(row_norm=2.0, intercept=0.5, n_classes=k)
        labels = 2.0 * (np.arange(60) % 2) - 1.0 if k == 2 else np.arange(60) % 3.0
        at = [0, 17, 59]
        strange = labels.copy()
        strange[at] = odd
        records = make_source(rows, strange, bounds)
        expected = np.sort(np.delete(labels, at))
        _, found, _ = _seen(records)
        alike = np.array_equal(found, expected) and records.count() == expected.size
        assert alike, f"of {k} classes, records of no class count, or not only they are left out"


def _check_silence(make_source: Make) -> None:
    rows, labels = _rows(_SECRET_COUNT), np.zeros(_SECRET_COUNT)
    words = rows.astype(object)
    words[3, 1] = _SECRET + " is my number"
    hostile: dict[str, tuple[Any, Any]] = {"text": (words, labels)}
    for bad in (math.nan, math.inf, -math.inf):
        row = rows.copy()
        row[3] = [float(_SECRET), bad, 0.0, 1.0]
        hostile[f"{bad}"] = row, labels
    hostile["few labels"] = rows, np.full(_SECRET_COUNT - 1, float(_SECRET))
    texts = labels.astype(object)
    texts[3] = _SECRET + " is my number"
    hostile["text as a label"] = rows, texts
    for what, (X, y) in hostile.items():
        try:
            with np.errstate(all="ignore"):
                points, _, _ = _seen(make_source(X, y, Bounds(row_norm=2.0)))
        except Exception as error:
            said = _said(error)
            assert _SECRET not in said, f"{what}: an error repeats a value of a record"
            count = str(_SECRET_COUNT)
            assert count not in said, f"{what}: an error tells how many records there are"
        else:
            sizes = np.linalg.norm(points, axis=1)
            assert np.all(sizes <= 2.0), f"{what}: a row is summed that no bound holds"


def _said(error: BaseException) -> str:
    """Return the displayed text of an error and of the errors that caused it."""
    lines = map(traceback.format_exception_only, shown_errors(error))
    return "".join(line for each in lines for line in each)
