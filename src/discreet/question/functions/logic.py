"""Comparisons and three-valued logic, choices, membership and patterns."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from discreet.question.domain import Domain, Kind, boolean
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    Domains,
    Function,
    Nodes,
    Plain,
    as_kind,
    cast_to,
    check_kinds,
    common_kind,
    declare,
    plain,
    refuse_kinds,
    single,
    strict,
    to_one_kind,
    union,
)
from discreet.question.functions.nodes import Node

# --- and, or, not --------------------------------------------------------------------------


def _connective(name: str, meaning: str, node: type[exp.Connector], *, deciding: bool) -> None:
    """Declare AND (decided by one false) or OR (decided by one true)."""
    usage = f"a {name.upper()} b"

    def rule(domains: Domains) -> Domain:
        if not domains:
            refuse_kinds(usage, domains)
        check_kinds(domains, usage, *[Kind.BOOLEAN] * len(domains))
        return boolean(nullable=any(d.nullable for d in domains))

    def render(arguments: Nodes, domains: Domains) -> Node:
        parts = [cast_to(n, d, Kind.BOOLEAN) for n, d in zip(arguments, domains, strict=True)]
        # Paired like a tournament: a chain of a thousand would be a thousand parentheses deep.
        while len(parts) > 1:
            paired = [
                nodes.infix(node, a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)
            ]
            parts = [*paired, *parts[2 * len(paired) :]]
        return parts[0]

    def evaluate(*values: bool | None) -> bool | None:
        if deciding in values:
            return deciding
        return None if None in values else not deciding

    declare(Function(name, usage, meaning, rule, render, evaluate))


_connective("and", "whether all are true; decided by one that is false", exp.And, deciding=False)
_connective("or", "whether any is true; decided by one that is true", exp.Or, deciding=True)


def _of_boolean(usage: str, *, keeps_null: bool) -> Callable[[Domains], Domain]:
    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, Kind.BOOLEAN)
        return boolean(nullable=keeps_null and domains[0].nullable)

    return rule


declare(
    Function(
        "not",
        "NOT a",
        "whether it is false; NULL for NULL",
        _of_boolean("NOT a", keeps_null=True),
        lambda arguments, domains: exp.Paren(
            this=exp.Not(this=nodes.paren(cast_to(arguments[0], domains[0], Kind.BOOLEAN)))
        ),
        strict(operator.not_),
    )
)
declare(
    Function(
        "is_true",
        "a IS TRUE",
        "whether it is true; false for NULL",
        _of_boolean("a IS TRUE", keeps_null=False),
        lambda arguments, domains: nodes.call(
            "COALESCE", cast_to(arguments[0], domains[0], Kind.BOOLEAN), exp.false()
        ),
        lambda value: value is True,
    )
)


def _one_of_any(usage: str) -> Callable[[Domains], Domain]:
    def rule(domains: Domains) -> Domain:
        if len(domains) != 1:
            refuse_kinds(usage, domains)
        domain = boolean(nullable=False)
        return domain if domains[0].nullable else replace(domain, values=(False,))

    return rule


declare(
    Function(
        "is_null",
        "a IS NULL",
        "whether it is NULL",
        _one_of_any("a IS NULL"),
        lambda arguments, _: exp.Paren(
            this=exp.Is(this=nodes.paren(arguments[0]), expression=exp.Null())
        ),
        lambda value: value is None,
    )
)


# --- comparisons ---------------------------------------------------------------------------


def _comparison(
    name: str, sign: str, node: type[exp.Binary], compare: Callable[[Any, Any], bool]
) -> None:
    usage = f"a {sign} b"

    def rule(domains: Domains) -> Domain:
        if len(domains) != 2:
            refuse_kinds(usage, domains)
        common_kind(domains, usage)
        return boolean(nullable=any(d.nullable for d in domains))

    def render(arguments: Nodes, domains: Domains) -> Node:
        kind = common_kind(domains, usage)
        a, b = (cast_to(n, d, kind) for n, d in zip(arguments, domains, strict=True))
        return nodes.infix(node, a, b)

    def evaluate(a: Plain, b: Plain) -> bool:
        return compare(*to_one_kind(a, b))

    declare(Function(name, usage, f"whether a {sign} b", rule, render, strict(evaluate)))


_comparison("equal", "=", exp.EQ, operator.eq)
_comparison("not_equal", "<>", exp.NEQ, operator.ne)
_comparison("less", "<", exp.LT, operator.lt)
_comparison("less_equal", "<=", exp.LTE, operator.le)
_comparison("greater", ">", exp.GT, operator.gt)
_comparison("greater_equal", ">=", exp.GTE, operator.ge)

_IN = "a IN (constant, ...)"


def _in_rule(domains: Domains) -> Domain:
    if len(domains) < 2 or any(single(d) is None and not d.is_null for d in domains[1:]):
        refuse_kinds(_IN, domains)
    common_kind(domains, _IN)
    return boolean(nullable=any(d.nullable for d in domains))


def _in_render(arguments: Nodes, domains: Domains) -> Node:
    kind = common_kind(domains, _IN)
    first, *others = (cast_to(n, d, kind) for n, d in zip(arguments, domains, strict=True))
    return exp.Paren(this=exp.In(this=nodes.paren(first), expressions=others))


def _in(value: Plain, *options: Plain) -> bool | None:
    if value is None:
        return None
    for option in options:
        if option is not None:
            a, b = to_one_kind(plain(value), plain(option))
            if a == b:
                return True
    return None if None in options else False


declare(
    Function(
        "in", _IN, "whether a is one of the constants; NULL for NULL", _in_rule, _in_render, _in
    )
)


# --- choices -------------------------------------------------------------------------------

_COALESCE = "COALESCE(a, b, ...)"


def _coalesce_rule(domains: Domains) -> Domain:
    if not domains:
        refuse_kinds(_COALESCE, domains)
    common_kind(domains, _COALESCE)
    reached = []
    for domain in domains:  # what stands after a value that is never NULL is never reached
        reached.append(domain)
        if not domain.nullable:
            break
    kind = common_kind(domains, _COALESCE)
    result = union([as_kind(d, kind) for d in reached], _COALESCE)
    return replace(result, nullable=all(d.nullable for d in reached))


def _coalesce_render(arguments: Nodes, domains: Domains) -> Node:
    kind = _coalesce_rule(domains).kind
    same = [cast_to(n, d, kind) for n, d in zip(arguments, domains, strict=True)]
    return nodes.call("COALESCE", *same) if len(same) > 1 else same[0]


def _coalesce(*values: Plain) -> Plain:
    return next((v for v in to_one_kind(*values) if v is not None), None)


declare(
    Function(
        "coalesce",
        _COALESCE,
        "the first value that is not NULL",
        _coalesce_rule,
        _coalesce_render,
        _coalesce,
    )
)

_NULLIF = "NULLIF(a, b)"


def _nullif_rule(domains: Domains) -> Domain:
    if len(domains) != 2:
        refuse_kinds(_NULLIF, domains)
    common_kind(domains, _NULLIF)
    return replace(domains[0], nullable=True)


def _nullif_render(arguments: Nodes, domains: Domains) -> Node:
    kind = common_kind(domains, _NULLIF)
    a, b = (cast_to(n.copy(), d, kind) for n, d in zip(arguments, domains, strict=True))
    equal = exp.EQ(this=nodes.paren(a), expression=nodes.paren(b))
    own = cast_to(arguments[0], domains[0], domains[0].kind)
    return nodes.case((equal, nodes.make_null(domains[0].kind)), otherwise=own)


def _nullif(a: Plain, b: Plain) -> Plain:
    return None if a is not None and b is not None and operator.eq(*to_one_kind(a, b)) else a


declare(
    Function("nullif", _NULLIF, "a, or NULL if a equals b", _nullif_rule, _nullif_render, _nullif)
)

_IF = "IF(condition, a, b)"


def _if_rule(domains: Domains) -> Domain:
    if len(domains) != 3:
        refuse_kinds(_IF, domains)
    check_kinds(domains[:1], _IF, Kind.BOOLEAN)
    return union(domains[1:], _IF)


def _if_render(arguments: Nodes, domains: Domains) -> Node:
    kind = _if_rule(domains).kind
    condition = cast_to(arguments[0], domains[0], Kind.BOOLEAN)
    a, b = (cast_to(n, d, kind) for n, d in zip(arguments[1:], domains[1:], strict=True))
    return nodes.case((condition, a), otherwise=b)


def _if(condition: bool | None, a: Plain, b: Plain) -> Plain:
    return to_one_kind(a, b)[0 if condition is True else 1]


declare(Function("if", _IF, "a if the condition is true, else b", _if_rule, _if_render, _if))


# --- patterns ------------------------------------------------------------------------------

_LIKE = "a LIKE 'pattern'"


def _like_rule(domains: Domains) -> Domain:
    check_kinds(domains, _LIKE, Kind.TEXT, Kind.TEXT)
    if not isinstance(single(domains[1]), str):
        refuse_kinds(_LIKE, domains)
    return boolean(nullable=domains[0].nullable)


def _like(value: str, pattern: str) -> bool:
    """Greedy between the %: a regular expression would backtrack for ever on some patterns."""
    first, *middle = pattern.split("%")
    if not middle:
        return len(value) == len(pattern) and _fits(value, first)
    last = middle.pop()
    if len(value) < len(first) + len(last) or not _fits(value, first):
        return False
    start, end = len(first), len(value) - len(last)
    for piece in middle:
        while start + len(piece) <= end and not _fits(value[start:], piece):
            start += 1
        start += len(piece)
    return start <= end and _fits(value[end:], last)


def _fits(value: str, piece: str) -> bool:
    """Whether the text begins with the piece, in which _ is any character."""
    return all(p in ("_", v) for p, v in zip(piece, value, strict=False))


declare(
    Function(
        "like",
        _LIKE,
        "whether the text has the form of a constant pattern: % any text, _ any one character",
        _like_rule,
        lambda arguments, domains: exp.Paren(
            this=exp.Like(
                this=nodes.paren(cast_to(arguments[0], domains[0], Kind.TEXT)),
                expression=arguments[1],
            )
        ),
        strict(_like),
    )
)
