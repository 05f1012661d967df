"""Aggregates that are read off others: SKEWNESS, KURTOSIS, GEOMEAN, REGR_R2 and REGR_COUNT.

The third and fourth moments are means of powers, about the middle of what is declared, so that they
are small; with the mean and the variance they say how far a distribution leans and how heavy its
tails are, after the release.  The formulas are those of DuckDB, corrected for the size of a sample.
A geometric mean is a mean of logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from discreet.question.sql.aggregates import aggregate_name
from discreet.question.sql.dialect import TYPED, Reader, parse_trees, tokenize
from discreet.question.sql.own_values import is_of_units

_MOMENTS = {"SKEWNESS": 3, "SKEW": 3, "KURTOSIS": 4, "KURTOSIS_POP": 4}
_GEOMETRIC = {"GEOMEAN", "GEOMETRIC_MEAN"}
_PAIRS = {"REGR_R2", "REGR_COUNT"}


def write_moments_out(query: exp.Select, reader: Reader) -> None:
    """Change ``query`` in place; not where it is about each unit by itself."""
    units = {name.casefold() for t in reader.schema.tables.values() for name in t.unit or ()}
    if is_of_units(query, units):
        return
    for node in list(query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query))):
        name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
        if name not in _MOMENTS and name not in _PAIRS | _GEOMETRIC:
            continue
        if _is_misplaced(node, query):
            continue  # and is refused under its own name
        given, whole, where = list(node.expressions), node, None
        if isinstance(node.parent, exp.Filter):
            whole, where = node.parent, node.parent.expression
        odd = any(_is_odd(part, reader) for part in given)
        if odd or isinstance(whole.parent, exp.Window) or len(given) != 1 + (name in _PAIRS):
            continue
        made = _compute(name, given, _aggregate_where(where), reader, query)
        shown = whole.parent is query and whole.arg_key == "expressions"
        titled = exp.Alias(this=made, alias=exp.to_identifier(name.lower()))
        put = titled if shown else exp.paren(made, copy=False)
        put.meta[TYPED] = put.copy(), whole.copy()
        whole.replace(put)


def _is_misplaced(node: exp.Expr, query: exp.Select) -> bool:
    """Whether it stands where rows are chosen or grouped, or inside another aggregate."""
    around = node.parent
    while around is not None and around is not query:
        if isinstance(around, exp.Where | exp.Group | exp.Join):
            return True
        if isinstance(around, exp.Anonymous) and aggregate_name(around) is not None:
            return True
        around = around.parent
    return False


def _is_odd(part: exp.Expr, reader: Reader) -> bool:
    """Whether it is no number, as far as is known."""
    if not isinstance(part, exp.Column):
        return isinstance(part, exp.Distinct | exp.Kwarg | exp.Star) or part.is_string
    kinds = {
        column.kind.is_number
        for table in reader.schema.tables.values()
        for column in table.columns
        if column.name.casefold() == part.name.casefold()
    }
    return kinds == {False}


Make = Callable[[str, list[exp.Expr]], exp.Expr]
"""An aggregate of values, by its name."""


def _aggregate_where(where: exp.Expr | None) -> Make:
    def make(name: str, values: list[exp.Expr]) -> exp.Expr:
        call = exp.Anonymous(this=name, expressions=[value.copy() for value in values])
        return call if where is None else exp.Filter(this=call, expression=where.copy())

    return make


_FORMULAS = {
    # About the mean, E(y - m)^3 is E y^3 - 3 m v - m^3, and E(y - m)^4 is E y^4 - 4 m E y^3 +
    # 6 m^2 v + 3 m^4; the roots and quotients of n correct for the size of a sample.
    "SKEWNESS": "POWER(ABS(n * (n - 1)), 0.5) / (n - 2) * (t - 3 * m * v - POWER(m, 3)) / "
    "POWER(v, 1.5)",
    "KURTOSIS": "(n - 1) * ((n + 1) * (f - 4 * m * t + 6 * POWER(m, 2) * v + 3 * POWER(m, 4)) / "
    "POWER(v, 2) - 3 * (n - 1)) / ((n - 2) * (n - 3))",
    "KURTOSIS_POP": "(f - 4 * m * t + 6 * POWER(m, 2) * v + 3 * POWER(m, 4)) / POWER(v, 2) - 3",
    "GEOMEAN": "EXP(g)",
    "REGR_R2": "POWER(r, 2)",
    "REGR_COUNT": "c",
}


_SAME = {"SKEW": "SKEWNESS", "GEOMETRIC_MEAN": "GEOMEAN"}


def _compute(
    name: str, given: list[exp.Expr], make: Make, reader: Reader, query: exp.Select
) -> exp.Expr:
    """The formula of ``name``, with an aggregate in the place of each of its letters."""
    text = _FORMULAS[_SAME.get(name, name)]
    found = _parse_formula(text)
    value = _centre(given[0], reader, query)
    there = [exp.Not(this=exp.Is(this=part.copy(), expression=exp.Null())) for part in given]
    both = exp.Case(ifs=[exp.If(this=exp.and_(*there), true=exp.Literal.number(1))])
    letters: dict[str, tuple[str, list[exp.Expr]]] = {
        "n": ("COUNT", [value]),
        "m": ("AVG", [value]),
        "v": ("VAR_POP", [value]),
        "t": ("AVG", [_power(value, 3)]),
        "f": ("AVG", [_power(value, 4)]),
        "g": ("AVG", [exp.Anonymous(this="LN", expressions=[given[0].copy()])]),
        "r": ("CORR", given),
        "c": ("COUNT", [both]),
    }
    for letter in list(found.find_all(exp.Column)):
        letter.replace(make(*letters[letter.name]))
    whole: exp.Expr = found.this
    return whole


def _parse_formula(text: str) -> exp.Paren:
    asked = f"SELECT {text}"
    tree = parse_trees(asked, tokenize(asked))[0]
    return exp.paren((tree or exp.Null()).expressions[0])


def _power(value: exp.Expr, degree: int) -> exp.Expr:
    return exp.Anonymous(this="POWER", expressions=[value.copy(), exp.Literal.number(degree)])


def _centre(value: exp.Expr, reader: Reader, query: exp.Select) -> exp.Expr:
    """``x - c`` with c in the middle of what is declared of a column; any c has the same moments.

    About 0 instead the powers of a column far from it are large, and so is their noise.
    """
    if not isinstance(value, exp.Column):
        return value
    read = {table.name.casefold() for table in query.find_all(exp.Table)}
    declared = {
        column.ends
        for table in reader.schema.tables.values()
        if table.name.casefold() in read
        for column in table.columns
        if column.name.casefold() == value.name.casefold()
    }
    ends = declared.pop() if len(declared) == 1 else None
    if ends is None or not all(isinstance(end, int | Fraction) for end in ends):
        return value
    middle = round(sum(Fraction(end) for end in ends if isinstance(end, int | Fraction)) / 2)
    if not middle:
        return value
    shift = exp.Add if middle < 0 else exp.Sub
    moved = shift(this=value.copy(), expression=exp.Literal.number(abs(middle)))
    return exp.paren(moved, copy=False)


__all__ = ["write_moments_out"]
