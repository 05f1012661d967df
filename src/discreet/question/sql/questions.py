"""The outermost SELECT: keys, aggregates, and what is computed from them for free."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, replace

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression
from discreet.question.functions import domain_of
from discreet.question.question import (
    AGGREGATES,
    Aggregate,
    Key,
    Limits,
    Order,
    Output,
    Question,
    check_aggregate,
    check_groups,
    public_values,
)
from discreet.question.relation import PublicSource
from discreet.question.sql.aggregates import (
    aggregate_name,
    has_aggregates,
    is_aggregate,
    normalize_aggregate,
    offer_auto,
    read_aggregate,
    subjects,
)
from discreet.question.sql.bans import WINDOW
from discreet.question.sql.dialect import Reader
from discreet.question.sql.normalize import normalize
from discreet.question.sql.options import (
    Clause,
    check_strategy,
    find_remarks,
    find_spellings,
    keep_large,
    read_options,
)
from discreet.question.sql.rewrite import (
    Change,
    average_over_units,
    cast_to_integer,
    change_each,
    count_by_group,
    count_days_since_1970,
    count_rows,
    count_values,
)
from discreet.question.sql.scalars import (
    column,
    output_tree,
    read,
)
from discreet.question.sql.scope import Scope, check_name, find_name, resolve_output
from discreet.question.sql.simplify import LISTED
from discreet.question.sql.sources import Frame, Rows, no_leaf, read_rows, read_typed
from discreet.question.sql.subqueries import ungrouped_refusal
from discreet.question.sql.times import remark_on_weeks


@dataclass(frozen=True, slots=True)
class GroupNames:
    """Names above the aggregates; ``aliases`` are the columns of the answer, where visible."""

    scope: Scope
    unit: tuple[str | None, ...]
    keys: tuple[exp.Expr, ...] = ()
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)

    def column(self, node: exp.Column) -> exp.Expr:
        """A key; failing that, a column of the answer; failing that, a column of the rows."""
        alias = None if node.table else find_name(node.name, self.aliases, node, self.scope.reader)
        if alias is not None:
            found = self.scope.find(node)
            if found is None or self.scope.column(node) not in self.keys:
                own = GroupNames(self.scope, self.unit)
                return normalize(self.aliases[alias], own, self.scope.reader)
        return self.scope.column(node)

    def kind_of(self, name: str) -> Kind | None:
        """The kind of a column of the rows."""
        return self.scope.kind_of(name)

    def zone_of(self, name: str) -> str | None:
        """The time zone whose clocks a column shows, if it is declared."""
        return self.scope.zone_of(name)

    def aggregate(self, node: exp.Expr) -> exp.Expr | None:
        """An aggregate of the rows of each group."""
        name = aggregate_name(node)
        if name is None:
            return None
        reader = self.scope.reader
        if name == "ANY_VALUE" and isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
            key = normalize(node.expressions[0], self.scope, reader)
            if key in self.keys:  # which is the same on all rows of its group
                return key
        counts = name in ("SUM", "AVG", "MEAN")

        def inner(part: exp.Expr) -> exp.Expr:
            tree = normalize(part, self.scope, reader)
            if isinstance(part.parent, exp.Where):  # of FILTER: a condition, and nothing added up
                return tree
            if counts and isinstance(tree, exp.Column) and self.kind_of(tree.name) is Kind.BOOLEAN:
                return exp.Cast(this=tree, to=exp.DataType(this=exp.DType.BIGINT))
            return tree

        return normalize_aggregate(node, inner, self.unit, reader)


_WORDS = {
    count_values: "texts cannot be added up; how many there are can be told: ",
    count_days_since_1970: "in whole days, counted from 1970 unless it is MIN or MAX: ",
}
"""In which way what is suggested differs from what was asked."""


def _advise_bounding(node: exp.Expr) -> str:
    """How to bound what is added up.  Which numbers would do, only somebody who knows can say."""
    columns = {part.name.rpartition(".")[2] for part in node.find_all(exp.Column)}
    name = columns.pop() if len(columns) == 1 else "x"
    return (
        f"declare what '{name}' can be in the schema, bounds = [LOW, HIGH], or say it in the "
        f"question, GREATEST(LEAST({name}, HIGH), LOW) in place of {name}: with numbers that you "
        "know without the data. What lies outside is moved to them, so that too narrow ones change "
        f"the answer.{offer_auto(node.this if isinstance(node, exp.Filter) else node)}"
    )


@dataclass(slots=True)
class ReleasedNames:
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
        name = self.wanted.get(node) or find_unused_name(default_aggregate(node), taken)
        known = self.reader.columns(self.rows.relation)
        for part in subjects(node):
            read_typed(part, known, self.reader)
        with self.reader.at(node):
            aggregate = read_aggregate(node, name, no_leaf)
            try:
                check_aggregate(aggregate, known)
            except QuestionRefusal as refusal:
                if refusal.code == "Q1":
                    refusal.fix = _advise_bounding(node)
                if refusal.code == "Q33":
                    changes = self._not_numbers(known)
                    words = [w for change, w in _WORDS.items() if change in changes.values()]
                    change = change_each(changes)
                    self.reader.improve(refusal, self.select, change, "".join(words[:1]))
                raise
        return aggregate

    def _not_numbers(self, known: Mapping[str, Domain]) -> dict[exp.Expr, Change]:
        """The calls that want numbers and are given something else, and how they get some."""
        found: dict[exp.Expr, Change] = {}
        quiet = replace(self.reader, accepts=None)  # their refusals are not shown
        names = GroupNames(replace(self.rows.scope, reader=quiet), self.rows.unit)
        for node in self.select.find_all(exp.Anonymous):
            with suppress(QuestionRefusal):  # of something else
                tree = names.aggregate(node)
                if tree is None or node.parent_select is not self.select:
                    continue
                kinds = {domain_of(read(part, no_leaf), known).kind for part in subjects(tree)}
                try:
                    check_aggregate(read_aggregate(tree, "", no_leaf), known)
                except QuestionRefusal:
                    found[node] = (
                        cast_to_integer
                        if Kind.BOOLEAN in kinds
                        else count_values
                        if Kind.TEXT in kinds
                        else count_days_since_1970
                    )
        return found

    def _bare(self, node: exp.Column) -> QuestionRefusal:
        if has_aggregates(self.select):
            return ungrouped_refusal(node, self.select, self.reader)
        name = node.name.partition(".")[2]
        groups = self.reader.rewrite(self.select, count_by_group) is not None
        first = count_by_group if groups else count_rows
        return self.reader.refusal(
            "Q12",
            node,
            f"column '{name}' would be shown row by row.",
            why="each row is a person's own.",
            fix=self.reader.suggest_fix(self.select, first, "count the rows: COUNT(*)."),
        )


def default_key(tree: exp.Expr) -> str:
    """What a key is called if the analyst does not say: the column, the function of a column."""
    if isinstance(tree, exp.Column):
        return str(tree.name.partition(".")[2])
    if isinstance(tree, exp.Anonymous) and len(tree.expressions) == 1:
        return f"{tree.this.lower()}_{default_key(tree.expressions[0])}".removesuffix("_")
    return ""


def default_aggregate(tree: exp.Expr) -> str:
    """What an aggregate is called if the analyst does not say."""
    call = tree.this if isinstance(tree, exp.Filter) else tree
    first = call.expressions[0] if call.expressions else None
    subject = first.name.rpartition(".")[2] if isinstance(first, exp.Column) else ""
    return f"{call.this.lower()}_{subject}".strip("_")


def find_unused_name(name: str, taken: set[str]) -> str:
    """``name``, or with a number behind it if it is taken."""
    lowered = {t.casefold() for t in taken}
    candidate, number = name, 2
    while candidate.casefold() in lowered:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def read_question(select: exp.Select, frame: Frame) -> tuple[Question, exp.Select]:
    """The question, and its normal form."""
    reader = frame.reader
    for clause in ("qualify", "windows"):
        if select.args.get(clause):
            raise reader.refusal(WINDOW.code, select, WINDOW.what, why=WINDOW.why, fix=WINDOW.fix)
    inside = frame.within(select)
    rows = read_rows(select, inside)
    inside.check_all_read(select)
    hint = select.args.get("hint")
    options = None if hint is None else read_options(hint, rows, reader)
    key_trees = _key_trees(select, rows, reader)
    names = GroupNames(rows.scope, rows.unit, tuple(key_trees))
    outputs = _read_outputs(select, names, reader)
    released = _collect_released(select, outputs, key_trees, rows, reader)
    expressions = [released.expression(tree) for _, tree in outputs]
    above = GroupNames(rows.scope, rows.unit, tuple(key_trees), _aliases(select))
    having = select.args.get("having")
    having_tree = None if having is None else normalize(having.this, above, reader)
    if options is not None and options.least_units is not None:
        having_tree = keep_large(having_tree, options.least_units, rows)
    condition = None if having_tree is None else released.expression(having_tree)
    order, order_clause = _read_order(select, above, released, reader)
    limit = _read_limit(select, reader)
    keys = _read_keys(released, reader)
    if options is not None:
        check_strategy(options, keys, hint, reader)
    if not released.aggregates and not (outputs and keys):
        raise _no_aggregate_refusal(select, reader)
    question = Question(
        source=rows.relation,
        keys=keys,
        aggregates=tuple(released.aggregates.values()),
        outputs=tuple(Output(n, e) for (n, _), e in zip(outputs, expressions, strict=True)),
        having=condition,
        order=order,
        limit=limit,
        limits=Limits() if options is None else options.limits,
        spend=None if options is None else options.spend,
        text=reader.text,
    )
    remarks = _list_remarks(question, select, options, reader)
    if remarks:
        question = replace(question, remarks=remarks)
    _check_released(question, outputs, having, reader)
    clauses: dict[str, object] = {**rows.clauses, "hint": options and options.tree}
    clauses["expressions"] = [output_tree(tree, name) for name, tree in outputs]
    if key_trees:
        clauses["group"] = exp.Group(**{**select.args["group"].args, "expressions": key_trees})
    if having_tree is not None:
        kept_having = {} if having is None else having.args
        clauses["having"] = exp.Having(**{**kept_having, "this": having_tree})
    clauses |= order_clause
    kept = {k: v for k, v in select.args.items() if k not in ("with_", "joins", "where")}
    return question, exp.Select(**{**kept, **clauses})


def _list_remarks(
    question: Question, select: exp.Select, options: Clause | None, reader: Reader
) -> tuple[str, ...]:
    """What is to be said about the words that were used; about few questions anything is."""
    remarks = () if options is None else find_remarks(question, options, reader)
    if select.find(exp.Kwarg, exp.Extract) is not None:
        remarks = (*remarks, *find_spellings(select))
    if "week" in reader.text.lower():
        remarks = (*remarks, *remark_on_weeks(select))
    return (*remarks, *_remark_on_nobody(question, select))


def _remark_on_nobody(question: Question, select: exp.Select) -> tuple[str, ...]:
    """Where SQL would count the row of a key that nobody has: in ours there is no row."""
    counted = [a.name for a in question.aggregates if a.function == "COUNT" and not a.arguments]
    if not counted or not any(start.meta.get(LISTED) for start in select.find_all(exp.From)):
        return ()
    return (
        f"{', '.join(counted)}: people's rows are counted, 0 where nobody is in a group. Plain SQL "
        "counts 1 there, the row of the list that has no partner; COUNT(column) is 0 in both.",
    )


# --- keys ----------------------------------------------------------------------------------


def _key_trees(select: exp.Select, rows: Rows, reader: Reader) -> list[exp.Expr]:
    group = select.args.get("group")
    found: dict[exp.Expr, None] = {}
    for node in group.expressions if group is not None else ():
        tree = normalize(resolve_output(node, select, rows.scope), rows.scope, reader)
        read_typed(tree, reader.columns(rows.relation), reader)
        found[tree] = None
    unit = [None if name is None else column(name) for name in rows.unit]
    if unit and all(tree in found for tree in unit):
        raise _one_person_refusal(select, rows, reader)
    return [*found, *_find_determined(select, rows.scope, found)]


def _find_determined(
    select: exp.Select, scope: Scope, keys: Mapping[exp.Expr, None]
) -> dict[exp.Expr, None]:
    """Columns shown of a public row whose key is grouped by: as in PostgreSQL, keys themselves.

    A group has one value of them, so that with them there are no other groups.
    """
    determined: set[str] = set()
    for item in scope.items if keys else ():
        source = item.relation
        for unique in source.table.unique if isinstance(source, PublicSource) else ():
            own = [item.columns.get(name) for name in unique]
            if all(name and column(scope.same.get(name, name)) in keys for name in own):
                determined |= set(item.columns.values())
    found: dict[exp.Expr, None] = {}
    quiet = replace(scope, reader=replace(scope.reader, accepts=None))
    for node in _list_shown(select) if determined else ():
        with suppress(QuestionRefusal):  # a name of something else
            name = quiet.find(node)
            if name in determined and scope.column(node) not in keys:
                found[scope.column(node)] = None
    return found


def _list_shown(select: exp.Select) -> list[exp.Column]:
    """Columns that stand in the list by themselves, or as any value of their group."""
    inside = [item.unalias() for item in select.expressions]
    values = [
        node.expressions[0]
        if aggregate_name(node) == "ANY_VALUE" and len(node.expressions) == 1
        else node
        for node in inside
    ]
    return [node for node in values if isinstance(node, exp.Column)]


def _one_person_refusal(select: exp.Select, rows: Rows, reader: Reader) -> QuestionRefusal:
    names = ", ".join(name.partition(".")[2] for name in rows.unit if name)
    return reader.refusal(
        "Q23",
        select.args.get("group"),
        f"GROUP BY {names} makes one group per person.",
        why="each row of the answer would be about one person alone.",
        fix=reader.suggest_fix(select, average_over_units, f"leave {names} out of GROUP BY."),
    )


def _read_keys(released: ReleasedNames, reader: Reader) -> tuple[Key, ...]:
    known = reader.columns(released.rows.relation)
    keys = []
    for tree, name in released.keys.items():
        expression = read(tree, no_leaf)
        keys.append(Key(name, expression, public_values(expression, known)))
    with reader.at(next(iter(released.keys), None)):
        check_groups(keys)
    return tuple(keys)


# --- outputs -------------------------------------------------------------------------------


def _read_outputs(
    select: exp.Select, names: GroupNames, reader: Reader
) -> list[tuple[str, exp.Expr]]:
    given = [i.alias for i in select.expressions if isinstance(i, exp.Alias)]
    taken = set(given)
    found: list[tuple[str, exp.Expr]] = []
    for item in select.expressions:
        if isinstance(item, exp.Alias):
            name = check_name(item.args["alias"], reader)
            found.append((name, normalize(item.this, names, reader)))
            continue
        tree = normalize(item, names, reader)
        default = default_aggregate(tree) if is_aggregate(tree) else default_key(tree)
        name = find_unused_name(default or f"column_{len(found) + 1}", taken)
        taken.add(name)
        found.append((name, tree))
    lowered = [name.casefold() for name in given]
    if len(set(lowered)) < len(lowered):
        twice = next(n for i, n in enumerate(given) if n.casefold() in lowered[:i])
        raise reader.refusal(
            "Q8",
            select,
            f"two columns of the answer are called '{twice}'.",
            why="two columns of one name could not be told apart in the answer.",
            fix="give each its own name with AS.",
        )
    return found


def _collect_released(
    select: exp.Select,
    outputs: list[tuple[str, exp.Expr]],
    key_trees: list[exp.Expr],
    rows: Rows,
    reader: Reader,
) -> ReleasedNames:
    bare = {tree: name for name, tree in reversed(outputs)}
    wanted: dict[exp.Expr, str] = {
        t: n for t, n in bare.items() if t in key_trees or is_aggregate(t)
    }
    keys: dict[exp.Expr, str] = {}
    for tree in key_trees:
        default = default_key(tree)
        taken: set[str] = {*keys.values(), *(n for n, _ in outputs)}
        keys[tree] = wanted.get(tree) or find_unused_name(default or "key", taken)
    return ReleasedNames(reader, select, rows, keys, wanted)


def _aliases(select: exp.Select) -> dict[str, exp.Expr]:
    return {i.alias: i.this for i in select.expressions if isinstance(i, exp.Alias)}


def _read_order(
    select: exp.Select, names: GroupNames, released: ReleasedNames, reader: Reader
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
                why="an answer that has no value, because nobody is behind it, is shown last.",
                fix="leave it out: NULL is last.",
            )
        node = resolve_output(item.this, select, names.scope, alias_first=True)
        own = GroupNames(names.scope, names.unit) if node is not item.this else names
        tree = normalize(node, own, reader)
        orders.append(Order(released.expression(tree), bool(item.args.get("desc"))))
        kept = {k: v for k, v in item.args.items() if k != "nulls_first" and v}
        trees.append(exp.Ordered(**{**kept, "this": tree}))
    return tuple(orders), {"order": exp.Order(**{**clause.args, "expressions": trees})}


def _read_limit(select: exp.Select, reader: Reader) -> int | None:
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
        why="it cuts what is released, and decides by that alone.",
        fix="write LIMIT 10.",
    )


def _no_aggregate_refusal(select: exp.Select, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q35",
        select,
        "nothing is counted or aggregated.",
        why="without groups and without numbers there is nothing to tell.",
        fix="add COUNT(*) to the SELECT list.",
    )


def group_distinct(select: exp.Select) -> exp.Select:
    """SELECT DISTINCT of rows as the groups that it asks for: GROUP BY all that is listed.

    Only where it is that and nothing else; any other DISTINCT stays, and is refused.
    """
    distinct = select.args.get("distinct")
    plain = isinstance(distinct, exp.Distinct) and not any(distinct.args.values())
    listed = [item.unalias() for item in select.expressions]
    if (
        not plain
        or has_aggregates(select)
        or any(isinstance(item, exp.Star) or item.find(exp.Star) for item in listed)
    ):
        return select
    # A number in GROUP BY is a place in the list; a constant makes no groups.
    keys = [item.copy() for item in listed if not isinstance(item, exp.Literal)]
    if not keys:
        return select
    grouped = select.copy()
    grouped.set("distinct", None)
    grouped.set("group", exp.Group(expressions=keys))
    return grouped


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
        known[aggregate.name] = check_aggregate(aggregate, source)
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
                    why="it cuts what is released, and decides by that alone.",
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
                why="what is released there is several values in one, chosen together.",
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
