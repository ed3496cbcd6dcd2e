"""The one road from a plan to a release: charge, work, compare the receipt.

Whatever is released goes through here, so that nothing is read before it was paid for and nothing
leaves that was not planned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tacit.noise import Release, Source
from tacit.noise.release import priced
from tacit.privacy import AnyAccountant, Budget, Event, Guarantee, NonPrivate

T = TypeVar("T")


class Planned(Protocol):
    """What is about to be released, decided from public facts alone."""

    @property
    def event(self) -> Event:
        """What it will cost."""

    @property
    def budget(self) -> Budget:
        """What it was planned for."""


@dataclass(frozen=True)
class WithoutNoise:
    """The plan of a release that an infinite budget asks for: no noise, and no promise."""

    budget: Budget

    @property
    def event(self) -> Event:
        """Return that nothing is promised."""
        return NonPrivate("the budget is infinite", relation=self.budget.relation)


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

    Parameters
    ----------
    plan
        What will be released, from public facts alone.
    work
        Opens the records and returns the release; called after the charge, once.
    accountant
        A budget shared with other releases, or None.
    source
        The randomness that ``work`` draws from; a seeded one is charged as what it is, no privacy.
    assumptions
        What was vouched for, for the guarantee to repeat.

    Raises
    ------
    BudgetExceeded
        If the accountant refuses; ``work`` was not called.
    RuntimeError
        If what was released is not what was planned; it is withheld, and stays charged.

    Examples
    --------
    >>> from tacit.engine import WithoutNoise, release
    >>> from tacit.noise import Release
    >>> from tacit.privacy import Budget
    >>> plan = WithoutNoise(Budget(float("inf")))
    >>> release(plan, lambda: Release(3.0, plan.event)).privacy.voided_by
    ('the budget is infinite',)
    """
    if accountant is not None:
        charged = plan.event if source is None else priced(plan.event, source)
        accountant.charge(charged, plan.budget.delta)
    released = work()
    _check_receipt(plan, released.event)
    promise = Guarantee(released.event, plan.budget.delta, tuple(assumptions))
    return Released(released.value, promise)


def _check_receipt(plan: Planned, event: Event) -> None:
    """The event of what was released must be the event that was charged."""
    seeded = isinstance(event, NonPrivate) and event.would_be is not None
    paid = event.would_be if isinstance(event, NonPrivate) and seeded else event
    if paid != plan.event:
        raise RuntimeError(
            f"released {paid} but planned {plan.event}: the release is withheld. This is a bug "
            "in the mechanism; please report it as SECURITY.md says."
        )
