"""A password that PostgreSQL asks for is in nothing that tacit writes, shows or says."""

from __future__ import annotations

import logging
import os
import pickle
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.ledger import Ledger, LedgerError
from tacit.ledger.store import store_at
from tacit.location import Mean
from tacit.privacy import Budget, PureEpsilon
from tacit.report import write_ledger
from tacit.saving import inspect, save
from tests.cli.helpers import run as command
from tests.ledger.server import Server

SECRET = "hunter2"


@pytest.fixture
def asking(server: Server) -> str:
    """Return the address of a ledger of somebody whom the server asks for a password."""
    import psycopg

    with psycopg.connect(server.url("x").split("&ledger=")[0], autocommit=True) as session:
        session.execute("DROP ROLE IF EXISTS ann")
        session.execute(f"CREATE ROLE ann LOGIN SUPERUSER PASSWORD '{SECRET}'".encode())
        rules = server.folder / "data" / "pg_hba.conf"
        text = rules.read_text()
        if "ann" not in text:
            rules.write_text(f"local all ann scram-sha-256\n{text}")
            session.execute("SELECT pg_reload_conf()")
    return server.url("asked").replace("tacit@", "ann@")


def test_a_password_is_nowhere(
    asking: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    for wrong in (None, f"not {SECRET}"):
        if wrong is None:
            monkeypatch.delenv("PGPASSWORD", raising=False)
        else:
            monkeypatch.setenv("PGPASSWORD", wrong)
        with pytest.raises(LedgerError) as error:
            Ledger.open(asking)
        shown += traceback.format_exception(error.value)
        assert "password" in str(error.value)
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:*:ann:{SECRET}\n")
    file.chmod(0o600)
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", str(file))
    ledger = Ledger.create(asking, Budget(1.0))
    model = Mean(0.25, 0.0, row_norm=2.0, accountant=ledger).fit(np.ones((20, 2)))
    save(model, tmp_path / "m.tacit")
    write_ledger(tmp_path / "a.html", ledger)
    again = pickle.loads(pickle.dumps(ledger))
    again.charge(PureEpsilon(0.25))
    for words in (("show", asking), ("show", asking, "--json"), ("verify", asking)):
        shown.append(command("ledger", *words).output)
    shown += [repr(ledger), repr(again), repr(vars(again._journal.store)), str(model.privacy_)]
    shown += [str(inspect(tmp_path / "m.tacit")), repr(pickle.dumps(ledger)), str(again.head)]
    shown += [str(list(ledger.export())), str(again.verify()), *capfd.readouterr(), caplog.text]
    shown += [(tmp_path / name).read_bytes().decode("latin-1") for name in ("m.tacit", "a.html")]
    shown.append(Path("/proc/self/cmdline").read_text() if Path("/proc/self").exists() else "")
    assert SECRET not in "".join(shown)
    assert ledger.spent() == 0.5


@pytest.mark.parametrize(
    "address",
    [
        "host=h user=ann password=hunter2 dbname=d",
        "user = ann  PASSWORD = hunter2",
        "postgresql+psycopg://ann:hunter2@h/d",
        "POSTGRESQL://ann:hunter2@h/d",
        " postgresql://ann:hunter2@h/d",
        "mysql://ann:hunter2@h/d",
        Path("postgresql://ann:hunter2@h/d"),
        "postgresql://ann@h/d?Password=hunter2",
        "postgresql://ann@h/d?%70assword=hunter2",
        "postgresql://ann@h/d?scram_client_key=hunter2",
        "postgresql:ann:hunter2@h",
        "postgresql:ann:hunter2",
        " Postgres : ann:hunter2@h/d",
        "postgresql//ann:hunter2@h/d",
        "//ann:hunter2@h/d",
        "ann:hunter2@h/d",
        "ann:hun/ter2hunter2@h",
        "h/d?password=hunter2",
        "/h/d;sslpassword=hunter2",
        b"postgresql:ann:hunter2@h",
        Path("/data") / "postgresql:ann:hunter2@h",
        "postgresql://ann:hunter2",
        "postgresql://ann:/hunter2@h/d",
        "postgresql://ann:1/hunter2@h/d",
        "postgresql://ann:1?hunter2@h/d",
        "postgresql://ann:1#hunter2@h/d",
        "postgresql://ann@h:hunter2,i:5432/d",
    ],
    ids=str,
)
def test_what_was_meant_for_another_program_is_not_repeated(address: str | bytes | Path) -> None:
    given: Any = address
    for call in (lambda: Ledger.open(given), lambda: Ledger.create(given, Budget(1.0))):
        with pytest.raises(ValueError) as error:
            call()
        assert SECRET not in "".join(traceback.format_exception_only(error.value))
        assert error.value.__cause__ is None
    assert SECRET not in command("ledger", "show", os.fsdecode(address)).output


def test_a_file_may_have_any_name_that_is_no_connection(tmp_path: Path) -> None:
    for name in ("a=b", "password", "C:", "x y=z", "host", "10:30@home", "ann@home"):
        assert Ledger.create(tmp_path / name, Budget(1.0)).spent() == 0.0


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann@h1:5432,h2:5433/d?ledger=a",
        "postgresql://ann@[::1]:5432/d?ledger=a",
        "postgresql://h:5432/d?user=ann%40corp&ledger=a",
        "postgresql://h:5432/d?user=ann@corp&ledger=a",
        "postgresql:///d?host=/run/postgresql&ledger=a",
    ],
)
def test_ports_and_users_are_no_passwords(address: str) -> None:
    kept = store_at(address).address
    assert kept.replace("%40", "@").replace("%2F", "/") == address.replace("%40", "@")
