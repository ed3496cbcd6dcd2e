"""What an estimator may know before it reads a record: declared, typed, or inferred on request.

Each function returns the fact and, where it was read off the data because the user said
``"infer"``, the sentence the guarantee must repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.noise import Source, seeded_source
from tacit.privacy import Budget, Relation

INFER = "infer"
_INFERRED = "{what} read off the data ('infer') does not have to be protected"


def budget_of(epsilon: float, delta: float, relation: Relation | str) -> Budget:
    """Return the budget of an estimator's parameters."""
    if isinstance(relation, str):
        try:
            relation = Relation(relation)
        except ValueError:
            raise ValueError(
                f"relation must be 'add_remove' or 'replace', got {relation!r}."
            ) from None
    return Budget(epsilon, delta, relation)


def source_of(random_state: int | None) -> Source | None:
    """Return a seeded source for tests, or None for a secure one."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        return seeded_source(int(random_state.randint(2**31)))
    return seeded_source(int(random_state))


def classes_of(declared: Any, labels: Any) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Return the classes: declared, or typed (bool, Categorical, Enum), or inferred."""
    if isinstance(declared, str) and declared == INFER:
        return np.unique(np.asarray(labels)), (_INFERRED.format(what="the list of classes"),)
    if declared is not None:
        classes = np.unique(np.asarray(declared))
        if classes.ndim != 1 or classes.size != len(declared):
            raise ValueError(f"classes must be distinct labels, got {declared!r}.")
        return classes, ()
    typed = _typed_classes(labels)
    if typed is not None:
        return np.unique(np.asarray(typed)), ()
    raise ValueError(
        "classes is not declared, and reading the list of classes off the data would leak it: a "
        "class that occurs once tells that its record is there. Pass classes=[...], or labels of "
        "type bool, pandas Categorical or polars Enum, or classes='infer' to accept the leak."
    )


def _typed_classes(labels: Any) -> Sequence[Any] | None:
    if getattr(labels, "dtype", None) == np.bool_:
        return [False, True]
    categories = getattr(getattr(labels, "dtype", None), "categories", None)
    if categories is None:
        return None
    return list(categories.to_list() if hasattr(categories, "to_list") else categories)


def is_inferred(declared: Any) -> bool:
    """Return whether the user said ``"infer"``."""
    return isinstance(declared, str) and declared == INFER


def codes_of(
    labels: npt.NDArray[Any], classes: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return each label's position in ``classes`` and whether it is among them at all."""
    if labels.dtype.kind == "O":
        # Compared as they are: converting could truncate a label, or print it in an error.
        place = {value: code for code, value in enumerate(classes.tolist())}
        found = np.array([place.get(value, -1) for value in labels.tolist()], dtype=np.int64)
        return np.maximum(found, 0), found >= 0
    if (labels.dtype.kind in "US") != (classes.dtype.kind in "US"):
        raise ValueError(
            f"labels are of type {labels.dtype} and classes of type {classes.dtype}: no record "
            "would count; declare classes of the labels' own type."
        )
    codes = np.clip(np.searchsorted(classes, labels), 0, classes.size - 1)
    return codes, np.asarray(classes[codes] == labels)


def label_range_of(
    declared: Any, labels: npt.NDArray[Any]
) -> tuple[tuple[float, float], tuple[str, ...]]:
    """Return the range to which labels are clipped."""
    if isinstance(declared, str) and declared == INFER:
        low, high = float(np.min(labels)), float(np.max(labels))
        if low == high:
            low, high = low - 0.5, high + 0.5
        return (low, high), (_INFERRED.format(what="the range of the labels"),)
    if declared is None:
        raise ValueError(
            "label_range is not declared, and the least and greatest label are themselves "
            "records. Pass label_range=(low, high), or 'infer' to accept the leak."
        )
    low, high = declared
    return (float(low), float(high)), ()


def n_records_of(
    declared: int | str | None, n_rows: int | None, relation: Relation
) -> tuple[int | None, tuple[str, ...]]:
    """Return the public number of records, or None where it is private."""
    if isinstance(declared, str):
        if declared != INFER:
            raise ValueError(f"n_records must be a number, None or 'infer', got {declared!r}.")
        return n_rows, (_INFERRED.format(what="the number of records"),)
    if declared is None and relation is Relation.REPLACE:
        raise ValueError(
            "under REPLACE the number of records is public, but n_records is not declared; pass "
            "n_records=..., or 'infer' to publish the number of rows."
        )
    return declared, ()
