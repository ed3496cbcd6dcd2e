"""A budget shared by several releases, refusing what would overspend it."""

from __future__ import annotations

from tacit.privacy.budget import Budget
from tacit.privacy.events import Composed, Event
from tacit.privacy.guarantee import Guarantee


class BudgetExceeded(RuntimeError):
    """A release was refused because it would overspend; nothing was read or released."""


class Accountant:
    """Keeps what was spent of one budget, in memory.

    Charge an event *before* the data are read: a crash then leaves the budget spent.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian
    >>> accountant = Accountant(Budget(1.0, 1e-5))
    >>> accountant.charge(Gaussian(6.0)).within(1.0, 1e-5)
    True
    >>> accountant.charge(Gaussian(4.0))
    Traceback (most recent call last):
        ...
    tacit.privacy.accountant.BudgetExceeded: ...
    """

    def __init__(self, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget, got {budget!r}.")
        self.budget = budget
        self._events: tuple[Event, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """What was charged so far, oldest first."""
        return self._events

    def spent(self) -> Guarantee | None:
        """Return the guarantee of everything charged so far, None before the first charge."""
        return self._together(()) if self._events else None

    def _together(self, more: tuple[Event, ...]) -> Guarantee:
        return Guarantee(Composed(self._events + more), self.budget.delta)

    def charge(self, event: Event) -> Guarantee:
        """Book ``event`` and return the total, or raise and book nothing."""
        if event.relation is not self.budget.relation:
            raise ValueError(
                f"the event is under {event.relation.name} but this accountant's budget is under "
                f"{self.budget.relation.name}; use one relation for the fit and the accountant."
            )
        total = self._together((event,))
        if not total.within(self.budget.epsilon, self.budget.delta):
            raise BudgetExceeded(
                f"charging {event} would bring the total to epsilon "
                f"{total.epsilon(self.budget.delta):.6g} at delta {self.budget.delta:g}, over "
                f"the budget ({self.budget}). Nothing was read. Lower this release's epsilon or "
                "raise the accountant's budget."
            )
        self._events += (event,)
        return total
