from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import HOURS, SCHEMA, rows, run, write_csv


@pytest.fixture(autouse=True)
def plain_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "people.csv", rows())


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA)
    return path


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    path = tmp_path / "hours.toml"
    path.write_text(HOURS)
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was fitted once for all tests."""
    folder = tmp_path_factory.mktemp("fitted")
    table = write_csv(folder / "people.csv", rows())
    (folder / "schema.toml").write_text(SCHEMA)
    path = folder / "model.tacit"
    result = run("fit", table, "--schema", folder / "schema.toml", "-e", 2, "-o", path)
    assert result.exit_code == 0, result.output
    return path
