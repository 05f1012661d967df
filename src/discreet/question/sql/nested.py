"""Questions inside the conditions of others: asked first, and constants from then on.

``WHERE cost > (SELECT AVG(cost) FROM visits)`` compares each row with a number that is about
everybody.  Asked by itself, that number is a question with a price; once it is released it is a
constant like any other, and so is a released list in ``x IN (SELECT ...)``.  Before, a NULL of
its kind stands in its place: enough to say what all of it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from math import isfinite
from typing import Any

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Kind
from discreet.question.sql.public_queries import write_value
from discreet.question.sql.scalars import RELEASED
from discreet.question.statement import First, Statement, list_columns

Given = Sequence[Sequence[Any]]
"""What the questions inside have answered, in the order in which they stand."""

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
    return tree.args.get("with_") is not None and tree.find(exp.Join) is not None


def list_samples(kinds: Sequence[Kind], listed: Sequence[bool]) -> Iterator[Given]:
    """What questions in conditions might answer, some ways; those that give lists also nothing.

    A statement that can be read with all of these can be read with what is released.
    """
    for number in range(3):
        yield [
            ([] if number == 1 else _SAMPLES[kind]) if many else _SAMPLES[kind][number : number + 1]
            for kind, many in zip(kinds, listed, strict=True)
        ]


def read_nested(
    tree: exp.Expr, read: Read, catalogue: Catalogue, given: Given | None
) -> Statement | None:
    """The statement of ``tree`` and of the questions in its conditions; None if it has none.

    With what they have ``given``, their answers stand in their places.
    """
    root = tree.copy()
    _look_up_single_rows(root)
    found = _find_asked(root, read)
    if not found or (given is not None and len(given) != len(found)):
        return None
    if given is not None:
        around = read(_fill(root, found, [list(values) for values in given]))
        return replace(around, questions=_join_questions(around, [s for _, s in found])[0])
    kinds = [_kind_of(asked, catalogue) for _, asked in found]
    if None not in kinds:  # a value, unlike NULL, must be of the right kind
        read(_fill(root, found, [_SAMPLES[kind][:1] for kind in kinds if kind is not None]))
    around = read(_fill(root, found, [[None] for _ in found], kinds))
    if around.levels:
        return None
    questions, numbers = _join_questions(around, [asked for _, asked in found])
    first = tuple(
        First(asked, own, isinstance(part, exp.In))
        for (part, asked), own in zip(found, numbers, strict=True)
    )
    return replace(around, questions=questions, first=first)


def _join_questions(
    around: Statement, inside: list[Statement]
) -> tuple[tuple[Any, ...], list[tuple[int, ...]]]:
    """All questions, each once; and which of them each of the inner statements asks."""
    questions = list(around.questions)
    for statement in inside:
        questions += [q for q in statement.questions if q not in questions]
    numbers = [tuple(questions.index(q) for q in statement.questions) for statement in inside]
    return tuple(questions), numbers


def _find_asked(root: exp.Expr, read: Read) -> list[tuple[exp.Expr, Statement]]:
    """Sub-queries in conditions on rows that are questions of their own, the outermost of each."""
    found: list[tuple[exp.Expr, Statement]] = []
    inside: set[int] = set()
    for part in [part for part in root.walk() if _is_part(part)]:
        asked = None if id(part) in inside else _ask(part, root, read)
        if asked is not None:
            found.append((part, asked))
            inside |= {id(node) for node in part.walk()}
    return found


def _is_part(node: exp.Expr) -> bool:
    within = node.find_ancestor(exp.Where, exp.Select)
    if not isinstance(within, exp.Where):
        return False
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Join)


def _ask(part: exp.Expr, root: exp.Expr, read: Read) -> Statement | None:
    """The statement inside, if it depends on no row outside and has one column."""
    query = part.args["query"].this if isinstance(part, exp.In) else part.this
    if not isinstance(query, exp.Query):
        return None
    alone = _with_commons(query.copy(), root)
    try:
        asked = read(alone)
    except QuestionRefusal:
        return None
    plain = bool(asked.questions) and not asked.accounts and not asked.listed
    simple = plain and asked.spend is None and not asked.levels and not asked.ends
    fits = _has_one_column(query) and (isinstance(part, exp.In) or _has_one_row(query, asked))
    return asked if simple and fits else None


def _has_one_column(query: exp.Query) -> bool:
    return len(query.selects) == 1 and not query.selects[0].is_star


def _has_one_row(query: exp.Query, asked: Statement) -> bool:
    """Whether nothing that is released can make it more than one: seen before it is paid for."""
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression == exp.Literal.number(1):
        return True
    return query.find(exp.SetOperation) is None and not any(q.keys for q in asked.questions)


def _kind_of(asked: Statement, catalogue: Catalogue) -> Kind | None:
    """Of which kind its value is, where it is a column of one question's answer."""
    carried = () if asked.trace is None else asked.trace.carried
    if len(carried) != 1 or not carried[0]:
        return Kind.DECIMAL if len(carried) == 1 else None
    origin = carried[0][0]
    columns = list_columns(asked.questions[origin.question], catalogue)
    kind = next(c.kind for c in columns if c.name == origin.column)
    whole = origin.scale.denominator == origin.shift.denominator == 1
    return kind if kind is not Kind.INTEGER or whole else Kind.DECIMAL


def _fill(
    root: exp.Expr,
    found: list[tuple[exp.Expr, Statement]],
    given: Sequence[Sequence[Any]],
    kinds: Sequence[Kind | None] | None = None,
) -> exp.Expr:
    """A copy of ``root`` with values in the places of what was found in it."""
    places = {id(node): number for number, node in enumerate(root.walk())}
    copy = root.copy()
    twins = list(copy.walk())
    for number, (part, _) in enumerate(found):
        twin = twins[places[id(part)]]
        kind = None if kinds is None else kinds[number]
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
