"""The services of a run start, are shared, and end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import components
import psycopg
import pytest
import services


def test_databases_are_apart(postgres: services.Postgres) -> None:
    other = services.shared_postgres().create()
    assert other.home == postgres.home
    postgres.execute("CREATE TABLE mine (x int)")
    with pytest.raises(psycopg.errors.UndefinedTable):
        other.execute("SELECT * FROM mine")
    other.drop()


def test_the_server_is_not_on_the_network(postgres: services.Postgres) -> None:
    with psycopg.connect(postgres.conninfo) as connection:
        row = connection.execute("SHOW listen_addresses").fetchone()
    assert row == ("",)


def test_data_survives_a_crash_of_the_server() -> None:
    with services.private_postgres() as server:
        server.execute("CREATE TABLE kept (x int)")
        server.execute("INSERT INTO kept VALUES (12)")
        server.restart()
        with psycopg.connect(server.conninfo) as connection:
            assert connection.execute("SELECT x FROM kept").fetchone() == (12,)
        home = server.home
    assert not home.exists()


def test_what_is_missing_is_skipped_but_not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(components, "POSTGRES_HOMES", "/nowhere")
    monkeypatch.setenv("CI", "")
    everything = {"postgres", "chromium", "compiler", "node", "java", "jdbc", "typescript"}
    assert everything == set(components.missing())
    with pytest.raises(pytest.skip.Exception, match="postgresql"):
        services.require("postgres")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert components.main() == 0
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="postgresql"):
        services.require("postgres")
    assert components.main() == 1


def test_only_what_is_missing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/true")
    monkeypatch.setattr(components, "postgres_programs", lambda: None)
    found = components.Component("a page", ("chromium",), lambda: Path("/bin/true"))
    lacking = components.Component("an account", ("postgresql",), lambda: None)
    monkeypatch.setattr(components, "COMPONENTS", {"page": found, "account": lacking})
    monkeypatch.setattr(components.subprocess, "run", lambda command, **_: ran.append(command))
    components.main()
    assert [command[0] for command in ran] == ["apt-get", "apt-get"]
    assert "postgresql" in ran[-1]
    assert "chromium" not in ran[-1]
