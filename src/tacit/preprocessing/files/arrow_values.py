"""The values of an Arrow column, read many at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.preprocessing.errors import TableError, wrong_type
from tacit.preprocessing.files.one_value import MISSING, code_of, number_of
from tacit.preprocessing.files.values import ArrayValues, Codes, Numbers


@dataclass(frozen=True, eq=False)
class ArrowValues:
    """The values of a pyarrow Array: numbers, text, bytes or a dictionary of such.

    Guarantee: each value is read on its own, as `tacit.preprocessing.files.one_value` reads it;
    text that is not UTF-8 is an unknown word.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tacit.preprocessing.files.arrow_values import ArrowValues
    >>> ArrowValues(pa.array([b"39", b"?", None]), "age").numbers()
    array([39., nan, nan])
    >>> ArrowValues(pa.array(["b", "x", None]), "kind").codes({"a": 0, "b": 1})
    array([ 1, -1, -2])
    """

    array: Any
    name: str

    def __len__(self) -> int:
        return len(self.array)

    def numbers(self) -> Numbers:
        """Cast numbers; parse text all at once, or word by word if some of it is no number."""
        import pyarrow as pa

        array = self._readable()
        if pa.types.is_dictionary(array.type):
            return self._by_word(array, number_of, np.nan, np.float64)
        try:
            numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:  # some text is no number
            return self._by_word(array.dictionary_encode(), number_of, np.nan, np.float64)
        finite = np.isfinite(numbers)
        return np.asarray(numbers if finite.all() else np.where(finite, numbers, np.nan))

    def codes(self, place: Mapping[str, int]) -> Codes:
        """Look up each different word once."""
        import pyarrow as pa

        array = self._readable()
        # Whole numbers that are equal are one word; floats have two zeros, and are read one by one.
        if _is_number(array.type) and not pa.types.is_integer(array.type):
            return ArrayValues(np.array(array.to_pylist(), dtype=object)).codes(place)
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        return self._by_word(encoded, lambda word: code_of(word, place), MISSING, np.int64)

    def where(self, chosen: npt.NDArray[np.bool_]) -> ArrowValues:
        """Return some of the values."""
        import pyarrow as pa

        return ArrowValues(self._readable().filter(pa.array(chosen)), self.name)

    def raw(self) -> list[Any]:
        """Return the values as they are, text as bytes."""
        import pyarrow as pa

        array = self._readable()
        if pa.types.is_dictionary(array.type):
            array = self._by_word(array, lambda word: word, None, object)
        values: list[Any] = array.tolist() if isinstance(array, np.ndarray) else array.to_pylist()
        return values

    def different(self) -> list[Any]:
        """Return the different values, text as bytes."""
        import pyarrow as pa

        array = self._readable()
        if pa.types.is_dictionary(array.type):
            used = array.indices.unique().drop_null()
            array = array.dictionary.take(used)
            array = _as_bytes(array) if _is_text(array.type) else array
        unique: list[Any] = array.unique().to_pylist()
        return unique

    def _readable(self) -> Any:
        """Return the values as bytes, as numbers or as a dictionary of either."""
        import pyarrow as pa

        kind = self.array.type
        if pa.types.is_null(kind):
            return self.array.cast(pa.binary())
        if pa.types.is_dictionary(kind):
            if not (_is_text(kind.value_type) or _is_number(kind.value_type)):
                raise self._wrong_type()
            return self.array
        if _is_number(kind):
            return self.array
        if _is_text(kind):
            return _as_bytes(self.array)
        raise self._wrong_type()

    def _by_word(
        self, encoded: Any, read: Callable[[Any], Any], missing: float | None, dtype: type[Any]
    ) -> npt.NDArray[Any]:
        """Return what ``read`` makes of each value, asking it once for each different one."""
        words = encoded.dictionary
        words = (_as_bytes(words) if _is_text(words.type) else words).to_pylist()
        table = np.array([*map(read, words), missing], dtype=dtype)
        indices = encoded.indices.to_numpy(zero_copy_only=False)  # NaN where it is null
        # An index that has no word is missing too: an error would tell of this one record.
        has_word = (indices >= 0) & (indices < len(words))
        return np.asarray(table[np.where(has_word, indices, len(words)).astype(np.intp)])

    def _wrong_type(self) -> TableError:
        return wrong_type(self.name, self.array.type)


def _as_bytes(words: Any) -> Any:
    """Return text as bytes, so that text that is not UTF-8 is no error."""
    import pyarrow as pa

    if pa.types.is_string(words.type) or pa.types.is_binary(words.type):
        return words.cast(pa.binary())
    return words.cast(pa.large_binary())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or str(kind) in ("string_view", "binary_view")
    )


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )
