"""The one road from a plan to a release: charge, work, compare the receipt.

Whatever is released goes through here, so that nothing is read before it was paid for and nothing
leaves that was not planned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from tacit.noise import Release, Source
from tacit.noise.release import priced
from tacit.privacy import AnyAccountant, Booked, Booking, Budget, Event, Guarantee, NonPrivate
from tacit.queries import Facts, NoisySum, Private, Session, Slot

T = TypeVar("T")


class Planned(Protocol):
    """What is about to be released, decided from public facts alone."""

    @property
    def name(self) -> str:
        """How it is done, in a word."""

    @property
    def event(self) -> Event:
        """What it will cost."""

    @property
    def budget(self) -> Budget:
        """What it was planned for."""

    @property
    def reason(self) -> str:
        """Why it is done this way."""

    @property
    def settings(self) -> Mapping[str, float]:
        """The numbers that were decided."""

    @property
    def rejected(self) -> tuple[str, ...]:
        """What else was considered, and why it was not chosen."""


@dataclass(frozen=True)
class Plan:
    """A plan of which there is no more to say than what every plan says.

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
    # What is public of the records, and what will be asked of them by name: once each.
    facts: Facts | None = None
    queries: Mapping[str, NoisySum] = field(default_factory=dict)
    # What was paid for questions that are made later, or asked several times.
    paid: Mapping[str, Slot] = field(default_factory=dict)

    def slots(self) -> dict[str, Slot]:
        """Return what a session may be asked under this plan."""
        assert self.facts is not None, "whoever names queries says of what they are asked"
        once = {name: Slot(query.event(self.facts)) for name, query in self.queries.items()}
        return {**once, **self.paid}

    def __str__(self) -> str:
        return "\n".join(plan_lines(self, *self.notes))


def plan_lines(plan: Planned, *more: str) -> list[str]:
    """Return a plan for people, with ``more`` lines of its own after the first."""
    also = ["also considered:", *(f"  {line}" for line in plan.rejected)] if plan.rejected else []
    return [
        f"{plan.name}: {plan.reason}",
        *(f"  {line}" for line in more),
        *(f"  {name} = {value:.6g}" for name, value in plan.settings.items()),
        *also,
    ]


def norm_in_words(row_norm: float) -> str:
    """Return what a row norm does in a plan."""
    return f"rows longer than {row_norm:g} are scaled down to it; the noise is proportional to it"


def without_noise(budget: Budget) -> Plan:
    """Return the plan of a release that an infinite budget asks for: no noise, and no promise."""
    event = NonPrivate("the budget is infinite", relation=budget.relation)
    return Plan("exact", event, budget, "no noise: the budget is infinite")


class PlannedQuestions(Planned, Protocol):
    """A plan that says what a session may be asked."""

    @property
    def facts(self) -> Facts | None:
        """What is public of the records."""

    def slots(self) -> Mapping[str, Slot]:
        """Return what may be asked, by name."""


@dataclass(frozen=True)
class Released(Generic[T]):
    """A value that left, and what is promised about it."""

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
    """Charge a plan, do its work, and hand out the result if it cost what was charged.

    As `release_answers`, for work that opens records itself.
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
    """Charge a plan, ask its questions in a session, and hand out what was made of the answers.

    Parameters
    ----------
    plan
        What will be asked, from public facts alone.
    open_records
        Opens the records, after the charge, once. Only the session holds them.
    work
        Asks the session what was planned, and returns what is released.
    accountant
        A budget shared with other releases, or None.
    source
        The randomness; a seeded one is charged as what it is, no privacy.
    assumptions
        What was vouched for, for the guarantee to repeat.

    Raises
    ------
    BudgetExceeded
        If the accountant refuses; no record was read.
    RuntimeError
        If what was asked is not what was planned; it is withheld, and stays charged.

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
    """Charge a plan's event; return what was charged, and where it is written."""
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
    """Refuse what keeps no budget, such as a `Budget` itself or the path of a ledger.

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
