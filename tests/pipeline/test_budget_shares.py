"""Steps whose plans change by leaps are brought within one budget all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tacit.engine import Plan
from tacit.pipeline.budget_shares import shared_plans
from tacit.privacy import Budget, Composed, Event, Gaussian, Guarantee, PureEpsilon
from tacit.privacy.accounting.gaussian_profile import gaussian_mu

BUDGET = Budget(10.0, 1e-6)
SHARES = {"scaler": 0.2, "model": 0.8}


def gaussian_step(budget: Budget) -> Event:
    return Gaussian(1 / gaussian_mu(budget.epsilon, budget.delta))


def plans(leaps_from: float, looks: list[float]) -> Callable[[Mapping[str, Budget]], Plan]:
    """Return how all steps are planned: the model with a pure release from some epsilon on."""

    def plan_all(budgets: Mapping[str, Budget]) -> Plan:
        own = budgets["model"]
        looks.append(own.epsilon)
        pure = own.epsilon >= leaps_from
        last = PureEpsilon(own.epsilon) if pure else gaussian_step(own)
        return Plan("all", Composed((gaussian_step(budgets["scaler"]), last)), BUDGET, "")

    return plan_all


@pytest.mark.parametrize("leaps_from", [5.0, 7.0, 8.0, 8.5, 20.0])
def test_what_leaps_is_planned_within_the_budget(leaps_from: float) -> None:
    looks: list[float] = []
    plan = shared_plans(BUDGET, SHARES, plans(leaps_from, looks))
    assert Guarantee(plan.event).epsilon(1e-6) <= 10.0
    # and close to it, or to where the leap is
    assert Guarantee(plan.event).epsilon(1e-6) > 9.98 or max(looks) > leaps_from > 0.99 * looks[-1]
    assert len(looks) <= 20
