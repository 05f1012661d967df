"""What is publicly known of the tables: enough to read a question and to price it.

Nothing in a catalogue comes from a private row, so every refusal and every price
that needs no more than this is the same with the data unplugged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Any

from discreet.exact.records import dataclass
from discreet.question.ownership import Multiplicity, find_declared_multiplicity
from discreet.question.schema import Schema

Compute = Callable[[str, tuple[str, ...]], tuple[tuple[str, ...], list[tuple[Any, ...]]]]
"""The columns and rows of SQL over public tables alone, those that are named."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The schema with what its public tables hold, in one version of those tables.

    >>> Catalogue(Schema({})).version
    ()
    """

    schema: Schema
    version: Hashable = ()  # of the public tables: what was derived from another one is stale
    multiplicity: Multiplicity = field(default=find_declared_multiplicity, compare=False)
    compute: Compute | None = field(default=None, compare=False)


Known = Schema | Catalogue
"""What is publicly known: a schema alone says of its public tables what was declared."""

__all__ = ["Catalogue", "Known"]
