"""Give a nested fit an accountant whose price was already charged.

A step of a pipeline or a trial of a search may be a third-party class, whose ``fit`` charges an
accountant and opens records itself. `Session.fit` gives it an accountant that draws from a slot.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tacit.privacy import AnyAccountant, Budget, Event, Guarantee
from tacit.privacy.filters import Filter, SumOfEpsilons
from tacit.table_facts import EncodedTable, TableFacts

_REMEDY = (
    "Nothing of it is released. A class with a fit of its own must call super().fit(...), or "
    "release by tacit.engine.release(plan, work, accountant=self.accountant), with the plan that "
    "its method plan returns, and keep the guarantee that this returns as privacy_."
)


class Prepaid:
    """An accountant that accepts one planned and charged event, once.

    A pipeline and a search charge the whole plan before any record is read. Each step and each
    trial then draws from its slot, and `fit` checks that it released what was charged.

    Parameters
    ----------
    event
        The planned event, charged by the caller.
    budget
        The share of the budget for which the event was planned.
    who
        The name of the fitted object for error messages, which add its class.
    take
        A function that takes the event from its slot, or raises.

    Examples
    --------
    >>> from tacit.privacy import Budget, Gaussian
    >>> from tacit.queries.prepaid import Prepaid
    >>> paid = Prepaid(Gaussian(2.0), Budget(1.0, 1e-6), "a step", lambda: None)
    >>> paid.charge(Gaussian(2.0)), paid.is_used
    (1.0, True)
    """

    rule: Filter = SumOfEpsilons()

    def __init__(self, event: Event, budget: Budget, who: str, take: Callable[[], None]) -> None:
        self._event, self._budget, self._who, self._take = event, budget, who, take
        self.is_used = False
        self._has_refused = False

    @property
    def budget(self) -> Budget:
        """The budget share of the step."""
        return self._budget

    def __copy__(self) -> Prepaid:
        return self

    def __deepcopy__(self, memo: object) -> Prepaid:
        return self

    def fit(self, estimator: Any, table: Any, unit: Any = None) -> Any:
        """Fit an estimator within the charged event, and return it without its accountant.

        Raises
        ------
        RuntimeError
            If the fit reads the table before its charge, charges another event than the charged
            one, or charges it twice; or if its ``privacy_`` is not about that event. A fit that
            continues after a refused charge is refused too.
        """
        self._who = f"{self._who} ({type(estimator).__name__})"
        estimator.set_params(accountant=self)
        if isinstance(table, EncodedTable):
            table = self._unread_until_charged(table)
        estimator.fit(table, None, **({} if unit is None else {"unit": unit}))
        self._check_settled(getattr(estimator, "privacy_", None))
        estimator.set_params(accountant=None)
        return estimator

    def _unread_until_charged(self, table: EncodedTable) -> EncodedTable:
        """Return a table that cannot be read before the charge.

        An error before the charge is then equal for all records, and may be shown.
        """

        def read() -> Any:
            return table.read() if self.is_used else self.refuse_records()

        return replace(table, read=read)

    def refuse_records(self) -> Any:
        """Raise, since the fit reads records that it has not charged."""
        raise RuntimeError(
            f"{self._who} reads the records without a charge to its accountant. {_REMEDY}"
        )

    def refuse_without_charge(self) -> None:
        """Raise, since the fit has charged nothing."""
        raise RuntimeError(f"{self._who} was fitted without a charge to its accountant. {_REMEDY}")

    def _check_settled(self, promise: Any) -> None:
        if not self.is_used:
            self.refuse_without_charge()
        if self._has_refused:
            raise RuntimeError(
                f"{self._who} went on after its accountant had refused a charge. {_REMEDY}"
            )
        if not isinstance(promise, Guarantee) or promise.event != self._event:
            raise RuntimeError(
                f"{self._who} has no privacy_ about {self._event}, which it was charged. {_REMEDY}"
            )

    def charge(self, event: Event, delta: float | None = None) -> float:
        """Record that the step makes its release now."""
        try:
            self.check(event, delta)
            self._take()
        except RuntimeError:
            self._has_refused = True
            raise
        self.is_used = True
        return self.spent()

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise unless ``event`` is the charged event and was not released yet."""
        if self.is_used or event != self._event:
            raise RuntimeError(
                f"{self._who} is about to release {event}, and what was paid for it is "
                f"{'used up' if self.is_used else self._event}. {_REMEDY}"
            )

    def spent(self) -> float:
        """Return the epsilon of the share once it is used, else 0."""
        return self._budget.epsilon if self.is_used else 0.0

    def remaining(self) -> float:
        """Return the epsilon of the share until it is used, then 0."""
        return 0.0 if self.is_used else self._budget.epsilon


_: type[AnyAccountant] = Prepaid


class _Charged(Exception):
    """Raised in place of a charge."""


def rehearse(
    estimator: Any, facts: TableFacts, event: Event, budget: Budget, who: str, *, weighted: bool
) -> None:
    """Run a fit up to its charge, without a record, so that what it refuses costs nothing.

    Parameters
    ----------
    estimator
        An estimator of any author, with its share of the budget; it stays unfitted.
    facts
        The public facts of its table.
    event
        The planned event.
    budget
        The share of the budget for which the event was planned.
    who
        The name of the fitted object for error messages, which add its class.
    weighted
        Whether the records have weights.

    Raises
    ------
    Exception
        What the fit raises before its charge; no record is there to be read, so that the error is
        the same for all data. A RuntimeError if it would charge another event, or nothing.
    """
    charges = 0

    def charged() -> None:
        nonlocal charges
        charges += 1
        raise _Charged

    accountant = Prepaid(event, budget, f"{who} ({type(estimator).__name__})", charged)
    estimator.set_params(accountant=accountant)
    nobody = EncodedTable(facts, accountant.refuse_records, named=[] if facts.of_people else None)
    if weighted:
        nobody = replace(nobody, weigh=accountant.refuse_records)
    with warnings.catch_warnings(), contextlib.suppress(_Charged):
        warnings.simplefilter("ignore")  # the fit itself warns
        estimator.fit(nobody, None)
    if not charges:
        accountant.refuse_without_charge()
