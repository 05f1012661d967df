"""Private views: what depends on the schema alone, done once and kept.

A prepared table holds the rows that bounding keeps, clustered by unit and group, with
declared texts as codes and bounded numbers also as whole steps of their grid.
The same rows are kept as without it, so a question has the same exact answer;
it is only found sooner.  A prepared table belongs to one version of its source.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import duckdb
from sqlglot import exp

from discreet.engine.duckdb.render import Layout, lay_out, name_rows
from discreet.engine.duckdb.sources import Version
from discreet.question.functions import nodes
from discreet.question.functions.nodes import (
    ENGINE,
    Node,
    order_by,
    quote_column,
    quote_table,
    select_all,
)
from discreet.question.schema import Owners, Table

_LAYOUT = "6"  # to be changed whenever prepared tables look different
_BUCKETS = 8
ROWS = "rows"


def creation(table: Table, catalog: str) -> str:
    """The statement that prepares ``table`` in an attached database."""
    query = select_all(quote_table(name_rows(table)))
    clusters = _clusters(lay_out(table))
    if clusters:
        query.set("order", order_by(clusters))
    target = quote_table(catalog, "main", ROWS)
    return exp.Create(this=target, kind="TABLE", expression=query).sql(ENGINE, pretty=True)


def _clusters(shape: Layout) -> list[Node]:
    """A unit's rows lie near each other; among near ones, those of a group lie side by side.

    Adding up runs of the same group takes half the time of jumping between groups.  Rows of two
    people lie by group alone: nothing is ever measured by person there.
    """
    bucket = nodes.infix(
        exp.Mod,
        nodes.call("HASH", *map(quote_column, shape.unit)),
        exp.Literal.number(str(_BUCKETS)),
    )
    keys: list[Node] = [
        quote_column(f.identifier)
        for f in shape.fields.values()
        if f.domain.list_values() is not None
    ]
    return keys if shape.table.owners is Owners.ANY else [bucket, *keys]


def file_name(table: Table, version: Version) -> str:
    """Where a table is kept: a name for the table, then one for what it was made of."""
    made_of = repr((_LAYOUT, duckdb.__version__, table, version.digest))
    return f"{stem(table)}-{hashlib.sha256(made_of.encode()).hexdigest()[:32]}.duckdb"


def stem(table: Table) -> str:
    """What the files of one table have in common."""
    return f"prepared-{hashlib.sha256(table.name.encode()).hexdigest()[:16]}"


def discard_others(folder: Path, table: Table, kept: str) -> None:
    """Delete what was prepared of earlier versions of the table."""
    for path in folder.glob(f"{stem(table)}-*"):
        if not path.name.startswith(kept):
            path.unlink(missing_ok=True)
