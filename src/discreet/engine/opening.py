"""Which engine computes: DuckDB unless another is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter, quote_value

if TYPE_CHECKING:
    from discreet.engine.protocol import Engine
    from discreet.question.schema import Schema

KINDS = ("duckdb", "postgres", "spark")
"""The engines that there are, by the name that ``[engine]`` has for each."""


def open_engine(
    tables: Mapping[str, Any], schema: Schema, *, kind: str = "duckdb", **settings: Any
) -> Engine[Any]:
    """The engine of that ``kind`` on these tables, with its ``settings``."""
    _check_kind(kind, settings)
    if kind == "postgres":
        from discreet.engine.postgres.engine import PostgresEngine  # when it is wanted

        return PostgresEngine(tables, schema, **settings)
    if kind == "spark":
        from discreet.engine.spark.engine import SparkEngine

        return SparkEngine(tables, schema, **settings)
    from discreet.engine.duckdb.engine import DuckDBEngine

    return DuckDBEngine(tables, schema, **settings)


def _check_kind(kind: object, settings: Mapping[str, Any]) -> None:
    """Refuse an engine that there is not, and settings of another."""
    if kind not in KINDS:
        raise InvalidParameter(
            "P4",
            f"there is no engine {quote_value(kind)}.",
            why="nothing was opened: nobody's data is involved.",
            fix=f"write one of {', '.join(KINDS)}; without one it is duckdb.",
        )
    if settings.get("spark") is not None and kind == "postgres":
        raise InvalidParameter(
            "P4",
            f"Spark prepares tables for the engines duckdb and spark, not for {kind}.",
            why="a setting that is not heeded would promise what nobody does.",
            fix="leave out spark, or kind.",
        )
    if "timeout_s" in settings and kind != "postgres":
        raise InvalidParameter(
            "P4",
            f"timeout_s is a setting of the engine postgres, not of {kind}.",
            why="a setting that is not heeded would promise what nobody does.",
            fix='leave it out, or write kind = "postgres" beside it.',
        )


def require_copy(kind: str, what: str) -> None:
    """Refuse what reads rows into this process, where they are to stay in their database."""
    if kind == "postgres":
        raise InvalidParameter(
            "P4",
            f"{what} reads rows here, and the engine postgres leaves them in their database.",
            why="rows that may not leave would be copied.",
            fix='do it where rows may be copied, in a session without kind = "postgres"; what is '
            "declared is checked with --declared.",
        )


__all__ = ["KINDS", "open_engine", "require_copy"]
