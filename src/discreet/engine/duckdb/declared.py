"""A table as its declaration says: every value enforced, every row owned, every unit bounded.

The rows that a unit keeps are chosen by a hash of their content, with the
content itself as tie-break: a function of the unit's own rows, whatever the
order, the threads or the other people in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from sqlglot import exp

from discreet.engine.duckdb.grid import scale_steps
from discreet.engine.duckdb.hashing import Hashed, hash_columns
from discreet.engine.duckdb.render import ROW_NUMBER, Layout, lay_out, list_codes, name_rows
from discreet.engine.duckdb.shared import bound_shared, count_crowd
from discreet.engine.duckdb.sources import MARK, Part, quote_name
from discreet.errors import DataRefusal
from discreet.price.recipes import GRID_BITS, put_on_grid
from discreet.question.domain import Kind
from discreet.question.expressions import ColumnRef
from discreet.question.functions import nodes, read_column, read_kind
from discreet.question.functions.nodes import (
    ENGINE,
    Definition,
    Node,
    add_alias,
    add_definitions,
    conjoin,
    disjoin,
    order_by,
    present,
    quote_column,
    quote_table,
    select,
)
from discreet.question.schema import Column, Owners, Table
from discreet.question.schema.tables import has_null_cell, in_unit

_INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
}  # fmt: skip
_REALS = {"FLOAT", "DOUBLE", "DECIMAL"}
_MOMENTS = {
    "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMPTZ_NS",
}  # fmt: skip
_ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"}
_OFFSET = ":[0-9]{2}([.][0-9]+)? *([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)$"
"""How a text ends that says how far from UTC its clock is."""
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


def find_kind(held: str) -> Kind | None:
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


def pick_own(unit: Iterable[str]) -> tuple[str, ...]:
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


def read_physical(column: Column, kind_held: str, *, table: str, part: Part) -> Node:
    """The raw value as the engine's type for its kind; NULL where it is not one.

    In a part that is ``marked``, a text with the mark of damage is not one.  A moment is read as
    the clocks of the column's time zone show it, whatever else the column holds.
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
    raw: Node = quote_column(column.name)
    if held == "BLOB":  # bytes, because not all of them are text: see sources
        raw = nodes.call("TRY", nodes.call("DECODE", raw))
    elif (
        part.marked
        and held == "VARCHAR"
        and column.kind is Kind.TEXT
        and not _lists_no_mark(column)
    ):
        damaged = nodes.call("CONTAINS", raw, nodes.text(MARK))
        raw = nodes.case((damaged, nodes.make_null(Kind.TEXT)), otherwise=raw.copy())
    elif held in _MOMENTS:
        if held == "TIMESTAMPTZ_NS":  # which has no cast of its own
            raw = exp.TryCast(this=raw, to=exp.DataType(this=exp.DType.TIMESTAMPTZ))
        # Compared before it is converted: far outside the calendar, conversions themselves fail.
        raw = nodes.try_cast(raw, Kind.DATE if held == "DATE" else Kind.TIMESTAMP)
        raw = nodes.in_calendar(raw, Kind.DATE if held == "DATE" else Kind.TIMESTAMP)
        zoned = held in _ZONED or column.name.casefold() in part.zoned
        if column.time_zone is not None and zoned:
            raw = _show_in(column.time_zone, raw)
    if column.time_zone is not None and held in _TEXTS:
        raw = _read_offset(column.time_zone, raw)
    value = nodes.try_cast(raw, column.kind)
    if column.kind is Kind.DECIMAL:  # -0.0 equals 0.0 but does not print alike: make them one
        value = nodes.infix(exp.Add, value, nodes.literal(Fraction(0)))
    return value


def _show_in(zone: str, moment: Node) -> Node:
    """A moment in UTC as the clocks of a zone show it."""
    return nodes.in_calendar(nodes.change_zone(moment, "UTC", zone), Kind.TIMESTAMP)


def _read_offset(zone: str, text: Node) -> Node:
    """A text that says how far from UTC its clock is, as the clocks of ``zone`` show that moment.

    One that does not say is taken for what these clocks showed.
    """
    text = nodes.cast(text, Kind.TEXT)
    says = nodes.call("REGEXP_MATCHES", text, nodes.text(_OFFSET))
    zoned = exp.TryCast(this=text.copy(), to=exp.DataType(this=exp.DType.TIMESTAMPTZ))
    moment = nodes.in_calendar(nodes.try_cast(zoned, Kind.TIMESTAMP), Kind.TIMESTAMP)
    plain = nodes.try_cast(text.copy(), Kind.TIMESTAMP)
    return nodes.case((says, _show_in(zone, moment)), otherwise=plain)


def _lists_no_mark(column: Column) -> bool:
    """Whether a text with the mark is none of the declared values anyway."""
    return list_codes(column) is not None and not any(
        MARK in code for code in list_codes(column) or ()
    )


def name_enum(table: Table, column: Column) -> str:
    """The engine's type that lists the values of a text column."""
    return f"values of {table.name}.{column.name}"


def _enforce(table: Table, column: Column, raw: Node) -> Node:
    listed_values = list_codes(column)
    if listed_values is None:
        return read_column(column, raw)
    code = exp.TryCast(this=raw, to=_name_type(table, column))
    if column.nullable:
        return code
    first = exp.Cast(this=nodes.text(listed_values[0]), to=_name_type(table, column))
    return exp.Coalesce(this=code, expressions=[first])


def _name_type(table: Table, column: Column) -> exp.DataType:
    name = exp.to_identifier(name_enum(table, column), quoted=True)
    return exp.DataType(this=exp.DType.USERDEFINED, kind=name)


# --- rows ------------------------------------------------------------------------------------


def add_steps(table: Table, name: str) -> exp.Select:
    """The rows called ``name`` with their steps; those that nobody asks for cost nothing."""
    shape = lay_out(table)
    picked: list[Node] = [quote_column(content) for content in shape.content]
    for field in shape.fields.values():
        if field.steps is not None:
            want = put_on_grid(ColumnRef(field.identifier), field.domain, GRID_BITS)
            steps = scale_steps(quote_column(field.identifier), field.domain.kind, want)
            picked.append(add_alias(steps, field.steps.identifier))
    return select(picked, quote_table(name))


def select_owned_rows(shape: Layout, source: str) -> exp.Select:
    """Every row of the source that has an owner, read through the declaration.

    The unit is cast but never clipped: clipping would merge two people, who
    would then choose between each other's rows.  A row whose unit is missing
    belongs to nobody who could be protected, and is left out.  So is a row
    outside the declared blocks, where the row itself or its unit says so; where
    a block is to be chosen among a unit's rows, they show theirs (``_block0``, ...).
    """
    table = shape.table
    owners: list[Node] = [quote_column(name) for name in table.unit or () if not table.by_row]
    whose = [present(node.copy()) for node in owners]
    if table.owners is Owners.PAIR:  # the same pair whichever way round
        owners = [nodes.call(end, *(o.copy() for o in owners)) for end in ("LEAST", "GREATEST")]
    if table.owners is Owners.ANY:  # a row that names one person is theirs alone
        whose = [disjoin(whose)]
    if table.by_row:
        content = [Hashed(column.name, column.kind) for column in table.columns]
        owners = [exp.Window(this=exp.RowNumber()), hash_columns(content)]
    return select(
        [
            *(add_alias(node, name) for node, name in zip(owners, shape.unit, strict=True)),
            *(
                add_alias(_enforce(table, column, quote_column(column.name)), field.identifier)
                for column, field in zip(table.columns, shape.fields.values(), strict=True)
            ),
            *(
                add_alias(_read_block(column), name)
                for column, name in zip(_block_columns(table), name_blocks(table), strict=False)
            ),
        ],
        quote_table(source),
        where=[
            *([] if table.by_row else whose),
            *(
                []
                if name_blocks(table)
                else _check_blocks(table, [_read_block(c) for c in _block_columns(table)])
            ),
        ],
    )


# --- blocks ----------------------------------------------------------------------------------


def name_blocks(table: Table) -> tuple[str, ...]:
    """The columns that hold each row's block where a unit's rows could name several."""
    if table.by_row or in_unit(table):
        return ()
    return tuple(f"_block{index}" for index in range(len(table.blocks)))


def _block_columns(table: Table) -> list[Column]:
    return [column for name in table.blocks for column in table.columns if column.name == name]


def _read_block(column: Column) -> Node:
    """A row's block as its kind alone says: never clipped, whatever values are declared.

    Declaring further values later must move nobody into a block that is new
    (docs/proofs/blocks.md, Lemma 1).
    """
    return read_kind(column.kind, quote_column(column.name))


def _check_blocks(table: Table, blocks: Sequence[Node]) -> list[Node]:
    """Whether the block that a row names is one of those declared."""
    checks = []
    for column, node in zip(_block_columns(table), blocks, strict=True):
        check = _check_declared(table, column, node)
        if has_null_cell(table, column):
            check = disjoin([check, exp.Is(this=nodes.paren(node.copy()), expression=exp.Null())])
        checks.append(check)
    return checks


def _check_declared(table: Table, column: Column, node: Node) -> Node:
    """Whether a value is among the column's declared ones; NULL is not."""
    if list_codes(column) is not None:
        return present(exp.TryCast(this=node, to=_name_type(table, column)))
    if column.values is not None:
        listed = [nodes.literal(value) for value in column.domain.values or ()]
        return exp.In(this=nodes.paren(node), expressions=listed)
    if column.ends is not None:
        low, high = map(nodes.literal, column.ends)
        return exp.Between(this=nodes.paren(node), low=low, high=high)
    return present(node)


def select_typed_rows(table: Table, part: Part, held: Mapping[str, str]) -> exp.Select:
    """The declared columns of a part, each in its kind's own type, whatever it was in.

    This is a view of its own, so that the statements over it do not tell how a
    column is held: a table in memory takes its types from the rows it has.  A
    column that only other parts have is NULL.
    """
    types = {name.casefold(): kind for name, kind in held.items()}

    def read_column(column: Column) -> Node:
        kind = types.get(column.name.casefold())
        if kind is None:
            return nodes.make_null(column.kind)
        return read_physical(column, kind, table=table.name, part=part)

    return select(
        [add_alias(read_column(column), column.name) for column in table.columns],
        quote_table(part.view),
    )


def choose_rows(
    partition: Sequence[str],
    content: Iterable[Hashed],
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
    order = [*map(quote_column, first), *_order_by_hash(tuple(content), tuple(partition))]
    return exp.LTE(
        this=exp.Window(
            this=exp.RowNumber(),
            partition_by=[quote_column(name) for name in partition],
            order=order_by(order),
        ),
        expression=exp.Literal.number(str(most)),
    )


def rank_rows(
    function: exp.Func, partition: Sequence[str], content: Iterable[Hashed]
) -> exp.Window:
    """RANK or ROW_NUMBER of a row in its partition, in the order of the hash alone."""
    hashed, *_ = _order_by_hash(tuple(content), tuple(partition))
    return exp.Window(
        this=function,
        partition_by=[quote_column(name) for name in partition],
        order=order_by([hashed]),
    )


def choose_values(partition: Sequence[str], columns: tuple[Hashed, ...], *, most: int) -> Node:
    """Whether a row has one of the ``most`` first values of ``columns`` in its partition."""
    rank = exp.Window(
        this=nodes.call("DENSE_RANK"),
        partition_by=[quote_column(name) for name in partition],
        order=order_by(_order_by_hash(columns, tuple(partition))),
    )
    return exp.LTE(this=rank, expression=exp.Literal.number(str(most)))


def _order_by_hash(columns: tuple[Hashed, ...], partition: tuple[str, ...]) -> list[Node]:
    """The order of a hash; ties by the content, of which the partition's own columns tell nothing.

    Every column that sorts rows is copied for it: it pays to leave out what cannot.
    """
    determined = pick_own(column.identifier for column in columns)
    ties = (name for name in determined if name not in partition)
    hashed = hash_columns(column for column in columns if column.identifier in determined)
    return [hashed, *map(quote_column, ties)]


def choose_block(partition: Iterable[str], blocks: tuple[str, ...]) -> Node:
    """Whether a row lies in the least of its unit's blocks, NULL last.

    Not by a hash: of blocks in time, a unit stays in its first whatever is added later.
    """
    rank = exp.Window(
        this=nodes.call("DENSE_RANK"),
        partition_by=[quote_column(name) for name in partition],
        order=order_by(map(quote_column, blocks)),
    )
    return exp.EQ(this=rank, expression=exp.Literal.number("1"))


def source_name(table: str) -> str:
    """The view in which the declared columns have the types of their kinds."""
    return f"source of {table}"


@lru_cache(64)
def define_rows(table: Table, *, pretty: bool = False) -> str:
    """The rows of a private table that is not prepared: enforced, owned and bounded.

    Written once: every database of a curator, and every explanation, has the same.
    """
    definitions = bound_rows(lay_out(table), source_name(table.name), "bounded", ranked=True)
    query = add_definitions(add_steps(table, definitions[-1][0]), definitions)
    return query.sql(ENGINE, pretty=pretty)


def draft_rows(table: Table) -> list[Definition]:
    """The same as steps of a statement, for engines that hold no view: the last has its name.

    They read the step :func:`source_name`, in which the declared columns have the types of
    their kinds.
    """
    name, source = name_rows(table), source_name(table.name)
    if table.public:
        return [(name, select_owned_rows(lay_out(table), source), False)]
    steps = bound_rows(lay_out(table), source, f"{name}, bounded")
    return [*steps, (name, add_steps(table, steps[-1][0]), False)]


def list_types(table: Table) -> dict[str, tuple[str, ...]]:
    """The declared texts of each column that is held as a code, by the name of its type."""
    listed = ((name_enum(table, column), list_codes(column)) for column in table.columns)
    return {name: codes for name, codes in listed if codes is not None}


def describe_rows(table: Table) -> str:
    """What stands for the rows of a private table, for the eye."""
    return f"CREATE VIEW {quote_name(name_rows(table))} AS\n{define_rows(table, pretty=True)};"


def bound_rows(shape: Layout, source: str, name: str, *, ranked: bool = False) -> list[Definition]:
    """Definitions that end in ``name``: the owned rows, bounded as the table declares.

    A unit keeps the rows of one block, and of those at most
    ``max_rows_per_unit``.  Ranking everybody's rows would sort the table.  So
    the few units that have too much are found first, by counting; only theirs
    are ranked.  If they are to be ``ranked`` first, the same rows are found in
    more steps that sort less: see :func:`_keep_ranked`.
    """
    if shape.table.owners is Owners.ANY:
        return bound_shared_rows(shape, source, name)
    own = _own_columns(shape)
    if not own:
        return _bound_rows(shape, source, name, ranked=ranked)
    before = f"{name}, as each row says"
    bounded = _bound_rows(shape, source, before, ranked=ranked)
    return [*bounded, *_agree(shape, own, before, name)]


def bound_shared_rows(shape: Layout, source: str, name: str) -> list[Definition]:
    """Definitions that end in ``name``: of rows with two owners, the first of every owner."""
    owned = f"{name}, owned"
    rows = select_owned_rows(shape, source)
    return [(owned, rows, False), *bound_shared(shape, owned, name)]


def count_crowded(table: Table) -> str:
    """The statement that counts people by the number of rows they stand in."""
    definitions, query = count_crowd_rows(lay_out(table), source_name(table.name), "bounded")
    return add_definitions(query, definitions).sql(ENGINE, pretty=True)


def count_crowd_rows(shape: Layout, source: str, name: str) -> tuple[list[Definition], exp.Query]:
    """Definitions as :func:`bound_shared_rows` begins with, and what counts the crowd by them."""
    owned = f"{name}, owned"
    definitions, query = count_crowd(shape, owned, name)
    return [(owned, select_owned_rows(shape, source), False), *definitions], query


def _own_columns(shape: Layout) -> tuple[str, ...]:
    """The columns that are the unit's, where its rows could say different things."""
    table = shape.table
    if table.by_row or table.max_rows_per_unit == 1:
        return ()
    unit = table.unit or ()
    return tuple(shape.fields[n].identifier for n in table.per_unit if n not in unit)


def _agree(shape: Layout, own: tuple[str, ...], before: str, name: str) -> list[Definition]:
    """Definitions that end in ``name``: all rows of a unit say what the first of them says.

    The first in the order of a hash of a unit's own rows, those that are kept: so nobody else
    decides it (docs/proofs/ownership.md, Lemma 13).  Few units disagree with themselves; they
    are found first, by counting, and only their rows are sorted.
    """
    divided = f"{name}, units that say different things"
    unit = [quote_column(u) for u in shape.unit]
    found = select(unit, quote_table(before), group=unit)
    found.set("having", exp.Having(this=disjoin([c for o in own for c in _differ(o)])))
    agreed = select([quote_column(c) for c in shape.content], quote_table(before))
    agreed.append("joins", _join_on_unit(divided, "ANTI", shape.unit))
    mended = _say_first(shape, own, before)
    mended.append("joins", _join_on_unit(divided, "SEMI", shape.unit))
    both = exp.Union(this=agreed, expression=mended, distinct=False)
    return [(divided, found, True), (name, both, False)]


def say_first(shape: Layout, rows: str) -> exp.Select | None:
    """All rows of a unit with what the first of them says of the unit; None if nothing is said."""
    own = () if shape.table.owners is Owners.ANY else _own_columns(shape)
    return _say_first(shape, own, rows) if own else None


def _say_first(shape: Layout, own: tuple[str, ...], rows: str) -> exp.Select:
    order = order_by(_order_by_hash(shape.list_hashed(), shape.unit))

    def say(column: str) -> Node:
        if column not in own:
            return quote_column(column)
        first = exp.Window(
            this=nodes.call("FIRST_VALUE", quote_column(column)),
            partition_by=[quote_column(u) for u in shape.unit],
            order=order.copy(),
        )
        return add_alias(first, column)

    return select([say(c) for c in shape.content], quote_table(rows))


def _differ(column: str) -> list[Node]:
    """Whether a column says different things, NULL being one, on the rows of one unit."""
    everything = exp.Count(this=exp.Star(), big_int=True)
    least, greatest = (nodes.call(name, quote_column(column)) for name in ("MIN", "MAX"))
    some = exp.Count(this=quote_column(column), big_int=True)
    mixed = exp.LT(this=some, expression=everything)
    any_known = exp.GT(this=some.copy(), expression=exp.Literal.number("0"))
    return [
        exp.NEQ(this=least, expression=greatest),
        exp.And(this=mixed, expression=any_known),
    ]


def _bound_rows(shape: Layout, source: str, name: str, *, ranked: bool) -> list[Definition]:
    """Definitions that end in ``name``: the owned rows of one block, and so many of them."""
    rows = select_owned_rows(shape, source)
    table = shape.table
    blocks = name_blocks(table)
    if table.by_row or table.unit is None or (table.max_rows_per_unit is None and not blocks):
        return [(name, rows, False)]
    owned, much = f"{name}, owned", f"{name}, units with too much"
    unit = [quote_column(u) for u in shape.unit]
    counted = select(unit, quote_table(owned), group=unit)
    counted.set("having", exp.Having(this=_test_bound(table, blocks)))
    content = [quote_column(c) for c in shape.content]
    few = select(
        content,
        quote_table(owned),
        where=_check_blocks(table, [quote_column(b) for b in blocks]) if blocks else (),
        joins=[_join_on_unit(much, "ANTI", shape.unit)],
    )
    before: list[Definition] = [(owned, rows, False), (much, counted, True)]
    if ranked and not blocks:
        steps, kept = _keep_ranked(shape, owned, much, name)
        every = exp.Union(this=few, expression=kept, distinct=False)
        return [*before, *steps, (name, every, False)]
    first = select([c.copy() for c in content], quote_table(owned))
    first.append("joins", _join_on_unit(much, "SEMI", shape.unit))
    first.set("qualify", exp.Qualify(this=conjoin(_keep_rows(shape, blocks))))
    both = exp.Union(this=few, expression=first, distinct=False)
    return [*before, (name, both, False)]


def _keep_ranked(
    shape: Layout, owned: str, much: str, name: str
) -> tuple[list[Definition], exp.Union]:
    """The rows that are kept of units with too many, and the steps that it takes to find them.

    Sorting by the hash alone is much faster than by all that breaks its ties, and hardly a unit
    has any.  Whose rank is at most the bound is kept, unless more rows than that have one: then
    rows tie at the bound, and that unit's are set in order by their content, too.
    """
    content, most = _list_own(shape), exp.Literal.number(str(shape.table.max_rows_per_unit))
    columns = [quote_column(c) for c in shape.content]
    ranked, tied = f"{name}, ranked", f"{name}, units that tie"
    rank, number = "_rank", "_number"  # no column is held under a name that begins so
    ranks = [
        add_alias(rank_rows(function, shape.unit, content), column)
        for function, column in ((exp.Rank(), rank), (exp.RowNumber(), number))
    ]
    first = select([*columns, *ranks], quote_table(owned))
    first.append("joins", _join_on_unit(much, "SEMI", shape.unit))
    within = exp.LTE(this=quote_column(rank), expression=most)
    first.set("qualify", exp.Qualify(this=within))
    beyond = exp.GT(this=quote_column(number), expression=most.copy())
    unit = [quote_column(u) for u in shape.unit]
    ties = select(unit, quote_table(ranked), where=[beyond], group=unit)
    clear = select([c.copy() for c in columns], quote_table(ranked))
    clear.append("joins", _join_on_unit(tied, "ANTI", shape.unit))
    settled = select([c.copy() for c in columns], quote_table(ranked))
    settled.append("joins", _join_on_unit(tied, "SEMI", shape.unit))
    settled.set("qualify", exp.Qualify(this=conjoin(_keep_rows(shape, ()))))
    both = exp.Union(this=clear, expression=settled, distinct=False)
    return [(ranked, first, True), (tied, ties, True)], both


def choose_kept(shape: Layout) -> Node | None:
    """Whether an owned row is kept of its unit, said of all rows at once; None if all are."""
    table, blocks = shape.table, name_blocks(shape.table)
    if table.by_row or table.unit is None or (table.max_rows_per_unit is None and not blocks):
        return None
    return conjoin(_keep_rows(shape, blocks))


def _keep_rows(shape: Layout, blocks: tuple[str, ...]) -> list[Node]:
    """Which rows of a unit that has too much are kept; its block is chosen before anything."""
    table, kept = shape.table, []
    if blocks:
        kept = [choose_block(shape.unit, blocks)]
        kept += _check_blocks(table, [quote_column(b) for b in blocks])
    if table.max_rows_per_unit is not None:
        most = table.max_rows_per_unit
        kept.append(choose_rows(shape.unit, _list_own(shape), most=most, first=blocks))
    return kept


def _list_own(shape: Layout) -> tuple[Hashed, ...]:
    """What tells the rows of one unit apart: not its own columns, which are read off the unit."""
    own = (shape.table.unit or ()) if shape.table.owners is Owners.ONE else ()
    return shape.list_hashed(without=own)


def _test_bound(table: Table, blocks: tuple[str, ...]) -> Node:
    """Whether a unit has too many rows, or rows in more than one block."""
    everything = exp.Count(this=exp.Star(), big_int=True)
    checks: list[Node] = []
    if table.max_rows_per_unit is not None:
        most = exp.Literal.number(str(table.max_rows_per_unit))
        checks.append(exp.GT(this=everything, expression=most))
    for block in blocks:
        checks += _differ(block)
    return disjoin(checks)


def _join_on_unit(name: str, kind: str, unit: tuple[str, ...]) -> exp.Join:
    return exp.Join(
        this=quote_table(name),
        kind=kind,
        using=[exp.to_identifier(u, quoted=True) for u in unit],
    )
