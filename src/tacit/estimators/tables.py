"""Tables and weights as estimators meet them: columns noted first, values read later."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from tacit.erm import Balanced, Mechanism, balanced_exactly
from tacit.estimators.parameters import Assumed, UndeclaredWarning, column_names, warn
from tacit.privacy import Budget
from tacit.records import (
    Block,
    Bounds,
    ClassWeights,
    MappedTable,
    MemoryRecords,
    RecordSource,
    ReweightedRecords,
    TableInMemory,
    UnreadRecords,
    UnreadTable,
    as_rows,
)
from tacit.records.bounds import checked_max_weight
from tacit.records.grouped import PeopleInSource
from tacit.records.reweighted import weighted_bounds
from tacit.records.rows_and_labels import check_one_weight_each
from tacit.table_facts import EncodedTable

_NOT_GIVEN = "no_validation"  # scikit-learn's word for an estimator without labels


def note_columns(
    estimator: Any,
    X: Any,
    y: Any = _NOT_GIVEN,
    *,
    unit: Any = None,
    first: bool = True,
    sparse: bool = True,
) -> tuple[UnreadTable, Assumed]:
    """Return a table that is not read yet, and what it brings that a guarantee must speak of.

    ``unit`` says whose each record is, if anything does; ``sparse`` whether the estimator takes
    sparse arrays. Sets ``n_features_in_`` and ``feature_names_in_``, or compares with them if not
    ``first``.
    """
    if isinstance(X, RecordSource):
        if not (y is None or isinstance(y, str)):
            raise ValueError("a record source brings its own labels; pass None for y.")
        if unit is not None:
            PeopleInSource(X, unit)  # refuses what cannot be, and reads nothing
        X, unit = UnreadRecords(X, unit=unit), None
    if isinstance(X, UnreadTable):
        if unit is not None:
            raise ValueError(
                "the table says itself whose each record is, or not at all; pass no unit with it."
            )
        estimator.n_features_in_ = X.n_columns
        if isinstance(X, UnreadRecords):
            return X, X
        return X, X.facts if isinstance(X, EncodedTable | MappedTable) else column_names(None)
    labelled = not (isinstance(y, str) and y == _NOT_GIVEN)
    if labelled and y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if hasattr(X, "tocsr") and not sparse:
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert "
            "to a dense numpy array."
        )
    table = TableInMemory(X, y if labelled else None, unit)
    _check_columns(estimator, X, reset=first)
    return table, column_names(getattr(estimator, "feature_names_in_", None))


def rows_to_ask_about(estimator: Any, X: Any) -> Any:
    """Return rows of the columns that the estimator was fitted on; errors repeat no value."""
    rows, _ = as_rows(X)
    _check_columns(estimator, X, reset=False)
    return rows


def _check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    # Names and numbers of columns alone; scikit-learn's look at the values would quote them.
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def clipped_scores(estimator: Any, X: Any, coef: Any) -> npt.NDArray[np.float64]:
    """Return <coef, x> for rows scaled to the norm the model was fitted on.

    A model that only ever saw rows of norm at most ``row_norm`` is asked about such rows: a longer
    one is scaled down as it would have been in the fit, so that its intercept keeps its weight.
    A score is a function of its row, to the last bit: an evaluation counts records by theirs.
    """
    rows = rows_to_ask_about(estimator, X)
    records = MemoryRecords(rows, None, Bounds(row_norm=estimator.row_norm_))
    factors = records.clip_factors()
    with np.errstate(over="ignore", invalid="ignore"):
        scores = Block(records.rows, factors, None, 0.0).steady_scores(coef)
    scores[factors == 0.0] = 0.0  # as in the fit, where such a row counts as zeros
    return scores


BALANCED = "balanced"
UNDECLARED_MAX_WEIGHT = 1.0


@dataclass(frozen=True)
class Weights:
    """How much records may count: ``max_weight`` of their own, ``of_classes`` for their class.

    Each is None where there is no such weight; ``of_classes`` is "balanced" where the classes are
    to be counted.
    """

    max_weight: float | None = None
    of_classes: Mapping[Any, float] | str | None = None

    @property
    def _is_balanced(self) -> bool:
        return isinstance(self.of_classes, str)

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return bounds of records that are weighted so."""
        bounds = replace(bounds, max_weight=self.max_weight)
        return bounds if self.of_classes is None else weighted_bounds(bounds)

    def ridge(self, declared: float | None, n_classes: int | None) -> float | None:
        """Return a ridge that is declared beside weighted losses, for weights of at most 1.

        sum a_i l_i + (lam/2) ||w||^2 and its parts over A have the same minimiser. Weights that
        balance classes are not known yet: of those the greatest is 1.
        """
        greatest = self.max_weight or 1.0
        if self.of_classes is not None and not isinstance(self.of_classes, str):
            rest = [1.0] if len(self.of_classes) < (n_classes or 0) else []
            greatest *= max([*self.of_classes.values(), *rest])
        return None if declared is None else declared / greatest

    def mechanism(self, mechanism: str | Mechanism) -> str | Mechanism:
        """Return the mechanism, after counting the classes if that is asked for."""
        counts = not isinstance(mechanism, str) and mechanism.counts_classes
        return Balanced(mechanism) if self._is_balanced and not counts else mechanism

    def of_records(
        self, budget: Budget, classes: npt.NDArray[Any] | None
    ) -> Callable[[RecordSource], RecordSource]:
        """Return what weights records by class, if they are to be."""
        if self.of_classes is None or classes is None:
            return lambda records: records
        if isinstance(self.of_classes, str):
            # with a budget, the mechanism counts them
            return balanced_exactly if budget.is_infinite else lambda records: records
        shares = _shares(self.of_classes, classes)
        return lambda records: ReweightedRecords(records, ClassWeights(shares))


def weights_of(max_weight: Any, class_weight: Any, *, own: bool) -> Weights:
    """Return the weights of an estimator's parameters; ``own``, if records have some too."""
    checked = _checked(class_weight)
    if max_weight is not None:
        max_weight = checked_max_weight(max_weight)
    elif own:
        warn(
            f"max_weight is not declared, so it is {UNDECLARED_MAX_WEIGHT}: greater weights count "
            "as that, and noise is proportional to it. Pass max_weight=..., the greatest weight "
            "that is possible, known without looking at the weights.",
            UndeclaredWarning,
        )
        max_weight = UNDECLARED_MAX_WEIGHT
    return Weights(max_weight if own else None, checked)


def check_weights(sample_weight: Any, table: UnreadTable) -> None:
    """Refuse weights of records that cannot have them, before anything is read."""
    if sample_weight is None:
        return
    if isinstance(table, MappedTable):
        table = table.table
    if not isinstance(table, TableInMemory):
        raise ValueError(
            "sample_weight goes with rows in memory; a record source brings its own weights, and "
            "a TableModel takes none."
        )
    check_one_weight_each(sample_weight, table.n_rows)


def _checked(declared: Any) -> Mapping[Any, float] | str | None:
    if declared is None or (isinstance(declared, str) and declared == BALANCED):
        return declared
    if not isinstance(declared, Mapping):
        raise ValueError(
            f"class_weight must be a weight for each class, {{class: number}}, 'balanced' or None, "
            f"got {declared!r}."
        )
    values = list(declared.values())
    good = all(isinstance(v, Real) and 0.0 <= float(v) < math.inf for v in values)
    if not good or not any(values):
        raise ValueError(
            f"weights of classes must be finite and not negative, and one of them positive, got "
            f"{dict(declared)!r}; pass {{class: number}}."
        )
    return {name: float(value) for name, value in declared.items()}


def _shares(weights: Mapping[Any, float], classes: npt.NDArray[Any]) -> tuple[float, ...]:
    """Return the weight of each class over the greatest; a class that is not named weighs 1."""
    names = classes.tolist()
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is not a class; name classes as in classes."
        )
    own = [weights.get(name, 1.0) for name in names]
    return tuple(weight / max(own) for weight in own)
