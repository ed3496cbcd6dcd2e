"""What a charge costs beside the bare transaction, and what a ledger of a million entries costs.

    python benchmarks/ledger.py [FOLDER] [POSTGRESQL_URL]

SQLite: a charge against BEGIN IMMEDIATE, insert, update, commit with the same settings, by turns.
PostgreSQL: 32 clients, as processes, against the same bare transaction, by turns, after one round
to warm up. Then a ledger of a million entries is made in bulk, opened, followed from 1,000 before
its end, and charged. Results go to results/ledger.md, if there is a server.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import harness

from tacit.ledger import Ledger
from tacit.ledger.journal import next_entry
from tacit.ledger.sqlite import SqliteStore
from tacit.ledger.store import Draft
from tacit.privacy import Budget, Event, Gaussian, PureEpsilon
from tacit.privacy.accountant import charge_of

ROUNDS, CHARGES, CLIENTS, SECONDS = 6, 40, 32, 2.0
SQLITE_ROUNDS = 15
Row = tuple[str, str, str]


def lengthened(path: str | os.PathLike[str], event: Event, n: int) -> None:
    """Add n charges to a SQLite ledger at once, as n charges would: for tests and timing only."""
    ledger, store = Ledger.open(path), SqliteStore(path)
    last = store.reading(-1).entries[-1]
    state, terms = ledger.state(), ledger.terms
    cost = list(terms.price(charge_of(event, 0.0, terms.budget)))
    fixed = {
        "kind": "charge",
        "event": event.to_dict(),
        "delta": 0.0,
        "cost": cost,
        "analyst": None,
        "partition": None,
        "label": "",
        "purpose": "",
        "who": "",
    }
    draft = Draft(fixed)
    with sqlite3.connect(path) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        made = triggers.fetchall()
        for name, _ in made:
            connection.execute(f"DROP TRIGGER {name}")
        for _ in range(n):
            state = state.after(fixed)
            last = next_entry(draft, uuid.uuid4().hex, last, state)
            row = (last.number, last.key, last.body, last.hash)
            connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
        head = (last.number, last.hash, state.text)
        connection.execute("UPDATE head SET number = ?, hash = ?, state = ?", head)
        for _, sql in made:
            connection.execute(sql)
    connection.close()


def timed(work: Callable[[], object], n: int) -> float:
    """Return the median seconds of n calls."""
    took = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return statistics.median(took)


def sqlite_bare(path: Path) -> Callable[[], None]:
    """Return the bare transaction: the least that makes a row of a ledger's size durable."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute(
        "CREATE TABLE entries (number INTEGER PRIMARY KEY, key TEXT UNIQUE, body TEXT, hash TEXT)"
    )
    connection.execute("CREATE TABLE head (number INTEGER, hash TEXT, state TEXT)")
    connection.execute("INSERT INTO head VALUES (0, '', '')")
    body, state = "b" * 500, "s" * 60

    def once() -> None:
        connection.execute("BEGIN IMMEDIATE")
        key, ash = uuid.uuid4().hex, "h" * 64
        row = connection.execute(
            "INSERT INTO entries (key, body, hash) VALUES (?, ?, ?)", (key, body, ash)
        )
        head = (row.lastrowid, ash, state)
        connection.execute("UPDATE head SET number = ?, hash = ?, state = ?", head)
        connection.execute("COMMIT")

    return once


def sqlite_speed(folder: Path, rule: str) -> Row:
    ledger = Ledger.create(folder / f"{rule}.ledger", Budget(1.0, 1e-6), rule)
    bare, event = sqlite_bare(folder / f"{rule}.db"), Gaussian(1e4)
    pairs = []
    for _ in range(SQLITE_ROUNDS):
        pairs.append((timed(bare, CHARGES), timed(lambda: ledger.charge(event), CHARGES)))
        print(f"  bare {pairs[-1][0] * 1e3:6.2f} ms, charge {pairs[-1][1] * 1e3:6.2f} ms")
    ratio = statistics.median(charge / bare for bare, charge in pairs)
    one, other = (statistics.median(times) * 1e3 for times in zip(*pairs, strict=True))
    found = f"{ratio:.2f} times ({other:.1f} ms, bare {one:.1f} ms)"
    return f"SQLite, rule {rule}: a charge beside the bare one", found, "at most 1.3 times"


def long_speed(folder: Path, n: int = 1_000_000) -> Row:
    path, event = folder / "long.ledger", PureEpsilon(1e-9)
    Ledger.create(path, Budget(1.0))
    start = time.perf_counter()
    lengthened(path, event, n)
    print(f"  {n:,} entries made in {time.perf_counter() - start:.0f} s")
    took = timed(lambda: Ledger.open(path).charge(event), 15)
    start = time.perf_counter()
    print(f"  {Ledger.open(path).verify()}, {time.perf_counter() - start:.0f} s")
    what = f"{n:,} entries: opened, the last 1,000 followed, charged"
    return what, f"{took * 1e3:.0f} ms", "below 100 ms"


# --- PostgreSQL ---------------------------------------------------------------------------------


def _bare_client(url: str, go: Barrier, done: multiprocessing.Queue[int]) -> None:
    import psycopg

    connection = psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor)
    connection.execute("SET synchronous_commit = on")
    n, body, state = 0, "b" * 500, "s" * 60
    go.wait()
    end = time.time() + SECONDS
    while time.time() < end:
        row = connection.execute("BEGIN; SELECT number, hash, state FROM bare.head FOR UPDATE")
        row.nextset()
        (number, ash, _) = row.fetchone() or (0, "", "")
        connection.execute(
            "INSERT INTO bare.entries VALUES (%s, %s, %s, %s); "
            "UPDATE bare.head SET number = %s, state = %s; COMMIT",
            (number + 1, uuid.uuid4().hex, body, ash, number + 1, state),
        )
        n += 1
    done.put(n)


def _ledger_client(url: str, go: Barrier, done: multiprocessing.Queue[int]) -> None:
    ledger, n, event = Ledger.open(url), 0, Gaussian(1e5)
    go.wait()
    end = time.time() + SECONDS
    while time.time() < end:
        ledger.charge(event)
        n += 1
    done.put(n)


def _throughput(client: Callable[..., None], url: str) -> float:
    done: multiprocessing.Queue[int] = multiprocessing.Queue()
    go = multiprocessing.Barrier(CLIENTS)  # nobody's start is counted
    clients = [multiprocessing.Process(target=client, args=(url, go, done)) for _ in range(CLIENTS)]
    for one in clients:
        one.start()
    total = sum(done.get() for _ in clients)
    for one in clients:
        one.join()
    return total / SECONDS


def postgres_speed(url: str) -> Row:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA IF EXISTS bare CASCADE")
        connection.execute("CREATE SCHEMA bare")
        connection.execute(
            "CREATE TABLE bare.entries (number BIGINT PRIMARY KEY, key TEXT UNIQUE, body TEXT, "
            "hash TEXT)"
        )
        connection.execute("CREATE TABLE bare.head (number BIGINT, hash TEXT, state TEXT)")
        connection.execute("INSERT INTO bare.head VALUES (0, %s, '')", ("h" * 64,))
    joint = "&" if "?" in url else "?"
    address = f"{url}{joint}ledger=speed{uuid.uuid4().hex[:8]}"
    Ledger.create(address, Budget(1.0, 1e-6))
    pairs = []
    for _ in range(ROUNDS + 1):
        pairs.append((_throughput(_bare_client, url), _throughput(_ledger_client, address)))
        bare, ours = pairs[-1]
        print(f"  {CLIENTS} clients: bare {bare:.0f} a second, charges {ours:.0f} a second")
    print(f"  {Ledger.open(address).verify()}")
    # By sums: what else the machine does comes and goes.
    bare, ours = (sum(of) / ROUNDS for of in zip(*pairs[1:], strict=True))
    found = f"{ours / bare:.2f} of it ({ours:.0f} a second, bare {bare:.0f})"
    return f"PostgreSQL: throughput of {CLIENTS} clients beside the bare one", found, "at least 0.8"


def main(folder: str | None = None, url: str | None = None) -> None:
    """Measure, print, and write results/ledger.md if all of it was measured."""
    run = harness.Run()
    with tempfile.TemporaryDirectory(dir=folder) as made:
        rows = [sqlite_speed(Path(made), rule) for rule in ("either", "renyi")]
        rows += [] if url is None else [postgres_speed(url)]
        rows.append(long_speed(Path(made)))
    said = harness.markdown_table(("what", "measured", "asked for"), rows)
    print(said)
    about = (__doc__ or "").split("\n\n")
    text = "\n\n".join(
        ["# Ledger", harness.machine(run).partition(" Peers:")[0], about[0], about[2].strip(), said]
    )
    (harness.results_folder(url is None) / "ledger.md").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
