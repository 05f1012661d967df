"""A release as a public table: asked in SQL for free, each number with the margin its kind allows.

The SQL runs in a database that holds the release and nothing else.  Which margin an answer has is
read off the question: a count of rows by columns and conditions whose table was measured has the
law of its noise; others have what was bought beside the rows, or none, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from discreet.errors import QuestionRefusal
from discreet.exact.numbers import Exact, proportion
from discreet.publication.estimates import Estimates
from discreet.publication.folder import Made
from discreet.publication.margins import Margin, Promise, list_margins
from discreet.publication.reading import Reading
from discreet.publication.told import Told
from discreet.publication.typed import is_wide, key_array, rows_table
from discreet.question.levels import Levels

_CELL = "_cell"


class Synopsis:
    """A release that can be asked: ``made``, and read from its files or from a curator."""

    def __init__(self, made: Made) -> None:
        self.made = made

    def __repr__(self) -> str:
        return f"<{self.made.declared.describe()}>"

    @property
    def name(self) -> str:
        """Under which name it is asked."""
        return self.made.declared.name

    @cached_property
    def rows(self) -> Any:
        """The synthetic rows as an Arrow table; None for a release of tables."""
        made = self.made
        if made.product.placed is None:
            return None
        return rows_table(made.levels, made.product.placed)

    def ask(self, sql: str, *, confidence: Exact = "0.95") -> Told:
        """Answer ``sql``, a SELECT about the release, with margins at ``confidence``; free."""
        beta = 1 - proportion(confidence, name="confidence")
        reading = Reading.of(sql, self.name, [one.name for one in self.made.levels])
        if self.rows is None:
            return self._ask_tables(reading, confidence)
        names, rows = run_sql(reading.sql, {self.name: self.rows}, self.made.levels)
        margins: dict[str, tuple[Margin, ...]] = {}
        if reading.counts:
            found = self._margins_of_rows(reading, beta, rows)
            margins = dict.fromkeys(reading.counts, found)
        return self._tell(reading, names, rows, margins, confidence)

    # --- margins of synthetic rows ---------------------------------------------------------------

    def _margins_of_rows(
        self, reading: Reading, beta: Exact, rows: Sequence[tuple[Any, ...]]
    ) -> tuple[Margin, ...]:
        """What was bought for such counts; for one column also the law of its own histogram."""
        places = self._places(reading.columns)
        product = self.made.product
        if any(is_wide(self.made.levels[place]) for place in places):
            # Conditions may cut a cell, and of what is inside a cell nothing was measured.
            return (list_margins(places, beta=beta)[0],) * len(rows)
        general = list_margins(
            places, certificate=product.certificate, typical=product.typical, beta=beta
        )[0]
        if len(places) > 1 or not reading.linear:
            return (general,) * len(rows)
        table = product.tables[places[0] if places else 0]
        laws = {
            key: Margin(Promise.EXACT, table.margin(weights, beta))
            for key, weights in self._cells_by_group(reading, table)
        }
        counted = [name in reading.counts for name in reading.names]
        keys = [
            tuple(
                _COUNT if is_count else value for is_count, value in zip(counted, row, strict=True)
            )
            for row in rows
        ]
        return tuple(laws.get(key, general) for key in keys)

    # --- releases of tables ----------------------------------------------------------------------

    def _ask_tables(self, reading: Reading, confidence: Exact) -> Told:
        beta = 1 - proportion(confidence, name="confidence")
        places = self._places(reading.columns)
        if not reading.linear:
            raise QuestionRefusal(
                "Q47",
                f"{self.name!r} is a release of counts, and this question asks for more.",
                why="it holds how many rows there are of each kind, and no rows.",
                fix="ask for COUNT(*) alone, by columns and under conditions.",
            )
        table = self._find_covering(places)
        grouped = self._cells_by_group(reading, table)
        margins, rows = [], []
        counted = [
            (float((weights * table.values).sum()), keys, weights) for keys, weights in grouped
        ]
        for value, keys, weights in reading.sort_counts(counted, lambda one: one[0]):
            shown: Any = round(value) if table.noisy is not None else value
            rows.append(tuple(shown if key is _COUNT else key for key in keys))
            margins.append(Margin(Promise.EXACT, table.margin(weights, beta)))
        told = dict.fromkeys(reading.counts, tuple(margins))
        return self._tell(reading, reading.names, tuple(rows), told, confidence)

    def _find_covering(self, places: Sequence[int]) -> Estimates:
        """The released table that knows best of these columns."""
        able = [t for t in self.made.product.tables if set(places) <= set(t.columns)]
        if not able:
            known = ", ".join(t.name.replace("_", " × ") for t in self.made.product.tables)
            raise QuestionRefusal(
                "Q47",
                f"no table of {self.name!r} has all columns of this question.",
                why="columns that were not counted together say nothing of each other.",
                fix=f"ask about columns of one table: {known}.",
            )
        return min(able, key=lambda table: table.values.size)

    def _cells_by_group(
        self, reading: Reading, table: Estimates
    ) -> list[tuple[tuple[Any, ...], Any]]:
        found = []
        place = reading.names.index(reading.counts[0])
        for row in self._group(reading, table):
            weights = np.zeros(table.values.size)
            weights[np.array(row[place] or [], dtype=np.int64)] = 1.0
            keys = (*row[:place], _COUNT, *row[place + 1 :])
            found.append((keys, weights.reshape(table.values.shape)))
        return found

    def _group(self, reading: Reading, table: Estimates) -> list[tuple[Any, ...]]:
        """The question on a table of cells: for each group, its keys and its cells."""
        import pyarrow as pa

        codes = table.levels_of()
        columns: dict[str, Any] = {
            self.made.levels[column].name: key_array(self.made.levels[column]).take(
                pa.array(codes[axis])
            )
            for axis, column in enumerate(table.columns)
        }
        columns[_CELL] = pa.array(np.arange(table.values.size))
        return list(
            run_sql(reading.cells_sql(_CELL), {self.name: pa.table(columns)}, self.made.levels)[1]
        )

    # --- parts -----------------------------------------------------------------------------------

    def _tell(
        self,
        reading: Reading,
        names: tuple[str, ...],
        rows: tuple[tuple[Any, ...], ...],
        margins: Mapping[str, tuple[Margin, ...]],
        confidence: Exact,
    ) -> Told:
        numbers = (*reading.counts, *reading.numbers)
        keys = tuple(name for name in names if name not in numbers) if reading.grouped else ()
        said = self._say(reading, margins, confidence)
        return Told(reading.text, names, rows, margins, said, keys, confidence)

    def _places(self, names: Sequence[str]) -> list[int]:
        known = [one.name for one in self.made.levels]
        return sorted({known.index(name) for name in names})

    def _say(
        self, reading: Reading, margins: Mapping[str, tuple[Margin, ...]], confidence: Exact
    ) -> tuple[str, ...]:
        said = [f"From the release {self.name}: free."]
        percent = 100 * float(proportion(confidence, name="confidence"))
        promises = {one.promise for listed in margins.values() for one in listed}
        words = {
            Promise.EXACT: f"± at {percent:g} % confidence, from the law of the noise.",
            Promise.CERTIFIED: "± is certified for every count on these columns, and loose.",
            Promise.TYPICAL: "± is typical for such counts; this one may be further off.",
            Promise.NONE: "No margin: nothing was measured that bounds these counts.",
        }
        said += [words[one] for one in Promise if one in promises]
        rows, each = self.made.promise.counted, self.made.promise.unit
        said.append(
            f"at most 1 row of each {each} is counted."
            if rows == 1
            else f"at most {rows:,} rows of each {each} are counted."
        )
        others = [name for name in reading.names if name in reading.numbers]
        if others:
            said.append(
                f"No margin for {', '.join(others)}: only COUNT(*) by columns and under conditions "
                "has one here, without LIMIT, HAVING or DISTINCT."
            )
        wide = [
            one.name for one in self.made.levels if one.name in reading.columns and is_wide(one)
        ]
        if wide:
            said.append(
                f"{', '.join(wide)}: counted in cells; within a cell values are spread evenly."
                if self.rows is not None
                else f"{', '.join(wide)}: counted in cells, which are named by their ends."
            )
        return tuple(said)


def run_sql(
    sql: str, tables: Mapping[str, Any], levels: Sequence[Levels]
) -> tuple[tuple[str, ...], Any]:
    """Run SQL in a database that holds these public tables and can reach nothing else.

    Like any SQL on released numbers, in bounded time and memory.
    """
    import duckdb

    from discreet.engine.duckdb.afterwards import limit_time, open_locked

    columns = ", ".join(one.name for one in levels)
    with open_locked(lambda connection: _register(connection, tables)) as connection:
        try:
            with limit_time(connection):
                result = connection.execute(sql)
                names = tuple(column[0] for column in result.description or ())
                return names, tuple(result.fetchall())
        except (duckdb.InterruptException, duckdb.OutOfMemoryException, MemoryError):
            raise QuestionRefusal(
                "Q47",
                "the release cannot answer this: it takes too long, or too much room.",
                why="a release is public, and what is asked of it is free.",
                fix=f"ask for less, by the columns {columns}.",
            ) from None
        except (duckdb.Error, OverflowError, ValueError, RuntimeError) as error:
            said = str(error).splitlines()[0] if isinstance(error, duckdb.Error) else "no number"
            raise QuestionRefusal(
                "Q47",
                f"the release cannot answer this: {said}",
                why="a release is public, so the engine's own words are told.",
                fix=f"use the columns {columns}.",
            ) from None


def _register(connection: Any, tables: Mapping[str, Any]) -> None:
    for name, table in tables.items():
        connection.register(name, table)


_COUNT = object()

__all__ = ["Synopsis", "Told", "run_sql"]
