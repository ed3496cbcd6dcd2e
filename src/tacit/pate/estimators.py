"""Train a classifier from noisy votes of teachers, or a regressor from noisy means."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit import checks
from tacit.engine import Plan, release_answers, without_noise
from tacit.estimators.parameters import (
    Assumed,
    assumptions_of,
    budget_of,
    classes_of,
    codes_of,
    column_names,
    label_range_of,
    publish_classes,
    refuse_no_numbers,
    source_of,
    warn_if_weak,
    with_people,
    with_table_facts,
)
from tacit.noise import Source, secure_source
from tacit.pate.aggregators import UNANSWERED, Aggregator, Answers
from tacit.pate.plan import PATEPlan, Sanitised, SanitisedCost, WorstCase, make_plan
from tacit.pate.query_points import Places, check_pool, queries_of
from tacit.pate.student import SemiSupervised, learned
from tacit.pate.teachers import (
    Said,
    VotesOfOne,
    each_answer,
    each_vote,
    facts_of,
    fitted,
    undisturbed,
)
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import GaussianNoise, NoisySum, Session
from tacit.queries.votes import STEPS, PredictionSum
from tacit.records.lazy_table import TableInMemory, has_people, read_people
from tacit.records.privacy_unit import People
from tacit.records.rows_and_labels import as_numbers, as_rows
from tacit.records.splits import new_key, places_of_parts
from tacit.table_facts import EncodedTable

PUBLIC_POOL = "the public rows, and what is known of them, come from none of the protected records"


@dataclass(frozen=True)
class TeacherQueries:
    """The public facts of a fit: an unread table, and the queries."""

    table: Any
    budget: Budget
    pool: Any
    places: Places
    facts: Assumed

    @property
    def queries(self) -> Any:
        """The public rows on which teachers vote."""
        return self.pool[self.places]


def teacher_queries(model: Any, X: Any, y: Any, X_public: Any, unit: Any) -> TeacherQueries:
    """Return the unread table and the queries; only the shape of the records is read."""
    budget = budget_of(model.epsilon, model.delta, model.relation, model.accountant)
    if X_public is None:
        raise ValueError(
            "X_public is missing: teachers vote on public rows, and the student "
            "learns from them; pass rows of the same columns that need no protection."
        )
    if X_public is X:
        raise ValueError(
            "X_public is X, the sensitive records themselves, but public rows are not protected; "
            "pass other rows, which need no protection."
        )
    if isinstance(X, EncodedTable):
        if budget.relation is Relation.REPLACE:
            X.refuse_positions()
        table: Any = X
        model.n_features_in_ = X.n_columns
        facts: Assumed = X.facts
    else:
        table = TableInMemory(X, y, unit)
        validate_data(model, X, reset=True, skip_check_array=True)
        facts = column_names(getattr(model, "feature_names_in_", None))
    pool, _ = as_rows(X_public)
    check_pool(pool, model.n_queries, table.n_columns)
    places = queries_of(model.queries).places(pool, model.n_queries)
    budget = with_people(budget, has_people(table))
    warn_if_weak(budget)
    return TeacherQueries(table, budget, pool, places, facts)


def split(
    queried: TeacherQueries, n_teachers: int, rows: Any, labels: Any, key: bytes, counts: Any
) -> list[Places]:
    """Return the positions of each teacher's records among the valid ones."""
    relation = queried.budget.relation
    people: People | None = read_people(queried.table) if has_people(queried.table) else None
    places = getattr(queried.table, "places", None)
    parts = places_of_parts(
        n_teachers, key, relation, rows, labels, people=people, positions=places
    )
    return [part[counts[part]] for part in parts]


def key_of(source: Source | None) -> bytes:
    """Return the key by which records are split, from a separate source."""
    return new_key(secure_source() if source is None else source)


def progress_of(model: Any) -> Said | None:
    """Return the function to call when a teacher is done."""
    if not model.verbose:
        return None

    def said(done: int, total: int) -> None:
        if done == total or done % max(total // 20, 1) == 0:
            sys.stderr.write(f"{done} of {total} teachers\n")

    return said


def check_learners(teacher: Any, student: Any, *, of_classes: bool) -> None:
    """Refuse an invalid teacher or student, before anything is charged."""
    check_teacher(teacher)
    learners = [("teacher", teacher)]
    if student is not None:
        _check_learner("student", student, "fit", "learn")
        learners.append(("student", student))
    for name, learner in learners:
        if not hasattr(learner, "__sklearn_tags__"):
            continue
        if (is_regressor if of_classes else is_classifier)(learner):
            wanted, is_a = ("classes", "regressor") if of_classes else ("numbers", "classifier")
            raise TypeError(
                f"{name} must predict {wanted}, and {type(learner).__name__} is a {is_a}; pass "
                f"a {'classifier' if of_classes else 'regressor'}."
            )
        if hasattr(learner, "_parameter_constraints"):
            learner._validate_params()  # scikit-learn's own check of parameters, without data


def check_jobs(n_jobs: object) -> None:
    """Refuse a number of processes that joblib would refuse after the charge."""
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or not n_jobs
    ):
        raise ValueError(
            f"n_jobs must be a whole number other than 0, got {n_jobs!r}; pass None for one "
            "process, or -1 for as many as there are processors."
        )


def check_teacher(teacher: Any) -> None:
    """Refuse an invalid teacher, before anything is charged."""
    _check_learner("teacher", teacher, "fit")


def _check_learner(name: str, learner: Any, *ways: str) -> None:
    if isinstance(learner, type):
        raise TypeError(
            f"{name} must be an estimator, got the class {learner.__name__} itself; pass "
            f"{learner.__name__}()."
        )
    if not (hasattr(learner, "predict") and any(hasattr(learner, way) for way in ways)):
        raise TypeError(
            f"{name} must be an estimator with fit and predict, got {type(learner).__name__}; "
            "pass one of scikit-learn, say."
        )


def rows_to_ask(model: Any, X: Any) -> Any:
    """Return rows with the fitted columns."""
    rows, _ = as_rows(X)
    validate_data(model, X, reset=False, skip_check_array=True)
    return np.asarray(rows) if not hasattr(rows, "tocsr") else rows


_ACCOUNTING: dict[str, WorstCase | Sanitised] = {
    "worst_case": WorstCase(),
    "sanitised": Sanitised(),
}
_AnswersAndCost = tuple[Answers, SanitisedCost | None]


class PATEClassifier(ClassifierMixin, BaseEstimator):
    """Private aggregation of teacher ensembles: any classifier, noisy votes, a public student.

    The records are split among ``n_teachers`` copies of ``teacher``. The teachers vote on
    ``n_queries`` public rows; noise is added to the counts, and only the winners are released. A
    ``student`` learns from the public rows and these answers, and may be published.

    Parameters
    ----------
    teacher
        Any classifier of scikit-learn, or one like it; by default a random forest.
    n_teachers
        The number of parts of the records. More teachers make the noise smaller relative to the
        votes, and each teacher weaker.
    student
        Any classifier; by default `SemiSupervised`, which learns from all public rows.
    n_queries
        The number of public rows to label.
    epsilon, delta, relation
        The budget. With ``unit`` in `fit` a person with all their records is protected, without
        further noise.
    classes
        The possible labels, which are public; "infer" reads them from the data.
    aggregator
        One of `tacit.pate.aggregators`; by default `GNMax`, or for two classes `Majority` if that
        needs less noise.
    accounting
        "worst_case", or "sanitised" to also release the data-dependent cost (`Sanitised`).
    queries
        The rows to vote on: "kmeans", "designed", "random", "all", positions in the pool, or an
        object such as `KMeansQueries` or `DesignedQueries`.
    accountant
        A budget shared with other releases: an `Accountant` or a `Ledger`.
    n_jobs
        The number of teachers to train in parallel.
    random_state
        A seed, for tests only: the result is then not private, and its guarantee says so.
    verbose
        Whether to print the number of finished teachers to stderr.

    Attributes
    ----------
    student_
        The fitted student.
    classes_, n_features_in_
        The classes, and the number of columns.
    queries_, answers_
        The positions of the queries in the pool, and the answers; -1 for unanswered ones.
    privacy_, plan_
        The guarantee and the plan.
    sanitised_
        The data-dependent cost of the votes, if requested.

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md). For any teachers, a record changes the vote
    of one of them; all outputs are functions of noisy votes and public rows. The plan
    is charged before the first teacher is trained.

    **Assumes** that the public rows are public, and that teachers draw random numbers as
    `tacit.pate.teachers.each_vote` says.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from tacit.pate.estimators import PATEClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.standard_normal((20_000, 2)), rng.standard_normal((500, 2))
    >>> model = PATEClassifier(LogisticRegression(), n_teachers=200, n_queries=50, epsilon=2.0)
    >>> model = model.fit(X, X[:, 0] > 0, X_public=pool)
    >>> float(np.mean(model.predict(pool) == (pool[:, 0] > 0))) > 0.8
    True
    """

    def __init__(
        self,
        teacher: Any = None,
        n_teachers: int = 250,
        student: Any = None,
        n_queries: int = 200,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        classes: Any = None,
        aggregator: Aggregator | None = None,
        accounting: str | WorstCase | Sanitised = "worst_case",
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
        self.classes = classes
        self.aggregator = aggregator
        self.accounting = accounting
        self.queries = queries
        self.relation = relation
        self.accountant = accountant
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def plan(self, n_classes: int | None = None) -> PATEPlan:
        """Plan the queries and their cost; no record is needed.

        ``n_classes`` may be left out if ``classes`` is declared.
        """
        if n_classes is None:
            n_classes = classes_of(self.classes, None).value.size
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        return self._plan(budget, n_classes)

    def _plan(self, budget: Any, n_classes: int) -> PATEPlan:
        check_jobs(self.n_jobs)
        how = self.accounting
        if isinstance(how, str):
            if how not in _ACCOUNTING:
                raise ValueError(f"accounting must be one of {sorted(_ACCOUNTING)}, got {how!r}.")
            how = _ACCOUNTING[how]
        return make_plan(budget, self.n_teachers, self.n_queries, n_classes, self.aggregator, how)

    def fit(self, X: Any, y: Any, X_public: Any = None, unit: Any = None) -> Self:
        """Learn from records ``X`` with labels ``y``, and public rows ``X_public``.

        ``unit`` identifies the person of each record, one identifier per row: a person with all
        their records then belongs to one teacher, and is protected as a whole.
        """
        teacher = default_classifier() if self.teacher is None else self.teacher
        check_learners(teacher, self.student, of_classes=True)
        classes = classes_of(with_table_facts(self, X).classes, y)
        queried = teacher_queries(self, X, y, X_public, unit)
        plan = self._plan(queried.budget, classes.value.size)
        source = source_of(self.random_state)
        released = release_answers(
            plan,
            lambda: self._votes(teacher, queried, classes.value, source),
            lambda session: ask_teachers(session, plan),
            accountant=self.accountant,
            source=source,
            assumptions=(*assumptions_of(classes, queried.facts), PUBLIC_POOL),
        )
        self.privacy_, self.plan_ = released.privacy, plan
        publish_classes(self, classes)
        self.queries_, (self.answers_, private_cost) = queried.places, released.value
        if private_cost is not None:
            self.sanitised_ = private_cost
        self._teach(queried)
        if self.verbose:
            sys.stderr.write(f"{plan}\n{self.privacy_.statement()}\n")
        return self

    def _votes(
        self,
        teacher: Any,
        queried: TeacherQueries,
        classes: npt.NDArray[Any],
        source: Source | None,
    ) -> Iterator[VotesOfOne]:
        """Read the records, and let the teachers vote in turn."""
        rows, labels = queried.table.read()
        codes, known = codes_of(labels, classes)
        key = key_of(source)
        parts = split(queried, self.n_teachers, rows, labels, key, known)
        given = teacher, parts, rows, codes, classes, queried.queries, key
        return each_vote(*given, n_jobs=self.n_jobs, progress=progress_of(self))

    def _teach(self, queried: TeacherQueries) -> None:
        answered = self.answers_ != UNANSWERED
        if not answered.any():
            raise ValueError(
                "no query was answered: no count passed the threshold. Lower the aggregator's "
                "threshold, or use one that always answers, such as GNMax; the charge stays."
            )
        student = SemiSupervised() if self.student is None else self.student
        labels = self.classes_[self.answers_[answered]]
        self.student_ = learned(student, queried.pool, self.queries_[answered], labels)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the student's class for every row."""
        check_is_fitted(self)
        said: npt.NDArray[Any] = self.student_.predict(rows_to_ask(self, X))
        return said

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the student's class probabilities for every row, if it has any."""
        check_is_fitted(self)
        said = self.student_.predict_proba(rows_to_ask(self, X))
        each = np.zeros((len(said), len(self.classes_)))
        each[:, np.searchsorted(self.classes_, self.student_.classes_)] = said
        return each


def ask_teachers(session: Session, plan: PATEPlan) -> _AnswersAndCost:
    """Return the answers to all queries, and the sanitised cost if the plan has one."""
    votes, facts = plan.votes, session.facts
    if plan.budget.is_infinite:
        # the class of most teachers; the first of several
        counts = session.without_noise(lambda teachers: votes.held(teachers, facts))
        return np.argmax(counts, axis=1).astype(np.int64), None
    held = session.hold(votes)
    answers, cost = plan.aggregator.answers(session, votes, held), plan.cost_query()
    if cost is None or not isinstance(plan.accounting, Sanitised):
        return answers, None
    noisy = session.ask(cost, "cost", of=held)
    return answers, plan.accounting.figure(noisy, cost, facts, plan.budget.delta)


def default_classifier() -> Any:
    """Return the default teacher: a forest of fifty trees."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(50)


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
    >>> from tacit.pate.estimators import PATERegressor
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
        epsilon: float | None = None,
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

    def plan(self) -> Plan:
        """Plan the queries and their cost; no record is needed."""
        return self._plan(budget_of(self.epsilon, self.delta, self.relation, self.accountant))

    def _plan(self, budget: Budget) -> Plan:
        check_jobs(self.n_jobs)
        checks.count("n_teachers", self.n_teachers)
        checks.count("n_queries", self.n_queries)
        low, high = label_range_of(self.label_range).value
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"label_range must be (low, high), got {self.label_range!r}.")
        facts = facts_of(budget.relation)
        if budget.is_infinite:
            return replace(without_noise(budget), facts=facts)
        multiplier = gaussian_multiplier(budget)
        query = NoisySum(PredictionSum(self.n_queries, self.n_teachers), GaussianNoise(multiplier))
        noise = (high - low) * query.noise_std(facts) / (STEPS * self.n_teachers)
        return Plan(
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
        teacher = default_regressor() if self.teacher is None else self.teacher
        check_learners(teacher, self.student, of_classes=False)
        resolved = with_table_facts(self, X)
        refuse_no_numbers(y)
        queried = teacher_queries(self, X, y, X_public, unit)
        plan = resolved._plan(queried.budget)
        source = source_of(self.random_state)
        released = release_answers(
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
        student = clone(default_regressor() if self.student is None else self.student)
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
        say = partial(_prediction_steps, teacher, queried.queries, (low, high))
        return each_answer(say, parts, rows, numbers, key, self.n_jobs, progress_of(self))

    def _means(self, session: Session, plan: Plan) -> Array:
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


def _prediction_steps(
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


def default_regressor() -> Any:
    """Return the default teacher and student of numbers: a forest of fifty trees."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(50)
