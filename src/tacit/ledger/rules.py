"""Rules of a ledger: whose charge it is, what analysts and partitions may spend."""

from __future__ import annotations

import getpass
import unicodedata
from dataclasses import asdict, dataclass, replace

from tacit.ledger.state import Parts, State, Terms
from tacit.ledger.store import Content, Draft
from tacit.privacy import BudgetExceeded, Relation
from tacit.privacy.accountant import CannotCharge, Remedies, refusal
from tacit.privacy.filters import Charge

# Characters of a note; one entry must not fill the disk.
_LONGEST = 1000


@dataclass(frozen=True)
class Bound:
    """Analyst and partition that a charge counts for, and notes for people."""

    analyst: str | None = None
    partition: str | None = None
    label: str = ""
    purpose: str = ""
    who: str = ""
    release: str = ""
    table: str = ""

    def to_dict(self) -> dict[str, str | None]:
        """Return what an entry says of it; what is released from which table only if it is said."""
        said = asdict(self)
        return {name: said[name] for name in said if said[name] or name not in _IF_SAID}


# Notes that entries of older ledgers lack.
_IF_SAID = ("release", "table")


def account() -> str:
    """Return the name of the account that runs the process, or an empty text if it has none."""
    try:
        return text("who", getpass.getuser()[:_LONGEST])
    except (KeyError, OSError, ImportError):  # the user id has no name
        return ""


def text(name: str, value: object) -> str:
    """Return a note for people; raise if it is no text or too long."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError(f"{name} must be a text of at most {_LONGEST} characters.")
    return value.encode("utf-8", "replace").decode("utf-8")


def name_of(kind: str, value: object) -> str:
    """Return a name in Unicode normal form, so that names which look alike are equal."""
    found = unicodedata.normalize("NFC", value) if isinstance(value, str) else ""
    if not 0 < len(found) <= 200 or not found.isprintable() or found != found.strip():
        raise ValueError(
            f"{kind} must be a name of 1 to 200 printable characters without spaces around it, got "
            f"{value!r:.300}."
        )
    return found


def analyst_of(terms: Terms, name: str, epsilon: float | None) -> Content:
    """Return the content of an analyst's entry; raise if the terms do not allow the share."""
    budget, rule = terms.budget, terms.rule
    if epsilon is None:
        return {"kind": "analyst", "name": name_of("analyst", name), "epsilon": None}
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
    kind, name = content["kind"], content.get("name")
    if kind != "released" and name in (before.analysts if kind == "analyst" else before.partitions):
        raise ValueError(f"the ledger has {kind} {name!r} already; it is fixed for life.")
    return before.after(content)


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
            raise BudgetExceeded(_refusal(terms, charge, exposure, _advice(terms, bound, before)))
    if bound.analyst is None or bound.analyst not in after.analysts:
        return draft, after
    share = after.analysts[bound.analyst]
    if share.epsilon is not None and not terms.fits(share.spent, share.epsilon):
        raise BudgetExceeded(
            f"for {bound.analyst!r}, whose share is epsilon {share.epsilon:g}, the release "
            f"{terms.over(share.spent, share.epsilon)}. Nothing was released. "
            f"{_advice(terms, bound, before)}"
        )
    return draft, after


def _advice(terms: Terms, bound: Bound, state: State) -> str:
    """Return what would be accepted, of the budget and of the analyst's share."""
    accounts: list[tuple[Parts, float | None]] = [
        (exposure, None) for exposure in state.exposures(bound.partition)
    ]
    share = None if bound.analyst is None else state.analysts.get(bound.analyst)
    if share is not None and share.epsilon is not None:
        accounts.append((share.spent, share.epsilon))
    return terms.accepts(*accounts)


def check_names(bound: Bound, state: State) -> None:
    """Raise if a charge names an unknown analyst or partition, or lacks a required analyst."""
    analyst, partition = bound.analyst, bound.partition
    if partition is not None and partition not in state.partitions:
        raise CannotCharge(f"the ledger has no partition {partition!r}; declare it first.")
    if not state.is_divided:
        return  # a name is recorded, and limits nothing
    if analyst is None:
        raise CannotCharge(
            "the budget is divided among analysts, and the charge names none of them; name "
            "one (--analyst, or ledger.bound(analyst=...)): "
            f"{', '.join(map(repr, state.analysts))}."
        )
    if analyst is not None and analyst not in state.analysts:
        raise CannotCharge(
            f"the budget is divided among analysts, and {analyst!r} is none of them "
            f"({', '.join(map(repr, state.analysts))}); check the name, or declare it: with a "
            "share (--analyst NAME=EPSILON), or without one (--analyst NAME)."
        )


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
