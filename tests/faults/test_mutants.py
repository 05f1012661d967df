"""Each bug on purpose is found by the schedules."""

from __future__ import annotations

import services
from faults import launch


def test_every_mutant_is_found() -> None:
    found = launch.run(["mutants"])["found"]
    assert len(found) >= 13
    assert [name for name, how in found.items() if not how] == [], found


def test_every_mutant_is_found_on_postgresql(postgres: services.Postgres) -> None:
    found = launch.run(["mutants"], store=postgres.url)["found"]
    assert "deleted_lock" in found
    assert [name for name, how in found.items() if not how] == [], found
