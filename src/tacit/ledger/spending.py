"""Decide whether a charge is within the budget, and explain a refusal."""

from __future__ import annotations

from tacit.ledger.bound import Bound
from tacit.ledger.entry import Draft
from tacit.ledger.parts import Parts
from tacit.ledger.state import State
from tacit.ledger.terms import Terms
from tacit.privacy import BudgetExceeded
from tacit.privacy.accountant import CannotCharge, Remedies, refusal
from tacit.privacy.filters import Charge

_REMEDIES = Remedies(
    "Leave random_state out and choose a finite epsilon, or try things out without the ledger.",
    "Lower this release's epsilon or delta: a ledger's budget is fixed for life.",
)


def afford(
    terms: Terms, bound: Bound, charge: Charge, draft: Draft, before: State
) -> tuple[Draft, State]:
    """Return what the entry of a charge says, and the state after it.

    Raises if it is over the budget, or over a share of it. Some rules have a lower price for the
    first charge of a ledger; whether a charge is the first is known in its transaction alone.
    """
    check_names(bound, before)
    first = terms.first_price(charge) if before.is_untouched else None
    if first is not None:
        said = draft.content
        draft = Draft({**said, "cost": list(first), "share_cost": said["cost"], "first": True})
    after = before.after(draft.content)
    for exposure in after.exposures(bound.partition):
        if not terms.fits(exposure):
            least = min(before.exposures(bound.partition), key=terms.left)
            raise BudgetExceeded(_refusal(terms, charge, exposure, terms.accepts(least)))
    if bound.analyst is None:
        return draft, after
    share, had = after.analysts[bound.analyst], before.analysts[bound.analyst]
    if not terms.fits(share.spent, share.epsilon):
        raise BudgetExceeded(
            f"for {bound.analyst!r}, whose share is epsilon {share.epsilon:g}, the release "
            f"{terms.over(share.spent, share.epsilon)}. Nothing was released. "
            f"{terms.accepts(had.spent, share.epsilon)}"
        )
    return draft, after


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


def _refusal(terms: Terms, charge: Charge, exposure: Parts, left: str) -> str:
    # A budget of deltas that is used up makes the total infinite, an event without price too.
    why = ""
    if terms.spent(exposure) == float("inf"):
        alone = terms.rule.spent((charge,), terms.budget.delta)
        why = (
            terms.rule.why_infinite((charge,), terms.budget.delta)
            if alone == float("inf")
            else f"the deltas are used up: not enough of delta {terms.budget.delta:g} is left for "
            f"{charge.delta:g}; ask for a smaller delta, or for a pure release"
        )
    return refusal(charge, terms.budget, terms.over(exposure), left, _REMEDIES, why)
