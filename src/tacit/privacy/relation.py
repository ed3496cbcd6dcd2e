"""Define which data sets are neighbours."""

from __future__ import annotations

from enum import Enum


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
    >>> from tacit.privacy import Relation
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
