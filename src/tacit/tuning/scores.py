"""How good a fitted model is: the fewer mistakes the better, counted with noise or in public."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from tacit import checks
from tacit.noise import Source
from tacit.queries import Facts, MistakeBalance, Private
from tacit.records import as_labels, as_numbers
from tacit.records.rows_and_labels import codes_of
from tacit.tuning import models

Array = npt.NDArray[np.float64]

# A residual beyond this share of the label range is as bad as any.
_RESIDUAL_SHARE = 0.25


class Score(Protocol):
    """Where a score comes from: records held out, or public ones."""

    @property
    def share(self) -> float:
        """The share of the private records that it takes; 0 for none."""


@dataclass(frozen=True)
class HeldOut:
    """Mistakes on a part of the private records, on which nothing is fitted.

    For numbers a mistake is min((residual / a quarter of the label range)^2, 1). Their sum gets
    noise; the parts are disjoint, so that fit and score together cost the larger of the two.

    Examples
    --------
    >>> from tacit.tuning import HeldOut
    >>> HeldOut(0.2).share
    0.2
    """

    share: float = 0.2
    assumptions: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not 0.0 < checks.real("share", self.share) < 1.0:
            raise ValueError(f"share must be between 0 and 1, got {self.share!r}.")


@dataclass(frozen=True, eq=False)
class PublicScore:
    """Mistakes on records that need no protection: they cost nothing, and all others train.

    The guarantee repeats that they need none.

    Parameters
    ----------
    X, y
        Records as `fit` takes them, and their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.tuning import PublicScore
    >>> PublicScore(np.ones((3, 2)), [0, 1, 1]).share
    0.0
    """

    X: Any
    y: Any
    share = 0.0
    assumptions = (
        "the records on which candidates were compared need no protection, and are none of those "
        "that it is about",
    )


def mistakes(model: Any, rows: Any, labels: Any) -> Array:
    """Return how wrong a fitted estimator is about each record that counts, from 0 to 1."""
    if not rows.shape[0]:  # which no estimator takes: an error would tell that there is none
        return np.zeros(0)
    said = model.predict(rows)
    if is_classifier(model):
        codes, known = codes_of(as_labels(labels), model.classes_)
        wrong: Array = (model.classes_[codes] != said)[known].astype(np.float64)
        return wrong
    low, high = model.label_range
    truth = np.clip(np.nan_to_num(as_numbers(labels), nan=low), low, high)
    residual = (truth - np.clip(said, low, high)) / (_RESIDUAL_SHARE * (high - low))
    # where a record overflows, NaN is said: one mistake too, or it would spoil the sum of all
    result: Array = np.where(np.abs(residual) < 1.0, residual**2, 1.0)
    return result


def mistakes_in(model: Any, rows: Any, labels: Any) -> Array:
    """Return the mistakes of a whole model, with its steps, about rows as they are encoded."""
    return mistakes(models.asked(model), models.through(rows, models.between(model)), labels)


def balance_of(model: Any) -> MistakeBalance:
    """Return what is asked for about a model's mistakes."""
    return MistakeBalance(whole=is_classifier(models.asked(model)))


@dataclass(frozen=True, eq=False)
class MistakesOf:
    """A view: the mistakes of a model that is released, or will be, in the place of the records."""

    model: Any

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return one number a record that counts."""
        return mistakes_in(self.model, *records.read()), facts


@dataclass(frozen=True, eq=False)
class MistakesOfEach:
    """A view: the mistakes of each of several models, in the place of the records."""

    models: Sequence[Any]

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return an array for each model; a failed one, or one that cannot say, is always wrong."""
        rows, labels = records.read()
        return [self._mistakes(model, rows, labels) for model in self.models], facts

    def _mistakes(self, model: Any, rows: Any, labels: Any) -> Array:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one that is an error would be about every record
                return mistakes_in(model, rows, labels)
        except Exception:
            return np.ones(rows.shape[0])
