"""Conditions that no row meets, whatever the data are: refused, for people would pay for nothing.

``city = 'york' AND city = 'hull'``, a range whose ends are crossed, a day after the last that is
declared: constants and the schema decide it, and nobody's row is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from sqlglot import exp

from discreet.question.domain import Domain, Kind, value_at
from discreet.question.sql.dialect import Fix, Reader
from discreet.question.sql.spelling import check_constants

_MOST_TURNED = 8
_MOST_SHOWN = 12


def refuse_impossible(
    against: tuple[int, ...],
    conditions: list[exp.Expr],
    known: Mapping[str, Domain],
    where: exp.Where,
    reader: Reader,
) -> NoReturn:
    """Refuse ``where``, of whose ``conditions`` no row of such columns meets those ``against``."""
    if where.parent is not None:
        check_constants(where.parent, reader)  # a misspelt one has a nearest
    name = next(part.name for part in conditions[against[0]].find_all(exp.Column))
    raise reader.refusal(
        "Q36",
        where,
        f"no value of '{name.partition('.')[2]}' meets the condition.",
        why="by constants and what is declared no row is left, whatever the data are: people would "
        "pay for no answer.",
        fix=_find_meant(where, against, len(conditions), reader)
        or Fix(_describe(name, known[name])),
    )


def _find_meant(
    where: exp.Where, against: tuple[int, ...], count: int, reader: Reader
) -> Fix | None:
    """The question with the ends of a range turned, or with OR between what contradicts."""

    def put_or(node: exp.Expr) -> None:
        parts = list(node.this.flatten()) if isinstance(node.this, exp.And) else [node.this]
        either = exp.paren(exp.or_(*(parts[n].copy() for n in against), copy=False), copy=False)
        kept = [part.copy() for n, part in enumerate(parts) if n not in against]
        node.set("this", exp.and_(*kept, either, copy=False) if kept else either.this)

    def turn(node: exp.Expr) -> None:
        low, high = node.args["low"].copy(), node.args["high"].copy()
        node.set("low", high)
        node.set("high", low)

    typed = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    for part in (part for part in typed[:_MOST_TURNED] if isinstance(part, exp.Between)):
        question = reader.rewrite(part, turn)
        if question is not None:
            return Fix.asking(question, "from the lower end to the higher: ")
    several = len(against) > 1 and len(typed) == count  # each is what was typed, in order
    question = reader.rewrite(where, put_or) if several else None
    return None if question is None else Fix.asking(question, "if either will do: ")


def _describe(name: str, domain: Domain) -> str:
    """What there is to compare with."""
    column = name.partition(".")[2]
    if domain.values and domain.kind is not Kind.BOOLEAN:
        more = f" and {len(domain.values) - _MOST_SHOWN} more"
        shown = ", ".join(_write(value) for value in domain.values[:_MOST_SHOWN])
        return f"'{column}' is {shown}{more if len(domain.values) > _MOST_SHOWN else ''}."
    bounded = domain.values is None and domain.low is not None and domain.high is not None
    if not bounded or domain.kind is Kind.BOOLEAN or domain.low is None or domain.high is None:
        return "leave one of these conditions out."
    low, high = value_at(domain.kind, domain.low), value_at(domain.kind, domain.high)
    return f"'{column}' lies between {_write(low)} and {_write(high)}."


def _write(value: object) -> str:
    """A value as it is typed."""
    if isinstance(value, str):
        return f"'{value}'"
    return f"{float(value):g}" if hasattr(value, "numerator") else str(value)  # type: ignore[arg-type]


__all__ = ["refuse_impossible"]
