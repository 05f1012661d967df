"""The outermost SELECT: keys, aggregates, and what is computed from them for free."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression
from discreet.question.functions import domain_of
from discreet.question.offer import CONFIDENCE, Offer
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
from discreet.question.sql.aggregates import (
    aggregate_name,
    has_aggregates,
    is_aggregate,
    normalize_aggregate,
    read_aggregate,
    subjects,
)
from discreet.question.sql.dialect import WINDOW, PrivacyClause, Reader
from discreet.question.sql.normalize import normalize
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
    is_constant,
    normalize_constant,
    output_tree,
    read,
    read_constant,
    write_constant,
)
from discreet.question.sql.scope import Scope, check_name, find_name, resolve_output
from discreet.question.sql.sources import Frame, Rows, no_leaf, read_rows, read_typed
from discreet.question.sql.subqueries import ungrouped_refusal


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


_WORDS = ("", "texts cannot be added up; how many there are, tells: ")


def _bounding(node: exp.Expr) -> str:
    """How to bound what is added up.  Which numbers would do, only somebody who knows can say."""
    columns = {part.name.rpartition(".")[2] for part in node.find_all(exp.Column)}
    name = columns.pop() if len(columns) == 1 else "x"
    return (
        f"declare what '{name}' can be in the schema, bounds = [LOW, HIGH], or say it in the "
        f"question, GREATEST(LEAST({name}, HIGH), LOW) in place of {name}: with numbers that you "
        "know without the data. What lies outside is moved to them, so that too narrow ones change "
        "the answer."
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
        name = self.wanted.get(node) or unused_name(default_aggregate(node), taken)
        known = self.reader.columns(self.rows.relation)
        for part in subjects(node):
            read_typed(part, known, self.reader)
        with self.reader.at(node):
            aggregate = read_aggregate(node, name, no_leaf)
            try:
                check_aggregate(aggregate, known)
            except QuestionRefusal as refusal:
                if refusal.code == "Q1":
                    refusal.fix = _bounding(node)
                if refusal.code == "Q33":
                    changes = self._not_numbers(known)
                    texts = count_values in changes.values()
                    change = change_each(changes)
                    self.reader.improve(refusal, self.select, change, _WORDS[bool(texts)])
                raise
        return aggregate

    def _not_numbers(self, known: Mapping[str, Domain]) -> dict[exp.Expr, Change]:
        """The calls that want numbers and are given something else, and how they get some."""
        found: dict[exp.Expr, Change] = {}
        quiet = replace(self.reader, accepts=None)  # their refusals are not shown
        names = GroupNames(replace(self.rows.scope, reader=quiet), self.rows.unit)
        for call in self.select.find_all(exp.Anonymous):
            with suppress(QuestionRefusal):  # of something else
                tree = names.aggregate(call)
                if tree is None or call.parent_select is not self.select:
                    continue
                kinds = {domain_of(read(part, no_leaf), known).kind for part in subjects(tree)}
                try:
                    check_aggregate(read_aggregate(tree, "", no_leaf), known)
                except QuestionRefusal:
                    found[call] = (
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


def unused_name(name: str, taken: set[str]) -> str:
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
    limits, spend, hint = read_options(select.args.get("hint"), rows, reader)
    key_trees = _key_trees(select, rows, reader)
    names = GroupNames(rows.scope, rows.unit, tuple(key_trees))
    outputs = _read_outputs(select, names, reader)
    released = _collect_released(select, outputs, key_trees, rows, reader)
    expressions = [released.expression(tree) for _, tree in outputs]
    above = GroupNames(rows.scope, rows.unit, tuple(key_trees), _aliases(select))
    having = select.args.get("having")
    having_tree = None if having is None else normalize(having.this, above, reader)
    condition = None if having_tree is None else released.expression(having_tree)
    order, order_clause = _read_order(select, above, released, reader)
    limit = _read_limit(select, reader)
    keys = _read_keys(released, reader)
    if not released.aggregates and (not outputs or all(k.values is not None for k in keys)):
        raise _no_aggregate_refusal(select, reader, public=bool(keys))
    question = Question(
        source=rows.relation,
        keys=keys,
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
        tree = normalize(resolve_output(node, select, rows.scope), rows.scope, reader)
        read_typed(tree, reader.columns(rows.relation), reader)
        found[tree] = None
    unit = [None if name is None else column(name) for name in rows.unit]
    if unit and all(tree in found for tree in unit):
        raise _one_person_refusal(select, rows, reader)
    return list(found)


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
        name = unused_name(default or f"column_{len(found) + 1}", taken)
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
        keys[tree] = wanted.get(tree) or unused_name(default or "key", taken)
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


def _no_aggregate_refusal(select: exp.Select, reader: Reader, *, public: bool) -> QuestionRefusal:
    """Private groups may be asked for by themselves; what is declared is known without asking."""
    what = "these groups are declared, and nothing is counted or aggregated of them."
    why = "every declared group is in the answer whatever the data are: it would tell nothing."
    return reader.refusal(
        "Q35",
        select,
        what if public else "nothing is counted or aggregated.",
        why=why if public else "without groups and without numbers there is nothing to tell.",
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


# --- the privacy clause ------------------------------------------------------------------------
#
# ``WITH DIFFERENTIAL_PRIVACY OPTIONS(name = value, ...)``.


LIMIT_OPTIONS = {
    "max_rows": "max_rows",
    "max_rows_contributed": "max_rows",
    "max_groups_contributed": "max_groups",
    "max_rows_per_group": "max_rows_per_group",
}
"""Options that are whole numbers of at least 1, and the limit each one is."""

AMOUNT_OPTIONS = ("epsilon", "rho", "delta", "within", "confidence")
"""Options that are positive numbers; delta and confidence are also below 1."""

OPTIONS = (*AMOUNT_OPTIONS, *LIMIT_OPTIONS, "privacy_unit_column")


def read_options(
    clause: exp.Expr | None, rows: Rows, reader: Reader
) -> tuple[Limits, Offer | None, exp.Expr | None]:
    """What one unit may contribute, what the analyst offers, and the clause in normal form."""
    if clause is None:
        return Limits(), None, None
    values: dict[str, Fraction] = {}
    for option in clause.expressions:
        name = option.this.name.lower() if _is_option(option) else ""
        if name not in OPTIONS or name in values:
            raise _option_refusal(
                reader, option, f"is not one of {', '.join(OPTIONS)}, each given once"
            )
        if name == "privacy_unit_column":
            _check_unit(option.expression, rows, reader)
        else:
            values[name] = _read_number(name, option, reader)
    limits, spend = _read_limits(values, clause, reader), _read_spend(values, clause, reader)
    tree = options_tree(limits, spend)
    kept = {k: v for k, v in clause.args.items() if k != "expressions"}
    if tree is not None and any(kept.values()):
        tree = PrivacyClause(expressions=tree.expressions, **kept)
    return limits, spend, tree


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


def read_offer(clause: exp.Expr, reader: Reader) -> Offer | None:
    """What the analyst offers for all questions of a statement together."""
    for option in clause.expressions:
        if not _is_option(option) or option.this.name.lower() not in AMOUNT_OPTIONS:
            raise _option_refusal(
                reader, option, "belongs to a question: put it into the clause of that SELECT"
            )
    values = {
        o.this.name.lower(): _read_number(o.this.name.lower(), o, reader)
        for o in clause.expressions
    }
    if len(values) < len(clause.expressions):
        raise _option_refusal(reader, clause, "is given twice")
    return _read_spend(values, clause, reader)


def _is_option(option: exp.Expr) -> bool:
    return isinstance(option, exp.EQ) and isinstance(option.this, exp.Column)


def _read_number(name: str, option: exp.Expr, reader: Reader) -> Fraction:
    tree = normalize_constant(option.expression, reader)
    value = read_constant(tree) if tree is not None and is_constant(tree) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or value <= 0:
        raise _option_refusal(reader, option, "is not a positive number")
    if name in LIMIT_OPTIONS and (not isinstance(value, int) or value > 10**9):
        raise _option_refusal(reader, option, "is not a whole number from 1 to 1000000000")
    if name in ("delta", "confidence") and value >= 1:
        raise _option_refusal(reader, option, "is not below 1")
    return Fraction(value)


def _read_limits(values: dict[str, Fraction], clause: exp.Expr, reader: Reader) -> Limits:
    found: dict[str, int] = {}
    for name, limit in LIMIT_OPTIONS.items():
        if name in values:
            if limit in found:
                raise _option_refusal(reader, clause, f"gives {limit} twice")
            found[limit] = int(values[name])
    if "max_rows" in found and len(found) > 1:
        raise _option_refusal(
            reader, clause, "bounds rows in all and groups at once: choose one way"
        )
    return Limits(**found)


def _read_spend(values: dict[str, Fraction], clause: exp.Expr, reader: Reader) -> Offer | None:
    if sum(name in values for name in ("epsilon", "rho", "within")) > 1:
        raise _option_refusal(reader, clause, "gives more than one of epsilon, rho and within")
    if "confidence" in values and "within" not in values:
        raise _option_refusal(reader, clause, "gives a confidence without within")
    offered = Offer.of(
        epsilon=values.get("epsilon"),
        rho=values.get("rho"),
        delta=values.get("delta"),
        within=values.get("within"),
        confidence=values.get("confidence", CONFIDENCE),
    )
    return offered if offered != Offer() else None


def _check_unit(node: exp.Expr, rows: Rows, reader: Reader) -> None:
    """The curator says who one person is; the analyst may only repeat it."""
    if isinstance(node, exp.Column) and rows.scope.column(node).name in rows.unit:
        return
    names = ", ".join(name.partition(".")[2] for name in rows.unit if name) or "every row"
    raise reader.refusal(
        "Q28",
        node,
        f"the privacy unit is {names}.",
        why="who one person is was promised to the people in the data by the curator.",
        fix="leave privacy_unit_column out.",
    )


def _option_refusal(reader: Reader, node: exp.Expr, what: str) -> QuestionRefusal:
    return reader.refusal(
        "Q28",
        node,
        f"this option {what}.",
        why="an option that is not understood cannot be honoured.",
        fix="write OPTIONS(epsilon = 0.5, delta = 1e-9, max_groups_contributed = 3), or leave "
        "it out and offer the price when asking.",
    )
