"""Release a plan: charge it, do its work, compare the cost with the charge.

Every release goes through this module, so that nothing is read before it was charged and nothing is
released that was not planned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from tacit.noise import Release, Source
from tacit.noise.release import priced
from tacit.privacy import AnyAccountant, Budget, Event, Guarantee, NonPrivate
from tacit.privacy.guarantee import Booked, Booking
from tacit.queries import Facts, NoisySum, Private, Session, Slot

T = TypeVar("T")


class Planned(Protocol):
    """The interface of a plan, which is made from public facts alone."""

    @property
    def name(self) -> str:
        """The method, in a word."""

    @property
    def event(self) -> Event:
        """The event that the release will cost."""

    @property
    def budget(self) -> Budget:
        """The budget for which it was planned."""

    @property
    def reason(self) -> str:
        """The reason for this method."""

    @property
    def settings(self) -> Mapping[str, float]:
        """The chosen settings."""

    @property
    def rejected(self) -> tuple[str, ...]:
        """The rejected alternatives, each with a reason."""


@dataclass(frozen=True)
class Plan:
    """A generic plan, for releases that need no class of their own.

    Examples
    --------
    >>> from tacit.location import Mean
    >>> print(Mean(1.0, 1e-6, row_norm=2.0).plan(n_features=3))
    noisy_sum: the sum of clipped records, and their number, each with Gaussian noise
      rows longer than 2 are scaled down to it; the noise is proportional to it
      noise_multiplier = 4.79585
      count_noise_multiplier = 8.92608
    """

    name: str
    event: Event
    budget: Budget
    reason: str
    settings: Mapping[str, float] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # The public facts of the records, and the queries by name: each is asked once.
    facts: Facts | None = None
    queries: Mapping[str, NoisySum] = field(default_factory=dict)
    # Slots of queries that are made later, or asked several times.
    paid: Mapping[str, Slot] = field(default_factory=dict)

    def slots(self) -> dict[str, Slot]:
        """Return the slots of a session under this plan."""
        assert self.facts is not None, "whoever names queries says of what they are asked"
        once = {name: Slot(query.event(self.facts)) for name, query in self.queries.items()}
        return {**once, **self.paid}

    def __str__(self) -> str:
        return "\n".join(plan_lines(self, *self.notes))


def plan_lines(plan: Planned, *more: str) -> list[str]:
    """Return the printed lines of a plan, with the lines ``more`` after the first."""
    also = ["also considered:", *(f"  {line}" for line in plan.rejected)] if plan.rejected else []
    return [
        f"{plan.name}: {plan.reason}",
        *(f"  {line}" for line in more),
        *(f"  {name} = {value:.6g}" for name, value in plan.settings.items()),
        *also,
    ]


def norm_in_words(row_norm: float) -> str:
    """Describe the effect of a row norm in a plan."""
    return f"rows longer than {row_norm:g} are scaled down to it; the noise is proportional to it"


def without_noise(budget: Budget) -> Plan:
    """Return the plan of a release under an infinite budget: no noise and no guarantee."""
    event = NonPrivate("the budget is infinite", relation=budget.relation)
    return Plan("exact", event, budget, "no noise: the budget is infinite")


class PlannedQuestions(Planned, Protocol):
    """A plan with the slots of a session."""

    @property
    def facts(self) -> Facts | None:
        """The public facts of the records."""

    def slots(self) -> Mapping[str, Slot]:
        """Return the slots by name."""


@dataclass(frozen=True)
class Released(Generic[T]):
    """A released value and its guarantee."""

    value: T
    privacy: Guarantee


def release(
    plan: Planned,
    work: Callable[[], Release[T]],
    *,
    accountant: AnyAccountant | None = None,
    source: Source | None = None,
    assumptions: Sequence[str] = (),
) -> Released[T]:
    """Charge a plan, do its work, and return the result if it cost what was charged.

    Like `release_answers`, for work that opens records itself.
    """
    charged, booking = _charge(plan, accountant, source)
    released = work()
    return _handed_out(plan, released, charged, booking, assumptions)


def release_answers(
    plan: PlannedQuestions,
    open_records: Callable[[], Private],
    work: Callable[[Session], T],
    *,
    accountant: AnyAccountant | None = None,
    source: Source | None = None,
    assumptions: Sequence[str] = (),
) -> Released[T]:
    """Charge a plan, ask its queries in a session, and return the value computed from the answers.

    Parameters
    ----------
    plan
        The plan, made from public facts alone.
    open_records
        Opens the records, once, after the charge. Only the session holds them.
    work
        Asks the session the planned queries, and returns the value to release.
    accountant
        A budget shared with other releases, or None.
    source
        The source of randomness; a seeded source is charged as no privacy.
    assumptions
        Facts that somebody vouches for; the guarantee repeats them.

    Raises
    ------
    BudgetExceeded
        If the accountant refuses; no record was read.
    RuntimeError
        If the queries differ from the plan; the value is withheld, and stays charged.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.engine import Plan, release_answers
    >>> from tacit.privacy import Budget, Relation
    >>> from tacit.queries import Count, Facts, GaussianNoise, NoisySum
    >>> from tacit.records import Bounds, MemoryRecords
    >>> facts = Facts(Bounds(), 2, Relation.ADD_REMOVE)
    >>> count = NoisySum(Count(), GaussianNoise(4.0))
    >>> plan = Plan("count", count.event(facts), Budget(1.0, 1e-6), "a noisy count", facts=facts,
    ...             queries={"count": count})
    >>> records = MemoryRecords(np.zeros((1000, 2)), None, facts.bounds)
    >>> released = release_answers(plan, lambda: records, lambda s: s.ask(count, "count"))
    >>> 900 < released.value < 1100
    True
    """
    charged, booking = _charge(plan, accountant, source)
    facts = plan.facts
    assert facts is not None, "whoever names queries says of what they are asked"
    session = Session(open_records(), facts, plan.event, plan.slots(), source, booking=booking)
    released = session.release(work(session))
    return _handed_out(plan, released, charged, booking, assumptions)


def _charge(
    plan: Planned, accountant: AnyAccountant | None, source: Source | None
) -> tuple[Event, Booking | None]:
    """Charge a plan's event; return the charged event and its booking."""
    charged = plan.event if source is None else priced(plan.event, source)
    if accountant is None:
        return charged, None
    check_accountant(accountant)
    paid = accountant.charge(charged, plan.budget.delta)
    return charged, paid.booking if isinstance(paid, Booked) else None


def _handed_out(
    plan: Planned,
    released: Release[T],
    charged: Event,
    booking: Booking | None,
    assumptions: Sequence[str],
) -> Released[T]:
    if released.event != charged:
        raise RuntimeError(
            f"released {released.event} but charged {charged}: the release is withheld. This is a "
            "bug in the mechanism; please report it as SECURITY.md says."
        )
    promise = Guarantee(charged, plan.budget.target_delta, tuple(assumptions), booking=booking)
    return Released(released.value, promise)


def check_accountant(accountant: object) -> None:
    """Refuse an accountant that holds no budget, such as a `Budget` or the path of a ledger.

    Examples
    --------
    >>> from tacit.engine import check_accountant
    >>> check_accountant("survey.ledger")
    Traceback (most recent call last):
    TypeError: accountant must keep a budget, got a str; pass tacit.privacy.Accountant(...
    """
    if not callable(getattr(accountant, "charge", None)):
        raise TypeError(
            f"accountant must keep a budget, got a {type(accountant).__name__}; pass "
            "tacit.privacy.Accountant(Budget(epsilon, delta)) or tacit.ledger.Ledger.open(path). "
            "Nothing was released."
        )
