"""Convert a guarantee from ADD_REMOVE to REPLACE."""

from __future__ import annotations

import math

from tacit.privacy.budget import Budget
from tacit.privacy.gaussian_profile import gaussian_epsilon
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.relation import Relation
from tacit.privacy.roots import decreasing_root


def replace_from_add_remove(guarantee: Guarantee, delta: float) -> Budget:
    """Return the guarantee under REPLACE that follows from a guarantee under ADD_REMOVE.

    A replacement is a removal and an addition, so for any epsilon

        delta_replace(2 epsilon) <= (1 + exp(epsilon)) delta_add_remove(epsilon)

    (group privacy for two steps). For a Gaussian mechanism mu doubles, which is tighter and is used
    if all events are Gaussian. No conversion exists in the other direction: REPLACE does not
    protect the number of records.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee, replace_from_add_remove
    >>> converted = replace_from_add_remove(Guarantee(Gaussian(7.461264)), 1e-5)
    >>> round(converted.epsilon, 4)
    1.0
    """
    if guarantee.relation is not Relation.ADD_REMOVE:
        raise ValueError(
            "only an ADD_REMOVE guarantee converts to REPLACE; this one is already under "
            f"{guarantee.relation.name}. No sound conversion goes the other way."
        )
    mus = [(leaf.gaussian_mu(), n) for leaf, n in guarantee.event.leaves()]
    if all(mu is not None for mu, _ in mus):
        mu = 2 * math.sqrt(sum(n * mu**2 for mu, n in mus if mu is not None))
        # A Budget needs a positive epsilon: the least positive double stands for 0.
        return Budget(max(gaussian_epsilon(mu, delta), 5e-324), delta, Relation.REPLACE)
    if delta == 0.0:
        return Budget(2 * guarantee.epsilon(0.0), 0.0, Relation.REPLACE)

    def excess(epsilon: float) -> float:
        one_way = guarantee.delta(epsilon)
        if one_way == 0.0:
            return -math.inf
        return math.log(one_way / delta) + epsilon + math.log1p(math.exp(-epsilon))

    return Budget(2 * decreasing_root(excess, 1.0, 1e-9), delta, Relation.REPLACE)
