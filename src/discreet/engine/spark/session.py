"""A session of Spark whose SQL means what ours does, and which keeps nothing exact for others.

Spark's event log and its web interface show how many rows every step had, exactly: a session that
has either is refused.  What SQL means is pinned: errors instead of numbers that wrap around,
reserved words, UTC, Parquet's days as they are written, and no text of a statement replaced by a
variable.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from discreet.engine.protocol import Progress
from discreet.errors import InvalidParameter
from discreet.exact.records import dataclass
from discreet.noise.entropy import random_bytes

LOCAL = "local[*]"
PARTITIONS = 8

MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""What statements mean, set on a session of our own: nobody else's is changed."""

_UNPLANNED = {"spark.sql.adaptive.enabled": "false"}
"""Nothing is planned anew while it runs: what a statement moves is small, and planning is not."""

_STARTED = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # what fails is logged with the value it failed on
    "spark.sql.catalogImplementation": "in-memory",
}
"""What else a session is started with."""

_TALKATIVE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Spark's own in Python, which print whole errors, and with them the value something failed on."""

T = TypeVar("T")


def open_session(given: Any = LOCAL, *, settings: dict[str, str] | None = None) -> Any:
    """A session for us alone: of a given one, or of Spark at an address (``local[*]``, a URL)."""
    spark = _import_spark()
    if isinstance(given, str):
        given = _start(spark, given, settings or {})
    elif not isinstance(given, spark.SparkSession):
        raise InvalidParameter(
            "P4",
            "what is given as Spark is neither an address nor a session.",
            why="nothing was read; no person's data is involved.",
            fix='give "local[*]", "spark://host:7077", or a SparkSession.',
        )
    _refuse_witnesses(given)
    for name in _TALKATIVE:
        logging.getLogger(name).disabled = True
    own = given.newSession()
    for name, value in {**_UNPLANNED, **MEANING}.items():
        own.conf.set(name, value)
    for name, value in (settings or {}).items():
        if name.startswith("spark.sql.") and name not in MEANING:
            own.conf.set(name, value)
    return own


def _import_spark() -> Any:
    with suppress(ImportError):
        return import_module("pyspark.sql")
    raise _missing_refusal("pyspark is not installed", 'pip install "discreet[spark]".')


def _start(spark: Any, address: str, settings: dict[str, str]) -> Any:
    if find_java() is None:
        raise _missing_refusal(
            "Java is not installed", "install Java 17 or newer, or set JAVA_HOME."
        )
    builder = spark.SparkSession.builder.master(address).appName("discreet")
    local = {}
    if address.startswith("local"):
        local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in {**_STARTED, **local, **MEANING, **settings}.items():
        builder = builder.config(name, value)
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.getsignal(signal.SIGINT)
    found = None
    with suppress(Exception):  # its text names machines and versions
        found = builder.getOrCreate()
    if before is not None:  # Spark's own would cancel what is not ours
        signal.signal(signal.SIGINT, before)
    if found is None:
        raise InvalidParameter(
            "P8",
            f"Spark does not start at {address!r}.",
            why="nothing was read and nothing was charged; no person's data is involved.",
            fix="check the address, that its machines can be reached, and the version of Java.",
        )
    return found


def find_java() -> Path | None:
    """The Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return java if java.exists() else None
    on_path = shutil.which("java")
    return None if on_path is None else Path(on_path)


def _missing_refusal(what: str, fix: str) -> InvalidParameter:
    return InvalidParameter(
        "P8",
        f"{what}, and this needs Spark.",
        why="nothing was read and nothing was charged; no person's data is involved.",
        fix=f"{fix} What is prepared already, and every other engine, works without it.",
    )


def _refuse_witnesses(session: Any) -> None:
    """No session that writes down, or shows others, how many rows every step had."""
    context = session.sparkContext
    logs = context.getConf().get("spark.eventLog.enabled", "false").lower() == "true"
    if logs or context.uiWebUrl is not None:
        where = "its event log" if logs else "its web interface"
        raise InvalidParameter(
            "P4",
            f"this session of Spark keeps the exact number of rows of every step in {where}.",
            why="whoever reads it would learn of a person in the data what noise was to hide.",
            fix="start it with spark.ui.enabled=false and spark.eventLog.enabled=false.",
        )


# --- work that can be watched and stopped -------------------------------------------------------


@dataclass(slots=True)
class _Work:
    """What a thread brought back."""

    result: Any = None
    error: BaseException | None = None


def watch(session: Any, work: Callable[[], T], name: str, progress: Progress | None) -> T:
    """Run ``work`` on Spark, telling how far it is; whoever is interrupted stops its jobs."""
    from pyspark import InheritableThread

    context, group, done = session.sparkContext, f"discreet-{random_bytes(8).hex()}", _Work()

    def run() -> None:
        try:
            context.setJobGroup(group, "discreet", True)  # interrupt what runs
            done.result = work()
        except BaseException as error:
            done.error = error

    thread = InheritableThread(target=run, daemon=True)
    with _watch_cancelled(context, group, thread):
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
            if progress is not None:
                progress(name, _part_done(context, group))
    if done.error is not None:
        raise done.error
    if progress is not None:
        progress(name, 1.0)
    return done.result  # type: ignore[no-any-return]


@contextmanager
def _watch_cancelled(context: Any, group: str, thread: threading.Thread) -> Iterator[None]:
    try:
        yield
    except BaseException:
        while thread.is_alive():  # one job may follow another
            context.cancelJobGroup(group)
            thread.join(0.2)
        raise


def _part_done(context: Any, group: str) -> float:
    """The part of the tasks known so far that are completed; never all of them."""
    tracker, tasks, completed = context.statusTracker(), 0, 0
    for job in tracker.getJobIdsForGroup(group):
        found = tracker.getJobInfo(job)
        for stage in found.stageIds if found else ():
            known = tracker.getStageInfo(stage)
            if known is not None:
                tasks += known.numTasks
                completed += known.numCompletedTasks
    return min(0.99, completed / tasks) if tasks else 0.0


__all__ = ["LOCAL", "MEANING", "find_java", "open_session", "watch"]
