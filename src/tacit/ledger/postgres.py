"""Store a ledger in a PostgreSQL database that many machines share (docs/decisions/0026)."""

from __future__ import annotations

import contextlib
import re
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tacit.ledger.store import (
    PATIENCE,
    REMEDY,
    Entry,
    Head,
    Interrupted,
    LedgerDamaged,
    LedgerError,
)
from tacit.privacy.fork import generation

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.pq.abc import PGresult

Row = tuple[str, ...]

_TABLES = (
    "CREATE SCHEMA {0}",
    "CREATE TABLE {0}.entries (number BIGINT PRIMARY KEY, key TEXT UNIQUE, body TEXT NOT NULL, "
    "hash TEXT NOT NULL)",
    "CREATE TABLE {0}.head (one INT PRIMARY KEY CHECK (one = 1), number BIGINT NOT NULL, "
    "hash TEXT NOT NULL, state TEXT NOT NULL)",
)
_REFUSE = " BEGIN RAISE EXCEPTION 'a ledger is only added to'; END "
_TRIGGERS = (
    f"CREATE FUNCTION {{0}}.refuse() RETURNS trigger LANGUAGE plpgsql AS $${_REFUSE}$$",
    "CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {0}.entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION {0}.refuse()",
    "CREATE TRIGGER head_stays BEFORE DELETE OR TRUNCATE ON {0}.head "
    "FOR EACH STATEMENT EXECUTE FUNCTION {0}.refuse()",
    "CREATE TRIGGER head_advances BEFORE UPDATE ON {0}.head FOR EACH ROW "
    "WHEN (NEW.number <> OLD.number + 1) EXECUTE FUNCTION {0}.refuse()",
)
_NAMES = ["entries_stay", "head_advances", "head_stays"]
_SECRET = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
_PORT = re.compile(r"\[[0-9a-f:.%]*\]|:\d+(?=[,/?]|$)", re.I)  # and hosts that are IPv6 addresses
_HIDDEN = re.compile(r":.*@", re.S)
_HOST = re.compile(r"(\[[0-9a-z:.%]*\]|[^:\[\]]*)(:\d*)?", re.I)
_NOT_VALID = (
    "the ledger's address is no valid postgresql:// address; write "
    "postgresql://user@host:port/database?ledger=name."
)
_ROWS = "SELECT number, body, hash, key FROM {0}.entries "
_INSERT = "INSERT INTO {0}.entries (number, key, body, hash) VALUES (%s, %s, %s, %s)"
_QUEUE = 0x74616374  # "tact": first key of the advisory lock
_HEAD = "SELECT number, hash, state FROM {0}.head"
# After it has the lock, each statement of a writer sees all commits so far (READ COMMITTED). A
# reader sees one instant and never waits (REPEATABLE READ).
# Writers queue for an advisory lock before they lock the head's row. In a queue for a row lock,
# each release wakes the first waiter to read the row again and the next to take its place.
_WRITE = ("READ COMMITTED", "EXECUTE turn; EXECUTE locked")
_READ = ("REPEATABLE READ READ ONLY", "EXECUTE head")
# Planned once per connection: planning takes longer than execution.
_PREPARED = (
    f"PREPARE since(bigint) AS {_ROWS}WHERE number = $1",
    f"PREPARE keyed(text) AS {_ROWS}WHERE key = $1",
    f"PREPARE last AS {_ROWS}ORDER BY number DESC LIMIT 2",
    f"PREPARE head AS {_HEAD}",
    f"PREPARE turn AS SELECT pg_advisory_xact_lock({_QUEUE}, '{{0}}.head'::regclass::oid::int4)",
    f"PREPARE locked AS {_HEAD} FOR UPDATE",
    "PREPARE added(bigint, text, text, text) AS "
    "INSERT INTO {0}.entries (number, key, body, hash) VALUES ($1, $2, $3, $4)",
    "PREPARE moved(bigint, text, text) AS UPDATE {0}.head SET number = $1, hash = $2, state = $3",
)
_SETTINGS = (
    # A commit returns after the data are on disk, whatever the database's default.
    "SET synchronous_commit = on",
    "SET client_encoding = 'UTF8'",
    "SET default_transaction_isolation = 'read committed'",
    # Use only the server's own functions and operators: others could be replaced.
    "SET search_path = pg_catalog",
    f"SET lock_timeout = '{PATIENCE:g}s'",
    # A plan made while the ledger is short must still suit a long one: always use the index.
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    # Disabled scans have a huge nominal cost, which would trigger compilation of every query.
    "SET jit = off",
    # A client that hangs must not hold the lock for ever.
    f"SET idle_in_transaction_session_timeout = '{PATIENCE:g}s'",
)


class PostgresStore:
    """Stores entries in a schema of a PostgreSQL database.

    A charge waits for its turn (an advisory lock) and locks the row of the head (SELECT ... FOR
    UPDATE). The locks admit one writer at a time and show the last commit. Connections are reused
    by the next charge, but never after a fork.

    Parameters
    ----------
    address
        ``postgresql://user@host:port/database?ledger=name``, with any of libpq's parameters but a
        password. libpq takes the password from its password file, PGPASSWORD or a service file.
        The ledger's name is that of its schema, "tacit" by default.
    """

    def __init__(self, address: str) -> None:
        self._conninfo, self._name = _parsed(address)
        # Connections of the parent process: kept, since closing one here would end it for the
        # parent.
        self._inherited: list[Connection[Any]] = []
        self._start()

    def _start(self) -> None:
        """Start without connections, also after a fork."""
        self._idle: list[Connection[Any]] = []
        self._prepared: weakref.WeakSet[Connection[Any]] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._generation = generation()
        weakref.finalize(self, _close, self._idle, self._generation)

    @property
    def address(self) -> str:
        """The address, without any password."""
        joint = "&" if "?" in self._conninfo else "?"
        return f"{self._conninfo}{joint}{urlencode({'ledger': self._name})}"

    def create(self, entry: Entry, state: str) -> None:
        """Create the schema, which must not exist."""
        import psycopg

        with self._connected() as connection:
            try:
                connection.execute("BEGIN")
                for statement in _TABLES:
                    connection.execute(self._sql(statement))
                row = (entry.number, entry.key, entry.body, entry.hash)
                connection.execute(self._sql(_INSERT), row)
                head = "INSERT INTO {0}.head (number, hash, state, one) VALUES (%s, %s, %s, 1)"
                connection.execute(self._sql(head), (entry.number, entry.hash, state))
                for statement in _TRIGGERS:
                    connection.execute(self._sql(statement))
                connection.execute("COMMIT")
            except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
                raise LedgerError(
                    f"the database has a schema {self._name!r} already; name another ledger."
                ) from None
            except psycopg.Error as why:
                raise LedgerError(f"the ledger cannot be made: {_said(why)}") from None

    @contextlib.contextmanager
    def writing(self, since: int, key: str | None) -> Iterator[_Page]:
        """Return a transaction with exclusive write access, on disk when its block ends."""
        with self._connected() as connection, self._explained():
            page = _Page(self._ready(connection))
            page.begin(since, key, _WRITE)
            yield page
            page.commit()

    def reading(self, since: int, key: str | None = None) -> _Page:
        """Return the head, the entry ``since`` and the last two."""
        with self._connected() as connection, self._explained():
            page = _Page(self._ready(connection))
            page.begin(since, key, _READ)
            connection.execute("COMMIT")
            return page

    def entries(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield entries in blocks of five thousand."""
        for first in range(start, stop, 5000):
            with self._connected() as connection, self._explained():
                where = "WHERE number >= %s AND number < %s ORDER BY number"
                span = (first, min(first + 5000, stop))
                rows = connection.execute(self._sql(_ROWS + where), span).fetchall()
            yield from (Entry(*row) for row in rows)

    def check(self) -> None:
        """Raise if a trigger that protects the rows is missing or disabled."""
        statement = (
            "SELECT t.tgname, p.prosrc FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE n.nspname = %s AND NOT t.tgisinternal AND t.tgenabled = 'O' ORDER BY t.tgname"
        )
        with self._connected() as connection, self._explained():
            tables = connection.execute(statement, (self._name,)).fetchall()
        if tables != [(name, _REFUSE) for name in _NAMES]:
            raise LedgerDamaged(
                "a trigger that keeps rows from being changed is missing or disabled, so rows "
                f"may have been changed. {REMEDY}"
            )

    def _sql(self, statement: str) -> bytes:
        # `_parsed` made sure that the name is an ASCII identifier, so it needs no escaping.
        return statement.format(f'"{self._name}"').encode("ascii")

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection[Any]]:
        connection = self._taken()
        try:
            yield connection
        except BaseException:
            # Close it in any state: the server rolls back an uncommitted transaction.
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    def _taken(self) -> Connection[Any]:
        if self._generation != generation():
            # The lock is inherited too; a thread that does not exist here may hold it.
            self._inherited += self._idle
            self._start()
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        return self._connect()

    def _ready(self, connection: Connection[Any]) -> Connection[Any]:
        """Prepare the statements of a charge once per connection; the tables must exist."""
        if connection not in self._prepared:
            connection.execute(self._sql("; ".join(_PREPARED)))
            self._prepared.add(connection)
        return connection

    def _connect(self) -> Connection[Any]:
        try:
            import psycopg
        except ModuleNotFoundError:
            raise LedgerError(
                "a ledger in PostgreSQL needs psycopg; pip install 'tacit[postgres]'."
            ) from None
        try:
            # ClientCursor sends several statements in one message: a charge is two messages.
            connection = psycopg.connect(
                self._conninfo, autocommit=True, cursor_factory=psycopg.ClientCursor
            )
            for statement in _SETTINGS:
                connection.execute(statement)
            (fsync,) = connection.execute("SHOW fsync").fetchone() or ("",)
        except psycopg.Error as why:
            raise Interrupted(
                f"the database of the ledger cannot be reached: {_said(why)}"
            ) from None
        if fsync != "on":
            connection.close()
            raise LedgerError(
                "the database runs with fsync off: what it acknowledges may be lost. Turn it on."
            )
        return connection

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            raise LedgerError(
                f"there is no ledger {self._name!r} in the database; make one with tacit ledger "
                "create or Ledger.create, or check the name after ?ledger=."
            ) from None
        except psycopg.errors.LockNotAvailable:
            raise LedgerError(
                f"the ledger was busy for {PATIENCE:g} seconds. Nothing was booked; try again."
            ) from None
        except psycopg.OperationalError as why:
            # The server or the network failed, perhaps after the commit.
            raise Interrupted(f"the ledger's database was lost: {_said(why)}") from None
        except psycopg.Error as why:
            raise LedgerError(f"the database refused: {_said(why)} Nothing was booked.") from None


class _Page:
    """The view of one PostgreSQL transaction; begin and commit are one round trip each."""

    head: Head
    entries: Sequence[Entry] = ()
    found: Entry | None = None

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._written: tuple[Entry, str] | None = None

    def begin(self, since: int, key: str | None, mode: tuple[str, str]) -> None:
        """Start the transaction, and read."""
        isolation, to_head = mode
        # Read what never changes before the lock: others wait for every statement within it.
        statement = f"BEGIN ISOLATION LEVEL {isolation}; EXECUTE since(%s); {to_head}; EXECUTE last"
        values: tuple[int | str, ...] = (since,)
        if key is not None:
            statement, values = f"{statement}; EXECUTE keyed(%s)", (since, key)
        answers = _answer(self._connection, statement.encode("ascii"), values)
        rows = answers[1]
        head, last, found = answers[-3:] if key is not None else (*answers[-2:], [])
        if not head:
            raise LedgerDamaged(f"the head of the ledger is missing. {REMEDY}")
        number, ash, state = head[0]
        self.head = Head(int(number), ash, state)
        # The requested entry may be one of the last two.
        seen = [row for row in rows if row[0] not in {other[0] for other in last}]
        self.entries = [_entry(row) for row in (*seen, *reversed(last))]
        self.found = _entry(found[0]) if found else None

    def append(self, entry: Entry, state: str) -> None:
        """Remember the entry; `commit` sends it."""
        self._written = entry, state

    def commit(self) -> None:
        """Write and commit."""
        if self._written is None:
            self._connection.execute("COMMIT")
            return
        entry, state = self._written
        statement = "EXECUTE added(%s, %s, %s, %s); EXECUTE moved(%s, %s, %s); COMMIT"
        values = (entry.number, entry.key, entry.body, entry.hash, entry.number, entry.hash, state)
        _answer(self._connection, statement.encode("ascii"), values)


def _answer(
    connection: Connection[Any], statement: bytes, values: Sequence[int | str | None]
) -> list[list[Row]]:
    """Send several statements at once and return the rows of each.

    This calls libpq directly: a psycopg cursor would take longer than the server, while other
    charges wait for the lock.
    """
    from psycopg import errors, generators, pq

    quote = pq.Escaping(connection.pgconn).escape_literal
    texts = (str(v).encode() if isinstance(v, int) else v and quote(v.encode()) for v in values)
    # The statements have no other per cent sign, and inserted values are not scanned for one again.
    connection.pgconn.send_query(statement % tuple(text or b"NULL" for text in texts))
    answers = connection.wait(generators.execute(connection.pgconn))
    for answer in answers:
        if answer.status == pq.ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(answer)
    return [[_row(answer, place) for place in range(answer.ntuples)] for answer in answers]


def _row(answer: PGresult, place: int) -> Row:
    values = (answer.get_value(place, column) or b"" for column in range(answer.nfields))
    return tuple(value.decode("utf-8", "replace") for value in values)


def _entry(row: Row) -> Entry:
    number, body, ash, key = row
    return Entry(int(number), body, ash, key or None)


def _parsed(address: str) -> tuple[str, str]:
    """Return libpq's part of an address, and the ledger's name."""
    try:
        parts = urlsplit(address)
        query = parse_qsl(parts.query, keep_blank_values=True)
        secret = parts.password is not None or any(name.lower() in _SECRET for name, _ in query)
    except ValueError:
        raise ValueError(_NOT_VALID) from None
    # urlsplit ends the host at a / ? or # of a password, and then reports no password.
    without_ports = _PORT.sub("", address.partition("://")[2])
    strayed = "@" in parts.path or any("@" in name for name, _ in query)
    if secret or strayed or _HIDDEN.search(without_ports):
        # Do not repeat the address: errors are logged.
        raise ValueError(
            "the ledger's address holds a password, and addresses are pickled and printed; leave "
            "it out, and put it into the password file of PostgreSQL (~/.pgpass) or PGPASSWORD."
        )
    if not all(map(_HOST.fullmatch, parts.netloc.rpartition("@")[2].split(","))):
        # libpq repeats in its error what it takes for a port, which may be a password.
        raise ValueError(_NOT_VALID)
    name = dict(query).get("ledger", "tacit")
    if not name.isidentifier() or not name.isascii() or len(name) > 63:
        raise ValueError("a ledger's name is letters, digits and underscores, 63 at most.")
    rest = urlencode([pair for pair in query if pair[0] != "ledger"])
    # urlunsplit would drop the slashes of an address without a host.
    return f"postgresql://{parts.netloc}{parts.path}{'?' if rest else ''}{rest}", name


def _close(connections: list[Connection[Any]], made_in: int) -> None:
    """Close idle connections, but only in the process that opened them."""
    if made_in == generation():
        for connection in connections:
            connection.close()


def _said(why: Exception) -> str:
    """Return the first line of the server's message."""
    lines = str(why).strip().splitlines()
    return f"{lines[0].rstrip('.')}." if lines else f"{type(why).__name__}."
