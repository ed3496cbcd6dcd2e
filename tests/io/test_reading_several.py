"""Several files are one table; none counts twice, and none may change meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tacit.io.arrow import ArrowValues
from tacit.io.reading import find_files, fingerprint, open_table
from tacit.io.values import ArrayValues
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder, TableError, encode_file

SCHEMA = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))


def write(folder: Path) -> list[Path]:
    """Write one table in three files of three kinds."""
    tables = [
        pa.table({"age": [10.0 * part, 20.0, 30.0], "ill": ["no", "yes", "?"]}) for part in range(3)
    ]
    names = [folder / "part-0.csv", folder / "part-1.parquet", folder / "part-2.feather"]
    text = "".join(f"{each['age']},{each['ill']}\n" for each in tables[0].to_pylist())
    names[0].write_text("age,ill\n" + text)
    pyarrow.parquet.write_table(tables[1], names[1])
    pyarrow.feather.write_feather(tables[2], names[2])
    return names


def test_a_pattern_a_list_and_an_address_are_the_same_table(tmp_path: Path) -> None:
    import fsspec

    names = write(tmp_path)
    rows, labels = encode_file(names, SCHEMA)
    assert rows.ravel().tolist() == [-0.5, -0.3, -0.4, -0.3, -0.3, -0.3]
    assert labels.tolist() == ["no", "yes"] * 3
    memory = fsspec.filesystem("memory")
    for name in names:
        memory.pipe(f"/several/{name.name}", name.read_bytes())
    for paths in (
        f"{tmp_path}/part-*",
        [f"{tmp_path}/part-[01].*", names[2]],
        "memory://several/part-*",
    ):
        again, same = encode_file(paths, SCHEMA)
        assert np.array_equal(rows, again)
        assert same.tolist() == labels.tolist()
    one, _ = encode_file("memory://several/part-0.csv", SCHEMA)
    assert np.array_equal(one, rows[:2])


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    names = write(tmp_path)
    link = tmp_path / "other.csv"
    link.symlink_to(names[0])
    for paths in ([names[0], names[0]], [names[0], link], [f"{tmp_path}/part-*", names[1]]):
        with pytest.raises(TableError, match="named twice"):
            find_files(paths)


def test_nothing_that_matches_is_refused(tmp_path: Path) -> None:
    nowhere: list[Any] = [f"{tmp_path}/none-*.csv", [], "memory://nowhere/*.csv"]
    for paths in nowhere:
        with pytest.raises(TableError, match="no file"):
            find_files(paths)
    with pytest.raises(TableError, match="cannot be read"):
        open_table("memory://nowhere/a.csv")


def test_a_column_that_one_file_lacks_is_refused(tmp_path: Path) -> None:
    names = write(tmp_path)
    (tmp_path / "part-9.csv").write_text("age\n1\n")
    with pytest.raises(TableError, match="'ill'"):
        encode_file([*names, tmp_path / "part-9.csv"], SCHEMA)


def test_files_that_change_meanwhile_are_refused(tmp_path: Path) -> None:
    names = write(tmp_path)
    batches = open_table(names).batches(["age", "ill"])
    next(batches)
    os.utime(names[0], ns=(1, 1))
    with pytest.raises(TableError, match="changed while"):
        list(batches)


def test_a_fingerprint_knows_what_was_written(tmp_path: Path) -> None:
    names = [str(name) for name in write(tmp_path)]
    before = fingerprint(names)
    assert fingerprint(names) == before
    assert fingerprint(names[:2]) != before
    with open(names[0], "a") as file:
        file.write("1,no\n")
    assert fingerprint(names) != before


def test_whole_numbers_are_looked_up_as_each_alone() -> None:
    import random

    rng = random.Random(0)
    values = [rng.choice([0, 1, 7, -3, None, 2**31 - 1]) for _ in range(500)]
    place = {"1": 0, "7": 1, "-3": 2}
    for kind in (pa.int8(), pa.int32(), pa.int64(), pa.uint64()):
        fit = [v if v is None or kind.bit_width > 8 or v < 100 else 5 for v in values]
        fit = [v if v is None or v >= 0 or kind != pa.uint64() else 6 for v in fit]
        codes = ArrowValues(pa.array(fit, kind), "x").codes(place)
        alone = [ArrowValues(pa.array([v], kind), "x").codes(place)[0] for v in fit]
        slow = ArrayValues(np.array(fit, dtype=object)).codes(place)
        assert codes.tolist() == alone == slow.tolist()


def test_one_file_that_changes_meanwhile_is_refused_too(tmp_path: Path) -> None:
    # sorted anew in the middle of a pass, a record may come twice
    for name in write(tmp_path):
        batches = open_table(name).batches(["age", "ill"])
        next(batches)
        os.utime(name, ns=(1, 1))
        with pytest.raises(TableError, match="changed while"):
            list(batches)


def test_a_file_under_two_names_is_refused(tmp_path: Path) -> None:
    names = write(tmp_path)
    other = tmp_path / "other.csv"
    other.hardlink_to(names[0])
    for second in (other, f"file://{names[0]}"):
        with pytest.raises(TableError, match="named twice"):
            find_files([names[0], second])


def test_a_column_that_one_file_has_twice_is_refused(tmp_path: Path) -> None:
    names = write(tmp_path)
    (tmp_path / "twice.csv").write_text("age,ill,age\n1,no,99\n")
    with pytest.raises(TableError, match="several columns named 'age'"):
        encode_file([*names, tmp_path / "twice.csv"], SCHEMA)


def test_a_file_that_is_read_again_has_the_same_people(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,ill,who\n1,no,a\n2,yes,b\n")
    table = SchemaEncoder(SCHEMA.with_unit("who")).unread_file(path)
    for _ in range(2):
        table.read()
        assert table.identifiers() == [b"a", b"b"]
