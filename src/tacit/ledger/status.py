"""Summarise a ledger for people: epsilon spent, epsilon left, and how many releases still fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tacit.ledger.ledger import Ledger
from tacit.ledger.state import Parts, State, Terms, added
from tacit.ledger.store import Content
from tacit.privacy import Gaussian, PureEpsilon, SumOfEpsilons, SumOrGaussian
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
from tacit.privacy.filters import Charge
from tacit.privacy.guarantee import Booking

# Sizes of the releases that are counted, as shares of the budget's epsilon.
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# Upper end of the search: counts above a million are reported as a million.
_MOST = 10**6


@dataclass(frozen=True)
class Account:
    """Epsilon that one analyst or one partition has spent and has left.

    ``left`` is ``cap``, or the budget's epsilon, less ``spent``, and never more than what the whole
    ledger has left. ``largest`` is the epsilon of the largest release that would be accepted, which
    may be more: noise adds up more slowly than epsilons.
    """

    name: str
    spent: float
    left: float
    largest: float
    cap: float | None = None


@dataclass(frozen=True)
class LedgerStatus:
    """Summary of a ledger at its head.

    ``spent`` and ``left`` add up to the budget's epsilon, and ``share`` is the part that is spent.
    ``largest`` is the epsilon of the largest release that would be accepted, and ``accepts`` says
    of which kind. ``buys`` has numbers of Gaussian releases.
    """

    terms: Terms
    head: Booking
    spent: float
    left: float
    largest: float
    accepts: str
    share: float
    buys: tuple[tuple[float, int], ...]
    analysts: tuple[Account, ...]
    partitions: tuple[Account, ...]


def status(ledger: Ledger) -> LedgerStatus:
    """Return the summary of a ledger.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.ledger import Ledger, status
    >>> from tacit.privacy import Budget, PureEpsilon
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(pathlib.Path(folder) / "a.ledger", Budget(1.0))
    ...     paid = ledger.charge(PureEpsilon(0.75))
    ...     status(ledger).buys
    ((0.01, 25), (0.02, 12), (0.05, 5), (0.1, 2), (0.2, 1), (0.5, 0), (1.0, 0))
    """
    state, terms = ledger.state(), ledger.terms
    most, spent = terms.budget.epsilon, state.spent(terms)
    left = max(most - spent, 0.0)

    def account(name: str, own: float, largest: float, cap: float | None, bound: float) -> Account:
        own_left = max((most if cap is None else cap) - own, 0.0)
        return Account(name, own, min(own_left, bound), largest, cap)

    analysts = (
        account(name, terms.spent(share.spent), state.left(terms, None, name), share.epsilon, left)
        for name, share in state.analysts.items()
    )
    partitions = (
        account(
            name,
            max(map(terms.spent, state.exposures(name))),
            state.left(terms, name, None),
            None,
            most,
        )
        for name in state.partitions
    )
    return LedgerStatus(
        terms,
        ledger.head,
        spent,
        left,
        state.left(terms, None, None),
        terms.accepts(*((exposure, None) for exposure in state.exposures())),
        share_spent(state, terms),
        tuple((e, _number(state, terms, e)) for e in (s * terms.budget.epsilon for s in _SHARES)),
        tuple(analysts),
        tuple(partitions),
    )


def share_spent(state: State, terms: Terms) -> float:
    """Return how much of the budget's epsilon is gone, from 0 to 1."""
    return state.spent(terms) / terms.budget.epsilon


def history(entries: Iterable[Content]) -> Iterator[tuple[Content, State]]:
    """Yield each entry with the state after it."""
    state = State()
    for content in entries:
        state = state.after(content)
        yield content, state


def _number(state: State, terms: Terms, epsilon: float) -> int:
    """Return how many releases of an epsilon still fit on the whole of the data."""
    release = _release(terms, epsilon)
    cost = terms.price(release)
    first = (terms.first_price(release) if state.is_untouched else None) or cost
    worst = max(state.exposures(), key=terms.spent)

    def fits(n: int) -> bool:
        return terms.fits(added(added(worst, first), _times(cost, n - 1)))

    low, high = 0, _MOST + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _times(cost: Parts, n: int) -> Parts:
    return tuple(n * part for part in cost)


def _release(terms: Terms, epsilon: float) -> Charge:
    """Return a release calibrated to an epsilon: Gaussian, or pure for a pure budget."""
    budget = terms.budget
    if budget.is_pure:
        return Charge(PureEpsilon(epsilon, relation=budget.relation), 0.0)
    # Of the sum's deltas each release takes a tenth, as `charge` does unless it is told; elsewhere
    # its share of delta is that of epsilon, as in a sum that spends the budget to the last.
    delta = budget.delta * (
        0.1 if isinstance(terms.rule, SumOfEpsilons) else terms.rule.planning_delta(1.0)
    )
    if isinstance(terms.rule, SumOrGaussian):
        delta *= epsilon / budget.epsilon
    event = Gaussian(1 / gaussian_mu(epsilon, delta), relation=budget.relation)
    return Charge(event, delta)
