"""Spark prepares: each unit's rows bounded by the portable hash, written once, divided by unit.

One scan, one exchange of the rows, one window in which every unit's rows are ranked; then Parquet
files of which each holds all rows of its units.  The same rows are kept as elsewhere, with the same
steps beside them, so whoever reads these files has the same integers.  A column of the files is
named for its place, not for what it holds: declared names may be any text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlglot import exp

from discreet.engine.duckdb.declared import (
    add_steps,
    choose_kept,
    list_types,
    say_first,
    select_owned_rows,
    source_name,
)
from discreet.engine.duckdb.prepared import list_stored
from discreet.engine.duckdb.render import Layout, lay_out
from discreet.engine.duckdb.sources import DataSource
from discreet.engine.protocol import Progress
from discreet.engine.spark.printer import SparkPrinter, quote_name
from discreet.engine.spark.reading import (
    describe_files,
    list_files,
    read_view,
    refuse_source,
    select_typed,
)
from discreet.engine.spark.session import watch
from discreet.engine.typed import OF_KIND, Typed
from discreet.exact.records import dataclass
from discreet.noise.entropy import random_bytes
from discreet.question.functions.nodes import (
    Definition,
    add_alias,
    add_definitions,
    quote_column,
    quote_table,
    select,
)
from discreet.question.schema import Owners, Table

_BUCKETS = "_buckets-"  # which Spark does not read, because of the first character


def count_buckets(folder: Path) -> int:
    """How many parts the units of a prepared folder are divided among; 0 if they are not."""
    return max((int(p.name.removeprefix(_BUCKETS)) for p in folder.glob(f"{_BUCKETS}*")), default=0)


@dataclass(frozen=True, slots=True)
class Preparing:
    """A table that is to be prepared: what Spark is asked, and where it is written."""

    session: Any
    table: Table
    statement: str
    units: tuple[str, ...]

    @classmethod
    def of(cls, session: Any, table: Table, source: DataSource) -> Preparing:
        """Of the files of a source; refused before a row is read."""
        if table.owners is Owners.ANY:
            raise refuse_source(
                table.name, "its rows have two owners", fix="prepare this table without Spark."
            )
        files = list_files(table, source)
        given = f"given {table.name}"
        described = describe_files(table, files)
        read = select_typed(table, described, given, version=str(session.version))
        statement = print_rows(table, read)
        read_view(session, files, given)
        units = tuple(c.name for c in list_stored(table) if c.name.startswith("u"))
        return cls(session, table, statement, () if table.by_row else units)

    @property
    def buckets(self) -> int:
        """How many files the units are divided among."""
        return int(self.session.conf.get("spark.sql.shuffle.partitions"))

    def explain(self) -> str:
        """What Spark will do, in its own words; names no value of a row."""
        plan = self.session.sql(self.statement)._jdf.queryExecution().executedPlan()
        return str(plan.toString())

    def write(self, folder: Path, progress: Progress | None) -> None:
        """Write the files into a folder that is not there yet."""
        rows, name = self.session.sql(self.statement), f"discreet_{random_bytes(8).hex()}"

        def run() -> None:
            writer = rows.write.format("parquet").option("path", f"file://{folder.resolve()}")
            if not self.units:
                writer.save()
                return
            writer.bucketBy(self.buckets, *self.units).saveAsTable(name)
            self.session.sql(f"DROP TABLE {quote_name(name)}")  # its entry; the files stay
            (folder.parent / f"{_BUCKETS}{self.buckets}").touch()

        watch(self.session, run, self.table.name, progress)


def print_rows(table: Table, read: str) -> str:
    """The statement that gives the prepared rows; ``read`` gives those of the source."""
    printer = SparkPrinter(list_types(table), numbers_rows=table.by_row)
    source = source_name(table.name)
    printer.steps[source] = {c.name: Typed("", OF_KIND[c.kind]) for c in table.columns}
    bounded = _bound_in_one_window(lay_out(table))
    definitions = [*bounded, ("prepared", add_steps(table, bounded[-1][0]), False)]
    picked = [add_alias(quote_column(s.identifier), s.name) for s in list_stored(table)]
    query = add_definitions(select(picked, quote_table("prepared")), definitions)
    kept = ", ".join(
        f"CAST({s.name} AS INT) AS {s.name}" if s.short else s.name for s in list_stored(table)
    )
    return f"SELECT {kept} FROM ({printer.statement(query, [(source, read)])})"  # noqa: S608


def _bound_in_one_window(shape: Layout) -> list[Definition]:
    """The owned rows, of each unit as many as it may keep: all are ranked, in one pass.

    DuckDB looks for the units with too much first, and ranks only theirs; here that would be a
    second exchange of everything.  Whoever has little keeps it by either way.
    """
    rows = select_owned_rows(shape, source_name(shape.table.name))
    content = [quote_column(c) for c in shape.content]
    definitions: list[Definition] = [("owned", rows, False)]
    kept = choose_kept(shape)
    if kept is not None:
        ranked = select([c.copy() for c in content], quote_table("owned"))
        ranked.set("qualify", exp.Qualify(this=kept))
        definitions.append(("kept", ranked, False))
    said = say_first(shape, definitions[-1][0])
    return definitions if said is None else [*definitions, ("agreed", said, False)]


__all__ = ["Preparing", "count_buckets", "print_rows"]
