"""A table on a Dask cluster is described to the bit as in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.privacy import Accountant, Budget
from tests.descriptive.helpers import SCHEMA, people

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with distributed.Client(processes=False, n_workers=2, dashboard_address=":0") as made:
        yield made


@pytest.fixture
def frame() -> pd.DataFrame:
    table = pd.DataFrame(people(3000))
    table["who"] = [f"p{i % 1000}" for i in range(len(table))]
    return table


def test_files_and_frames_give_the_bits_of_memory(
    client: Any, frame: pd.DataFrame, tmp_path: Path
) -> None:
    from tacit.cluster import DaskTable

    for number in range(3):
        frame[number * 1000 : (number + 1) * 1000].to_parquet(tmp_path / f"part-{number}.parquet")
    inside = tacit.describe(frame, SCHEMA, 1.0, by="ill", random_state=3)
    files = DaskTable.from_files(str(tmp_path / "part-*.parquet"), client)
    assert tacit.describe(files, SCHEMA, 1.0, by="ill", random_state=3).figures == inside.figures
    parts = DaskTable.from_frame(dd.from_pandas(frame, npartitions=4, sort=False), client)
    assert tacit.describe(parts, SCHEMA, 1.0, by="ill", random_state=3).figures == inside.figures


def test_people_are_chosen_as_in_memory(client: Any, frame: pd.DataFrame, tmp_path: Path) -> None:
    from tacit.cluster import DaskTable

    for number in range(3):
        frame[number * 1000 : (number + 1) * 1000].to_parquet(tmp_path / f"part-{number}.parquet")
    table = DaskTable.from_files(str(tmp_path / "part-*.parquet"), client)
    there = tacit.describe(table, SCHEMA, 1.0, unit="who", random_state=3)
    here = tacit.describe(frame, SCHEMA, 1.0, unit="who", random_state=3)
    assert there.figures == here.figures
    assert there.privacy_.relation.by_person


def test_refusals_come_before_the_charge(client: Any, frame: pd.DataFrame, tmp_path: Path) -> None:
    from tacit.cluster import DaskTable

    accountant = Accountant(Budget(1.0, 1e-6))
    frame[["age"]].to_parquet(tmp_path / "a.parquet")
    table = DaskTable.from_files(tmp_path / "a.parquet", client)
    with pytest.raises(ValueError, match="income"):
        tacit.describe(table, SCHEMA, 0.5, accountant=accountant)
    with pytest.raises(ValueError, match="name of a column"):
        tacit.describe(table, SCHEMA, 0.5, unit=[1, 2], accountant=accountant)
    assert accountant.spent() == 0.0


def test_a_part_that_fails_withholds_the_release(client: Any, tmp_path: Path) -> None:
    from tacit.cluster import DaskTable

    pd.DataFrame(people(100)).to_parquet(tmp_path / "a.parquet")
    table = DaskTable.from_files(str(tmp_path / "*.parquet"), client)
    # Its footer, which names columns and types, can still be read; its records cannot.
    written = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(written[:4] + bytes(500) + written[504:])
    with pytest.raises(RuntimeError, match="a part of the records failed with"):
        tacit.describe(table, SCHEMA, 1.0)
