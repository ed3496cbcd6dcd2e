"""The accountant of a step whose price is part of what a pipeline has paid already."""

from __future__ import annotations

from tacit.privacy import AnyAccountant, Budget, Event
from tacit.privacy.filters import Filter, SumOfEpsilons


class Prepaid:
    """Accepts one event, the one that was planned and paid for, once.

    A step that would release anything else, or more than once, is stopped before it reads.

    Examples
    --------
    >>> from tacit.pipeline.prepaid import Prepaid
    >>> from tacit.privacy import Budget, Gaussian
    >>> paid = Prepaid(Gaussian(2.0), Budget(1.0, 1e-6))
    >>> paid.charge(Gaussian(2.0)), paid.is_used
    (1.0, True)
    """

    rule: Filter = SumOfEpsilons()

    def __init__(self, event: Event, budget: Budget) -> None:
        self._event, self._budget = event, budget
        self.is_used = False

    @property
    def budget(self) -> Budget:
        """The step's share."""
        return self._budget

    def __copy__(self) -> Prepaid:
        return self

    def __deepcopy__(self, memo: object) -> Prepaid:
        return self

    def charge(self, event: Event, delta: float | None = None) -> float:
        """Take note that the step makes its release now."""
        self.check(event, delta)
        self.is_used = True
        return self.spent()

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise unless ``event`` is what was paid for and has not been made yet."""
        if self.is_used or event != self._event:
            raise RuntimeError(
                f"a step of a pipeline is about to release {event}, and what was paid for it is "
                f"{'used up' if self.is_used else self._event}. This is a bug in the step; please "
                "report it as SECURITY.md says."
            )

    def spent(self) -> float:
        """Return the share, once it is used."""
        return self._budget.epsilon if self.is_used else 0.0

    def remaining(self) -> float:
        """Return the share, until it is used."""
        return 0.0 if self.is_used else self._budget.epsilon


_: type[AnyAccountant] = Prepaid
