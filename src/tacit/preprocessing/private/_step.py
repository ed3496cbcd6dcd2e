"""What every private step has in common: its road from public facts to a release."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.engine import Plan, release_answers
from tacit.preprocessing.private._columns import Known
from tacit.preprocessing.private._numbers import note, read_rows
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.public_facts import (
    Assumed,
    assumptions_of,
    budget_of,
    check_shape,
    informed,
    source_of,
    warn_if_weak,
    with_people,
)
from tacit.queries import Facts, Session
from tacit.records import Bounds, MemoryRecords, UnreadTable
from tacit.records.unread import has_people
from tacit.table_facts import EncodedTable, TableFacts

Array = npt.NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Job(Generic[T]):
    """A release that is planned: what it costs, what is asked for, and how it is kept."""

    plan: Plan
    work: Callable[[Session], T]
    keep: Callable[[T], None]
    facts: tuple[Assumed, ...] = ()
    n_records: int | None = None  # where it is public


def facts_of_rows(n_features: int, budget: Budget) -> Facts:
    """Return what is public of rows before a fit; each question clips what it reads itself."""
    return Facts(Bounds(), n_features, budget.relation)


class PrivateStep(TransformerMixin, BaseEstimator):
    """A transformer that learns from numbers, pays for it, and knows beforehand what it hands on.

    Contract: `facts_out` and `plan` are functions of parameters and facts; a fit releases what
    ``_released`` names, and keeps nothing else; a value that is no number is missing.
    """

    # What a fit sets besides ``privacy_``: releases and public facts; the last for named columns.
    _released: ClassVar[tuple[str, ...]] = ()

    epsilon: float
    delta: float
    relation: Relation | str
    accountant: AnyAccountant | None
    random_state: int | None
    privacy_: Guarantee

    def __sklearn_tags__(self) -> Any:
        """Declare that values may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run and what it would cost, without data."""
        check_shape(n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        warn_if_weak(budget, n_records)
        return self._plan(budget, n_features, n_records)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Learn from the rows of ``X``, which are read when the plan has been charged.

        ``unit`` says whose each row is; one row of each person then counts (docs/people.md).
        """
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        told = informed(self, X)
        table, names = note(self, X, unit)
        budget = with_people(budget, has_people(table))
        job: Job[Any] = self._job(told, budget, self._known(X), table)
        warn_if_weak(budget, job.n_records)
        source = source_of(self.random_state)
        bounds = Bounds() if job.plan.facts is None else job.plan.facts.bounds
        released = release_answers(
            job.plan,
            lambda: MemoryRecords(self._filled(read_rows(table)), None, bounds),
            job.work,
            accountant=self.accountant,
            source=source,
            assumptions=assumptions_of(names, *job.facts),
        )
        job.keep(released.value)
        self.privacy_ = released.privacy
        return self

    @abstractmethod
    def _plan(self, budget: Budget, n_features: int, n_records: int | None) -> Plan:
        """Return the plan of a fit of so many columns."""

    @abstractmethod
    def _job(self, told: Self, budget: Budget, known: Known, table: UnreadTable) -> Job[Any]:
        """Return what is to be done; ``told`` has the parameters that the facts say."""

    def _filled(self, rows: Array) -> Array:
        """Return rows as they are asked of; NaN marks what is missing."""
        return rows

    def _known(self, told: Any) -> Known:
        """Return what is public of the rows of a table, or of those that it was fitted on."""
        facts = told.facts if isinstance(told, EncodedTable) else told
        if isinstance(facts, TableFacts):
            return Known.of(facts)
        if told is None:
            check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{place}" for place in range(self.n_features_in_)]
        return Known(tuple(names))
