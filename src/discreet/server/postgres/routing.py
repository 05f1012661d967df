"""Where a statement goes: to the curator, to the empty PostgreSQL, to the session, or nowhere.

Whatever names a declared table, a release or a survey goes to the curator, which decides.  Whatever
names none is about the catalogue.  Where both are named, a parser says which names are
tables.  Nothing depends on this being right: the curator reads no catalogue, and the empty
PostgreSQL has no rows and refuses to read its tables.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from discreet.question.sql import ASKS_THE_ACCOUNT
from discreet.server.postgres.reports import Said, not_a_question
from discreet.server.postgres.tokens import Part, Token


class Kind(Enum):
    """What a statement is."""

    QUESTION = "question"
    EXPLAIN = "explain"
    CATALOGUE = "catalogue"
    COMMAND = "command"


COMMANDS = (
    *("ABORT", "BEGIN", "CLOSE", "COMMIT", "DEALLOCATE", "DECLARE", "DISCARD", "END", "FETCH"),
    *("MOVE", "RELEASE", "RESET", "ROLLBACK", "SAVEPOINT", "SET", "SHOW", "START", "UNLISTEN"),
)
"""What the session itself understands."""
_ASKING = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")
_OWN = ("pg_catalog", "information_schema")
_MOST_PARSED, _MOST_NODES = 8_000, 3_000
"""Characters that are given to the parser, and what it may make of them: some words it reads in
several ways, and inside each of them again."""


def route(text: str, tokens: Sequence[Token], tables: Collection[str]) -> Kind:
    """Where a statement goes; ``tables`` are the declared ones, in lower case.

    >>> from discreet.server.postgres.tokens import tokenize
    >>> def where(text):
    ...     return route(text, tokenize(text), {"visits"}).value
    >>> where("SELECT COUNT(*) FROM /* pg_class */ visits"), where("SELECT 'visits'::regclass")
    ('question', 'catalogue')
    >>> where("SELECT relname AS visits FROM pg_catalog.pg_class")
    'catalogue'
    """
    first = tokens[0]
    if first.says(*COMMANDS):
        return Kind.COMMAND
    explained = first.says("EXPLAIN")
    if not explained and first.text != "(" and not first.says(*_ASKING):
        word = first.text.upper() if first.part is Part.NAME else ""
        raise not_a_question(word[:40])
    if not _names_declared(text, tokens[1:] if explained else tokens, tables):
        return Kind.CATALOGUE
    if explained:
        check_explain(tokens)
        return Kind.EXPLAIN
    return Kind.QUESTION


def check_explain(tokens: Sequence[Token]) -> None:
    """EXPLAIN stands before a question, and takes no options."""
    if len(tokens) < 2 or not tokens[1].says(*_ASKING):
        raise Said(
            "0A000",
            "EXPLAIN takes no options here.",
            "a question is explained from public knowledge, and never run for it.",
            "write EXPLAIN SELECT ...",
        )


def takes_a_parser(tokens: Sequence[Token], tables: Collection[str]) -> bool:
    """Whether a statement names declared tables and the catalogue's: that is work, for a parser.

    >>> from discreet.server.postgres.tokens import tokenize
    >>> takes_a_parser(tokenize("SELECT COUNT(*) FROM visits"), {"visits"})
    False
    >>> takes_a_parser(tokenize("SELECT relname AS visits FROM pg_class"), {"visits"})
    True
    """
    names = [name.lower() for token in tokens if (name := token.name) is not None]
    own = any(name in _OWN or name.startswith("pg_") for name in names)
    return own and any(name in tables for name in names)


def _names_declared(text: str, tokens: Sequence[Token], tables: Collection[str]) -> bool:
    if any((token.name or "").lower() == ASKS_THE_ACCOUNT for token in tokens):
        return True  # it names the table in a text
    if not takes_a_parser(tokens, tables):
        return any(token.name is not None and token.name.lower() in tables for token in tokens)
    start, stop = tokens[0].start, tokens[-1].stop
    if stop - start > _MOST_PARSED:
        return True
    try:
        tree = parse_one(text[start:stop], dialect="postgres", max_nodes=_MOST_NODES)
    except (SqlglotError, RecursionError, ValueError):
        return True
    inside = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name, schema = table.name.lower(), table.db.lower()
        if name in tables and schema not in _OWN and not (name in inside and not schema):
            return True
    return False


def blank_schema(tokens: Sequence[Token], tables: Collection[str]) -> dict[int, str]:
    """Spaces in the place of ``public.`` before a declared table: tools write it, and it is none.

    >>> from discreet.server.postgres.tokens import rewrite, tokenize
    >>> text = 'SELECT COUNT(*) FROM "public"."visits"'
    >>> rewrite(text, tokenize(text), blank_schema(tokenize(text), {"visits"})).text
    'SELECT COUNT(*) FROM          "visits"'
    """
    put: dict[int, str] = {}
    for at, token in enumerate(tokens[:-2]):
        after = tokens[at + 2].name
        qualifies = token.name == "public" and tokens[at + 1].text == "."
        if qualifies and after is not None and after.lower() in tables:
            put |= {at: " " * len(token.text), at + 1: " "}
    return put


__all__ = ["COMMANDS", "Kind", "blank_schema", "route", "takes_a_parser"]
