"""The rows of a table of PostgreSQL as the types of their declared kinds; no value can fail.

The same values as a copy of the table would give (:mod:`discreet.engine.duckdb.postgres`): a text
with the mark of damage is NULL, and so is a moment outside the years 1 to 9999.  A type that would
have to be read otherwise than by widening it is refused when the engine is opened.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.engine.duckdb.postgres import quote_name
from discreet.engine.duckdb.sources import MARK
from discreet.errors import DataRefusal
from discreet.question.domain import Kind
from discreet.question.schema import Column, Table

_WHOLE = {"int2", "int4", "int8"}
_REAL = {"float4", "float8"}
_TEXTS = {"text", "varchar", "bpchar", "name", "citext", "uuid", "enum"}
_TINY = "3e-324"  # what is nearer to zero is zero as a double
_HUGE = "1.7976931348623157e308"


def write_source(table: Table, name: str, held: Mapping[str, tuple[str, str]]) -> str:
    """SELECT of the declared columns; ``held`` are the names and types that the server has."""
    picked = []
    for column in table.columns:
        if column.name not in held:
            raise refuse_source(table.name, f"the server's table has no column '{column.name}'")
        own, type_ = held[column.name]
        read = _read(column, quote_name(own), type_)
        if read is None:
            raise refuse_source(
                table.name, f"its column '{column.name}' is {type_}, declared {column.kind}"
            )
        picked.append(f"{read} AS {quote_name(column.name)}")
    return f"SELECT {', '.join(picked)} FROM {name}"  # noqa: S608


def _read(column: Column, name: str, held: str) -> str | None:
    """A column as the type of its kind; None if it is not read here."""
    match column.kind:
        case Kind.BOOLEAN:
            return name if held == "bool" else f"{name} <> 0" if held in _WHOLE else None
        case Kind.INTEGER:
            return _read_whole(name, held)
        case Kind.DECIMAL:
            return _read_real(name, held)
        case Kind.TEXT:
            return _read_text(name, held)
        case Kind.DATE | Kind.TIMESTAMP if column.time_zone is None:
            return _read_moment(name, held, "date" if column.kind is Kind.DATE else "timestamp")
    return None


def _read_whole(name: str, held: str) -> str | None:
    if held in _WHOLE:
        return f"{name}::int8"
    if held == "bool":
        return f"{name}::int4::int8"
    if held in _REAL:
        inside = f"{name} >= '{-(2**63)}'::float8 AND {name} < '{2**63}'::float8"
        return f"CASE WHEN {inside} THEN {name}::float8::int8 END"
    return None


def _read_real(name: str, held: str) -> str | None:
    """Zero has one sign."""
    if held in _WHOLE or held in _REAL:
        return f"{name}::float8 + '0.0'::float8"
    if held == "numeric":
        inside = f"ABS({name}) <= {_HUGE}::numeric"
        zero = f"ABS({name}) < {_TINY}::numeric"
        return f"CASE WHEN {zero} THEN '0.0'::float8 WHEN {inside} THEN {name}::float8 END"
    return None


def _read_text(name: str, held: str) -> str | None:
    if held in _WHOLE or held == "bool":
        return f'{name}::text COLLATE "C"'
    if held in _TEXTS:
        text = f'{name}::text COLLATE "C"'
        return f"CASE WHEN STRPOS({text}, '{MARK}') = 0 THEN {text} END"
    return None


def _read_moment(name: str, held: str, wanted: str) -> str | None:
    """Looked at before it is converted: far outside the calendar, conversions themselves raise."""
    if held not in ("date", "timestamp", "timestamptz"):
        return None
    last = "9999-12-31" if held == "date" else "9999-12-31 23:59:59.999999"
    zone = "+00" if held == "timestamptz" else ""
    inside = f"{name} BETWEEN '0001-01-01{zone}'::{held} AND '{last}{zone}'::{held}"
    value = f"({name} AT TIME ZONE 'UTC')" if held == "timestamptz" else name
    return f"CASE WHEN {inside} THEN {value}::{wanted} END"


def refuse_source(table: str, what: str) -> DataRefusal:
    """A table that cannot be computed on where it is."""
    return DataRefusal(
        "D2",
        f"table '{table}' cannot be computed on in PostgreSQL: {what}.",
        why="without it no question about the people in it can be answered.",
        fix="check the address, the role and the declared columns; or leave out kind = "
        '"postgres", and the table is copied.',
    )


__all__ = ["refuse_source", "write_source"]
