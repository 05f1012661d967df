"""What a question computes: columns, constants, operators, functions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, fraction
from discreet.question.sql.dialect import write_text
from discreet.question.sql.scalars import write_constant

Constant = bool | int | float | Fraction | Decimal | str | date | None
"""A Python value that can stand in a question; a float means its shortest decimal."""


def tree_of(value: Formula | Constant) -> exp.Expr:
    """The node of a formula or a constant."""
    if isinstance(value, Formula):
        return value.tree.copy()
    if isinstance(value, Decimal | float | Fraction):
        number = fraction(value)
        over, under = number.numerator, number.denominator
        if _finite(under):
            return _negate(write_constant(number))
        quotient = exp.Div(this=write_constant(over), expression=write_constant(under))
        return exp.Paren(this=quotient)
    if value is None or isinstance(value, bool | int | str | date):
        return _negate(write_constant(value))
    raise InvalidParameter(
        "P1",
        f"{type(value).__name__} is not a constant of a question.",
        why="the engine and the analyst must mean the same value.",
        fix="use a number, a text, a date, a datetime, True, False or None.",
    )


def number(value: Exact) -> int | Fraction:
    """An exact number; a whole one that was given as an int stays one."""
    exact = fraction(value)
    return int(exact) if isinstance(value, int) else exact


def _finite(denominator: int) -> bool:
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _negate(tree: exp.Expr) -> exp.Expr:
    negative = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.startswith("-")
    return exp.Paren(this=tree) if negative else tree


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A column, a constant, or something computed from them; also an aggregate.

    ``tree`` is its syntax; it is made by ``col``, ``lit``, ``when``, ``function`` and the
    aggregates.

    >>> text = (col("age") + 1 > 30) & ~col("city").is_in("hull", "york")
    >>> print(text)
    (("age" + 1) > 30) AND (NOT ("city" IN ('hull', 'york')))
    """

    tree: exp.Expr

    def __str__(self) -> str:
        return write_text(self.tree)

    def __bool__(self) -> bool:
        raise InvalidParameter(
            "P4",
            "a condition of a question is neither true nor false in Python.",
            why="it is decided for each row, where the data is.",
            fix="combine conditions with & | ~ and brackets, not with and, or, not.",
        )

    __hash__ = None  # type: ignore[assignment]

    def _binary(
        self, kind: type[exp.Expr], other: Formula | Constant, *, swap: bool = False
    ) -> Formula:
        pair = [_wrap(self.tree.copy()), _wrap(tree_of(other))]
        left, right = reversed(pair) if swap else pair
        return Formula(kind(this=left, expression=right))

    def __add__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Add, other)

    def __radd__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Add, other, swap=True)

    def __sub__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Sub, other)

    def __rsub__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Sub, other, swap=True)

    def __mul__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Mul, other)

    def __rmul__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Mul, other, swap=True)

    def __truediv__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Div, other)

    def __rtruediv__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Div, other, swap=True)

    def __floordiv__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.IntDiv, other)

    def __mod__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Mod, other)

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return self._binary(exp.EQ, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return self._binary(exp.NEQ, other)  # type: ignore[arg-type]

    def __lt__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.LT, other)

    def __le__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.LTE, other)

    def __gt__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.GT, other)

    def __ge__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.GTE, other)

    def __and__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.And, other)

    def __or__(self, other: Formula | Constant) -> Formula:
        return self._binary(exp.Or, other)

    def __invert__(self) -> Formula:
        return Formula(exp.Not(this=_wrap(self.tree.copy())))

    def __neg__(self) -> Formula:
        return Formula(exp.Neg(this=_wrap(self.tree.copy())))

    def is_null(self) -> Formula:
        """Whether it is NULL."""
        return Formula(exp.Is(this=_wrap(self.tree.copy()), expression=exp.Null()))

    def is_in(self, *values: Constant) -> Formula:
        """Whether it is one of ``values``."""
        members = [tree_of(value) for value in values]
        return Formula(exp.In(this=_wrap(self.tree.copy()), expressions=members))

    def between(self, low: Formula | Constant, high: Formula | Constant) -> Formula:
        """Whether it is at least ``low`` and at most ``high``."""
        return (self >= low) & (self <= high)

    def like(self, pattern: str) -> Formula:
        """Whether a text has the form of ``pattern``: % is any text, _ any one character."""
        return self._binary(exp.Like, pattern)

    def cast(self, kind: str) -> Formula:
        """As another ``kind``: integer, decimal, text, date, timestamp or boolean."""
        types = {"integer": "BIGINT", "decimal": "DOUBLE"}
        name = types.get(kind.lower(), kind.upper())
        try:
            to = exp.DataType(this=exp.DType(name))
        except ValueError:
            raise InvalidParameter(
                "P2",
                "there is no such kind.",
                why="a cast must give NULL, and never fail, on any person's value.",
                fix="use integer, decimal, text, date, timestamp or boolean.",
            ) from None
        return Formula(exp.Cast(this=self.tree.copy(), to=to))

    def clip(self, low: Exact, high: Exact) -> Formula:
        """Moved into ``low`` ... ``high``, which then are its public bounds."""
        return function("greatest", function("least", self, number(high)), number(low))

    def filter(self, condition: Formula) -> Formula:
        """Of an aggregate: only rows where ``condition`` is true."""
        where = exp.Where(this=condition.tree.copy())
        return Formula(exp.Filter(this=self.tree.copy(), expression=where))

    def bounded(
        self,
        *,
        per_row: tuple[Exact, Exact] | None = None,
        per_group: tuple[Exact, Exact] | None = None,
        auto: bool = False,
    ) -> Formula:
        """Of an aggregate: what one row, or one person's rows in a group, may add.

        ``per_row`` and ``per_group`` are the least and the greatest amount. ``auto``: what a row
        may add is looked for in the data, for a part of the price.
        """
        tree = self.tree.copy()
        if auto:
            found = exp.Kwarg(this=exp.var("bounds"), expression=exp.column("AUTO"))
            tree.append("expressions", found)
        for name, ends in (("row", per_row), ("group", per_group)):
            if ends is not None:
                pair = exp.Tuple(expressions=[tree_of(number(end)) for end in ends])
                key = exp.var(f"contribution_bounds_per_{name}")
                tree.append("expressions", exp.Kwarg(this=key, expression=pair))
        return Formula(tree)

    def descending(self) -> Descending:
        """Of ORDER BY: the greatest first."""
        return Descending(self)


@dataclass(frozen=True, slots=True)
class Descending:
    """A ``formula`` to sort by, the greatest first."""

    formula: Formula


_ATOMS = (
    exp.Column,
    exp.Literal,
    exp.Anonymous,
    exp.Paren,
    exp.Boolean,
    exp.Null,
    exp.Cast,
    exp.Case,
    exp.Filter,
)


def _wrap(tree: exp.Expr) -> exp.Expr:
    return tree if isinstance(tree, _ATOMS) else exp.Paren(this=tree)


def col(name: str, *, of: str | None = None) -> Formula:
    """The column ``name`` (of the table or sub-query called ``of``)."""
    table = None if of is None else exp.Identifier(this=of, quoted=True)
    return Formula(exp.Column(this=exp.Identifier(this=name, quoted=True), table=table))


def lit(value: Constant) -> Formula:
    """The constant ``value``."""
    return Formula(tree_of(value))


def function(name: str, *arguments: Formula | Constant) -> Formula:
    """The function ``name`` of the allow-list: ``function("year", col("day"))``.

    ``arguments`` are formulas or constants.
    """
    return Formula(_call(name, *arguments))


def when(
    condition: Formula, value: Formula | Constant, otherwise: Formula | Constant = None
) -> Formula:
    """``value`` where ``condition`` is true, else ``otherwise``."""
    branch = exp.If(this=condition.tree.copy(), true=tree_of(value))
    return Formula(exp.Case(ifs=[branch], default=tree_of(otherwise)))


def _call(name: str, *arguments: Formula | Constant) -> exp.Anonymous:
    if not name.isidentifier():
        raise InvalidParameter(
            "P2",
            "this is not the name of a function.",
            why="only functions of the allow-list are known to be defined on every row.",
            fix="pass a name such as 'year'; docs/functions.md lists them.",
        )
    return exp.Anonymous(this=name.upper(), expressions=[tree_of(a) for a in arguments])


def of(value: Formula | str) -> Formula:
    """A column by its name, or a formula as it is."""
    return col(value) if isinstance(value, str) else value
