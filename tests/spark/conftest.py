"""One session of Spark for all tests of a worker: starting one takes longer than they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import services

from discreet.engine.spark.session import MEANING, open_session

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Little data: no code is generated for it, and Java begins at once instead of becoming fast."""

COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""As Spark is otherwise."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark leaves the sockets over which it sends results to be closed by whoever finds them."""
    for item in items:
        if "/tests/spark/" in str(item.path):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings(
                    "ignore:.*unclosed <socket:pytest.PytestUnraisableExceptionWarning"
                )
            )


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of our own in this process, on two cores."""
    services.require("java")
    session = open_session("local[2]", settings=SMALL)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def compiling(spark: Any) -> Any:
    """The same, generating code as it does on large data."""
    session = spark.newSession()
    for name in (*MEANING, "spark.sql.shuffle.partitions"):
        session.conf.set(name, spark.conf.get(name))
    for name, value in COMPILED.items():
        session.conf.set(name, value)
    return session
