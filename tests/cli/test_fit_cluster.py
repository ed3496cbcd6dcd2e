"""The commands of docs/larger_than_memory.md and docs/on_a_cluster.md run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.helpers import SCHEMA, refused, rows, run

DOCS = Path(__file__).parents[2] / "docs"


def commands(page: str) -> list[list[str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(line)[1:] for block in found for line in block.splitlines()]


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    header = ["id", "age", "sex", "hours", "income"]
    records = [dict(zip(header, row, strict=True)) for row in rows()]
    for part in range(3):
        pyarrow.parquet.write_table(pa.Table.from_pylist(records[part::3]), f"part-{part}.parquet")
    return tmp_path


def test_several_files(parts: Path) -> None:
    told = commands("larger_than_memory.md")
    assert len(told) == 2
    for words in told:
        result = run(*words)
        assert result.exit_code == 0, result.output
        assert (parts / words[-1]).stat().st_size > 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_scheduler(parts: Path) -> None:
    from distributed import LocalCluster

    ((*words, address),) = commands("on_a_cluster.md")
    assert address.startswith("tcp://")
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=1, host="127.0.0.1", protocol="tcp://", **options) as cluster:
        result = run(*words, cluster.scheduler_address)
        assert result.exit_code == 0, result.output
        assert (parts / "model.tacit").stat().st_size > 0
        more = [*words, cluster.scheduler_address, "--force"]
        assert "no --evaluate" in refused(*more, "--evaluate", "0.1")
        assert "leave --delimiter out" in refused(*more, "--delimiter", ";")
        unit = "several blocks"
        assert unit in refused(*more, "--unit", "id")


def test_certificates_belong_together(parts: Path) -> None:
    usual = ["fit", "part-*.parquet", "--schema", "schema.toml", "--epsilon", 1, "--out", "m.tacit"]
    assert "belong together" in refused(*usual, "--tls-ca", "ca.pem")
    given = ["--tls-ca", "a.pem", "--tls-cert", "b.pem", "--tls-key", "c.pem"]
    assert "begins with tls://" in refused(*usual, *given, "--scheduler", "tcp://127.0.0.1:9")
    assert not (parts / "m.tacit").exists()
