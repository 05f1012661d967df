"""One connection to SQLite or PostgreSQL: statements go in, rows come out, nothing is retried.

Statements are written once, with parameters as ``:name``.  BEGIN, COMMIT and ROLLBACK are the
store's own; a connection only sends them.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from discreet.errors import LedgerRefusal
from discreet.ledger import refusals

Rows = list[tuple[Any, ...]]

_PARAMETER = re.compile(r":([a-z][a-z0-9]*)\b")
_POSTGRES = re.compile(r"postgres(?:ql)?(?:\+psycopg)?://")


class Connection(ABC):
    """What the store asks of a database."""

    failures: tuple[type[Exception], ...]
    """What the driver raises."""

    @abstractmethod
    def execute(self, statement: str, parameters: dict[str, Any] | None = None) -> Rows:
        """Send one statement; its rows, none if it has none."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether a transaction is under way."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo what is not committed."""

    @abstractmethod
    def close(self) -> None:
        """Let go; what is not committed ends, and its lock with it."""

    def journey(self) -> AbstractContextManager[Any]:
        """Statements sent together to a server: if one fails, those after it are not run."""
        return nullcontext()

    def send(self, statement: str, parameters: dict[str, Any] | None = None) -> None:
        """Send one statement in a journey, and do not wait for its rows."""
        self.execute(statement, parameters)

    def value(self, statement: str) -> Any:
        """The single value that a statement gives."""
        ((found,),) = self.execute(statement)
        return found


class SqliteConnection(Connection):
    """A file, or this process's memory."""

    failures = (sqlite3.Error,)

    def __init__(self, path: Path | None) -> None:
        # Autocommit, so that BEGIN and COMMIT are the store's own; its lock orders the threads.
        where = ":memory:" if path is None else str(path)
        self._driver = sqlite3.connect(where, isolation_level=None, check_same_thread=False)
        # From Python 3.13 on, a connection that is only forgotten is complained of.
        weakref.finalize(self, self._driver.close).atexit = False

    def execute(self, statement: str, parameters: dict[str, Any] | None = None) -> Rows:
        """Send one statement; its rows, none if it has none."""
        return self._driver.execute(statement, parameters or {}).fetchall()

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        return bool(self.execute(query, {"name": name}))

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way."""
        return self._driver.in_transaction

    def rollback(self) -> None:
        """Undo what is not committed."""
        self._driver.rollback()

    def close(self) -> None:
        """Let go; what is not committed ends, and its lock with it."""
        with suppress(sqlite3.Error):
            self._driver.close()


class PostgresConnection(Connection):
    """A server, spoken to by psycopg."""

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise refusals.cannot_open(
                "the driver for this address is not installed.", "pip install 'discreet[postgres]'."
            ) from None
        self.failures = (psycopg.Error,)
        plain = _POSTGRES.sub("postgresql://", address, count=1)
        try:
            self._driver = psycopg.connect(plain, autocommit=True)
        except psycopg.Error:
            raise describe_closed() from None

    def execute(self, statement: str, parameters: dict[str, Any] | None = None) -> Rows:
        """Send one statement; its rows, none if it has none."""
        with self._cursor(statement, parameters) as cursor:
            return cursor.fetchall() if cursor.description is not None else []

    def _cursor(self, statement: str, parameters: dict[str, Any] | None) -> Any:
        # Without parameters nothing is a placeholder, and several statements may go together.
        if not parameters:
            return self._driver.execute(statement)
        return self._driver.execute(_percent(statement), parameters)

    def send(self, statement: str, parameters: dict[str, Any] | None = None) -> None:
        """Send one statement in a journey, and do not wait for its rows."""
        self._cursor(statement, parameters)

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        return self.execute("SELECT to_regclass(:name)", {"name": name}) != [(None,)]

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way."""
        return int(self._driver.info.transaction_status) != 0

    def rollback(self) -> None:
        """Undo what is not committed.

        By psycopg's own: it then forgets what it would have prepared in a journey that failed,
        and otherwise names it in a later one.
        """
        self._driver.rollback()

    def close(self) -> None:
        """Let go; what is not committed ends, and its lock with it."""
        with suppress(*self.failures):
            self._driver.close()

    def journey(self) -> AbstractContextManager[Any]:
        """Statements sent together to a server: if one fails, those after it are not run."""
        return self._driver.pipeline()

    def fetch_after(self, before: Sequence[str], query: str, parameters: dict[str, Any]) -> Rows:
        """Send some statements and a query in one journey; the rows of the query."""
        with self._driver.cursor() as cursor:
            with self._driver.pipeline():
                for statement in before:
                    self._driver.execute(statement)
                cursor.execute(_percent(query), parameters)
            return cursor.fetchall()


@lru_cache
def _percent(statement: str) -> str:
    """The statement with psycopg's placeholders."""
    return _PARAMETER.sub(r"%(\1)s", statement)


def describe_closed() -> LedgerRefusal:
    """Nothing answers at the address; what the driver says may hold a password."""
    return refusals.cannot_open(
        "the ledger cannot be opened.",
        "check the address, the permissions and that the server runs.",
    )


def find_file(address: str | Path) -> Path | None:
    """The file of a SQLite ledger; None in memory and on a server."""
    if isinstance(address, Path):
        return address
    if "://" not in address:
        return Path(address)
    if not address.startswith("sqlite://"):
        return None
    name = address.removeprefix("sqlite://").partition("?")[0].removeprefix("/")
    return Path(name) if name and name != ":memory:" else None


def connect(address: str | Path) -> Connection:
    """A new connection to the database at an address."""
    path = find_file(address)
    if path is not None or str(address).startswith("sqlite://"):
        return SqliteConnection(path)
    if _POSTGRES.match(str(address)):
        return PostgresConnection(str(address))
    raise refusals.cannot_open(
        "the address of the ledger cannot be read.",
        "give a path, or postgresql://user@host/database.",
    )
