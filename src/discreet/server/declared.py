"""The public part of a dataset as JSON: tables, columns, units in words, what may be called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from discreet.curate.free_tables import FreeTable
from discreet.errors import Refusal
from discreet.question.domain import Kind, Value
from discreet.question.functions import FUNCTIONS
from discreet.question.ownership import unit_of
from discreet.question.question import AGGREGATES
from discreet.question.schema import Column, Neighbours, Owners, Schema, Table
from discreet.question.sql import parse
from discreet.release.render import plain

MOST_VALUES = 1000
_KEYWORDS = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN BETWEEN LIKE IS NULL CASE WHEN "
    "THEN ELSE END JOIN LEFT USING ON DISTINCT UNION ALL WITH EXPLAIN ASC DESC TRUE FALSE"
)
_KINDS = {
    Kind.BOOLEAN: "true or false",
    Kind.INTEGER: "whole number",
    Kind.DECIMAL: "number",
    Kind.TEXT: "text",
    Kind.DATE: "day",
    Kind.TIMESTAMP: "moment",
}


def schema_json(name: str, schema: Schema, free: Mapping[str, FreeTable]) -> dict[str, Any]:
    """Everything about a dataset that anyone may know; ``free`` are its releases and surveys."""
    changed = schema.neighbours is Neighbours.CHANGE_ONE
    return {
        "name": name,
        "neighbours": str(schema.neighbours),
        "promise": "whatever one unit's rows are, answers are nearly as likely with them "
        + ("changed in any way" if changed else "removed altogether"),
        "max_joined_rows_per_unit": schema.most_joined_rows,
        "tables": [_table_json(table) for table in schema.tables.values()],
        "free": [_free_json(one) for one in free.values()],
        "functions": [
            {"name": f.name, "usage": f.usage, "meaning": f.meaning} for f in FUNCTIONS.values()
        ],
        "aggregates": [
            {"name": name, "usage": a.usage, "meaning": a.meaning} for name, a in AGGREGATES.items()
        ],
        "keywords": _KEYWORDS.split(),
        "examples": list(examples(schema)),
    }


def _table_json(table: Table) -> dict[str, Any]:
    own = table.unit or ()
    return {
        "name": table.name,
        "public": table.public,
        "free": False,
        "unit": None if table.unit is None else list(table.unit),
        "entity": table.entity or (", ".join(own) or None),
        "unit_text": unit_text(table),
        "max_rows_per_unit": table.max_rows_per_unit,
        "max_groups_per_unit": table.max_groups_per_unit,
        "blocks": list(table.blocks),
        "columns": [_column_json(column, column.name in own) for column in table.columns],
    }


def _free_json(one: FreeTable) -> dict[str, Any]:
    about = {"public": True, "free": True, "unit": None, "entity": None, "unit_text": one.about}
    return _table_json(one.table) | about


def unit_text(table: Table) -> str:
    """Who is protected, in words.

    >>> visits = Table("visits", (Column("patient", Kind.INTEGER),), ("patient",), 20)
    >>> unit_text(visits)
    'one unit is one patient: all rows that share it are hidden together; at most 20 rows
    of each are counted'
    """
    if table.public:
        return "public: about nobody in particular"
    if table.by_row:
        return "one unit is one row: whoever has several is not hidden as a whole"
    both = table.owners is Owners.ANY
    whose = "name one are" if both else "share it are"
    words = [f"one unit is one {unit_of(table).name}: all rows that {whose} hidden together"]
    for most, what in (
        (table.max_rows_per_unit, "rows"),
        (table.max_groups_per_unit, "groups"),
    ):
        if most is not None:
            words.append(f"at most {most:,} {what} of each are counted")
    if table.blocks:
        words.append(f"questions about one {', '.join(table.blocks)} cost only the units there")
    return "; ".join(words)


def _column_json(column: Column, own: bool) -> dict[str, Any]:
    bounds = None if column.low is None else [plain_text(column.low), plain_text(column.high)]
    listed = column.values
    return {
        "name": column.name,
        "kind": column.kind.value,
        "nullable": column.domain.nullable,
        "bounds": bounds,
        "values": None if listed is None else [plain(v) for v in listed[:MOST_VALUES]],
        "values_count": None if listed is None else len(listed),
        "unit": own,
        "text": _column_text(column, own),
    }


def _column_text(column: Column, own: bool) -> str:
    words = _KINDS[column.kind]
    if column.values is not None:
        words += f", one of {len(column.values):,} values"
    elif column.low is not None:
        words += f" from {plain_text(column.low)} to {plain_text(column.high)}"
    if own:
        words += ", part of the unit"
    return words + (", may be missing" if column.domain.nullable else "")


def plain_text(value: Value | None) -> str:
    """A bound as it would be typed."""
    found = plain(value)
    return f"{found:.12g}" if isinstance(found, float) else str(found)


# --- questions to begin with ---------------------------------------------------------------


def examples(schema: Schema) -> Iterator[str]:
    """Accepted questions about the private tables, made from the schema alone."""
    for table in schema.tables.values():
        if table.public:
            continue
        for text in _draft_questions(table):
            if _accepts(text, schema):
                yield text


def _draft_questions(table: Table) -> Iterator[str]:
    name = _quote_name(table.name)
    free = [c for c in table.columns if c.name not in (table.unit or ())]
    numbers = [c for c in free if c.kind.is_number and c.low is not None]
    keys = [c for c in free if c.values is not None]
    yield _select(name, "COUNT(*) AS n")
    if keys:
        yield _select(name, "COUNT(*) AS n", by=_quote_name(keys[0].name))
    if numbers:
        number = _quote_name(numbers[0].name)
        yield _select(name, f"AVG({number}) AS mean, STDDEV({number}) AS spread")
        if keys:
            yield _select(name, f"AVG({number}) AS mean", by=_quote_name(keys[0].name))


def _select(table: str, what: str, *, by: str | None = None) -> str:
    """A question as text; like any other it is read by the parser, and never by an engine."""
    if by is None:
        return f"SELECT {what} FROM {table}"  # noqa: S608
    return f"SELECT {by}, {what} FROM {table} GROUP BY {by}"  # noqa: S608


def _accepts(text: str, schema: Schema) -> bool:
    try:
        parse(text, schema)
    except Refusal:
        return False
    return True


def _quote_name(name: str) -> str:
    plain_name = name.isidentifier() and name.islower() and name.isascii()
    return name if plain_name else '"' + name.replace('"', '""') + '"'
