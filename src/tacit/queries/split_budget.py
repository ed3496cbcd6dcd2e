"""One budget for several questions: which noise each of them gets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from tacit.privacy import Budget
from tacit.privacy.calibration import gaussian_multiplier
from tacit.queries.noisy_sum import GaussianNoise, Noise, SphereNoise

# More than the roundings of a share, a root and a quotient.
_UP = 1 + 2.0**-50


def split_budget(budget: Budget, shares: Mapping[str, float | None]) -> dict[str, Noise]:
    """Return the noise of each part of a budget.

    Gaussian noise of multipliers z_i costs what one of multiplier z does, if 1 / z^2 is the sum of
    the 1 / z_i^2 (docs/proofs/events.md, section 3): a share s of it is z_i = z / sqrt(s). Pure
    epsilons add up: a share s is s epsilon.

    Parameters
    ----------
    budget
        Finite; with a delta the noise is Gaussian, without on a sphere.
    shares
        By name: what part of mu^2, or of epsilon. One may be None and gets what is left. Parts of
        share 0 are left out.

    Returns
    -------
    dict
        By name, in the order of ``shares``.

    Notes
    -----
    **Guarantee**. The events of all parts together cost no more than the budget: multipliers are
    rounded up, and the rest is what the others left of epsilon, rounded down.

    Examples
    --------
    >>> from tacit.privacy import Budget
    >>> from tacit.queries import split_budget
    >>> split_budget(Budget(1.0), {"count": 0.25, "sum": None})
    {'count': SphereNoise(epsilon=0.25), 'sum': SphereNoise(epsilon=0.75)}
    """
    given = {name: share for name, share in shares.items() if share is not None}
    missing = [name for name, share in shares.items() if share is None]
    left = 1.0 - math.fsum(given.values())
    if len(missing) > 1 or any(share < 0.0 for share in given.values()):
        raise ValueError(f"shares must be 0 or more, and one may be None, got {dict(shares)}.")
    if left < 0.0 or (missing and left <= 0.0):
        raise ValueError(
            f"the shares {given} are together more than the budget; lower them, so that "
            f"something is left{' for ' + missing[0] if missing else ''}."
        )
    if budget.is_infinite:
        raise ValueError("an infinite budget has no noise to divide; pass a finite epsilon.")
    used = {name: left if share is None else share for name, share in shares.items()}
    used = {name: share for name, share in used.items() if share > 0.0}
    if budget.is_pure:
        epsilons = _epsilons(budget.epsilon, used, missing)
        return {name: SphereNoise(epsilon) for name, epsilon in epsilons.items()}
    z = gaussian_multiplier(budget)
    return {
        name: GaussianNoise(z if share == 1.0 else z / math.sqrt(share) * _UP)
        for name, share in used.items()
    }


def _epsilons(epsilon: float, used: Mapping[str, float], missing: list[str]) -> dict[str, float]:
    """Return parts of epsilon whose sum, in real numbers, is no more than epsilon."""
    parts = {name: share * epsilon for name, share in used.items()}
    for name in missing:
        others = sum(Fraction(value) for other, value in parts.items() if other != name)
        rest = Fraction(epsilon) - others
        parts[name] = float(rest)
        if Fraction(parts[name]) > rest:
            parts[name] = math.nextafter(parts[name], 0.0)
    return parts
