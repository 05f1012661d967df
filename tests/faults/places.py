"""Where the ledger of one schedule lives: files that can lose power, or a schema of PostgreSQL."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import components
import psycopg
import services
from faults.disk import Power, Step
from psycopg.conninfo import conninfo_to_dict

Begin = Callable[[str], None]
"""Plays the beginning of a scenario on the ledger at an address."""


@dataclass(slots=True)
class Files:
    """SQLite files, a directory for each schedule."""

    home: Path
    begun: dict[str, Path] = field(default_factory=dict)
    count: int = 0

    def fresh(self, scenario: str, begin: Begin) -> tuple[str, Path]:
        """A ledger as the scenario begins it: played once, then copied."""
        if scenario not in self.begun:
            first = self._directory()
            begin(str(first / "ledger.sqlite"))
            self.begun[scenario] = first
        place = self._directory()
        for file in self._begun_files(scenario):
            shutil.copyfile(file, place / file.name)
        return str(place / "ledger.sqlite"), place

    def after_power_loss(
        self, scenario: str, place: Path, steps: list[Step], coins: random.Random | None
    ) -> dict[str, bytes]:
        """What is left of the ledger in ``place`` when the power fails after ``steps``."""
        power = Power.on({str(place / file.name): file for file in self._begun_files(scenario)})
        for step in steps:
            power.follow(step)
        return {Path(name).name: contents for name, contents in power.fail(coins).items()}

    def restored(self, files: Mapping[str, bytes]) -> str:
        """A ledger of these files."""
        place = self._directory()
        for name, contents in files.items():
            (place / name).write_bytes(contents)
        return str(place / "ledger.sqlite")

    def done(self, place: Path) -> None:
        """Remove what a schedule left."""
        shutil.rmtree(place)

    def _begun_files(self, scenario: str) -> list[Path]:
        return [file for file in self.begun[scenario].iterdir() if not file.name.endswith("-shm")]

    def _directory(self) -> Path:
        self.count += 1
        place = self.home / f"{self.count:06}"
        place.mkdir()
        return place


@dataclass(slots=True)
class Server:
    """PostgreSQL, a schema for each schedule."""

    home: Path
    url: str
    count: int = 0

    def fresh(self, scenario: str, begin: Begin) -> tuple[str, Path]:
        """A ledger as the scenario begins it."""
        self.count += 1
        name = f"schedule_{self.count:06}"
        self._execute(f"CREATE SCHEMA {name}")
        address = f"{self.url}&options={quote(f'-csearch_path={name}')}"
        begin(address)
        place = self.home / name
        place.mkdir()
        return address, place

    def done(self, place: Path) -> None:
        """Remove what a schedule left."""
        self._execute(f"DROP SCHEMA {place.name} CASCADE")
        shutil.rmtree(place)

    def fail(self, how: str) -> None:
        """Let the server die, all of it or the other ends of its connections, and recover."""
        programs = components.postgres_programs()
        if programs is None:
            raise RuntimeError("PostgreSQL is not installed")
        server = services.Postgres(Path(conninfo_to_dict(self._conninfo)["host"]), programs)
        if how == "restart":
            server.restart()
        else:
            server.kill_backends()

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._conninfo, autocommit=True) as server:
            server.execute(statement)

    @property
    def _conninfo(self) -> str:
        return self.url.replace("+psycopg", "")
