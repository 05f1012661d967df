"""What is known of a node while it is printed: its type, its text, the values that it can have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NoReturn

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Kind


class Type(Enum):
    """What a node is."""

    NULL = "a bare NULL"
    BOOLEAN = "boolean"
    SHORT = "32 bits"
    WHOLE = "64 bits"
    WIDE = "128 bits"
    DOUBLE = "double"
    TEXT = "text"
    CODED = "one of the declared texts, in their order"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    ROW = "several columns as one"


OF_KIND = {
    Kind.BOOLEAN: Type.BOOLEAN,
    Kind.INTEGER: Type.WHOLE,
    Kind.DECIMAL: Type.DOUBLE,
    Kind.TEXT: Type.TEXT,
    Kind.DATE: Type.DATE,
    Kind.TIMESTAMP: Type.TIMESTAMP,
}
"""What each kind is in a statement."""

NUMBERS = (Type.NULL, Type.SHORT, Type.WHOLE, Type.WIDE, Type.DOUBLE)
NAMED = {
    "BOOLEAN": Type.BOOLEAN,
    "INT": Type.SHORT,
    "BIGINT": Type.WHOLE,
    "INT128": Type.WIDE,
    "DOUBLE": Type.DOUBLE,
    "VARCHAR": Type.TEXT,
    "TEXT": Type.TEXT,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class Typed:
    """A node in the words of an engine.

    ``values`` are the only texts that it can be, if they are declared; ``constant`` what it is,
    if that is known; ``form`` the pattern that a text has unless it is empty; ``plain`` says that
    it costs nothing to write it twice, ``together`` that it is about several rows (an aggregate,
    a window) and must stay where it is written.
    """

    text: str
    type: Type
    values: tuple[str, ...] | None = None
    constant: int | float | str | None = None
    form: str | None = None
    plain: bool = False
    together: bool = False


Columns = Mapping[str, Typed]
"""The columns of a step: what each is, apart from its text."""

Scope = Mapping[str | None, Columns]
"""What names mean: the columns of each alias, and of all together under None."""


def refuse(engine: str, what: str) -> NoReturn:
    """This engine has no words that mean the same."""
    raise QuestionRefusal(
        "Q60",
        f"the engine {engine} does not compute {what}.",
        why="another meaning would be another answer than the one that was priced, and a value "
        "of one person on which an engine fails would show that they are there.",
        fix="ask without it, or have the curator use the engine duckdb; docs/engines.md lists "
        "what each engine refuses.",
    )


def common_type(types: Iterable[Type]) -> Type:
    """The type of a value that comes from one of several."""
    found = Type.NULL
    for one in types:
        if found in NUMBERS and one in NUMBERS:
            found = NUMBERS[max(NUMBERS.index(found), NUMBERS.index(one))]
        elif found is Type.NULL or {found, one} == {Type.TEXT, Type.CODED}:
            found = Type.TEXT if found is not Type.NULL else one
        elif one not in (found, Type.NULL):
            raise TypeError(f"{found} and {one}")
    return found


def combine(text: str, type_: Type, *parts: Typed, values: tuple[str, ...] | None = None) -> Typed:
    """A value that is made of ``parts``: about several rows if one of them is."""
    return Typed(text, type_, values, together=any(part.together for part in parts))


def list_either(results: Sequence[Typed]) -> tuple[str, ...] | None:
    """The texts that one of several values can be."""
    known = [one.values for one in results if one.type is not Type.NULL]
    if not known or None in known:
        return None
    if all(values == known[0] for values in known):
        return known[0]
    return tuple(dict.fromkeys(text for values in known for text in values or ()))


__all__ = [
    "NAMED", "NUMBERS", "OF_KIND", "Columns", "Scope", "Type", "Typed", "combine", "common_type",
    "list_either", "refuse",
]  # fmt: skip
