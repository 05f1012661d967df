"""The engine on a made-up world, from which one person at a time can be hidden.

Opening an engine takes longer than asking it, so neighbours share one: the rows of
every table are kept with the number of the person they belong to, and the view
that the engine reads leaves one person out.  Everything else is the engine's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from discreet.audit.synthetic import World, entity_of
from discreet.engine.duckdb.database import name_given
from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.engine.duckdb.measure import Compiled
from discreet.engine.duckdb.sources import quote_name
from discreet.engine.truth import Truth

_PERSON = "person of the audit"


class HidingEngine(DuckDBEngine):
    """Runs plans on a made-up world, with everybody or without one person."""

    def __init__(self, made: World) -> None:
        super().__init__(made.tables(), made.schema, threads=1, memory_limit="1GB")
        self._made = made
        connection = self._current().connection
        for name in made.rows:
            connection.register("everything", _number_rows(made, name))
            connection.execute(f"CREATE TABLE {quote_name(_all(name))} AS FROM everything")
            connection.unregister("everything")
        self.hide(None)

    def hide(self, person: tuple[str, int] | None) -> None:
        """Leave out all rows of one person, in every table of their entity."""
        connection = self._current().connection
        for name in self._made.rows:
            table = self.schema.tables[name]
            columns = ", ".join(quote_name(column.name) for column in table.columns)
            hidden = person is not None and person[0] == entity_of(table)
            where = f" WHERE {quote_name(_PERSON)} <> {int(person[1])}" if hidden and person else ""
            connection.execute(
                f"CREATE OR REPLACE VIEW {quote_name(name_given(name))} AS "  # noqa: S608 (our names)
                f"SELECT {columns} FROM {quote_name(_all(name))}{where}"
            )

    def run(self, compiled: Compiled) -> Truth:
        """The exact integers of a plan, on the rows that are shown."""
        return Truth(compiled.columns.read(self._current().run(compiled.text)))

    def __enter__(self) -> HidingEngine:
        return self


def _all(name: str) -> str:
    return f"all of {name}"


def _number_rows(made: World, name: str) -> pa.Table:
    tables: Mapping[str, Any] = made.tables()
    people = pa.array([person for person, _ in made.rows[name]], pa.int64())
    return tables[name].append_column(_PERSON, people)


__all__ = ["HidingEngine"]
