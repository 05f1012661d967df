"""What every test may ask for."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
import services
from hypothesis import settings

# A slow machine is not a failure: no example is given a time of its own.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

_BEGAN = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_BEGAN] = services.begin_run()
    gc.disable()  # while thousands of tests are collected, nothing is garbage


def pytest_collection_finish() -> None:
    """What was collected stays to the end: whoever looks for garbage need not look there."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is slow on purpose may be; no other test may be longer than the settings say."""
    for item in items:
        if item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.timeout(0))


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.unfreeze()  # what libraries hold is let go at the end
    if config.stash.get(_BEGAN, False):
        services.end_run()


@pytest.fixture(autouse=True)
def _rows_are_defined_anew(request: pytest.FixtureRequest) -> Iterator[None]:
    """What stands for a table's rows is written once: not for a bug on purpose, nor after it."""
    database = sys.modules.get("discreet.engine.duckdb.database")
    remembered = (database.define_rows, database._open_empty) if database is not None else ()
    patched = remembered if "monkeypatch" in request.fixturenames else ()
    for one in patched:
        one.cache_clear()
    yield
    for one in patched:
        one.cache_clear()


@pytest.fixture
def postgres() -> Iterator[services.Postgres]:
    """A new empty database on the PostgreSQL server of this run."""
    database = services.shared_postgres().create()
    yield database
    database.drop()


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a ledger may live: a test that takes this runs once on each database."""
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    database: services.Postgres = request.getfixturevalue("postgres")
    return database.url
