"""Releases and surveys as tables: the columns by which they are asked, for whoever lists tables."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.curate.collected import describe_survey
from discreet.errors import Refusal
from discreet.question.domain import value_at
from discreet.question.levels import Levels
from discreet.question.schema import Column, Table

if TYPE_CHECKING:
    from discreet.curate.curator import Curator
    from discreet.publication.synopsis import Synopsis


@dataclass(frozen=True, slots=True)
class FreeTable:
    """What is asked for free under a table's name: its columns, and what it is."""

    table: Table
    about: str


def list_free_tables(curator: Curator) -> dict[str, FreeTable]:
    """All releases and surveys that there are now; one that cannot be read is left out."""
    surveys = {} if curator.surveys is None else curator.surveys.list_surveys()
    found: dict[str, FreeTable] = {}
    for name in curator.list_free():
        with suppress(Refusal):  # which is told when it is asked
            if name in surveys:
                found[name] = FreeTable(
                    describe_survey(surveys[name], name), "survey; its reports are public: free"
                )
            else:
                released = curator.releases.find(name)
                about = f"release ({released.made.declared.kind}); public: free"
                found[name] = FreeTable(_describe_release(released), about)
    return {name: one for name, one in found.items() if name not in curator.schema.tables}


def _describe_release(released: Synopsis) -> Table:
    return Table(released.name, tuple(map(_describe_column, released.made.levels)))


def _describe_column(levels: Levels) -> Column:
    """What values a column of a release has: those that were declared of the private one."""
    if levels.values is not None:
        return Column(levels.name, levels.kind, values=levels.values, nullable=levels.nullable)
    low, high = (value_at(levels.kind, end) for end in (levels.low, levels.high))
    return Column(levels.name, levels.kind, low, high, nullable=levels.nullable)


__all__ = ["FreeTable", "list_free_tables"]
