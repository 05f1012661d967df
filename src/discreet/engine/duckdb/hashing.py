"""The hash that says which rows a unit keeps: whole numbers only, the same wherever it is computed.

An engine's own hash is its own: it changes with versions and types, and with it the rows that are
kept.  This one needs ``+``, ``*``, ``%`` and whole division of 64-bit integers, and MD5 for texts
that are not declared: every engine has them, and they do not change.  Nothing about privacy rests
on it, for whichever rows a unit keeps are chosen by its own; a good one only prefers no value for
everybody.

Each column becomes a whole number: days and microseconds since 1970, the place among the declared
values, 31 bits of the MD5 of other texts, a decimal in steps of 2**-40 (of 1/16 beyond 2**21).
The numbers that say whose the row is make one sum, each times a multiplier of its place, and the
others one for every four; a sum modulo P = 2**31 - 1 divides 2**62, and the hash is the product
of these factors modulo P.  So the factor of a unit turns the order of its rows; without the
division, the outer ones of values in even steps would come first more often.  No step leaves 64
bits: four times 2**33 times 2**28, or 2**31 squared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce

from sqlglot import exp

from discreet.engine.duckdb.grid import clip, number_line
from discreet.exact.records import dataclass
from discreet.question.domain import Kind
from discreet.question.functions import nodes
from discreet.question.functions.nodes import Node, quote_column

_P = 2**31 - 1
_OFFSET = 3_000_000_019  # beyond P: a remainder has the sign of its number
_NOTHING = 1_234_567  # what NULL is taken for
_NEAR, _FINE = Fraction(2) ** 21, Fraction(2) ** 40
_FAR, _COARSE = Fraction(2) ** 57, Fraction(2) ** 4
"""A decimal up to the first is multiplied by the second; others are clipped and multiplied."""
_TOGETHER = 4  # numbers in one sum


@dataclass(frozen=True, slots=True)
class Hashed:
    """A column that has a say in which rows are kept, and how it is held."""

    identifier: str
    kind: Kind
    coded: bool = False
    """Whether it is held as the place of a text among the declared ones."""
    owner: bool = False
    """Whether it says whose the row is."""


def hash_columns(columns: Iterable[Hashed]) -> Node:
    """The hash of a row's columns, in 0 ... P - 1.

    >>> hash_columns([Hashed("who", Kind.INTEGER)]).sql(nodes.ENGINE)
    '((4611686018427387904 // (((((COALESCE("who", 1234567) % 2147483647) + 3000000019) * 41696341)
    % 2147483647) + 1)) % 2147483647)'
    """
    listed = list(columns)
    owners = [column for column in listed if column.owner]
    others = [column for column in listed if not column.owner]
    sums = [some for group in (owners, others) for some in _batch(group, _TOGETHER)]
    if not sums:
        raise ValueError("a hash of no columns chooses nothing")
    places = iter(range(len(listed)))
    factors = [_invert([_spread(column, next(places)) for column in some]) for some in sums]
    return reduce(lambda a, b: _remainder(nodes.infix(exp.Mul, a, b)), factors)


def put_hash(query: exp.Query, columns: Iterable[Hashed]) -> exp.Query:
    """The query with the hash of these columns wherever it names ``_hashed``."""
    hashed = hash_columns(columns)
    for column in list(query.find_all(exp.Column)):
        if column.name == "_hashed":
            column.replace(hashed.copy())
    return query


def _batch(columns: Sequence[Hashed], size: int) -> Iterator[Sequence[Hashed]]:
    """The columns in their order, so many at a time."""
    for start in range(0, len(columns), size):
        yield columns[start : start + size]


def multiplier(place: int) -> int:
    """Of the number in this place: powers of a primitive root of P, below 2**28 and odd.

    >>> multiplier(0), multiplier(3)
    (41696341, 26742601)
    """
    return pow(16807, 7 * place + 12, _P) % 2**28 | 1


def _spread(column: Hashed, place: int) -> Node:
    """A number above zero, times the multiplier of its place."""
    number, small = _number(column)
    above = nodes.infix(exp.Add, number if small else _remainder(number), _whole(_OFFSET))
    return nodes.infix(exp.Mul, above, _whole(multiplier(place)))


def _invert(numbers: list[Node]) -> Node:
    """A factor of several numbers, below P."""
    total = reduce(lambda a, b: nodes.infix(exp.Add, a, b), numbers)
    least = nodes.infix(exp.Add, _remainder(total), _whole(1))
    return _remainder(nodes.infix(exp.IntDiv, _whole(2**62), least))


def _remainder(node: Node) -> Node:
    return nodes.infix(exp.Mod, node, _whole(_P))


def _whole(number: int) -> Node:
    return exp.Literal.number(str(number))


def _number(column: Hashed) -> tuple[Node, bool]:
    """What stands for a value, and whether it lies between -P and P."""
    value = quote_column(column.identifier)
    match column.kind:
        case Kind.DECIMAL:
            return _count_steps(value), False
        case Kind.TEXT if column.coded:
            return _or_nothing(nodes.cast(nodes.call("ENUM_CODE", value), Kind.INTEGER)), True
        case Kind.TEXT:
            digest = nodes.call("MD5_NUMBER_LOWER", value)
            high = exp.BitwiseRightShift(this=digest, expression=_whole(33))
            return _or_nothing(nodes.cast(high, Kind.INTEGER)), True
        case kind:
            return _or_nothing(number_line(value, kind)), kind in (Kind.BOOLEAN, Kind.DATE)


def _count_steps(value: Node) -> Node:
    """Clipped before it is multiplied: nothing overflows, and NaN counts as the greatest."""
    near = nodes.between(value, -_NEAR, _NEAR, Kind.DECIMAL)
    fine = nodes.infix(exp.Mul, value.copy(), nodes.literal(_FINE))
    inside = clip(value.copy(), nodes.literal(-_FAR), nodes.literal(_FAR))
    coarse = nodes.infix(exp.Mul, inside, nodes.literal(_COARSE))
    return nodes.case(
        (near, nodes.cast(fine, Kind.INTEGER)),
        (nodes.present(value.copy()), nodes.cast(coarse, Kind.INTEGER)),
        otherwise=_whole(_NOTHING),
    )


def _or_nothing(number: Node) -> Node:
    return nodes.call("COALESCE", number, _whole(_NOTHING))


__all__ = ["Hashed", "hash_columns", "multiplier", "put_hash"]
