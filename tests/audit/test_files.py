"""The road from a file to a model, with one hostile line more, for schemas of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.audit import audit_files
from tacit.audit.files import FileAudit
from tacit.linear_model import LogisticRegression, Ridge
from tacit.pipeline import PrivatePipeline
from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Intervals,
    Number,
    NumberTarget,
    Schema,
    SchemaEncoder,
)
from tacit.table_model import TableModel
from tests.cli.helpers import refused, run

SMALL = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
WIDE = Schema(
    (
        Number("a, b", 1, 1000, log=True),
        Category('to"wn', ("a", "b,c", "\u00e5")),
        Boolean("smoker"),
        Intervals("hours", (10, 20)),
    ),
    NumberTarget("pay", -1, 5),
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the fields that are most likely to matter."""
    from tacit.audit import files

    kept = {kind: files._FIELDS[kind] for kind in ("nothing", "a huge number", "NUL")}
    monkeypatch.setattr(files, "_FIELDS", kept)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("schema", "estimator"), [(SMALL, LogisticRegression(1.0, 1e-6)), (WIDE, Ridge(1.0, 1e-6))]
)
def test_no_line_moves_a_release_too_far(schema: Schema, estimator: Any) -> None:
    found = audit_files(TableModel(schema, estimator))
    assert found.contradictions == ()
    assert found.releases >= found.pairs >= 30
    assert "no further apart" in found.conclusion
    assert "passed" not in found.conclusion


@pytest.mark.slow
def test_all_lines_and_a_wide_schema() -> None:
    assert audit_files(TableModel(WIDE, Ridge(1.0, 1e-6))).contradictions == ()


class Counting(PrivatePipeline):
    """A model whose ridge follows the number of lines, as if that were public."""

    def fit_file(self, path: Any, **more: Any) -> Counting:
        n_lines = Path(path).read_bytes().count(b"\n")
        self["estimator"].set_params(regularization=float(n_lines))
        return super().fit_file(path, **more)


@pytest.mark.usefixtures("few")
def test_what_follows_the_number_of_lines_is_seen() -> None:
    steps = TableModel(SMALL, LogisticRegression(1.0, 1e-6)).steps
    found = audit_files(Counting(steps, epsilon=None))
    assert len(found.contradictions) > 5
    assert found.conclusion.startswith("CONTRADICTED")


@pytest.mark.usefixtures("few")
def test_a_line_that_refuses_the_others_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = SchemaEncoder.unread_file

    def short_ones(self: SchemaEncoder, path: Any, **more: Any) -> Any:
        if Path(path).stat().st_size > 1_000_000:
            raise ValueError("the file is too long")
        return unread(self, path, **more)

    monkeypatch.setattr(SchemaEncoder, "unread_file", short_ones)
    found = audit_files(TableModel(SMALL, LogisticRegression(1.0, 1e-6)))
    assert {line.split(",")[0] for line in found.contradictions} == {"a line of megabytes"}


def test_a_schema_without_a_target_is_refused() -> None:
    with pytest.raises(ValueError, match="no target"):
        audit_files(TableModel(Schema((Number("age", 0, 100),)), LogisticRegression()))


@pytest.mark.usefixtures("few")
def test_the_command_tries_files_of_a_schema(schema: Path, tmp_path: Path) -> None:
    done = run("audit", "--schema", schema, "-e", 1, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["contradictions"] == []
    assert FileAudit(said["pairs"], said["releases"]).conclusion == said["conclusion"]
    assert "leave one out" in refused(
        "audit", "--schema", schema, "-e", 1, "--html", tmp_path / "a"
    )
    assert "ridge" in refused("audit", "--schema", schema, "-e", 1, "--model", "ridge")
