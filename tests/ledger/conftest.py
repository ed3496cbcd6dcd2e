"""Addresses of ledgers that are not there yet, on both stores."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tests.ledger.connection_helpers import BUDGET, TENTH, idle
from tests.ledger.server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    made = Server()
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a new address on each of the stores."""
    if request.param == "sqlite":
        return str(tmp_path / "a.ledger")
    server: Server = request.getfixturevalue("server")
    return server.url(f"a{uuid.uuid4().hex}")


@pytest.fixture
def new_address(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Return new addresses, on the store asked for."""

    def made(store: str) -> str:
        name = f"a{uuid.uuid4().hex}"
        if store == "sqlite":
            return str(tmp_path / name)
        server: Server = request.getfixturevalue("server")
        return server.url(name)

    return made


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Return a ledger with one charge, whose connection is kept."""
    made = Ledger.create(tmp_path / "a", BUDGET)
    made.charge(TENTH)
    assert idle(made)
    return made
