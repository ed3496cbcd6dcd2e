"""Which data sets are neighbours."""

from __future__ import annotations

from enum import Enum


class Relation(Enum):
    """Which pairs of data sets a guarantee protects.

    ``ADD_REMOVE``
        One data set has one record more than the other. The number of records is private.
    ``REPLACE``
        Both have the same, public number of records and differ in one of them.

    Costs under the two are different quantities: they are never compared, added or converted
    silently. `tacit.privacy.replace_from_add_remove` converts where that is sound.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> Relation.ADD_REMOVE.sentence
    'adding or removing one record'
    """

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"

    @property
    def sentence(self) -> str:
        """What a person may do to the data, in words."""
        if self is Relation.ADD_REMOVE:
            return "adding or removing one record"
        return "replacing one record (the number of records is public)"


def checked_relation(value: object) -> Relation:
    """Return ``value`` if it is a Relation."""
    if not isinstance(value, Relation):
        raise TypeError(
            f"relation must be a tacit.privacy.Relation, got {value!r}; "
            "pass Relation.ADD_REMOVE or Relation.REPLACE."
        )
    return value
