"""What is public of a dataset: tables, columns, the words of its SQL."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from discreet.server.models.base import Budget, Given


class Summary(Given):
    """A dataset that the key opens."""

    name: str
    analyst: str
    role: str
    budget: Budget
    tables: list[str]
    deadline_s: float


class Datasets(Given):
    """What the key opens."""

    datasets: list[Summary]


class Column(Given):
    """A column as declared."""

    name: str
    kind: str
    nullable: bool
    bounds: list[str] | None
    values: list[Any] | None
    values_count: int | None
    unit: bool
    text: str


class Table(Given):
    """A table as declared."""

    name: str
    public: bool
    free: bool = Field(description="a release or a survey: asked as a table is, for nothing")
    unit: list[str] | None
    entity: str | None
    unit_text: str
    max_rows_per_unit: int | None
    max_groups_per_unit: int | None
    blocks: list[str]
    columns: list[Column]


class Word(Given):
    """A function or an aggregate."""

    name: str
    usage: str
    meaning: str


class Schema(Given):
    """The public part of a dataset."""

    name: str
    neighbours: str
    promise: str
    max_joined_rows_per_unit: int
    tables: list[Table]
    free: list[Table] = Field(description="releases and surveys, which are there now")
    functions: list[Word]
    aggregates: list[Word]
    keywords: list[str]
    examples: list[str]
