"""Analyse an ensemble of teachers on public data: consensus, accuracy and cost by noise.

Nothing here is private, so it is not in the package: votes are used without noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.estimators.parameters import classes_of, codes_of
from tacit.noise import Release, Source, secure_source
from tacit.pate.aggregators import Aggregator, Answers, GNMax, LNMax, Majority
from tacit.pate.classifier import PATEClassifier, default_teacher
from tacit.pate.teachers import each_vote, facts_of
from tacit.privacy import Guarantee, Relation
from tacit.privacy.accounting.composition import ORDERS
from tacit.queries import Held, Session, Votes
from tacit.queries.votes import count_votes
from tacit.queries.votes_cost import votes_renyi
from tacit.records import as_labels, as_rows
from tacit.records.splits import new_key, places_of_parts

Array = npt.NDArray[np.float64]

_STDS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_BINS = np.linspace(0.0, 1.0, 21)
NOT_PRIVATE = "computed from votes without noise: for public data only, and nothing to publish"


@dataclass(frozen=True, eq=False)
class Analysis:
    """Statistics of votes and their cost. Not private: for public data.

    Attributes
    ----------
    consensus
        The number of queries by the winner's share of teachers, in twenty bins.
    right
        For each noise_std the share of queries that would be answered correctly if the true
        labels are known, else as most teachers vote.
    epsilon
        For each number of queries (rows) the epsilon by worst case, by the votes, and of Laplace
        noise with the same standard deviation, all at the fourth noise_std, or the last of fewer.
    """

    n_queries: tuple[int, ...]
    noise_stds: tuple[float, ...]
    consensus: npt.NDArray[np.int64]
    right: Array
    epsilon: Array
    delta: float

    def __str__(self) -> str:
        lines = [NOT_PRIVATE, "", "queries  worst case  by the votes  Laplace"]
        for n, (worst, votes, laplace) in zip(self.n_queries, self.epsilon.tolist(), strict=True):
            lines.append(f"{n:7d}  {worst:10.3f}  {votes:12.3f}  {laplace:7.3f}")
        lines += ["", "noise_std  right"]
        lines += [f"{std:9g}  {r:.3f}" for std, r in zip(self.noise_stds, self.right, strict=True)]
        lines += ["", "consensus  queries"]
        shares = zip(_BINS[:-1].tolist(), self.consensus.tolist(), strict=True)
        lines += [f"{low:9.2f}  {count}" for low, count in shares if count]
        return "\n".join(lines)


def analysis(
    model: PATEClassifier,
    X: Any,
    y: Any,
    X_public: Any,
    y_public: Any = None,
    *,
    noise_stds: Sequence[float] = _STDS,
) -> Analysis:
    """Analyse the teachers of a model on public records.

    Nothing is charged and nothing is protected: votes are used without noise. Use it on
    published data that resemble yours, to choose the numbers of teachers and queries.

    Parameters
    ----------
    model
        A `PATEClassifier`; only its teacher, n_teachers, classes, delta and n_jobs are used.
    X, y
        Public records with their labels.
    X_public, y_public
        Rows to vote on, all of them, and their labels, if known.
    noise_stds
        Noise levels to try; `Analysis.epsilon` is for the fourth, or the last of fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from pate_analysis import analysis
    >>> from tacit.pate import PATEClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.standard_normal((4000, 2)), rng.standard_normal((100, 2))
    >>> model = PATEClassifier(GaussianNB(), 40, classes=[False, True], delta=1e-5)
    >>> found = analysis(model, X, X[:, 0] > 0, pool, pool[:, 0] > 0)
    >>> bool(found.right[0] > 0.9 > found.right[-1])
    True
    """
    teacher = default_teacher() if model.teacher is None else model.teacher
    classes = classes_of(model.classes, y).value
    (rows, _), (queries, _) = as_rows(X), as_rows(X_public)
    codes, known = codes_of(as_labels(y), classes)
    key = new_key(secure_source())
    parts = places_of_parts(model.n_teachers, key, Relation.ADD_REMOVE, rows, as_labels(y))
    parts = [part[known[part]] for part in parts]
    each = each_vote(teacher, parts, rows, codes, classes, queries, key, n_jobs=model.n_jobs)
    votes = count_votes(each, queries.shape[0], len(parts), len(classes))
    truth = votes.argmax(axis=1)
    if y_public is not None:
        truth, _ = codes_of(as_labels(y_public), classes)
    stds = tuple(float(std) for std in noise_stds)
    return _analysed(votes, truth, stds, model.delta)


def _analysed(
    votes: Array, truth: npt.NDArray[np.int64], stds: tuple[float, ...], delta: float
) -> Analysis:
    share = votes.max(axis=1) / votes.sum(axis=1)
    two = votes.shape[1] == 2
    right = [_right(Majority(std) if two else GNMax(std), votes, truth) for std in stds]
    std = stds[min(3, len(stds) - 1)]
    numbers = tuple(sorted({max(len(votes) // k, 1) for k in (1, 2, 4, 8)}))
    exact: Aggregator = Majority(std) if two else GNMax(std)
    # Laplace noise of the same standard deviation: sqrt(2) / gamma
    laplace = LNMax(float(np.sqrt(2.0) / std))
    epsilon = [
        [
            _worst(exact, n, delta),
            epsilon_by_votes(votes[:n], std, delta),
            _worst(laplace, n, delta),
        ]
        for n in numbers
    ]
    counts = np.histogram(share, _BINS)[0]
    return Analysis(numbers, stds, counts, np.array(right), np.array(epsilon), delta)


def _right(aggregator: Aggregator, votes: Array, truth: npt.NDArray[np.int64]) -> float:
    said = [answers_to(aggregator, votes, Relation.ADD_REMOVE).value for _ in range(9)]
    return float(np.mean([one == truth for one in said]))


def answers_to(
    aggregator: Aggregator, counts: Array, relation: Relation, source: Source | None = None
) -> Release[Answers]:
    """Apply an aggregator to votes (queries x classes) that need no protection.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate import GNMax
    >>> from pate_analysis import answers_to
    >>> from tacit.privacy import Relation
    >>> answers_to(GNMax(2.0), np.array([[90.0, 10.0], [5.0, 95.0]]), Relation.REPLACE).value
    array([0, 1])
    """
    n_queries, n_classes = counts.shape
    votes, facts = Votes(n_queries, int(counts[0].sum()), n_classes), facts_of(relation)
    event, slots = aggregator.event(n_queries, relation), aggregator.slots(votes, facts)
    session = Session(None, facts, event, slots, source)
    return session.release(aggregator.answers(session, votes, Held(counts, votes)))


def _worst(aggregator: Aggregator, n_queries: int, delta: float) -> float:
    return Guarantee(aggregator.event(n_queries, Relation.ADD_REMOVE)).epsilon(delta)


def epsilon_by_votes(votes: Array, noise_std: float, delta: float) -> float:
    """Return the epsilon by Theorem 6, at the best order; it is itself private."""
    total = votes_renyi(votes, noise_std, ORDERS)
    epsilon = total + np.log1p(-1 / ORDERS) - np.log(delta * ORDERS) / (ORDERS - 1)
    return max(float(np.min(epsilon)), 0.0)
