"""Small pieces of normal form, used by what reads and by what writes."""

from __future__ import annotations

from sqlglot import exp


def table_tree(name: str, alias: str) -> exp.Table:
    """A table under its alias."""
    return exp.Table(this=exp.Identifier(this=name, quoted=True), alias=alias_tree(alias))


def alias_tree(alias: str) -> exp.TableAlias:
    """The alias of a table or a sub-query."""
    return exp.TableAlias(this=exp.Identifier(this=alias, quoted=True))


def output_tree(tree: exp.Expr, name: str) -> exp.Alias:
    """A column of a query."""
    return exp.Alias(this=tree, alias=exp.Identifier(this=name, quoted=True))
