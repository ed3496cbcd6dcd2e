"""Define the budget of a release or of several releases."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit import checks
from tacit.privacy.relation import Relation, checked_relation


@dataclass(frozen=True)
class Budget:
    """Spend at most ``epsilon`` with failure probability ``delta`` under ``relation``.

    A budget with delta 0 is pure. An infinite epsilon means no privacy, so that a private and a
    non-private run differ in one number only.

    Examples
    --------
    >>> from tacit.privacy import Budget
    >>> Budget(1.0, 1e-6).is_pure
    False
    """

    epsilon: float
    delta: float = 0.0
    relation: Relation = Relation.ADD_REMOVE
    # The delta that statements quote, where a fit is planned and charged at less (`SumOrGaussian`).
    requested_delta: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        object.__setattr__(self, "delta", checks.delta(self.delta))
        checked_relation(self.relation)
        if self.requested_delta is not None and not self.delta <= checks.delta(self.requested_delta):
            raise ValueError(
                f"requested_delta must be at least delta, {self.delta!r}, got {self.requested_delta!r}."
            )

    @property
    def target_delta(self) -> float:
        """The delta that was asked for: ``delta``, or more if the fit is planned at less."""
        return self.delta if self.requested_delta is None else self.requested_delta

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0.0

    @property
    def is_infinite(self) -> bool:
        """Whether epsilon is infinite, so that any release fits."""
        return math.isinf(self.epsilon)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.target_delta:g}, {self.relation.name}"
