"""Define which data sets are neighbours, and how much may be spent on their difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tacit import checks


class Relation(Enum):
    """Relation between the data sets that a guarantee calls neighbours.

    ``ADD_REMOVE``
        One data set has one record more than the other. The number of records is private.
    ``REPLACE``
        Both have the same, public number of records and differ in one of them.
    ``ADD_REMOVE_PERSON``
        One data set has one person more than the other, with all their records, however many.

    Costs under different relations are different quantities: they are never compared, added or
    converted silently. `tacit.privacy.replace_from_add_remove` converts ADD_REMOVE to REPLACE.

    Examples
    --------
    >>> from tacit.privacy.budget import Relation
    >>> Relation.ADD_REMOVE.sentence
    'adding or removing one record'
    """

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    ADD_REMOVE_PERSON = "add_remove_person"

    @property
    def by_person(self) -> bool:
        """Whether neighbours differ in a person, who may have several records."""
        return self is Relation.ADD_REMOVE_PERSON

    @property
    def adds_or_removes(self) -> bool:
        """Whether one of two neighbours contains the other."""
        return self is not Relation.REPLACE

    @property
    def sentence(self) -> str:
        """The change between neighbours, in words."""
        if self is Relation.REPLACE:
            return "replacing one record (the number of records is public)"
        return f"adding or removing {self.subject}"

    @property
    def subject(self) -> str:
        """The privacy unit, in words."""
        return "one person with all their records" if self.by_person else "one record"


def checked_relation(value: object) -> Relation:
    """Return ``value``; raise if it is no Relation."""
    if not isinstance(value, Relation):
        raise TypeError(
            f"relation must be a tacit.privacy.Relation, got {value!r}; "
            "pass Relation.ADD_REMOVE, Relation.REPLACE or Relation.ADD_REMOVE_PERSON."
        )
    return value


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
        if self.requested_delta is not None and not self.delta <= checks.delta(
            self.requested_delta
        ):
            raise ValueError(
                f"requested_delta must be at least delta, {self.delta!r}, got "
                f"{self.requested_delta!r}."
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


# exp(10) is 22,026: odds of 1 in 22,000 that somebody is in the data may become even odds.
_LARGE_EPSILON = 10.0
# A mechanism that publishes each record whole with probability delta satisfies (0, delta)-DP. Above
# 1 in 1,000 it publishes more than one record in a thousand, for any number of records.
_LARGE_DELTA = 1e-3


class WeakPromiseWarning(UserWarning):
    """The budget of a fit or a plan protects little."""


def weakness(epsilon: float, delta: float, n_records: int | None) -> str:
    """Return a sentence on why a budget protects little, or an empty text.

    An infinite epsilon gives an empty text: other messages state that there is no guarantee.

    Examples
    --------
    >>> from tacit.privacy.budget import weakness
    >>> weakness(1.0, 1e-6, 1000)
    ''
    >>> print(weakness(1.0, 0.01, 1000)[:58])
    WEAK PROMISE: delta 0.01 is above 1 in the 1,000 records,
    >>> print(weakness(1.0, 0.01, None)[:45])
    WEAK PROMISE: delta 0.01 is above 1 in 1,000,
    """
    if math.isinf(epsilon):
        return ""
    said = []
    if epsilon > _LARGE_EPSILON:
        said.append(
            f"epsilon {epsilon:g} is above {_LARGE_EPSILON:g}, so odds about a record may change "
            f"by a factor of {_power(epsilon)}"
        )
    if n_records is not None and delta * n_records > 1.0:
        said.append(
            f"delta {delta:g} is above 1 in the {n_records:,} records, which allows to publish "
            "some of them whole"
        )
    elif delta > _LARGE_DELTA:
        said.append(
            f"delta {delta:g} is above 1 in 1,000, which allows to publish more than one record in "
            "a thousand whole"
        )
    remedy = "take a smaller one" if len(said) == 1 else "take smaller ones"
    return f"WEAK PROMISE: {', and '.join(said)}; {remedy} if you can." if said else ""


def _power(epsilon: float) -> str:
    """Return exp(epsilon), rounded up, in words that fit a sentence."""
    digits = math.ceil(epsilon / math.log(10.0))
    if digits > 6:
        return f"up to 10^{digits}"
    return f"{math.ceil(math.exp(epsilon)):,}"
