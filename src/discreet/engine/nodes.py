"""The closed list of nodes that a statement may have, and what is asked of a printer for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.engine.calls import call_alike
from discreet.engine.typed import Scope, Type, Typed, combine
from discreet.question.functions.nodes import Node

if TYPE_CHECKING:
    from discreet.engine.printing import Printer


def _infix(sign: str) -> Callable[[Printer, Node, Scope], Typed]:
    def write(printer: Printer, node: Node, scope: Scope) -> Typed:
        if sign == ">>" and node.this.name == "MD5_NUMBER_LOWER":
            return _digest(printer, node, scope)
        a, b = printer.node(node.this, scope), printer.node(node.expression, scope)
        match sign:
            case "AND" | "OR":
                return combine(f"{a.text} {sign} {b.text}", Type.BOOLEAN, a, b)
            case "+" | "-" | "*":
                return printer.arithmetic(sign, a, b)
            case "/":
                if a.type is not Type.DOUBLE or b.type is not Type.DOUBLE:
                    printer.refuse(f"'/' of {a.type.value} and {b.type.value}")
                return printer.of_doubles(sign, a, b)
            case "//":
                return printer.quotient(a, b)
            case "%":
                return printer.remainder(a, b)
            case ">>":
                return printer.shift_right(a, b)
            case "&":
                return printer.last_bits(a, b)
            case "||":
                return combine(f"{a.text} || {b.text}", Type.TEXT, a, b)
            case _:
                return printer.compare(sign, a, b)

    return write


def _digest(printer: Printer, node: Node, scope: Scope) -> Typed:
    """The one number that is made of a text: see :mod:`discreet.engine.duckdb.hashing`."""
    if node.expression.name != "33":
        printer.refuse("other bits of a text's MD5")
    return printer.digest(printer.node(node.this.expressions[0], scope))


def _is_null(printer: Printer, node: Node, scope: Scope) -> Typed:
    if not isinstance(node.args["expression"], exp.Null):
        printer.refuse("IS")
    value = printer.node(node.this, scope)
    return combine(f"{value.text} IS NULL", Type.BOOLEAN, value)


def _is_among(printer: Printer, node: Node, scope: Scope) -> Typed:
    if not node.expressions or node.args.get("query") or node.args.get("unnest"):
        printer.refuse("IN")
    first, *others = printer.alike(
        *(printer.node(n, scope) for n in (node.this, *node.expressions))
    )
    listed = ", ".join(other.text for other in others)
    return combine(f"{first.text} IN ({listed})", Type.BOOLEAN, first)


def _between(printer: Printer, node: Node, scope: Scope) -> Typed:
    value, low, high = printer.alike(
        *(printer.node(n, scope) for n in (node.this, node.args["low"], node.args["high"]))
    )
    return combine(f"{value.text} BETWEEN {low.text} AND {high.text}", Type.BOOLEAN, value)


def _not(printer: Printer, node: Node, scope: Scope) -> Typed:
    value = printer.node(node.this, scope)
    return combine(f"NOT ({value.text})", Type.BOOLEAN, value)


def _negate(printer: Printer, node: Node, scope: Scope) -> Typed:
    value = printer.node(node.this, scope)
    return combine(f"-({value.text})", value.type, value)


def _like(printer: Printer, node: Node, scope: Scope) -> Typed:
    value, pattern = printer.node(node.this, scope), printer.node(node.expression, scope)
    if not isinstance(pattern.constant, str):
        printer.refuse("LIKE with a pattern that is no plain constant")
    return combine(printer.like(value, pattern.constant), Type.BOOLEAN, value)


def _coalesce(printer: Printer, node: Node, scope: Scope) -> Typed:
    values = [printer.node(one, scope) for one in (node.this, *node.expressions)]
    return call_alike("COALESCE")(printer, values)


NODES: dict[type[Node], Callable[[Printer, Any, Scope], Typed]] = {
    exp.Column: lambda p, n, s: p.column(n, s),
    exp.Paren: lambda p, n, s: p.parenthesis(n, s),
    exp.Literal: lambda p, n, _: p.literal(n),
    exp.Boolean: lambda _p, n, _s: Typed("TRUE" if n.this else "FALSE", Type.BOOLEAN, plain=True),
    exp.Null: lambda _p, _n, _s: Typed("NULL", Type.NULL, plain=True),
    exp.Cast: lambda p, n, s: p.cast_node(n, s),
    exp.TryCast: lambda p, n, s: p.cast_node(n, s),
    exp.Case: lambda p, n, s: p.case(n, s),
    exp.Anonymous: lambda p, n, s: p.call(n, s),
    exp.Coalesce: _coalesce,
    exp.Count: lambda p, n, s: p.count(n, s),
    exp.Sum: lambda p, n, s: p.total(p.node(n.this, s)),
    exp.Filter: lambda p, n, s: p.filter_rows(n, s),
    exp.Window: lambda p, n, s: p.window(n, s),
    exp.RowNumber: lambda _p, _n, _s: Typed("ROW_NUMBER()", Type.WHOLE, together=True),
    exp.Is: _is_null,
    exp.In: _is_among,
    exp.Between: _between,
    exp.Not: _not,
    exp.Neg: _negate,
    exp.Like: _like,
    exp.And: _infix("AND"),
    exp.Or: _infix("OR"),
    exp.EQ: _infix("="),
    exp.NEQ: _infix("<>"),
    exp.LT: _infix("<"),
    exp.LTE: _infix("<="),
    exp.GT: _infix(">"),
    exp.GTE: _infix(">="),
    exp.Add: _infix("+"),
    exp.Sub: _infix("-"),
    exp.Mul: _infix("*"),
    exp.Div: _infix("/"),
    exp.IntDiv: _infix("//"),
    exp.Mod: _infix("%"),
    exp.BitwiseRightShift: _infix(">>"),
    exp.BitwiseAnd: _infix("&"),
    exp.DPipe: _infix("||"),
}
"""Every node that a statement may have."""

__all__ = ["NODES"]
