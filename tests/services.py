"""Real services for the tests, started and stopped by the run that needs them.

``postgres`` is one PostgreSQL server for the whole run, shared by every pytest-xdist worker; each
asks it for databases of its own. It listens on a unix socket in a private directory, never on the
network, so that it cannot collide with a server that is already there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import components
import psycopg
from patience import PATIENCE_S, wait_until

HOME_VARIABLE = "DISCREET_TEST_SERVICES"
"""The directory of this run's services: set by the first process, inherited by its workers."""

OWNER = "postgres"
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 1 << 30
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "fsync": "on",  # without it the account would refuse to open
    "max_wal_size": "128MB",
    "log_min_messages": "fatal",
}


def require(component: str) -> Path:
    """Where a component is; without it the test is skipped, and in CI it fails."""
    found = components.COMPONENTS[component].find()
    if found is None:
        import pytest  # not wanted by the processes that the tests start

        one = components.COMPONENTS[component]
        text = f"{one.purpose} needs {' '.join(one.packages)}: run python tests/components.py"
        if components.in_ci():
            pytest.fail(text)
        pytest.skip(text)
    return found


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL server in a directory of its own, reached by its unix socket."""

    home: Path
    programs: Path
    database: str = "postgres"

    @property
    def url(self) -> str:
        """As a ledger is addressed."""
        return f"postgresql+psycopg://{OWNER}@/{self.database}?host={self.home}"

    @property
    def conninfo(self) -> str:
        """For psycopg."""
        patience = int(PATIENCE_S)
        return (
            f"host={self.home} user={OWNER} dbname={self.database} connect_timeout={patience} "
            f"options='-c statement_timeout={patience}s'"
        )

    def create(self) -> Postgres:
        """The same server, with a new empty database."""
        name = f"test_{uuid4().hex[:16]}"
        self.execute(f'CREATE DATABASE "{name}"')
        return replace(self, database=name)

    def drop(self) -> None:
        """Remove this database, whoever is connected to it."""
        replace(self, database="postgres").execute(
            f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)'
        )

    def execute(self, statement: str) -> None:
        """Run one statement outside any transaction."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(statement)

    def start(self) -> None:
        """Start the server on its data and wait until it answers."""
        options = " ".join(f"-c {name}='{value}'" for name, value in SETTINGS.items())
        self._control(
            "start", "-w", "-l", str(self.home / "log"), "-o", f"{options} -k {self.home}"
        )

    def stop(self, *, mode: str = "immediate") -> None:
        """Stop it: ``immediate`` is a crash of the server, ``fast`` an orderly end."""
        self._control("stop", "-w", "-m", mode)

    def restart(self) -> None:
        """Crash the server and recover, as a reset machine whose disk survived would."""
        self.stop()
        self.start()

    def kill_backends(self) -> None:
        """Kill the server's end of every connection by force; it then recovers by itself."""
        others = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            pids = connection.execute(f"SELECT pid FROM pg_stat_activity WHERE {others}").fetchall()
            for (pid,) in pids:
                os.kill(pid, signal.SIGKILL)
        for (pid,) in pids:  # until the server has noticed: before that it answers as if well
            wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
        self.wait()

    def wait(self) -> None:
        """Return when the server answers again."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.execute("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _control(self, *command: str) -> None:
        _as_owner(
            self.programs / "pg_ctl",
            "-s",
            "-t",
            str(int(PATIENCE_S)),
            "-D",
            self.home / "data",
            *command,
        )


def new_postgres(home: Path) -> Postgres:
    """A started server in ``home``, which must not exist."""
    programs = require("postgres")
    home.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(home, OWNER, OWNER)
    initdb = ("-D", home / "data", "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C")
    _as_owner(programs / "initdb", "--no-sync", *initdb)
    server = Postgres(home, programs)
    server.start()
    return server


def shared_postgres() -> Postgres:
    """The server of this run, started by whichever worker asks first."""
    programs = require("postgres")
    home = Path(os.environ[HOME_VARIABLE])
    server = Postgres(home / "postgres", programs)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not server.home.exists():
            new_postgres(server.home)
    return server


def quick_place() -> str | None:
    """A directory whose fsync costs nothing, if there is one: no test unplugs the machine."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
    return str(MEMORY) if roomy and os.access(MEMORY, os.W_OK) else None


@contextmanager
def private_postgres(place: Path | None = None) -> Iterator[Postgres]:
    """A server of one's own, for a test that kills it or a benchmark of a real disk (``place``)."""
    where = quick_place() if place is None else place
    with tempfile.TemporaryDirectory(
        prefix="discreet-", dir=where, ignore_cleanup_errors=True
    ) as directory:
        Path(directory).chmod(0o711)  # the server's own user must be able to pass
        server = new_postgres(Path(directory) / "own")
        try:
            yield server
        finally:
            server.stop()


def begin_run() -> bool:
    """Make the directory of this run's services; false in a worker, which inherits it."""
    if HOME_VARIABLE in os.environ:
        return False
    home = tempfile.mkdtemp(prefix="discreet-", dir=quick_place())
    Path(home).chmod(0o711)
    os.environ[HOME_VARIABLE] = home
    return True


def end_run() -> None:
    """Stop what was started during this run and remove its directory."""
    home = Path(os.environ.pop(HOME_VARIABLE))
    if (home / "postgres" / "data" / "postmaster.pid").exists():
        programs = components.postgres_programs()
        if programs is not None:
            Postgres(home / "postgres", programs).stop()
    shutil.rmtree(home, ignore_errors=True)


def _as_owner(program: Path, *arguments: str | Path) -> None:
    """Run a program of PostgreSQL, which refuses to run as root."""
    become = ["runuser", "-u", OWNER, "--"] if os.geteuid() == 0 else []
    command = [*become, str(program), *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # inherited pipes would keep the server's parent waiting
        stderr=subprocess.DEVNULL,
        timeout=2 * PATIENCE_S,  # pg_ctl has an end of its own
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{program.name} failed with exit code {done.returncode}")
