"""An expression read in three ways: what it can be, how the engine writes it, what it is on a row.

:func:`domain_of` says what an expression can be, given what its columns can be, and
:func:`narrow` what a condition teaches of them; :func:`render` writes it for the
engine; :func:`evaluate` computes on Python values what the engine computes, one row at
a time.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import (
    NULL,
    Domain,
    Kind,
    Value,
    domain_of_values,
    kind_of,
    number_of,
    value_at,
)
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    FUNCTIONS,
    Function,
    Plain,
    as_engine,
    as_kind,
    cast_to,
    plain,
    refuse_depth,
    refuse_kinds,
    sharpen,
    single,
    union,
)
from discreet.question.functions.nodes import Node
from discreet.question.schema import Column

# --- domains -----------------------------------------------------------------------------------


Columns = Mapping[str, Domain]
MOST_NESTING = 60
"""How deep functions may be called within each other."""

_CASE = "CASE WHEN condition THEN a ... ELSE b END"


def find_function(name: str) -> Function:
    """A function of the allow-list, refused if there is none of that name."""
    try:
        return FUNCTIONS[name]
    except KeyError:
        raise QuestionRefusal(
            "Q9",
            f"there is no function {name!r}.",
            why="only functions known to be defined on every row are let through: one that fails "
            "on a person's row tells that they are there.",
            fix=f"use one of {', '.join(sorted(FUNCTIONS))}.",
        ) from None


def find_column(name: str, columns: Mapping[str, Any]) -> Any:
    """What is known of a column, refused if there is none of that name."""
    try:
        return columns[name]
    except KeyError:
        raise QuestionRefusal(
            "Q7",
            f"there is no column {name!r} here.",
            why="what is not declared is not read.",
            fix=f"use one of {', '.join(sorted(columns))}.",
        ) from None


def domain_of_literal(value: Value | None) -> Domain:
    """The domain of a constant: itself."""
    if value is None:
        return NULL
    kind = kind_of(value)
    if kind is Kind.INTEGER and not -(2**63) <= value < 2**63:  # type: ignore[operator]
        kind, value = Kind.DECIMAL, Fraction(value)  # type: ignore[arg-type]
    if isinstance(value, Fraction):
        nearest = number_of(value)
        if nearest is None:
            raise QuestionRefusal(
                "Q31",
                "a number is too large to be computed with.",
                why="what the engine cannot hold it could fail on.",
                fix="use a number below 1e308 in size.",
            )
        value = nearest
    return domain_of_values(kind, (value,), nullable=False)


@lru_cache(maxsize=4096)
def result_of(name: str, domains: tuple[Domain, ...]) -> Domain:
    """What a function gives on arguments in ``domains``; a pure function, asked for repeatedly."""
    function = find_function(name)
    # ``beyond`` takes no part in comparisons, so it must not be remembered either.
    return replace(sharpen(function, domains, function.domain(domains)), beyond=None)


def domain_of(expression: Expression, columns: Columns, *, depth: int = 0) -> Domain:
    """What the value of ``expression`` can be, on any row at all.

    >>> age = Domain(Kind.INTEGER, Fraction(0), Fraction(120))
    >>> decade = Call("floor", (Call("divide", (ColumnRef("age"), Literal(10))),))
    >>> found = domain_of(decade, {"age": age})
    >>> found.kind.value, int(found.low), int(found.high), found.nullable
    ('integer', 0, 12, True)
    """
    if depth > MOST_NESTING:
        refuse_depth()
    match expression:
        case ColumnRef(name=name):
            found: Domain = find_column(name, columns)
            return found
        case Literal(value=value):
            return domain_of_literal(value)
        case Call(function="if", arguments=(condition, a, b)):
            return domain_of(Case(((condition, a),), b), columns, depth=depth)
        case Call(function=name, arguments=arguments):
            domains = tuple(domain_of(a, columns, depth=depth + 1) for a in arguments)
            return result_on(name, domains)
        case Case():
            here = _domain_here(expression, columns, depth)
            if all(domain.beyond is None for domain in columns.values()):
                return here  # its own conditions choose the value on every row
            everywhere = {name: domain.anywhere for name, domain in columns.items()}
            wider = _domain_here(expression, everywhere, depth)
            return replace(here, beyond=wider if wider.kind is here.kind else Domain(here.kind))


def result_on(name: str, domains: tuple[Domain, ...]) -> Domain:
    """What a function gives, here and on rows that a condition shuts out."""
    here = result_of(name, domains)
    if all(d.beyond is None for d in domains):
        return here
    wider = result_of(name, tuple(d.anywhere for d in domains))
    # Computed as a whole number here, it is one there too, or NULL.
    same = wider.kind is here.kind
    return replace(here, beyond=wider if same else Domain(here.kind))


def _domain_here(expression: Expression, columns: Columns, depth: int) -> Domain:
    """What the value can be where ``columns`` hold, and nothing of the rows beyond.

    A CASE gives no branch's ``beyond`` on: computing it in every branch would take twice
    the time at each level of nesting, and a question of 459 characters half a minute.
    """
    if depth > MOST_NESTING:
        refuse_depth()
    match expression:
        case ColumnRef() | Literal():
            return replace(domain_of(expression, columns), beyond=None)
        case Call(function="if", arguments=(condition, a, b)):
            return _domain_here(Case(((condition, a),), b), columns, depth)
        case Call(function=name, arguments=arguments):
            found = tuple(_domain_here(a, columns, depth + 1) for a in arguments)
            return result_of(name, found)
        case Case(branches=branches, otherwise=otherwise):
            return _domain_of_branches(branches, otherwise, columns, depth)


def _domain_of_branches(
    branches: tuple[tuple[Expression, Expression], ...],
    otherwise: Expression,
    columns: Columns,
    depth: int,
) -> Domain:
    """The union of the branches; each is reached only where the conditions say so."""
    results = []
    for condition, value in branches:
        check = _domain_here(condition, columns, depth + 1)
        if check.kind is not Kind.BOOLEAN:
            refuse_kinds(_CASE, (check,))
        results.append(_domain_here(value, _learn(columns, condition, Outcome.TRUE), depth + 1))
        columns = _learn(columns, condition, Outcome.NOT_TRUE)
    results.append(_domain_here(otherwise, columns, depth + 1))
    return union(results, _CASE)


# --- what a condition teaches --------------------------------------------------------------


class Outcome(Enum):
    """What is known of a condition's value."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "false or NULL"


FLIPPED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""What a comparison is with its sides exchanged."""
OPPOSITE = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
}
"""What a comparison is if it is denied."""
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def narrow(columns: Columns, condition: Expression, outcome: Outcome = Outcome.TRUE) -> Columns:
    """What the columns can be on the rows where ``condition`` came out so.

    Only what is certain is learnt: a comparison of a column with a constant, a
    list of constants, a test for NULL, and AND, OR, NOT of these.

    >>> age = Domain(Kind.INTEGER)
    >>> adult = Call("greater_equal", (ColumnRef("age"), Literal(18)))
    >>> narrow({"age": age}, adult)["age"].low
    Fraction(18, 1)
    """
    learnt = _learn(columns, condition, outcome)
    return {
        name: domain if domain is columns[name] else replace(domain, beyond=columns[name].anywhere)
        for name, domain in learnt.items()
    }


def _learn(columns: Columns, condition: Expression, outcome: Outcome) -> Columns:
    true = outcome is Outcome.TRUE
    match condition:
        case ColumnRef(name=name) if name in columns:
            return _boolean(columns, name, outcome)
        case Call(function="and" | "or" as name, arguments=parts):
            every = (name == "and") is true
            return _every(columns, parts, outcome) if every else _any(columns, parts, outcome)
        case Call(function="not", arguments=(part,)):
            if outcome is Outcome.NOT_TRUE:  # then the part is true or NULL
                return columns
            return _learn(columns, part, Outcome.FALSE if true else Outcome.TRUE)
        case Call(function="is_true", arguments=(part,)):
            return _learn(columns, part, Outcome.TRUE if true else Outcome.NOT_TRUE)
        case Call(function="is_null", arguments=(ColumnRef(name=name),)) if not true:
            return {**columns, name: find_column(name, columns).without_null()}
        case Call(function="in", arguments=(ColumnRef(name=name), *options)):
            return _select_listed(columns, name, tuple(options), outcome)
        case Call(function=name, arguments=(ColumnRef() as column, other)) if name in COMPARE:
            return _compare(columns, column.name, name, other, outcome)
        case Call(function=name, arguments=(other, ColumnRef() as column)) if name in COMPARE:
            return _compare(columns, column.name, FLIPPED[name], other, outcome)
        case _:
            return columns


def _every(columns: Columns, parts: tuple[Expression, ...], outcome: Outcome) -> Columns:
    for part in parts:
        columns = _learn(columns, part, outcome)
    return columns


def _any(columns: Columns, parts: tuple[Expression, ...], outcome: Outcome) -> Columns:
    """At least one part came out so: what all of them agree on."""
    ways = [_learn(columns, part, outcome) for part in parts]
    changed = [n for n in columns if all(way[n] is not columns[n] for way in ways)]
    return {**columns, **{n: union([way[n] for way in ways], "OR") for n in changed}}


def _boolean(columns: Columns, name: str, outcome: Outcome) -> Columns:
    domain = columns[name]
    value = outcome is Outcome.TRUE
    if domain.kind is not Kind.BOOLEAN or value not in (domain.values or ()):
        return columns
    nullable = domain.nullable and outcome is Outcome.NOT_TRUE
    return {**columns, name: replace(domain, values=(value,), nullable=nullable)}


def constant_of(expression: Expression) -> Value | None:
    """The value of an expression without columns, if it has one."""
    match expression:
        case ColumnRef():
            return None
        case Literal(value=value):
            return None if value is None else single(domain_of_literal(value))
        case Call(arguments=arguments) if all(constant_of(a) is not None for a in arguments):
            return single(domain_of(expression, {}))
        case _:
            return None


def _select_listed(
    columns: Columns, name: str, options: tuple[Expression, ...], outcome: Outcome
) -> Columns:
    domain: Domain = find_column(name, columns)
    values = [constant_of(option) for option in options]
    nulls = [v for v in values if v is None]
    kinds = {kind_of(v) for v in values if v is not None}
    if kinds != {domain.kind}:
        return columns
    if outcome is Outcome.TRUE:
        kept = [v for v in values if v is not None and domain.contains(v)]
    elif domain.values is not None:
        kept = [v for v in domain.values if v not in values]
    else:
        return columns
    if not kept:  # no row is left: anything is true of it
        return columns
    nullable = domain.nullable and outcome is Outcome.NOT_TRUE
    if nulls and outcome is Outcome.FALSE:
        return columns
    return {**columns, name: domain_of_values(domain.kind, kept, nullable=nullable)}


def _compare(
    columns: Columns, name: str, comparison: str, other: Expression, outcome: Outcome
) -> Columns:
    domain: Domain = find_column(name, columns)
    value = constant_of(other)
    if value is None:
        return columns
    holds = comparison if outcome is Outcome.TRUE else OPPOSITE[comparison]
    nullable = domain.nullable and outcome is Outcome.NOT_TRUE
    known = replace(domain, nullable=nullable)
    if kind_of(value) in (Kind.TEXT, Kind.BOOLEAN):
        known = _among(known, holds, value, lambda v: v)
        if holds == "equal" and domain.values is None and kind_of(value) is domain.kind:
            known = domain_of_values(domain.kind, (value,), nullable=nullable)
    else:
        end = end_of(domain, value)
        if end is not None:
            known = _bound(_among(known, holds, end, number_of), holds, end)
    return {**columns, name: known}


def _among(domain: Domain, holds: str, end: Any, position: Callable[[Value], Any]) -> Domain:
    """Only the listed values that compare so."""
    if domain.values is None:
        return domain
    kept = [v for v in domain.values if COMPARE[holds](position(v), end)]
    return domain_of_values(domain.kind, kept, nullable=domain.nullable) if kept else domain


_EXACT = 2**53
_DAY = 86_400_000_000


def end_of(domain: Domain, value: Value) -> Fraction | None:
    """Where the constant lies on the column's line; None if the comparison is not exact there."""
    number, kinds = number_of(value), (domain.kind, kind_of(value))
    if number is None:
        return None
    if kinds == (Kind.INTEGER, Kind.DECIMAL):
        # The engine compares doubles; whole numbers below 2**53 are exact there.
        return number if abs(number) < _EXACT else None
    if kinds == (Kind.DECIMAL, Kind.INTEGER):
        return as_kind(domain_of_literal(value), Kind.DECIMAL).low
    if kinds == (Kind.TIMESTAMP, Kind.DATE):
        return number * _DAY
    if kinds == (Kind.DATE, Kind.TIMESTAMP):
        return number / _DAY
    return number if kinds[0] is kinds[1] else None


def _bound(domain: Domain, holds: str, end: Fraction) -> Domain:
    low, high = domain.low, domain.high
    whole = domain.kind is not Kind.DECIMAL
    if holds in ("equal", "greater", "greater_equal"):
        least = end
        if whole:
            least = Fraction(math.floor(end) + 1 if holds == "greater" else math.ceil(end))
        low = least if low is None else max(low, least)
    if holds in ("equal", "less", "less_equal"):
        most = end
        if whole:
            most = Fraction(math.ceil(end) - 1 if holds == "less" else math.floor(end))
        high = most if high is None else min(high, most)
    if low is not None and high is not None and low > high:
        return domain  # no row is left: anything is true of it
    if domain.values is None and holds == "equal" and low is not None:
        return domain_of_values(
            domain.kind, (value_at(domain.kind, low),), nullable=domain.nullable
        )
    return replace(domain, low=low, high=high)


# --- what conditions leave ---------------------------------------------------------------------


def list_left(condition: Expression, known: Mapping[str, Domain]) -> dict[str, tuple[Value, ...]]:
    """The values of columns that some part of ``condition`` shuts out, of those it speaks of alone.

    Only of columns whose values are ``known``, and that cannot be NULL on rows where it is true.  A
    CASE says nothing here: in ON of an outer join it shuts out rows and no groups.
    """
    parts: dict[str, list[Expression]] = {}
    for part in _split(condition):
        names = references(part)
        if len(names) == 1 and names <= known.keys() and not isinstance(part, Case):
            parts.setdefault(next(iter(names)), []).append(part)
    found = {}
    for name, own in parts.items():
        values = known[name].list_values()

        def holds(value: Value | None, name: str = name, own: list[Expression] = own) -> bool:
            return all(evaluate(part, {name: plain(value)}) is True for part in own)

        if values is not None and not (known[name].nullable and holds(None)):
            left = tuple(value for value in values if holds(value))
            if left != values:
                found[name] = left
    return found


MOST_WEIGHED = 10_000
"""So many times a value is put into a condition while a question is read, which is free."""


def find_contradiction(condition: Expression, known: Mapping[str, Domain]) -> tuple[int, ...]:
    """Parts of ``condition``, by number, that no value of one column meets together; else none.

    Decided from what is declared and from constants alone, so nobody's row is looked at.  What is
    not found may be a contradiction all the same.  A CASE is let be: in ON of an outer join it
    shuts out rows and no groups.
    """
    parts: dict[str, list[tuple[int, Expression]]] = {}
    for number, part in enumerate(_split(condition)):
        names = references(part)
        if len(names) == 1 and names <= known.keys() and not isinstance(part, Case):
            parts.setdefault(next(iter(names)), []).append((number, part))
    weighed = 0
    for name, own in parts.items():
        values = known[name].list_values()
        weighed += 0 if values is None else len(own) * (1 + len(values))
        if values is None:
            met = _meets_some([part for _, part in own], known[name])
        elif weighed > MOST_WEIGHED:
            continue
        else:
            missing = [None] if known[name].nullable or known[name].is_null else []
            met = any(
                all(evaluate(part, {name: plain(value)}) is True for _, part in own)
                for value in (*values, *missing)
            )
        if not met:
            return tuple(number for number, _ in own)
    return ()


def _meets_some(parts: Sequence[Expression], domain: Domain) -> bool:
    """Whether comparisons with constants leave something of a column that nobody can list."""
    left: set[Value] | None = None
    ends = Ends(domain.low, domain.high)
    null, compared = False, False
    for part in parts:
        match part:
            case Call(function="is_null", arguments=(ColumnRef(),)):
                null = True
                continue
            case Call(function="in", arguments=(ColumnRef(), *options)):
                told = [constant_of(option) for option in options]
                values = {value for value in told if value is not None}
            case Call(function=sign, arguments=(ColumnRef(), other)) if sign in COMPARE:
                value = constant_of(other)
                values = set() if value is None else {value}
                ends = ends if value is None else ends.narrow(sign, end_of(domain, value))
            case Call(function=sign, arguments=(other, ColumnRef())) if sign in COMPARE:
                value = constant_of(other)
                values = set() if value is None else {value}
                sign = FLIPPED[sign]
                ends = ends if value is None else ends.narrow(sign, end_of(domain, value))
            case _:
                continue
        compared = True
        listed = isinstance(part, Call) and part.function in ("equal", "in")
        if listed and values and {kind_of(value) for value in values} == {domain.kind}:
            left = values if left is None else left & values
    return not (ends.empty or left == set() or (null and (compared or not domain.nullable)))


@dataclass(frozen=True, slots=True)
class Ends:
    """Between which numbers something lies; ``open`` ends are not among them."""

    low: Fraction | None
    high: Fraction | None
    open_low: bool = False
    open_high: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing between them."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.open_low or self.open_high))

    def narrow(self, sign: str, end: Fraction | None) -> Ends:
        """What is left of it where a comparison with ``end`` holds."""
        found = self
        if end is None:
            return found
        if sign in ("equal", "greater", "greater_equal"):
            strict = sign == "greater"
            if found.low is None or (end, strict) > (found.low, found.open_low):
                found = replace(found, low=end, open_low=strict)
        if sign in ("equal", "less", "less_equal"):
            strict = sign == "less"
            if found.high is None or (-end, strict) > (-found.high, found.open_high):
                found = replace(found, high=end, open_high=strict)
        return found


def _split(condition: Expression) -> Iterator[Expression]:
    """The conditions that one is the AND of."""
    match condition:
        case Call(function="and", arguments=parts):
            for part in parts:
                yield from _split(part)
        case _:
            yield condition


# --- engine SQL --------------------------------------------------------------------------------


MOST_WRITTEN = 10_000
"""How many nodes the expressions of one statement may have, written out for the engine."""


@dataclass(slots=True)
class Size:
    """How much has been written out for one statement."""

    nodes: int = 0

    def add(self, node: Node) -> None:
        """Count an expression, refused once the statement is larger than anybody meant."""
        self.nodes += sum(1 for _ in node.walk())
        if self.nodes > MOST_WRITTEN:
            refuse_depth()


def references(expression: Expression) -> frozenset[str]:
    """The names of the columns that ``expression`` looks at.

    >>> sorted(references(Call("divide", (ColumnRef("total"), ColumnRef("n")))))
    ['n', 'total']
    """
    match expression:
        case ColumnRef(name=name):
            return frozenset({name})
        case Literal():
            return frozenset()
        case Call(arguments=arguments):
            parts = arguments
        case Case(branches=branches, otherwise=otherwise):
            parts = (*(part for branch in branches for part in branch), otherwise)
    return frozenset().union(*map(references, parts))


def render(
    expression: Expression, columns: Columns, names: Mapping[str, Node] | None = None
) -> Node:
    """The expression for the engine, total on every row; ``names`` are the columns it looks at.

    Without them a column is its name in quotes.

    >>> age = Domain(Kind.INTEGER)
    >>> half = Call("divide", (ColumnRef("v.age"), Literal(2)))
    >>> render(half, {"v.age": age}).sql(nodes.ENGINE)
    '(CAST("v.age" AS DOUBLE) / CAST(CAST(2 AS BIGINT) AS DOUBLE))'
    """
    if names is None:
        names = {name: nodes.quote_column(name) for name in references(expression)}
    return _render(expression, columns, names)[0]


def _render(
    expression: Expression, columns: Columns, names: Mapping[str, Node]
) -> tuple[Node, Domain]:
    match expression:
        case ColumnRef(name=name):
            domain: Domain = find_column(name, columns)
            return names[name].copy(), domain
        case Literal(value=value):
            domain = domain_of_literal(value)
            return nodes.literal(domain.values[0] if domain.values else None), domain
        case Call(function="if", arguments=(condition, a, b)):
            return _render(Case(((condition, a),), b), columns, names)
        case Call(function=name, arguments=arguments):
            function = find_function(name)
            written = [_render(argument, columns, names) for argument in arguments]
            domains = tuple(domain for _, domain in written)
            node = function.render(tuple(node for node, _ in written), domains)
            _refuse_if_large(node)
            return node, result_on(name, domains)
        case Case():
            return _case(expression, columns, names)


def _case(case: Case, columns: Columns, names: Mapping[str, Node]) -> tuple[Node, Domain]:
    branches, known = [], columns
    for condition, value in case.branches:
        check, domain = _render(condition, known, names)
        inside = narrow(known, condition, Outcome.TRUE)
        branches.append((cast_to(check, domain, Kind.BOOLEAN), _render(value, inside, names)))
        known = narrow(known, condition, Outcome.NOT_TRUE)
    otherwise, last = _render(case.otherwise, known, names)
    result = union([*(domain for _, (_, domain) in branches), last], "CASE")
    node = nodes.case(
        *((check, cast_to(value, domain, result.kind)) for check, (value, domain) in branches),
        otherwise=cast_to(otherwise, last, result.kind),
    )
    _refuse_if_large(node)
    return node, domain_of(case, columns)


def _refuse_if_large(node: Node) -> None:
    """A guard names its argument twice, so a deep expression could grow beyond reason."""
    for size, _ in enumerate(node.walk()):
        if size > MOST_WRITTEN:
            refuse_depth()


# --- columns -------------------------------------------------------------------------------


def read_column(column: Column, raw: Node) -> Node:
    """The column through its declaration: whatever ``raw`` is, the value is in its domain.

    NaN and the infinities are NULL, other numbers and dates are clipped to the
    bounds, values that are not allowed are NULL, texts are cut; a column that
    is declared never NULL has its low bound or its first value in NULL's place.
    """
    domain = column.domain
    node = read_kind(column.kind, raw)
    if domain.values is not None and column.kind is not Kind.BOOLEAN:
        allowed = [nodes.literal(value) for value in domain.values]
        node = nodes.case((exp.In(this=nodes.paren(node), expressions=allowed), node.copy()))
    elif column.ends is not None:
        node = nodes.clip(node, *column.ends)
    if not domain.nullable:
        node = nodes.call("COALESCE", node, nodes.literal(column.instead_of_null))
    return node


def read_kind(kind: Kind, raw: Node) -> Node:
    """``raw`` as a value of ``kind``, or NULL: what holds of every value of a kind holds of it."""
    node = nodes.try_cast(raw, kind)
    match kind:
        case Kind.DECIMAL:
            return nodes.finite(node)
        case Kind.DATE | Kind.TIMESTAMP:
            return nodes.in_calendar(node, kind)
        case Kind.TEXT:
            return nodes.shorten(node)
        case _:
            return node


# --- values ------------------------------------------------------------------------------------


def evaluate(
    expression: Expression, row: Mapping[str, Plain], columns: Columns | None = None
) -> Plain:
    """The value of ``expression`` on ``row``; a decimal is a float, NULL is None.

    With ``columns``, whole numbers become doubles exactly where the engine's
    do; without, they stay exact, as is wanted of released values.

    >>> ratio = Call("divide", (ColumnRef("total"), ColumnRef("n")))
    >>> evaluate(ratio, {"total": 30, "n": 4}), evaluate(ratio, {"total": 30, "n": 0})
    (7.5, None)
    """
    match expression:
        case ColumnRef(name=name):
            return plain(find_column(name, row))
        case Literal(value=value):
            return plain(value)
        case Call(function="if", arguments=(condition, a, b)):
            return evaluate(Case(((condition, a),), b), row, columns)
        case Call(function=name, arguments=arguments):
            values = [evaluate(argument, row, columns) for argument in arguments]
            kind = None if columns is None else domain_of(expression, columns).kind
            result = find_function(name).evaluate(*(as_engine(v, kind) for v in values))
            return as_engine(result, kind)
        case Case():
            kind = None if columns is None else domain_of(expression, columns).kind
            return as_engine(_choose(expression, row, columns), kind)


def _choose(case: Case, row: Mapping[str, Plain], columns: Columns | None) -> Plain:
    """The value of the branch taken, computed with what the conditions taught about it."""
    for condition, value in case.branches:
        if evaluate(condition, row, columns) is True:
            return evaluate(value, row, columns and narrow(columns, condition, Outcome.TRUE))
        columns = columns and narrow(columns, condition, Outcome.NOT_TRUE)
    return evaluate(case.otherwise, row, columns)
