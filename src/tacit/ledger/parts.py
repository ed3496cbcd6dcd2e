"""Costs as whole numbers: a part is a 10^18th of what a total may reach, rounded up.

Whole numbers add up without rounding, in any order and on any machine, and an auditor reads them
at sight: 250,000,000,000,000,000 is a quarter of the budget.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.privacy.filters import ROUNDING, Totals

Parts = tuple[int, ...]

WHOLE = 10**18
# What an accountant's `ROUNDING` allows: the floats in which costs and `most` are computed.
LIMIT = WHOLE + int(WHOLE * ROUNDING)
# Stands for infinity: no finite cost comes near, and adding to it leaves it.
INFINITE = WHOLE**2


def parts_of(cost: Totals, most: Totals) -> Parts:
    """Return a cost in parts of what each total may reach, never less than it is.

    Examples
    --------
    >>> from tacit.ledger.parts import parts_of
    >>> parts_of((0.25, 0.0), (1.0, 1e-6))
    (250000000000000000, 0)
    """
    return tuple(_parts(c, m) for c, m in zip(cost, most, strict=True))


def _parts(cost: float, most: float) -> int:
    if not cost >= 0.0:
        raise ArithmeticError(f"a cost of {cost!r} bounds nothing: the event is refused.")
    if cost == 0.0:
        return 0
    if math.isinf(cost) or most == 0.0:
        return INFINITE
    return min(math.ceil(Fraction(cost) * WHOLE / Fraction(most)), INFINITE)


def added(one: Parts, other: Parts) -> Parts:
    """Return the sum."""
    return tuple([min(a + b, INFINITE) for a, b in zip(one, other, strict=True)])


def totals_of(parts: Parts, most: Totals) -> Totals:
    """Return parts as the numbers that a rule reads."""
    return tuple([_total(p, m) for p, m in zip(parts, most, strict=True)])


def _total(part: int, most: float) -> float:
    # part most / WHOLE, of which whole numbers divided by one another are the nearest float.
    above, below = most.as_integer_ratio()
    return math.inf if part >= INFINITE else part * above / (WHOLE * below)
