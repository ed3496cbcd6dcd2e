"""A regressor by noisy means of what teachers predict who each saw a part of the records."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from tacit import checks, engine
from tacit.noise import Bounded, Norm, Release, Source, gaussian
from tacit.pate._estimator import (
    PUBLIC_POOL,
    Asked,
    asked_of,
    check_student,
    check_teacher,
    key_of,
    progress_of,
    rows_to_ask,
    split,
)
from tacit.pate.teachers import answers_of, fitted, seed_of, undisturbed
from tacit.privacy import AnyAccountant, Budget, Gaussian, Relation
from tacit.privacy.calibration import gaussian_multiplier
from tacit.public_facts import assumptions_of, budget_of, informed, label_range_of, source_of
from tacit.records import as_numbers

Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

# A prediction is one of this many equal steps of the range, so that sums are whole numbers.
STEPS = 2**20


class PATERegressor(RegressorMixin, BaseEstimator):
    """Any regressor, by the mean of what many teachers predict of public rows, with noise.

    Parameters are those of `PATEClassifier`, but for

    label_range
        The least and the greatest number that is predicted; predictions are clipped to it.

    Attributes
    ----------
    student_
        The fitted student; by default a random forest.
    answers_
        The noisy mean of the predictions for each query, clipped to the range.

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md, section 1). A record changes the prediction of one teacher,
    by the length of the range at most, in each of n_queries sums: the noise on a mean has standard
    deviation (high - low) sqrt(n_queries) / (mu n_teachers).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tacit.pate import PATERegressor
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.standard_normal((20_000, 2)), rng.standard_normal((100, 2))
    >>> line = LinearRegression()
    >>> model = PATERegressor(line, 400, line, n_queries=50, epsilon=2.0, label_range=(-4, 4))
    >>> model = model.fit(X, X[:, 0], X_public=pool)
    >>> float(np.corrcoef(model.predict(pool), pool[:, 0])[0, 1]) > 0.5
    True
    """

    def __init__(
        self,
        teacher: Any = None,
        n_teachers: int = 250,
        student: Any = None,
        n_queries: int = 200,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        label_range: Any = None,
        queries: Any = "kmeans",
        relation: Relation | str = Relation.ADD_REMOVE,
        accountant: AnyAccountant | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.teacher = teacher
        self.n_teachers = n_teachers
        self.student = student
        self.n_queries = n_queries
        self.epsilon = epsilon
        self.delta = delta
        self.label_range = label_range
        self.queries = queries
        self.relation = relation
        self.accountant = accountant
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def plan(self) -> engine.Plan:
        """Return what would be asked and what it would cost; no record is needed."""
        return self._plan(budget_of(self.epsilon, self.delta, self.relation))

    def _plan(self, budget: Budget) -> engine.Plan:
        checks.count("n_teachers", self.n_teachers)
        checks.count("n_queries", self.n_queries)
        low, high = label_range_of(self.label_range).value
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"label_range must be (low, high), got {self.label_range!r}.")
        if budget.is_infinite:
            return engine.without_noise(budget)
        multiplier = gaussian_multiplier(budget)
        noise = (high - low) * math.sqrt(self.n_queries) * multiplier / self.n_teachers
        return engine.Plan(
            "mean_of_teachers",
            Gaussian(multiplier, budget.relation),
            budget,
            "the mean of teachers' predictions, clipped, with Gaussian noise",
            {"noise_multiplier": multiplier, "noise_std_of_a_mean": noise},
        )

    def fit(self, X: Any, y: Any, X_public: Any = None, unit: Any = None) -> Self:
        """Learn from records ``X`` with numbers ``y``, and public rows ``X_public``."""
        teacher = _forest() if self.teacher is None else self.teacher
        check_teacher(teacher)
        check_student(self.student)
        told = informed(self, X)
        asked = asked_of(self, X, y, X_public, unit)
        plan = told._plan(asked.budget)
        source = source_of(self.random_state)
        released = engine.release(
            plan,
            lambda: told._ask(teacher, asked, plan, source),
            accountant=self.accountant,
            source=source,
            assumptions=(*assumptions_of(asked.facts), PUBLIC_POOL),
        )
        self.privacy_, self.plan_ = released.privacy, plan
        self.label_range_ = label_range_of(told.label_range).value
        self.queries_, self.answers_ = asked.places, released.value
        student = clone(_forest() if self.student is None else self.student)
        self.student_ = student.fit(asked.queries, self.answers_)
        return self

    def _ask(
        self, teacher: Any, asked: Asked, plan: engine.Plan, source: Source | None
    ) -> Release[Array]:
        rows, labels = asked.table.read()
        numbers = as_numbers(labels)
        low, high = label_range_of(self.label_range).value
        numbers = np.clip(numbers, low, high)
        key = key_of(source)
        counts = np.ones(len(numbers), dtype=np.bool_)
        parts = split(asked, self.n_teachers, rows, numbers, key, counts)
        jobs = (
            (_said, (teacher, rows[part], numbers[part], asked.queries, (low, high), seed))
            for part, seed in zip(parts, (seed_of(key, i) for i in range(len(parts))), strict=True)
        )
        total, progress = np.zeros(len(asked.places), dtype=np.int64), progress_of(self)
        for done, steps in enumerate(answers_of(jobs, self.n_jobs), start=1):
            total += steps
            if progress is not None:
                progress(done, len(parts))
        return self._noisy(total.astype(np.float64), plan, source)

    def _noisy(self, total: Array, plan: engine.Plan, source: Source | None) -> Release[Array]:
        """Return the means: total steps, noise of sensitivity STEPS sqrt(n_queries) on them."""
        low, high = label_range_of(self.label_range).value
        event, noisy = plan.event, total
        if not plan.budget.is_infinite:
            moved = math.nextafter(STEPS * math.sqrt(len(total)), math.inf)
            bounded = Bounded(total, moved, Norm.L2, plan.budget.relation)
            release = gaussian(bounded, plan.settings["noise_multiplier"], source)
            event, noisy = release.event, np.asarray(release.value)
        means = low + (high - low) * noisy / (STEPS * self.n_teachers)
        return Release(np.clip(means, low, high), event)

    def predict(self, X: Any) -> Array:
        """Return the student's number for every row."""
        check_is_fitted(self)
        said: Array = self.student_.predict(rows_to_ask(self, X))
        return said


def _said(
    teacher: Any, rows: Any, numbers: Array, queries: Any, ends: tuple[float, float], seed: int
) -> Steps:
    """Return a teacher's predictions in whole steps of the range; its middle if it fails."""
    middle = np.full(queries.shape[0], STEPS // 2, dtype=np.int64)
    low, high = ends

    def learned() -> Steps:
        said = np.asarray(fitted(teacher, rows, numbers).predict(queries), dtype=np.float64)
        share = (np.clip(said.reshape(-1), low, high) - low) / (high - low)
        if share.shape != middle.shape:
            raise ValueError("a teacher must predict one number for each query.")
        steps: Steps = np.rint(np.where(np.isnan(share), 0.5, share) * STEPS).astype(np.int64)
        return steps

    if not len(numbers):
        return middle
    steps: Steps = undisturbed(learned, seed, middle)
    within: Steps = np.clip(steps, 0, STEPS)
    return within


def _forest() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(50)
