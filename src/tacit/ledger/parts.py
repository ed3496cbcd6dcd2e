"""Count costs in whole parts: one part is 10^-18 of the most that a total may be, rounded up.

Integers add up without rounding, in any order and on any machine, and an auditor can read them:
250,000,000,000,000,000 parts are a quarter of the budget.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.privacy.filters import ROUNDING, Totals

Parts = tuple[int, ...]

WHOLE = 10**18
# The tolerance `ROUNDING` of an accountant, in parts: costs and `most` are computed in floats.
LIMIT = WHOLE + int(WHOLE * ROUNDING)
# Stands for infinity: larger than any finite cost, and `added` never exceeds it.
INFINITE = WHOLE**2


def parts_of(cost: Totals, most: Totals) -> Parts:
    """Return a cost in parts of the most that each total may be, rounded up.

    Examples
    --------
    >>> from tacit.ledger.parts import parts_of
    >>> parts_of((0.25, 0.0), (1.0, 1e-6))
    (250000000000000000, 0)
    """
    return tuple(_parts(c, m) for c, m in zip(cost, most, strict=True))


def _parts(cost: float, most: float) -> int:
    if not cost >= 0.0:  # NaN or negative
        raise ArithmeticError(f"a cost of {cost!r} is no bound, so the event is refused.")
    if cost == 0.0:
        return 0
    if math.isinf(cost) or most == 0.0:
        return INFINITE
    return min(math.ceil(Fraction(cost) * WHOLE / Fraction(most)), INFINITE)


def added(one: Parts, other: Parts) -> Parts:
    """Return the sum of two costs, at most `INFINITE` in each total."""
    return tuple([min(a + b, INFINITE) for a, b in zip(one, other, strict=True)])


def totals_of(parts: Parts, most: Totals) -> Totals:
    """Return parts as the floats that a rule computes with."""
    return tuple([_total(p, m) for p, m in zip(parts, most, strict=True)])


def _total(part: int, most: float) -> float:
    # part * most / WHOLE. Python divides two integers to the nearest float, so compute it exactly.
    above, below = most.as_integer_ratio()
    return math.inf if part >= INFINITE else part * above / (WHOLE * below)
