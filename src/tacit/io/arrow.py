"""Read Parquet, Arrow and Feather files, and the values of Arrow columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.io.dates import DateFormat, known_days
from tacit.io.errors import TableError, guarded, readable, wrong_type
from tacit.io.values import MISSING, ArrayValues, Codes, Numbers, code_of, number_of


@dataclass(frozen=True, eq=False)
class ArrowValues:
    """The values of a pyarrow Array: numbers, text, bytes or a dictionary of such.

    Guarantee: each value is read independently, as `tacit.io.values` reads it;
    text that is not UTF-8 is an unknown word.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tacit.io.arrow import ArrowValues
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
        """Cast numbers; parse text at once, or word by word if some text is not a number."""
        import pyarrow as pa

        array = self._readable()
        if pa.types.is_dictionary(array.type):
            return self._by_word(array, number_of, np.nan, np.float64)
        try:
            numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:  # some text is not a number
            return self._by_word(array.dictionary_encode(), number_of, np.nan, np.float64)
        finite = np.isfinite(numbers)
        return np.asarray(numbers if finite.all() else np.where(finite, numbers, np.nan))

    def codes(self, place: Mapping[str, int]) -> Codes:
        """Look up each distinct word once."""
        import pyarrow as pa

        array = self._readable()
        # Equal integers have one text. Floats have two zeros, so they are read one by one.
        if is_number_type(array.type) and not pa.types.is_integer(array.type):
            return ArrayValues(np.array(array.to_pylist(), dtype=object)).codes(place)
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        return self._by_word(encoded, lambda word: code_of(word, place), MISSING, np.int64)

    def days(self, form: DateFormat) -> Numbers:
        """Convert dates; read each distinct text once."""
        import pyarrow as pa

        if (per_day := _per_day(self.array.type)) is not None:
            # Nulls are filled: with one, NumPy would get floats, which round the others.
            stored = self.array.cast(
                pa.int32() if pa.types.is_date32(self.array.type) else pa.int64()
            )
            ticks = stored.fill_null(0).to_numpy(zero_copy_only=False)
            absent = self.array.is_null().to_numpy(zero_copy_only=False)
            return known_days(np.floor_divide(ticks, per_day), absent)
        array = self._readable()
        if is_number_type(array.type) and not pa.types.is_integer(array.type):
            return ArrayValues(np.array(array.to_pylist(), dtype=object)).days(form)
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        return self._by_word(encoded, form.days_of, np.nan, np.float64)

    def where(self, chosen: npt.NDArray[np.bool_]) -> ArrowValues:
        """Return the selected values."""
        import pyarrow as pa

        array = self.array if _per_day(self.array.type) is not None else self._readable()
        return ArrowValues(array.filter(pa.array(chosen)), self.name)

    def raw(self) -> list[Any]:
        """Return the values unchanged, text as bytes."""
        import pyarrow as pa

        array = self._readable()
        if pa.types.is_dictionary(array.type):
            array = self._by_word(array, lambda word: word, None, object)
        values: list[Any] = array.tolist() if isinstance(array, np.ndarray) else array.to_pylist()
        return values

    def different(self) -> list[Any]:
        """Return the distinct values, text as bytes."""
        import pyarrow as pa

        array = self._readable()
        if pa.types.is_dictionary(array.type):
            used = array.indices.unique().drop_null()
            array = array.dictionary.take(used)
            array = _as_bytes(array) if is_text_type(array.type) else array
        unique: list[Any] = array.unique().to_pylist()
        return unique

    def _readable(self) -> Any:
        """Return the values as bytes, as numbers or as a dictionary of either."""
        import pyarrow as pa

        kind = self.array.type
        if pa.types.is_null(kind):
            return self.array.cast(pa.binary())
        if pa.types.is_dictionary(kind):
            if not (is_text_type(kind.value_type) or is_number_type(kind.value_type)):
                raise self._wrong_type()
            return self.array
        if is_number_type(kind):
            return self.array
        if is_text_type(kind):
            return _as_bytes(self.array)
        raise self._wrong_type()

    def _by_word(
        self, encoded: Any, read: Callable[[Any], Any], missing: float | None, dtype: type[Any]
    ) -> npt.NDArray[Any]:
        """Apply ``read`` once to each distinct value."""
        words = encoded.dictionary
        words = (_as_bytes(words) if is_text_type(words.type) else words).to_pylist()
        table = np.array([*map(read, words), missing], dtype=dtype)
        indices = encoded.indices.to_numpy(zero_copy_only=False)  # NaN for null
        # An index without a word counts as missing: an error would reveal this one record.
        has_word = (indices >= 0) & (indices < len(words))
        return np.asarray(table[np.where(has_word, indices, len(words)).astype(np.intp)])

    def _wrong_type(self) -> TableError:
        return wrong_type(self.name, self.array.type)


def _as_bytes(words: Any) -> Any:
    """Convert text to bytes, so that invalid UTF-8 is not an error."""
    import pyarrow as pa

    if pa.types.is_string(words.type) or pa.types.is_binary(words.type):
        return words.cast(pa.binary())
    return words.cast(pa.large_binary())


def _per_day(kind: Any) -> int | None:
    """Return how many units of a type for dates are one day; None for other types.

    A time with a zone is another date in another zone, so its type is refused.
    """
    import pyarrow as pa

    if pa.types.is_date32(kind):
        return 1
    seconds = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    if pa.types.is_date64(kind):
        return 86_400 * seconds["ms"]
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return 86_400 * seconds[kind.unit]
    return None


def is_text_type(kind: Any) -> bool:
    """Return whether a type of Arrow holds text or bytes."""
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or str(kind) in ("string_view", "binary_view")
    )


def is_number_type(kind: Any) -> bool:
    """Return whether a type of Arrow holds numbers or booleans."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


# Records per batch: few enough for their rows to stay in the CPU cache.
BATCH = 16_384


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file."""

    path: Path
    shown: str

    @contextlib.contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
        from pyarrow import parquet

        with readable(self.shown, "Parquet"):
            file = parquet.ParquetFile(self.path, **options)
        with file:
            yield file

    def names(self) -> list[str]:
        """Return the names of the columns."""
        with self._open() as file:
            return list(file.schema_arrow.names)

    def type_of(self, name: str) -> Any:
        """Return the type that the file declares for a column."""
        with self._open() as file:
            return file.schema_arrow.field(name).type

    def count(self) -> int:
        """Return the number of records, from the file's metadata."""
        with self._open() as file:
            return int(file.metadata.num_rows)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield records."""
        with self._open() as file:
            schema = file.schema_arrow
        texts = [name for name in names if str(schema.field(name).type) in ("string", "binary")]
        with self._open(read_dictionary=texts) as file:
            batches = file.iter_batches(batch_size=BATCH, columns=list(names))
            for batch in guarded(batches, self.shown, "Parquet"):
                with readable(self.shown, "Parquet"):
                    check_sound(batch)
                yield batch.select(list(names))


@dataclass(frozen=True)
class ArrowFile:
    """An Arrow or Feather file, or an Arrow stream."""

    path: Path
    shown: str

    @contextlib.contextmanager
    def _open(self, fields: list[int] | None = None) -> Iterator[Any]:
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(included_fields=fields or [])
        with readable(self.shown, "Arrow"):
            file = pa.OSFile(str(self.path), "rb")
        with file:
            with readable(self.shown, "Arrow"):
                try:
                    reader = pa.ipc.open_file(file, options=options)
                except pa.ArrowInvalid:
                    file.seek(0)
                    reader = pa.ipc.open_stream(file, options=options)
            yield reader

    def names(self) -> list[str]:
        """Return the names of the columns."""
        with self._open() as reader:
            return list(reader.schema.names)

    def type_of(self, name: str) -> Any:
        """Return the type that the file declares for a column."""
        with self._open() as reader:
            return reader.schema.field(name).type

    def count(self) -> int:
        """Return the number of records, reading one column."""
        with self._open([0]) as reader:
            return sum(batch.num_rows for batch in guarded(_each(reader), self.shown, "Arrow"))

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield records."""
        with self._open() as reader:
            fields = sorted(reader.schema.names.index(name) for name in names)
        with self._open(fields) as reader:
            for batch in guarded(_each(reader), self.shown, "Arrow"):
                with readable(self.shown, "Arrow"):
                    check_sound(batch)
                chosen = batch.select(list(names))
                for start in range(0, chosen.num_rows, BATCH):
                    yield chosen.slice(start, BATCH)


def _each(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader


def check_sound(batch: Any) -> None:
    """Raise pyarrow's error if a buffer or an index of a batch points beyond its end.

    Text is checked as bytes, and numbers not at all: an invalid UTF-8 word or an oversized decimal
    concerns one record, and must not refuse the table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tacit.io.arrow import check_sound
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
    """Return the byte type in which a text is stored, or None."""
    import pyarrow as pa

    stored = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    return stored.get(kind, kind if kind in stored.values() else None)
