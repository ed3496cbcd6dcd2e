"""Train a regressor from noisy means of teachers' predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from tacit import checks, engine
from tacit.estimators.parameters import (
    assumptions_of,
    budget_of,
    label_range_of,
    source_of,
    with_table_facts,
)
from tacit.noise import Source
from tacit.pate._base import (
    PUBLIC_POOL,
    TeacherQueries,
    check_student,
    check_teacher,
    key_of,
    progress_of,
    rows_to_ask,
    split,
    teacher_queries,
)
from tacit.pate.teachers import each_answer, facts_of, fitted, undisturbed
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import GaussianNoise, NoisySum, PredictionSum, Session
from tacit.queries.votes import STEPS
from tacit.records import as_numbers

Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]


class PATERegressor(RegressorMixin, BaseEstimator):
    """Train any regressor on noisy means of many teachers' predictions on public rows.

    Parameters are those of `PATEClassifier`, except

    label_range
        The least and the greatest label; predictions are clipped to it.

    Attributes
    ----------
    student_
        The fitted student; by default a random forest.
    answers_
        The noisy mean prediction for each query, clipped to the range.

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md, section 1). A record changes the prediction of one teacher,
    by at most the width of the range, in each of n_queries sums: the noise on a mean has standard
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
        """Plan the queries and their cost; no record is needed."""
        return self._plan(budget_of(self.epsilon, self.delta, self.relation, self.accountant))

    def _plan(self, budget: Budget) -> engine.Plan:
        checks.count("n_teachers", self.n_teachers)
        checks.count("n_queries", self.n_queries)
        low, high = label_range_of(self.label_range).value
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"label_range must be (low, high), got {self.label_range!r}.")
        facts = facts_of(budget.relation)
        if budget.is_infinite:
            return replace(engine.without_noise(budget), facts=facts)
        multiplier = gaussian_multiplier(budget)
        query = NoisySum(PredictionSum(self.n_queries, self.n_teachers), GaussianNoise(multiplier))
        noise = (high - low) * query.noise_std(facts) / (STEPS * self.n_teachers)
        return engine.Plan(
            "mean_of_teachers",
            query.event(facts),
            budget,
            "the mean of teachers' predictions, clipped, with Gaussian noise",
            {"noise_multiplier": multiplier, "noise_std_of_a_mean": noise},
            facts=facts,
            queries={"predictions": query},
        )

    def fit(self, X: Any, y: Any, X_public: Any = None, unit: Any = None) -> Self:
        """Learn from records ``X`` with numbers ``y``, and public rows ``X_public``."""
        teacher = _forest() if self.teacher is None else self.teacher
        check_teacher(teacher)
        check_student(self.student)
        resolved = with_table_facts(self, X)
        queried = teacher_queries(self, X, y, X_public, unit)
        plan = resolved._plan(queried.budget)
        source = source_of(self.random_state)
        released = engine.release_answers(
            plan,
            lambda: resolved._predictions(teacher, queried, source),
            lambda session: resolved._means(session, plan),
            accountant=self.accountant,
            source=source,
            assumptions=(*assumptions_of(queried.facts), PUBLIC_POOL),
        )
        self.privacy_, self.plan_ = released.privacy, plan
        self.label_range_ = label_range_of(resolved.label_range).value
        self.queries_, self.answers_ = queried.places, released.value
        student = clone(_forest() if self.student is None else self.student)
        self.student_ = student.fit(queried.queries, self.answers_)
        return self

    def _predictions(
        self, teacher: Any, queried: TeacherQueries, source: Source | None
    ) -> Iterator[Steps]:
        """Read the records, and let the teachers predict in turn."""
        rows, labels = queried.table.read()
        numbers = as_numbers(labels)
        low, high = label_range_of(self.label_range).value
        numbers = np.clip(numbers, low, high)
        key = key_of(source)
        counts = np.ones(len(numbers), dtype=np.bool_)
        parts = split(queried, self.n_teachers, rows, numbers, key, counts)
        say = partial(_said, teacher, queried.queries, (low, high))
        return each_answer(say, parts, rows, numbers, key, self.n_jobs, progress_of(self))

    def _means(self, session: Session, plan: engine.Plan) -> Array:
        """Ask for the sums of predictions on the lattice, and return the means."""
        if plan.budget.is_infinite:
            exact = PredictionSum(self.n_queries, self.n_teachers)
            total = session.without_noise(lambda teachers: exact.total(teachers, session.facts))
        else:
            total = np.asarray(session.ask(plan.queries["predictions"], "predictions"))
        low, high = label_range_of(self.label_range).value
        means = low + (high - low) * total / (STEPS * self.n_teachers)
        return np.clip(means, low, high)

    def predict(self, X: Any) -> Array:
        """Return the student's number for every row."""
        check_is_fitted(self)
        said: Array = self.student_.predict(rows_to_ask(self, X))
        return said


def _said(
    teacher: Any, queries: Any, ends: tuple[float, float], rows: Any, numbers: Array, seed: int
) -> Steps:
    """Return a teacher's predictions in steps of the range; the middle if it fails."""
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
    said_of_each: Steps = undisturbed(learned, seed, middle)
    return said_of_each


def _forest() -> Any:
    """Return the default teacher and student: a forest of fifty trees."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(50)
