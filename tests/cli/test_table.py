"""``tacit table import``: what it prints, refuses and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.io import read_table
from tests.cli.helpers import SECRET, refused, run


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "export.csv"
    text = f'Gr\u00f6\u00dfe [m];Notiz\n1,5;"a\nb"\n1,75;{SECRET}\n{SECRET}\n'
    path.write_bytes(text.encode("cp1252"))
    return path


def test_an_export_is_written_and_told_of(export: Path) -> None:
    out = export.parent / "visits.parquet"
    words = ("--encoding", "cp1252", "--delimiter", ";", "--decimal", ",", "--out", out)
    result = run("table", "import", export, *words)
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.stderr
    assert "1 lines were left out: they have more or fewer fields" in result.stderr
    assert "2 records of 2 columns; 1 lines could not be read" in result.stdout
    assert SECRET not in result.output
    assert read_table(out).to_pydict()["Gr\u00f6\u00dfe [m]"] == ["1.5", "1.75"]
    assert "exists; name another file, or pass --force" in refused(
        "table", "import", export, *words
    )
    record = json.loads(run("table", "import", export, *words, "--force", "--json").stdout)
    assert (record["private"], record["records"], record["unread"]) == (False, 2, 1)


def test_a_query_is_written(tmp_path: Path) -> None:
    out = tmp_path / "q.parquet"
    sql = ("--sql", "select range as age from range(7)", "--database", "duckdb://")
    assert "7 records of 1 columns" in run("table", "import", *sql, "--out", out).stdout
    assert read_table(out).num_rows == 7


def test_what_cannot_be_imported_is_refused(export: Path) -> None:
    out = ("--out", export.parent / "x.parquet")
    assert "--encoding cp1252" in refused("table", "import", export, *out, "--delimiter", ";")
    assert "one of the two" in refused("table", "import", *out)
    assert "one of the two" in refused("table", "import", export, "--sql", "select 1", *out)
    assert "belong together" in refused("table", "import", "--sql", "select 1", *out)
    assert "writes a Parquet file" in refused(
        "table", "import", export, "--out", export.parent / "x.csv"
    )
    assert not (export.parent / "x.parquet").exists()
