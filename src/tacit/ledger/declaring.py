"""Check declarations of a ledger that are fixed for life: analysts' shares and partitions."""

from __future__ import annotations

from dataclasses import replace

from tacit.ledger.bound import name as name_of
from tacit.ledger.entry import Content
from tacit.ledger.state import State
from tacit.ledger.terms import Terms
from tacit.privacy import Relation


def analyst_of(terms: Terms, name: str, epsilon: float) -> Content:
    """Return the content of an analyst's entry; raise if the terms do not allow the share."""
    budget, rule = terms.budget, terms.rule
    cap = replace(budget, epsilon=epsilon).epsilon
    if not cap <= budget.epsilon:
        raise ValueError(
            f"{name!r} gets at most the budget's epsilon, {budget.epsilon:g}, not {cap:g}."
        )
    if not rule.most(replace(budget, epsilon=cap))[0] > 0.0:
        raise ValueError(
            f"{rule} accepts no release within epsilon {cap:g} at delta {budget.delta:g}, and "
            f"a share is fixed for life; give {name!r} a larger epsilon."
        )
    return {"kind": "analyst", "name": name_of("analyst", name), "epsilon": cap}


def partition_of(terms: Terms, name: str) -> Content:
    """Return the content of a partition's entry; raise if the terms do not allow partitions."""
    if terms.budget.relation is Relation.REPLACE:
        raise ValueError(
            "under REPLACE a record may be replaced by a record of another partition, so charges "
            "on partitions add up; create the ledger under ADD_REMOVE to use partitions."
        )
    return {"kind": "partition", "name": name_of("partition", name)}


def declared(content: Content, before: State) -> State:
    """Return the state after a declaration; raise if the name is taken."""
    kind, name = content["kind"], content["name"]
    if name in (before.analysts if kind == "analyst" else before.partitions):
        raise ValueError(f"the ledger has {kind} {name!r} already; it is fixed for life.")
    return before.after(content)
