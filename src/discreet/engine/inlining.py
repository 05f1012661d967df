"""Steps that only name columns anew, written into the steps that read them.

A statement is made in steps, one for each part of a question, and many of them do nothing but give
columns other names.  Another program analyses each of them, column by column; without them it is
told the same in fewer words.  What a statement means is not changed: a name is replaced by the name
that it stood for.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from discreet.question.functions.nodes import (
    Definition,
    Node,
    add_alias,
    add_definitions,
    name_definitions,
    quote_table,
)

Names = dict[str, Node] | None
"""What each column of a step is in what it reads; None if they keep their names."""

_ONLY_NAMES = {"kind", "expressions", "from_"}
"""What a query may have that only names columns anew."""
_GIVEN = ("from_", "order")
"""Where columns are not those of what is read, but those that are given."""


def inline_renamings(query: exp.Query) -> exp.Query:
    """The same statement without steps that only rename and are read once; ``query`` is changed."""
    definitions = name_definitions(query)
    query.set("with_", None)
    parts = [part for one in (*(s for _, s, _ in definitions), query) for part in _list_parts(one)]
    read = Counter(
        table.name
        for one in (*(s for _, s, _ in definitions), query)
        for table in one.find_all(exp.Table)
    )
    kept: list[Definition] = []
    for name, step, once in definitions:
        names = None if once or read[name] != 1 else _find_names(step)
        reader = None if names is None else _find_reader(parts, name, names[1])
        if names is None or reader is None:
            kept.append((name, step, once))
        else:
            _inline(reader, *names)
    return add_definitions(query, kept) if kept else query


def _list_parts(query: exp.Query) -> list[exp.Select]:
    """Every SELECT of a query that reads one table and nothing else."""
    return [
        part
        for part in query.find_all(exp.Select)
        if isinstance(part.args["from_"].this, exp.Table)
        and not part.args["from_"].this.args.get("alias")
        and not part.args.get("joins")
        and sum(1 for _ in part.find_all(exp.Select)) == 1
    ]


def _find_names(step: exp.Query) -> tuple[str, Names] | None:
    """What a step reads and how it calls its columns, if it does nothing else but cast some."""
    if not isinstance(step, exp.Select) or not _list_parts(step):
        return None
    if any(value for clause, value in step.args.items() if clause not in _ONLY_NAMES):
        return None
    below, picked = step.args["from_"].this.name, step.expressions
    if len(picked) == 1 and isinstance(picked[0], exp.Star):
        return below, None
    if all(_is_named(one) for one in picked):
        return below, {one.alias_or_name: one.unalias() for one in picked}
    return None


def _is_named(one: Node) -> bool:
    """Whether it is a column, or its cast, under a name."""
    inner = one.unalias()
    bare = inner.this if isinstance(one, exp.Alias) and isinstance(inner, exp.Cast) else inner
    return isinstance(bare, exp.Column)


def _find_reader(parts: list[exp.Select], name: str, names: Names) -> exp.Select | None:
    """The part that reads a step, if all that it says of its columns can be said of others."""
    for part in parts:
        if part.args["from_"].this.name == name:
            everything = any(isinstance(one, exp.Star) for one in part.expressions)
            known = names is None or all(c.name in names for c in _list_columns(part))
            return part if known and not (everything and names is not None) else None
    return None


def _list_columns(part: exp.Select) -> list[exp.Column]:
    """The columns of what it reads, wherever they are mentioned."""
    clauses = [value for clause, value in part.args.items() if clause not in _GIVEN]
    nodes = [n for value in clauses for n in (value if isinstance(value, list) else [value])]
    return [
        column
        for node in nodes
        if isinstance(node, exp.Expr)
        for column in node.find_all(exp.Column)
    ]


def _inline(reader: exp.Select, below: str, names: Names) -> None:
    """Have a part read what the step reads, under the names that it has there."""
    if names is not None:
        for one in list(reader.expressions):
            if isinstance(one, exp.Column):  # what is given keeps its name
                one.replace(add_alias(one.copy(), one.name))
        for column in _list_columns(reader):
            column.replace(names[column.name].copy())
    reader.args["from_"].set("this", quote_table(below))


__all__ = ["inline_renamings"]
