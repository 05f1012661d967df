"""What the shell offers to complete: tables, columns, functions, keywords, its own commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from discreet.question.functions import FUNCTIONS
from discreet.question.sql.aggregates import NAMES as AGGREGATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.question.schema import Schema

KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "AS", "DISTINCT"),
    *("JOIN", "LEFT JOIN", "ON", "USING", "UNION ALL", "WITH", "EXPLAIN", "FILTER"),
    *("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS NULL", "IS NOT NULL", "ASC", "DESC"),
    *("CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "TRUE", "FALSE", "NULL", "DATE"),
    "WITH DIFFERENTIAL_PRIVACY OPTIONS",
)
_CALLED = sorted(
    {f.usage.partition("(")[0] for f in FUNCTIONS.values() if re.match(r"[A-Z_0-9]+\(", f.usage)}
)
_WORD = re.compile(r"(?:(\w+)\.)?(\w*)$")
_AFTER_SOURCE = re.compile(r"\b(?:from|join)\s+\w*$", re.IGNORECASE)
_COMMAND = re.compile(r"\s*(\\\w*)$")


def candidates(
    before: str, schema: Schema, commands: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """What may stand next, given the text before the cursor: (word, what it is)."""
    if found := _COMMAND.fullmatch(before):
        yield from (
            (f"\\{name}", words)
            for name, words in commands.items()
            if f"\\{name}".startswith(found[1])
        )
        return
    found = _WORD.search(before)
    owner, start = (found[1], found[2]) if found else (None, "")
    if _is_quoted(before):
        return
    for word, what in _words(before, owner, schema):
        if word.lower().startswith(start.lower()) and word.lower() != start.lower():
            yield word, what


def _words(before: str, owner: str | None, schema: Schema) -> Iterator[tuple[str, str]]:
    tables = schema.tables
    if owner is not None:
        named = [t for t in tables.values() if t.name.lower() == owner.lower()]
        for table in named or tables.values():  # an alias: any column may be meant
            yield from ((c.name, f"{table.name}, {c.kind.value}") for c in table.columns)
        return
    if _AFTER_SOURCE.search(before):
        yield from ((name, "public table" if t.public else "table") for name, t in tables.items())
        return
    for table in tables.values():
        yield from ((c.name, f"{table.name}, {c.kind.value}") for c in table.columns)
    yield from ((name, "aggregate") for name in AGGREGATES)
    yield from ((name, "function") for name in _CALLED)
    yield from ((name, "table") for name in tables)
    yield from ((name, "keyword") for name in KEYWORDS)


def _is_quoted(before: str) -> bool:
    return before.count("'") % 2 == 1


class SqlCompleter(Completer):
    """Completion for prompt_toolkit."""

    def __init__(self, schema: Schema, commands: Mapping[str, str]) -> None:
        self._schema, self._commands = schema, commands

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002
    ) -> Iterator[Completion]:
        """Each candidate once, replacing the word that was begun."""
        before = document.text_before_cursor
        found = _COMMAND.fullmatch(before)
        begun = len(found[1]) if found else len(_WORD.search(before)[2])  # type: ignore[index]
        seen: set[str] = set()
        for word, what in candidates(before, self._schema, self._commands):
            if word.lower() not in seen:
                seen.add(word.lower())
                yield Completion(word, start_position=-begun, display_meta=what)


__all__ = ["KEYWORDS", "SqlCompleter", "candidates"]
