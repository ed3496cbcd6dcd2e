"""How good a fitted model is: the fewer mistakes the better, counted with noise or in public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from tacit import checks
from tacit.noise import Bounded, Norm, bounded_sum
from tacit.privacy import Relation
from tacit.public_facts import codes_of
from tacit.records import as_labels, as_numbers

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


def balance(model: Any, rows: Any, labels: Any, relation: Relation) -> Bounded:
    """Return the sum of (mistake - 1/2), which compares models as well as that of mistakes does.

    All models are asked about the same records, so that the halves shift all sums alike; but a
    record that comes or goes moves this one by 1/2 at most, and one that is replaced by 1.
    """
    wrong = mistakes(model, rows, labels) - 0.5
    if is_classifier(model):  # multiples of 1/2 add up exactly
        return Bounded(
            float(wrong.sum()), 0.5 if relation.adds_or_removes else 1.0, Norm.L2, relation
        )
    return bounded_sum(wrong[:, None], 0.5, Norm.L2, relation)
