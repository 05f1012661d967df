"""A new user's path, with the commands of the README: init, serve, curl, Python; then a backup."""

from __future__ import annotations

import csv
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import served
from patience import PATIENCE_S

from discreet.curate import remote as client
from discreet.errors import AccessRefusal
from discreet.ledger import Ledger
from discreet.ledger import keys as access
from discreet.server.listen import check_port

ADDRESS = "http://127.0.0.1:8765"
QUESTION = "SELECT city, COUNT(*) AS n FROM patients GROUP BY city"


def test_init_serve_curl_python(tmp_path):
    curl, shell = shutil.which("curl"), shutil.which("sh")
    if curl is None or shell is None:
        pytest.skip("curl is not installed")
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert "$ discreet init clinic --sample\n" in readme  # what served.serve runs
    start, asked, python = _blocks(readme)
    assert start.split("#")[0].split() == ["discreet", "serve"]
    with served.serve(tmp_path) as server:
        found = subprocess.run(
            [shell, "-c", asked.replace(ADDRESS, server.url)],
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
            env={**os.environ, "KEY": server.key},
        )
        shown, *rows = csv.reader(found.stdout.decode().splitlines())
        assert shown == ["city", "n", "n_margin", "n_low", "n_high"]
        assert rows[0][0] == "Aalborg"
        assert len(rows) == 8
        assert "`Aalborg,6859,30.0,6829.0,6889.0`" in readme  # as the lines that come back
        assert rows[0][2] == "30.0"
        printed = subprocess.run(
            [sys.executable, "-c", python.replace(ADDRESS, server.url)],
            env={**os.environ, "KEY": server.key},
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert f"Aalborg  {int(rows[0][1]):,} ± 30\n" in printed.stdout
        assert served.KEY.search(printed.stdout) is None
        with client.connect(server.url, key=server.key, timeout_s=PATIENCE_S) as clinic:
            again = clinic.ask(QUESTION, epsilon="0.1")
            assert again.replayed
            kept = [[str(value) for value in row.values] for row in again.rows]
            assert kept == [row[:2] for row in rows]
        home = tmp_path / "clinic"
        copied = subprocess.run(
            [
                *(sys.executable, "-m", "discreet", "backup", str(tmp_path / "copy.sqlite")),
                *("--session", str(home)),
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert "records" in copied.stdout
    with closing(Ledger.open(tmp_path / "copy.sqlite")) as ledger:
        assert ledger.verify().ok
        assert any(record.kind == "release" for record in ledger.records())
    log = (tmp_path / "server.log").read_text()
    assert access.key_id(server.key) in log
    assert server.key not in log
    assert log.count('"event":"ready"') == 1
    assert log.index('"event":"ready"') < log.index("/ask")
    assert '"event":"stopped"' in log  # it was asked to stop, and did so in order


def _blocks(readme: str) -> list[str]:
    """The commands of the section "Serve"."""
    (section,) = re.findall(r"^## Serve$(.*?)^## ", readme, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```(?:sh|python)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def test_an_open_line_is_refused_by_the_command(tmp_path, make_dataset):
    made = make_dataset(tmp_path / "clinic")
    told = subprocess.run(
        [sys.executable, "-m", "discreet", "serve", str(made.home), "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert told.returncode == 2
    assert told.stderr.startswith("A19: '0.0.0.0' can be reached from other machines")


def test_a_port_that_is_taken_is_refused_before_anybody_is_told_to_come(tmp_path, make_dataset):
    made = make_dataset(tmp_path / "clinic")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for option in ("--postgres", "--flight"):
            with pytest.raises(AccessRefusal, match=f"A22: .*{port}(.|\n)*another {option}"):
                check_port("127.0.0.1", port, option)
        told = subprocess.run(
            [sys.executable, "-m", "discreet", "serve", str(made.home), "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert told.returncode == 2
    assert told.stderr.startswith(f"A22: another program listens on port {port}")
    check_port("127.0.0.1", 0)
