"""Whether Arrow data from a file can be read at all, whatever its records say."""

from __future__ import annotations

from typing import Any


def check_sound(batch: Any) -> None:
    """Raise pyarrow's own error if a buffer or an index of a batch points beyond its end.

    Text is looked at as bytes, and numbers not at all: a word that is not UTF-8 or a decimal of too
    many digits is a record's own affair, and no reason to refuse the table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tacit.preprocessing.files.soundness import check_sound
    >>> check_sound(pa.record_batch({"town": ["Oslo", None]}))
    """
    for column in batch.columns:
        _check(column)


def _check(array: Any) -> None:
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        _check(array.dictionary)
        pa.DictionaryArray.from_arrays(array.indices, array.dictionary, safe=True)
    elif (kind := _as_stored(array.type)) is not None:
        array.view(kind).validate(full=True)
    else:
        array.validate()


def _as_stored(kind: Any) -> Any:
    """Return the bytes that a text is stored as, which are looked at one by one, or None."""
    import pyarrow as pa

    stored = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    return stored.get(kind, kind if kind in stored.values() else None)
