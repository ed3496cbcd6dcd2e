"""What is public of weights: the greatest that a record may have, and those of the classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy.typing as npt

from tacit.erm import Balanced, Mechanism, balanced_exactly
from tacit.privacy import Budget
from tacit.public_facts import UndeclaredWarning, warn
from tacit.records import (
    Bounds,
    ClassWeights,
    MappedTable,
    RecordSource,
    ReweightedRecords,
    TableInMemory,
    UnreadTable,
)
from tacit.records.bounds import checked_max_weight
from tacit.records.reweighted import weighted_bounds
from tacit.records.weights import check_one_weight_each

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
