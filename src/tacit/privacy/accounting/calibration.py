"""Find the least noise within a budget, for any one-parameter family of events."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from tacit.privacy.accounting.composition import (
    GaussianRoute,
    LeakyRoute,
    LossDistributionRoute,
    RenyiRoute,
    Route,
    WorstPartRoute,
)
from tacit.privacy.accounting.gaussian_profile import gaussian_mu
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, Gaussian, NonPrivate
from tacit.privacy.guarantee import Guarantee

_TINY = 1e-300  # stands for a cost of 0, whose logarithm would be infinite


class BudgetUnreachable(ValueError):
    """No amount of noise brings this family of events within the budget."""


def calibrate(family: Callable[[float], Event], budget: Budget, *, guess: float = 1.0) -> Event:
    """Return the event of ``family`` with the least noise that stays within ``budget``.

    Parameters
    ----------
    family
        Maps a positive noise parameter (more is more private) to an event.
    budget
        The budget of the release. An infinite epsilon returns a `NonPrivate` event.
    guess
        A noise parameter to start the search from.

    Returns
    -------
    Event
        ``Guarantee(event).epsilon(budget.delta) <= budget.epsilon``, and above 0.999 of it.

    Raises
    ------
    BudgetUnreachable
        If even unbounded noise costs more than the budget.

    Examples
    --------
    >>> from tacit.privacy import Budget, Gaussian, calibrate
    >>> round(calibrate(Gaussian, Budget(1.0, 1e-5)).noise_multiplier, 6)
    3.730632
    """
    noise = least_noise(family, budget, guess=guess)
    if budget.is_infinite:
        return NonPrivate("the budget is infinite", relation=budget.relation)
    return family(noise)


def least_noise(family: Callable[[float], Event], budget: Budget, *, guess: float = 1.0) -> float:
    """Return the noise parameter of the event of `calibrate`; 0 for an infinite budget."""
    if not isinstance(budget, Budget):
        raise TypeError(f"budget must be a Budget, got {budget!r}; pass Budget(epsilon, delta).")
    first = family(guess)
    if first.relation is not budget.relation:
        raise ValueError(
            f"the family's events are under {first.relation.name} but the budget is under "
            f"{budget.relation.name}; state both under one relation."
        )
    if budget.is_infinite:
        return 0.0
    guess, spread, tolerance = _start(family, budget, guess)
    noise = decreasing_root(_excess(family, budget, _all_routes), guess, tolerance, spread)
    if math.isinf(noise):
        raise BudgetUnreachable(
            f"no amount of noise meets {budget} with {type(first).__name__}: part of its cost "
            "does not fall with noise. Raise epsilon or delta (a pure budget needs a pure "
            "mechanism), or, for objective perturbation, raise the regularization."
        )
    return noise


@lru_cache(maxsize=256)
def gaussian_multiplier(budget: Budget) -> float:
    """Return the least noise multiplier of one Gaussian release within a budget."""
    return least_noise(lambda z: Gaussian(z, budget.relation), budget)


def _start(
    family: Callable[[float], Event], budget: Budget, guess: float
) -> tuple[float, float, float]:
    """Return a starting point of the search, its relative error, and the tolerance."""
    route = Guarantee(family(guess))._routes[0]
    route = route.rest if isinstance(route, LeakyRoute) else route
    if isinstance(route, GaussianRoute) and not budget.is_pure:
        # In most families mu is proportional to 1 / noise: then this is the solution itself.
        return guess * route.mu / gaussian_mu(budget.epsilon, budget.delta), 1e-9, 1e-13
    if _convolves(route) and not budget.is_pure:
        # Each evaluation costs a convolution: start from the Renyi bound, a little above the
        # solution.
        bound = decreasing_root(_excess(family, budget, _renyi_only), guess, 1e-3)
        if math.isfinite(bound):
            return bound * 0.93, 0.08, 1e-4
        return guess, 1.0, 1e-4
    return guess, 1.0, 1e-13


def _convolves(route: Route) -> bool:
    if isinstance(route, WorstPartRoute):
        return any(_convolves(best) for best, *_ in route.parts)
    return isinstance(route, LossDistributionRoute)


def _all_routes(event: Event) -> tuple[Route, ...]:
    return Guarantee(event)._routes


def _renyi_only(event: Event) -> tuple[Route, ...]:
    return (RenyiRoute(Guarantee(event)._leaves),)


def _excess(
    family: Callable[[float], Event],
    budget: Budget,
    routes: Callable[[Event], tuple[Route, ...]],
) -> Callable[[float], float]:
    """Return log(cost / budget) as a function of noise: of epsilon if pure, else of delta."""
    # Aim slightly below the budget, so that the solver's last digit never exceeds it.
    epsilon = budget.epsilon * (1 - 1e-10)

    def of_epsilon(noise: float) -> float:
        spent = min(route.epsilon(0.0) for route in routes(family(noise)))
        return math.log(max(spent, _TINY) / epsilon)

    def of_delta(noise: float) -> float:
        spent = min(route.delta(epsilon) for route in routes(family(noise)))
        return math.log(max(spent, _TINY) / budget.delta)

    return of_epsilon if budget.is_pure else of_delta
