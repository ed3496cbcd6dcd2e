"""Simulate clients and server on one machine: each person is asked once, in turn.

Every person is asked at the current point and answers once. The randomness of a batch of people is
drawn in advance (it does not depend on them); the loop over people is one plain function, compiled
by numba if installed. Memory does not depend on the number of people.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.local import _compiled
from tacit.local.learners import Learner
from tacit.local.sanitizers import Sanitizer
from tacit.local.subgradients import LocalLoss, clipped
from tacit.noise import Source
from tacit.noise.prepared import PreparedRows
from tacit.noise.release import current

Array = npt.NDArray[np.float64]

# Numbers of noise that are drawn at once.
_BATCH_NUMBERS = 1 << 18
# Compilation takes seconds, and pays off from about this many coordinates on.
_WORTH_COMPILING = 2_000_000


def learn(
    learner: Learner,
    state: Any,
    rows: Array,
    labels: Array,
    loss: LocalLoss,
    sanitizer: Sanitizer,
    source: Source,
    *,
    compile_it: bool | None = None,
) -> Any:
    """Return the learner's state after every row, one person each, has answered once.

    Rows are already clipped, so that subgradients have norm at most ``sanitizer.norm``; they are
    clipped to it again. By default the loop is compiled if these rows are enough for it to pay off.
    """
    n, d = rows.shape
    if current() is not None:
        return _learn_on_tape(learner, state, rows, labels, loss, sanitizer, source)
    if compile_it is None:
        compile_it = worth_compiling(n, d)
    batch = max(1, _BATCH_NUMBERS // d)
    for start in range(0, n, batch):
        people = slice(start, min(start + batch, n))
        prepared = sanitizer.prepare(people.stop - start, source)
        given = learner, state, rows[people], labels[people], loss, sanitizer, prepared
        state = learn_prepared(*given, compile_it=compile_it)
    return state


def learn_prepared(
    learner: Learner,
    state: Any,
    rows: Array,
    labels: Array,
    loss: LocalLoss,
    sanitizer: Sanitizer,
    prepared: PreparedRows,
    *,
    compile_it: bool,
) -> Any:
    """Run `learn` with noise already drawn, a row of it for each person."""
    step, settings = learner.step, learner.settings
    norm, spacing = sanitizer.norm, sanitizer.spacing
    pull, width = type(loss).pull, float(loss.width)
    loop = _loop(pull, type(prepared).kernel, step, compile_it)
    people = np.ascontiguousarray(rows)
    held = np.zeros(people.shape[1])
    noise = prepared.floats, prepared.coins, prepared.margins, prepared.scale
    done = 0
    while done < len(people):
        with np.errstate(all="ignore"):  # a warning would reveal a record
            state, done = loop(
                state, done, people, labels, width, *noise, norm, spacing, settings, held
            )
        if done < len(people):
            # Float arithmetic could not decide this person's report: decide it exactly. The value
            # is the loop's own; a recomputed one might differ in a bit, or across a corner.
            steps = prepared.exactly(done, held, norm)
            state = step(state, steps.astype(np.float64) * spacing, settings)
            done += 1
    return state


def worth_compiling(n_people: int, n_features: int) -> bool:
    """Return whether numba pays off for a stream of this size, if it is installed."""
    return _compiled.IS_AVAILABLE and n_people * n_features >= _WORTH_COMPILING


def _learn_on_tape(
    learner: Learner,
    state: Any,
    rows: Array,
    labels: Array,
    loss: LocalLoss,
    sanitizer: Sanitizer,
    source: Source,
) -> Any:
    """Run the stream through one recorded release for each person, for audits."""
    for row, label in zip(rows, labels, strict=True):
        with np.errstate(all="ignore"):
            pull = type(loss).pull(state.point, row, float(label), float(loss.width))
            value = clipped(pull, sanitizer.norm)
        report = sanitizer.sanitize(value, source).value
        state = learner.step(state, report, learner.settings)
    return state


@cache
def _loop(pull: Any, kernel: Any, step: Any, compile_it: bool) -> Any:
    """Return the loop over people for one loss, one kind of noise and one learner."""
    if compile_it:
        pull, kernel, step, clip = map(_compiled.machine_code, (pull, kernel, step, clipped))
    else:
        clip = clipped

    def loop(
        state: Any,
        first: int,
        rows: Array,
        labels: Array,
        width: float,
        floats: Array,
        coins: Array,
        margins: Array,
        scale: float,
        norm: float,
        spacing: float,
        settings: Any,
        held: Array,
    ) -> tuple[Any, int]:
        """Return the state, and the first person whose report floats could not decide.

        The value that this person's report must hide is left in ``held``.
        """
        n, d = rows.shape
        steps = np.empty(d)
        for i in range(first, n):
            value = clip(pull(state.point, rows[i], labels[i], width), norm)
            if not kernel(value, floats[i], coins[i], margins[i], scale, norm, steps):
                held[:] = value
                return state, i
            state = step(state, steps * spacing, settings)
        return state, n

    return _compiled.machine_code(loop) if compile_it else loop
