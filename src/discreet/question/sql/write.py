"""The question written back as SQL, from what was understood of it.

The parser compares this with the question in normal form.  If they differ, some
clause was read without being given a meaning, and the question is refused: a
forgotten clause can never be answered as if it had not been there.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from discreet.question.expressions import Expression
from discreet.question.offer import Offer
from discreet.question.ownership import unit_columns
from discreet.question.question import Limits, Question
from discreet.question.relation import (
    Filter,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    PublicSource,
    Relation,
    Source,
    Union,
    UnitAggregate,
    UnitJoin,
)
from discreet.question.sql.aggregates import write_aggregate
from discreet.question.sql.dialect import PrivacyClause, write_text
from discreet.question.sql.scalars import (
    BINARY,
    CHAINS,
    UNARY,
    alias_tree,
    call,
    column,
    conjunction,
    is_constant,
    output_tree,
    table_tree,
    write,
    write_constant,
)

Clauses = dict[str, object]


def write_question(question: Question) -> exp.Select:
    """The normal form of ``question``."""
    trees: dict[str, exp.Expr] = {key.name: write(key.expression, column) for key in question.keys}
    for aggregate in question.aggregates:
        trees[aggregate.name] = write_aggregate(aggregate, column)

    def released(expression: Expression) -> exp.Expr:
        return write(expression, lambda name: trees[name].copy())

    clauses = _rows(question.source)
    clauses["expressions"] = [
        output_tree(released(output.expression), output.name) for output in question.outputs
    ]
    if question.keys:
        keys = [trees[key.name].copy() for key in question.keys]
        clauses["group"] = exp.Group(expressions=keys)
    if question.having is not None:
        clauses["having"] = exp.Having(this=released(question.having))
    if question.order:
        clauses["order"] = exp.Order(
            expressions=[_ordered(released(o.expression), o.descending) for o in question.order]
        )
    if question.limit is not None:
        clauses["limit"] = exp.Limit(expression=write_constant(question.limit))
    clauses["hint"] = options_tree(question.limits, question.spend)
    return exp.Select(**clauses)


def _ordered(tree: exp.Expr, descending: bool) -> exp.Ordered:
    """One item of ORDER BY in normal form; NULL is last."""
    return exp.Ordered(this=tree, desc=True) if descending else exp.Ordered(this=tree)


def options_tree(limits: Limits, spend: Offer | None) -> PrivacyClause | None:
    """The privacy clause in normal form; None if it says nothing."""
    offered = spend or Offer()
    within = [margin for name, margin in offered.within if not name]
    options = {
        "epsilon": offered.epsilon,
        "rho": offered.rho,
        "delta": offered.delta,
        "within": within[0] if within else None,
        "confidence": offered.confidence if within else None,
        "max_rows": limits.max_rows,
        "max_groups_contributed": limits.max_groups,
        "max_rows_per_group": limits.max_rows_per_group,
    }
    trees = [
        exp.EQ(this=exp.column(name), expression=write_constant(value))
        for name, value in options.items()
        if value is not None
    ]
    return PrivacyClause(expressions=trees) if trees else None


# --- rows ----------------------------------------------------------------------------------


def _rows(relation: Relation) -> Clauses:
    """FROM, JOIN and WHERE."""
    clauses: Clauses = {}
    if isinstance(relation, Filter):
        clauses["where"] = exp.Where(this=write(relation.predicate, column))
        relation = relation.source
    joins: list[exp.Join] = []
    while isinstance(relation, PublicJoin | UnitJoin):
        joins.insert(0, _join(relation))
        relation = relation.left
    clauses["from_"] = exp.From(this=_item(relation))
    if joins:
        clauses["joins"] = joins
    return clauses


def _join(join: PublicJoin | UnitJoin) -> exp.Join:
    if isinstance(join, PublicJoin):
        pairs = [(write(left, column), column(right)) for left, right in join.on]
    else:
        own = zip(unit_columns(join.left), unit_columns(join.right), strict=True)
        pairs = [(column(a), column(b)) for a, b in own if a and b]
        pairs += [(column(a), column(b)) for a, b in join.on]
    on = conjunction([exp.EQ(this=left, expression=right) for left, right in pairs])
    side = "LEFT" if join.kind is JoinKind.LEFT else None
    return exp.Join(this=_item(join.right), on=on, side=side)


def _item(relation: Relation | PublicSource) -> exp.Expr:
    if isinstance(relation, Source | PublicSource):
        alias = relation.columns[0][0].partition(".")[0]
        return table_tree(relation.table.name, alias)
    names: Relation = relation
    while isinstance(names, Union):
        names = names.left
    if not isinstance(names, Project):
        raise TypeError(f"{type(names).__name__} is no sub-query")
    alias = names.columns[0][0].partition(".")[0]
    return exp.Subquery(this=_query(relation), alias=alias_tree(alias))


def _query(relation: Relation) -> exp.Expr:
    if isinstance(relation, Union):
        left, right = _query(relation.left), _query(relation.right)
        return exp.Union(this=left, expression=right, distinct=False)
    if not isinstance(relation, Project):
        raise TypeError(f"{type(relation).__name__} is no sub-query")
    source = relation.source
    having = None
    if isinstance(source, Filter) and isinstance(source.source, PerUnit):
        having = source.predicate
        source = source.source
    if isinstance(source, PerUnit):
        return _per_unit(relation, source, having)
    items = [output_tree(write(e, column), name) for name, e in relation.columns]
    return exp.Select(**{**_rows(source), "expressions": items})


def _per_unit(outer: Project, grouped: PerUnit, having: Expression | None) -> exp.Select:
    trees = {name: write(e, column) for name, e in grouped.keys}
    keys = [tree.copy() for tree in trees.values()]
    trees |= {name: _unit_aggregate(a) for name, a in grouped.aggregates}

    def known(expression: Expression) -> exp.Expr:
        return write(expression, lambda name: trees[name].copy())

    clauses = _rows(grouped.source)
    clauses["group"] = exp.Group(expressions=keys)
    if having is not None:
        clauses["having"] = exp.Having(this=known(having))
    items = [output_tree(known(e), name) for name, e in outer.columns]
    return exp.Select(**{**clauses, "expressions": items})


def _unit_aggregate(aggregate: UnitAggregate) -> exp.Expr:
    if aggregate.argument is None:
        return call("COUNT", exp.Star())
    return call(aggregate.function, write(aggregate.argument, column))


# --- text --------------------------------------------------------------------------------------


_OPERATORS = (*BINARY, *UNARY, exp.Is, exp.In, exp.Connector)
_CHAINS = {name.upper(): kind for kind, name in CHAINS.items()}


def write_question_text(question: Question) -> str:
    """``question`` in SQL, in one canonical spelling."""
    unit = [_column(name) for name in unit_columns(question.source) if name is not None]
    return write_text(_Surface(unit).tree(write_question(replace(question, text=""))))


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
