"""What a wheel holds: all of ``src/tacit``, its licence and its command, and nothing else.

`make wheel-test` builds one and says where it is (TACIT_WHEEL); skipped otherwise.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"


@pytest.fixture
def wheel() -> zipfile.ZipFile:
    if "TACIT_WHEEL" not in os.environ:
        pytest.skip("no wheel: `make wheel-test` builds one and sets TACIT_WHEEL")
    return zipfile.ZipFile(os.environ["TACIT_WHEEL"])


def sources() -> set[str]:
    found = (path for path in (SOURCE / "tacit").rglob("*") if path.is_file())
    return {
        path.relative_to(SOURCE).as_posix() for path in found if "__pycache__" not in path.parts
    }


def test_a_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    (about,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
    described = {name for name in names if name.startswith(f"{about}/")}
    assert names - described == sources()
    assert "tacit/py.typed" in names
    assert {f"{about}/licenses/LICENSE", f"{about}/METADATA"} <= described


def test_a_wheel_has_its_command(wheel: zipfile.ZipFile) -> None:
    (entry,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "tacit = tacit.cli:main" in wheel.read(entry).decode()
