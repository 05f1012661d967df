"""How a function is declared: its domain rule, its meaning in the engine, its meaning in Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any, NoReturn

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import (
    LISTED_MOST,
    Domain,
    Kind,
    Value,
    domain_of_values,
    to_double,
)
from discreet.question.functions import nodes
from discreet.question.functions.nodes import Node

Domains = tuple[Domain, ...]
Nodes = tuple[Node, ...]
Plain = Any
"""A value as the engine has it: a decimal is a float; dates and timestamps are Python's."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the allow-list.

    ``domain`` refuses arguments of the wrong kind and else states what the
    result can be; ``render`` writes it for the engine, given the same domains;
    ``evaluate`` is the same function on Python values (None is NULL, a decimal
    a float), used on released values and to list the values of a result.

    ``listable`` says of which argument values ``evaluate`` and the engine are
    known to agree to the last bit, so that listing the results is a theorem.
    """

    name: str
    usage: str
    meaning: str
    domain: Callable[[Domains], Domain]
    render: Callable[[Nodes, Domains], Node]
    evaluate: Callable[..., Plain]
    listable: Callable[[Value], bool] = lambda _: True


FUNCTIONS: dict[str, Function] = {}
"""Every function an expression may call, by name."""


def declare(function: Function) -> Function:
    """Enter a function in the allow-list."""
    if function.name in FUNCTIONS:
        raise KeyError(f"{function.name} is declared twice")
    FUNCTIONS[function.name] = function
    return function


# --- refusals ------------------------------------------------------------------------------


def refuse_kinds(usage: str, domains: Domains) -> NoReturn:
    """Refuse arguments that the function does not take."""
    given = ", ".join("NULL" if d.is_null else d.kind.value for d in domains) or "nothing"
    raise QuestionRefusal(
        "Q10",
        f"{usage} was given {given}.",
        why="a function is defined for every row or not at all: guessing what was meant could "
        "fail on one person's row and so tell that they are there.",
        fix=f"call it as {usage}, with a CAST where the kind differs.",
    )


def refuse_depth() -> NoReturn:
    """Refuse an expression that would be written out at a size nobody meant."""
    raise QuestionRefusal(
        "Q3",
        "the expression is nested too deeply.",
        why="a statement that exhausts the engine answers nobody.",
        fix="compute the inner part in a sub-query and name it.",
    )


# --- kinds ---------------------------------------------------------------------------------


def check_kinds(domains: Domains, usage: str, *kinds: Kind | tuple[Kind, ...]) -> None:
    """Refuse unless there is one argument for each of ``kinds``, of that kind or NULL."""
    if len(domains) != len(kinds):
        refuse_kinds(usage, domains)
    for domain, allowed in zip(domains, kinds, strict=True):
        options = allowed if isinstance(allowed, tuple) else (allowed,)
        if not domain.is_null and domain.kind not in options:
            refuse_kinds(usage, domains)


NUMBER = (Kind.INTEGER, Kind.DECIMAL)
TIME = (Kind.DATE, Kind.TIMESTAMP)


def common_kind(domains: Sequence[Domain], usage: str) -> Kind:
    """The one kind that all values fit in: integers among decimals, dates among timestamps."""
    kinds = {d.kind for d in domains if not d.is_null}
    if not kinds:
        return Kind.BOOLEAN
    if len(kinds) == 1:
        return kinds.pop()
    if kinds == set(NUMBER):
        return Kind.DECIMAL
    if kinds == set(TIME):
        return Kind.TIMESTAMP
    refuse_kinds(usage, tuple(domains))


_DAY = 86_400_000_000


def as_kind(domain: Domain, kind: Kind) -> Domain:
    """The same values seen as ``kind``, which is theirs or wider (see :func:`common_kind`)."""
    if domain.kind is kind:
        return domain
    if domain.is_null:
        return replace(domain, kind=kind)
    if kind is Kind.DECIMAL:  # the nearest double is monotone, so it maps bounds to bounds
        values = None
        if domain.values is not None:
            values = tuple(Fraction(float(v)) for v in domain.values)  # type: ignore[arg-type]
        low, high = (None if b is None else to_double(b) for b in (domain.low, domain.high))
        return replace(domain, kind=kind, low=low, high=high, values=values)
    low, high = (None if b is None else b * _DAY for b in (domain.low, domain.high))
    return Domain(kind, low, high, domain.nullable)


def anywhere(domains: Domains) -> Domains:
    """The arguments on any row an engine may compute on, also one that a condition shuts out."""
    return tuple(d.anywhere for d in domains)


def cast_to(node: Node, domain: Domain, kind: Kind) -> Node:
    """The node as ``kind``; widening cannot fail."""
    if domain.is_null:
        return nodes.make_null(kind)
    return node if domain.kind is kind else nodes.cast(node, kind)


def union(domains: Sequence[Domain], usage: str) -> Domain:
    """The domain of a value that comes from one of ``domains``."""
    kind = common_kind(domains, usage)
    same = [as_kind(d, kind) for d in domains]
    some = [d for d in same if not d.is_null]
    nullable = any(d.nullable for d in same)
    if not some:
        return replace(same[0], nullable=True)
    if all(d.values is not None for d in some):
        values = tuple(dict.fromkeys(v for d in some for v in d.values or ()))
        if len(values) <= LISTED_MOST:
            return domain_of_values(kind, values, nullable=nullable)
    lows, highs = [d.low for d in some], [d.high for d in some]
    return Domain(
        kind,
        low=None if None in lows else min(low for low in lows if low is not None),
        high=None if None in highs else max(high for high in highs if high is not None),
        nullable=nullable,
    )


def union_beyond(left: Domain, right: Domain, usage: str) -> Domain:
    """The same of two, with what each can be where a condition that was learnt does not hold."""
    here = union([left, right], usage)
    if left.beyond is None and right.beyond is None:
        return here
    return replace(here, beyond=union([left.anywhere, right.anywhere], usage))


# --- values --------------------------------------------------------------------------------


def plain(value: Value | float | None) -> Plain:
    """A constant as the engine has it."""
    return float(value) if type(value) is Fraction else value  # faster than asking for a subclass


def constant(value: Plain, kind: Kind) -> Value:
    """A value of the engine as a public constant of ``kind``."""
    return Fraction(value) if kind is Kind.DECIMAL else value


def finite(value: float | None) -> float | None:
    """The number, or None if it is infinite or not a number."""
    return value if value is not None and math.isfinite(value) else None


def strict(function: Callable[..., Plain]) -> Callable[..., Plain]:
    """NULL in, NULL out; an arithmetic failure is NULL too."""

    def total(*values: Plain) -> Plain:
        if any(v is None for v in values):
            return None
        try:
            result = function(*map(plain, values))
        except (ArithmeticError, ValueError):
            return None
        return finite(result) if isinstance(result, float) else result

    return total


def to_one_kind(*values: Plain) -> tuple[Plain, ...]:
    """The values as one kind, as the engine compares them: doubles, or timestamps, if any is."""
    known = tuple(plain(v) for v in values)
    if any(isinstance(v, float) for v in known):
        return tuple(as_engine(v, Kind.DECIMAL) for v in known)
    if any(isinstance(v, datetime) for v in known):
        return tuple(as_engine(v, Kind.TIMESTAMP) for v in known)
    return known


def single(domain: Domain) -> Value | None:
    """The one value of a constant argument, if it is one."""
    if domain.values is not None and len(domain.values) == 1 and not domain.nullable:
        return domain.values[0]
    return None


def sharpen(function: Function, domains: Domains, rule: Domain) -> Domain:
    """``rule``, made exact by listing the results when all argument values can be listed."""
    listed = [d.list_values() for d in domains]
    if not domains or None in listed:
        return rule
    choices: list[tuple[Value | None, ...]] = [
        (*(values or ()), *([None] if d.nullable else []))
        for values, d in zip(listed, domains, strict=True)
    ]
    if math.prod(map(len, choices)) > LISTED_MOST:
        return rule
    if not all(function.listable(v) for row in choices for v in row if v is not None):
        return rule
    results = _evaluate(function, rule, choices)
    found = [constant(r, rule.kind) for r in results if r is not None]
    if rule.kind is not Kind.TEXT and any(d.values is None for d in domains):
        found.sort()  # nobody declared an order
    return domain_of_values(rule.kind, found, nullable=None in results)


def _evaluate(
    function: Function, rule: Domain, choices: list[tuple[Value | None, ...]]
) -> list[Plain]:
    """The results of a function, in the order of its arguments; of a condition, until all are seen.

    True and false are soon found, and NULL, if it can be, most often where an argument is NULL.
    """

    def value(row: tuple[Value | None, ...]) -> Plain:
        return as_engine(function.evaluate(*(as_engine(v, rule.kind) for v in row)), rule.kind)

    if rule.kind is not Kind.BOOLEAN:
        return [value(row) for row in itertools.product(*choices)]
    unknown = not rule.nullable or any(
        value(row) is None for row in itertools.product(*choices) if None in row
    )
    seen: dict[Plain, None] = {}
    for row in itertools.product(*choices):
        seen.setdefault(value(row))
        if unknown and True in seen and False in seen:
            break
    return [*seen, *([None] if rule.nullable and unknown and None not in seen else [])]


def as_engine(value: Plain, kind: Kind | None) -> Plain:
    """A value as the engine has it where ``kind`` is computed: numbers widened, dates too."""
    if kind is Kind.DECIMAL and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return None
    if kind is Kind.TIMESTAMP and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return plain(value)
