"""Train a classifier from noisy votes of teachers on disjoint parts of the records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tacit.engine import release_answers
from tacit.estimators.parameters import (
    assumptions_of,
    budget_of,
    classes_of,
    codes_of,
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
from tacit.pate.aggregators import UNANSWERED, Aggregator, Answers
from tacit.pate.plan import PATEPlan, Sanitised, SanitisedCost, WorstCase, make_plan
from tacit.pate.student import SemiSupervised, learned
from tacit.pate.teachers import VotesOfOne, each_vote
from tacit.privacy import AnyAccountant, Relation
from tacit.queries import Session

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
    >>> from tacit.pate import PATEClassifier
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
        epsilon: float = 1.0,
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
        teacher = default_teacher() if self.teacher is None else self.teacher
        check_teacher(teacher)
        check_student(self.student)
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
        self.privacy_, self.plan_, self.classes_ = released.privacy, plan, classes.value
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


def default_teacher() -> Any:
    """Return the default teacher: a forest of fifty trees."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(50)
