"""Answers of teachers, each of whom learned from one part of the records.

A record, or a person with all their records, is in one part, so that it changes the answers of one
teacher (docs/proofs/pate.md, section 1). What is asked of is therefore the teachers' answers, one
teacher after another; who the teachers are, and where, does not matter. One teacher has one vote on
each query: one count falls by one and another rises by one, or nothing changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.noise import Norm, Release, Source, lattice_spacing
from tacit.noise.bounded import round_up
from tacit.noise.release import priced
from tacit.noise.selection.finite import (
    gaussian_above,
    gaussian_majorities,
    gaussian_winners,
    laplace_winners,
)
from tacit.privacy import Event, Gaussian, NoisyMajority, PureEpsilon, Repeated
from tacit.queries.base import Array, Facts, Private, Sensitivity, total_of
from tacit.queries.noisy_sum import GaussianNoise, NoisySum
from tacit.records.splits import places_of_parts

# One number for each query: the number of a class, or a prediction in steps of its range.
Answer = npt.NDArray[Any]
Winners = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# A prediction is one of this many equal steps of the range, so that sums are whole numbers.
STEPS = 2**20
# What the sum of lattices lacks of one Gaussian is far below this (docs/proofs/pate.md, 6).
_A_HAIR = 1.0 + 1e-12
_ONE_TEACHER = "pate.md#1-one-record-one-teacher"


@dataclass(frozen=True)
class _OfTeachers:
    """What all statistics of teachers' answers share: one teacher is one record's, or person's."""

    n_queries: int
    n_teachers: int

    def applies(self, facts: Facts) -> bool:
        """Return that all records are split among teachers, and no sample."""
        return facts.sampling_rate is None

    def sensitivity_of(self, n_queries: int) -> float:
        """Return how far one teacher moves what some queries add to the total."""
        raise NotImplementedError

    def sensitivity(self, facts: Facts) -> Sensitivity:
        """Return how far one teacher moves the total, rounded up."""
        norm = getattr(self, "norm", Norm.L2)
        return Sensitivity(round_up(self.sensitivity_of(self.n_queries)), norm, _ONE_TEACHER)

    def possible(self) -> Iterable[int]:
        """Return what a teacher may say of a query, for `neighbours`: the classes, or two."""
        return range(getattr(self, "n_classes", 2))

    def neighbours(self, facts: Facts) -> Iterator[tuple[list[Answer], list[Answer]]]:
        """Yield answers of teachers: k say one thing, the others another; then one more does."""
        n = self.n_teachers
        for before, after in itertools.permutations(self.possible(), 2):
            said, instead = (np.full(self.n_queries, value) for value in (before, after))
            for k in range(n):
                yield [instead] * k + [said] * (n - k), [instead] * (k + 1) + [said] * (n - k - 1)

    def contributors(self) -> tuple[Callable[..., Any], ...]:
        """Return what splits records among teachers, and takes one answer of each."""
        return places_of_parts, count_votes, sum_predictions


@dataclass(frozen=True)
class Votes(_OfTeachers):
    """How many teachers vote for each class, for each query (queries x classes).

    Asked of the teachers' votes, one array of class numbers a teacher. `Session.hold` keeps the
    counts for several questions.

    Parameters
    ----------
    n_queries
        How many queries there are.
    n_teachers
        How many teachers, each of whom votes on every query.
    n_classes
        How many classes.
    norm
        The norm of the sensitivity: L2 for Gaussian noise, L1 for Laplace noise.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, Votes
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
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(5, 4, 3), cls(5, 4, 3, Norm.L1)

    def sensitivity_of(self, n_queries: int) -> float:
        """Return sqrt(2 queries), or 2 queries in L1: two counts of each query move by one."""
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
    """How many teachers agree on the class that most vote for, of each query.

    Asked as `Votes` is.
    """

    n_classes: int

    @classmethod
    def tried(cls) -> tuple[GreatestCounts, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return (cls(5, 4, 3),)

    def sensitivity_of(self, n_queries: int) -> float:
        """Return sqrt(queries): each greatest count moves by one."""
        return math.sqrt(n_queries)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the greatest count of each query. Private."""
        votes = Votes(self.n_queries, self.n_teachers, self.n_classes)
        greatest: Array = votes.total(records, facts).max(axis=1)
        return greatest


@dataclass(frozen=True)
class Leads(_OfTeachers):
    """By how much each query has more votes for the second of two classes than a public cut.

        lead = 2 votes for the second - 2 cut teachers

    With a cut of a half that is the votes for the second class less those for the first. Asked as
    `Votes` is.
    """

    cut: float = 0.5

    @classmethod
    def tried(cls) -> tuple[Leads, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return cls(5, 4), cls(5, 4, 0.3)

    def sensitivity_of(self, n_queries: int) -> float:
        """Return 2 sqrt(queries): what one class loses, the other gains."""
        return 2.0 * math.sqrt(n_queries)

    @property
    def needed(self) -> float:
        """What twice the votes for the second class must exceed."""
        return 2.0 * self.cut * self.n_teachers

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the leads. Private."""
        counts = Votes(self.n_queries, self.n_teachers, 2).total(records, facts)
        leads: Array = 2.0 * counts[:, 1] - self.needed
        return leads


@dataclass(frozen=True)
class PredictionSum(_OfTeachers):
    """The sum of teachers' predictions of each query, in `STEPS` steps of a public range.

    Asked of the teachers' predictions, one array of steps a teacher; they are clipped to the range.
    """

    @classmethod
    def tried(cls) -> tuple[PredictionSum, ...]:
        """Return the ones that `tacit.testing.check_query` tries."""
        return (cls(5, 4),)

    def possible(self) -> Iterable[int]:
        """Return predictions, some of them beyond the range."""
        return -STEPS, 0, STEPS // 2, STEPS, 2 * STEPS

    def sensitivity_of(self, n_queries: int) -> float:
        """Return STEPS sqrt(queries): each sum moves by the length of the range."""
        return STEPS * math.sqrt(n_queries)

    def total(self, records: Private, facts: Facts) -> Array:
        """Return the sum for each query. Private."""
        return sum_predictions(records, self.n_queries, self.n_teachers)


def count_votes(
    teachers: Iterable[npt.ArrayLike], n_queries: int, n_teachers: int, n_classes: int
) -> Array:
    """Return for each query how many teachers vote for each class, one vote a teacher. Private.

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
    """Return the sum of teachers' predictions of each query, each within 0 and `STEPS`. Private."""
    total = np.zeros(n_queries, dtype=np.int64)
    for steps in _checked(teachers, n_queries, n_teachers):
        total += np.clip(steps, 0, STEPS)
    return total.astype(np.float64)


def _checked(
    teachers: Iterable[npt.ArrayLike], n_queries: int, n_teachers: int
) -> Iterator[Answer]:
    """Yield each teacher's answers, or refuse more or fewer than there are queries or teachers."""
    n = 0
    for answer in map(np.asarray, teachers):
        if answer.shape != (n_queries,):
            raise ValueError("a teacher must give one answer for each query.")
        yield answer
        n += 1
    if n != n_teachers:
        raise ValueError(f"{n} teachers answered, and {n_teachers} were planned.")


def _check_whole(facts: Facts) -> None:
    if facts.sampling_rate is not None:
        raise ValueError("teachers' votes are not asked of a Poisson sample.")


@dataclass(frozen=True)
class GaussianWinners:
    """The class with the most votes of each query, N(0, noise_std^2) added to every count.

    Proof: docs/proofs/pate.md, section 2.

    Parameters
    ----------
    votes
        The counts.
    noise_std
        The standard deviation of the noise on each count.
    n_charged
        How many queries are paid for, if they are chosen by earlier answers; all by default.
    places
        Which queries were chosen, ``n_charged`` at most; all by default.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.queries import Facts, GaussianWinners, Session, Slot, Votes
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
        """Return one Gaussian release for each query."""
        _check_whole(facts)
        n = self.votes.n_queries if self.n_charged is None else self.n_charged
        return Repeated(Gaussian(self.noise_std / self.votes.sensitivity_of(1), facts.relation), n)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Winners]:
        """Return the winner of each query that was chosen."""
        counts, each = self.votes.total(records, facts), self.votes.sensitivity_of(1)
        if self.places is not None:
            counts = counts[list(self.places)]
        paid = len(counts) if self.n_charged is None else self.n_charged
        return gaussian_winners(
            counts, self.noise_std, facts.relation, source, sensitivity=each, n_charged=paid
        )


@dataclass(frozen=True)
class LaplaceWinners:
    """The class with the most votes of each query, Laplace(1 / gamma) added to every count.

    Proof: docs/proofs/pate.md, section 2. Each query costs 2 gamma, with delta 0.
    """

    votes: Votes
    gamma: float

    def __post_init__(self) -> None:
        if self.votes.norm is not Norm.L1:
            raise ValueError("Laplace noise goes with a sensitivity in Norm.L1.")

    def event(self, facts: Facts) -> Event:
        """Return one pure release for each query."""
        _check_whole(facts)
        each = PureEpsilon(self.votes.sensitivity_of(1) * self.gamma, facts.relation)
        return Repeated(each, self.votes.n_queries)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Winners]:
        """Return the winner of each query."""
        counts, each = self.votes.total(records, facts), self.votes.sensitivity_of(1)
        return laplace_winners(counts, self.gamma, facts.relation, source, sensitivity=each)


@dataclass(frozen=True)
class Majorities:
    """Which of two classes wins each query, N(0, noise_std^2) added to both counts.

    Proof: docs/proofs/pate.md, section 3. Only the winner leaves, which costs less than counts.
    """

    leads: Leads
    noise_std: float

    def event(self, facts: Facts) -> Event:
        """Return one noisy majority for each query.

        A teacher moves a lead by 2, in standard deviations by sqrt(2) / noise_std;
        the event is stated for a move of 2.
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
    """On which queries a share of teachers agrees, N(0, noise_std^2) added to the greatest count.

    Proof: docs/proofs/pate.md, section 2. Each answer, yes or no, is paid for.
    """

    counts: GreatestCounts
    share: float
    noise_std: float

    def event(self, facts: Facts) -> Event:
        """Return one Gaussian release for each query."""
        _check_whole(facts)
        each = Gaussian(self.noise_std / self.counts.sensitivity_of(1), facts.relation)
        return Repeated(each, self.counts.n_queries)

    def answer(
        self, records: Private, facts: Facts, source: Source
    ) -> Release[npt.NDArray[np.bool_]]:
        """Return whether each query passed."""
        least = self.share * float(self.counts.n_teachers)
        counts, each = self.counts.total(records, facts), self.counts.sensitivity_of(1)
        return gaussian_above(
            counts, least, self.noise_std, facts.relation, source, sensitivity=each
        )


@dataclass(frozen=True, eq=False)
class SharedVotes:
    """The counts of one site with its share of the noise that the sum of all sites needs.

    What is answered are steps of a lattice, modulo 2^64, masked if there is a mask.

    Proof: docs/proofs/pate.md, section 6.

    Parameters
    ----------
    votes
        The site's counts.
    noise_std
        The noise that the sum of all sites' votes must have on each count.
    n_shares
        How many sites' noise is enough for that.
    mask
        Words that cancel in the sum over all sites; whoever does not know them sees that sum alone.
    """

    votes: Votes
    noise_std: float
    n_shares: int
    mask: Words | None = None

    @property
    def share_std(self) -> float:
        """The noise that each site adds: noise_std / sqrt(n_shares), and a hair more."""
        return _A_HAIR * self.noise_std / math.sqrt(self.n_shares)

    def share(self, facts: Facts) -> NoisySum:
        """Return the counts with the site's own noise; the multiplier is rounded up."""
        multiplier = round_up(self.share_std / self.votes.sensitivity(facts).value)
        return NoisySum(self.votes, GaussianNoise(multiplier))

    def spacing(self, facts: Facts) -> float:
        """Return the lattice of every site's noise; it divides one vote."""
        return lattice_spacing(round_up(self.share(facts).noise_std(facts)))

    def sum_event(self, facts: Facts) -> Event:
        """Return what the sum of all votes costs, with the noise of ``n_shares`` sites."""
        _check_whole(facts)
        whole = self.votes.sensitivity_of(self.votes.n_queries)
        return Gaussian(self.noise_std / whole, facts.relation)

    def event(self, facts: Facts) -> Event:
        """Return what it costs: without a mask the site's own noise is all that hides its votes."""
        _check_whole(facts)
        return self.share(facts).event(facts) if self.mask is None else self.sum_event(facts)

    def answer(self, records: Private, facts: Facts, source: Source) -> Release[Words]:
        """Return the noisy counts in steps of the lattice."""
        noisy = self.share(facts).answer(records, facts, source)
        # exact: both are powers of two times whole numbers below 2^53
        steps = np.rint(np.asarray(noisy.value) / self.spacing(facts)).astype(np.int64)
        words: Words = steps.view(np.uint64)
        if self.mask is None:
            return Release(words, noisy.event)
        return Release(words + self.mask, priced(self.event(facts), source))
