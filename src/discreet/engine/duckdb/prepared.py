"""Private views: what depends on the schema alone, done once and kept.

A prepared table holds the rows that bounding keeps, clustered by unit and group, with
declared texts as codes and bounded numbers also as whole steps of their grid.
The same rows are kept as without it, so a question has the same exact answer;
it is only found sooner.  A prepared table belongs to one version of its source, is written once
under a name of its own, and never changed: what is computed from it is certain to be the same.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import duckdb
from sqlglot import exp

from discreet.engine.duckdb.declared import (
    add_steps,
    bound_rows,
    count_crowd_rows,
    source_name,
)
from discreet.engine.duckdb.render import Field, Layout, lay_out, name_rows
from discreet.engine.duckdb.sources import Version
from discreet.exact.records import dataclass
from discreet.noise.entropy import random_bytes
from discreet.question.domain import Kind
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

_LAYOUT = "7"  # to be changed whenever prepared tables look different
_WRITTEN = "spark 2"  # to be changed whenever the files that Spark writes look different
_BUCKETS = 8
_SHORT = 2**31
ROWS = "rows"
CROWD = "crowd"


def list_statements(table: Table, catalog: str) -> list[str]:
    """The statements that prepare ``table`` in an attached database, in their order.

    Rows of two people are bounded a step at a time: so the engine holds each step once, and what
    their test counts is counted from the same steps.
    """
    shape = lay_out(table)
    if table.owners is not Owners.ANY:
        return [_create(_put_in_order(shape, select_all(quote_table(name_rows(table)))), catalog)]
    source = source_name(table.name)
    bounded = bound_rows(shape, source, "bounded")
    counted, crowd = count_crowd_rows(shape, source, "bounded")
    steps = {name: (step, once) for name, step, once in (*bounded, *counted)}
    return [
        *(_create(step, name=name, once=once) for name, (step, once) in steps.items()),
        _create(_put_in_order(shape, add_steps(table, bounded[-1][0])), catalog),
        _create(crowd, catalog, CROWD),
    ]


def _create(
    query: exp.Query, catalog: str | None = None, name: str = ROWS, *, once: bool = True
) -> str:
    """A query under a name: in a catalog to stay, or for this connection alone."""
    target = quote_table(name) if catalog is None else quote_table(catalog, "main", name)
    kind = "TABLE" if once else "VIEW"
    brief = exp.Properties(expressions=[exp.TemporaryProperty()]) if catalog is None else None
    made = exp.Create(this=target, kind=kind, expression=query, properties=brief)
    return made.sql(ENGINE, pretty=True)


def _put_in_order(shape: Layout, query: exp.Select) -> exp.Select:
    clusters = _clusters(shape)
    if clusters:
        query.set("order", order_by(clusters))
    return query


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


FILE, FOLDER = ".duckdb", ".parquet"
"""How what is prepared is called at its end: a file of DuckDB's, or a folder that Spark wrote."""


def name_prepared(table: Table, version: Version, kind: str) -> str:
    """A name for the table, then one for what it was made of: what its name begins with."""
    by = duckdb.__version__ if kind == FILE else _WRITTEN
    return f"{stem(table)}-{_name_version(by, table, version.digest)}"


@lru_cache(maxsize=64)
def _name_version(by: str, table: Table, digest: str) -> str:
    """Looked for with every question, and long to write out where many values are listed."""
    made_of = repr((_LAYOUT, by, table, digest))
    return hashlib.sha256(made_of.encode()).hexdigest()[:32]


def name_new(table: Table, version: Version, kind: str) -> str:
    """A name that nothing prepared has had, or will have: what is under it is written once."""
    return f"{name_prepared(table, version, kind)}-{random_bytes(16).hex()}{kind}"


def find_prepared(
    folder: Path, table: Table, version: Version, kinds: Sequence[str] = (FILE, FOLDER)
) -> Path | None:
    """Where a version of a table is kept prepared, whoever prepared it."""
    beginnings = {kind: name_prepared(table, version, kind) for kind in kinds}
    found = (
        path
        for path in folder.glob(f"{stem(table)}-*")
        if path.name.startswith(beginnings.get(path.suffix, " "))
    )
    # One that says which it is before one that does not; then all processes take the same.
    return min(found, key=lambda path: (read_token(path) is None, path.name), default=None)


def read_token(path: Path) -> str | None:
    """Which one it is, of all that were ever prepared; those of earlier versions do not say."""
    parts = path.stem.split("-")
    return parts[3] if len(parts) == 4 else None


def list_files(kept: str) -> list[str]:
    """The files of a prepared table: itself, or those of its folder."""
    path = Path(kept)
    return sorted(map(str, path.glob("*.parquet"))) if path.is_dir() else [kept]


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of the files: its name there, and which column of the prepared table it is.

    ``short``: whole numbers whose bounds fit 32 bits are written in as many, which is half to read.
    """

    name: str
    identifier: str
    short: bool = False


def list_stored(table: Table) -> tuple[Stored, ...]:
    """The columns of a prepared table as they stand in its files."""
    shape = lay_out(table)
    units = [Stored(f"u{i}", unit) for i, unit in enumerate(shape.unit)]
    fields = [
        Stored(f"c{i}", f.identifier, _is_short(f)) for i, f in enumerate(shape.fields.values())
    ]
    steps = [
        Stored(f"s{i}", f.steps.identifier, f.steps.span < _SHORT)
        for i, f in enumerate(shape.fields.values())
        if f.steps is not None
    ]
    return (*units, *fields, *steps)


def _is_short(held: Field) -> bool:
    """Whether every value is a whole number of 32 bits: a row's is within its declared bounds."""
    low, high = held.domain.low, held.domain.high
    if held.domain.kind is not Kind.INTEGER or low is None or high is None:
        return False
    return int(low) >= -_SHORT and int(high) < _SHORT


def stem(table: Table) -> str:
    """What the files of one table have in common."""
    return f"prepared-{hashlib.sha256(table.name.encode()).hexdigest()[:16]}"


def discard_others(folder: Path, table: Table, kept: str) -> None:
    """Delete whatever else was prepared of the table, of this version of it too.

    Before what is kept is opened: docs/proofs/known.md, Lemma 14, rests on it.
    """
    for path in folder.glob(f"{stem(table)}-*"):
        if not path.name.startswith(kept):
            discard(path)


def discard(path: Path) -> None:
    """Delete what is prepared, or half prepared."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def settle(folder: Path) -> None:
    """What Spark wrote to ``rows`` of a folder, in the folder itself, and its Parquet alone.

    Spark would have made the folder for everybody to read; this one is its owner's.
    """
    for path in (folder / "rows").glob("part-*.parquet"):
        path.replace(folder / path.name)
    shutil.rmtree(folder / "rows")
