"""Records in files: the same bits as in memory, encoded once, and gone with their process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import tacit.disk_arrays as disk
from tacit.erm import NoisyGradient
from tacit.linear_model import LogisticRegression
from tacit.records import Bounds, MemoryRecords
from tacit.records.block import Coordinates, measured
from tacit.records.files import ParquetRecords
from tacit.records.grouped import PeopleInMemory
from tacit.schema import (
    Category,
    ClassTarget,
    Number,
    NumberTarget,
    Schema,
    SchemaError,
    TableError,
    encode_file,
)
from tacit.table_model import TableModel

N = 3000
SCHEMA = Schema(
    (Number("age", 0, 100), Category("town", ("a", "b", "c"))), ClassTarget("ill", ("no", "yes"))
)


def write(folder: Path, n_files: int = 4) -> str:
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, N)
    table = pa.table(
        {
            "age": age,
            "town": rng.choice(["a", "b", "c", "zzz"], N),
            "ill": np.where(age + rng.normal(0, 20, N) > 50, "yes", "no"),
        }
    )
    for part in range(n_files):
        some = table.slice(part * N // n_files, (part + 1) * N // n_files - part * N // n_files)
        pyarrow.parquet.write_table(some, folder / f"part-{part}.parquet", row_group_size=100)
    return f"{folder}/part-*.parquet"


def model(**told: Any) -> LogisticRegression:
    return LogisticRegression(
        2.0, 1e-6, row_norm=SCHEMA.row_norm, classes=["no", "yes"], random_state=3, **told
    )


@pytest.mark.parametrize("mechanism", [NoisyGradient(n_steps=20), "objective_perturbation"])
def test_a_fit_has_the_bits_of_one_in_memory(tmp_path: Path, mechanism: Any) -> None:
    files = write(tmp_path)
    estimator = model(mechanism=mechanism)
    n = len(SCHEMA.feature_names)
    bounds = estimator.plan(n_features=n).problem.objective.bounds
    rows, labels = encode_file(files, SCHEMA, np.float32)
    memory = MemoryRecords(rows, np.where(labels == "yes", 1.0, -1.0), bounds)
    first = model(mechanism=mechanism).fit(memory, None)
    found = model(mechanism=mechanism).fit(ParquetRecords(files, SCHEMA, bounds), None)
    assert np.array_equal(first.coef_, found.coef_)
    assert np.array_equal(first.intercept_, found.intercept_)


def test_files_are_read_once(tmp_path: Path) -> None:
    shares: list[float] = []
    records = ParquetRecords(write(tmp_path), SCHEMA, Bounds(), progress=shares.append)
    assert not shares  # nothing is read before it is asked for
    assert records.count() == N
    read = len(shares)
    assert shares[-1] == 1.0
    records.sum(lambda block: (np.zeros(1),))
    records.sum_in_steps(lambda block: (np.zeros(1),))
    assert len(shares) == read
    kept = records._read()
    assert disk.is_on_disk(kept.rows)
    assert disk.is_on_disk(kept._table().rows)
    assert disk.is_on_disk(kept.clip_factors())


def test_what_cannot_work_is_refused_before_reading(tmp_path: Path) -> None:
    files = write(tmp_path)
    with pytest.raises(SchemaError, match="several blocks"):
        ParquetRecords(files, SCHEMA.with_unit("town"), Bounds())
    with pytest.raises(SchemaError, match="no target"):
        ParquetRecords(files, Schema(SCHEMA.columns), Bounds())
    other = Schema((Number("weight", 0, 1),), SCHEMA.target)
    with pytest.raises(TableError, match="'weight'"):
        ParquetRecords(files, other, Bounds())


def test_files_that_change_meanwhile_fail_the_fit(tmp_path: Path) -> None:
    files = write(tmp_path)
    more = tmp_path / "part-3.parquet"

    def change(share: float) -> None:
        more.touch()

    records = ParquetRecords(files, SCHEMA, Bounds(), progress=change)
    with pytest.raises(TableError, match="changed while"):
        records.count()


def test_labels_are_coded(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,y\n1,3\n2,4\n3,8\n4,\n")
    numbers = Schema((Number("age", 0, 100),), NumberTarget("y", 2, 8))
    records = ParquetRecords(path, numbers, Bounds(label_range=(-3.0, 3.0)), origin=5.0)
    assert records.sum(lambda block: (block.labels.sum(),))[0] == -2 - 1 + 3
    path.unlink()
    path.write_text("age,y\n1,b\n2,c\n3,a\n4,zzz\n")
    classes = Schema((Number("age", 0, 100),), ClassTarget("y", ("c", "a", "b")))
    codes: list[float] = []
    ParquetRecords(path, classes, Bounds(n_classes=3)).sum(
        lambda block: (np.array(codes.extend(block.labels) or 0.0),)
    )
    assert codes == [1.0, 2.0, 0.0]


def test_a_table_model_takes_several_files_and_goes_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write(tmp_path)
    estimator = LogisticRegression(2.0, 1e-6, random_state=3, mechanism=NoisyGradient(n_steps=20))
    first = TableModel(SCHEMA, estimator, dtype=np.float32).fit_file(files)
    monkeypatch.setattr(disk, "memory_bytes", lambda: 1000)
    again = TableModel(SCHEMA, estimator, dtype=np.float32).fit_file(sorted(tmp_path.iterdir()))
    assert np.array_equal(first.estimator_.coef_, again.estimator_.coef_)


def test_lengths_in_other_coordinates_are_noted_beside_the_rows(tmp_path: Path) -> None:
    files, bounds = write(tmp_path), Bounds(row_norm=SCHEMA.row_norm)
    records = ParquetRecords(files, SCHEMA, bounds)
    there = Coordinates(np.diag(np.arange(1.0, records.n_features + 1)))
    noted = measured(records, there)
    assert isinstance(noted, MemoryRecords)
    assert disk.is_on_disk(noted._lengths)
    (seen,) = noted.sum(lambda block: (np.array([block.lengths.sum()]),))
    (expected,) = records.sum(lambda block: (np.array([there.lengths(block).sum()]),))
    assert np.array_equal(seen, expected)


@pytest.mark.parametrize("mechanism", [NoisyGradient(n_steps=20), "objective_perturbation"])
def test_people_whose_records_lie_in_several_files_are_grouped_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: Any
) -> None:
    files, rng = write(tmp_path), np.random.default_rng(5)
    people = rng.integers(0, N // 3, N)
    for part, path in enumerate(sorted(tmp_path.iterdir())):
        table = pyarrow.parquet.read_table(path)
        some = people[part * N // 4 : (part + 1) * N // 4]
        pyarrow.parquet.write_table(table.append_column("id", pa.array(some)), path)
    schema = SCHEMA.with_unit("id")
    estimator = LogisticRegression(2.0, 1e-6, random_state=3, mechanism=mechanism)
    first = TableModel(schema, estimator).fit_file(files)
    monkeypatch.setattr(disk, "memory_bytes", lambda: 1000)
    seen = []
    make = PeopleInMemory.__init__

    def noted(self: PeopleInMemory, *told: Any, **more: Any) -> None:
        make(self, *told, **more)
        seen.append((disk.is_on_disk(self.rows), np.diff(self._people.owner).min() >= 0))

    monkeypatch.setattr(PeopleInMemory, "__init__", noted)
    again = TableModel(schema, estimator).fit_file(files)
    assert seen
    assert all(on_disk and in_order for on_disk, in_order in seen)
    assert np.array_equal(first.estimator_.coef_, again.estimator_.coef_)
