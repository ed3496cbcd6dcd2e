"""Choose one of finitely many public candidates by the exponential mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.noise.bounded import Bounded, Norm, check_norm
from tacit.noise.exact import (
    GUARD_BITS,
    Arithmetic,
    LazyUniform,
    ends,
    exponential_errors,
    exponentials,
    magnitude_bits,
    nearest_float,
)
from tacit.noise.generator import Source
from tacit.noise.release import Release, emit
from tacit.privacy.events import ExponentialMechanism

Array = npt.NDArray[np.float64]

# Error of the float log of E, |log E| < 45, beyond that of E itself.
_LOG_MARGIN = 2.0**-38


def select(
    utilities: Bounded,
    epsilon: float,
    *,
    monotone: bool = False,
    source: Source | None = None,
) -> Release[int]:
    """Choose a candidate with probability growing in its utility.

        P(i) proportional to exp(rate * utility_i)
        rate = epsilon / (2 sensitivity), or epsilon / sensitivity if monotone

    The choice is the largest of rate * utility_i + Gumbel noise (report noisy max).

    Parameters
    ----------
    utilities : Bounded
        One utility for each candidate; the sensitivity in the norm LINF. The candidates must be
        public.
    epsilon : float
        The range of the privacy loss.
    monotone : bool
        Whether adding a record moves all utilities in the same direction, as counts do. Only for
        ADD_REMOVE, where it halves the noise.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.

    Returns
    -------
    Release
        The index of the chosen candidate, with ``ExponentialMechanism(epsilon)`` as event.

    Notes
    -----
    **Guarantee**

    1. The law of the index is exactly the one above, in real arithmetic, for the utilities as
       given; so the release is epsilon-bounded-range, hence epsilon-DP.
    2. Wrong arguments are refused before anything is drawn.

    **Assumes**: the sensitivity; ``monotone``, if claimed (a replay checks it); the bits of the
    source; NumPy's log and log1p within 2^-44 relative; mpmath's interval log.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.selection import select
    >>> from tacit.privacy import Relation
    >>> votes = Bounded(np.array([3.0, 950.0, 20.0]), 1.0, Norm.LINF, Relation.ADD_REMOVE)
    >>> select(votes, epsilon=1.0, monotone=True).value
    1
    """
    rate = check_utilities(utilities, epsilon, monotone, "select")
    weights = np.atleast_1d(np.asarray(utilities.value))
    if weights.ndim != 1:
        raise ValueError(
            f"utilities must hold one number for each candidate, got shape {weights.shape}; "
            "flatten them and map the index back."
        )

    def draw(source: Source) -> int:
        with np.errstate(all="ignore"):  # overflows are decided exactly
            floats = nearest_float(rate) * weights
        return gumbel_max(
            floats,
            error=2.0**-50 * float(np.max(np.abs(floats))),
            exactly=lambda i: _Constant(rate * Fraction(float(weights[i]))),
            source=source,
        )

    return emit(
        "select",
        utilities,
        ExponentialMechanism(float(epsilon), utilities.relation),
        source,
        draw,
        public={"monotone": monotone},
    )


def check_utilities(utilities: Bounded, epsilon: float, monotone: bool, name: str) -> Fraction:
    """Return the exact factor from utility to log-weight, or raise."""
    check_norm(utilities, name, (Norm.LINF,))
    spent = checks.finite_epsilon(epsilon)
    if not isinstance(monotone, bool):
        raise TypeError(f"monotone must be True or False, got {monotone!r}.")
    if monotone and not utilities.relation.adds_or_removes:
        raise ValueError(
            "monotone=True holds for Relation.ADD_REMOVE only: replacing a record may raise one "
            "utility and lower another; pass monotone=False, or state the relation ADD_REMOVE."
        )
    rate = Fraction(spent) / Fraction(utilities.sensitivity)
    return rate if monotone else rate / 2


class LogWeight(Protocol):
    """A log-weight that can be enclosed as tightly as needed."""

    @property
    def extra_bits(self) -> int:
        """Bits of precision that the log-weight needs beyond those of the noise."""

    def enclose(self, arithmetic: Arithmetic) -> Any:
        """Return an interval around the log-weight."""


@dataclass(frozen=True)
class _Constant:
    value: Fraction

    @property
    def extra_bits(self) -> int:
        return magnitude_bits(self.value)

    def enclose(self, arithmetic: Arithmetic) -> Any:
        return arithmetic.number(self.value)


def gumbel_max(
    log_weights: Array, error: float, exactly: Callable[[int], LogWeight], source: Source
) -> int:
    """Return i with probability exactly proportional to exp(log-weight i).

    ``log_weights`` are floats within ``error`` of the true log-weights, which ``exactly(i)``
    encloses. Floats choose whom to compare; where more than one candidate could be the largest,
    enclosures and more bits of the noise decide.
    """
    words = source.words(log_weights.size)
    with np.errstate(all="ignore"):  # infinities and NaN mark undecided candidates
        energy = exponentials(words)
        scores = log_weights - np.log(energy)
        # |log x - log y| <= 2 |x - y| / x where |x - y| <= x / 2
        relative = exponential_errors(words, energy) / energy
        noise_error = np.where(relative <= 0.5, 2.0 * relative, np.inf)
        rounding = 2.0**-50 * np.max(np.abs(log_weights))
        margin = noise_error + (error + _LOG_MARGIN + rounding)
        # Drop candidates surely below another; NaN compares false, so unknown ones stay.
        out = scores + margin < np.max(scores - margin)
    contenders = np.flatnonzero(~out)
    if contenders.size == 1:
        return int(contenders[0])
    race = {int(i): (exactly(int(i)), LazyUniform(int(words[i]))) for i in contenders}
    return _race(race, source)


def _race(race: dict[int, tuple[LogWeight, LazyUniform]], source: Source) -> int:
    """Return the index of the largest log-weight + Gumbel noise."""
    while True:
        if all(uniform.is_interior for _, uniform in race.values()):
            scores = {i: ends(_score(*racer)) for i, racer in race.items()}
            best = max(low for low, _ in scores.values())
            race = {i: racer for i, racer in race.items() if scores[i][1] >= best}
            if len(race) == 1:
                return next(iter(race))
        race = {i: (weight, u.refined(source)) for i, (weight, u) in race.items()}


def _score(weight: LogWeight, uniform: LazyUniform) -> Any:
    arithmetic = Arithmetic(uniform.n_bits + GUARD_BITS + weight.extra_bits)
    return weight.enclose(arithmetic) - arithmetic.context.log(arithmetic.exponential(uniform))
