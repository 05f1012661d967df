"""A plan as Spark is told it: one statement, on tables that are prepared and on those that are not.

Where the rows of a private table are is known when a statement is run.  What is prepared is read by
the names that its columns are stored under, in as few steps and columns as can be: Spark analyses
every step, column by column, and sends every column of every row of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from discreet.engine.duckdb.measure import Draft
from discreet.engine.duckdb.prepared import Stored, list_stored
from discreet.engine.duckdb.render import name_rows
from discreet.engine.duckdb.result import CELL, PART, ResultColumns
from discreet.engine.inlining import inline_renamings
from discreet.engine.spark.printer import SparkPrinter, quote_name
from discreet.engine.typed import Type, Typed
from discreet.exact.records import dataclass
from discreet.price.plan import Plan
from discreet.question.domain import Kind
from discreet.question.functions.nodes import (
    Node,
    add_alias,
    add_definitions,
    cast,
    name_definitions,
    quote_column,
    quote_table,
    select,
)
from discreet.question.schema import Table

Steps = tuple[tuple[str, str], ...]
"""Steps of a statement: the name and the text of each."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The statement on tables that are prepared, each of which a view shows (:func:`name_view`).

    Their columns are named as they are stored: every step that only names them anew is one that
    Spark would have to analyse.
    """

    steps: Steps
    text: str  # the query after the steps
    same: Mapping[str, int]  # columns of the result that are not sent: the same in every row
    empty: Steps  # what stands for the views while Spark is asked whether it takes the statement

    def complete(self, *, in_one_task: bool = False) -> str:
        """The statement as it is run; one task may add up what the tasks that read have found."""
        text = self.text
        if in_one_task:
            text = f"SELECT /*+ COALESCE(1) */ {text.removeprefix('SELECT ')}"
        return write_steps(self.steps, text)

    def without_rows(self) -> str:
        """The same on tables that are there and hold nothing."""
        return write_steps((*self.empty, *self.steps), self.text)


@dataclass(frozen=True, slots=True)
class Compiled:
    """One statement for Spark, and how to read its result.

    ``text`` lacks the steps that read the private tables: where their rows are, prepared or not,
    is known when it is run.
    """

    plan: Plan
    text: str
    public: Steps
    rows: Mapping[str, Steps]  # of each private table that is not prepared: what makes its rows
    tables: tuple[Table, ...]  # private ones, whose rows it reads
    types: Mapping[str, Type]  # of the columns of the result
    columns: ResultColumns
    prepared: Prepared
    groups: int | None = None  # how many rows at most, where it adds up rows of known groups

    def explain(self) -> str:
        """The statement as it is run on tables that are not prepared, but for their sources."""
        return self.complete([step for name in self.rows for step in self.rows[name]])

    def complete(self, steps: Iterable[tuple[str, str]]) -> str:
        """The statement after the steps that give the rows of its private tables."""
        main = self.text.removeprefix("WITH ")
        joint = "," if main != self.text else ""
        return write_steps((*self.public, *steps), main, joint)


def write_steps(steps: Iterable[tuple[str, str]], text: str, joint: str = "") -> str:
    """A query after its steps."""
    before = ",\n".join(f"{quote_name(name)} AS ({step})" for name, step in steps)
    return f"WITH {before}{joint}\n{text}" if before else text


def name_view(table: Table) -> str:
    """The view of our session that shows what is prepared of a table."""
    return f"prepared {table.name}"


def print_prepared(
    printer: SparkPrinter, query: exp.Query, public: Steps, tables: Iterable[Table], text: str
) -> Prepared:
    """A query, which is changed, on what is prepared; ``text`` is the same on what is not."""
    definitions, empty = [], []
    for table in tables:
        rows, view = name_rows(table), name_view(table)
        columns = printer.steps[rows]
        stored = list_stored(table)
        used = [s for s in stored if quote_name(s.identifier) in text] or list(stored[:1])
        held = {s.name: Typed("", Type.SHORT) if s.short else columns[s.identifier] for s in used}
        printer.steps[view] = held
        read = [add_alias(_read_stored(s), s.identifier) for s in used]
        definitions.append((rows, select(read, quote_table(view)), False))
        nothing = (f"CAST(NULL AS {printer.spell(c.type)}) AS {n}" for n, c in held.items())
        empty.append((view, f"SELECT {', '.join(nothing)} WHERE FALSE"))
    query = inline_renamings(add_definitions(query, [*definitions, *name_definitions(query)]))
    steps = printer.print_steps(name_definitions(query))
    query.set("with_", None)
    same = _take_same(query)
    return Prepared((*public, *steps), printer.statement(query), same, tuple(empty))


def _take_same(query: exp.Query) -> dict[str, int]:
    """Take out of a query what tells the parts of a result apart, where there is one part."""
    if not isinstance(query, exp.Select) or query.args.get("order"):
        return {}
    told = [one for one in query.expressions if one.alias in (PART, CELL)]
    same = {one.alias: int(one.this.this.name) for one in told if _is_constant(one.this)}
    query.set("expressions", [one for one in query.expressions if one.alias not in same])
    return same


def _is_constant(node: Node) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)


def _read_stored(stored: Stored) -> Node:
    """A column of a prepared table as the statement knows it."""
    column = quote_column(stored.name)
    return cast(column, Kind.INTEGER) if stored.short else column


def count_groups(draft: Draft) -> int | None:
    """How many groups a statement adds up that does nothing else; None if they are not known."""
    groups = draft.columns.groups
    alone = isinstance(draft.query, exp.Select) and not draft.query.args.get("order")
    return len(groups) if alone and draft.plan.keys and groups is not None else None


__all__ = ["Compiled", "Prepared", "Steps", "count_groups", "name_view", "print_prepared"]
