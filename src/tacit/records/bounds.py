"""Declare public bounds on every record; the user vouches for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit import checks

# The constant coordinate that carries the intercept, as a share of the row norm. It is large enough
# to learn an intercept of a few units of score, and adds only 3 % to the norm.
INTERCEPT_SHARE = 0.25


def checked_row_norm(value: object) -> float:
    """Return ``value``; raise unless it can be the norm of a row."""
    remedy = "pass the norm to which rows may be scaled down."
    return checks.positive("row_norm", value, remedy=remedy)


def checked_max_weight(value: object) -> float:
    """Return ``value``; raise unless it can be the greatest weight."""
    return checks.positive("max_weight", value, remedy="pass the greatest weight that may count.")


@dataclass(frozen=True)
class Bounds:
    """Public facts, each enforced on the data: a wrong one costs accuracy, never privacy.

    Parameters
    ----------
    row_norm
        Rows are scaled down to this L2 norm.
    label_range
        Labels are clipped to this interval (regression).
    n_classes
        Number of classes (classification). Labels are -1 (or 0) and 1 for two classes, and 0, 1,
        2, ... for more. A record with another label does not count.
    n_records
        Number of records, if it is public.
    intercept
        The constant coordinate appended to every row after clipping; 0 for none.
    max_weight
        Weights are clipped to [0, max_weight] and divided by it, so that no record counts for more
        than 1. None if records have no weights.

    Examples
    --------
    >>> from tacit.records import Bounds
    >>> Bounds(row_norm=3.0, intercept=4.0).total_norm
    5.0
    """

    row_norm: float = 1.0
    label_range: tuple[float, float] | None = None
    n_classes: int | None = None
    n_records: int | None = None
    intercept: float = 0.0
    max_weight: float | None = None

    def __post_init__(self) -> None:
        checked_row_norm(self.row_norm)
        if not 0.0 <= self.intercept < math.inf:
            raise ValueError(f"intercept must be finite and not negative, got {self.intercept!r}.")
        if self.label_range is not None:
            low, high = self.label_range
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(
                    f"label_range must be two finite numbers in order, got {self.label_range!r}; "
                    "pass the least and greatest label that may count, such as (0, 100)."
                )
        if self.n_records is not None and self.n_records < 1:
            raise ValueError(f"n_records must be at least 1, got {self.n_records!r}.")
        if self.max_weight is not None:
            checked_max_weight(self.max_weight)

    @property
    def total_norm(self) -> float:
        """The greatest norm of a row with its intercept coordinate."""
        return math.hypot(self.row_norm, self.intercept)

    def length(self, scale: float) -> float:
        """Return the greatest norm of a row times ``scale``, with intercept, over `total_norm`."""
        if scale == 1.0:
            return 1.0
        # rounded up
        return math.hypot(scale * self.row_norm, self.intercept) / self.total_norm * (1 + 2.0**-50)

    @property
    def total_weight(self) -> int | None:
        """Total weight of the records, if it is public: n if each weighs 1."""
        return self.n_records if self.max_weight is None else None

    @property
    def label_bound(self) -> float:
        """The greatest absolute label; infinite if no range was declared."""
        return math.inf if self.label_range is None else max(abs(b) for b in self.label_range)
