"""Decide whether a charge is within the budget, and explain a refusal."""

from __future__ import annotations

from tacit.ledger.bound import Bound
from tacit.ledger.entry import Content
from tacit.ledger.state import State
from tacit.ledger.terms import Terms
from tacit.privacy import BudgetExceeded
from tacit.privacy.accountant import CannotCharge, Remedies, refusal, still_accepted
from tacit.privacy.filters import Charge

_REMEDIES = Remedies(
    "Leave random_state out and choose a finite epsilon, or try things out without the ledger.",
    "Lower this release's epsilon or delta: a ledger's budget is fixed for life.",
)


def afford(terms: Terms, bound: Bound, charge: Charge, content: Content, before: State) -> State:
    """Return the state after a charge; raise if the budget or the analyst's share is exceeded."""
    check_names(bound, before)
    after = before.after(content)
    for exposure in after.exposures(bound.partition):
        if not terms.fits(exposure):
            left = before.left(terms, bound.partition, bound.analyst)
            raise BudgetExceeded(_refusal(terms, charge, terms.spent(exposure), left))
    if bound.analyst is None:
        return after
    share = after.analysts[bound.analyst]
    if not terms.fits(share.spent, share.epsilon):
        raise BudgetExceeded(
            f"it would bring what {bound.analyst!r} spent to epsilon "
            f"{terms.spent(share.spent):.6g}, over their {share.epsilon:g} of the budget "
            f"({terms.budget}). Nothing was released. "
            + still_accepted(
                before.left(terms, bound.partition, bound.analyst), terms.budget, terms.rule
            )
        )
    return after


def check_names(bound: Bound, state: State) -> None:
    """Raise if a charge names an unknown analyst or partition, or lacks a required analyst."""
    analyst, partition = bound.analyst, bound.partition
    if partition is not None and partition not in state.partitions:
        raise CannotCharge(f"the ledger has no partition {partition!r}; declare it first.")
    if analyst is None and state.analysts:
        raise CannotCharge(
            "the budget is divided among analysts, and the charge names none of them; name "
            "one (--analyst, or ledger.bound(analyst=...)): "
            f"{', '.join(map(repr, state.analysts))}."
        )
    if analyst is not None and analyst not in state.analysts:
        raise CannotCharge(f"the ledger has no analyst {analyst!r}; give them a share first.")


def _refusal(terms: Terms, charge: Charge, total: float, left: float) -> str:
    # The total is infinite if the deltas are used up, or if the rule has no price for the event.
    alone = terms.rule.spent((charge,), terms.budget.delta)
    why = (
        terms.rule.why_infinite((charge,), terms.budget.delta)
        if alone == float("inf")
        else f"the deltas are used up: not enough of delta {terms.budget.delta:g} is left for "
        f"{charge.delta:g}; ask for a smaller delta, or for a pure release"
    )
    return refusal(charge, total, terms.budget, terms.rule, left, _REMEDIES, why)
