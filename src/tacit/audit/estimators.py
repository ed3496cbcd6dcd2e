"""Audit tacit's own linear classifiers: recover the noise, or replay it on two worlds.

The released w is the minimiser of sum of losses + (lam/2)||w||^2 + <b, w>, so

    b_D(w) = -(sum over D of gradients at w + lam w)

is the noise itself if the records were D. If one more record was in the data, it is the noise minus
the gradient of that record. These are two Gaussians, and the event bounds their distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.audit.black_box import LEVEL, audit_pairs, check_level
from tacit.audit.results import Audit
from tacit.erm import Plan
from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    GaussianPerturbationSettings,
    perturbation_of,
)
from tacit.erm.minimization import run_plan
from tacit.erm.objective import records_gradient
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.noise import ReplayMismatch, secure_source
from tacit.noise.source import Source, Words
from tacit.records import MemoryRecords
from tacit.testing import replay


class ReplayableSource:
    """Words of a new secure source that `again` replays from the start; for audits only.

    Two fits to neighbouring records with the same words have the same noise. Each has the law of a
    release, and their difference is the effect of the record.

    Examples
    --------
    >>> from tacit.audit.estimators import ReplayableSource
    >>> heard = ReplayableSource()
    >>> first = heard.words(3)
    >>> bool((heard.again().words(3) == first).all())
    True
    """

    is_secure = False  # repeated words must not protect a release

    def __init__(self) -> None:
        self._source: Source = secure_source()
        self._words: list[int] = []
        self._at = 0

    def words(self, n: int) -> Words:
        """Return the next ``n`` words, drawn words first."""
        missing = self._at + n - len(self._words)
        if missing > 0:
            self._words.extend(self._source.words(missing).tolist())
        self._at += n
        return np.array(self._words[self._at - n : self._at], dtype=np.uint64)

    def again(self) -> ReplayableSource:
        """Return a source of the same words from the first on."""
        other = ReplayableSource()
        other._source, other._words = self._source, self._words
        return other


Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Inversion:
    """The recovered noise of a released vector along the gradient of one record.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.audit.estimators import Inversion
    >>> from tacit.erm.minimization import run_plan
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.records import MemoryRecords
    >>> model = LogisticRegression(
    ...     1.0, 1e-5, row_norm=1.0, classes=[0, 1], regularization=1.0, fit_intercept=False
    ... )
    >>> plan = model.plan(n_features=2)
    >>> rows, labels = np.ones((50, 2)) / 2, -np.ones(50)
    >>> known = MemoryRecords(rows, labels, plan.problem.objective.bounds)
    >>> score = Inversion(plan, known, np.array([-0.5, -0.5]))
    >>> abs(score(run_plan(plan, known).value)) < 10.0
    True
    """

    plan: Plan
    known: MemoryRecords
    along: Array

    def __call__(self, weights: Array) -> float:
        """Return the noise along the record's gradient, in units of its standard deviation."""
        # <b, g> / (s ||g||)
        inner = float(np.vdot(self.noise(weights), self.along))
        return inner / (self._perturbation.noise_std * float(np.linalg.norm(self.along)))

    def noise(self, weights: Array) -> Array:
        """Return b_D(w)."""
        objective = self.plan.problem.objective
        gradient = records_gradient(objective, self.known, weights)
        b: Array = -(gradient + self._perturbation.regularization * weights)
        return b

    def aside(self, weights: Array) -> Array:
        """Return the noise orthogonal to the record's gradient, in the same units."""
        b: Array = self._others @ self.noise(weights) / self._perturbation.noise_std
        return b

    @cached_property
    def _others(self) -> Array:
        # All rows but the first of an orthogonal matrix whose first row is the direction.
        basis, _ = np.linalg.qr(np.column_stack([self.along, np.eye(self.along.size)]))
        return np.asarray(basis.T[1:])

    @property
    def _perturbation(self) -> GaussianPerturbationSettings:
        perturbation = perturbation_of(self.plan)
        assert isinstance(perturbation, GaussianPerturbationSettings), "asked by can_invert"
        return perturbation


def can_invert(plan: Plan) -> bool:
    """Return whether the released vector is a single minimiser, without other queries."""
    if not plan.mechanism.perturbs_objective:
        return False
    perturbation = perturbation_of(plan)
    if not isinstance(perturbation, GaussianPerturbationSettings) or perturbation.row_scale != 1.0:
        return False
    other_releases = (
        perturbation.count_noise_multiplier,
        perturbation.trace_noise_multiplier,
        perturbation.moment_noise_multiplier,
    )
    return not (any(other_releases) or perturbation.slope_ridge)


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
        source = ReplayableSource()
        first = run_plan(plan, known, source).value
        return first, run_plan(plan, more, source.again()).value

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
