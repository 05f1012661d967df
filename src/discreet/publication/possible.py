"""What of a release could not be made or written: refused from its declaration, before it is paid.

Whatever is refused only after it was paid for is lost to the people in the data, and to whoever
paid.  Nothing here looks at anybody's rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.errors import InvalidParameter
from discreet.publication.declared import Declared
from discreet.publication.domain import Column
from discreet.publication.outline import divide_spend, list_sets
from discreet.publication.spend import Spend
from discreet.publication.synthetic import MOST_VALUES, check_size, predict_rows_deviation

_MOST_DEVIATION = 10**8  # of one count, were it measured with the whole price
_TAIL = 8  # deviations of the number of rows that is made: more is rarer than 10**-14
_LONGEST_NAME = 240  # bytes: a file's name has 255 at most, ending and all


def check_possible(declared: Declared, columns: tuple[Column, ...], spend: Spend) -> None:
    """Refuse a release of these ``columns`` that would be paid for in vain."""
    if 1 / spend.sharpness > _MOST_DEVIATION:
        raise _refuse_noise(f"± {1.96 / spend.sharpness:.3g} a number")
    if declared.kind == "synthetic" or declared.best:
        _check_rows(declared, columns, spend)
    _check_names(declared, columns)


def _check_rows(declared: Declared, columns: tuple[Column, ...], spend: Spend) -> None:
    """The number of rows is a noisy one: neither it nor its noise may be beyond what is made."""
    if declared.rows is not None:
        check_size(declared.rows, len(columns))
    rows = divide_spend(declared, columns, spend)[0]
    spread = predict_rows_deviation(columns, rows)
    if _TAIL * spread * len(columns) > MOST_VALUES:
        raise _refuse_noise(f"± {1.96 * spread:,.3g} rows")


def _check_names(declared: Declared, columns: Sequence[Column]) -> None:
    """Every table is a file, called like its columns."""
    names = [column.name for column in columns]
    if declared.kind == "marginals":
        sets = dict.fromkeys(list_sets(declared, columns))
        alone = names if declared.best else []  # every column has its own table, asked for or not
        own = [one for one in sets if len(one) > 1 or not alone]
        names = [*alone, *("_".join(columns[place].name for place in one) for one in own)]
    elif declared.kind == "hierarchy":
        names = ["all", *("_".join(declared.by[:end]) for end in range(1, len(declared.by) + 1))]
    elif declared.kind == "counter":
        names = ["_".join(names)]
    known: set[str] = set()
    for name in names:
        if len(name.encode()) > _LONGEST_NAME:
            raise _refuse_name(f"the table {name[:40]!r}... has too long a name for a file.")
        if name in known:
            raise _refuse_name(f"two tables of this release would be called {name!r}.")
        known.add(name)


def _refuse_noise(told: str) -> InvalidParameter:
    return InvalidParameter(
        "P2",
        f"the price is so small that noise would be all there is: {told}.",
        why="it would be paid for, and nobody could read it.",
        fix="offer more, or bound how many rows each may have more closely.",
    )


def _refuse_name(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        what,
        why="one would be written over the other, or not at all, after it was paid for.",
        fix="give the columns other names in a SELECT: of = 'SELECT who, city AS town FROM ...'.",
    )


__all__ = ["check_possible"]
