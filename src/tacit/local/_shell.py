"""What the local estimators share: from parameters and a table to a learner's state."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.local.learners import Banco, Learner
from tacit.local.sanitizers import GaussianNoise, NoNoise, Sanitizer, least_noise
from tacit.local.stream import learn, worth_compiling
from tacit.local.subgradients import LocalLoss
from tacit.noise import secure_source
from tacit.noise.release import priced
from tacit.privacy import Budget, Guarantee, Relation
from tacit.public_facts import source_of, warn_if_weak
from tacit.row_clipping import clipped_rows

Array = npt.NDArray[np.float64]

# Rows made ready at once, in numbers: a few megabytes whatever the length of the table.
_BLOCK_NUMBERS = 1 << 19
_PER_PERSON = (
    "The promise is local: it is made to each person, against the server itself, which sees one "
    "sanitised answer of theirs and nothing else."
)
_ONCE = "every row is another person, who answers once and is in no other stream"


@dataclass(frozen=True)
class Stream:
    """One learner, one loss and one law of reports, agreed before anybody is asked."""

    learner: Learner
    loss: LocalLoss
    sanitizer: Sanitizer
    intercept: float

    @property
    def n_features(self) -> int:
        """The length of a point, the intercept's coordinate included."""
        return self.sanitizer.n_features


def stream_of(
    estimator: Any, loss: LocalLoss, n_columns: int, row_norm: float, unit: float
) -> Stream:
    """Return the stream of an estimator's parameters; ``unit`` is the size weights should have."""
    budget = Budget(estimator.epsilon, estimator.delta, Relation.REPLACE)
    warn_if_weak(budget)
    constant = getattr(estimator, "_intercept_coordinate", 0.0)
    d = n_columns + (constant > 0.0)
    norm = loss.norm(d, math.hypot(row_norm, constant))
    sanitizer = _sanitizer_of(estimator.sanitizer, budget, d, norm)
    return Stream(_learner_of(estimator.learner, sanitizer, unit), loss, sanitizer, constant)


def _sanitizer_of(chosen: Any, budget: Budget, n_features: int, norm: float) -> Sanitizer:
    if budget.is_infinite:
        return NoNoise(n_features, norm)
    if isinstance(chosen, str) and chosen == "auto":
        return least_noise(budget.epsilon, budget.delta, n_features, norm)
    if not (isinstance(chosen, type) and issubclass(chosen, Sanitizer)):
        raise TypeError(
            f"sanitizer must be 'auto' or a class of tacit.local.sanitizers, got {chosen!r}; pass "
            "sanitizer=PrivUnit, for instance."
        )
    if chosen is GaussianNoise:
        return GaussianNoise(budget.epsilon, budget.delta, n_features, norm)
    made: Sanitizer = chosen(budget.epsilon, n_features, norm)  # type: ignore[call-arg]
    return made


def _learner_of(chosen: Any, sanitizer: Sanitizer, unit: float) -> Learner:
    if isinstance(chosen, str) and chosen == "banco":
        return Banco(sanitizer.tail, sanitizer.norm, unit)
    if not all(hasattr(chosen, name) for name in ("init", "update", "step", "settings")):
        raise TypeError(
            f"learner must be 'banco' or a learner, got {chosen!r}; pass "
            "learner=GradientDescent(rate=0.1), for instance."
        )
    configured: Learner = chosen
    return configured


def run(
    stream: Stream,
    state: Any,
    table: Any,
    labels: Array,
    limit: float,
    *,
    shuffle: bool,
    source: Any,
    verbose: int,
) -> Any:
    """Return the state after every row of the table has answered once.

    Each row is scaled to norm ``limit`` at most, and the intercept's coordinate appended. Tables
    come sorted, and a learner that bets believes a streak: shuffled, by an order that depends on
    the number of rows alone, people come as if drawn at random.
    """
    n = table.shape[0]
    order = np.random.default_rng(n).permutation(n) if shuffle else np.arange(n)
    step = max(1, _BLOCK_NUMBERS // stream.n_features)
    compile_it = worth_compiling(n, stream.n_features)
    with _progress(n, verbose) as advance:
        for start in range(0, n, step):
            people = order[start : start + step]
            rows = _ready(table[people], limit, stream.intercept)
            state = learn(
                stream.learner,
                state,
                rows,
                labels[people],
                stream.loss,
                stream.sanitizer,
                source,
                compile_it=compile_it,
            )
            advance(len(rows), state)
    return state


def _ready(block: Any, limit: float, constant: float) -> Array:
    dense = block.toarray() if hasattr(block, "toarray") else block
    rows = np.empty((dense.shape[0], dense.shape[1] + (constant > 0.0)))
    rows[:, : dense.shape[1]] = clipped_rows(dense, limit) if math.isfinite(limit) else dense
    if constant > 0.0:
        rows[:, -1] = constant
    return rows


def privacy_of(stream: Stream, source: Any, notes: tuple[str, ...]) -> Guarantee:
    """Return what every person is promised."""
    event = priced(stream.sanitizer.event, source)
    return Guarantee(event, stream.sanitizer.delta, (_ONCE, *notes), (_PER_PERSON,))


@contextmanager
def _progress(n: int, verbose: int) -> Iterator[Any]:
    """Show reports processed and the size of the running point; both are public."""
    if not verbose:
        yield lambda done, state: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("reports"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("size of the point {task.fields[size]:.4g}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reports", total=n, size=0.0)

        def advance(done: int, state: Any) -> None:
            bar.update(task, advance=done, size=float(np.linalg.norm(state.estimate)))

        yield advance


def begin(estimator: Any, loss: LocalLoss, n_columns: int, row_norm: float, unit: float) -> Stream:
    """Set up a new stream: nobody has been asked yet."""
    stream = stream_of(estimator, loss, n_columns, row_norm, unit)
    estimator._stream = stream
    estimator._source = source_of(estimator.random_state)
    estimator.state_ = stream.learner.init(stream.n_features)
    return stream


def go_on(
    estimator: Any, table: Any, labels: Array, limit: float, notes: Any, shuffle: bool
) -> Array:
    """Ask every row once, and return the estimate."""
    stream: Stream = estimator._stream
    # A secure source is not kept: it cannot be copied, and models are.
    source = estimator._source or secure_source()
    estimator.state_ = run(
        stream,
        estimator.state_,
        table,
        labels,
        limit,
        shuffle=shuffle,
        source=source,
        verbose=estimator.verbose,
    )
    estimator.n_reports_ = estimator.state_.n_reports
    estimator.sanitizer_, estimator.learner_ = stream.sanitizer, stream.learner
    estimator.privacy_ = privacy_of(stream, source, notes)
    estimate: Array = estimator.state_.estimate
    return estimate
