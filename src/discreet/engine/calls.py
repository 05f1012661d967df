"""Calls of functions that several engines write alike, but for their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.engine.typed import Type, Typed, combine, common_type, list_either

if TYPE_CHECKING:
    from discreet.engine.printing import Printer

Writer = Callable[["Printer", Sequence[Typed]], Typed]
"""What writes a call, given its arguments in the engine's words."""


def call_alike(name: str) -> Writer:
    """A function whose arguments and result are of one type."""

    def write(printer: Printer, values: Sequence[Typed]) -> Typed:
        values = printer.alike(*values)
        type_ = common_type(value.type for value in values)
        text = f"{name}({', '.join(value.text for value in values)})"
        known = list_either(values) if name == "COALESCE" else None
        return combine(text, type_, *values, values=known)

    return write


def call_as(name: str, type_: Type) -> Writer:
    """A function of that name, whose result is of a type."""

    def write(_: Printer, values: Sequence[Typed]) -> Typed:
        return combine(f"{name}({', '.join(value.text for value in values)})", type_, *values)

    return write


def _extreme(name: str) -> Writer:
    return lambda printer, values: printer.extreme(name, values[0])


def _first(name: str) -> Writer:
    """A window function whose result is one of its first argument's values."""

    def write(_: Printer, values: Sequence[Typed]) -> Typed:
        text = f"{name}({', '.join(value.text for value in values)})"
        return replace(values[0], text=text, plain=False, constant=None, together=True)

    return write


def write_short(printer: Printer, value: Typed) -> str:
    """A number as a function takes it: in 32 bits."""
    if isinstance(value.constant, int):
        return str(value.constant)
    return f"CAST({value.text} AS {printer.spell(Type.SHORT)})"


def call_of_text(name: str, type_: Type = Type.TEXT) -> Writer:
    """A function of texts and of numbers that say where."""

    def write(printer: Printer, values: Sequence[Typed]) -> Typed:
        given = [
            v.text if v.type in (Type.TEXT, Type.CODED) else write_short(printer, v) for v in values
        ]
        text = f"{name}({', '.join(given)})"
        text = f"CAST({text} AS {printer.spell(type_)})" if type_ is Type.WHOLE else text
        return combine(text, type_, *values)

    return write


def call_letters(name: str) -> Writer:
    """Capital or small letters, of texts in which engines agree on them."""

    def write(printer: Printer, values: Sequence[Typed]) -> Typed:
        known = values[0].values
        if known is None or not all(one.isascii() for one in known):
            printer.refuse(f"{name}() of texts that are not declared, or not ASCII")
        turned = tuple(one.upper() if name == "UPPER" else one.lower() for one in known)
        letters = replace(values[0], type=Type.TEXT)
        return combine(f"{name}({printer.in_order(letters)})", Type.TEXT, *values, values=turned)

    return write


def call_trim(form: str) -> Writer:
    """A text without the spaces at its ends, in a form of the engine's."""

    def write(_: Printer, values: Sequence[Typed]) -> Typed:
        known = values[0].values
        trimmed = None if known is None else tuple(one.strip(" ") for one in known)
        return combine(form.format(values[0].text), Type.TEXT, *values, values=trimmed)

    return write


def call_neighbour(name: str) -> Writer:
    """LAG and LEAD: which row is a number of 32 bits."""

    def write(printer: Printer, values: Sequence[Typed]) -> Typed:
        steps = [write_short(printer, value) for value in values[1:2]]
        text = f"{name}({', '.join([values[0].text, *steps, *(v.text for v in values[2:])])})"
        return replace(values[0], text=text, plain=False, constant=None, together=True)

    return write


def call_tiles(printer: Printer, values: Sequence[Typed]) -> Typed:
    """NTILE."""
    return Typed(f"NTILE({write_short(printer, values[0])})", Type.WHOLE, together=True)


FUNCTIONS: dict[str, Writer] = {
    "COALESCE": call_alike("COALESCE"),
    "LEAST": call_alike("LEAST"),
    "GREATEST": call_alike("GREATEST"),
    "SUM": lambda p, v: p.total(v[0]),
    "COUNT": lambda _, v: Typed(f"COUNT({v[0].text if v else '*'})", Type.WHOLE, together=True),
    "MIN": _extreme("MIN"),
    "MAX": _extreme("MAX"),
    "RANK": lambda *_: Typed("RANK()", Type.WHOLE, together=True),
    "DENSE_RANK": lambda *_: Typed("DENSE_RANK()", Type.WHOLE, together=True),
    "ROW_NUMBER": lambda *_: Typed("ROW_NUMBER()", Type.WHOLE, together=True),
    "FIRST_VALUE": _first("FIRST_VALUE"),
    "LAST_VALUE": _first("LAST_VALUE"),
    "ENUM_CODE": lambda p, v: p.place(v[0]),
    "ROW": call_as("ROW", Type.ROW),
    "NTILE": call_tiles,
    "LAG": call_neighbour("LAG"),
    "LEAD": call_neighbour("LEAD"),
}
"""Functions that every engine writes alike, by the name that the tree has for them."""

__all__ = [
    "FUNCTIONS", "Writer", "call_alike", "call_as", "call_letters", "call_neighbour",
    "call_of_text", "call_tiles", "call_trim", "write_short",
]  # fmt: skip
