"""Constants and names that are spelled nearly like what was meant, and the question as it was."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.domain import Kind
from discreet.question.schema import Column, Schema
from discreet.question.sql.dialect import Fix, Reader
from discreet.question.sql.rewrite import Change
from discreet.question.sql.scalars import RELEASED

_MOST_LISTED = 12


def find_nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that is spelled nearly like ``name``.

    >>> find_nearest("cardiolgy", ["oncology", "cardiology"]), find_nearest("f", ["F", "M"])
    ('cardiology', 'F')
    """
    lowered = {known.casefold(): known for known in names}
    near = difflib.get_close_matches(name.casefold(), lowered, n=1)
    return lowered[near[0]] if near else None


# --- names -----------------------------------------------------------------------------------


_MOST_CORRECTED = 8
"""How many names are corrected at most; with more, something else was meant."""


def correct_names(reader: Reader, node: exp.Expr, known: Iterable[str], words: str) -> Fix:
    """The whole question with each name that does not exist as the one that was meant.

    Where there is none, ``words`` say what exists; else they stand before it.  A name in double
    quotes that is no column's is taken for a text: most people's SQL has single quotes for that,
    and some forget.
    """
    columns = list(known)
    given = _names(node.root(), columns)
    unknown = [
        part
        for part in node.root().find_all(exp.Column, exp.Table)
        if isinstance(part.this, exp.Identifier) and part.name.casefold() not in given
    ]
    tables = list(reader.schema.tables)
    unknown = [part for part in unknown if part.name not in tables]
    if len({part.name for part in unknown}) > _MOST_CORRECTED:
        return Fix(words)
    instead = {
        part.name: find_nearest(part.name, tables if isinstance(part, exp.Table) else columns)
        for part in unknown
    }
    texts = {part.name for part in unknown if _is_text(part)}
    change = _correct(instead, texts)
    question = reader.rewrite_text(change) or reader.rewrite(node, change)
    if question is None:
        return Fix(words)
    return Fix.asking(
        question, "texts stand in single quotes: " if texts else f"{words.removesuffix('.')}; "
    )


def _correct(instead: Mapping[str, str | None], texts: set[str]) -> Change:
    def change(node: exp.Expr) -> None:
        for part in list(node.root().find_all(exp.Column, exp.Table)):
            if part.name not in instead:
                continue
            near = instead[part.name]
            if part.name in texts and _is_text(part):
                part.replace(exp.Literal.string(part.name))
            elif near is not None:
                part.set("this", exp.to_identifier(near, quoted=not near.isidentifier()))

    return change


def _is_text(node: exp.Expr) -> bool:
    """Whether a name that does not exist stands in double quotes, as a text might."""
    return (
        isinstance(node, exp.Column)
        and isinstance(node.this, exp.Identifier)
        and bool(node.this.quoted)
        and not node.table
    )


def _names(root: exp.Expr, columns: Iterable[str]) -> set[str]:
    """All that a name may stand for: columns, and what the question itself names."""
    own = (part.alias for part in root.walk() if isinstance(part, exp.Alias | exp.CTE))
    return {name.casefold() for name in (*columns, *own)}


# --- constants -------------------------------------------------------------------------------


def check_constants(tree: exp.Expr, reader: Reader) -> None:
    """Refuse a text that the column it is compared with never is: nobody could have it.

    Only where the name can mean nothing else than a column whose values are declared.
    """
    own = {part.alias.casefold() for part in tree.find_all(exp.Alias)}
    read = list(tree.find_all(exp.Table))
    known: dict[tuple[str, str], tuple[str, ...] | None] = {}
    meant_by: dict[tuple[str, str], set[str]] = {}
    for node in tree.find_all(exp.EQ, exp.NEQ, exp.In, exp.Case):
        for column, constant in _list_compared(node):
            name = column.table.casefold(), column.name.casefold()
            if name not in known:
                meant = {t.name.casefold() for t in read if name[0] in ("", _name_table(t))}
                meant_by[name] = meant
                computed = name[1] in own
                known[name] = (
                    None if computed else _list_declared_texts(name[1], meant, reader.schema)
                )
            values = known[name]
            if values is not None and constant.name not in values:
                told = _say_read_instead(name[1], meant_by[name], reader.schema)
                raise _describe_unlisted(column, constant, values, told, reader)


def _list_compared(node: exp.Expr) -> list[tuple[exp.Column, exp.Literal]]:
    if isinstance(node, exp.In):
        pairs = [(node.this, part) for part in node.expressions]
    elif isinstance(node, exp.Case):  # CASE city WHEN 'york' THEN ...
        pairs = [(node.this, part.this) for part in node.args["ifs"]]
    else:
        pairs = [(node.this, node.expression), (node.expression, node.this)]
    return [
        (column, constant)
        for column, constant in pairs
        if isinstance(column, exp.Column)
        and isinstance(constant, exp.Literal)
        and constant.is_string
        and not constant.meta.get(RELEASED)
    ]


def _name_table(table: exp.Table) -> str:
    return str(table.alias or table.name).casefold()


def _list_columns(name: str, tables: set[str], schema: Schema) -> list[Column]:
    """The columns called ``name`` of ``tables``; of all, if it is called after none of them."""
    everywhere = schema.tables.values()
    meant = [table for table in everywhere if table.name.casefold() in tables]
    return [c for t in meant or everywhere for c in t.columns if c.name.casefold() == name]


def _say_read_instead(name: str, tables: set[str], schema: Schema) -> str:
    """What any other value is read as: NULL, or in a column without NULLs the first listed."""
    read = [
        "NULL" if column.nullable or not column.domain.values else f"'{column.domain.values[0]}'"
        for column in _list_columns(name, tables, schema)
    ]
    return " or ".join(dict.fromkeys(read))


def _list_declared_texts(name: str, tables: set[str], schema: Schema) -> tuple[str, ...] | None:
    """All values that columns called ``name`` list, if every one of them is a text and does."""
    found: list[str] = []
    for column in _list_columns(name, tables, schema):
        if column.kind is not Kind.TEXT or column.domain.values is None:
            return None
        found += map(str, column.domain.values)
    return tuple(dict.fromkeys(found)) or None


def _describe_unlisted(
    column: exp.Column,
    constant: exp.Literal,
    values: tuple[str, ...],
    instead: str,
    reader: Reader,
) -> QuestionRefusal:
    near = find_nearest(constant.name, values)
    question = None

    def put(node: exp.Expr) -> None:
        node.replace(exp.Literal.string(near))

    if near is not None:
        question = reader.rewrite(constant, put)
    listed = ", ".join(f"'{value}'" for value in values[:_MOST_LISTED])
    more = f" and {len(values) - _MOST_LISTED} more" if len(values) > _MOST_LISTED else ""
    told = Fix(f"the values of '{column.name}' are {listed}{more}.")
    return reader.refusal(
        "Q36",
        constant,
        f"'{constant.name}' is none of the declared values of '{column.name}'.",
        why=f"any other value is read as {instead}, so nobody has it: people would pay for no "
        "answer.",
        fix=told if question is None else Fix.asking(question),
    )


__all__ = ["check_constants", "correct_names", "find_nearest"]
