"""A table as its declaration says: every value enforced, every row owned, every unit bounded.

The rows that a unit keeps are chosen by a hash of their content, with the
content itself as tie-break: a function of the unit's own rows, whatever the
order, the threads or the other people in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sqlglot import exp

from discreet.engine.duckdb.grid import scaled_steps
from discreet.engine.duckdb.query import (
    Definition,
    aliased,
    all_of,
    any_of,
    identifiers,
    named,
    ordered,
    present,
    select,
    table_named,
)
from discreet.engine.duckdb.sources import MARK, Part
from discreet.errors import DataRefusal
from discreet.price.recipes import GRID_BITS, put_on_grid
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import ColumnRef
from discreet.question.functions import nodes, read_column, read_kind
from discreet.question.functions.nodes import Node
from discreet.question.schema import Column, Table
from discreet.question.schema.tables import has_null_cell, in_unit

_INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
}  # fmt: skip
_REALS = {"FLOAT", "DOUBLE", "DECIMAL"}
_MOMENTS = {
    "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip
_TEXTS = {"VARCHAR", "ENUM", "BLOB"}
_PHYSICAL = {
    Kind.BOOLEAN: {"BOOLEAN", *_INTEGERS, *_TEXTS},
    Kind.INTEGER: {"BOOLEAN", *_INTEGERS, *_REALS, *_TEXTS},
    Kind.DECIMAL: {*_INTEGERS, *_REALS, *_TEXTS},
    Kind.TEXT: {"BOOLEAN", "UUID", *_INTEGERS, *_TEXTS},
    Kind.DATE: {*_MOMENTS, *_TEXTS},
    Kind.TIMESTAMP: {*_MOMENTS, *_TEXTS},
}
"""Which types of a source can be read as which kind."""


def kind_held(held: str) -> Kind | None:
    """The kind that a source's type holds; None if it is of no kind."""
    name = held.partition("(")[0]
    for kind, types in (
        (Kind.BOOLEAN, {"BOOLEAN"}),
        (Kind.INTEGER, _INTEGERS),
        (Kind.DECIMAL, _REALS),
        (Kind.TEXT, _TEXTS),
        (Kind.DATE, {"DATE"}),
        (Kind.TIMESTAMP, _MOMENTS),
    ):
        if name in types:
            return kind
    return None


@dataclass(frozen=True, slots=True)
class Steps:
    """A number kept as a whole number of steps above ``low``, beside the number itself."""

    identifier: str
    grid: Fraction
    low: int
    span: int


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a rendered relation: what it is called in the engine and how it is held."""

    identifier: str
    domain: Domain
    codes: tuple[str, ...] | None = None  # the values of the ENUM that it is held as
    steps: Steps | None = None

    def value(self, *, of: str | None = None) -> Node:
        """The column as a value of its kind."""
        column = self.held(of=of)
        return nodes.cast(column, Kind.TEXT) if self.codes is not None else column

    def held(self, *, of: str | None = None) -> Node:
        """The column as it is held."""
        return named(self.identifier, of=of)


ROW_NUMBER = "_row"
"""Tells the rows of a table apart whose every row is a unit; no choice may depend on it."""


def unit_identifiers(table: Table) -> tuple[str, ...]:
    """The columns that hold who owns a row; nobody owns the rows of a public table."""
    if table.by_row:
        return (ROW_NUMBER, "_unit0")
    return tuple(f"_unit{i}" for i in range(len(table.unit or ())))


def own(unit: Iterable[str]) -> tuple[str, ...]:
    """The columns of a unit that its own rows determine.

    The number of a row does not qualify: it says how many others come before.
    """
    return tuple(name for name in unit if name != ROW_NUMBER)


# --- values ----------------------------------------------------------------------------------


_NATURAL = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.DECIMAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


def physical(column: Column, kind_held: str, *, table: str, marked: bool = False) -> Node:
    """The raw value as the engine's type for its kind; NULL where it is not one.

    In what is ``marked``, a text with the mark of damage is not one.
    """
    held = kind_held.partition("(")[0]
    if held == '"NULL"':  # a column in memory that holds nothing has no type
        held = _NATURAL[column.kind]
    if held not in _PHYSICAL[column.kind]:
        raise DataRefusal(
            "D2",
            f"column '{column.name}' of table '{table}' is declared {column.kind} but its "
            f"source holds {held}.",
            why="a value is enforced as its declaration says, and this type has no such reading.",
            fix=f"correct the kind of '{column.name}' in the schema, or convert the source.",
        )
    raw: Node = named(column.name)
    if held == "BLOB":  # bytes, because not all of them are text: see sources
        raw = nodes.call("TRY", nodes.call("DECODE", raw))
    elif marked and held == "VARCHAR" and column.kind is Kind.TEXT and not _unmarked(column):
        damaged = nodes.call("CONTAINS", raw, nodes.text(MARK))
        raw = nodes.case((damaged, nodes.typed_null(Kind.TEXT)), otherwise=raw.copy())
    elif held in _MOMENTS:
        # Compared before it is converted: far outside the calendar, conversions themselves fail.
        raw = nodes.try_cast(raw, Kind.DATE if held == "DATE" else Kind.TIMESTAMP)
        raw = nodes.in_calendar(raw, Kind.DATE if held == "DATE" else Kind.TIMESTAMP)
    value = nodes.try_cast(raw, column.kind)
    if column.kind is Kind.DECIMAL:  # -0.0 equals 0.0 but does not print alike: make them one
        value = nodes.infix(exp.Add, value, nodes.literal(Fraction(0)))
    return value


def _unmarked(column: Column) -> bool:
    """Whether a text with the mark is none of the declared values anyway."""
    return codes(column) is not None and not any(MARK in code for code in codes(column) or ())


def enum_name(table: Table, column: Column) -> str:
    """The engine's type that lists the values of a text column."""
    return f"values of {table.name}.{column.name}"


def codes(column: Column) -> tuple[str, ...] | None:
    """The values of a text column that is held as a code for one of them."""
    if column.kind is not Kind.TEXT:
        return None
    return tuple(str(value) for value in column.domain.values or ()) or None


def _enforced(table: Table, column: Column, raw: Node) -> Node:
    listed_values = codes(column)
    if listed_values is None:
        return read_column(column, raw)
    code = exp.TryCast(this=raw, to=_enum(table, column))
    if column.nullable:
        return code
    first = exp.Cast(this=nodes.text(listed_values[0]), to=_enum(table, column))
    return exp.Coalesce(this=code, expressions=[first])


def _enum(table: Table, column: Column) -> exp.DataType:
    name = exp.to_identifier(enum_name(table, column), quoted=True)
    return exp.DataType(this=exp.DType.USERDEFINED, kind=name)


# --- rows ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table stands in the engine: its unit's columns and a field for each declared column."""

    table: Table
    unit: tuple[str, ...]
    fields: Mapping[str, Field]

    @property
    def content(self) -> tuple[str, ...]:
        """Everything a row says, whose it is included."""
        return (*self.unit, *(field.identifier for field in self.fields.values()))


def rows_name(table: Table) -> str:
    """Under which name statements find the rows of a table, prepared or not."""
    return f"{'public' if table.public else 'rows of'} {table.name}"


@lru_cache(64)
def layout(table: Table) -> Layout:
    """How a table stands in the engine; a private one with steps beside every bounded number."""
    names = identifiers(column.name for column in table.columns)
    fields = {
        column.name: Field(
            names[column.name],
            column.domain,
            codes=codes(column),
            steps=None if table.public else _steps(column, place),
        )
        for place, column in enumerate(table.columns)
    }
    return Layout(table, unit_identifiers(table), fields)


def _steps(column: Column, place: int) -> Steps | None:
    domain = column.domain
    if not domain.kind.is_number or not domain.bounded:
        return None
    want = put_on_grid(ColumnRef(column.name), domain, GRID_BITS)
    return Steps(f"_steps{place}", want.grid, want.low, want.span)


def with_steps(table: Table, name: str) -> exp.Select:
    """The rows called ``name`` with their steps; those that nobody asks for cost nothing."""
    shape = layout(table)
    picked: list[Node] = [named(content) for content in shape.content]
    for field in shape.fields.values():
        if field.steps is not None:
            want = put_on_grid(ColumnRef(field.identifier), field.domain, GRID_BITS)
            steps = scaled_steps(named(field.identifier), field.domain.kind, want)
            picked.append(aliased(steps, field.steps.identifier))
    return select(picked, table_named(name))


def owned_rows(shape: Layout, source: str) -> exp.Select:
    """Every row of the source that has an owner, read through the declaration.

    The unit is cast but never clipped: clipping would merge two people, who
    would then choose between each other's rows.  A row whose unit is missing
    belongs to nobody who could be protected, and is left out.  So is a row
    outside the declared blocks, where the row itself or its unit says so; where
    a block is to be chosen among a unit's rows, they show theirs (``_block0``, ...).
    """
    table = shape.table
    owners: list[Node] = [named(name) for name in table.unit or () if not table.by_row]
    if table.by_row:
        content = (named(column.name) for column in table.columns)
        owners = [exp.Window(this=exp.RowNumber()), nodes.call("HASH", *content)]
    return select(
        [
            *(aliased(node, name) for node, name in zip(owners, shape.unit, strict=True)),
            *(
                aliased(_enforced(table, column, named(column.name)), field.identifier)
                for column, field in zip(table.columns, shape.fields.values(), strict=True)
            ),
            *(
                aliased(_block(column), name)
                for column, name in zip(_block_columns(table), chosen_blocks(table), strict=False)
            ),
        ],
        table_named(source),
        where=[
            *([] if table.by_row else [present(node.copy()) for node in owners]),
            *(
                []
                if chosen_blocks(table)
                else _inside_blocks(table, [_block(c) for c in _block_columns(table)])
            ),
        ],
    )


# --- blocks ----------------------------------------------------------------------------------


def chosen_blocks(table: Table) -> tuple[str, ...]:
    """The columns that hold each row's block where a unit's rows could name several."""
    if table.by_row or in_unit(table):
        return ()
    return tuple(f"_block{place}" for place in range(len(table.blocks)))


def _block_columns(table: Table) -> list[Column]:
    return [column for name in table.blocks for column in table.columns if column.name == name]


def _block(column: Column) -> Node:
    """A row's block as its kind alone says: never clipped, whatever values are declared.

    Declaring further values later must move nobody into a block that is new
    (docs/proofs/blocks.md, Lemma 1).
    """
    return read_kind(column.kind, named(column.name))


def _inside_blocks(table: Table, blocks: Sequence[Node]) -> list[Node]:
    """Whether the block that a row names is one of those declared."""
    checks = []
    for column, node in zip(_block_columns(table), blocks, strict=True):
        check = _declared(table, column, node)
        if has_null_cell(table, column):
            check = any_of([check, exp.Is(this=nodes.paren(node.copy()), expression=exp.Null())])
        checks.append(check)
    return checks


def _declared(table: Table, column: Column, node: Node) -> Node:
    """Whether a value is among the column's declared ones; NULL is not."""
    if codes(column) is not None:
        return present(exp.TryCast(this=node, to=_enum(table, column)))
    if column.values is not None:
        listed = [nodes.literal(value) for value in column.domain.values or ()]
        return exp.In(this=nodes.paren(node), expressions=listed)
    if column.ends is not None:
        low, high = map(nodes.literal, column.ends)
        return exp.Between(this=nodes.paren(node), low=low, high=high)
    return present(node)


def typed_rows(table: Table, part: Part, held: Mapping[str, str]) -> exp.Select:
    """The declared columns of a part, each in its kind's own type, whatever it was in.

    This is a view of its own, so that the statements over it do not tell how a
    column is held: a table in memory takes its types from the rows it has.  A
    column that only other parts have is NULL.
    """
    types = {name.casefold(): kind for name, kind in held.items()}

    def typed(column: Column) -> Node:
        kind = types.get(column.name.casefold())
        if kind is None:
            return nodes.typed_null(column.kind)
        return physical(column, kind, table=table.name, marked=part.marked)

    return select(
        [aliased(typed(column), column.name) for column in table.columns], table_named(part.view)
    )


def chosen(
    partition: Sequence[str],
    content: Iterable[str],
    *,
    most: int,
    first: tuple[str, ...] = (),
) -> Node:
    """Whether a row is among the ``most`` first of its partition, in the order of a hash.

    The hash takes in whose row it is, so that no value is preferred for
    everybody; rows that tie in the hash are ordered by their content, and rows
    that tie in their content are the same row.  Rows are first set in the order
    of the columns ``first``.
    """
    order = [*map(named, first), *_by_hash(tuple(content), tuple(partition))]
    return exp.LTE(
        this=exp.Window(
            this=exp.RowNumber(),
            partition_by=[named(name) for name in partition],
            order=ordered(order),
        ),
        expression=exp.Literal.number(str(most)),
    )


def chosen_values(partition: Sequence[str], columns: tuple[str, ...], *, most: int) -> Node:
    """Whether a row has one of the ``most`` first values of ``columns`` in its partition."""
    rank = exp.Window(
        this=nodes.call("DENSE_RANK"),
        partition_by=[named(name) for name in partition],
        order=ordered(_by_hash(columns, tuple(partition))),
    )
    return exp.LTE(this=rank, expression=exp.Literal.number(str(most)))


def _by_hash(names: tuple[str, ...], partition: tuple[str, ...]) -> list[Node]:
    """The order of a hash; ties by the content, of which the partition's own columns tell nothing.

    Every column that sorts rows is copied for it: it pays to leave out what cannot.
    """
    determined = own(names)
    ties = (name for name in determined if name not in partition)
    return [nodes.call("HASH", *map(named, determined)), *map(named, ties)]


def first_block(partition: Iterable[str], blocks: tuple[str, ...]) -> Node:
    """Whether a row lies in the least of its unit's blocks, NULL last.

    Not by a hash: of blocks in time, a unit stays in its first whatever is added later.
    """
    rank = exp.Window(
        this=nodes.call("DENSE_RANK"),
        partition_by=[named(name) for name in partition],
        order=ordered(map(named, blocks)),
    )
    return exp.EQ(this=rank, expression=exp.Literal.number("1"))


def bounded_rows(shape: Layout, source: str, name: str) -> list[Definition]:
    """Definitions that end in ``name``: the owned rows, bounded as the table declares.

    A unit keeps the rows of one block, and of those at most
    ``max_rows_per_unit``.  Ranking everybody's rows would sort the table.  So
    the few units that have too much are found first, by counting; only theirs
    are ranked.
    """
    rows = owned_rows(shape, source)
    table = shape.table
    blocks = chosen_blocks(table)
    if table.by_row or table.unit is None or (table.max_rows_per_unit is None and not blocks):
        return [(name, rows, False)]
    owned, much = f"{name}, owned", f"{name}, units with too much"
    unit = [named(u) for u in shape.unit]
    counted = select(unit, table_named(owned), group=unit)
    counted.set("having", exp.Having(this=_too_much(table, blocks)))
    content = [named(c) for c in shape.content]
    few = select(
        content,
        table_named(owned),
        where=_inside_blocks(table, [named(b) for b in blocks]) if blocks else (),
        joins=[_joined_on_unit(much, "ANTI", shape.unit)],
    )
    first = select([c.copy() for c in content], table_named(owned))
    first.append("joins", _joined_on_unit(much, "SEMI", shape.unit))
    first.set("qualify", exp.Qualify(this=all_of(_kept(shape, blocks))))
    both = exp.Union(this=few, expression=first, distinct=False)
    return [(owned, rows, False), (much, counted, True), (name, both, False)]


def _kept(shape: Layout, blocks: tuple[str, ...]) -> list[Node]:
    """Which rows of a unit that has too much are kept; its block is chosen before anything."""
    table, kept = shape.table, []
    if blocks:
        kept = [first_block(shape.unit, blocks)]
        kept += _inside_blocks(table, [named(b) for b in blocks])
    if table.max_rows_per_unit is not None:
        # The unit's own columns are read off the unit, so they tell no two of its rows apart.
        told = [f.identifier for name, f in shape.fields.items() if name not in (table.unit or ())]
        content, most = (*shape.unit, *told), table.max_rows_per_unit
        kept.append(chosen(shape.unit, content, most=most, first=blocks))
    return kept


def _too_much(table: Table, blocks: tuple[str, ...]) -> Node:
    """Whether a unit has too many rows, or rows in more than one block."""
    everything = exp.Count(this=exp.Star(), big_int=True)
    checks: list[Node] = []
    if table.max_rows_per_unit is not None:
        most = exp.Literal.number(str(table.max_rows_per_unit))
        checks.append(exp.GT(this=everything, expression=most))
    for block in blocks:
        least, greatest = (nodes.call(name, named(block)) for name in ("MIN", "MAX"))
        checks.append(exp.NEQ(this=least, expression=greatest))
        some = exp.Count(this=named(block), big_int=True)
        mixed = exp.LT(this=some, expression=everything.copy())
        any_known = exp.GT(this=some.copy(), expression=exp.Literal.number("0"))
        checks.append(exp.And(this=mixed, expression=any_known))
    return any_of(checks)


def _joined_on_unit(name: str, kind: str, unit: tuple[str, ...]) -> exp.Join:
    return exp.Join(
        this=table_named(name),
        kind=kind,
        using=[exp.to_identifier(u, quoted=True) for u in unit],
    )
