"""Which columns may be block columns, and of which tables.

A block is a cell of declared values.  Every unit must lie in one of them, and
its own rows must say in which: so the cells are listed beforehand, and one
table (or the unit itself) says where a unit lies.  ``docs/proofs/blocks.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from math import ceil, floor, prod

from discreet.errors import SchemaRefusal
from discreet.question.domain import Kind, Value, number_of
from discreet.question.schema.tables import Column, Neighbours, Table

_EPOCH = date(1970, 1, 1)
MOST_BLOCKS = 1_000_000
"""How many blocks one dataset may have: each has a balance of its own."""


def in_unit(table: Table) -> bool:
    """Whether the unit itself says in which block it lies."""
    return bool(table.blocks) and not table.by_row and set(table.blocks) <= set(table.unit or ())


def entity_of(table: Table) -> str:
    """Whom a private table is about."""
    if table.by_row:
        return f"rows of {table.name}"
    return table.entity or ", ".join(table.unit or ())


def has_null_cell(table: Table, column: Column) -> bool:
    """Whether NULL is a cell of a block column; a unit is never NULL, so of its own it is not."""
    return column.domain.nullable and column.name not in (table.unit or ())


def cell_count(table: Table, column: Column) -> int | None:
    """How many cells a block column has; None if that is not known (yet)."""
    domain = column.domain
    nullable = has_null_cell(table, column)
    if domain.values is not None:
        return len(domain.values) + nullable
    if column.kind not in (Kind.INTEGER, Kind.DATE) or domain.low is None or domain.high is None:
        return None
    return floor(domain.high) - ceil(domain.low) + 1 + nullable


def cell_values(table: Table, column: Column) -> tuple[Value | None, ...] | None:
    """The cells of a block column in their order, NULL last; None if they are not known (yet)."""
    count, domain = cell_count(table, column), column.domain
    if count is None:
        return None
    nullable = has_null_cell(table, column)
    listed = domain.values
    if listed is None:
        listed = _between(column.kind, ceil(domain.low or 0), count - nullable)
    elif column.kind is not Kind.TEXT:
        listed = tuple(sorted(listed, key=lambda value: number_of(value) or 0))
    return (*listed, None) if nullable else listed


def _between(kind: Kind, first: int, count: int) -> tuple[Value, ...]:
    if kind is Kind.INTEGER:
        return tuple(range(first, first + count))
    return tuple(_EPOCH + timedelta(days=day) for day in range(first, first + count))


def check_columns(table: Table) -> None:
    """Refuse block columns whose values cannot be listed; those to be read from a table later."""
    counts: list[int] = []
    for name in table.blocks:
        column = table.column(name)
        if column is None:
            continue  # refused as a name that is not declared
        count = cell_count(table, column)
        if count is None and column.values_from is None:
            raise SchemaRefusal(
                "S10",
                f"the blocks of table {table.name!r} cannot be listed: {name!r} has neither "
                "listed values nor whole steps between bounds.",
                why="each block has a balance of its own, so that the blocks must be known before "
                "anybody is in them.",
                fix=f"give {name!r} values = [...], or bounds if it is an integer or a date.",
            )
        counts.append(1 if count is None else count)
    _few_enough(prod(counts), f"table {table.name!r} has")


def _few_enough(count: int, who: str) -> None:
    if count > MOST_BLOCKS:
        raise SchemaRefusal(
            "S10",
            f"{who} {count} blocks, more than {MOST_BLOCKS}.",
            why="each block has a balance of its own, checked at every question.",
            fix="use fewer or coarser block columns: a month for a day, a region for a city.",
        )


def check_table(table: Table, tables: Mapping[str, Table], neighbours: Neighbours) -> None:
    """Refuse the blocks of ``table`` if one person could lie in two of them."""
    if not table.blocks:
        return
    if neighbours is not Neighbours.ADD_REMOVE:
        raise SchemaRefusal(
            "S11",
            f"table {table.name!r} declares blocks, and neighbours are {neighbours.value!r}.",
            why="a person who is changed may move from one block to another, and would lose in "
            "both.",
            fix="remove blocks, or declare neighbours = 'add/remove'.",
        )
    entity = entity_of(table)
    for other in tables.values():
        if not other.blocks or other.name == table.name or other.public:
            continue
        if entity_of(other) == entity and not _agree(table, other):
            raise SchemaRefusal(
                "S11",
                f"tables {other.name!r} and {table.name!r} both declare blocks of {entity!r}.",
                why="each could say that the same person lies in another block, who would lose in "
                "both.",
                fix="declare blocks in one of the two; or, in both, the same columns of the unit "
                "with the same values.",
            )


def check_all(tables: Mapping[str, Table], neighbours: Neighbours) -> None:
    """Refuse blocks that one person could be in two of, or too many in all."""
    counted: dict[str, int] = {}
    for table in tables.values():
        check_columns(table)
        check_table(table, tables, neighbours)
        if table.blocks:
            columns = [c for name in table.blocks if (c := table.column(name)) is not None]
            counts = [cell_count(table, column) or 1 for column in columns]
            counted[entity_of(table)] = prod(counts)
    _few_enough(sum(counted.values()), "the schema declares")


def _agree(one: Table, other: Table) -> bool:
    """Whether both read a unit's block off the unit, and list the same blocks."""
    return in_unit(one) and in_unit(other) and _places(one) == _places(other)


def _places(table: Table) -> list[tuple[int, object]]:
    unit = table.unit or ()
    columns = [c for name in table.blocks if (c := table.column(name)) is not None]
    return [(unit.index(c.name), cell_values(table, c) or c.values_from) for c in columns]
