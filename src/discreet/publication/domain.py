"""The public shape of the table: its columns, how many levels each has, which are ordered.

Rows are coded: in every column a level is a whole number from 0 up.  A NULL is
a level like any other, the last one, outside the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.errors import InvalidParameter

MOST_LEVELS = 2**20
"""More levels in one column are refused: declare coarser bounds."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its levels, coded 0 … size − 1.

    ``name`` is what it is called, ``size`` how many levels it has.

    ``ordered`` says that neighbouring levels are alike (numbers, dates, grades);
    ``null`` that the last level stands for a missing value.  ``interest`` weighs
    the errors of the tables the column is in.

    >>> Column("age", 86, ordered=True, null=True)
    Column(name='age', size=86, ordered=True, null=True, interest=1.0)
    """

    name: str
    size: int
    ordered: bool = False
    null: bool = False
    interest: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MOST_LEVELS:
            raise InvalidParameter(
                "P2",
                f"column {self.name!r} has {self.size} levels; there must be 1 to {MOST_LEVELS}.",
                why="every level is counted, whether or not anybody has it.",
                fix="declare coarser bounds or a list of values for it.",
            )
        if not 0 < self.interest < float("inf"):
            raise InvalidParameter(
                "P2",
                f"the interest of column {self.name!r} must be positive and finite.",
                why="it weighs the column's errors against those of others.",
                fix="pass interest=2 for a column that matters twice as much.",
            )


def check_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns as given, refused unless there are some and each has its own name."""
    listed = tuple(columns)
    if not listed or len({column.name for column in listed}) != len(listed):
        raise InvalidParameter(
            "P4" if listed else "P5",
            "a publication needs at least one column, and each name once.",
            why="tables are published by the names of their columns.",
            fix="list the columns, such as [Column('age', 86, ordered=True)].",
        )
    return listed
