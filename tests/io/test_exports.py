"""Exports become well-defined records: nothing vanishes, and what cannot be read is said."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from tacit.io import Imported, import_query, import_table, read_table
from tacit.io.errors import TableError


def imported(folder: Path, content: str | bytes, **options: Any) -> tuple[Imported, dict[str, Any]]:
    path = folder / "export.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    read = import_table(path, folder / "out.parquet", **options)
    return read, read_table(folder / "out.parquet").to_pydict()


def hospital_lines(n: int, n_broken: int) -> list[str]:
    """Return records of which some have a quoted line break in a column of free text."""
    rng = np.random.default_rng(27)
    broken = set(rng.choice(n, n_broken, replace=False).tolist())
    text = {True: '"discharged\nwith letter"', False: "discharged"}
    return [f"{i},{i % 90},{text[i in broken]}" for i in range(n)]


def test_records_with_line_breaks_vanish_if_read_directly_and_are_all_imported(
    tmp_path: Path,
) -> None:
    content = "\n".join(["id,age,note", *hospital_lines(6001, 571)]) + "\n"
    read, columns = imported(tmp_path, content)
    # One record with an open quotation mark must not join others, so a line is a record there.
    assert read_table(tmp_path / "export.csv", ["age"]).num_rows == 6001 - 571
    assert (read.records, read.unread) == (6001, 0)
    assert columns["id"] == [str(i) for i in range(6001)]
    assert columns["note"].count("discharged\nwith letter") == 571


def test_a_stray_quotation_mark_costs_its_own_line_alone(tmp_path: Path) -> None:
    content = 'a,b\n1,x\n2,"open\n3,y\n4,"z"\n5,"text"after\n6,"last'
    read, columns = imported(tmp_path, content)
    assert columns == {"a": ["1", "3", "4"], "b": ["x", "y", "z"]}
    assert read.unread == 3
    assert read.notes == (
        "2 lines were left out: text follows a closing quotation mark (line 3, 6).",
        "1 lines were left out: a quotation mark is not closed (line 7).",
    )


def test_lines_of_another_number_of_fields_are_counted_by_line(tmp_path: Path) -> None:
    read, columns = imported(tmp_path, "a,b\n1,2\n3\n4,5,6\n7,8,\n9,\n")
    assert columns == {"a": ["1", "7", "9"], "b": ["2", "8", None]}
    assert read.unread == 2
    assert "2 lines were left out" in read.notes[0]
    assert "(line 3, 4)" in read.notes[0]


def test_trailing_delimiters_and_columns_without_names(tmp_path: Path) -> None:
    read, columns = imported(tmp_path, "a;;b;\n1;x;2;\n3;;4\n", delimiter=";")
    assert columns == {"a": ["1", "3"], "column 2": ["x", None], "b": ["2", "4"]}
    assert "column 'column 4' has no values; it was left out." in read.notes
    read, columns = imported(tmp_path, "a,empty,a\n1,,2\n")
    assert columns == {"a": ["1"], "empty": [None], "a (2)": ["2"]}
    assert "column 'empty' has no values; it is kept." in read.notes


def test_encodings_are_declared_and_never_guessed(tmp_path: Path) -> None:
    content = "Geschlecht,Gr\u00f6\u00dfe [cm]\nm\u00e4nnlich,180\n"
    _, columns = imported(tmp_path, content.encode("latin-1"), encoding="latin-1")
    assert columns == {"Geschlecht": ["m\u00e4nnlich"], "Gr\u00f6\u00dfe [cm]": ["180"]}
    with pytest.raises(TableError, match=r"line 1 is not text in utf-8.*--encoding cp1252"):
        imported(tmp_path, content.encode("latin-1"))
    assert imported(tmp_path, content.encode("utf-16"), encoding="utf-16")[1] == columns
    with pytest.raises(TableError, match="is text in UTF-16; pass --encoding utf-16"):
        imported(tmp_path, content.encode("utf-16"))
    assert imported(tmp_path, b"\xef\xbb\xbf" + content.encode())[1] == columns
    with pytest.raises(TableError, match="encoding 'klingon' is not known"):
        imported(tmp_path, content, encoding="klingon")
    with pytest.raises(TableError, match="line 2 is not text in cp1252"):
        imported(tmp_path, b"a\n\x81\n", encoding="cp1252")


def test_decimal_commas_become_points_field_by_field(tmp_path: Path) -> None:
    content = "x\n1,5\n-1.234,50\n,5\n7\n1,2e3\n01.02.2024\na,b\n1.234\n1,2,3\n"
    read, columns = imported(tmp_path, content, delimiter=";", decimal=",")
    expected = ["1.5", "-1234.50", ".5", "7", "1.2e3", "01.02.2024", "a,b", "1.234", "1,2,3"]
    assert columns["x"] == expected
    assert "column 'x': 1 values have a point as in 1.234" in read.notes[0]
    assert (
        imported(tmp_path, content, delimiter=";", decimal=",", thousands=".")[1]["x"][7] == "1234"
    )
    assert imported(tmp_path, 'x\n"1,234.5"\n', thousands=",")[1]["x"] == ["1234.5"]
    for options in ({"decimal": ";"}, {"thousands": "0"}, {"decimal": ",", "thousands": ","}):
        with pytest.raises(TableError, match=r"decimal|thousands"):
            imported(tmp_path, content, delimiter=";", **options)


def test_rows_before_the_header_and_a_row_of_units(tmp_path: Path) -> None:
    content = "Report of 2026\n\nage,weight\nyears,kg\n39,61.5\n"
    _, columns = imported(tmp_path, content, header_row=2, units_row=True)
    assert columns == {"age [years]": ["39"], "weight [kg]": ["61.5"]}
    with pytest.raises(TableError, match="has no header in row 9"):
        imported(tmp_path, content, header_row=9)


def test_an_undeclared_delimiter_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="pass the delimiter ';'"):
        imported(tmp_path, "a;b\n1;2\n")
    with pytest.raises(TableError, match="delimiter must be one ASCII character"):
        imported(tmp_path, "a;b\n1;2\n", delimiter=";;")


def test_a_packed_text_is_read_and_another_one_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert import_table(tmp_path / "x.csv.gz", tmp_path / "o.parquet").records == 1
    with pytest.raises(TableError, match="is a file packed by gzip"):
        imported(tmp_path, gzip.compress(b"a,b\n1,2\n"))


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["id", "born", "seen", "ok", "note", "weight", None])
    day, time = datetime.date(1976, 1, 31), datetime.datetime(2026, 2, 1, 10, 30)
    sheet.append([1, day, time, True, "two\nlines", "61,5", None])
    sheet.append([None] * 7)
    sheet.append([2.5, None, None, False, " x ", 80, None])
    book.create_sheet("Legend").append(["code", "meaning"])
    book.save(tmp_path / "export.xlsx")
    return tmp_path / "export.xlsx"


def test_worksheets(workbook: Path, tmp_path: Path) -> None:
    read = import_table(workbook, tmp_path / "out.parquet", decimal=",")
    columns = read_table(tmp_path / "out.parquet").to_pydict()
    assert columns == {
        "id": ["1", "2.5"],
        "born": ["1976-01-31", None],
        "seen": ["2026-02-01 10:30:00", None],
        "ok": ["true", "false"],
        "note": ["two\nlines", "x"],
        "weight": ["61.5", "80"],
    }
    assert "the first of 2 worksheets was read, 'Sheet'." in read.notes
    assert "1 empty rows were left out." in read.notes
    with pytest.raises(TableError, match="no worksheet 'X'; choose from 'Sheet', 'Legend'"):
        import_table(workbook, tmp_path / "out.parquet", sheet="X")
    # A workbook is a workbook, whatever its name.
    renamed = workbook.rename(tmp_path / "export.csv")
    assert import_table(renamed, tmp_path / "out.parquet").records == 2
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    with pytest.raises(TableError, match="cannot be read as a workbook"):
        import_table(tmp_path / "bad.xlsx", tmp_path / "out.parquet")


@pytest.mark.parametrize("suffix", [".sav", ".zsav", ".dta", ".xpt", ".por"])
def test_files_of_statistical_packages(tmp_path: Path, suffix: str) -> None:
    import pyreadstat

    frame = pd.DataFrame({"SEX": [1.0, 2.0, np.nan], "NOTE": ["a", "b c", ""]})
    path = tmp_path / f"x{suffix}"
    labelled = {"SEX": {1: "male", 2: "female"}}
    if suffix in (".sav", ".zsav"):
        compress = suffix == ".zsav"
        pyreadstat.write_sav(frame, path, variable_value_labels=labelled, compress=compress)
    else:
        write = {".dta": "write_dta", ".xpt": "write_xport", ".por": "write_por"}[suffix]
        getattr(pyreadstat, write)(frame, path)
    read = import_table(path, tmp_path / "out.parquet")
    columns = read_table(tmp_path / "out.parquet").to_pydict()
    assert read.records == 3
    assert columns["SEX"] == ["1", "2", None]
    assert columns["NOTE"] == ["a", "b c", None]
    if suffix == ".sav":
        assert "codes were written and not their labels ('SEX')" in read.notes[0]
        import_table(path, tmp_path / "out.parquet", labels=True)
        labels = read_table(tmp_path / "out.parquet").to_pydict()["SEX"]
        assert labels == ["male", "female", None]
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(TableError, match="cannot be read"):
        import_table(path, tmp_path / "out.parquet")


def test_queries_of_duckdb_run_once(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "c.duckdb")) as database:
        database.execute("create table v as select range i, 'a' || range s from range(50000)")
        database.execute("create sequence n")
    address = f"duckdb://{tmp_path}/c.duckdb"
    out = tmp_path / "out.parquet"
    assert import_query("select * from v", address, out) == Imported(50_000, ("i", "s"))
    table = read_table(out)
    assert table.column("i").type == pa.int64()
    assert sum(table.column("i").to_pylist()) == 50_000 * 49_999 // 2
    for sql, why in (
        ("selec", "DuckDB refuses the query .ParserException"),
        ("select nothing from v", "DuckDB refuses the query .BinderException.: .*nothing"),
        ("select i, i from v", "two columns of one name|refuses"),
        ("select [1, 2] as li", "column 'li' of type list"),
        ("create table w (i int)", "refuses the query|returns no records"),
    ):
        with pytest.raises(TableError, match=why):
            import_query(sql, address, tmp_path / "other.parquet")
    with pytest.raises(TableError) as error:
        import_query("select cast(s as int) as s from v", address, tmp_path / "other.parquet")
    assert "a0" not in str(error.value)  # the value that is no number
    assert not (tmp_path / "other.parquet").exists()
    assert not list(tmp_path.glob(".*part"))
    for place, why in (
        ("mysql://x", "must begin with duckdb://"),
        ("duckdb:///no/such.duckdb", "no such file"),
        (f"duckdb://{out}", "cannot be opened as a DuckDB database"),
    ):
        with pytest.raises(TableError, match=why):
            import_query("select 1", place, tmp_path / "other.parquet")


def test_an_address_of_a_database_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be reached") as error:
        import_query("select 1", "postgresql://u:secret@127.0.0.1:1/x", tmp_path / "o.parquet")
    assert "secret" not in str(error.value)


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for module, package, source in (
        ("python_calamine", "python-calamine", "x.xlsx"),
        ("pyreadstat", "pyreadstat", "x.sav"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        (tmp_path / source).write_bytes(b"x")
        with pytest.raises(TableError, match=f"pip install {package} .it belongs to the extra"):
            import_table(tmp_path / source, tmp_path / "out.parquet")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(TableError, match="pip install duckdb"):
        import_query("select 1", "duckdb://", tmp_path / "out.parquet")


def test_outputs_and_sources_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match="an import writes a Parquet file"):
        import_table(tmp_path / "x.csv", tmp_path / "out.csv")
    (tmp_path / "x.doc").write_text("a\n1\n")
    with pytest.raises(TableError, match="no known ending"):
        import_table(tmp_path / "x.doc", tmp_path / "out.parquet")
    with pytest.raises(TableError, match="there is no such file"):
        import_table(tmp_path / "y.csv", tmp_path / "out.parquet")


def test_no_field_changes_another_that_is_well_formed(tmp_path: Path) -> None:
    plain = [f"{i},{i}.5,w{i}" for i in range(20)]
    _, expected = imported(tmp_path, "\n".join(["a,b,c", *plain]))
    for hostile in ('x,"y\nz",w', '"1",2', '1,2,"3', "\ufeff1,2,3", '"a"b,1,2', "\x00,1,2"):
        _, found = imported(tmp_path, "\n".join(["a,b,c", *plain[:10], hostile, *plain[10:]]))
        records = list(zip(*found.values(), strict=True))
        wanted = list(zip(*expected.values(), strict=True))
        assert records[:10] == wanted[:10]
        assert records[-10:] == wanted[10:]
        assert len(records) <= 21


def test_queries_of_postgresql(tmp_path: Path) -> None:
    from tests.ledger.server import Server

    server = Server()
    try:
        server.start()
        address = f"postgresql://tacit@/postgres?host={server.folder}"
        sql = "select i, 'a' || i as s, date '2026-01-01' + i as d from generate_series(1, 9) i"
        out = tmp_path / "out.parquet"
        assert import_query(sql, address, out) == Imported(9, ("i", "s", "d"))
        assert read_table(out).column("d").to_pylist()[0] == datetime.date(2026, 1, 2)
        with pytest.raises(TableError, match="PostgreSQL refuses the query"):
            import_query("select nothing", address, out)
    finally:
        server.remove()
