"""Split one budget among steps, and fit a step from its share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tacit.engine import Planned
from tacit.privacy import Budget, BudgetUnreachable, Gaussian, Guarantee
from tacit.queries.noise import split_epsilon, split_gaussian

T = TypeVar("T", bound=Planned)

# Default share of a step before the estimator, and the largest total of all such steps. A tenth
# of mu^2 increases the estimator's noise by a twentieth.
ONE_STEP = 0.1
ALL_STEPS = 0.3

_CLOSE = 1e-3  # share of epsilon that may remain unspent
_MOST_LOOKS = 20


def default_shares(names: Sequence[str]) -> dict[str, float]:
    """Return the default share of each private step; the last is the estimator.

    Examples
    --------
    >>> from tacit.pipeline.budget_shares import default_shares
    >>> default_shares(["bounds", "model"])
    {'bounds': 0.1, 'model': 0.9}
    """
    *before, last = names
    each = min(ONE_STEP, ALL_STEPS / len(before)) if before else 0.0
    return {**dict.fromkeys(before, each), last: 1.0 - each * len(before)}


def checked_shares(shares: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    """Check the shares of private steps; the estimator gets the rest unless given."""
    if shares is None:
        return default_shares(names)
    *before, last = names
    strangers = sorted(set(shares) - set(names))
    if strangers:
        raise ValueError(
            f"shares names {strangers[0]!r}, which is not a step with a budget; those are "
            f"{', '.join(map(repr, names))}."
        )
    given = {name: float(shares.get(name, default_shares(names)[name])) for name in before}
    given[last] = float(shares.get(last, 1.0 - sum(given.values())))
    for name, share in given.items():
        if not 0.0 < share <= 1.0:
            raise ValueError(f"shares[{name!r}] must be in (0, 1], got {share!r}.")
    total = sum(given.values())
    if total > 1.0 + 1e-9:
        raise ValueError(f"shares add up to {total:g}, more than the whole budget; lower some.")
    return {name: share / max(total, 1.0) for name, share in given.items()}


def shared_plans(
    budget: Budget,
    shares: Mapping[str, float],
    plan_all: Callable[[Mapping[str, Budget]], T],
) -> T:
    """Plan all steps so that together they cost at most ``budget``, and nearly that.

    For a pure budget, shares are of epsilon. Otherwise they are of mu^2, and delta is divided
    in the same proportions:

        mu_i = t sqrt(share_i) mu(epsilon, delta),  epsilon_i = that of mu_i at delta_i

    With Gaussian events t = 1 is exact. Other events are composed as they are, and t is increased
    until their total meets the budget from below. If the plan changes at some t, the cost jumps
    there, and the plan just below is taken.
    """
    if budget.is_pure:
        return plan_all({name: _part(budget, share) for name, share in shares.items()})
    scale, low, high = 1.0, 0.0, math.inf
    within: T | None = None
    for _ in range(_MOST_LOOKS):
        plan = plan_all({name: _part(budget, share, scale) for name, share in shares.items()})
        spent = Guarantee(plan.event).epsilon(budget.delta)
        if not 0.0 < spent < math.inf:
            break
        if spent <= budget.epsilon:
            within, low = plan, scale
        else:
            high = scale
        if within is plan and (
            spent >= (1 - _CLOSE) * budget.epsilon or high <= low * (1 + _CLOSE)
        ):
            return plan
        # Aim at the middle of the tolerance; epsilon is about proportional to mu.
        scale *= (1 - _CLOSE / 2) * budget.epsilon / spent
        if not low < scale < high:
            scale = math.sqrt(low * high)
    if within is not None:
        return within
    raise BudgetUnreachable(
        f"the steps together cannot be brought within {budget}; change their shares, or remove a "
        "step."
    )


def _part(budget: Budget, share: float, scale: float = 1.0) -> Budget:
    """Return a share of a budget: of epsilon, or of delta and, ``scale`` times, of mu."""
    if budget.is_pure:
        # Floats such as 0.1 and 0.9 may add up to slightly more than 1.
        epsilon = split_epsilon(budget.epsilon, {"part": share * (1 - 2.0**-50)})["part"]
        return Budget(epsilon, 0.0, budget.relation)
    noise, delta = split_gaussian(budget, {"part": share})["part"], budget.delta * share
    part = Guarantee(Gaussian(noise.multiplier / scale, budget.relation))
    return Budget(min(part.epsilon(delta), budget.epsilon), delta, budget.relation)
