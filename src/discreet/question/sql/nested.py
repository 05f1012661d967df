"""Questions inside the conditions of others: asked first, and constants from then on.

``WHERE cost > (SELECT AVG(cost) FROM visits)`` compares each row with a number that is about
everybody.  Asked by itself, that number is a question with a price; once it is released it is a
constant like any other, and so is a released list in ``x IN (SELECT ...)``.  Before, a NULL of
its kind stands in its place: enough to say what all of it costs.  A number for each group
(:mod:`~discreet.question.sql.per_group`) is asked once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from math import isfinite
from typing import Any

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Kind
from discreet.question.sql.per_group import (
    Grouped,
    group_correlated,
    has_few_groups,
    look_up_groups,
    write_cases,
)
from discreet.question.sql.public_queries import write_value
from discreet.question.sql.scalars import RELEASED
from discreet.question.statement import First, Statement, list_columns

Given = Sequence[Sequence[Any]]
"""What the questions inside have answered, in the order in which they stand.

One value, a list of them, or for each group its keys and its value.
"""

Read = Callable[[exp.Expr], Statement]
"""Reads a query as a statement, or refuses it."""

MOST_LISTED = 1_000
"""How many values of a released list may stand in the question around it."""

_TYPES = {
    Kind.INTEGER: exp.DType.BIGINT,
    Kind.DECIMAL: exp.DType.DOUBLE,
    Kind.BOOLEAN: exp.DType.BOOLEAN,
    Kind.TEXT: exp.DType.VARCHAR,
    Kind.DATE: exp.DType.DATE,
    Kind.TIMESTAMP: exp.DType.TIMESTAMP,
}

_LARGEST = 10**300
_LARGEST_WHOLE = 2**63 - 1
"""The largest numbers that may be typed, with a point and without."""

_SAMPLES: dict[Kind, tuple[Any, ...]] = {
    Kind.INTEGER: (7, -(10**38), 10**38),
    Kind.DECIMAL: (0.125, -1.7e308, 5e-324),
    Kind.BOOLEAN: (False, True, False),
    Kind.TEXT: ("it's", "", "x"),
    Kind.DATE: (date(2024, 2, 29), date.min, date.max),
    Kind.TIMESTAMP: (datetime(2024, 2, 29, 12, 30, 0, 5), datetime.min, datetime.max),
}
"""What a value of each kind may turn out to be: an ordinary one, and the ends."""


def may_be_nested(tree: exp.Expr) -> bool:
    """Whether a sub-query stands in a condition, or a name of WITH beside a table."""
    if any(where.find(exp.Subquery, exp.In) for where in tree.find_all(exp.Where)):
        return True
    joins = list(tree.find_all(exp.Join))
    return bool(joins) and (
        tree.args.get("with_") is not None or any(isinstance(j.this, exp.Subquery) for j in joins)
    )


def list_samples(kinds: Sequence[Sequence[Kind]], asked: Sequence[First]) -> Iterator[Given]:
    """What questions in conditions might answer, some ways; those that give lists also nothing.

    ``kinds`` are those of the columns of each.  A statement that can be read with all of these can
    be read with what is released.
    """
    for number in range(3):
        yield [
            _sample_groups(own, number)
            if first.keys
            else ([] if number == 1 else _SAMPLES[own[0]])
            if first.listed
            else _SAMPLES[own[0]][number : number + 1]
            for own, first in zip(kinds, asked, strict=True)
        ]


def _sample_groups(kinds: Sequence[Kind], number: int) -> list[tuple[Any, ...]]:
    """Rows of keys and a value, the value one of the three; in the second way no row."""
    keys = [_SAMPLES[kind] for kind in kinds[:-1]]
    value = _SAMPLES[kinds[-1]][number]
    return [] if number == 1 else [(*(key[n] for key in keys), value) for n in (0, 2)]


def read_nested(
    tree: exp.Expr, read: Read, catalogue: Catalogue, given: Given | None
) -> Statement | None:
    """The statement of ``tree`` and of the questions in its conditions; None if it has none.

    With what they have ``given``, their answers stand in their places.
    """
    root = tree.copy()
    _look_up_single_rows(root)
    look_up_groups(root)
    found = _find_asked(root, read)
    if not found or (given is not None and len(given) != len(found)):
        return None
    if given is not None:
        around = read(_fill(root, found, [list(values) for values in given]))
        return replace(around, questions=_join_questions(around, [f.asked for f in found])[0])
    kinds = [_kind_of(one.asked, catalogue) for one in found]
    if None not in kinds:  # a value, unlike NULL, must be of the right kind
        sampled = [
            [(*one.grouped.outside, _SAMPLES[kind][0])] if one.grouped else _SAMPLES[kind][:1]
            for one, kind in zip(found, kinds, strict=True)
            if kind is not None
        ]
        read(_fill(root, found, sampled))
    around = read(_fill(root, found, [[None] for _ in found], kinds))
    if around.levels:
        return None
    questions, numbers = _join_questions(around, [one.asked for one in found])
    first = tuple(
        First(one.asked, own, isinstance(one.part, exp.In), one.keys)
        for one, own in zip(found, numbers, strict=True)
    )
    return replace(around, questions=questions, first=first)


@dataclass(frozen=True, slots=True)
class Asked:
    """A sub-query of a condition that is a statement of its own; ``grouped``: for each group."""

    part: exp.Expr
    asked: Statement
    grouped: Grouped | None = None

    @property
    def keys(self) -> int:
        """How many columns say of which group the last one is."""
        return 0 if self.grouped is None else len(self.grouped.outside)


def _join_questions(
    around: Statement, inside: list[Statement]
) -> tuple[tuple[Any, ...], list[tuple[int, ...]]]:
    """All questions, each once; and which of them each of the inner statements asks."""
    questions = list(around.questions)
    for statement in inside:
        questions += [q for q in statement.questions if q not in questions]
    numbers = [tuple(questions.index(q) for q in statement.questions) for statement in inside]
    return tuple(questions), numbers


def _find_asked(root: exp.Expr, read: Read) -> list[Asked]:
    """Sub-queries in conditions on rows that are questions of their own, the outermost of each."""
    found: list[Asked] = []
    inside: set[int] = set()
    for part in [part for part in root.walk() if _is_part(part)]:
        asked = None if id(part) in inside else _ask(part, root, read) or _group(part, root, read)
        if asked is not None:
            found.append(asked)
            inside |= {id(node) for node in part.walk()}
    return found


def _is_part(node: exp.Expr) -> bool:
    within = node.find_ancestor(exp.Where, exp.Select)
    if not isinstance(within, exp.Where):
        return False
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Join)


def _ask(part: exp.Expr, root: exp.Expr, read: Read) -> Asked | None:
    """The statement inside, if it depends on no row outside and has one column."""
    query = part.args["query"].this if isinstance(part, exp.In) else part.this
    if not isinstance(query, exp.Query):
        return None
    asked = _read_alone(query, root, read)
    if asked is None or not _has_one_column(query):
        return None
    return Asked(part, asked) if isinstance(part, exp.In) or _has_one_row(query, asked) else None


def _group(part: exp.Expr, root: exp.Expr, read: Read) -> Asked | None:
    """The statement inside for all groups, if it depends on the group of the row outside alone."""
    grouped = None if isinstance(part, exp.In) else group_correlated(part.this)
    asked = None if grouped is None else _read_alone(grouped.query, root, read)
    if asked is None or not has_few_groups(asked):
        return None
    return Asked(part, asked, grouped)


def _read_alone(query: exp.Query, root: exp.Expr, read: Read) -> Statement | None:
    """A sub-query as a statement with nothing around it."""
    try:
        asked = read(_with_commons(query.copy(), root))
    except QuestionRefusal:
        return None
    plain = bool(asked.questions) and not asked.accounts and not asked.listed
    return asked if plain and asked.spend is None and not asked.levels and not asked.ends else None


def _has_one_column(query: exp.Query) -> bool:
    return len(query.selects) == 1 and not query.selects[0].is_star


def _has_one_row(query: exp.Query, asked: Statement) -> bool:
    """Whether nothing that is released can make it more than one: seen before it is paid for."""
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression == exp.Literal.number(1):
        return True
    return query.find(exp.SetOperation) is None and not any(q.keys for q in asked.questions)


def _kind_of(asked: Statement, catalogue: Catalogue) -> Kind | None:
    """Of which kind its value, the last column, is, where one question answers it."""
    carried = () if asked.trace is None else asked.trace.carried
    if not carried or not carried[-1]:
        return Kind.DECIMAL if carried else None
    origin = carried[-1][0]
    columns = list_columns(asked.questions[origin.question], catalogue)
    kind = next(c.kind for c in columns if c.name == origin.column)
    whole = origin.scale.denominator == origin.shift.denominator == 1
    return kind if kind is not Kind.INTEGER or whole else Kind.DECIMAL


def _fill(
    root: exp.Expr,
    found: list[Asked],
    given: Sequence[Sequence[Any]],
    kinds: Sequence[Kind | None] | None = None,
) -> exp.Expr:
    """A copy of ``root`` with values in the places of what was found in it."""
    places = {id(node): number for number, node in enumerate(root.walk())}
    copy = root.copy()
    twins = list(copy.walk())
    for number, one in enumerate(found):
        twin = twins[places[id(one.part)]]
        kind = None if kinds is None else kinds[number]
        if one.grouped is not None and kinds is None:
            rows = [[_write(value, None) for value in row] for row in given[number]]
            twin.replace(exp.paren(write_cases(one.grouped.outside, rows), copy=False))
            continue
        values = [_write(value, kind) for value in given[number]]
        if isinstance(twin, exp.In):
            listed: exp.Expr = exp.false()
            if values and isinstance(values[0].unnest(), exp.Null | exp.Cast) and kinds is not None:
                listed = exp.EQ(this=twin.this.copy(), expression=values[0])
            elif values:
                listed = exp.In(this=twin.this.copy(), expressions=values)
            twin.replace(listed)
        else:
            twin.replace(values[0] if values else exp.Null())
    return _drop_commons(copy)


def _write(value: Any, kind: Kind | None) -> exp.Expr:
    if isinstance(value, exp.Expr):  # the key outside itself, before any is released
        return value.copy()
    if value is None and kind in _TYPES:
        to = exp.DataType(this=_TYPES[kind], nested=False)
        written: exp.Expr = exp.Cast(this=exp.Null(), to=to)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        written = _write_number(value)
    else:
        written = write_value(value) or exp.Null()
    written.meta[RELEASED] = True
    return written


def _write_number(value: int | float) -> exp.Expr:
    """A released number, whatever it is, as one that may be typed.

    What is beyond all numbers that may be typed is the largest of them: it is beyond every value
    in a table all the same.
    """
    if isinstance(value, float) and not isfinite(value):
        return exp.Null()
    most = min(abs(value), _LARGEST)
    digits = repr(float(most))
    if isinstance(value, int) and most <= _LARGEST_WHOLE:
        digits = str(most)
    literal = exp.Literal.number(digits)
    return exp.Neg(this=literal) if value < 0 else literal


def _look_up_single_rows(root: exp.Expr) -> None:
    """``FROM visits, m WHERE cost > m.x`` compares with ``(SELECT x FROM m)``.

    Of a WITH that aggregates everything there is one row.
    """
    clause = root.args.get("with_")
    single = {
        cte.alias.casefold(): cte
        for cte in (clause.expressions if clause is not None else ())
        if isinstance(cte.this, exp.Select) and cte.this.args.get("group") is None
    }
    for join in list(root.args.get("joins") or ()):
        name = join.this.alias_or_name
        said = {key for key, value in join.args.items() if value}
        crossed = said == {"this"} or (said == {"this", "kind"} and join.args["kind"] == "CROSS")
        table = join.this
        plain = isinstance(table, exp.Table) and table.name.casefold() in single
        if not crossed or not plain or root.args.get("where") is None:
            continue
        for column in list(root.find_all(exp.Column)):
            if column.table.casefold() == name.casefold():
                query = exp.Select(
                    expressions=[exp.column(column.this.copy())],
                    from_=exp.From(this=exp.Table(this=table.this.copy())),
                )
                column.replace(exp.Subquery(this=query))
        join.pop()


def _with_commons(query: exp.Expr, root: exp.Expr) -> exp.Expr:
    """``query`` with the names of WITH around it that it can see."""
    clause = root.args.get("with_")
    if clause is not None and query.args.get("with_") is None:
        query.set("with_", clause.copy())
    return _drop_commons(query)


def _drop_commons(query: exp.Expr) -> exp.Expr:
    """Without names of WITH that nothing reads any more."""
    clause = query.args.get("with_")
    while clause is not None:
        unread = [
            cte
            for cte in clause.expressions
            if not any(
                table.name.casefold() == cte.alias.casefold()
                and table.find_ancestor(exp.CTE) is not cte
                for table in query.find_all(exp.Table)
            )
        ]
        for cte in unread:
            cte.pop()
        if not clause.expressions:
            query.set("with_", None)
        if not unread:
            break
        clause = query.args.get("with_")
    return query


__all__ = ["MOST_LISTED", "list_samples", "may_be_nested", "read_nested"]
