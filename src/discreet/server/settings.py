"""How one dataset is served: times, queues and rates, from the section [server]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from discreet.errors import SchemaRefusal, quote_value

MOST_BODY = 64 * 1024
"""Bytes of a request's body; a question may have 20,000 characters."""
BODY_TIME_S = 10.0
"""How long a body may take to arrive."""
HEADER_TIME_S = 10.0
"""How long a connection may take to say what it wants."""
MOST_REQUESTS = 2000
"""Requests under way at once, of all keys together."""

_WHY = "a setting that is not understood could let more be seen than was meant."


@dataclass(frozen=True, slots=True)
class Settings:
    """The section [server] of a ``discreet.toml``."""

    deadline_s: float = 0.25
    """Answers leave, and engines become free, at multiples of this; 0 turns it off."""
    time_limit_s: float = 60.0
    """A question that is not computed by then is given up; it stays charged."""
    workers: int = 1
    """Processes that hold the engine; each computes one question at a time."""
    queue: int = 256
    """Paid questions that may wait for an engine."""
    rate_per_minute: float = 600.0
    """Requests of one key, on average."""
    burst: int = 120
    """Requests of one key that may come at once."""
    concurrent: int = 8
    """Questions of one key under way at once."""

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> Settings:
        """The settings of a section; what is left out keeps its default.

        >>> Settings.of({"deadline_s": 2, "workers": 3}).deadline_s
        2.0
        """
        kinds = {field.name: type(field.default) for field in fields(cls)}
        unknown = [name for name in section if name not in kinds]
        if unknown:
            raise SchemaRefusal(
                "S2",
                f"[server] has {quote_value(unknown[0])}, which is not understood.",
                why=_WHY,
                fix=f"use {', '.join(kinds)}.",
            )
        return cls(**{name: _number(name, x, kinds[name]) for name, x in section.items()})


def _number(name: str, value: object, kind: type) -> Any:
    numbers = int if kind is int else int | float | Decimal  # the file's own decimals are exact
    fits = isinstance(value, numbers) and not isinstance(value, bool)
    least = 0 if name == "deadline_s" else 1 if kind is int else 1e-3
    if not fits or not least <= value <= 1e6:  # type: ignore[operator]
        raise SchemaRefusal(
            "S2",
            f"{name} in [server] is {quote_value(value)}.",
            why=_WHY,
            fix=f"write a {'whole number' if kind is int else 'number'} from {least:g}, such as "
            f"{name} = {next(f.default for f in fields(Settings) if f.name == name)}.",
        )
    return kind(value)
