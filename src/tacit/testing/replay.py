"""Replay a fit on neighbouring data with the first run's noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tacit.noise import recording, replaying
from tacit.noise.tape import Entry

Data = TypeVar("Data")


def replay(fit: Callable[[Data], object], data: Data, neighbour: Data) -> int:
    """Run ``fit`` on both data sets, the second with the mechanism outputs of the first.

    With the outputs held fixed, neighbours may differ only in the value that each mechanism
    receives, and that by no more than its declared sensitivity.

    Parameters
    ----------
    fit
        Runs the whole computation on one data set.
    data, neighbour
        Two data sets that are neighbours under the relation ``fit`` declares. Try extreme cases:
        one extreme record, opposite labels, an empty class.

    Returns
    -------
    int
        Number of compared releases.

    Raises
    ------
    tacit.noise.ReplayMismatch
        If a value moved by more than its sensitivity, or the sequence of releases, an event or a
        public decision differs.

    Notes
    -----
    Passing is evidence, not proof: only these two data sets and this run were compared. A fit
    that releases nothing is refused, since nothing would be compared.

    Examples
    --------
    >>> from tacit.noise import Norm
    >>> from tacit.noise.bounded import Bounded
    >>> from tacit.noise.gaussian import gaussian
    >>> from tacit.privacy import Relation
    >>> from tacit.testing import replay
    >>> def total(ages):
    ...     clipped = float(sum(min(max(age, 0), 100) for age in ages))
    ...     return gaussian(Bounded(clipped, 100.0, Norm.L2, Relation.ADD_REMOVE), 1.0)
    >>> replay(total, [20, 50, 1000], [20, 50])
    1
    """
    with recording() as tape:
        fit(data)
    releases = sum(isinstance(entry, Entry) for entry in tape.entries)
    if releases == 0:
        raise AssertionError(
            "fit released nothing through tacit.noise, so there is nothing to compare; whatever "
            "it returned was not made private by tacit."
        )
    with replaying(tape):
        fit(neighbour)
    return releases
