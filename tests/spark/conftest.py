"""One session of Spark for all tests of a worker: starting one takes longer than they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import services

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Little data, and a Java that begins at once instead of becoming fast."""


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
    from discreet.engine.spark.session import open_session

    session = open_session("local[2]", settings=SMALL)
    yield session
    session.stop()
