"""Records that are held out of a fit, and counted in its evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.metrics.evaluating import counted_on
from tacit.metrics.planning import EvaluationPlan
from tacit.noise import Source, secure_source
from tacit.noise.release import priced
from tacit.privacy import Relation
from tacit.records.parts import new_key, parts_of
from tacit.records.people import people_of
from tacit.records.unread import has_people, read_people
from tacit.table_facts import EncodedTable

_LEARN, _TRY = 0, 1


class Parts:
    """The two parts of a table: to learn from, and to try the model on.

    Contract: what is learned sees the first part alone, and the count the second, so that their
    events are those of a `Parallel` release.
    """

    def __init__(self, share: float, relation: Relation, source: Source | None) -> None:
        self._share, self._relation, self._source = share, relation, source
        self._tried: EncodedTable | None = None

    def to_learn_from(self, table: EncodedTable) -> EncodedTable:
        """Return the part to learn from; the other is kept for `counted`."""
        if not self._share:
            return table
        rows, labels = table.read()
        people = read_people(table) if has_people(table) else None
        key = new_key(secure_source() if self._source is None else self._source)
        shares = (1.0 - self._share, self._share)
        part = parts_of(
            shares, key, self._relation, rows, labels, people=people, positions=table.places
        )
        self._tried = _some(table, part == _TRY, self._share)
        return _some(table, part == _LEARN, 1.0 - self._share)

    def counted(self, plan: EvaluationPlan, fitted: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Release what the evaluation counts of the records that were held out."""
        assert self._tried is not None
        rows, labels = self._tried.read()
        *before, estimator = fitted.values()
        for step in before:
            if rows.shape[0] and not hasattr(step, "schema"):  # of no rows none is made
                rows = step.transform(rows)
        people = people_of(self._tried.identifiers()) if self._tried.has_people else None
        release = counted_on(plan, estimator, rows, labels, people, self._source)
        charged = plan.event if self._source is None else priced(plan.event, self._source)
        if release.event != charged:
            raise RuntimeError(
                f"the evaluation released {release.event} but {charged} was planned: it is "
                "withheld. This is a bug; please report it as SECURITY.md says."
            )
        return release.value


def _some(table: EncodedTable, chosen: npt.NDArray[np.bool_], share: float) -> EncodedTable:
    """Return some records of a table that was read, with whose they are."""
    rows, labels = table.read()
    kept = rows[chosen], None if labels is None else labels[chosen]
    named = None
    if table.named is not None:
        named = [who for who, keep in zip(table.named, chosen.tolist(), strict=True) if keep]
    n = table.facts.n_records
    facts = replace(table.facts, n_records=None if n is None else n_of(n, share))
    return EncodedTable(facts, lambda: kept, named=named)  # of which no part is taken again


def n_of(n_records: int, share: float) -> int:
    """Return about how many of the records a part has: a public number, if theirs is."""
    return max(round(n_records * share), 1)
