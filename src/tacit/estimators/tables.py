"""Check tables and weights: columns before the charge, values after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from tacit.erm import Balanced, Mechanism
from tacit.erm.mechanisms.balanced import balanced_exactly
from tacit.estimators.parameters import Assumed, UndeclaredWarning, column_names, warn
from tacit.privacy import Budget
from tacit.records import Block, Bounds, MemoryRecords, RecordSource
from tacit.records.bounds import checked_max_weight
from tacit.records.grouped import PeopleInSource
from tacit.records.lazy_table import MappedTable, TableInMemory, UnreadRecords, UnreadTable
from tacit.records.reweighted import ClassWeights, ReweightedRecords, weighted_bounds
from tacit.records.rows_and_labels import as_rows, as_weights, check_one_weight_each
from tacit.table_facts import EncodedTable

_NOT_GIVEN = "no_validation"  # scikit-learn's marker for an estimator without labels


def note_columns(
    estimator: Any,
    X: Any,
    y: Any = _NOT_GIVEN,
    *,
    unit: Any = None,
    first: bool = True,
    sparse: bool = True,
) -> tuple[UnreadTable, Assumed]:
    """Return a table that is not read yet, and its facts that a guarantee must mention.

    ``unit`` names the person of each record, if given. ``sparse`` says whether the estimator
    accepts sparse arrays. Sets ``n_features_in_`` and ``feature_names_in_`` if ``first``, else
    compares with them.
    """
    if isinstance(X, RecordSource):
        if not (y is None or isinstance(y, str)):
            raise ValueError("a record source brings its own labels; pass None for y.")
        if unit is not None:
            PeopleInSource(X, unit)  # refuses invalid combinations, and reads nothing
        X, unit = UnreadRecords(X, unit=unit), None
    if isinstance(X, UnreadTable):
        if unit is not None:
            raise ValueError(
                "this table already has a unit column, or none; do not pass unit= as well."
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


def rows_for_prediction(estimator: Any, X: Any) -> Any:
    """Return rows with the columns of the fit; error messages repeat no value."""
    rows, _ = as_rows(X)
    _check_columns(estimator, X, reset=False)
    return rows


def _check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    # Check names and number of columns only: scikit-learn's checks of values would quote them.
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def clipped_scores(estimator: Any, X: Any, coef: Any) -> npt.NDArray[np.float64]:
    """Return <coef, x> for rows scaled to the norm of the fit.

    The model was fitted to rows of norm at most ``row_norm``. A longer row is scaled down as in the
    fit, so that the intercept keeps its relative weight. A score depends on its row alone, to the
    last bit: evaluations count records by their scores.
    """
    rows = rows_for_prediction(estimator, X)
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
    """The weights of records: ``max_weight`` bounds their own, ``of_classes`` is per class.

    Each is None without such weights; ``of_classes`` is "balanced" if the classes are to be
    counted.
    """

    max_weight: float | None = None
    of_classes: Mapping[Any, float] | str | None = None

    @property
    def _is_balanced(self) -> bool:
        return isinstance(self.of_classes, str)

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the bounds of records with these weights."""
        bounds = replace(bounds, max_weight=self.max_weight)
        return bounds if self.of_classes is None else weighted_bounds(bounds)

    def ridge(self, declared: float | None, n_classes: int | None) -> float | None:
        """Return the ridge for weights scaled to at most 1, from the declared ridge.

        sum a_i l_i + (lam/2) ||w||^2 has the same minimiser after division by the greatest weight
        A. Balancing weights are not known yet; the greatest of them is 1.
        """
        greatest = self.max_weight or 1.0
        if self.of_classes is not None and not isinstance(self.of_classes, str):
            rest = [1.0] if len(self.of_classes) < (n_classes or 0) else []
            greatest *= max([*self.of_classes.values(), *rest])
        return None if declared is None else declared / greatest

    def mechanism(self, mechanism: str | Mechanism) -> str | Mechanism:
        """Return the mechanism, wrapped to count the classes first if requested."""
        counts = not isinstance(mechanism, str) and mechanism.counts_classes
        return Balanced(mechanism) if self._is_balanced and not counts else mechanism

    def of_records(
        self, budget: Budget, classes: npt.NDArray[Any] | None
    ) -> Callable[[RecordSource], RecordSource]:
        """Return a function that weights records by class, if requested."""
        if self.of_classes is None or classes is None:
            return lambda records: records
        if isinstance(self.of_classes, str):
            # with a finite budget, the mechanism counts the classes privately
            return balanced_exactly if budget.is_infinite else lambda records: records
        shares = _shares(self.of_classes, classes)
        return lambda records: ReweightedRecords(records, ClassWeights(shares))


def weights_of(max_weight: Any, class_weight: Any, *, own: bool) -> Weights:
    """Return the weights of an estimator's parameters; ``own``: records have weights too."""
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


def checked_weights(
    sample_weight: Any, table: UnreadTable
) -> Callable[[], npt.NDArray[np.float64]] | None:
    """Return a function that reads the weights of a table's records, if there are any.

    Weights for records that cannot have them are refused, before anything is read.
    """
    if isinstance(table, MappedTable):
        table = table.table
    if isinstance(table, EncodedTable) and table.weigh is not None and sample_weight is None:
        return table.weigh
    if sample_weight is None:
        return None
    if not isinstance(table, TableInMemory):
        raise ValueError(
            "sample_weight goes with rows in memory; a record source brings its own weights."
        )
    n_rows = table.n_rows
    check_one_weight_each(sample_weight, n_rows)
    return lambda: as_weights(sample_weight, n_rows)


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
    """Return the weight of each class over the greatest weight; a class not named weighs 1."""
    names = classes.tolist()
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is not a class; name classes as in classes."
        )
    own = [weights.get(name, 1.0) for name in names]
    return tuple(weight / max(own) for weight in own)
