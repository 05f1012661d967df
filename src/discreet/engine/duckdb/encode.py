"""Rows as codes: for every row of a relation, in which level of each column it lies.

What a publication counts.  The codes never leave the engine but sealed, and each is
a function of its own row and of the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from discreet.engine.duckdb.grid import number_line
from discreet.engine.duckdb.render import Rendered, Renderer
from discreet.engine.duckdb.result import Columns
from discreet.engine.truth import Opened
from discreet.question.domain import Kind
from discreet.question.expressions import ColumnRef
from discreet.question.functions import nodes
from discreet.question.functions.nodes import (
    ENGINE,
    Node,
    add_alias,
    add_definitions,
    quote_column,
    quote_table,
    select,
)
from discreet.question.levels import Levels
from discreet.question.ownership import Multiplicity, has_two_owners, reads_graph
from discreet.question.relation import Relation
from discreet.question.schema import Table


@dataclass(frozen=True, slots=True)
class CodeColumns:
    """How the result of a statement of codes is read: one whole number a row and column.

    Then, where that was asked for, whose the row is, in texts: so many ``owners``.
    """

    count: int
    owners: int = 0

    def read(self, columns: Columns) -> Opened:
        """The codes, column by column."""
        found = [np.ma.filled(columns[f"_c{place}"], -1) for place in range(self.count)]
        owners = [np.asarray(columns[f"_u{place}"], dtype=object) for place in range(self.owners)]
        return Opened((), (*(np.asarray(one, dtype=np.int32) for one in found), *owners))


@dataclass(frozen=True, slots=True)
class CompiledCodes:
    """One statement for the engine that codes the rows of a relation."""

    text: str
    columns: CodeColumns


def compile_codes(
    relation: Relation,
    levels: Sequence[Levels],
    find: Callable[[Table], Table],
    multiplicity: Multiplicity,
    *,
    owned: bool = False,
) -> CompiledCodes:
    """The statement that says in which level of each column every row lies; and whose it is."""
    if has_two_owners(relation) or reads_graph(relation):
        raise ValueError("no release is made of rows with two owners")
    renderer = Renderer(find, multiplicity)
    source = renderer.relation(relation)
    picked = [
        add_alias(nodes.cast(_code(source, one), Kind.INTEGER), f"_c{place}")
        for place, one in enumerate(levels)
    ]
    owners = source.unit if owned else ()
    picked += [
        add_alias(nodes.cast(quote_column(one), Kind.TEXT), f"_u{place}")
        for place, one in enumerate(owners)
    ]
    query = add_definitions(select(picked, quote_table(source.name)), renderer.definitions)
    return CompiledCodes(query.sql(ENGINE, copy=False), CodeColumns(len(levels), len(owners)))


def _code(source: Rendered, levels: Levels) -> Node:
    """The level of a value; whatever has none, NULL above all, has the last."""
    field = source.fields[levels.column]
    value = source.value(ColumnRef(levels.column))
    last = nodes.integer(levels.size - 1)
    if levels.values is not None:
        if field.codes is not None and field.codes == levels.values:
            code: Node = nodes.call("ENUM_CODE", field.quote())
        else:
            code = exp.Case(
                this=value,
                ifs=[
                    exp.If(this=_constant(one, levels.kind), true=nodes.integer(place))
                    for place, one in enumerate(levels.values)
                ],
            )
    elif levels.whole:
        code = _whole_code(number_line(value, levels.kind), levels)
    else:
        width = (levels.high - levels.low) / levels.count
        above = nodes.infix(exp.Sub, value, nodes.literal(levels.low))
        code = nodes.call("FLOOR", nodes.infix(exp.Div, above, nodes.literal(width)))
    if levels.values is None:  # NULL is passed over by LEAST and GREATEST, so it is asked for first
        ends = nodes.integer(0), nodes.integer(levels.count - 1)
        inside = nodes.call("LEAST", nodes.call("GREATEST", code, ends[0]), ends[1])
        code = nodes.case((nodes.present(value.copy()), inside))
    return nodes.call("COALESCE", code, last)


def _whole_code(number: Node, levels: Levels) -> Node:
    """(x - low) * count // span, in 128 bits: both are below 2**64."""
    span = int(levels.high - levels.low) + 1
    above = nodes.infix(exp.Sub, nodes.wide(number), nodes.wide(nodes.whole(int(levels.low))))
    if levels.count == span:
        return above
    many = nodes.infix(exp.Mul, above, nodes.wide(nodes.whole(levels.count)))
    return nodes.infix(exp.IntDiv, many, nodes.wide(nodes.whole(span)))


def _constant(value: object, kind: Kind) -> Node:
    node = nodes.literal(value)  # type: ignore[arg-type]
    return nodes.cast(node, kind) if kind is Kind.DECIMAL else node


__all__ = ["CodeColumns", "CompiledCodes", "compile_codes"]
