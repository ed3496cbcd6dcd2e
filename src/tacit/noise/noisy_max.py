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

    **Assumes** that ``sensitivity`` is true; `tacit.queries.Votes` states it for teachers.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from tacit.noise.noisy_max import gaussian_winners
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
    >>> from tacit.noise.noisy_max import laplace_winners
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
    sensitivity : float
        How far one voter moves the lead of one query: 2 if a vote changes sides.

    Notes
    -----
    **Guarantee**. Each winner is Bernoulli(Phi(t)) with t = (lead + h / 2) / (sqrt(2) noise_std)
    exactly, the noise rounded up, so that `NoisyMajority`, stated for a move of 2, is its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise.noisy_max import gaussian_majorities
    >>> from tacit.privacy import Relation
    >>> lead = np.array([-90.0, 120.0])
    >>> gaussian_majorities(lead, 1.0, Relation.ADD_REMOVE, sensitivity=2.0).value
    array([False,  True])
    """
    std = _checked_std("noise_std", noise_std)
    bounded = Bounded(lead, round_up(sensitivity * math.sqrt(len(lead))), Norm.L2, relation)
    event = Repeated(NoisyMajority(std * (2.0 / sensitivity), relation), len(lead))
    width = round_up(_ROOT_TWO * std)

    def draw(words: Source) -> npt.NDArray[np.bool_]:
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
) -> Release[npt.NDArray[np.bool_]]:
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
    >>> from tacit.noise.noisy_max import gaussian_above
    >>> from tacit.privacy import Relation
    >>> heights = np.array([30.0, 240.0])
    >>> gaussian_above(heights, 150.0, 5.0, Relation.ADD_REMOVE, sensitivity=1.0).value
    array([False,  True])
    """
    std = _checked_std("noise_std", noise_std)
    bounded = Bounded(heights, round_up(sensitivity * math.sqrt(len(heights))), Norm.L2, relation)
    event = Repeated(Gaussian(std / sensitivity, relation), len(heights))

    def draw(words: Source) -> npt.NDArray[np.bool_]:
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
