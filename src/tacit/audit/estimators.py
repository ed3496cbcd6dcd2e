"""Audit tacit's linear classifiers by the strongest applicable method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.audit.finding import Audit
from tacit.audit.foreign import LEVEL, audit_pairs, check_level
from tacit.audit.heard import HeardSource
from tacit.audit.inversion import Inversion, can_invert
from tacit.erm import Plan
from tacit.erm.engine import run_plan
from tacit.erm.objective import records_gradient
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.noise import ReplayMismatch
from tacit.records import MemoryRecords
from tacit.testing import replay

Array = npt.NDArray[np.float64]

_COLUMNS = 6  # features of the audited data: one for the records, the others carry only noise


def audit(
    estimator: LogisticRegression | LinearSVC,
    *,
    fits: int = 4000,
    copies: int = 2000,
    level: float = LEVEL,
) -> Audit:
    """Return lower bounds on the epsilon of a classifier, beside its claim.

    Two neighbouring data sets are made within its bounds: many copies of one record, and one more
    record that contradicts them, with the steepest gradient of the loss. Its plan is made once and
    run many times, on both data sets with the same fresh noise. If the result is one minimiser of a
    perturbed objective (objective perturbation with a given ``regularization``), the noise is
    recovered from it, which is the strongest test. Otherwise the released weights are tested.

    Parameters
    ----------
    estimator
        A classifier with two declared classes; it is not fitted.
    fits
        Total number of fits, half of them with the extra record.
    copies
        Number of records that the extra record contradicts.
    level
        The probability with which a bound may be too high.

    Examples
    --------
    >>> from tacit.audit import audit
    >>> from tacit.linear_model import LogisticRegression
    >>> model = LogisticRegression(
    ...     8.0, 1e-5, row_norm=1.0, classes=[0, 1], regularization=1.0, fit_intercept=False
    ... )
    >>> found = audit(model, fits=400)
    >>> 3.0 < found.strongest.epsilon < 12.0
    True
    """
    plan = _plan(estimator)
    rows = np.zeros((checks.count("copies", copies) + 1, _COLUMNS))
    rows[:, 0] = plan.problem.objective.bounds.row_norm
    labels = np.full(len(rows), -1.0)
    labels[-1] = 1.0
    bounds = plan.problem.objective.bounds
    known, more = (MemoryRecords(rows[:n], labels[:n], bounds) for n in (copies, copies + 1))
    canary = MemoryRecords(rows[-1:], labels[-1:], bounds)
    score = None
    if can_invert(plan):
        nowhere = np.zeros(plan.problem.shape)
        along = records_gradient(plan.problem.objective, canary, nowhere)
        score = Inversion(plan, known, along)
    check_level(level)

    def pair() -> tuple[Array, Array]:
        heard = HeardSource()
        first = run_plan(plan, known, heard).value
        return first, run_plan(plan, more, heard.again()).value

    found = audit_pairs(
        (pair() for _ in range(checks.count("fits", fits, least=40) // 2)),
        plan.budget,
        score=score,
        beside=None if score is None else score.aside,
        level=level,
        subject=f"{type(estimator).__name__} by {plan.name.replace('_', ' ')}",
    )
    notes = [_replayed(plan, known, more)]
    notes.append(
        "The noise was not recovered: that takes objective perturbation with a delta and a given "
        "regularization."
        if score is None
        else _law(found.without)
    )
    return replace(found, notes=tuple(notes))


def _plan(estimator: LogisticRegression | LinearSVC) -> Plan:
    if not isinstance(estimator, (LogisticRegression, LinearSVC)):
        raise TypeError(
            f"audit takes tacit's LogisticRegression or LinearSVC, got {type(estimator).__name__}; "
            "audit_fits takes any code, with two data sets of your own."
        )
    plan = estimator.plan(_COLUMNS)
    if len(plan.problem.shape) != 1:
        raise ValueError(
            "audit takes classifiers of two classes, and this one has more; audit_fits takes any "
            "code, with two data sets of your own."
        )
    return plan


def _replayed(plan: Plan, known: MemoryRecords, more: MemoryRecords) -> str:
    """Return a note on a replay of both data sets with the same noise."""
    try:
        releases = replay(lambda records: run_plan(plan, records), known, more)
    except ReplayMismatch as why:
        return f"CONTRADICTED by replay: {why}"
    more_than_one = "s" * (releases > 1)
    return (
        f"Replayed with the same noise: {releases} release{more_than_one}, no further apart than "
        "declared."
    )


def _law(scores: Array) -> str:
    """Return a note on how well the recovered noise fits its stated law."""
    from scipy.stats import kstest

    p = float(kstest(scores, "norm").pvalue)
    return (
        f"The recovered noise beside the planned Gaussian: standard deviation "
        f"{float(scores.std()):.3f} of 1, Kolmogorov-Smirnov p = {p:.2g}."
    )
