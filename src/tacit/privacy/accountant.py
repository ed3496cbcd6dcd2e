"""Share one budget between several releases, and refuse a release that would exceed it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, NoReturn, Protocol, runtime_checkable

from tacit import checks
from tacit.privacy.budget import Budget, Relation
from tacit.privacy.events import Composed, Event
from tacit.privacy.filters import (
    ROUNDING,
    Additive,
    Charge,
    Charges,
    Filter,
    Odometer,
    default_rule,
)
from tacit.privacy.fork import generation
from tacit.privacy.guarantee import Guarantee


class BudgetExceeded(RuntimeError):
    """A release was refused because it would exceed the budget; nothing was released."""


class CannotCharge(ValueError):
    """A release was refused because its accountant cannot book it; nothing was released."""


@runtime_checkable
class AnyAccountant(Protocol):
    """Interface of an accountant, which a release charges: `Accountant`, or a ledger on disk."""

    @property
    def budget(self) -> Budget:
        """The budget for all charges together; fixed for life."""

    @property
    def rule(self) -> Filter:
        """The composition rule; fixed for life."""

    def charge(self, event: Event, delta: float | None = None) -> float:
        """Book ``event`` and return the epsilon spent in all, or raise and book nothing.

        A ledger returns a `tacit.privacy.guarantee.Booked`, which also names the entry.
        """

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise if charging ``event`` would exceed the budget; book nothing either way."""

    def spent(self) -> float:
        """Return the epsilon spent so far, at the budget's delta."""

    def remaining(self) -> float:
        """Return the epsilon of the largest release that would still be accepted."""


class Accountant:
    """Budget in the memory of one process: adds up charges, and refuses those that exceed it.

    Charge an event *before* the data are read: a crash then leaves the budget spent.

    Parameters
    ----------
    budget
        The budget for all charges together.
    rule
        The composition rule; fixed for life. `SumOrGaussian` by default, and `SumOfEpsilons` for a
        pure or infinite budget.

    Notes
    -----
    **Guarantee**

    1. All accepted releases together are within the budget by the rule, for any number of threads.
    2. An accountant is never duplicated: `copy`, `deepcopy` and scikit-learn's ``clone`` return the
    accountant itself. Pickling it is refused, and so is any use in a forked process.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian, GaussianSum
    >>> accountant = Accountant(Budget(1.0, 1e-5), GaussianSum())
    >>> accountant.charge(Gaussian(6.0)) < 1.0
    True
    >>> accountant.charge(Gaussian(4.0))
    Traceback (most recent call last):
        ...
    tacit.privacy.accountant.BudgetExceeded: ...
    """

    def __init__(self, budget: Budget, rule: Filter | None = None) -> None:
        if not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget, got {budget!r}.")
        if isinstance(rule, type) or not (rule is None or hasattr(rule, "remaining")):
            raise TypeError(
                f"rule must be a composition rule, got {rule!r}; pass SumOrGaussian(budget), "
                "SumOfEpsilons(), GaussianSum(), RenyiSum(...) or Odometer(...) of tacit.privacy, "
                "or None."
            )
        self._budget = budget
        self._rule: Filter = default_rule(budget) if rule is None else rule
        self._charges: Charges = ()
        self._lock = threading.Lock()
        self._generation = generation()

    @property
    def budget(self) -> Budget:
        """The budget for all charges together."""
        return self._budget

    @property
    def rule(self) -> Filter:
        """The composition rule."""
        return self._rule

    def __copy__(self) -> Accountant:
        return self

    def __deepcopy__(self, memo: object) -> Accountant:
        # A budget is shared, never duplicated: clones of an estimator spend the same one.
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Accountant cannot be pickled: the copy could spend the same budget again, unseen. "
            "It lives in one process; several share a tacit.ledger.Ledger. Or fit in one process "
            "(n_jobs=1, or joblib's threading backend), and keep a model with tacit.save, or take "
            "its accountant out with model.set_params(accountant=None)."
        )

    def __repr__(self) -> str:
        if self._generation != generation():
            return f"Accountant({self.budget}, of another process)"
        n = len(self._charges)
        return (
            f"Accountant({self.budget}, by {type(self.rule).__name__}: spent {self.spent():g} on "
            f"{n} release{'' if n == 1 else 's'}, {self.remaining():g} left)"
        )

    @property
    def events(self) -> tuple[Event, ...]:
        """The events charged so far, oldest first."""
        return tuple(charge.event for charge in self._booked())

    def spent(self) -> float:
        """Return the epsilon spent so far, at the budget's delta."""
        charges = self._booked()
        return self.rule.spent(charges, self.budget.delta) if charges else 0.0

    def remaining(self) -> float:
        """Return the epsilon of the largest release that would still be accepted.

        It is stated at the budget's delta; under `SumOfEpsilons`, at the rest of that delta.
        """
        return self.rule.remaining(self._booked(), self.budget)

    def planning_delta(self, delta: float) -> float:
        """Return the delta with which a fit that asks for ``delta`` is planned and charged."""
        rule = self.rule
        return rule.planning_delta(delta) if isinstance(rule, Additive) else delta

    def guarantee(self) -> Guarantee | None:
        """Return the guarantee of the charged events, as if they had been fixed in advance.

        Its assumptions say so. Its notes give what holds for events that were chosen in view of
        earlier outputs: the budget. An `Odometer`, and a pure budget, promise what was spent.
        """
        charges = self._booked()
        if not charges:
            return None
        spent = self.rule.spent(charges, self.budget.delta)
        spent = math.ceil(spent * 1e4) / 1e4 if math.isfinite(spent) else spent
        # A filter promises the budget that was fixed in advance: what is spent when the analyst
        # stops may depend on outputs.
        is_running = isinstance(self.rule, Odometer) or self.budget.is_pure
        most = spent if is_running else self.budget.epsilon
        return Guarantee(
            Composed(tuple(charge.event for charge in charges)),
            self.budget.delta,
            ("the list of releases was fixed before the first of them was seen",),
            (
                "However the releases were chosen, they cost together at most epsilon = "
                f"{most:.4f} and delta = {self.budget.delta:g} by {type(self.rule).__name__}"
                + ("." if is_running else f"; {spent:.4f} of it is spent."),
            ),
        )

    def charge(self, event: Event, delta: float | None = None) -> float:
        """Book ``event`` and return the epsilon spent in all, or raise and book nothing.

        Parameters
        ----------
        event
            The event of the planned release.
        delta
            The part of the budget's delta at which `SumOfEpsilons` counts the event. By default
            0 for a pure event, and a tenth of the budget's delta for others.
        """
        # Check before taking the lock: in a forked process a missing thread may hold it for ever.
        self._refuse_forked()
        with self._lock:
            charges, total = self._with(event, delta)
            self._charges = charges
        return total

    def check(self, event: Event, delta: float | None = None) -> None:
        """Raise if charging ``event`` would exceed the budget; book nothing either way."""
        self._refuse_forked()
        self._with(event, delta)

    def _booked(self) -> Charges:
        self._refuse_forked()
        return self._charges

    def _refuse_forked(self) -> None:
        if self._generation != generation():
            raise RuntimeError(
                "this Accountant was made in the process that this one was forked from, which "
                "would not see charges made here. An Accountant lives in one process; several "
                "share a tacit.ledger.Ledger. Or make the releases in the process that made the "
                "accountant."
            )

    def _with(self, event: Event, delta: float | None) -> tuple[Charges, float]:
        charges = (*self._charges, charge_of(event, delta, self.budget))
        total = self.rule.spent(charges, self.budget.delta)
        if not total <= self.budget.epsilon * (1 + ROUNDING):
            why = self.rule.why_infinite(charges, self.budget.delta) if math.isinf(total) else ""
            over, left = _in_words(self.rule, charges, total, self.budget)
            raise BudgetExceeded(refusal(charges[-1], self.budget, over, left, _REMEDIES, why))
        return charges, total


def _in_words(rule: Filter, charges: Charges, total: float, budget: Budget) -> tuple[str, str]:
    """Return by how much charges are over a budget, and what would be accepted in their place."""
    if isinstance(rule, Additive):
        before = charges[:-1]
        nothing = (0.0,) * len(rule.most(budget))
        left = rule.accepts((rule.totals(before) if before else nothing, budget))
        return rule.over(rule.totals(charges), budget), left
    return f"would bring the total to epsilon {total:.6g}, over the budget ({budget})", ""


def charge_of(event: Event, delta: float | None, budget: Budget) -> Charge:
    """Return an event with the delta at which it is charged; raise if relations differ."""
    if not isinstance(event, Event):
        raise TypeError(
            f"event must be an event, got {type(event).__name__}; pass one of "
            "tacit.privacy, such as PureEpsilon(0.5) or Gaussian(noise_multiplier). Nothing was "
            "charged."
        )
    if event.relation is not budget.relation:
        requested, held = event.relation.value, budget.relation.value
        if event.relation.by_person is not budget.relation.by_person:
            raise CannotCharge(_wrong_unit(event.relation))
        raise CannotCharge(
            f"the release is under the relation {requested}, but the budget is kept under {held}, "
            "and guarantees under different relations do not add up. Nothing was released. Keep "
            f"one budget of each: a ledger made by tacit ledger create --relation {requested}, or "
            f"an accountant of Budget(..., relation=Relation.{event.relation.name})."
        )
    if delta is None:
        pure = math.isfinite(Guarantee(event).epsilon(0.0))
        delta = 0.0 if pure else budget.delta / 10
    return Charge(event, checks.delta(delta))


def _wrong_unit(requested: Relation) -> str:
    """Return the refusal of a release whose unit is a person and the budget's a record, or not."""
    new = (
        f"a ledger made by tacit ledger create --relation {requested.value}, or an accountant of "
        f"Budget(..., relation=Relation.{requested.name})"
    )
    if requested.by_person:
        return (
            "the release has a unit: it protects a person with all their records, and the budget "
            "protects single records; such guarantees do not add up. Nothing was released. Leave "
            f"the unit out, or keep another budget for people: {new}."
        )
    return (
        "the release has no unit: it protects single records, and the budget protects people with "
        "all their records; such guarantees do not add up. Nothing was released. Name the unit, "
        f"the column with the person of each record, or keep another budget for records: {new}."
    )


def planning_budget(budget: Budget, accountant: object) -> Budget:
    """Return the budget with which a fit is planned that an accountant pays for.

    Some rules take whatever adds up to their budget only if fits are planned at less than the delta
    they ask for. Statements quote the delta that was asked for.
    """
    planning_delta: Callable[[float], float] | None = getattr(accountant, "planning_delta", None)
    if (
        planning_delta is None
        or budget.is_pure
        or budget.is_infinite
        or budget.requested_delta is not None
    ):
        return budget
    delta = planning_delta(budget.delta)
    return (
        budget
        if delta == budget.delta
        else replace(budget, delta=delta, requested_delta=budget.delta)
    )


class Remedies(NamedTuple):
    """Advice for a refused charge, which depends on the kind of accountant."""

    no_guarantee: str
    overspent: str


_REMEDIES = Remedies(
    "Leave random_state out and choose a finite epsilon, or try things out with "
    "Accountant(Budget(math.inf)).",
    "Lower this release's epsilon or delta, or take an accountant with a larger budget.",
)


def refusal(
    charge: Charge,
    budget: Budget,
    over: str,
    left: str,
    remedies: Remedies,
    why: str = "",
) -> str:
    """Return why a charge is refused, and what to do.

    ``over`` says by how much it would be over the budget, ``left`` what would be accepted instead,
    and ``why``, where no total is finite, what the rule cannot price.
    """
    void = Guarantee(charge.event).voided_by
    if void:
        return (
            f"the release would carry no guarantee ({'; '.join(void)}), and no finite budget "
            f"({budget}) pays for that. Nothing was released. {remedies.no_guarantee}"
        )
    alone = Guarantee(charge.event).epsilon(charge.delta)
    planning_delta = f"a release of epsilon {alone:.4g} at delta {charge.delta:g}"
    if why:
        return f"{planning_delta} is refused: {why}. Nothing was released. The budget is {budget}."
    return f"{planning_delta} {over}. Nothing was released. {left} {remedies.overspent}"
