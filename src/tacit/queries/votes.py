"""Query the answers of teachers, each of whom learned from one part of the records.

A record, or a person with all their records, is in one part, and thus changes the answers of one
teacher (docs/proofs/pate.md, section 1). Queries are therefore asked of the teachers' answers, one
teacher after another, wherever the teachers are. One teacher has one vote per query: one count
falls by one and another rises by one, or nothing changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Mask
from tacit.noise import Norm, Release, Source
from tacit.noise.bounded import round_up
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.release import priced
from tacit.noise.selection.finite import (
    gaussian_above,
    gaussian_majorities,
    gaussian_winners,
    laplace_winners,
)
from tacit.privacy import Event, Gaussian, NoisyMajority, PureEpsilon, Repeated
from tacit.queries.base import Array, Facts, Private, Sensitivity, total_of
from tacit.queries.noise import GaussianNoise, NoisySum
from tacit.records.splits import places_of_parts

# One number per query: the index of a class, or a prediction in steps of its range.
Answer = npt.NDArray[Any]
Winners = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# A prediction is rounded to one of this many equal steps of the range, so that sums are integers.
STEPS = 2**20
# Bound on the difference of a sum of lattice noises from one Gaussian (docs/proofs/pate.md, 6).
_A_HAIR = 1.0 + 1e-12
_ONE_TEACHER = "pate.md#1-one-record-one-teacher"


@dataclass(frozen=True)
class _OfTeachers:
    """The common part of statistics of teachers' answers: one privacy unit is one teacher."""

    n_queries: int
    n_teachers: int

    def applies(self, facts: Facts) -> bool:
        """Return whether all records, not a sample, are split among teachers."""
        return facts.sampling_rate is None

    def sensitivity_of(self, n_queries: int) -> float:
        """Return the sensitivity of the part of the total that some queries add."""
        raise NotImplementedError

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return the effect of one teacher on the total, rounded up."""
        norm = getattr(self, "norm", Norm.L2)
        return Sensitivity(round_up(self.sensitivity_of(self.n_queries)), norm, _ONE_TEACHER)

    def possible(self) -> Iterable[int]:
        """Return the possible answers to a query, for `neighbours`: the classes, or two."""
        return range(getattr(self, "n_classes", 2))

    def neighbours(self, facts: Facts) -> Iterator[tuple[list[Answer], list[Answer]]]:
        """Yield votes: k teachers say one thing, the others another; then one teacher changes."""
        n = self.n_teachers
        for before, after in itertools.permutations(self.possible(), 2):
            said, instead = (np.full(self.n_queries, value) for value in (before, after))
            for k in range(n):
                yield [instead] * k + [said] * (n - k), [instead] * (k + 1) + [said] * (n - k - 1)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that split records among teachers, and read one answer of each."""
        return places_of_parts, count_votes, sum_predictions


@dataclass(frozen=True)
class Votes(_OfTeachers):
    """The number of teachers that vote for each class, per query (queries x classes).

    It is asked of the teachers' votes, one array of class indices per teacher. `Session.hold` holds
    the counts for several queries.

    Parameters
    ----------
    n_queries
        The number of queries.
    n_teachers
        The number of teachers, each of whom votes on every query.
    n_classes
        The number of classes.
    norm
        The norm of the sensitivity: L2 for Gaussian noise, L1 for Laplace noise.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts
    >>> from tacit.queries.votes import Votes
    >>> from tacit.records import Bounds
    >>> facts = Facts(Bounds(), 1, Relation.ADD_REMOVE)
    >>> votes = Votes(n_queries=8, n_teachers=250, n_classes=3)
    >>> round(votes.sensitivity(facts).value, 9)
    4.0
    """

    n_classes: int
    norm: Norm = Norm.L2

    @classmethod
    def tried(cls) -> tuple[Votes, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(5, 4, 3), cls(5, 4, 3, Norm.L1)

    def sensitivity_of(self, n_queries: int) -> float:
        """Return sqrt(2 queries), or 2 queries in L1: two counts per query move by one."""
        return 2.0 * n_queries if self.norm is Norm.L1 else math.sqrt(2.0 * n_queries)

    def held(self, records: Private, facts: Facts) -> Array:
        """Return the counts. Private."""
        return count_votes(records, self.n_queries, self.n_teachers, self.n_classes)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the counts. Private."""
        counts: Array = total_of(records, self, facts)
        return counts


@dataclass(frozen=True)
class GreatestCounts(_OfTeachers):
    """The number of votes for the most popular class of each query.

    It is asked of the same data as `Votes`.
    """

    n_classes: int

    @classmethod
    def tried(cls) -> tuple[GreatestCounts, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(5, 4, 3),)

    def sensitivity_of(self, n_queries: int) -> float:
        """Return sqrt(queries): each greatest count moves by at most one."""
        return math.sqrt(n_queries)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the greatest count of each query. Private."""
        votes = Votes(self.n_queries, self.n_teachers, self.n_classes)
        greatest: Array = votes.total(records, facts).max(axis=1)
        return greatest


@dataclass(frozen=True)
class Leads(_OfTeachers):
    """The lead of the second of two classes over a public cut, for each query.

        lead = 2 votes for the second - 2 cut teachers

    With a cut of one half the lead is the votes for the second class less those for the first. It
    is asked of the same data as `Votes`.
    """

    cut: float = 0.5

    @classmethod
    def tried(cls) -> tuple[Leads, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return cls(5, 4), cls(5, 4, 0.3)

    def sensitivity_of(self, n_queries: int) -> float:
        """Return 2 sqrt(queries): one class gains the vote that the other loses."""
        return 2.0 * math.sqrt(n_queries)

    @property
    def needed(self) -> float:
        """The threshold for twice the votes for the second class."""
        return 2.0 * self.cut * self.n_teachers

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the leads. Private."""
        counts = Votes(self.n_queries, self.n_teachers, 2).total(records, facts)
        leads: Array = 2.0 * counts[:, 1] - self.needed
        return leads


@dataclass(frozen=True)
class PredictionSum(_OfTeachers):
    """The sum of teachers' predictions for each query, in `STEPS` steps of a public range.

    It is asked of the teachers' predictions, one array of steps per teacher, clipped to the range.
    """

    @classmethod
    def tried(cls) -> tuple[PredictionSum, ...]:
        """Return the instances that `tacit.testing.check_query` tries."""
        return (cls(5, 4),)

    def possible(self) -> Iterable[int]:
        """Return predictions, some of them beyond the range."""
        return -STEPS, 0, STEPS // 2, STEPS, 2 * STEPS

    def sensitivity_of(self, n_queries: int) -> float:
        """Return STEPS sqrt(queries): each sum moves by at most the length of the range."""
        return STEPS * math.sqrt(n_queries)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum for each query. Private."""
        return sum_predictions(records, self.n_queries, self.n_teachers)


def count_votes(
    teachers: Iterable[npt.ArrayLike], n_queries: int, n_teachers: int, n_classes: int
) -> Array:
    """Return for each query the votes for each class, one vote per teacher. Private.

    Examples
    --------
    >>> from tacit.queries.votes import count_votes
    >>> count_votes([[0, 2], [0, 1]], n_queries=2, n_teachers=2, n_classes=3)
    array([[2., 0., 0.],
           [0., 1., 1.]])
    """
    counts, index = np.zeros((n_queries, n_classes)), np.arange(n_queries)
    for vote in _checked(teachers, n_queries, n_teachers):
        counts[index, np.clip(vote, 0, n_classes - 1)] += 1.0
    return counts


def sum_predictions(teachers: Iterable[npt.ArrayLike], n_queries: int, n_teachers: int) -> Array:
    """Return the sum of teachers' predictions per query, each clipped to [0, STEPS]. Private."""
    total = np.zeros(n_queries, dtype=np.int64)
    for steps in _checked(teachers, n_queries, n_teachers):
        total += np.clip(steps, 0, STEPS)
    return total.astype(np.float64)


def _checked(
    teachers: Iterable[npt.ArrayLike], n_queries: int, n_teachers: int
) -> Iterator[Answer]:
    """Yield each teacher's answers; refuse a wrong number of queries or teachers."""
    n = 0
    for answer in map(np.asarray, teachers):
        if answer.shape != (n_queries,):
            raise ValueError("a teacher must give one answer for each query.")
        yield answer
        n += 1
    if n != n_teachers:
        raise ValueError(f"{n} teachers answered, but {n_teachers} were planned.")


def _check_whole(facts: Facts) -> None:
    if facts.sampling_rate is not None:
        raise ValueError("teachers' votes cannot be asked of a Poisson sample.")


@dataclass(frozen=True)
class GaussianWinners:
    """The class with the most votes per query, after adding N(0, noise_std^2) to every count.

    Proof: docs/proofs/pate.md, section 2.

    Parameters
    ----------
    votes
        The counts.
    noise_std
        The standard deviation of the noise on each count.
    n_charged
        The number of charged queries, if earlier answers choose them; all by default.
    places
        The indices of the chosen queries, at most ``n_charged``; all by default.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, Session, Slot
    >>> from tacit.queries.votes import GaussianWinners, Votes
    >>> from tacit.records import Bounds
    >>> facts = Facts(Bounds(), 1, Relation.ADD_REMOVE)
    >>> query = GaussianWinners(Votes(n_queries=2, n_teachers=90, n_classes=3), noise_std=4.0)
    >>> slots = {"winners": Slot(query.event(facts))}
    >>> session = Session([[0, 2]] * 90, facts, query.event(facts), slots)
    >>> session.ask(query, "winners")
    array([0, 2])
    """

    votes: Votes
    noise_std: float
    n_charged: int | None = None
    places: tuple[int, ...] | None = None

    def event(self, facts: Facts) -> Event:
        """Return one Gaussian release per query."""
        _check_whole(facts)
        n = self.votes.n_queries if self.n_charged is None else self.n_charged
        return Repeated(Gaussian(self.noise_std / self.votes.sensitivity_of(1), facts.relation), n)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Winners]:
        """Return the winner of each chosen query."""
        counts, each = self.votes.total(records, facts), self.votes.sensitivity_of(1)
        if self.places is not None:
            counts = counts[list(self.places)]
        paid = len(counts) if self.n_charged is None else self.n_charged
        return gaussian_winners(
            counts, self.noise_std, facts.relation, source, sensitivity=each, n_charged=paid
        )


@dataclass(frozen=True)
class LaplaceWinners:
    """The class with the most votes per query, after adding Laplace(1 / gamma) to every count.

    Proof: docs/proofs/pate.md, section 2. Each query costs 2 gamma, with delta 0.
    """

    votes: Votes
    gamma: float

    def __post_init__(self) -> None:
        if self.votes.norm is not Norm.L1:
            raise ValueError("Laplace noise needs a sensitivity in Norm.L1; pass it to Votes.")

    def event(self, facts: Facts) -> Event:
        """Return one pure release per query."""
        _check_whole(facts)
        each = PureEpsilon(self.votes.sensitivity_of(1) * self.gamma, facts.relation)
        return Repeated(each, self.votes.n_queries)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Winners]:
        """Return the winner of each query."""
        counts, each = self.votes.total(records, facts), self.votes.sensitivity_of(1)
        return laplace_winners(counts, self.gamma, facts.relation, source, sensitivity=each)


@dataclass(frozen=True)
class Majorities:
    """The winner of two classes per query, after adding N(0, noise_std^2) to both counts.

    Proof: docs/proofs/pate.md, section 3. Releasing only the winner costs less than counts.
    """

    leads: Leads
    noise_std: float

    def event(self, facts: Facts) -> Event:
        """Return one noisy majority per query.

        A teacher moves a lead by 2, which is sqrt(2) / noise_std standard deviations. The event is
        stated for a move of 2.
        """
        _check_whole(facts)
        std = self.noise_std * (2.0 / self.leads.sensitivity_of(1))
        return Repeated(NoisyMajority(std, facts.relation), self.leads.n_queries)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Winners]:
        """Return 0 or 1 for each query."""
        leads, each = self.leads.total(records, facts), self.leads.sensitivity_of(1)
        won = gaussian_majorities(leads, self.noise_std, facts.relation, source, sensitivity=each)
        return Release(won.value.astype(np.int64), won.event)


@dataclass(frozen=True)
class Thresholds:
    """The queries on which a share of teachers agrees, with noise N(0, noise_std^2) on the count.

    Proof: docs/proofs/pate.md, section 2. Each answer, yes or no, is charged.
    """

    counts: GreatestCounts
    share: float
    noise_std: float

    def event(self, facts: Facts) -> Event:
        """Return one Gaussian release per query."""
        _check_whole(facts)
        each = Gaussian(self.noise_std / self.counts.sensitivity_of(1), facts.relation)
        return Repeated(each, self.counts.n_queries)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Mask]:
        """Return whether each query passed."""
        least = self.share * float(self.counts.n_teachers)
        counts, each = self.counts.total(records, facts), self.counts.sensitivity_of(1)
        return gaussian_above(
            counts, least, self.noise_std, facts.relation, source, sensitivity=each
        )


@dataclass(frozen=True, eq=False)
class SharedVotes:
    """The counts of one site, with its share of the noise that the sum of all sites needs.

    The answer is in steps of a lattice, modulo 2^64, plus a mask if there is one.

    Proof: docs/proofs/pate.md, section 6.

    Parameters
    ----------
    votes
        The site's counts.
    noise_std
        The noise that the sum of all sites' votes must have on each count.
    n_shares
        The number of sites whose noise together suffices.
    mask
        Words that cancel in the sum over all sites; without them only that sum can be read.
    """

    votes: Votes
    noise_std: float
    n_shares: int
    mask: Words | None = None

    @property
    def share_std(self) -> float:
        """The noise of each site: slightly above noise_std / sqrt(n_shares)."""
        return _A_HAIR * self.noise_std / math.sqrt(self.n_shares)

    def share(self, facts: Facts) -> NoisySum:
        """Return the counts with the site's own noise, the multiplier rounded up."""
        multiplier = round_up(self.share_std / self.votes.sensitivity(facts).value)
        return NoisySum(self.votes, GaussianNoise(multiplier))

    def spacing(self, facts: Facts) -> float:
        """Return the lattice spacing of every site's noise; it divides one vote."""
        return lattice_spacing(round_up(self.share(facts).noise_std(facts)))

    def sum_event(self, facts: Facts) -> Event:
        """Return the cost of the sum of all votes, with the noise of ``n_shares`` sites."""
        _check_whole(facts)
        whole = self.votes.sensitivity_of(self.votes.n_queries)
        return Gaussian(self.noise_std / whole, facts.relation)

    def event(self, facts: Facts) -> Event:
        """Return the cost; without a mask only the site's own noise hides its votes."""
        _check_whole(facts)
        return self.share(facts).event(facts) if self.mask is None else self.sum_event(facts)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Words]:
        """Return the noisy counts in steps of the lattice."""
        noisy = self.share(facts).answer(records, facts, source)
        # exact: both are powers of two times integers below 2^53
        steps = np.rint(np.asarray(noisy.value) / self.spacing(facts)).astype(np.int64)
        words: Words = steps.view(np.uint64)
        if self.mask is None:
            return Release(words, noisy.event)
        return Release(words + self.mask, priced(self.event(facts), source))
