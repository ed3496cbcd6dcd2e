"""Whatever stands in a file, a command gives a result or one sentence, and no traceback."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import feather, parquet

from tests.cli.helpers import SCHEMA, rows, run, write_csv

# A case here is a whole command, or three; 10,000 of each test belong to a release.
CASES = int(os.environ.get("TACIT_FUZZ_CASES", "20"))
FUZZ = settings(
    max_examples=CASES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def edits(draw: st.DrawFn, original: bytes) -> bytes:
    """Return a file with a piece replaced, or bytes that were never one."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.binary(max_size=200))
    start = draw(st.integers(0, len(original)))
    stop = min(start + draw(st.integers(0, 30)), len(original))
    return original[:start] + draw(st.binary(max_size=12)) + original[stop:]


def outcome_is_clean(out: Path | None, *words: object) -> None:
    result = run(*words)
    assert result.exit_code in (0, 2), result.output
    assert "Traceback" not in result.output
    if out is not None:
        # A fit whose released count cannot be told from 0 is refused, and what was paid is saved.
        is_saved = result.exit_code == 0 or f"is saved in {out.name}" in result.stderr
        assert out.exists() == is_saved
        out.unlink(missing_ok=True)


KINDS = ["csv", "csv.gz", "parquet", "arrow", "feather"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the same table as a file of every kind."""
    folder = tmp_path_factory.mktemp("tables")
    text = write_csv(folder / "table.csv", rows(60)).read_bytes()
    table = arrow_csv.read_csv(folder / "table.csv")
    parquet.write_table(table, folder / "table.parquet")
    feather.write_feather(table, folder / "table.feather")
    with (
        pa.OSFile(str(folder / "table.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as f,
    ):
        f.write_table(table)
    (folder / "table.csv.gz").write_bytes(gzip.compress(text, mtime=0))
    return {kind: (folder / f"table.{kind}").read_bytes() for kind in KINDS}


@pytest.mark.slow
@FUZZ
@given(data=st.data())
def test_tables(
    tmp_path: Path, schema: Path, model: Path, tables: dict[str, bytes], data: st.DataObject
) -> None:
    kind, other = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(KINDS))
    path = tmp_path / f"fuzzed.{kind}"
    is_misnamed = data.draw(st.integers(0, 9)) == 0
    path.write_bytes(data.draw(edits(tables[other if is_misnamed else kind])))
    out = tmp_path / "m.tacit"
    outcome_is_clean(out, "fit", path, "--schema", schema, "-e", 1, "-o", out)
    outcome_is_clean(None, "predict", model, path, "--proba", "--json")
    outcome_is_clean(None, "schema", "draft", path, "--target", "income")
    outcome_is_clean(None, "schema", "check", path, "--schema", schema)
    outcome_is_clean(None, "describe", path, "--schema", schema, "-e", 1, "--by", "sex")


@pytest.mark.slow
@FUZZ
@given(data=st.data())
def test_schemas(tmp_path: Path, tables: dict[str, bytes], data: st.DataObject) -> None:
    table = tmp_path / "original.csv"
    table.write_bytes(tables["csv"])
    path = tmp_path / f"fuzzed.{data.draw(st.sampled_from(['toml', 'json']))}"
    path.write_bytes(data.draw(edits(SCHEMA.encode())))
    out = tmp_path / "m.tacit"
    outcome_is_clean(out, "fit", table, "--schema", path, "-e", 1, "-o", out)
    outcome_is_clean(None, "plan", "--rows", 100, "--schema", path, "-e", 1)
    outcome_is_clean(None, "describe", table, "--schema", path, "-e", 1)


@FUZZ
@given(data=st.data())
def test_models(tmp_path: Path, model: Path, data: st.DataObject) -> None:
    original = model.read_bytes()
    path = tmp_path / "fuzzed.tacit"
    path.write_bytes(data.draw(edits(original)))
    result = run("inspect", path)
    assert result.exit_code == (0 if path.read_bytes() == original else 2), result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "command", ["describe", "fit", "plan", "predict", "inspect", "compare", "schema"]
)
@FUZZ
@given(words=st.lists(st.text(max_size=8).filter(lambda word: word != "--debug"), max_size=6))
def test_words(command: str, words: list[str]) -> None:
    result = run(command, *words)
    assert result.exit_code in (0, 2), result.output
    assert "Traceback" not in result.output
