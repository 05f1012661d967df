"""What is to be released, as it is declared: in Python, on the command line, in a plan's TOML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter, quote_value
from discreet.exact.numbers import Exact, fraction, positive, proportion
from discreet.publication.spend import Spend

KINDS = {
    "synthetic": "rows like the table's, with its types",
    "marginals": "counts by every set of so many columns",
    "ranges": "counts between any two values of one column, unbiased",
    "prefixes": "counts up to any value of one column, unbiased",
    "hierarchy": "counts on a tree of columns, whole and adding up",
    "questions": "the answers to a list of linear questions, unbiased",
    "counter": "counts of one step after the other, for a charge at the start",
}
"""The kinds of release, and what each gives."""

MARGINS = Fraction(1, 20)
"""The share of a synthetic table's spend that buys margins, unless it is said."""

MOST_AMOUNT = 10**30
"""No price, weight or target is above this, or below one part in so many."""
MOST_WHOLE = 2**53
"""No whole number is above this: beyond it, doubles have gaps."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_NEEDS = {
    "ranges": ("by", 1, 1),
    "prefixes": ("by", 1, 1),
    "hierarchy": ("by", 1, 6),
    "counter": ("by", 1, 3),
    "questions": ("questions", 1, 2000),
}


@dataclass(frozen=True, slots=True)
class Declared:
    """One release: its ``name``, its ``kind``, of which table or view, for how much.

    :meth:`of` reads what is declared.  ``source`` is a table or a SELECT; the price is ``epsilon``,
    perhaps with a ``delta``, or ``rho``.  Which columns are counted say ``columns``, ``ways`` and
    ``sets`` (of marginals; with ``best``, the nearest), ``by`` (of one column, or a tree); how
    finely ``cells``; which matter more ``interest``, which listed values are in an order
    ``ordered``.  ``keep`` is what every synthetic row keeps, ``margins`` the share that buys how
    far off it is, ``rows`` about how many there are.  Of a hierarchy, ``totals`` are public, and
    the places that there are stand in a public table, the ``geography``, or in ``tree``; of a
    counter, one unit is counted in ``steps_per_unit`` steps; ``questions`` are counts in SQL.

    >>> declared = Declared.of("cities", kind="marginals", of="visits", epsilon=1)
    >>> declared.spend(rows_per_unit=3).rows_per_unit, declared.describe()
    (3, 'RELEASE cities: MARGINALS OF visits')
    """

    name: str
    kind: str
    source: str
    """A table, or a SELECT that says what is published of whom."""
    columns: tuple[str, ...] = ()
    cells: tuple[tuple[str, int], ...] = ()
    interest: tuple[tuple[str, Fraction], ...] = ()
    ordered: tuple[str, ...] = ()
    """Columns whose listed values are in an order."""
    ways: int = 2
    sets: tuple[tuple[str, ...], ...] = ()
    best: bool = False
    """Of marginals: the nearest tables, whole and non-negative, instead of unbiased ones."""
    by: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    """Inequalities between two columns that every synthetic row keeps."""
    totals: tuple[tuple[str, int], ...] = ()
    """Public totals of a hierarchy, by the path of their node: "north/ayr", and "" for all."""
    geography: str = ""
    """Of a hierarchy: a public table that lists the places there are, by the columns of ``by``."""
    tree: tuple[tuple[str, ...], ...] = ()
    """The places that were listed, each with its path from the top; read from ``geography``."""
    steps_per_unit: int | None = None
    """Of a counter: in how many steps a unit is counted at most; then steps share their noise."""
    questions: tuple[str, ...] = ()
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    margins: Fraction = MARGINS
    rows: int | None = None
    """About how many rows there are, if that is public; it says whether they are enough."""

    @classmethod
    def of(cls, name: str, *, kind: str, of: str, **declared: Any) -> Declared:
        """A release as it was declared, or a refusal; reads nothing.

        ``name``, ``kind``, ``of`` a table or a SELECT; ``declared`` is all else, in the words of
        docs/publication.md.
        """
        known = {field.name for field in fields(cls)} - {"name", "kind", "source"}
        unknown = sorted(map(str, set(declared) - known))
        if unknown:
            raise _make_refusal(
                f"a release has no setting {quote_value(unknown[0])}.",
                f"use some of {', '.join(sorted(known))}.",
            )
        given = {key: value for key, value in declared.items() if value is not None}
        made = cls(
            _name(name),
            _kind(kind),
            _source(of),
            **{key: _READERS.get(key, _as_it_is)(key, value) for key, value in given.items()},
        )
        made._check()
        return made

    def _check(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise _make_refusal(
                "a release costs either epsilon (perhaps with a delta) or rho.",
                "say epsilon = 1, or epsilon = 1 and delta = 1e-9, or rho = 0.05.",
            )
        if self.rho is not None and self.delta is not None:
            raise _make_refusal("rho stands without a delta.", "leave out delta.")
        needed = _NEEDS.get(self.kind)
        if needed is not None:
            name, least, most = needed
            if not least <= len(getattr(self, name)) <= most:
                raise _make_refusal(
                    f"a release of kind {self.kind!r} needs {name!r}, {least} to {most} of them.",
                    f"say {name} = [...].",
                )
        if self.best and self.kind != "marginals":
            raise _make_refusal("only marginals are unbiased or best.", "leave out best.")
        if self.steps_per_unit is not None:
            self._check_steps()
        if (self.geography or self.tree) and self.kind != "hierarchy":
            raise _make_refusal("only a hierarchy is of places.", "leave out geography and tree.")
        if any(len(path) != len(self.by) for path in self.tree):
            raise _make_refusal(
                "a place has a value for every column of by.", 'write [["a", "b"]].'
            )
        if self.rows is not None and self.rows < 0:
            raise _make_refusal("a number of rows is not negative.", "say rows = 40000.")
        if not 1 <= self.ways <= 4:
            raise _make_refusal("marginals are of 1 to 4 ways.", "say ways = 2.")

    def _check_steps(self) -> None:
        if self.kind != "counter" or (self.steps_per_unit or 0) < 1:
            raise _make_refusal(
                "steps_per_unit is in how many steps of a counter one unit is counted.",
                "say kind = counter and steps_per_unit = 1, or more.",
            )
        if self.rho is None and self.delta is None:
            raise _make_refusal(
                "steps that share their noise have Gaussian noise.",
                "say rho = 0.05, or epsilon = 1 and delta = 1e-9.",
            )

    def spend(self, *, rows_per_unit: int) -> Spend:
        """The amount, for tables in which a unit has ``rows_per_unit`` rows."""
        if self.rho is not None:
            return Spend.concentrated(self.rho, rows_per_unit=rows_per_unit)
        if self.epsilon is None:
            raise TypeError("a release was checked to have a price")
        if self.delta is None:
            return Spend.pure(self.epsilon, rows_per_unit=rows_per_unit)
        return Spend.approximate(self.epsilon, self.delta, rows_per_unit=rows_per_unit)

    def describe(self) -> str:
        """The release in one line, as transcripts show it."""
        return f"RELEASE {self.name}: {self.kind.upper()} OF {' '.join(self.source.split())}"

    def to_json(self) -> dict[str, Any]:
        """Everything that was declared, exactly; what was left out is left out."""
        empty = Declared(self.name, self.kind, self.source)
        said = {
            field.name: _plain(getattr(self, field.name))
            for field in fields(self)
            if field.name in ("name", "kind")
            or getattr(self, field.name) != getattr(empty, field.name)
        }
        return {**said, "of": self.source}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Fraction) else value


def _name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _make_refusal(
            f"{quote_value(name)} cannot be the name of a release.",
            "use small letters, digits and _, such as visits_2026.",
        )
    return name


def _kind(kind: object) -> str:
    if not isinstance(kind, str) or kind not in KINDS:
        raise _make_refusal(
            f"there is no kind of release {quote_value(kind)}.",
            f"use one of {', '.join(KINDS)}.",
        )
    return kind


def _source(source: object) -> str:
    if not isinstance(source, str) or not source.strip():
        raise _make_refusal("a release is of a table or of a SELECT.", 'say of = "visits".')
    return source.strip().rstrip(";")


def _as_it_is(key: str, value: Any) -> Any:
    if type(value) is not int or abs(value) > MOST_WHOLE:
        raise _make_refusal(
            f"{key} cannot be {quote_value(value)}.",
            f"write a whole number, up to {MOST_WHOLE}.",
        )
    return value


def _flag(key: str, value: Any) -> bool:
    if type(value) is not bool:
        raise _make_refusal(f"{key} cannot be {quote_value(value)}.", "write true or false.")
    return value


def _texts(key: str, value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(one, str) for one in listed):
        raise _make_refusal(f"{key} is a list of texts.", f'write {key} = ["…"].')
    return tuple(listed)


def _sets(key: str, value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _make_refusal(f"{key} is a list of lists of columns.", f'write {key} = [["a", "b"]].')
    return tuple(_texts(key, one) for one in value)


def _pairs(key: str, value: Any) -> tuple[tuple[str, Any], ...]:
    if isinstance(value, list | tuple) and all(
        isinstance(one, list | tuple) and len(one) == 2 and isinstance(one[0], str) for one in value
    ):
        value = dict(value)  # as a certificate writes it
    if not isinstance(value, Mapping):
        raise _make_refusal(f"{key} gives a number to each of some names.", f"write {key} = {{…}}.")
    if key == "interest":
        return tuple((str(name), read_amount(one, name=key)) for name, one in value.items())
    return tuple((str(name), _as_it_is(key, one)) for name, one in value.items())


def read_amount(value: Exact, *, name: str) -> Fraction:
    """A price, a weight or a target, of a size that plans can weigh in doubles.

    >>> read_amount("0.5", name="epsilon")
    Fraction(1, 2)
    """
    amount = positive(value, name=name)
    if not Fraction(1, MOST_AMOUNT) <= amount <= MOST_AMOUNT:
        raise _make_refusal(
            f"{name} cannot be {quote_value(value)}.", f"write a number such as {name} = 0.5."
        )
    return amount


def _amount(key: str, value: Exact) -> Fraction:
    return read_amount(value, name=key)


def _share(key: str, value: Exact) -> Fraction:
    amount = fraction(value, name=key)
    if not 0 <= amount <= Fraction(1, 2):
        raise _make_refusal(f"{key} is a share of the spend from 0 to 1/2.", f"write {key} = 0.05.")
    return amount


_READERS: dict[str, Any] = {
    "best": _flag,
    "columns": _texts,
    "ordered": _texts,
    "by": _texts,
    "keep": _texts,
    "questions": _texts,
    "sets": _sets,
    "tree": _sets,
    "geography": lambda key, value: "".join(_texts(key, value)),
    "cells": _pairs,
    "interest": _pairs,
    "totals": _pairs,
    "epsilon": _amount,
    "rho": _amount,
    "delta": lambda key, value: proportion(value, name=key),
    "margins": _share,
}


def _make_refusal(what: str, fix: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        what,
        why="a release is paid for once, so what it is must be plain before.",
        fix=fix,
    )


__all__ = ["KINDS", "Declared", "read_amount"]
