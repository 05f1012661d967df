"""Each bug on purpose is found by the schedules."""

from __future__ import annotations

import pytest
import services
from faults import launch


def test_every_mutant_is_found() -> None:
    found = launch.run(["mutants"])["found"]
    assert len(found) >= 13
    assert [name for name, how in found.items() if not how] == [], found


def test_the_lock_of_postgresql_is_needed(postgres: services.Postgres) -> None:
    found = launch.run(["mutants", "deleted_lock"], store=postgres.url)["found"]
    assert found["deleted_lock"]


@pytest.mark.soak
def test_every_mutant_is_found_on_postgresql(postgres: services.Postgres) -> None:
    found = launch.run(["mutants"], store=postgres.url)["found"]
    assert len(found) >= 10
    assert [name for name, how in found.items() if not how] == [], found
