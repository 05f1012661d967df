"""The outermost SELECT: keys, aggregates, and what is computed from them for free."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question import groups
from discreet.question.aggregates import AGGREGATES, check
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression
from discreet.question.functions import domain_of
from discreet.question.question import Aggregate, Key, Order, Output, Question
from discreet.question.sql.aggregates import (
    aggregate_name,
    is_aggregate,
    normal_aggregate,
    read_aggregate,
    subjects,
)
from discreet.question.sql.joins import read_rows
from discreet.question.sql.names import Scope, checked_name, match, meant
from discreet.question.sql.normal import normal
from discreet.question.sql.options import read_options
from discreet.question.sql.reader import Reader, written
from discreet.question.sql.released import folded, has_aggregates
from discreet.question.sql.rewriting import (
    Change,
    as_number,
    averaged,
    clipped,
    counted,
    each,
    only_counted,
    since_1970,
)
from discreet.question.sql.scalars import column, read
from discreet.question.sql.sources import Frame, Rows, no_leaf, typed
from discreet.question.sql.subqueries import not_grouped
from discreet.question.sql.trees import output_tree


@dataclass(frozen=True, slots=True)
class Names:
    """Names above the aggregates; ``aliases`` are the columns of the answer, where visible."""

    scope: Scope
    unit: tuple[str | None, ...]
    keys: tuple[exp.Expr, ...] = ()
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)

    def column(self, node: exp.Column) -> exp.Expr:
        """A key; failing that, a column of the answer; failing that, a column of the rows."""
        alias = None if node.table else match(node.name, self.aliases, node, self.scope.reader)
        if alias is not None:
            found = self.scope.find(node)
            if found is None or self.scope.column(node) not in self.keys:
                own = Names(self.scope, self.unit)
                return normal(self.aliases[alias], own, self.scope.reader)
        return self.scope.column(node)

    def aggregate(self, node: exp.Expr) -> exp.Expr | None:
        """An aggregate of the rows of each group."""
        if aggregate_name(node) is None:
            return None
        reader = self.scope.reader
        return normal_aggregate(
            node, lambda inner: normal(inner, self.scope, reader), self.unit, reader
        )


@dataclass(slots=True)
class Released:
    """What is released: keys and aggregates by their trees, each with a name of its own."""

    reader: Reader
    select: exp.Select
    rows: Rows
    keys: dict[exp.Expr, str]
    wanted: Mapping[exp.Expr, str]  # names the analyst gives to bare keys and aggregates
    aggregates: dict[exp.Expr, Aggregate] = field(default_factory=dict)

    def expression(self, tree: exp.Expr) -> Expression:
        """``tree``, computed from what is released."""
        return read(tree, self._leaf)

    def _leaf(self, node: exp.Expr) -> Expression | None:
        if node in self.keys:
            return ColumnRef(self.keys[node])
        if is_aggregate(node):
            if node not in self.aggregates:
                self.aggregates[node] = self._aggregate(node)
            return ColumnRef(self.aggregates[node].name)
        if isinstance(node, exp.Column):
            raise self._bare(node)
        return None

    def _aggregate(self, node: exp.Expr) -> Aggregate:
        taken = {*self.keys.values(), *(a.name for a in self.aggregates.values())}
        taken |= {name for tree, name in self.wanted.items() if tree != node}
        name = self.wanted.get(node) or _fresh(_default(node), taken)
        known = self.reader.columns(self.rows.relation)
        for part in subjects(node):
            typed(part, known, self.reader)
        with self.reader.at(node):
            aggregate = read_aggregate(node, name, no_leaf)
            try:
                check(aggregate, known)
            except QuestionRefusal as refusal:
                if refusal.code == "Q1":
                    call = node.this if isinstance(node, exp.Filter) else node
                    own = written(call, self.select)
                    words = "declare bounds in the schema, or "
                    self.reader.improve(refusal, own, clipped, words)
                if refusal.code == "Q33":
                    change = each(self._not_numbers(known))
                    self.reader.improve(refusal, self.select, change)
                raise
        return aggregate

    def _not_numbers(self, known: Mapping[str, Domain]) -> dict[exp.Expr, Change]:
        """The calls that want numbers and are given something else, and how they get some."""
        found: dict[exp.Expr, Change] = {}
        quiet = replace(self.reader, accepts=None)  # their refusals are not shown
        names = Names(replace(self.rows.scope, reader=quiet), self.rows.unit)
        for call in self.select.find_all(exp.Anonymous):
            with suppress(QuestionRefusal):  # of something else
                tree = names.aggregate(call)
                if tree is None or call.parent_select is not self.select:
                    continue
                kinds = {domain_of(read(part, no_leaf), known).kind for part in subjects(tree)}
                try:
                    check(read_aggregate(tree, "", no_leaf), known)
                except QuestionRefusal:
                    found[call] = as_number if Kind.BOOLEAN in kinds else since_1970
        return found

    def _bare(self, node: exp.Column) -> QuestionRefusal:
        if has_aggregates(self.select):
            return not_grouped(node, self.select, self.reader)
        name = node.name.partition(".")[2]
        groups = self.reader.rewrite(self.select, counted) is not None
        first = counted if groups else only_counted
        return self.reader.refusal(
            "Q12",
            node,
            f"column '{name}' would be shown row by row.",
            why="each row is a person's own.",
            fix=self.reader.instead(self.select, first, "count the rows: COUNT(*)."),
        )


def _default_key(tree: exp.Expr) -> str:
    """What a key is called if the analyst does not say: the column, the function of a column."""
    if isinstance(tree, exp.Column):
        return str(tree.name.partition(".")[2])
    if isinstance(tree, exp.Anonymous) and len(tree.expressions) == 1:
        return f"{tree.this.lower()}_{_default_key(tree.expressions[0])}".removesuffix("_")
    return ""


def _default(tree: exp.Expr) -> str:
    """What an aggregate is called if the analyst does not say."""
    call = tree.this if isinstance(tree, exp.Filter) else tree
    first = call.expressions[0] if call.expressions else None
    subject = first.name.rpartition(".")[2] if isinstance(first, exp.Column) else ""
    return f"{call.this.lower()}_{subject}".strip("_")


def _fresh(name: str, taken: set[str]) -> str:
    lowered = {t.casefold() for t in taken}
    candidate, number = name, 2
    while candidate.casefold() in lowered:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def read_question(select: exp.Select, frame: Frame) -> tuple[Question, exp.Select]:
    """The question, and its normal form."""
    reader = frame.reader
    select = folded(select, reader)
    inside = frame.within(select)
    rows = read_rows(select, inside)
    inside.all_used(select)
    limits, spend, hint = read_options(select.args.get("hint"), rows, reader)
    key_trees = _key_trees(select, rows, reader)
    names = Names(rows.scope, rows.unit)
    outputs = _outputs(select, names, reader)
    released = _released(select, outputs, key_trees, rows, reader)
    expressions = [released.expression(tree) for _, tree in outputs]
    above = Names(rows.scope, rows.unit, tuple(key_trees), _aliases(select))
    having = select.args.get("having")
    having_tree = None if having is None else normal(having.this, above, reader)
    condition = None if having_tree is None else released.expression(having_tree)
    order, order_clause = _order(select, above, released, reader)
    limit = _limit(select, reader)
    if not released.aggregates:
        raise _nothing(select, reader)
    question = Question(
        source=rows.relation,
        keys=_keys(released, reader),
        aggregates=tuple(released.aggregates.values()),
        outputs=tuple(Output(n, e) for (n, _), e in zip(outputs, expressions, strict=True)),
        having=condition,
        order=order,
        limit=limit,
        limits=limits,
        spend=spend,
        text=reader.text,
    )
    _check_released(question, outputs, having, reader)
    clauses: dict[str, object] = {**rows.clauses, "hint": hint}
    clauses["expressions"] = [output_tree(tree, name) for name, tree in outputs]
    if key_trees:
        clauses["group"] = exp.Group(**{**select.args["group"].args, "expressions": key_trees})
    if having is not None:
        clauses["having"] = exp.Having(**{**having.args, "this": having_tree})
    clauses |= order_clause
    kept = {k: v for k, v in select.args.items() if k not in ("with_", "joins", "where")}
    return question, exp.Select(**{**kept, **clauses})


# --- keys ----------------------------------------------------------------------------------


def _key_trees(select: exp.Select, rows: Rows, reader: Reader) -> list[exp.Expr]:
    group = select.args.get("group")
    found: dict[exp.Expr, None] = {}
    for node in group.expressions if group is not None else ():
        tree = normal(meant(node, select, rows.scope), rows.scope, reader)
        typed(tree, reader.columns(rows.relation), reader)
        found[tree] = None
    unit = [None if name is None else column(name) for name in rows.unit]
    if unit and all(tree in found for tree in unit):
        raise _one_each(select, rows, reader)
    return list(found)


def _one_each(select: exp.Select, rows: Rows, reader: Reader) -> QuestionRefusal:
    names = ", ".join(name.partition(".")[2] for name in rows.unit if name)
    return reader.refusal(
        "Q23",
        select.args.get("group"),
        f"GROUP BY {names} makes one group per person.",
        why="each row of the answer would be about one person alone.",
        fix=reader.instead(select, averaged, f"leave {names} out of GROUP BY."),
    )


def _keys(released: Released, reader: Reader) -> tuple[Key, ...]:
    known = reader.columns(released.rows.relation)
    keys = []
    for tree, name in released.keys.items():
        expression = read(tree, no_leaf)
        keys.append(Key(name, expression, groups.public_values(expression, known)))
    with reader.at(next(iter(released.keys), None)):
        groups.check(keys)
    return tuple(keys)


# --- outputs -------------------------------------------------------------------------------


def _outputs(select: exp.Select, names: Names, reader: Reader) -> list[tuple[str, exp.Expr]]:
    given = [i.alias for i in select.expressions if isinstance(i, exp.Alias)]
    taken = set(given)
    found: list[tuple[str, exp.Expr]] = []
    for item in select.expressions:
        if isinstance(item, exp.Alias):
            name = checked_name(item.args["alias"], reader)
            found.append((name, normal(item.this, names, reader)))
            continue
        tree = normal(item, names, reader)
        default = _default(tree) if is_aggregate(tree) else _default_key(tree)
        name = _fresh(default or f"column_{len(found) + 1}", taken)
        taken.add(name)
        found.append((name, tree))
    lowered = [name.casefold() for name in given]
    if len(set(lowered)) < len(lowered):
        twice = next(n for i, n in enumerate(given) if n.casefold() in lowered[:i])
        raise reader.refusal(
            "Q8",
            select,
            f"two columns of the answer are called '{twice}'.",
            why="nothing for a person in the data; the answer could not be read.",
            fix="give each its own name with AS.",
        )
    return found


def _released(
    select: exp.Select,
    outputs: list[tuple[str, exp.Expr]],
    key_trees: list[exp.Expr],
    rows: Rows,
    reader: Reader,
) -> Released:
    bare = {tree: name for name, tree in reversed(outputs)}
    wanted: dict[exp.Expr, str] = {
        t: n for t, n in bare.items() if t in key_trees or is_aggregate(t)
    }
    keys: dict[exp.Expr, str] = {}
    for tree in key_trees:
        default = _default_key(tree)
        taken: set[str] = {*keys.values(), *(n for n, _ in outputs)}
        keys[tree] = wanted.get(tree) or _fresh(default or "key", taken)
    return Released(reader, select, rows, keys, wanted)


def _aliases(select: exp.Select) -> dict[str, exp.Expr]:
    return {i.alias: i.this for i in select.expressions if isinstance(i, exp.Alias)}


def _order(
    select: exp.Select, names: Names, released: Released, reader: Reader
) -> tuple[tuple[Order, ...], dict[str, object]]:
    clause = select.args.get("order")
    if clause is None:
        return (), {}
    orders, trees = [], []
    for item in clause.expressions:
        if item.args.get("nulls_first"):
            raise reader.refusal(
                "Q11",
                item,
                "NULLS FIRST is outside the dialect.",
                why="nothing for a person in the data: it is not built.",
                fix="leave it out: NULL is last.",
            )
        node = meant(item.this, select, names.scope, alias_first=True)
        own = Names(names.scope, names.unit) if node is not item.this else names
        tree = normal(node, own, reader)
        orders.append(Order(released.expression(tree), bool(item.args.get("desc"))))
        kept = {k: v for k, v in item.args.items() if k != "nulls_first" and v}
        trees.append(exp.Ordered(**{**kept, "this": tree}))
    return tuple(orders), {"order": exp.Order(**{**clause.args, "expressions": trees})}


def _limit(select: exp.Select, reader: Reader) -> int | None:
    clause = select.args.get("limit")
    if clause is None:
        return None
    node = clause.expression
    whole = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    if whole and len(node.name) <= 9:
        return int(node.name)
    raise reader.refusal(
        "Q31",
        clause,
        "LIMIT takes a whole number.",
        why="nothing for a person in the data: it cuts what is already released.",
        fix="write LIMIT 10.",
    )


def _nothing(select: exp.Select, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q35",
        select,
        "nothing is counted or aggregated.",
        why="which groups exist can be told only together with how many are in them.",
        fix="add COUNT(*) to the SELECT list.",
    )


def _check_released(
    question: Question,
    outputs: list[tuple[str, exp.Expr]],
    having: exp.Expr | None,
    reader: Reader,
) -> None:
    """Kinds of what is computed from released values; a list of values stands alone."""
    source = reader.columns(question.source)
    known: dict[str, Domain] = {k.name: domain_of(k.expression, source) for k in question.keys}
    lists: set[str] = set()
    for aggregate in question.aggregates:
        known[aggregate.name] = check(aggregate, source)
        if AGGREGATES[aggregate.function].many or len(aggregate.parameters) > 1:
            lists.add(aggregate.name)
    for output, (_, tree) in zip(question.outputs, outputs, strict=True):
        if isinstance(output.expression, ColumnRef):
            continue
        with reader.at(tree):
            _no_list(output.expression, lists, tree, reader)
            domain_of(output.expression, known)
    if question.having is not None:
        with reader.at(having):
            _no_list(question.having, lists, having, reader)
            if domain_of(question.having, known).kind is not Kind.BOOLEAN:
                raise reader.refusal(
                    "Q10",
                    having,
                    "HAVING takes a condition.",
                    why="nothing for a person in the data: it cuts what is already released.",
                    fix="compare with something: HAVING COUNT(*) > 100.",
                )
    for order in question.order:
        _no_list(order.expression, lists, having, reader)
        domain_of(order.expression, known)


def _no_list(
    expression: Expression, lists: set[str], node: exp.Expr | None, reader: Reader
) -> None:
    match expression:
        case ColumnRef(name=name) if name in lists:
            raise reader.refusal(
                "Q33",
                node,
                "a list of values cannot be computed with.",
                why="nothing for a person in the data: it is not built.",
                fix="select it by itself.",
            )
        case Call(arguments=parts):
            pass
        case Case(branches=branches, otherwise=otherwise):
            parts = (*(part for branch in branches for part in branch), otherwise)
        case _:
            parts = ()
    for part in parts:
        _no_list(part, lists, node, reader)
