"""Whether Arrow data from a file can be read at all, whatever its records say."""

from __future__ import annotations

from typing import Any


def check_sound(batch: Any) -> None:
    """Raise pyarrow's own error if a buffer or an index of a batch points beyond its end.

    Text is looked at as bytes: a word that is not UTF-8 is a record's own affair, and no reason to
    refuse the table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tacit.preprocessing.soundness import check_sound
    >>> check_sound(pa.record_batch({"town": ["Oslo", None]}))
    """
    for column in batch.columns:
        _as_bytes(column).validate(full=True)


def _as_bytes(array: Any) -> Any:
    """Return an array with text as the bytes it is stored in, without a copy."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        words = _as_bytes(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, words, safe=True)
    if pa.types.is_string(array.type):
        return array.view(pa.binary())
    if pa.types.is_large_string(array.type):
        return array.view(pa.large_binary())
    return array
