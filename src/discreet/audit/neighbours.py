"""Whether two data sets are neighbours: a verdict about others would mean nothing.

With a schema, two sets of tables are neighbours if they differ in the rows of one
unit, in all tables of its entity (added or removed; under change-one, replaced).
Without one, every row is a person: one row more, one less, or one replaced.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import InvalidParameter, quote_value
from discreet.question.schema import Neighbours, Schema, Table

Adjacent = bool | Callable[[Any, Any], bool] | None
"""None: checked here.  True: the caller vouches.  A function: the caller's own relation."""


def neighbouring(
    first: Any, second: Any, *, schema: Schema | None = None, adjacent: Adjacent = None
) -> None:
    """Refuse two data sets that are not neighbours.

    ``first`` and ``second`` are tables, or what a target takes; ``schema`` says what a unit is, or
    ``adjacent`` is the relation itself (True: they are neighbours).

    >>> neighbouring([3, 5, 8], [3, 5, 8, 13])
    >>> neighbouring([3, 5, 8], [2, 4, 8])
    Traceback (most recent call last):
    ...
    discreet.errors.InvalidParameter: P4: these tables are not neighbours: 4 rows differ, so more
    than one person's.
    Why: privacy promises that one person's rows hardly matter; telling apart tables that differ by
    more says nothing about the promise.
    Fix: pass two tables that differ in all rows of one person, or adjacent=True if your neighbours
    are others.
    """
    if adjacent is True:
        return
    if callable(adjacent):
        if not adjacent(first, second):
            raise _make_refusal("the relation that was passed does not hold of them")
        return
    if schema is not None:
        _check_units(first, second, schema)
        return
    rows = _rows(first), _rows(second)
    if rows[0] is None or rows[1] is None:  # numbers or objects: nothing to compare row by row
        return
    gone, new = Counter(rows[0]) - Counter(rows[1]), Counter(rows[1]) - Counter(rows[0])
    if max(gone.total(), new.total()) > 1:
        raise _make_refusal(f"{gone.total() + new.total()} rows differ, so more than one person's")
    if gone.total() + new.total() == 0:
        raise _make_refusal("they hold the same rows")


def _check_units(first: Any, second: Any, schema: Schema) -> None:
    for side in (first, second):
        missing = [n for n in schema.tables if not isinstance(side, Mapping) or n not in side]
        if missing:
            raise InvalidParameter(
                "P4",
                f"the table {quote_value(missing[0])} of the schema is not given.",
                why="a person's rows in a table that is left out would not be looked at.",
                fix=f"pass tables by name: {', '.join(schema.tables)}.",
            )
    changed: set[Hashable] = set()
    sides: list[set[Hashable]] = [set(), set()]
    for name, table in schema.tables.items():
        rows = [_rows(side[name]) or [] for side in (first, second)]
        gone, new = Counter(rows[0]) - Counter(rows[1]), Counter(rows[1]) - Counter(rows[0])
        if table.public:
            if gone or new:
                raise _make_refusal(f"the public table '{name}' differs")
            continue
        for side, part in enumerate((gone, new)):
            for row in part:
                owner = _owner(row, table)
                sides[side].add(owner)
                changed.add(owner)
            if table.by_row and part.total() > 1:
                raise _make_refusal(
                    f"more than one row of '{name}' differs, and every row is a unit"
                )
    if not changed:
        raise _make_refusal("they hold the same rows")
    if schema.neighbours is Neighbours.CHANGE_ONE and _count_units(first, schema) != _count_units(
        second, schema
    ):
        raise _make_refusal("one has a unit that the other has not, and neighbours change one")
    most = 2 if schema.neighbours is Neighbours.CHANGE_ONE else 1
    if len(changed) > most or any(len(side) > 1 for side in sides):
        raise _make_refusal(f"rows of {len(changed)} units differ")


def _count_units(side: Any, schema: Schema) -> int:
    """How many units there are, in all tables; a row whose unit is NULL is nobody's."""
    owners: set[Hashable] = set()
    rows_alone = 0
    for name, table in schema.tables.items():
        rows = [] if table.public else _rows(side[name]) or []
        rows_alone += len(rows) if table.by_row else 0
        owners |= {_owner(row, table) for row in rows if not table.by_row}
    known = {owner for owner in owners if isinstance(owner, tuple) and None not in owner}
    return len(known) + rows_alone


def _owner(row: Hashable, table: Table) -> Hashable:
    if table.by_row:
        return (table.name, row)
    cells = dict(row)  # type: ignore[call-overload]
    unit = table.unit or ()
    return (table.entity or ", ".join(unit), *(cells.get(name) for name in unit))


def _rows(table: Any) -> list[Hashable] | None:
    """The rows as hashable values; None for what has no rows."""
    if hasattr(table, "to_arrow"):
        table = table.to_arrow()
    elif hasattr(table, "columns") and hasattr(table, "iloc"):
        table = pa.Table.from_pandas(table, preserve_index=False)
    if isinstance(table, pa.Table):
        return [_freeze(row) for row in table.to_pylist()]
    if isinstance(table, np.ndarray) and table.ndim:
        return [_freeze(row) for row in table.tolist()]
    if isinstance(table, list | tuple | set | frozenset):
        return [_freeze(row) for row in table]
    if isinstance(table, Mapping):  # tables by name
        parts = {str(name): _rows(part) for name, part in table.items()}
        if all(rows is not None for rows in parts.values()):
            return [(name, row) for name, rows in parts.items() for row in rows or ()]
    return None


def _freeze(value: Any) -> Hashable:
    if isinstance(value, Mapping):
        return tuple(sorted((str(key), _freeze(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_freeze(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(_freeze(item) for item in value)
    if isinstance(value, float) and math.isnan(value):  # it equals nothing, itself included
        return "NaN"
    return value if isinstance(value, Hashable) else repr(value)


def _make_refusal(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"these tables are not neighbours: {what}.",
        why="privacy promises that one person's rows hardly matter; telling apart tables that "
        "differ by more says nothing about the promise.",
        fix="pass two tables that differ in all rows of one person, or adjacent=True if your "
        "neighbours are others.",
    )


__all__ = ["Adjacent", "neighbouring"]
