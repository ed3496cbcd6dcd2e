"""Train teachers, each on one part of the records, and collect their votes on all queries."""

from __future__ import annotations

import struct
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.privacy import Relation
from tacit.queries import Facts
from tacit.records import Bounds

Places = npt.NDArray[np.int64]
VotesOfOne = npt.NDArray[np.uint16]
Said = Callable[[int, int], None]

# Held while a teacher works: NumPy's global generator and warning filters are shared by threads.
_ALONE = threading.RLock()
# The vote of a teacher that has no records, fails, or predicts no known class.
CONSTANT = 0


def each_vote(
    teacher: Any,
    parts: Sequence[Places],
    rows: Any,
    codes: Places,
    classes: npt.NDArray[Any],
    queries: Any,
    key: bytes,
    n_jobs: int | None = None,
    progress: Said | None = None,
) -> Iterator[VotesOfOne]:
    """Yield the votes of each teacher in turn, a class number per query; no teacher is stored.

    Parameters
    ----------
    teacher
        A classifier that is cloned, unfitted, for every part.
    parts
        The positions of each teacher's records.
    rows, codes
        The records: their rows, and for each the number of its class.
    classes
        The classes.
    queries
        Public rows.
    key
        The key from which each teacher's seed is derived.
    n_jobs
        The number of teachers to train in parallel, in separate processes.
    progress
        Called with the number of finished teachers and the total.

    Notes
    -----
    **Guarantee**. A teacher's votes are a function of its own part, the key and public facts,
    in every case: an exception, a warning or an invalid answer is a vote for the first
    class. So a record changes the votes of one teacher.

    **Assumes** that a teacher draws random numbers only from its ``random_state``, NumPy's global
    generator or the system, and that it does not end its process.
    """
    say = partial(vote, teacher, classes, queries)
    return each_answer(say, parts, rows, codes, key, n_jobs, progress)


def each_answer(
    say: Callable[[Any, Any, int], Any],
    parts: Sequence[Places],
    rows: Any,
    labels: Any,
    key: bytes,
    n_jobs: int | None = None,
    progress: Said | None = None,
) -> Iterator[Any]:
    """Yield each teacher's answers, a function of its rows, their labels and its seed alone."""
    jobs = ((say, (rows[part], labels[part], seed_of(key, i))) for i, part in enumerate(parts))
    for done, one in enumerate(answers_of(jobs, n_jobs), start=1):
        if progress is not None:
            progress(done, len(parts))
        yield one


def answers_of(
    jobs: Iterator[tuple[Callable[..., Any], tuple[Any, ...]]], n_jobs: int | None
) -> Iterator[Any]:
    """Yield the result of each job, in order, a few at a time."""
    if n_jobs in (None, 1):
        for work, given in jobs:
            yield work(*given)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(work)(*given) for work, given in jobs
    )


def seed_of(key: bytes, index: int) -> int:
    """Return the seed of a teacher."""
    digest = blake2b(struct.pack("<q", index), key=key[:64], digest_size=4).digest()
    return int.from_bytes(digest, "little")


def vote(
    teacher: Any, classes: npt.NDArray[Any], queries: Any, rows: Any, codes: Places, seed: int
) -> VotesOfOne:
    """Return the votes of one teacher for all queries; errors become constant votes."""
    present = np.unique(codes)
    if present.size <= 1:
        said = int(present[0]) if present.size else CONSTANT
        return np.full(queries.shape[0], said, dtype=np.uint16)

    def learned() -> VotesOfOne:
        predicted = fitted(teacher, rows, classes[codes]).predict(queries)
        return _as_codes(predicted, classes, queries.shape[0])

    constant = np.full(queries.shape[0], CONSTANT, dtype=np.uint16)
    said_of_each: VotesOfOne = undisturbed(learned, seed, constant)
    return said_of_each


def fitted(teacher: Any, rows: Any, labels: npt.NDArray[Any]) -> Any:
    """Return a copy of the teacher, fitted."""
    from sklearn.base import clone

    return clone(teacher).fit(rows, labels)


def undisturbed(work: Callable[[], Any], seed: int, otherwise: Any) -> Any:
    """Return the result of ``work``, or ``otherwise`` if it fails; it can neither warn nor raise.

    NumPy's global generator is seeded for the call and restored afterwards. Calls in several
    threads (joblib's, or those of two fits) run one after the other: otherwise the draws of another
    teacher would reveal its records.
    """
    with _ALONE:
        # The legacy generator, since scikit-learn draws from it by default.
        state = np.random.get_state()  # noqa: NPY002
        np.random.seed(seed)  # noqa: NPY002
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return work()
        except Exception:  # an error would reveal one record
            return otherwise
        finally:
            np.random.set_state(state)  # noqa: NPY002


def _as_codes(predicted: Any, classes: npt.NDArray[Any], n_queries: int) -> VotesOfOne:
    """Return the number of each predicted class; an unknown one becomes the first."""
    said = np.asarray(predicted).reshape(-1)
    if said.shape != (n_queries,):
        raise ValueError("a teacher must predict one class for each query.")
    places = np.clip(np.searchsorted(classes, said), 0, len(classes) - 1)
    known = classes[places] == said
    return np.where(known, places, CONSTANT).astype(np.uint16)


def facts_of(relation: Relation) -> Facts:
    """Return the public facts of teachers: the relation under which a record is one teacher's."""
    return Facts(Bounds(), 1, relation)
