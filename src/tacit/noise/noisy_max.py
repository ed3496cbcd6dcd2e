"""Release the winners of votes after adding noise to every count."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.noise.bounded import Bounded, Norm, round_up
from tacit.noise.gaussian import GaussianLaw
from tacit.noise.generator import Source
from tacit.noise.laplace import LaplaceLaw
from tacit.noise.lattice import Law, add_rounded, lattice_spacing
from tacit.noise.release import Release, emit
from tacit.privacy.events import Event, Gaussian, NoisyMajority, PureEpsilon, Repeated
from tacit.privacy.relation import Relation

Array = npt.NDArray[np.float64]
Winners = npt.NDArray[np.int64]

_ROOT_TWO = math.sqrt(2.0)


def gaussian_winners(
    votes: Array,
    noise_std: float,
    relation: Relation,
    source: Source | None = None,
    *,
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
        Source of random bits. By default a new `secure_source` for this release.
    n_charged : int, optional
        Number of queries that are charged, if it was fixed before the number of queries was known.

    Notes
    -----
    **Guarantee**. The winners are a function of the counts on a public lattice with exact Gaussian
    noise (`tacit.noise.gaussian`), so they cost at most ``Gaussian(noise_std / sqrt(2))`` for each
    query: a voter who changes a vote moves two counts by one.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import gaussian_winners
    >>> from tacit.privacy import Relation
    >>> votes = np.array([[240.0, 6.0, 4.0], [0.0, 0.0, 250.0]])
    >>> gaussian_winners(votes, 2.0, Relation.ADD_REMOVE).value
    array([0, 2])
    """
    std = _checked_std("noise_std", noise_std)
    event = Gaussian(std / _ROOT_TWO, relation)
    # A voter moves two counts of each of n rows: sqrt(2 n) in all.
    n = checks.count("n_charged", len(votes) if n_charged is None else n_charged, least=len(votes))
    return _winners("gaussian_winners", votes, std, GaussianLaw(), event, Norm.L2, source, n)


def laplace_winners(
    votes: Array, gamma: float, relation: Relation, source: Source | None = None
) -> Release[Winners]:
    """Return for each row of counts the index of the greatest after Laplace(1 / gamma) on each.

    Notes
    -----
    **Guarantee**. Each query costs ``PureEpsilon(2 gamma)``: a voter who changes a vote moves two
    counts by one. Parameters as for `gaussian_winners`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import laplace_winners
    >>> from tacit.privacy import Relation
    >>> laplace_winners(np.array([[240.0, 6.0, 4.0]]), 1.0, Relation.ADD_REMOVE).value
    array([0])
    """
    rate = checks.positive("gamma", gamma, remedy="epsilon of one query is 2 gamma.")
    event, width = PureEpsilon(2.0 * rate, relation), round_up(1.0 / rate)
    n = len(votes)
    return _winners("laplace_winners", votes, width, LaplaceLaw(), event, Norm.L1, source, n)


def gaussian_majorities(
    lead: Array, noise_std: float, relation: Relation, source: Source | None = None
) -> Release[npt.NDArray[np.bool_]]:
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

    Notes
    -----
    **Guarantee**. Each winner is Bernoulli(Phi(t)) with t = (lead + h / 2) / (sqrt(2) noise_std)
    exactly, with the noise rounded up, so its event is `NoisyMajority`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import gaussian_majorities
    >>> from tacit.privacy import Relation
    >>> gaussian_majorities(np.array([-90.0, 120.0]), 1.0, Relation.ADD_REMOVE).value
    array([False,  True])
    """
    std = _checked_std("noise_std", noise_std)
    # A voter moves the lead of each of n queries by two.
    bounded = Bounded(lead, round_up(2.0 * math.sqrt(len(lead))), Norm.L2, relation)
    event = Repeated(NoisyMajority(std, relation), len(lead))
    width = round_up(_ROOT_TWO * std)

    def draw(words: Source) -> npt.NDArray[np.bool_]:
        noisy = add_rounded(bounded.value, width, lattice_spacing(width), GaussianLaw(), words)
        return np.greater_equal(noisy, 0.0)

    return emit("gaussian_majorities", bounded, event, source, draw)


def gaussian_above(
    heights: Array, least: float, noise_std: float, relation: Relation, source: Source | None = None
) -> Release[npt.NDArray[np.bool_]]:
    """Return which heights are at least ``least`` after N(0, noise_std^2) on each.

    Parameters
    ----------
    heights : array of shape (n_queries,)
        The greatest count of each query, which a voter moves by one.
    least : float
        A public threshold.
    noise_std, relation, source
        As for `gaussian_winners`.

    Notes
    -----
    **Guarantee**. Each answer, yes or no, costs ``Gaussian(noise_std)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import gaussian_above
    >>> from tacit.privacy import Relation
    >>> gaussian_above(np.array([30.0, 240.0]), 150.0, 5.0, Relation.ADD_REMOVE).value
    array([False,  True])
    """
    std = _checked_std("noise_std", noise_std)
    bounded = Bounded(heights, round_up(math.sqrt(len(heights))), Norm.L2, relation)
    event = Repeated(Gaussian(std, relation), len(heights))

    def draw(words: Source) -> npt.NDArray[np.bool_]:
        noisy = add_rounded(bounded.value, std, lattice_spacing(std), GaussianLaw(), words)
        return np.greater_equal(noisy, least)

    return emit("gaussian_above", bounded, event, source, draw, public={"least": least})


def _winners(
    kind: str,
    votes: Array,
    width: float,
    law: Law,
    each: Event,
    norm: Norm,
    source: Source | None,
    n_queries: int,
) -> Release[Winners]:
    moved = math.sqrt(2.0 * n_queries) if norm is Norm.L2 else 2.0 * n_queries
    bounded = Bounded(votes, round_up(moved), norm, each.relation)
    # Round up, since the event's multiplier may have been rounded up.
    width = round_up(width)

    def draw(words: Source) -> Winners:
        noisy = add_rounded(bounded.value, width, lattice_spacing(width), law, words)
        winners: Winners = np.argmax(noisy, axis=1)
        return winners

    return emit(kind, bounded, Repeated(each, n_queries), source, draw)


def _checked_std(name: str, value: float) -> float:
    return checks.positive(name, value, remedy="votes without noise protect nobody.")
