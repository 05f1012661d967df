"""What every mechanism shows, and how it writes itself down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Protocol

from discreet.accounting.loss import Loss


class Mechanism(Protocol):
    """The common surface: what it costs, and how it answers."""

    @property
    def loss(self) -> Loss:
        """What one release costs one unit, under add/remove neighbours."""
        ...

    def release(self, value: Any, /) -> Any:
        """The value with noise, of the same kind as it came in."""
        ...


def set_fields(mechanism: object, **fields: object) -> None:
    """Set the fields of a frozen object, once, while it is being made."""
    for name, value in fields.items():
        object.__setattr__(mechanism, name, value)


def match_kind(value: Any, items: Iterable[Any]) -> list[Any] | tuple[Any, ...]:
    """``items`` as a tuple if ``value`` is one, else as a list."""
    return tuple(items) if isinstance(value, tuple) else list(items)


def is_sequence(value: object) -> bool:
    """Whether ``value`` holds several numbers, apart from arrays."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def write_call(mechanism: object, **fields: object) -> str:
    """A ``repr`` that reads like the call that made the object; ``None`` is left out.

    >>> write_call(Fraction(3, 4), sensitivity=Fraction(3), epsilon=Fraction(1, 4), grid=None)
    "Fraction(sensitivity=3, epsilon='1/4')"
    """
    shown = ", ".join(
        f"{name}={_text(field)}" for name, field in fields.items() if field is not None
    )
    return f"{type(mechanism).__name__}({shown})"


def _text(field: object) -> str:
    if isinstance(field, Fraction):
        return str(field) if field.denominator == 1 else repr(str(field))
    return repr(field)
