"""A step with its share of the budget: planned, and fitted from what was paid for it."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import clone

from tacit.engine import Planned
from tacit.noise import Source
from tacit.noise.release import priced
from tacit.privacy import Budget, Event
from tacit.privacy.weakness import WeakPromiseWarning
from tacit.public_facts import informed, source_of
from tacit.queries.prepaid import Prepaid
from tacit.table_facts import TableFacts


def charged_for(event: Event, source: Source | None) -> Event:
    """Return what a release is charged as, from a source that may be seeded."""
    return event if source is None else priced(event, source)


def fitted_step(
    name: str, step: Any, share: Planned, seed: int | None, table: Any, unit: Any = None
) -> Any:
    """Return a step fitted from its share, which it must use, once, for what was planned."""
    ready = with_budget(step, share.budget).set_params(random_state=seed)
    paid = Prepaid(
        charged_for(share.event, source_of(seed)), share.budget, f"step {name!r}", lambda: None
    )
    return paid.fit(ready, table, unit)


def with_budget(step: Any, budget: Budget) -> Any:
    """Return a copy of a step with a share of the budget."""
    share = {"epsilon": budget.epsilon, "delta": budget.delta, "relation": budget.relation}
    return clone(step).set_params(**share, accountant=None)


def plan_of(step: Any, facts: TableFacts, budget: Budget, n_records: int | None) -> Planned:
    """Return the plan of a step that meets a table of these facts."""
    told = informed(with_budget(step, budget), facts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPromiseWarning)  # said once, of the whole
        plan: Planned = told.plan(len(facts.names), n_records)
    return plan
