"""A new user's path, as the documents tell it: init, serve, curl, Python; then a backup."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import closing

import pytest
import served

from discreet import access, client
from discreet.ledger import Ledger

QUESTION = "SELECT city, COUNT(*) AS n FROM patients GROUP BY city"


def test_init_serve_curl_python(tmp_path):
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    with served.serve(tmp_path) as server:
        found = subprocess.run(
            [
                *(curl, "--silent", "--fail", f"{server.url}/v1/datasets/clinic/ask"),
                *("-H", f"Authorization: Bearer {server.key}"),
                *("-H", "Content-Type: application/json"),
                *("-d", json.dumps({"question": QUESTION, "epsilon": "0.1"})),
            ],
            check=True,
            capture_output=True,
        )
        answer = json.loads(found.stdout)
        assert len(answer["rows"]) == 8
        with client.connect(server.url, key=server.key) as clinic:
            again = clinic.ask(QUESTION, epsilon="0.1")
            assert (again.replayed, again.id) == (True, int(answer["id"]))
            assert [list(row.values) for row in again.rows] == answer["rows"]
        home = tmp_path / "clinic"
        copied = subprocess.run(
            [
                *(sys.executable, "-m", "discreet", "backup", str(tmp_path / "copy.sqlite")),
                *("--session", str(home)),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        assert "records" in copied.stdout
    with closing(Ledger.open(tmp_path / "copy.sqlite")) as ledger:
        assert ledger.verify().ok
        assert any(record.kind == "release" for record in ledger.records())
    log = (tmp_path / "server.log").read_text()
    assert access.key_id(server.key) in log
    assert server.key not in log
    assert '"event":"stopped"' in log  # it was asked to stop, and did so in order


def test_an_open_line_is_refused_by_the_command(tmp_path, make_dataset):
    made = make_dataset(tmp_path / "clinic")
    told = subprocess.run(
        [sys.executable, "-m", "discreet", "serve", str(made.home), "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 2
    assert told.stderr.startswith("A19: '0.0.0.0' can be reached from other machines")
