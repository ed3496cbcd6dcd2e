"""Fit candidates to disjoint parts of the records: Algorithm 4 of CMS11."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from tacit.checks import names_of_today
from tacit.engine import Plan, release_answers, without_noise
from tacit.estimators.parameters import budget_of, source_of, warn_if_weak
from tacit.noise import secure_source
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.queries import AtMost, Selection, Session, Slot
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import CandidateMistakes
from tacit.queries.session import InParts, Questions, Split
from tacit.records.splits import new_key
from tacit.tuning import records
from tacit.tuning.planning import Tries, Try
from tacit.tuning.search import BaseSearch
from tacit.tuning.space import candidates
from tacit.tuning.trials import Draw, MistakesOfEach, Run, Runner


class DisjointSearch(BaseSearch):
    """Fits each of m candidates to a part of the records, and chooses on the last of m + 1 parts.

    Candidate i is chosen with probability proportional to exp(-epsilon z_i / 2), with z_i its
    number of mistakes on the last part; under ADD_REMOVE to exp(-epsilon z_i), because there a
    record can only add mistakes. The parts are disjoint, so the search costs as much as one fit;
    but each fit has only a fraction of the records.

    Parameters
    ----------
    estimator, param_distributions, n_iter
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

    @names_of_today
    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any],
        *,
        n_iter: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def plan(self, n_features: int | None = None, n_records: int | None = None) -> Plan:
        """Plan a search and its cost, without data."""
        budget, found = self._checked()
        unread = records.expected(self.estimator, n_features, n_records, budget)
        n = unread.n_records
        sizes = [None if n is None else max(n // (len(found) + 1), 1)] * len(found)
        return self._plan(budget, self._tries(found, budget, unread, sizes))

    def fit(self, X: Any, y: Any = None, unit: None = None) -> Self:
        """Search on records ``X`` with labels ``y``, which are read after the charge.

        ``unit`` is refused: the guarantee of a search is for one record, not for one person.
        """
        records.refuse_unit(unit)
        budget, found = self._checked()
        unread = records.unread(self.estimator, X, y, budget)
        records.check_can_be_split(unread, budget.relation)
        warn_if_weak(budget, unread.n_records)
        source = source_of(self.random_state)
        secret = secure_source() if source is None else source
        key, m = new_key(secret), len(found)
        split = Split((1.0 / (m + 1),) * (m + 1), key)
        sizes = split.sizes(unread.n_records, budget.relation)[:m]
        tries = self._tries(found, budget, unread, sizes)
        plan = self._plan(budget, tries)
        runner = Runner(self.estimator, unread, tries, source)
        default = runner.default()
        seeds = [None if source is None else int(word % 2**31) for word in secret.words(m)]

        def work(session: Session) -> Run:
            *parts, last = session.on(split).parts("parts", _parts(tries, budget))
            runs = [
                runner.run(Draw(i, 0, seeds[i]), part, None, sizes[i])
                for i, part in enumerate(parts)
            ]
            best = _chosen(runs, last, budget)
            for part in (*parts, last):
                part.close()
            return runs[best] if runs[best].model is not None else default

        released = release_answers(
            plan,
            lambda: records.opened(self.estimator, unread),
            work,
            accountant=self.accountant,
            source=source,
            assumptions=unread.assumed(self.estimator, found, budget),
        )
        note = f"One of {m} fits, each to a part of the records, was chosen and released."
        self.privacy_ = replace(released.privacy, notes=(note,))
        self.plan_ = plan
        self.best_params_ = dict(released.value.parameters or {})
        self.best_estimator_ = records.best_of(self, released.value.model, self.privacy_, X)
        return self

    def _checked(self) -> tuple[Budget, tuple[dict[str, Any], ...]]:
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        if budget.relation.by_person:
            raise ValueError("a search protects one record; do not pass 'add_remove_person'.")
        records.check_model(self.estimator)
        found = candidates(self.param_distributions, self.n_iter)
        records.check_space(self.estimator, list(found[0]))
        return budget, found

    def _tries(
        self,
        found: tuple[dict[str, Any], ...],
        budget: Budget,
        unread: records.Unread,
        sizes: list[int | None],
    ) -> Tries:
        """Return each candidate with the whole budget, since the parts are disjoint."""
        if budget.is_infinite:
            void = without_noise(budget).event
            return Tries(tuple(Try(one, budget, void) for one in found), None, None, void, 1.0)
        each = []
        for one, size in zip(found, sizes, strict=True):
            model = records.configured(self.estimator, one, budget)
            each.append(Try(one, budget, model.plan_of(unread.of_part(size), weighted=False).event))
        tries = Tries(tuple(each), None, None, without_noise(budget).event, 1.0)
        return replace(tries, event=_parts(tries, budget).event)

    def _plan(self, budget: Budget, tries: Tries) -> Plan:
        m = len(tries.each)
        return Plan(
            "disjoint_search",
            tries.event,
            budget,
            f"{m} candidates on a part of the records each, one chosen on another part",
            {"n_candidates": m, "share_of_records": 1.0 / (m + 1)},
            facts=plain_facts(budget.relation),
            paid=_parts(tries, budget).slots(),
        )


def _choice(n_candidates: int, budget: Budget) -> Selection[CandidateMistakes]:
    """Return the query for the candidate with the fewest mistakes."""
    return Selection(CandidateMistakes(n_candidates), budget.epsilon)


def _parts(tries: Tries, budget: Budget) -> InParts:
    """Return the plan of all parts: a fit to each but the last, and a choice on the last."""
    facts, fits = plain_facts(budget.relation), [one.questions for one in tries.each]
    if budget.is_infinite:  # the best is chosen without a query
        choice = Slot(without_noise(budget).event, AtMost())
    else:
        choice = Slot(_choice(len(fits), budget).event(facts))
    return InParts((*fits, Questions(facts, {"choice": choice})))


def _chosen(runs: list[Run], last: Session, budget: Budget) -> int:
    """Choose a run by the exponential mechanism; a failed run counts as always wrong."""
    about = last.on(MistakesOfEach([run.model for run in runs]))
    if budget.is_infinite:
        utility = CandidateMistakes(len(runs))
        return about.without_noise(lambda wrong: int(np.argmax(utility.total(wrong, last.facts))))
    return int(about.ask(_choice(len(runs), budget), "choice"))
