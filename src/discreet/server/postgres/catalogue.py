"""The empty PostgreSQL that answers catalogue questions: declared tables, no row, no other data.

Clients describe tables by hundreds of statements over PostgreSQL's own catalogue, and
nothing but PostgreSQL answers them all alike.  So each dataset has a server of its own,
made anew at every start, on a socket in a private directory.  Whoever gets there by
whatever statement finds the public schema and nothing else:

- the tables are empty, and reading one is an error (``row_security`` off under a policy),
  so a question that came here by mistake is never answered with "none";
- the role may create nothing, every transaction is read-only, and of the volatile functions
  only the harmless ones may be called: no files, no sleep, no settings, no other backends;
- statements have seconds and memory that the operating system bounds, and leave no
  text behind (``track_activities`` off).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from discreet.curate.free_tables import FreeTable
from discreet.errors import InvalidParameter
from discreet.question.schema import Schema, Table
from discreet.server.postgres.types import SQL_NAMES

OWNER = "postgres"
ROLE = "analyst"
STATEMENT_TIME_MS = 5_000
MEMORY_BYTES = 1 << 30
"""Address space of each of its processes."""
MOST_BACKENDS = 100
_BOUND = f'ulimit -c 0 && ulimit -v {MEMORY_BYTES // 1024} && exec "$0" "$@"'
_START_TIME_S = 60
_PREFIX = "discreet-catalogue-"

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": str(MOST_BACKENDS + 10),
    "shared_buffers": "8MB",
    "work_mem": "4MB",
    "temp_file_limit": "16MB",
    "fsync": "off",  # nothing is kept
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    "max_worker_processes": "0",
    "max_parallel_workers_per_gather": "0",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "track_activities": "off",
    "logging_collector": "off",
    "log_min_messages": "panic",
    "log_min_error_statement": "panic",
    "dynamic_shared_memory_type": "mmap",
    "unix_socket_permissions": "0700",
}
_HARMLESS = (
    "clock_timestamp",
    "pg_advisory_unlock_all",  # clients reset their connections with it
    "pg_current_xact_id",
    "pg_database_size",
    "pg_indexes_size",
    "pg_is_in_recovery",
    "pg_relation_size",
    "pg_sequence_last_value",
    "pg_table_size",
    "pg_tablespace_size",
    "pg_total_relation_size",
    "random",
    "timeofday",
    "txid_current",
)
_ROLE = f"""
REVOKE ALL ON DATABASE {{database}} FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
GRANT CONNECT ON DATABASE {{database}} TO {ROLE};
GRANT USAGE ON SCHEMA public TO {ROLE};
ALTER ROLE {ROLE} SET default_transaction_read_only = on;
ALTER ROLE {ROLE} SET statement_timeout = {STATEMENT_TIME_MS};
ALTER ROLE {ROLE} SET lock_timeout = {STATEMENT_TIME_MS};
ALTER ROLE {ROLE} SET row_security = off;
ALTER ROLE {ROLE} SET datestyle = 'ISO, MDY';
ALTER ROLE {ROLE} SET timezone = 'UTC';
REVOKE ALL ON ALL TABLES IN SCHEMA pg_catalog FROM {ROLE};
DO $do$ DECLARE one oid; BEGIN
  FOR one IN SELECT p.oid FROM pg_proc p WHERE p.provolatile = 'v' AND p.prokind IN ('f', 'p')
    AND NOT (p.proname = ANY ('{{{{{",".join(_HARMLESS)}}}}}'))
    AND p.prorettype NOT IN ('trigger'::regtype, 'internal'::regtype, 'event_trigger'::regtype)
  LOOP EXECUTE format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', one::regprocedure);
  END LOOP; END $do$;
REVOKE EXECUTE ON FUNCTION pg_stat_get_activity(integer) FROM PUBLIC;
REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
"""  # noqa: S608 (no word of it is anybody's but ours)


class Catalogue:
    """The empty server of one dataset."""

    def __init__(self, database: str, schema: Schema) -> None:
        self.database = database
        self._schema = schema
        self._programs = find_programs()
        self._home: Path | None = None

    @property
    def socket(self) -> str:
        """Where it listens."""
        return f"{self._home}/.s.PGSQL.5432"

    async def start(self) -> None:
        """Make the server anew and start it."""
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        self._sweep()
        self._home = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        if os.geteuid() == 0:
            shutil.chown(self._home, OWNER, OWNER)
        data = self._home / "data"
        how = ("-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self._run("initdb", "-D", data, *how)
        options = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in _SETTINGS.items())
        self._run(
            "pg_ctl", "start", "-w", "-s", "-t", str(_START_TIME_S), "-D", data,
            "-l", "/dev/null", "-o", f"{options} -k {self._home}",
        )  # fmt: skip
        self._script("postgres", f"CREATE DATABASE {quote(self.database)};")
        self._script(self.database, write_script(self.database, self._schema))

    def _script(self, database: str, text: str) -> None:
        home = str(self._home)
        where = ("-h", home, "-U", OWNER, "-d", database)
        self._run("psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", *where, text=text)

    def _sweep(self) -> None:
        """Stop and remove what servers have left that were killed."""
        for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            number = left.name.removeprefix(_PREFIX).partition("-")[0]
            with suppress(OSError, subprocess.SubprocessError):
                ours = left.lstat().st_uid == _owner() and left.is_dir() and not left.is_symlink()
                if ours and number.isdecimal() and not Path(f"/proc/{number}").exists():
                    self._halt(left)

    async def stop(self) -> None:
        """Stop it, and leave nothing behind."""
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        if self._home is None:
            return
        self._halt(self._home)
        self._home = None

    def _halt(self, home: Path) -> None:
        with suppress(subprocess.SubprocessError, OSError):
            self._run("pg_ctl", "stop", "-w", "-s", "-m", "immediate", "-D", home / "data")
        shutil.rmtree(home, ignore_errors=True)

    def _run(self, program: str, *command: str | Path, text: str | None = None) -> None:
        """One of PostgreSQL's programs, under its own user if we are root, which it refuses.

        A shell bounds it: nothing of ours may run between the start of a process and its program,
        where locks are held by threads that the new process does not have.
        """
        subprocess.run(  # noqa: S603
            ["/bin/sh", "-c", _BOUND, self._programs / program, *command],
            check=True,
            input=text,
            text=True,
            stdin=subprocess.DEVNULL if text is None else None,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            timeout=2 * _START_TIME_S,
            user=OWNER if os.geteuid() == 0 else None,
            group=OWNER if os.geteuid() == 0 else None,
            extra_groups=() if os.geteuid() == 0 else None,
        )


def _owner() -> int:
    """The user under whom PostgreSQL runs: us, or its own if we are root."""
    import pwd

    return pwd.getpwnam(OWNER).pw_uid if os.geteuid() == 0 else os.geteuid()


def find_programs() -> Path:
    """Where PostgreSQL's programs are, the newest; refused if they are not installed."""
    found = sorted(
        (path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")),
        key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0,
    )
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.insert(0, Path(on_path).resolve().parent)
    if not found:
        raise InvalidParameter(
            "P8",
            "PostgreSQL's own programs (initdb, pg_ctl, psql) are not installed.",
            why="an empty PostgreSQL tells clients which tables there are; it holds nobody's rows.",
            fix="install them (Debian: apt-get install postgresql), or leave out --postgres.",
        )
    return found[-1]


def write_script(database: str, schema: Schema) -> str:
    """The statements that make the empty tables and the role that sees them."""
    lines = [_ROLE.format(database=quote(database))]
    for table in schema.tables.values():
        unit = ", ".join(table.unit or ())
        lines += _write_table(table, "public" if table.public else f"private; the unit is {unit}")
    return "\n".join(lines)


def write_changes(before: Mapping[str, FreeTable], now: Mapping[str, FreeTable]) -> str:
    """The statements that make what is listed for free what it is now.

    >>> from discreet.question.domain import Kind
    >>> from discreet.question.schema import Column
    >>> one = FreeTable(Table("cities", (Column("city", Kind.TEXT),)), "release; public: free")
    >>> print(write_changes({"old": one}, {"cities": one}).partition(";\\nCOMMENT")[0])
    SET LOCAL lock_timeout = 5000;
    DROP TABLE IF EXISTS public."old";
    CREATE TABLE public."cities" ("city" text)
    """
    lines = [f"SET LOCAL lock_timeout = {STATEMENT_TIME_MS};"]
    gone = [name for name in before if before[name] != now.get(name)]
    lines += [f"DROP TABLE IF EXISTS public.{quote(name)};" for name in gone]
    for name, one in now.items():
        if one != before.get(name):
            lines += _write_table(one.table, one.about)
    return "\n".join(lines)


def _write_table(table: Table, told: str) -> list[str]:
    name = quote(table.name)
    columns = ", ".join(
        f"{quote(c.name)} {SQL_NAMES[c.kind]}{'' if c.nullable else ' NOT NULL'}"
        for c in table.columns
    )
    lines = [
        f"CREATE TABLE public.{name} ({columns});",
        f"COMMENT ON TABLE public.{name} IS {literal(told)};",
        f"ALTER TABLE public.{name} ENABLE ROW LEVEL SECURITY;",
        f"GRANT SELECT ON public.{name} TO {ROLE};",
    ]
    for column in table.columns:
        about = []
        if column.low is not None and column.high is not None:
            about.append(f"bounds {column.low} to {column.high}")
        if column.values is not None:
            shown = ", ".join(str(value) for value in column.values[:20])
            about.append(f"values {shown}{', ...' if len(column.values) > 20 else ''}")
        if about:
            where = f"public.{name}.{quote(column.name)}"
            lines.append(f"COMMENT ON COLUMN {where} IS {literal('; '.join(about))};")
    return lines


def quote(name: str) -> str:
    """A name as it is written in SQL.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as it is written in SQL."""
    return "'" + text.replace("'", "''") + "'"


__all__ = [
    "MOST_BACKENDS",
    "OWNER",
    "ROLE",
    "Catalogue",
    "find_programs",
    "literal",
    "quote",
    "write_changes",
]
