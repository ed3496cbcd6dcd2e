"""Candidates on parts of the records of their own: Algorithm 4 of CMS11."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from tacit.engine import Plan, release
from tacit.noise import Bounded, Norm, Release, secure_source, select
from tacit.noise.release import priced
from tacit.privacy import (
    AnyAccountant,
    Budget,
    Event,
    ExponentialMechanism,
    NonPrivate,
    Parallel,
    Relation,
)
from tacit.public_facts import budget_of, source_of, warn_if_weak
from tacit.records.parts import new_key, parts_of
from tacit.tuning import models
from tacit.tuning.planning import Tries, Try
from tacit.tuning.running import Draw, Part, Run, Runner, check_planned
from tacit.tuning.scores import mistakes
from tacit.tuning.space import candidates


class DisjointSearch(MetaEstimatorMixin, BaseEstimator):
    """Fits each of m candidates to a part of the records, and chooses on the last of m + 1 parts.

    Candidate i is chosen with probability proportional to exp(-epsilon z_i / 2), z_i its number of
    mistakes on the last part; under ADD_REMOVE, where mistakes only come with a record, to
    exp(-epsilon z_i). No record is used twice, so that the whole costs what one fit does; but each
    fit has a fraction of the records.

    Parameters
    ----------
    estimator, space, n_candidates
        As in `PrivateSearch`; a part of the records for each candidate.
    epsilon, delta, relation, accountant, random_state
        As in `PrivateSearch`.

    Attributes
    ----------
    best_estimator_, best_params_, privacy_, plan_
        As in `PrivateSearch`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.tuning import DisjointSearch
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> model = LogisticRegression(classes=[0, 1], row_norm=1.5)
    >>> search = DisjointSearch(model, {"regularization": [1.0, 10_000.0]}, epsilon=1.0)
    >>> list(search.fit(X, (X[:, 0] > 0).astype(int)).best_params_)
    ['regularization']
    """

    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any],
        *,
        n_candidates: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.n_candidates = n_candidates
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Be to scikit-learn what the estimator is."""
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        return tags

    def plan(self, n_features: int | None = None, n_records: int | None = None) -> Plan:
        """Return what a search would run and cost, without data."""
        budget, found = self._checked()
        unread = models.expected(self.estimator, n_features, n_records, budget)
        n = unread.n_records
        sizes = [None if n is None else max(n // (len(found) + 1), 1)] * len(found)
        return self._plan(budget, self._tries(found, budget, unread, sizes))

    def fit(self, X: Any, y: Any = None, unit: None = None) -> Self:
        """Search among records ``X`` with labels ``y``, read when the search has been charged.

        ``unit`` is refused: what a search promises is about one record, not about one person.
        """
        models.refuse_unit(unit)
        budget, found = self._checked()
        unread = models.unread(self.estimator, X, y, budget)
        models.check_can_be_split(unread.table, budget.relation)
        warn_if_weak(budget, unread.n_records)
        source = source_of(self.random_state)
        secret = secure_source() if source is None else source
        key, m = new_key(secret), len(found)
        shares = (1.0 / (m + 1),) * (m + 1)
        sizes: list[int | None] = [None] * m
        if unread.n_records is not None and budget.relation is Relation.REPLACE:
            part = parts_of(shares, key, budget.relation, np.empty((unread.n_records, 0)))
            sizes = np.bincount(part, minlength=m + 1)[:m].tolist()
        tries = self._tries(found, budget, unread, sizes)
        plan = self._plan(budget, tries)
        runner = Runner(self.estimator, unread, tries, source)
        default = runner.default()
        seeds = [None if source is None else int(word % 2**31) for word in secret.words(m)]

        def work() -> Release[Run]:
            rows, labels = models.read(self.estimator, unread.table)
            where = models.places_of(unread.table)
            part = parts_of(shares, key, budget.relation, rows, labels, positions=where)
            runs = [
                runner.run(
                    Draw(i, 0, seeds[i]), Part(rows[part == i], labels[part == i], sizes[i]), None
                )
                for i in range(m)
            ]
            last = Part(rows[part == m], labels[part == m])
            best = _chosen(runs, last, budget, tries.event, source)
            won = runs[best] if runs[best].model is not None else default
            event = plan.event if source is None else priced(plan.event, source)
            return Release(won, event)

        released = release(
            plan,
            work,
            accountant=self.accountant,
            source=source,
            assumptions=unread.assumed(self.estimator, found, budget),
        )
        note = f"One of {m} fits, each to a part of the records, was chosen and released."
        self.privacy_ = replace(released.privacy, notes=(note,))
        self.plan_ = plan
        self.best_params_ = dict(released.value.parameters or {})
        self.best_estimator_ = released.value.model
        models.promise(self.best_estimator_, self.privacy_)
        models.note_columns_of(self, self.best_estimator_, X)
        return self

    def _checked(self) -> tuple[Budget, tuple[dict[str, Any], ...]]:
        budget = budget_of(self.epsilon, self.delta, self.relation)
        if budget.relation.by_person:
            raise ValueError("a search protects one record; relation 'add_remove_person' is not.")
        models.check_model(self.estimator)
        found = candidates(self.space, self.n_candidates)
        models.check_space(self.estimator, list(found[0]))
        return budget, found

    def _tries(
        self,
        found: tuple[dict[str, Any], ...],
        budget: Budget,
        unread: models.Unread,
        sizes: list[int | None],
    ) -> Tries:
        """Return each candidate with the whole budget: the parts are disjoint."""
        if budget.is_infinite:
            void = NonPrivate("the budget is infinite", relation=budget.relation)
            return Tries(tuple(Try(one, budget, void) for one in found), None, void, 1.0)
        each = []
        for one, size in zip(found, sizes, strict=True):
            model = models.configured(self.estimator, one, budget)
            last, facts = unread.told(model, size)
            each.append(Try(one, budget, last.plan(len(facts.names)).event))
        choice: Event = ExponentialMechanism(budget.epsilon, budget.relation)
        event = Parallel((*(one.fit for one in each), choice))
        return Tries(tuple(each), None, event, 1.0)

    def _plan(self, budget: Budget, tries: Tries) -> Plan:
        m = len(tries.each)
        return Plan(
            "disjoint_search",
            tries.event,
            budget,
            f"{m} candidates on a part of the records each, one chosen on another part",
            {"n_candidates": m, "share_of_records": 1.0 / (m + 1)},
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a best fit."""
        return hasattr(self, "best_estimator_")

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, of a classifier."""
        check_is_fitted(self)
        classes: npt.NDArray[Any] = self.best_estimator_.classes_
        return classes

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return what the chosen fit predicts."""
        check_is_fitted(self)
        answer: npt.NDArray[Any] = self.best_estimator_.predict(X)
        return answer


def _chosen(runs: list[Run], last: Part, budget: Budget, planned: Event, source: Any) -> int:
    """Return which run the exponential mechanism picks by its mistakes; a failed one has all."""
    wrong = [_mistakes(run, last) for run in runs]
    if budget.is_infinite:
        return int(np.argmin(wrong))
    # each from 0 to 1 a record, all moved upwards by one that comes
    utilities = Bounded(-np.array(wrong), 1.0, Norm.LINF, budget.relation)
    monotone = budget.relation.adds_or_removes
    chosen = select(utilities, budget.epsilon, monotone=monotone, source=source)
    check_planned(chosen.event, planned.parts()[-1])
    return chosen.value


def _mistakes(run: Run, last: Part) -> float:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one that is an error would be about every record
            steps = models.between(run.model)
            fitted = models.asked(run.model)
            wrong = mistakes(fitted, models.through(last.rows, steps), last.labels)
    except Exception:  # a failed run is wrong about everything, and so is one that cannot say
        return float(last.rows.shape[0])
    # whole multiples of 2^-20, which add up exactly
    return float(np.floor(wrong * 2.0**20).sum() / 2.0**20)
