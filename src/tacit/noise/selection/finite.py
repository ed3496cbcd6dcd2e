"""Choose among finitely many: exponential mechanism, noisy maximum, and the number of trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.arrays import Array, Mask
from tacit.noise.bounded import Bounded, Norm, check_norm, round_up
from tacit.noise.exact.interval_arithmetic import (
    GUARD_BITS,
    Arithmetic,
    LazyUniform,
    ends,
    exponential_errors,
    exponentials,
    magnitude_bits,
    nearest_float,
)
from tacit.noise.exact.lattice import Law, add_rounded, lattice_spacing
from tacit.noise.gaussian import GaussianLaw
from tacit.noise.laplace import LaplaceLaw
from tacit.noise.release import Release, emit
from tacit.noise.source import Source, secure_source
from tacit.privacy.accounting.number_of_trials import TriesLaw
from tacit.privacy.budget import Relation
from tacit.privacy.events import (
    Event,
    ExponentialMechanism,
    Gaussian,
    NoisyMajority,
    PureEpsilon,
    Repeated,
)

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
    >>> from tacit.noise.selection.finite import select
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


Winners = npt.NDArray[np.int64]

_ROOT_TWO = math.sqrt(2.0)


def gaussian_winners(
    votes: Array,
    noise_std: float,
    relation: Relation,
    source: Source | None = None,
    *,
    sensitivity: float,
    n_charged: int | None = None,
) -> Release[Winners]:
    """Return for each row of counts the index of the greatest after N(0, noise_std^2) on each.

    Parameters
    ----------
    votes : array of shape (n_queries, n_classes)
        How many voters chose each class, for each query.
    noise_std : float
        The standard deviation of the noise on each count.
    relation : Relation
        Relation of the neighbours. They differ in one voter, who may change every vote.
    source : Source, optional
        Where the bits come from. By default a new `secure_source` for this release.
    sensitivity : float
        How far one voter moves the counts of one query, in L2: sqrt(2) if a vote changes sides.
    n_charged : int, optional
        Number of queries that are charged, if it was fixed before the number of queries was known.

    Notes
    -----
    **Guarantee**. The winners are a function of the counts on a public lattice with exact Gaussian
    noise (`tacit.noise.gaussian`), so they cost at most ``Gaussian(noise_std / sensitivity)`` each.

    **Assumes** that ``sensitivity`` is true; `tacit.queries.votes.Votes` states it for teachers.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from tacit.noise.selection.finite import gaussian_winners
    >>> from tacit.privacy import Relation
    >>> votes = np.array([[240.0, 6.0, 4.0], [0.0, 0.0, 250.0]])
    >>> gaussian_winners(votes, 2.0, Relation.ADD_REMOVE, sensitivity=math.sqrt(2.0)).value
    array([0, 2])
    """
    std = _checked_std("noise_std", noise_std)
    event = Gaussian(std / sensitivity, relation)
    n = checks.count("n_charged", len(votes) if n_charged is None else n_charged, least=len(votes))
    whole = Bounded(votes, round_up(sensitivity * math.sqrt(n)), Norm.L2, relation)
    return _winners("gaussian_winners", whole, std, GaussianLaw(), Repeated(event, n), source)


def laplace_winners(
    votes: Array,
    gamma: float,
    relation: Relation,
    source: Source | None = None,
    *,
    sensitivity: float,
) -> Release[Winners]:
    """Return for each row of counts the index of the greatest after Laplace(1 / gamma) on each.

    Notes
    -----
    **Guarantee**. Each query costs ``PureEpsilon(sensitivity gamma)``. Parameters as for
    `gaussian_winners`; ``sensitivity`` is in L1, 2 if a vote changes sides.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.selection.finite import laplace_winners
    >>> from tacit.privacy import Relation
    >>> votes = np.array([[240.0, 6.0, 4.0]])
    >>> laplace_winners(votes, 1.0, Relation.ADD_REMOVE, sensitivity=2.0).value
    array([0])
    """
    rate = checks.positive("gamma", gamma, remedy="epsilon of one query is 2 gamma.")
    event, width = PureEpsilon(sensitivity * rate, relation), round_up(1.0 / rate)
    n = len(votes)
    whole = Bounded(votes, round_up(sensitivity * n), Norm.L1, relation)
    return _winners("laplace_winners", whole, width, LaplaceLaw(), Repeated(event, n), source)


def gaussian_majorities(
    lead: Array,
    noise_std: float,
    relation: Relation,
    source: Source | None = None,
    *,
    sensitivity: float,
) -> Release[Mask]:
    """Return for each query whether the second of two classes wins.

        lead + N(0, 2 noise_std^2) >= -h / 2,   h the lattice's spacing

    Parameters
    ----------
    lead : array of shape (n_queries,)
        Votes for the second class minus votes for the first, minus any public number.
    noise_std : float
        The standard deviation of the noise on either count.
    relation, source
        As for `gaussian_winners`.
    sensitivity : float
        How far one voter moves the lead of one query: 2 if a vote changes sides.

    Notes
    -----
    **Guarantee**. Each winner is Bernoulli(Phi(t)) with t = (lead + h / 2) / (sqrt(2) noise_std)
    exactly, the noise rounded up, so that `NoisyMajority`, stated for a move of 2, is its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.selection.finite import gaussian_majorities
    >>> from tacit.privacy import Relation
    >>> lead = np.array([-90.0, 120.0])
    >>> gaussian_majorities(lead, 1.0, Relation.ADD_REMOVE, sensitivity=2.0).value
    array([False,  True])
    """
    std = _checked_std("noise_std", noise_std)
    bounded = Bounded(lead, round_up(sensitivity * math.sqrt(len(lead))), Norm.L2, relation)
    event = Repeated(NoisyMajority(std * (2.0 / sensitivity), relation), len(lead))
    width = round_up(_ROOT_TWO * std)

    def draw(words: Source) -> Mask:
        noisy = add_rounded(bounded.value, width, lattice_spacing(width), GaussianLaw(), words)
        return np.greater_equal(noisy, 0.0)

    return emit("gaussian_majorities", bounded, event, source, draw)


def gaussian_above(
    heights: Array,
    least: float,
    noise_std: float,
    relation: Relation,
    source: Source | None = None,
    *,
    sensitivity: float,
) -> Release[Mask]:
    """Return which heights are at least ``least`` after N(0, noise_std^2) on each.

    Parameters
    ----------
    heights : array of shape (n_queries,)
        The greatest count of each query.
    least : float
        A public threshold.
    noise_std, relation, source
        As for `gaussian_winners`.
    sensitivity : float
        How far one voter moves the greatest count of one query: 1.

    Notes
    -----
    **Guarantee**. Each answer, yes or no, costs ``Gaussian(noise_std / sensitivity)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.selection.finite import gaussian_above
    >>> from tacit.privacy import Relation
    >>> heights = np.array([30.0, 240.0])
    >>> gaussian_above(heights, 150.0, 5.0, Relation.ADD_REMOVE, sensitivity=1.0).value
    array([False,  True])
    """
    std = _checked_std("noise_std", noise_std)
    bounded = Bounded(heights, round_up(sensitivity * math.sqrt(len(heights))), Norm.L2, relation)
    event = Repeated(Gaussian(std / sensitivity, relation), len(heights))

    def draw(words: Source) -> Mask:
        noisy = add_rounded(bounded.value, std, lattice_spacing(std), GaussianLaw(), words)
        return np.greater_equal(noisy, least)

    return emit("gaussian_above", bounded, event, source, draw, public={"least": least})


def _winners(
    kind: str, bounded: Bounded, width: float, law: Law, event: Event, source: Source | None
) -> Release[Winners]:
    # Up, since the event's multiplier may have been rounded up.
    width = round_up(width)

    def draw(words: Source) -> Winners:
        noisy = add_rounded(bounded.value, width, lattice_spacing(width), law, words)
        winners: Winners = np.argmax(noisy, axis=1)
        return winners

    return emit(kind, bounded, event, source, draw)


def _checked_std(name: str, value: float) -> float:
    return checks.positive(name, value, remedy="votes without noise protect nobody.")


_BITS = 128


def draw_tries(law: TriesLaw, source: Source | None = None) -> int:
    """Draw K from a law; the caller must keep K secret.

    A word of 128 bits is compared with P(K >= k), k = 1, 2, ..., each a sum of positive terms.

    Notes
    -----
    **Guarantee**. P(K = k) has a relative error of at most 1e-11, and so has phi'(u) for every u in
    [0, 1]. `tacit.privacy.accounting.best_of` charges a hundred times that
    (docs/proofs/best_of.md, section 6).

    Examples
    --------
    >>> from tacit.noise.selection.finite import draw_tries
    >>> from tacit.privacy.accounting.number_of_trials import FixedTries
    >>> draw_tries(FixedTries(7))
    7
    """
    high, low = (secure_source() if source is None else source).words(2).tolist()
    word = (high << 64) | low
    table = law.table / law.table.sum()
    at_least = np.minimum(np.cumsum(table[::-1])[::-1], 1.0)  # P(K >= 0), P(K >= 1), ...
    at_least[: int(np.argmax(table > 0.0)) + 1] = 1.0  # exact, whatever the sum's rounding
    tries = 0
    # A float times 2^128 is an integer, or so far below 1 that the case never occurs.
    while tries + 1 < table.size and word < int(float(at_least[tries + 1]) * 2.0**_BITS):
        tries += 1
    return tries
