"""Numbers as whole steps of a public grid, computed so that nothing can overflow."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from discreet.errors import InvalidParameter
from discreet.price.plan import Scaled
from discreet.question.domain import Kind
from discreet.question.functions import nodes
from discreet.question.functions.nodes import Node, present, whole

_NARROW = 2**62
_WIDE = 2**126
_SATURATED = Fraction(_NARROW)
_LARGEST_EXPONENT = 1000  # 2.0**1000 and 2.0**-1000 are both doubles


def exponent(grid: Fraction) -> int:
    """The k of grid = 2**k."""
    k = grid.numerator.bit_length() - grid.denominator.bit_length()
    if grid <= 0 or Fraction(2) ** k != grid:
        raise InvalidParameter(
            "P6",
            f"the grid {grid} is not a power of two.",
            why="only steps of a power of two are exact in every number that is summed.",
            fix="use a grid such as Fraction(1, 1024).",
        )
    return k


def _times_power(node: Node, k: int) -> Node:
    """A double times 2**k: exact, in two steps where 2.0**k itself is not a double."""
    while k:
        part = max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, k))
        node = nodes.infix(exp.Mul, node, nodes.literal(Fraction(2) ** part))
        k -= part
    return node


def _divide(number: Node, grid: Fraction) -> Node:
    """A double divided by the grid; a declared step need not be a power of two."""
    over, under = grid.numerator, grid.denominator
    if over & (over - 1) == under & (under - 1) == 0:
        return _times_power(number, -exponent(grid))
    many = number if under == 1 else nodes.infix(exp.Mul, number, nodes.literal(Fraction(under)))
    return many if over == 1 else nodes.infix(exp.Div, many, nodes.literal(Fraction(over)))


def clip(node: Node, low: Node, high: Node) -> Node:
    """The value moved into low ... high; the engine would read NULL as ``low``."""
    return nodes.call("LEAST", nodes.call("GREATEST", node, low), high)


def _unless_null(node: Node, result: Node) -> Node:
    return nodes.case((present(node), result))


def to_steps(node: Node, kind: Kind, grid: Fraction) -> Node:
    """Any number as round(x / grid), half to even, saturating at 2**62 steps."""
    number = number_line(node, kind)
    if kind is Kind.DECIMAL:
        steps = _times_power(number, -exponent(grid))
        ends = nodes.literal(-_SATURATED), nodes.literal(_SATURATED)
        return _unless_null(node.copy(), nodes.cast(clip(steps, *ends), Kind.INTEGER))
    many = number if grid == 1 else _many(number, grid)
    inside = clip(many, whole(-_NARROW), whole(_NARROW))
    return _unless_null(node.copy(), nodes.cast(inside, Kind.INTEGER))


def _many(number: Node, grid: Fraction) -> Node:
    """Any 64-bit whole number as round(x / grid), in 128 bits."""
    if grid >= _WIDE:
        raise too_wide()
    if grid < 1:
        if grid < Fraction(1, 2**60):
            raise too_wide()
        return nodes.infix(exp.Mul, nodes.wide(number), whole(int(1 / grid)))
    # Counted from a multiple of the grid below every 64-bit number.
    first = -(2**64 // int(grid)) - 1
    above = nodes.infix(exp.Sub, nodes.wide(number), whole(first * int(grid)))
    return nodes.infix(exp.Add, _halve(above, int(grid), first), whole(first))


def from_steps(node: Node, grid: Fraction) -> Node:
    """A whole number of steps as a double."""
    return _times_power(nodes.cast(node, Kind.DECIMAL), exponent(grid))


def number_line(node: Node, kind: Kind) -> Node:
    """The value as a number: days and microseconds since 1970, false and true as 0 and 1."""
    match kind:
        case Kind.BOOLEAN:
            return nodes.cast(node, Kind.INTEGER)
        case Kind.DATE:
            epoch = nodes.cast(exp.Literal.string("1970-01-01"), Kind.DATE)
            return nodes.cast(nodes.infix(exp.Sub, node, epoch), Kind.INTEGER)
        case Kind.TIMESTAMP:
            return nodes.call("EPOCH_US", node)
        case _:
            return node


def scale_steps(node: Node, kind: Kind, scaled: Scaled) -> Node:
    """u = round(x / grid) - low, clipped to 0 ... span; NULL where x is NULL.

    The clip is the last thing done, so that it holds whatever came before it.
    """
    high = scaled.low + scaled.span
    if max(abs(scaled.low), abs(high), scaled.span) >= _WIDE:
        raise too_wide()
    number = number_line(node, kind)
    if kind is not Kind.DECIMAL:
        steps = _whole_steps(number, scaled)
    else:
        ends = nodes.literal(Fraction(scaled.low)), nodes.literal(Fraction(high))
        inside = clip(_divide(number, scaled.grid), *ends)
        if max(abs(scaled.low), abs(high)) < _NARROW:
            counted = nodes.cast(inside, Kind.INTEGER)  # DuckDB's cast rounds half to even
        else:
            counted = nodes.wide(nodes.call("ROUND_EVEN", inside, exp.Literal.number("0")))
        steps = nodes.infix(exp.Sub, counted, whole(scaled.low))
    return _unless_null(
        node.copy(),
        nodes.cast_whole(clip(steps, whole(0), whole(scaled.span)), scaled.span),
    )


def _whole_steps(node: Node, scaled: Scaled) -> Node:
    """Steps of a whole number, without leaving whole numbers."""
    low, high = scaled.low * scaled.grid, (scaled.low + scaled.span) * scaled.grid
    if scaled.grid < 1 or max(abs(low), abs(high)) >= _NARROW:
        many = nodes.wide(node) if scaled.grid == 1 else _many(node, scaled.grid)
        return nodes.infix(exp.Sub, many, nodes.wide(whole(scaled.low)))
    inside = clip(node, whole(int(low)), whole(int(high)))
    above = nodes.infix(exp.Sub, inside, whole(int(low)))
    return above if scaled.grid == 1 else _halve(above, int(scaled.grid), scaled.low)


def _halve(above: Node, grid: int, low: int) -> Node:
    """A whole number y >= 0 as round(y / grid), a tie going to where low + result is even."""
    quotient = nodes.infix(exp.IntDiv, above, whole(grid))
    twice = nodes.infix(exp.Mul, nodes.infix(exp.Mod, above.copy(), whole(grid)), whole(2))
    odd = exp.NEQ(this=nodes.infix(exp.Mod, quotient.copy(), whole(2)), expression=whole(low % 2))
    tie = exp.And(this=exp.EQ(this=twice.copy(), expression=whole(grid)), expression=odd)
    up = exp.Or(this=exp.GT(this=twice, expression=whole(grid)), expression=exp.Paren(this=tie))
    return nodes.case((up, nodes.infix(exp.Add, quotient.copy(), whole(1))), otherwise=quotient)


def too_wide() -> InvalidParameter:
    """The refusal of a measurement that 128 bits do not hold."""
    return InvalidParameter(
        "P6",
        "a row of this measurement would not fit in 126 bits.",
        why="a sum that wraps around would show one person to everybody.",
        fix="use narrower bounds, a coarser grid or a lower degree.",
    )
