"""`discreet serve --postgres`: as it is started, and after it was killed."""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
import served
from patience import PATIENCE_S, wait_until
from services import require


def catalogues(pid: int) -> list[Path]:
    """What a server keeps for PostgreSQL's clients."""
    return list(Path(tempfile.gettempdir()).glob(f"discreet-catalogue-{pid}-*"))


def test_a_killed_server_leaves_an_empty_database_that_the_next_one_removes(tmp_path):
    require("postgres")
    with closing(socket.socket()) as kept:  # nobody else is given the port
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        options = ("--postgres", str(port))
        where = {"host": "127.0.0.1", "port": port, "user": "curator", "dbname": "clinic"}
        with served.serve(tmp_path, *options) as first:
            with psycopg.connect(**where, password=first.key, autocommit=True) as line:
                line.execute("SET discreet.epsilon = '0.5'")
                paid = line.execute("SELECT COUNT(*) AS n FROM patients").fetchone()
            (left,) = catalogues(first.process.pid)
            postmaster = int((left / "data" / "postmaster.pid").read_text().split()[0])
            first.process.kill()
            first.process.wait(PATIENCE_S)
            assert left.exists()
        with served.serve_session(tmp_path / "clinic", first.key, *options) as second:
            assert not left.exists()
            wait_until(lambda: not runs(postmaster))
            with psycopg.connect(**where, password=first.key, autocommit=True) as line:
                again = line.execute("SELECT COUNT(*) AS n FROM patients").fetchone()
            assert again == paid  # known, and free without an offer
            pid = second.process.pid
        assert not catalogues(pid)  # an orderly end leaves nothing


def runs(pid: int) -> bool:
    """Whether a process is there, and not only waiting to be buried."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (OSError, IndexError):
        return False
