"""Add up Renyi divergences at many orders at once, and bound epsilon at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.privacy.budget import Budget
from tacit.privacy.dominating import LEAST
from tacit.privacy.filters import Additive, Charge, Charges, Totals
from tacit.privacy.gaussian_profile import gaussian_epsilon, gaussian_mu
from tacit.privacy.roots import decreasing_root
from tacit.privacy.routes import renyi_of

Array = npt.NDArray[np.float64]

# Integers where sampled releases need them; dense where epsilons above 5 have their best order.
ORDERS: tuple[float, ...] = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0)
ORDERS += (16.0, 20.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 512.0, 1024.0)
# A total above this multiple of the budget's epsilon (or of 1) is far over the budget.
_FAR = 1000.0
_HALVINGS = 50


@dataclass(frozen=True)
class Odometer(Additive):
    """Adds up Renyi divergences at many orders, none chosen in advance: any events, any budget.

    With weights w_a that sum to 1 and totals s_a, the charges are (epsilon, delta)-DP if

        sup over L of (1 - e^(epsilon - L)) / sum_a w_a e^((a - 1)(L - s_a)) <= delta

    (docs/proofs/ledger.md, section 4). This costs about a fifth of the budget for Gaussian
    releases at epsilon 1. In return nobody needs to know the later releases in advance.

    Examples
    --------
    >>> from tacit.privacy import Accountant, Budget, Gaussian
    >>> from tacit.privacy.odometer import Odometer
    >>> accountant = Accountant(Budget(1.0, 1e-6), Odometer())
    >>> accountant.charge(Gaussian(8.0)) < 1.0
    True
    """

    has_limits = False

    def cost(self, charge: Charge) -> Totals:
        """Return the divergence at each order."""
        orders, total = np.array(ORDERS), np.zeros(len(ORDERS))
        for leaf, n in charge.event.leaves():
            total += n * np.maximum(renyi_of(leaf, orders), LEAST)
        return tuple(total.tolist())

    def epsilon(self, totals: Totals, delta: float) -> float:
        """Return the least epsilon that satisfies the formula."""
        if delta <= 0.0 or math.isinf(min(totals)):
            return math.inf
        target = math.log(delta)
        if _log_delta(0.0, totals) <= target:
            return 0.0
        return decreasing_root(lambda e: _log_delta(e, totals) - target, max(min(totals), 1e-3))

    def most(self, budget: Budget) -> Totals:
        """Return a scale of the totals; `fits` decides whether they are within the budget."""
        return (0.0 if budget.is_pure else _FAR * max(budget.epsilon, 1.0),) * len(ORDERS)

    def fits(self, totals: Totals, budget: Budget) -> bool:
        """Return whether the formula holds with the budget's epsilon and delta."""
        if budget.is_pure or math.isinf(min(totals)):
            return False
        return _log_delta(budget.epsilon, totals) <= math.log(budget.delta)

    def left(self, totals: Totals, budget: Budget) -> float:
        """Return the epsilon, at the budget's delta, of the largest Gaussian release that fits."""
        if budget.is_infinite:
            return math.inf
        if not self.fits(totals, budget):
            return 0.0
        orders = np.array(ORDERS)

        def with_mu(squared: float) -> Totals:
            return tuple((np.array(totals) + orders * squared / 2).tolist())

        fits, over = 0.0, 2 * gaussian_mu(budget.epsilon, budget.delta) ** 2
        for _ in range(_HALVINGS):
            middle = (fits + over) / 2
            fits, over = (middle, over) if self.fits(with_mu(middle), budget) else (fits, middle)
        return gaussian_epsilon(math.sqrt(fits), budget.delta) if fits else 0.0

    def why_infinite(self, charges: Charges, delta: float) -> str:
        """Say that there is no delta, or that the event has no divergence at any order."""
        if not delta:
            return "Odometer has no price at delta 0; make the accountant with a delta above 0"
        return (
            "the event has no finite Renyi divergence at any order of Odometer; make the "
            "accountant with SumOfEpsilons"
        )


def _log_delta(epsilon: float, totals: Totals) -> float:
    """Return the log of the supremum, rounded up.

    With x = L - epsilon the logarithm is f(x) = log(1 - e^-x) - log sum w_a e^((a-1)(L - s_a)),
    which is concave, with f'(x) = 1 / (e^x - 1) - mean(a - 1) for some weights of the orders. At
    the peak 1 / (e^x - 1) is between the least and the greatest a - 1. On [l, u] around the peak,
    f is at most f(l) + f'(l) (u - l).
    """
    sums = np.array(totals)
    told = np.isfinite(sums)
    slopes, sums = np.array(ORDERS)[told] - 1, sums[told]
    level = slopes * (epsilon - sums) - math.log(len(ORDERS))

    def at(x: float) -> tuple[float, float]:
        terms = level + slopes * x
        top = float(terms.max())
        weights = np.exp(terms - top)
        total = float(weights.sum())
        value = math.log(-math.expm1(-x)) - top - math.log(total)
        return value, 1 / math.expm1(x) - float(weights @ slopes) / total

    low, high = math.log1p(1 / slopes.max()), math.log1p(1 / slopes.min())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle)[1] > 0 else (low, middle)
    value, slope = at(low)
    return value + max(slope, 0.0) * (high - low)
