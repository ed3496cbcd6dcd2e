"""Audit any code that takes data and randomness and returns numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.audit.distinguishing import epsilon_of_guesses, findings_of, gaussian_epsilon_of_guesses
from tacit.audit.results import Audit, Finding
from tacit.privacy import Budget, Event

Array = npt.NDArray[np.float64]
Data = TypeVar("Data")
Fit = Callable[[Data, np.random.Generator], Any]
Rows = tuple[Array, Array]

LEVEL = 0.05  # default probability with which a bound may be too high


def audit_fits(
    fit: Fit[Data],
    without: Data,
    with_it: Data,
    claim: Budget,
    *,
    score: Callable[[Array], float] | None = None,
    beside: Callable[[Array], Array] | None = None,
    promised: Callable[[float], Event] | None = None,
    fits: int = 4000,
    level: float = LEVEL,
    subject: str = "",
    seed: int | None = None,
) -> Audit:
    """Fit two neighbouring data sets many times, and derive lower bounds on epsilon.

    Parameters
    ----------
    fit
        Takes data and a generator, and returns the released vector. Both data sets of a pair get
        the same generator, so that the effect of the record is visible. Other randomness is
        allowed, but weakens the bounds.
    without, with_it
        Two neighbouring data sets under the claim's relation, as bad as possible: for instance
        many copies of a record, and one more that contradicts them.
    claim
        The budget that ``fit`` claims.
    score
        Maps a released vector to a number that is larger with the record. By default the
        projection on the difference of the means of some fits of each, which are then not used
        again.
    beside
        Maps a released vector to noise that the record does not move, if there is any: numbers of
        mean 0 with the spread of the scores. They improve the estimate of the spread.
    promised
        Returns the planned event at another epsilon, such as ``lambda epsilon:
        model(epsilon).plan().event``. Error rates are then compared with the guarantee at every
        delta. Few fits show far more there than at the one delta of a claim.
    fits
        Total number of fits, half of them with the record.
    level
        The probability with which a bound may be too high.
    subject
        Name of the audited code.
    seed
        Seed of the generators that ``fit`` gets; fresh entropy by default.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.audit import audit_fits
    >>> from tacit.privacy import Budget, Event
    >>> def laplace(ages, rng):  # a sum of ages up to 1, with a quarter of the noise it claims
    ...     return sum(ages) + rng.laplace(scale=0.25)
    >>> found = audit_fits(laplace, [], [1.0], Budget(1.0), fits=10_000)
    >>> [finding.epsilon > 1.0 for finding in found.above_claim]
    [True]
    """
    half = checks.count("fits", fits, least=40) // 2
    check_level(level)
    seeds = np.random.SeedSequence(seed).spawn(half)
    pairs = [
        tuple(fit(data, np.random.default_rng(one)) for data in (without, with_it)) for one in seeds
    ]
    named = subject or getattr(fit, "__name__", type(fit).__name__)
    return audit_pairs(
        pairs, claim, score=score, beside=beside, promised=promised, level=level, subject=named
    )


def audit_pairs(
    pairs: Iterable[tuple[Any, ...]],
    claim: Budget,
    *,
    score: Callable[[Array], float] | None,
    beside: Callable[[Array], Array] | None,
    promised: Callable[[float], Event] | None = None,
    level: float,
    subject: str,
) -> Audit:
    """Return the audit of pairs of releases, each without and with the record.

    Pairs are independent; the two releases of one pair may share their noise.
    """
    both = [tuple(_vector(released) for released in pair) for pair in pairs]
    without, with_it = (np.stack(world) for world in zip(*both, strict=True))
    if score is None:
        without_it, with_one = _projected(without, with_it)
    else:
        without_it, with_one = (
            np.array([float(score(vector)) for vector in world]) for world in (without, with_it)
        )
    others = None
    if beside is not None:
        others = np.stack(
            [np.concatenate([beside(v) for v in world]) for world in (without, with_it)]
        )
    found = findings_of(without_it, with_one, claim, level, others, promised)
    return Audit(subject, claim, level, found, without_it, with_one)


def audit_one_run(
    fit: Fit[Rows],
    base: Rows,
    canaries: Rows,
    claim: Budget,
    *,
    score: Callable[[Array, Array, Array], Array],
    guesses: int,
    level: float = LEVEL,
    subject: str = "",
    seed: int | None = None,
) -> Audit:
    """Fit once, with each canary in the data by a coin toss, and guess which ones were in.

    Parameters
    ----------
    fit
        Takes (rows, labels) and a generator, and returns the released vector.
    base
        Rows and labels that are always in the data.
    canaries
        Rows and labels that are in the data with probability 1/2 each; best orthogonal to one
        another.
    claim
        The budget that ``fit`` claims, under ADD_REMOVE.
    score
        Takes the released vector and the canaries' rows and labels, and returns a number for each
        canary that is larger if it was in.
    guesses
        Number of canaries to guess at, half of them with the greatest scores; fixed in advance.
    level
        The probability with which a bound may be too high.
    subject
        Name of the audited code.
    seed
        Seed of the coins and of the generator that ``fit`` gets; fresh entropy by default.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.audit import audit_one_run
    >>> from tacit.privacy import Budget, Event
    >>> def total(data, rng):  # a sum of rows of norm 1, with Gaussian noise
    ...     return data[0].sum(axis=0) + 0.1 * rng.standard_normal(100)
    >>> nothing = np.zeros((0, 100)), np.zeros(0)
    >>> canaries = np.eye(100), np.ones(100)
    >>> found = audit_one_run(
    ...     total, nothing, canaries, Budget(1.0, 1e-6),
    ...     score=lambda released, rows, labels: rows @ released, guesses=50,
    ... )
    >>> found.strongest.epsilon > 1.0
    True
    """
    m = len(canaries[0])
    checks.count("guesses", guesses, least=2, most=m)
    check_level(level)
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    data = tuple(np.concatenate([b, c[included]]) for b, c in zip(base, canaries, strict=True))
    scores = score(_vector(fit((data[0], data[1]), rng)), *canaries)
    order = np.argsort(scores)
    least, most = order[: guesses // 2], order[m - (guesses - guesses // 2) :]
    right = int(np.sum(~included[least]) + np.sum(included[most]))
    counts = (m, guesses, right, claim.delta, level)
    found = [
        Finding("by guesses of one run", epsilon_of_guesses(*counts), "nothing of the mechanism")
    ]
    if not claim.is_pure:
        found.append(
            Finding(
                "by guesses of one run, on a Gaussian curve",
                gaussian_epsilon_of_guesses(*counts),
                "that the trade-off curve of the mechanism is a Gaussian one",
            )
        )
    note = f"{right} of {guesses} guesses at {m} canaries were right."
    named = subject or getattr(fit, "__name__", type(fit).__name__)
    return Audit(named, claim, level, tuple(found), notes=(note,))


def _vector(released: Any) -> Array:
    vector = np.atleast_1d(np.asarray(released, dtype=np.float64)).ravel()
    if not np.isfinite(vector).all():
        raise ValueError("fit returned a number that is not finite; audit what it means instead.")
    return vector


def _projected(without: Array, with_it: Array) -> tuple[Array, Array]:
    """Return scores along the difference of means of the first tenth, of the other fits."""
    at = max(len(without) // 10, 1)
    spread = np.concatenate([without[:at], with_it[:at]]).std(axis=0)
    # In units of each coordinate's variance; a constant coordinate carries no information.
    direction = np.divide(
        with_it[:at].mean(axis=0) - without[:at].mean(axis=0),
        np.square(spread),
        out=np.zeros(without.shape[1]),
        where=spread > 0,
    )
    return without[at:] @ direction, with_it[at:] @ direction


def check_level(level: float) -> None:
    """Raise unless the level is a probability of error below 1/2."""
    if not 0.0 < checks.real("level", level) < 0.5:
        raise ValueError(f"level must be between 0 and 0.5, got {level!r}; 0.05 is usual.")
