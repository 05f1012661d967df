"""A question as SQL text that asks it again: parsed, it gives the same question."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from discreet.question.ownership import unit_columns
from discreet.question.question import Question
from discreet.question.sql.constants import is_constant
from discreet.question.sql.dialect import PrivacyClause, text_of
from discreet.question.sql.scalars import BINARY, CHAINS, UNARY
from discreet.question.sql.write import write_question

_OPERATORS = (*BINARY, *UNARY, exp.Is, exp.In, exp.Connector)
_CHAINS = {name.upper(): kind for kind, name in CHAINS.items()}


def question_text(question: Question) -> str:
    """``question`` in SQL, in one canonical spelling."""
    unit = [_column(name) for name in unit_columns(question.source) if name is not None]
    return text_of(_Surface(unit).tree(write_question(replace(question, text=""))))


class _Surface:
    """From normal form to what an analyst would type."""

    def __init__(self, unit: list[exp.Column]) -> None:
        self._unit = unit

    def tree(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, PrivacyClause) or is_constant(node):
            return node.copy()
        if isinstance(node, exp.Column):
            return _column(node.name)
        if isinstance(node, exp.Anonymous) and node.this in _CHAINS:
            return self._chain(node)
        if isinstance(node, exp.Alias):
            alias = exp.Identifier(this=_last(node.alias), quoted=True)
            return exp.Alias(this=self.tree(node.this), alias=alias)
        changed = {name: self._argument(value, node) for name, value in node.args.items()}
        copy = type(node)(**changed)
        return self._aggregate(copy) if isinstance(copy, exp.Anonymous) else copy

    def _argument(self, value: object, parent: exp.Expr) -> object:
        if isinstance(value, list):
            return [self._argument(item, parent) for item in value]
        if not isinstance(value, exp.Expr):
            return value
        tree = self.tree(value)
        torn = isinstance(parent, _OPERATORS) and isinstance(tree, _OPERATORS)
        return exp.Paren(this=tree) if torn else tree

    def _chain(self, node: exp.Anonymous) -> exp.Expr:
        parts = [self.tree(part) for part in node.expressions]
        parts = [exp.Paren(this=p) if isinstance(p, exp.Connector) else p for p in parts]
        result = parts[0]
        for part in parts[1:]:
            result = _CHAINS[node.this](this=result, expression=part)
        return result

    def _aggregate(self, call: exp.Anonymous) -> exp.Expr:
        named = [e for e in call.expressions if isinstance(e, exp.Kwarg)]
        plain = [e for e in call.expressions if not isinstance(e, exp.Kwarg)]
        match call.this:
            case "COUNT_UNITS":
                plain = [exp.Distinct(expressions=[c.copy() for c in self._unit])]
                name = "COUNT"
            case "COUNT_DISTINCT":
                plain, name = [exp.Distinct(expressions=plain)], "COUNT"
            case "QUANTILE":
                name = "QUANTILE_CONT"
            case other:
                name = other
        return exp.Anonymous(this=name, expressions=[*plain, *named])


def _last(name: str) -> str:
    """The analyst's part of a relation's column name; names of the answer have no dot."""
    return name.partition(".")[2] or name


def _column(name: str) -> exp.Column:
    alias, _, own = name.partition(".")
    quoted = exp.Identifier(this=own, quoted=True)
    return exp.Column(this=quoted, table=exp.Identifier(this=alias, quoted=True))
