"""The second moment of rows with symmetric noise, and its leading directions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.noise import Release, Source
from tacit.privacy import Relation
from tacit.queries import Facts, GaussianNoise, NoisySum, SecondMoment, Session, Slot
from tacit.queries.second_moment import unpack
from tacit.records import Bounds, RecordSource

Array = npt.NDArray[np.float64]


def second_moment_reach(bounds: Bounds, relation: Relation) -> float:
    """Return how far one record moves a second moment: R^2, or sqrt(2) R^2 if it is replaced."""
    return SecondMoment().sensitivity(Facts(bounds, 1, relation)).value


def noisy_second_moment(
    records: RecordSource, noise_multiplier: float, relation: Relation, source: Source | None = None
) -> Release[Array]:
    """Release the second moment with symmetric Gaussian noise (Analyze Gauss).

    Entries on the diagonal have noise of standard deviation s = ``noise_multiplier`` times the
    sensitivity, others s / sqrt(2).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.second_moment import noisy_second_moment
    >>> from tacit.privacy import Relation
    >>> from tacit.records import Bounds, MemoryRecords
    >>> records = MemoryRecords(np.ones((50, 3)), None, Bounds(row_norm=2.0))
    >>> moment = noisy_second_moment(records, 4.0, Relation.ADD_REMOVE).value
    >>> moment.shape, bool(np.all(moment == moment.T))
    ((3, 3), True)
    """
    facts = Facts(records.bounds, records.n_features, relation)
    query = NoisySum(SecondMoment(), GaussianNoise(noise_multiplier))
    slots = {"second moment": Slot(query.event(facts))}
    session = Session(records, facts, query.event(facts), slots, source)
    moment = unpack(np.asarray(session.ask(query, "second moment")), facts.n_coordinates)
    return session.release(moment)


def top_directions(moment: Array, n_directions: int) -> Array:
    """Return unit vectors of the greatest eigenvalues, as rows, the greatest first.

    The largest number of each is positive, so that equal moments give equal directions.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.erm.second_moment import top_directions
    >>> top_directions(np.diag([1.0, 9.0, 4.0]), 2)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    _, vectors = np.linalg.eigh(moment)
    leading = vectors[:, ::-1][:, :n_directions].T
    largest = np.abs(leading).argmax(axis=1)
    signs = np.where(leading[np.arange(len(leading)), largest] < 0, -1.0, 1.0)
    directions: Array = leading * signs[:, None] + 0.0
    return directions
