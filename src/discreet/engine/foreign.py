"""What every engine of another program shares: all that is public is held by a DuckDB of our own.

No private row is ever in it.  It drafts the plan, which the other engine's printer then writes;
what would take rows out of that engine is refused.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self

import numpy as np

from discreet.engine.duckdb.declared import source_name
from discreet.engine.duckdb.engine import REMEMBERED, DuckDBEngine
from discreet.engine.duckdb.measure import Draft
from discreet.engine.duckdb.result import Columns
from discreet.engine.printing import Printer
from discreet.engine.protocol import C, Progress
from discreet.engine.truth import Truth
from discreet.engine.typed import OF_KIND, Type, Typed, refuse
from discreet.price.plan import Distance, Lumpings, Plan
from discreet.question.catalogue import Catalogue
from discreet.question.schema import Schema, Table

if TYPE_CHECKING:
    from discreet.question.levels import Levels
    from discreet.question.relation import Relation

MOST_PUBLIC = 10_000
"""How many rows of a public table are written into a statement."""


class ForeignEngine(ABC, Generic[C]):
    """Compiles plans for another program, and keeps what was compiled; ``public`` holds the rest.

    An engine's own derives from it and says how a draft is printed and how a statement is run.
    """

    name: ClassVar[str]

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._lock = threading.RLock()
        self._compiled: OrderedDict[Hashable, C] = OrderedDict()

    def hold_public(self, public: DuckDBEngine) -> None:
        """Take the engine that holds what is public, and knows the versions of all sources."""
        self._public = public
        self.schema: Schema = public.schema

    # --- questions --------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Catalogue:
        """What is public of the tables now; nobody else is asked."""
        return self._public.catalogue

    def compile(
        self,
        plan: Plan,
        lumpings: Lumpings = (),
        *,
        bound: bool = False,  # noqa: ARG002 (none is)
    ) -> C:
        """The plan's one statement, or a refusal of what the engine has no words for."""
        key = (plan, repr(plan), lumpings, self.catalogue.version)
        with self._lock:
            if key in self._compiled:
                self._compiled.move_to_end(key)
                return self._compiled[key]
        if any(isinstance(measurement, Distance) for measurement in plan.measurements):
            refuse(self.name, "distances that are found among all rows")
        compiled = self.print(self._public.draft(plan, lumpings))
        with self._lock:
            self._compiled[key] = compiled
            if len(self._compiled) > REMEMBERED:
                self._compiled.popitem(last=False)
        return compiled

    @abstractmethod
    def print(self, draft: Draft) -> C:
        """A draft in the words of this engine, or a refusal."""

    @abstractmethod
    def run(self, compiled: C) -> Truth:
        """The exact integers of what was compiled, sealed."""

    def run_whole(self, compiled: C) -> Truth:
        """The same with every cell of its histograms; for a choice that looks far off."""
        return self.run(self.compile(compiled.plan))

    def _introduce(self, printer: Printer, table: Table) -> str:
        """Tell a printer what the source of a table looks like; returns the name of its step."""
        name = source_name(table.name)
        printer.steps[name] = {c.name: Typed("", OF_KIND[c.kind]) for c in table.columns}
        return name

    def _write_public(self, printer: Printer, table: Table) -> str:
        """The rows of a public table as they are now."""
        columns = self.public_rows(table.name)
        rows = list(zip(*(columns[c.name] for c in table.columns), strict=True))
        if len(rows) > MOST_PUBLIC:
            refuse(self.name, f"joins with public tables of more than {MOST_PUBLIC} rows")
        return printer.write_rows(table, rows)

    def _private(self) -> list[Table]:
        return [table for table in self.schema.tables.values() if not table.public]

    # --- what is computed elsewhere ---------------------------------------------------------------

    def count_crowd(self, name: str) -> Truth:
        """Refused: rows of two people are bounded by steps that are not printed."""
        refuse(self.name, f"questions of rows with two owners, as those of '{name}'")

    def compile_codes(
        self,
        relation: Relation,  # noqa: ARG002
        levels: Sequence[Levels],  # noqa: ARG002
        *,
        owned: bool = False,  # noqa: ARG002
    ) -> NoReturn:
        """Refused: a release takes every row to one place, and rows stay where they are."""
        refuse(self.name, "releases, which take every row")

    def run_codes(self, compiled: Any) -> NoReturn:  # noqa: ARG002
        """Refused."""
        refuse(self.name, "releases, which take every row")

    def compile_rows(self, table: Table) -> NoReturn:  # noqa: ARG002
        """Refused: rows stay where they are."""
        refuse(self.name, "computations that take every row")

    def run_rows(self, compiled: Any) -> NoReturn:  # noqa: ARG002
        """Refused."""
        refuse(self.name, "computations that take every row")

    # --- versions ---------------------------------------------------------------------------------

    def data_version(self) -> str:
        """A name for what the tables hold now: the one that DuckDB has for them."""
        return self._public.data_version()

    def former_version(self) -> str | None:
        """What ledgers called the same rows before."""
        return self._public.former_version()

    def find_basis(self, compiled: C) -> None:
        """Nothing is certain: the rows are read where they are, and others may write there."""

    def content_hash(self, table: str) -> str:
        """A SHA-256 of all that a source holds."""
        return self._public.content_hash(table)

    def public_rows(self, table: str) -> Mapping[str, Sequence[Any]]:
        """What a public table holds now."""
        return self._public.public_rows(table)

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the public tables."""
        self._public.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_HELD = {
    Type.WHOLE: np.int64,
    Type.SHORT: np.int64,
    Type.DOUBLE: np.float64,
    Type.BOOLEAN: np.bool_,
}


def read_columns(
    names: Sequence[str], rows: Sequence[Sequence[Any]], types: Mapping[str, Type]
) -> Columns:
    """The rows of a result, column by column, as DuckDB gives them."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {n: _read_column(values, types[n]) for n, values in zip(names, columns, strict=True)}


def _read_column(values: Sequence[Any], type_: Type) -> Any:
    if type_ not in _HELD:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    missing = [value is None for value in values]
    held: Any = np.array([0 if value is None else value for value in values], dtype=_HELD[type_])
    return np.ma.array(held, mask=missing) if any(missing) else held


__all__ = ["MOST_PUBLIC", "ForeignEngine", "read_columns"]
