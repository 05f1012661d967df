"""Sub-queries in FROM: rows computed row by row, or one person's own rows aggregated."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.functions import domain_of
from discreet.question.ownership import row_bound
from discreet.question.relation import (
    Filter,
    PerUnit,
    Project,
    Relation,
    Union,
    UnitAggregate,
    UnitWindow,
    Windowed,
)
from discreet.question.sql.aggregates import (
    aggregate_name,
    has_aggregates,
    is_aggregate,
    normalize_aggregate,
    read_aggregate,
)
from discreet.question.sql.bans import SET
from discreet.question.sql.dialect import Reader, find_original
from discreet.question.sql.normalize import Names, normalize
from discreet.question.sql.rewrite import (
    drop_clauses,
    group_by_column,
    group_by_unit,
    keep_all_rows,
    select_all_columns,
)
from discreet.question.sql.scalars import Leaf, alias_tree, column, output_tree, read
from discreet.question.sql.scope import Item, Scope, check_name, resolve_output
from discreet.question.sql.sources import Frame, Rows, no_leaf, read_rows, read_typed
from discreet.question.sql.windows import WindowNames, find_windows, name_windows, windows_leaf


def read_subquery(query: exp.Expr, alias: str, frame: Frame, node: exp.Expr) -> Item:
    """A sub-query in FROM, under ``alias``."""
    relation, tree, unit = _read_query(query, alias, frame)
    names = {name.split(".", 1)[1]: name for name in _column_names(relation)}
    kept = {k: v for k, v in node.args.items() if k not in ("this", "alias")}
    subquery = exp.Subquery(this=tree, alias=alias_tree(alias), **kept)
    return Item(alias, relation, names, unit, subquery)


def _column_names(relation: Relation) -> tuple[str, ...]:
    while isinstance(relation, Union):
        relation = relation.left
    return tuple(name for name, _ in relation.columns) if isinstance(relation, Project) else ()


Read = tuple[Relation, exp.Expr, tuple[str | None, ...]]


def _read_query(query: exp.Expr, alias: str, frame: Frame) -> Read:
    while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        if query.args.get("alias") is not None:
            break
        query = query.this
    inside = frame.within(query)
    if isinstance(query, exp.Union):
        found = _read_union(query, alias, inside)
    elif isinstance(query, exp.Select):
        found = _read_select(query, alias, inside)
    else:
        raise frame.reader.refusal(
            "Q11",
            query,
            "a sub-query is a SELECT, or SELECTs joined by UNION ALL.",
            why="only the tables the curator declared can be read.",
            fix="write (SELECT ... FROM visits) AS v.",
        )
    inside.check_all_read(query)
    return found


def _read_union(query: exp.Union, alias: str, frame: Frame) -> Read:
    reader = frame.reader
    if query.args.get("distinct"):
        fix = reader.suggest_fix(query, keep_all_rows, SET.fix, SET.words)
        raise reader.refusal(SET.code, query, SET.what, why=SET.why, fix=fix)
    left, left_tree, left_unit = _read_query(query.this, alias, frame)
    right, right_tree, right_unit = _read_query(query.expression, alias, frame)
    names, others = _column_names(left), _column_names(right)
    if len(names) != len(others):
        raise reader.refusal(
            "Q21",
            query,
            f"the two sides have {len(names)} and {len(others)} columns.",
            why="the columns of a UNION ALL correspond one by one.",
            fix="select the same number of columns on both sides.",
        )
    renamed = dict(zip(others, names, strict=True))
    right = _rename_columns(right, renamed)
    right_unit = tuple(None if u is None else renamed[u] for u in right_unit)
    with reader.at(query):
        relation = Union(left, right)
        reader.columns(relation)
    unit = left_unit if left_unit == right_unit else tuple(None for _ in left_unit)
    kept = {k: v for k, v in query.args.items() if k != "with_"}
    right_tree = rename_tree(right_tree, renamed)
    kept.update(this=left_tree, expression=right_tree)
    return relation, exp.Union(**kept), unit


def _rename_columns(relation: Relation, names: Mapping[str, str]) -> Relation:
    """The same rows, with the columns of a sub-query called otherwise."""
    match relation:
        case Union(left=left, right=right):
            return Union(_rename_columns(left, names), _rename_columns(right, names))
        case Project(source=source, columns=pairs):
            return Project(source, tuple((names[n], e) for n, e in pairs))
        case _:
            return relation


def rename_tree(tree: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    """A query in normal form, with its columns called otherwise."""
    if isinstance(tree, exp.Union):
        this, other = (rename_tree(t, names) for t in (tree.this, tree.expression))
        return exp.Union(**{**tree.args, "this": this, "expression": other})
    items = [output_tree(item.this, names[item.alias]) for item in tree.expressions]
    return exp.Select(**{**tree.args, "expressions": items})


def _read_select(select: exp.Select, alias: str, frame: Frame) -> Read:
    reader = frame.reader
    _check_clauses(select, reader)
    rows = read_rows(select, frame)
    if has_aggregates(select):
        return _read_per_unit(select, rows, alias, reader)
    if select.args.get("having") is not None:
        raise reader.refusal(
            "Q25",
            select.args["having"],
            "HAVING needs GROUP BY.",
            why="conditions on rows belong in WHERE, conditions on aggregates in HAVING.",
            fix="use WHERE, or GROUP BY the unit.",
        )
    if find_windows(select):
        return _read_windowed(select, rows, alias, reader)
    known = reader.columns(rows.relation)
    outputs: list[tuple[str, Expression]] = []
    trees: list[exp.Expr] = []
    for name, tree in _outputs(select, rows.scope, rows.scope, reader):
        outputs.append((f"{alias}.{name}", read_typed(tree, known, reader)))
        trees.append(output_tree(tree, f"{alias}.{name}"))
    unit = tuple(_find_output(outputs, u) for u in rows.unit)
    relation = Project(rows.relation, tuple(outputs))
    return relation, _rebuild(select, expressions=trees, **rows.clauses), unit


def _read_windowed(select: exp.Select, rows: Rows, alias: str, reader: Reader) -> Read:
    """A SELECT with windows over each person's own rows, and QUALIFY on them."""
    aliases = {i.alias: i.this for i in select.expressions if isinstance(i, exp.Alias)}
    named = name_windows(select, reader)
    names = WindowNames(rows.scope, rows.unit, named)
    known = reader.columns(rows.relation)
    most = row_bound(rows.relation, reader.catalogue.multiplicity)
    found: dict[exp.Expr, tuple[str, UnitWindow]] = {}
    leaf = windows_leaf(found, rows.unit, known, most, reader)
    outputs = _outputs(select, rows.scope, names, reader)
    expressions = tuple((f"{alias}.{n}", read(tree, leaf)) for n, tree in outputs)
    qualify = select.args.get("qualify")
    above = WindowNames(rows.scope, rows.unit, named, aliases)
    condition_tree = None if qualify is None else normalize(qualify.this, above, reader)
    condition = None if condition_tree is None else read(condition_tree, leaf)
    relation: Relation = Windowed(rows.relation, tuple(found.values()))
    inside = reader.columns(relation)
    for (_, expression), item in zip(expressions, outputs, strict=True):
        with reader.at(item[1]):
            domain_of(expression, inside)
    clauses = dict(rows.clauses)
    if condition is not None and qualify is not None:
        with reader.at(qualify):
            relation = Filter(relation, condition)
            reader.columns(relation)
        clauses["qualify"] = exp.Qualify(**{**qualify.args, "this": condition_tree})
    unit = tuple(_find_output(list(expressions), u) for u in rows.unit)
    items = [output_tree(tree, f"{alias}.{n}") for n, tree in outputs]
    rebuilt = _rebuild(select, expressions=items, windows=None, **clauses)
    return Project(relation, expressions), rebuilt, unit


def _rebuild(select: exp.Select, **clauses: object) -> exp.Select:
    """The query in normal form; a clause that nobody read is still there."""
    kept = {k: v for k, v in select.args.items() if k not in ("with_", "joins", "where")}
    return exp.Select(**{**kept, **clauses})


def _find_output(outputs: list[tuple[str, Expression]], unit: str | None) -> str | None:
    """Under which name a column of the unit is seen from outside."""
    return next((n for n, e in outputs if unit is not None and e == ColumnRef(unit)), None)


def _check_clauses(select: exp.Select, reader: Reader) -> None:
    if select.args.get("hint") is not None:
        raise reader.refusal(
            "Q28",
            select.args["hint"],
            "the privacy clause belongs to the outermost SELECT.",
            why="the whole question is one release with one price.",
            fix="move WITH DIFFERENTIAL_PRIVACY OPTIONS(...) to the first SELECT.",
        )
    if not select.expressions:
        raise reader.refusal(
            "Q35",
            select,
            "the sub-query selects no column.",
            why="a sub-query without columns has nothing to read from.",
            fix=reader.suggest_fix(select, select_all_columns, "write SELECT * FROM ..."),
        )
    for clause in ("limit", "order"):
        if select.args.get(clause) is not None:
            raise reader.refusal(
                "Q16",
                select.args[clause],
                f"{'LIMIT' if clause == 'limit' else 'ORDER BY'} cannot stand in a sub-query.",
                why="which rows are left would depend on other people's rows.",
                fix=reader.suggest_fix(
                    select,
                    drop_clauses("order", "limit"),
                    "put ORDER BY and LIMIT at the end of the whole question.",
                ),
            )


def _outputs(
    select: exp.Select, scope: Scope, names: Names, reader: Reader
) -> list[tuple[str, exp.Expr]]:
    """The columns of a sub-query by name, in normal form; * is every column there is."""
    found: list[tuple[str, exp.Expr]] = []
    for position, item in enumerate(select.expressions, start=1):
        stars = _star(item, scope)
        if stars is not None:
            found += stars
            continue
        value = item.this if isinstance(item, exp.Alias) else item
        if isinstance(item, exp.Alias):
            name = check_name(item.args["alias"], reader)
        else:
            inner = value
            while isinstance(inner, exp.Paren):
                inner = inner.this
            name = inner.name if isinstance(inner, exp.Column) else f"column_{position}"
        found.append((name, normalize(value, names, reader)))
    seen = [name.casefold() for name, _ in found]
    for position, name in enumerate(seen):
        if name in seen[:position]:
            raise reader.refusal(
                "Q8",
                select,
                f"two columns are called '{found[position][0]}'.",
                why="the two may have different bounds.",
                fix="rename one: x AS y.",
            )
    return found


def _star(item: exp.Expr, scope: Scope) -> list[tuple[str, exp.Expr]] | None:
    if isinstance(item, exp.Star):
        items = scope.items
    elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        items = (scope._item(item),)
    else:
        return None
    return [
        (name, column(scope.same.get(own, own))) for i in items for name, own in i.columns.items()
    ]


# --- per-unit aggregation ------------------------------------------------------------------

UNIT_FUNCTIONS = {"COUNT", "COUNT_DISTINCT", "SUM", "MIN", "MAX", "AVG"}


@dataclass(frozen=True, slots=True)
class UnitNames:
    """Names in a sub-query with GROUP BY: the keys, and aggregates of one unit's rows."""

    scope: Scope
    unit: tuple[str | None, ...]

    def column(self, node: exp.Column) -> exp.Expr:
        """As without GROUP BY; whether it is grouped is seen later."""
        return self.scope.column(node)

    def kind_of(self, name: str) -> Kind | None:
        """The kind of a column of the rows."""
        return self.scope.kind_of(name)

    def zone_of(self, name: str) -> str | None:
        """The time zone whose clocks a column shows, if it is declared."""
        return self.scope.zone_of(name)

    def aggregate(self, node: exp.Expr) -> exp.Expr | None:
        """An aggregate of one unit's rows."""
        if aggregate_name(node) is None:
            return None
        reader = self.scope.reader
        return normalize_aggregate(
            node, lambda inner: normalize(inner, self.scope, reader), self.unit, reader
        )


def _read_per_unit(select: exp.Select, rows: Rows, alias: str, reader: Reader) -> Read:
    group = select.args.get("group")
    key_nodes = group.expressions if group is not None else []
    trees = [
        normalize(resolve_output(n, select, rows.scope), rows.scope, reader) for n in key_nodes
    ]
    _check_grouped_by_unit(select, rows, trees, reader)
    known = reader.columns(rows.relation)
    keys = {tree: f"group_{i}" for i, tree in enumerate(trees, start=1)}
    key_pairs = tuple((name, read_typed(tree, known, reader)) for tree, name in keys.items())
    measures: dict[exp.Expr, tuple[str, UnitAggregate]] = {}
    leaf = _leaf(select, keys, measures, known, reader)
    grouped = UnitNames(rows.scope, rows.unit)
    outputs = _outputs(select, rows.scope, grouped, reader)
    expressions = tuple((f"{alias}.{n}", read(tree, leaf)) for n, tree in outputs)
    having = select.args.get("having")
    having_tree = None if having is None else normalize(having.this, grouped, reader)
    condition = None if having_tree is None else read(having_tree, leaf)
    relation: Relation = PerUnit(rows.relation, key_pairs, tuple(measures.values()))
    with reader.at(select):
        inside = reader.columns(relation)
    if condition is not None and having is not None:
        with reader.at(having):
            if domain_of(condition, inside).kind is not Kind.BOOLEAN:
                read_typed(having_tree, {}, reader, kind=Kind.BOOLEAN)  # type: ignore[arg-type]
        relation = Filter(relation, condition)
    for (_, expression), item in zip(expressions, outputs, strict=True):
        with reader.at(item[1]):
            domain_of(expression, inside)
    own = {keys[column(u)]: None for u in rows.unit if u is not None and column(u) in keys}
    unit = tuple(next((n for n, e in expressions if e == ColumnRef(name)), None) for name in own)
    clauses = dict(rows.clauses)
    clauses["group"] = exp.Group(**{**(group.args if group else {}), "expressions": list(keys)})
    if having is not None:
        clauses["having"] = exp.Having(**{**having.args, "this": having_tree})
    items = [output_tree(tree, f"{alias}.{n}") for n, tree in outputs]
    return Project(relation, expressions), _rebuild(select, expressions=items, **clauses), unit


def _check_grouped_by_unit(
    select: exp.Select, rows: Rows, trees: list[exp.Expr], reader: Reader
) -> None:
    """Refuse unless each group is one person's own."""
    if rows.unit and all(u is not None and column(u) in trees for u in rows.unit):
        return
    missing = tuple(u.partition(".")[2] for u in rows.unit if u and column(u) not in trees)
    raise reader.refusal(
        "Q22",
        select.args.get("group") or select,
        "a sub-query with aggregates must GROUP BY the unit.",
        why="it would put several people into one row, and that row would belong to nobody.",
        fix=reader.suggest_fix(
            select,
            group_by_unit(missing) if missing else None,
            "ask for these aggregates in the outermost SELECT, or GROUP BY the unit.",
        ),
    )


def _leaf(
    select: exp.Select,
    keys: Mapping[exp.Expr, str],
    measures: dict[exp.Expr, tuple[str, UnitAggregate]],
    known: Mapping[str, Domain],
    reader: Reader,
) -> Leaf:
    def leaf(node: exp.Expr) -> Expression | None:
        if node in keys:
            return ColumnRef(keys[node])
        if is_aggregate(node):
            if node not in measures:
                name = f"measure_{len(measures) + 1}"
                measures[node] = name, _unit_aggregate(node, known, reader)
            return ColumnRef(measures[node][0])
        if isinstance(node, exp.Column):
            raise ungrouped_refusal(node, select, reader)
        return None

    return leaf


def ungrouped_refusal(node: exp.Expr, select: exp.Select, reader: Reader) -> QuestionRefusal:
    """Refuse a column that has many values in one group."""
    name = node.name.partition(".")[2] or node.name
    return reader.refusal(
        "Q24",
        node,
        f"column '{name}' is neither grouped nor aggregated.",
        why="one row of the answer would have to show one person's value.",
        fix=reader.suggest_fix(
            find_original(node, select),
            group_by_column,
            f"add {name} to GROUP BY, or aggregate it: AVG({name}), COUNT(DISTINCT {name}).",
        ),
    )


def _unit_aggregate(node: exp.Expr, known: Mapping[str, Domain], reader: Reader) -> UnitAggregate:
    aggregate = read_aggregate(node, "", no_leaf)
    if (
        aggregate.function not in UNIT_FUNCTIONS
        or aggregate.bounds_per_row is not None
        or aggregate.bounds_per_group is not None
        or aggregate.condition is not None
    ):
        raise reader.refusal(
            "Q32",
            node,
            "of one person's own rows, COUNT, COUNT(DISTINCT x), SUM, AVG, MIN and MAX are "
            "computed, without FILTER or bounds by name.",
            why="what comes out of a sub-query must have bounds that are known beforehand.",
            fix="use one of these; SUM(x) FILTER (WHERE c) is SUM(CASE WHEN c THEN x END), and "
            "COUNT(*) FILTER (WHERE c) is COUNT(CASE WHEN c THEN 1 END).",
        )
    argument = aggregate.arguments[0] if aggregate.arguments else None
    if argument is not None:
        with reader.at(node):
            domain_of(argument, known)
    return UnitAggregate(aggregate.function, argument)
