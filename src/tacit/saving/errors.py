"""What saving and loading refuse."""

from __future__ import annotations


class NotAModel(ValueError):
    """The file is not a model as tacit saves it; the message says what is wrong with it.

    Raised for every file that can be read but not accepted: damaged, cut off, repacked, foreign,
    of an unknown version, or holding values that do not fit together.

    Examples
    --------
    >>> from tacit.saving import NotAModel
    >>> issubclass(NotAModel, ValueError)
    True
    """


class CannotSave(ValueError):
    """The model cannot be written to a file; the message says why and what to do.

    Examples
    --------
    >>> from tacit.saving import CannotSave
    >>> issubclass(CannotSave, ValueError)
    True
    """
