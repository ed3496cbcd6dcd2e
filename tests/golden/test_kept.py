"""Files that tacit 0.1.0 wrote keep loading, and hold what they held."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.registry import ELSEWHERE
from tacit.saving import inspect
from tests.golden.cases import areas
from tests.golden.comparing import ELSEWHERE as NEARLY
from tests.golden.comparing import differences
from tests.golden.kept import EXPECTED, FOLDER, asked, content
from tests.golden.kept_others import READERS

FOUND: dict[str, Any] = json.loads(EXPECTED.read_text())
MODELS = sorted(path.stem for path in FOLDER.glob("*.tacit"))


def needs_torch(name: str) -> None:
    is_network = name == "training" or ELSEWHERE.get(name, "").startswith("tacit.deep")
    if is_network and "networks" not in areas():
        pytest.skip("torch is not installed")


# Classes that wrote files, and what such files are loaded into now.
NOW = {"Pipeline": "PrivatePipeline", "TableModel": "PrivatePipeline"}


def check(expected: Any, found: Any) -> None:
    """Compare what is read with what was; a promise may be computed better, and never worse."""
    wrong = [
        difference
        for difference in differences({"released": expected}, {"released": found}, NEARLY)
        if not (difference.where.endswith(".epsilon") and difference.found <= difference.stored)
    ]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("name", MODELS)
def test_a_model(name: str, tmp_path: Path) -> None:
    needs_torch(name)
    path = tmp_path / f"{name}.tacit"
    shutil.copyfile(FOLDER / path.name, path)
    model, certificate = tacit.load(path), inspect(path)
    stored = FOUND[path.name]
    check({**stored, "kind": NOW.get(stored["kind"], stored["kind"])}, _as_loaded(name, model))
    assert certificate.privacy == model.privacy_
    assert str(certificate)
    # it is written again as it was read, so that what it holds is not lost
    tacit.save(model, tmp_path / "again.tacit")
    again = tacit.load(tmp_path / "again.tacit")
    assert _as_loaded(name, again) == _as_loaded(name, model)


def _as_loaded(name: str, model: Any) -> dict[str, Any]:
    return json.loads(json.dumps(content(name, model)))


@pytest.mark.parametrize("kind", READERS)
def test_others(kind: str, tmp_path: Path) -> None:
    needs_torch(kind)
    for path in FOLDER.glob(f"{kind}*"):
        shutil.copyfile(path, tmp_path / path.name)
    found = json.loads(json.dumps(READERS[kind](tmp_path)))
    assert found
    for name, one in found.items():
        check(FOUND[name], one)


def test_all_of_them_are_read() -> None:
    """Whatever is kept is expected to hold something, and the other way round."""
    files = {path.name for path in FOLDER.iterdir()} - {EXPECTED.name}
    beside = {name for name in files if not any(name == key for key in FOUND)}
    assert all(name.startswith(tuple(READERS)) for name in beside)
    assert {name for name in FOUND if name.endswith(".tacit")} == {f"{m}.tacit" for m in MODELS}
    assert all(any(name.startswith(kind) for name in files) for kind in READERS)


def test_rows_are_asked_about_for_every_model() -> None:
    assert all(len(asked(name)) for name in MODELS)
