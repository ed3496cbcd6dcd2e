"""Split one budget among several queries, and return the noise of each.

Shares are of epsilon for a pure budget, else of mu^2. They are computed as exact fractions, and
every result is rounded towards more noise: the parts cost no more than the whole in exact
arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from tacit.privacy import Budget, Composed, Event
from tacit.privacy.accounting.calibration import gaussian_multiplier, least_noise
from tacit.queries.noisy_sum import GaussianNoise, Noise, SphereNoise

# Shares such as ten times 0.1 may add up to slightly more than 1: all are scaled down equally.
_ROUNDED = 1e-9

Shares = Mapping[str, float | None]


def split_budget(budget: Budget, shares: Shares) -> dict[str, Noise]:
    """Return the noise of each part of a budget.

    Gaussian noises of multipliers z_i cost as much as one of multiplier z if 1 / z^2 is the sum of
    the 1 / z_i^2: a share s gets z_i = z / sqrt(s). Pure epsilons add up: a share s gets s epsilon.

    Parameters
    ----------
    budget
        A finite budget; with a delta the noise is Gaussian, without it sphere noise.
    shares
        Shares of mu^2, or of epsilon, by name. One may be None and gets the rest. Parts of share 0
        are left out.

    Returns
    -------
    dict
        The noise by name, in the order of ``shares``.

    Notes
    -----
    **Guarantee** (docs/proofs/events.md, section 3). The events of all parts together cost no more
    than the budget, in exact arithmetic: epsilons are rounded down and multipliers up, from
    fractions.

    Examples
    --------
    >>> from tacit.privacy import Budget
    >>> from tacit.queries import split_budget
    >>> split_budget(Budget(1.0), {"count": 0.25, "sum": None})
    {'count': SphereNoise(epsilon=0.25), 'sum': SphereNoise(epsilon=0.75)}
    """
    if budget.is_pure:
        epsilons = split_epsilon(budget.epsilon, shares)
        return {name: SphereNoise(epsilon) for name, epsilon in epsilons.items()}
    return dict(split_gaussian(budget, shares))


def split_gaussian(budget: Budget, shares: Shares) -> dict[str, GaussianNoise]:
    """Split a budget with a delta, like `split_budget`.

    Each multiplier is the least double z_i with s_i z_i^2 >= z^2, so that the 1 / z_i^2 add up to
    at most 1 / z^2.
    """
    parts, z = _fractions(shares), Fraction(_finite(gaussian_multiplier(budget)))
    return {name: GaussianNoise(_root_above(z**2 / share)) for name, share in parts.items()}


def split_epsilon(epsilon: float, shares: Shares) -> dict[str, float]:
    """Return parts of a pure epsilon, for any noise: each s_i epsilon, rounded down."""
    whole = Fraction(_finite(epsilon))
    parts = {name: share * whole for name, share in _fractions(shares).items()}
    return {name: _below(part) for name, part in parts.items()}


def gaussian_rest(
    whole: GaussianNoise, others: Iterable[GaussianNoise] = (), *, times: int = 1
) -> GaussianNoise:
    """Return the noise of each of several releases that fit into one, beside other queries.

        times / rest^2 <= 1 / whole^2 - sum of 1 / asked^2,   exactly, and nearly equal

    Examples
    --------
    >>> from tacit.queries import GaussianNoise
    >>> from tacit.queries.split_budget import gaussian_rest
    >>> gaussian_rest(GaussianNoise(3.0), times=4)
    GaussianNoise(multiplier=6.0)
    """
    left = 1 / Fraction(whole.multiplier) ** 2
    left -= sum(1 / Fraction(noise.multiplier) ** 2 for noise in others)
    if left <= 0:
        raise ValueError(f"nothing is left of {whole}; ask less, or with more noise.")
    return GaussianNoise(_root_above(times / left))


def least_rest(
    family: Callable[[float], Event], budget: Budget, parts: Iterable[Event], *, guess: float
) -> float:
    """Return the least noise of a release that fits into a budget beside its parts.

    ``family`` maps noise to the event of the release. The events are composed exactly, which may
    leave more than a share would. `tacit.privacy.calibrate` has the guarantee.
    """
    given = tuple(parts)
    return least_noise(lambda noise: Composed((family(noise), *given)), budget, guess=guess)


def _fractions(shares: Shares) -> dict[str, Fraction]:
    """Return the shares above 0 as exact fractions that sum to at most 1; None gets the rest."""
    given = {name: Fraction(share) for name, share in shares.items() if share is not None}
    missing = [name for name, share in shares.items() if share is None]
    total = sum(given.values(), Fraction(0))
    if len(missing) > 1 or any(share < 0 for share in given.values()):
        raise ValueError(f"shares must be 0 or more, and one may be None, got {dict(shares)}.")
    # The rest of shares whose sum rounds to 1 would be noise alone.
    if total > 1 + _ROUNDED or (missing and float(total) >= 1.0):
        raise ValueError(
            f"the shares {dict(shares)} are together more than the budget; lower them, so that "
            f"something is left{' for ' + missing[0] if missing else ''}."
        )
    used = {name: given.get(name, 1 - total) / max(total, Fraction(1)) for name in shares}
    return {name: share for name, share in used.items() if share > 0}


def _finite(whole: float) -> float:
    if not 0.0 < whole < math.inf:
        raise ValueError("an infinite budget has no noise to divide; pass a finite epsilon.")
    return whole


def _root_above(square: Fraction) -> float:
    """Return the least double whose square, in real numbers, is at least ``square``."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 >= square:
        root = math.nextafter(root, 0.0)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def _below(value: Fraction) -> float:
    """Return the greatest double that is at most ``value``."""
    rounded = float(value)
    return rounded if Fraction(rounded) <= value else math.nextafter(rounded, 0.0)
