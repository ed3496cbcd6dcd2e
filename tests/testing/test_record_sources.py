"""Sources that are wrong in one way each are found out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.records import Block, Bounds, MemoryRecords, Sample
from tacit.testing import check_record_source
from tacit.testing import record_sources as module


class Wrapped:
    """A sound source, of which tests break one thing at a time."""

    def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
        self.inner = MemoryRecords(rows, labels, bounds)
        self.bounds = bounds

    @property
    def n_features(self) -> int:
        return self.inner.n_features

    def count(self) -> int:
        return self.inner.count()

    def sum(self, function: Any, *, fine: bool = False) -> Any:
        return self.inner.sum(function, fine=fine)

    def sum_error(self, *, fine: bool = False) -> float:
        return self.inner.sum_error(fine=fine)

    def every(self, step: int) -> Any:
        return self.inner.every(step)

    def poisson_sample(self, rate: float, words: Any) -> Sample:
        return self.inner.poisson_sample(rate, words)


def changed(on_block: Callable[[Block], Block]) -> type[Wrapped]:
    class Changed(Wrapped):
        def sum(self, function: Any, *, fine: bool = False) -> Any:
            return self.inner.sum(lambda block: function(on_block(block)), fine=fine)

    return Changed


class WiderBound(Wrapped):
    """Rows are clipped, to 0.1 % too long."""

    def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
        super().__init__(rows, labels, bounds)
        self.inner = MemoryRecords(rows, labels, replace(bounds, row_norm=1.001 * bounds.row_norm))


class AnyLabel(Wrapped):
    def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
        super().__init__(rows, labels, bounds)
        self.inner = MemoryRecords(rows, labels, replace(bounds, label_range=None))


class HalfTheError(Wrapped):
    def sum_error(self, *, fine: bool = False) -> float:
        return self.inner.sum_error(fine=fine) / 2


class Forgets(Wrapped):
    """Leaves out the last record of a sum."""

    def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
        super().__init__(rows, labels, bounds)
        kept = max(rows.shape[0] - 1, 0)
        self.whole = self.inner
        self.inner = MemoryRecords(rows[:kept], None if labels is None else labels[:kept], bounds)

    def count(self) -> int:
        return self.whole.count()


class OneMore(Wrapped):
    def count(self) -> int:
        return self.inner.count() + 1


class Shaky(Wrapped):
    """Sums that are right within their error, and not the same each time."""

    def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
        super().__init__(rows, labels, bounds)
        self.turns = itertools.count()

    def sum(self, function: Any, *, fine: bool = False) -> Any:
        shift = 2.0**-52 * (next(self.turns) % 2)
        return tuple(np.asarray(part) * (1 + shift) for part in self.inner.sum(function, fine=fine))


class SingleSums(Wrapped):
    """Adds up in single precision, and does not say so."""

    def sum(self, function: Any, *, fine: bool = False) -> Any:
        parts = self.inner.sum(function, fine=fine)
        return tuple(np.asarray(part).astype(np.float32).astype(float) for part in parts)


class Shifted(Wrapped):
    def every(self, step: int) -> Any:
        return self.inner.every(min(step + 1, self.count())) if step > 1 else self.inner.every(1)


def sampled(draw: Callable[[Wrapped, float, Any], Sample]) -> type[Wrapped]:
    class Sampled(Wrapped):
        def poisson_sample(self, rate: float, words: Any) -> Sample:
            return draw(self, rate, words)

    return Sampled


def off_by(factor: float) -> Callable[[Wrapped, float, Any], Sample]:
    """Return a sampler whose rate is off, though 0 and 1 are as they should be."""

    def draw(source: Wrapped, rate: float, words: Any) -> Sample:
        actual = rate if rate in (0.0, 1.0) else min(rate * factor, (1 + rate) / 2)
        return Sample(source.inner.poisson_sample(actual, words).records, rate)

    return draw


def of_one_size(source: Wrapped, rate: float, words: Any) -> Sample:
    at = np.argsort(words(source.count()), kind="stable")
    chosen = np.full(source.count(), 2**64 - 1, dtype=np.uint64)
    chosen[at[: round(rate * source.count())]] = 0
    return source.inner.poisson_sample(rate or 0.0, lambda n: chosen)


def always_the_same(source: Wrapped, rate: float, words: Any) -> Sample:
    words(source.count())
    return source.inner.poisson_sample(rate, np.random.PCG64(0).random_raw)


def one_word_for_two(source: Wrapped, rate: float, words: Any) -> Sample:
    def twice(n: int) -> Any:
        return np.repeat(words(n)[: (n + 1) // 2], 2)[:n]

    return source.inner.poisson_sample(rate, twice)


def two_words_each(source: Wrapped, rate: float, words: Any) -> Sample:
    return source.inner.poisson_sample(rate, lambda n: words(2 * n)[::2])


def of_another_rate(source: Wrapped, rate: float, words: Any) -> Sample:
    return replace(source.inner.poisson_sample(rate, words), rate=rate / 2)


def unclipped(block: Block) -> Block:
    return replace(block, factors=np.ones(block.n_rows))


class Quotes(Wrapped):
    def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
        if rows.dtype == object:
            rows = rows.astype(float)  # NumPy's words
        super().__init__(rows, labels, bounds)


class Counts(Wrapped):
    def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
        if labels is not None and len(labels) != rows.shape[0]:
            raise ValueError(f"{rows.shape[0]} rows and {len(labels)} labels")
        super().__init__(rows, labels, bounds)


class Adds(MemoryRecords):
    """Takes the entries of a sparse row as they are stored."""

    def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
        super().__init__(rows, labels, bounds)
        if hasattr(rows, "tocsr"):
            self.rows = rows


BROKEN: dict[str, tuple[Any, str]] = {
    "rows are not clipped": (changed(unclipped), "off by|a row of norm"),
    "rows are clipped too late": (WiderBound, "bounds|a row of norm|off by"),
    "labels are not clipped": (AnyLabel, "labels are not clipped|off by"),
    "half the float error": (HalfTheError, "where theory proves no less"),
    "single precision": (SingleSums, "off by"),
    "a record is forgotten": (Forgets, "off by"),
    "a record is made up": (OneMore, "are counted"),
    "sums change": (Shaky, "not the same when it is asked for again"),
    "every other one": (Shifted, "takes other records"),
    "sampled 10 % too often": (sampled(off_by(1.1)), "with frequency"),
    "sampled 10 % too rarely": (sampled(off_by(0.9)), "with frequency"),
    "samples of one size": (sampled(of_one_size), "word of their own|independent"),
    "one sample for ever": (sampled(always_the_same), "word of their own|independent"),
    "records share words": (sampled(one_word_for_two), "word of their own|independent"),
    "too many words": (sampled(two_words_each), "words are drawn"),
    "an event of another rate": (sampled(of_another_rate), "a sample at rate 0.5 says"),
    "a value is quoted": (Quotes, "repeats a value"),
    "the count is told": (Counts, "how many records"),
    "sparse places": (Adds, "a row of norm"),
}


def test_a_sound_source_passes() -> None:
    check_record_source(Wrapped)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_source_is_found_out(name: str) -> None:
    make, why = BROKEN[name]
    with pytest.raises(AssertionError, match=why):
        check_record_source(make)


def test_each_check_stands_alone() -> None:
    # What sums would have told before: lengths and labels by themselves, and a replayed fit.
    with pytest.raises(AssertionError, match="a row of norm"):
        module._check_clipping(changed(unclipped))
    with pytest.raises(AssertionError, match="a row of norm"):
        module._check_clipping(WiderBound)
    with pytest.raises(AssertionError, match="labels are not clipped"):
        module._check_clipping(AnyLabel)
    with pytest.raises(AssertionError, match="independent"):
        module._check_rate(sampled(of_one_size)(*table()), 300, 0.5, module._Words(1))
    with pytest.raises(AssertionError, match=r"frequency|independent"):
        module._check_rate(sampled(always_the_same)(*table()), 300, 0.5, module._Words(1))


def table() -> tuple[Any, Any, Bounds]:
    return module._rows(300), np.arange(300.0), Bounds(row_norm=2.0)


def test_neighbours_are_told_apart_by_a_fit() -> None:
    from tacit.noise import SensitivityViolation

    with pytest.raises(SensitivityViolation):
        module._check_neighbours(changed(unclipped))
