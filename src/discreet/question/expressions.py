"""Expressions over one row: an allow-list of total functions.

An expression is a tree of four kinds of nodes.  Each function of :class:`Call`
is declared once (:mod:`discreet.question.functions`) with its domain rule and its meaning
in the engine, and none can raise on any row: division by zero, a bad cast or an
overflow give NULL.
"""

from __future__ import annotations

from discreet.exact.records import dataclass
from discreet.question.domain import Value


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the relation the expression is read on, by its unique name there."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of the question; None is NULL."""

    value: Value | None


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the allow-list, applied."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true, else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


Expression = ColumnRef | Literal | Call | Case
