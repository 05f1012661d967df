"""The rows of a table as they were declared: bounded and owned, sealed, for one paid computation.

Whose a row is comes first, then its columns.  Values are those that questions see: clipped to
their bounds, and NULL where they are not of their kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.engine.duckdb.render import Renderer
from discreet.engine.duckdb.result import Columns
from discreet.engine.truth import Opened
from discreet.question.expressions import ColumnRef
from discreet.question.functions.nodes import (
    ENGINE,
    add_alias,
    add_definitions,
    quote_column,
    quote_table,
    select,
)
from discreet.question.ownership import Multiplicity
from discreet.question.relation import Source
from discreet.question.schema import Table


@dataclass(frozen=True, slots=True)
class RowColumns:
    """How the rows are read: so many columns of the unit, then those of the table."""

    units: int
    count: int

    def read(self, columns: Columns) -> Opened:
        """Every column as Python's values; None where it is NULL."""
        names = [f"_u{i}" for i in range(self.units)] + [f"_v{i}" for i in range(self.count)]
        found = []
        for name in names:
            column = columns[name]
            values = np.asarray(np.ma.getdata(column)).astype(object)
            values[np.ma.getmaskarray(column)] = None
            found.append(values)
        return Opened((), tuple(found))


@dataclass(frozen=True, slots=True)
class CompiledRows:
    """One statement for the engine that gives the rows of a table."""

    text: str
    columns: RowColumns


def compile_rows(
    table: Table, find: Callable[[Table], Table], multiplicity: Multiplicity
) -> CompiledRows:
    """The statement that gives the rows of a private table, whose units are named."""
    names = tuple(column.name for column in table.columns)
    renderer = Renderer(find, multiplicity)
    source = renderer.relation(Source(table, tuple((name, name) for name in names)))
    picked = [add_alias(quote_column(u), f"_u{i}") for i, u in enumerate(source.unit)]
    picked += [add_alias(source.value(ColumnRef(n)), f"_v{i}") for i, n in enumerate(names)]
    query = add_definitions(select(picked, quote_table(source.name)), renderer.definitions)
    return CompiledRows(query.sql(ENGINE, copy=False), RowColumns(len(source.unit), len(names)))


__all__ = ["CompiledRows", "compile_rows"]
