"""A refused question, where it is torn, and the same without what cannot be there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.errors import QuestionRefusal, Span
from discreet.question.schema import Schema
from discreet.question.schema.tables import Column, Table
from discreet.question.sql.aggregates import AUTO, BOUNDS, offer_auto
from discreet.question.sql.dialect import (
    Explain,
    Reader,
    parse_trees,
    tokenize,
    write_text,
)

Mended = Iterator[tuple[str, exp.Expr | str]]
"""Words that say how a question differs, and the question: a tree, or its text."""


@dataclass(slots=True)
class Torn:
    """A refused question, and where it is torn."""

    refusal: QuestionRefusal
    text: str
    schema: Schema
    tree: exp.Expr | None
    reader: Reader = field(repr=False)
    place: Span | None = None

    def __post_init__(self) -> None:
        self.place = self.refusal.span

    def each(
        self, *kinds: type[exp.Expr], innermost: bool = False
    ) -> Iterator[tuple[exp.Expr, exp.Expr]]:
        """Each node of these kinds at the place of the refusal, in a copy of its own.

        The largest first, or the ``innermost``; everywhere, if the place is not known.
        """
        if self.tree is None:
            return
        found = [(i, node) for i, node in enumerate(self.tree.walk()) if isinstance(node, kinds)]
        for position, node in reversed(found) if innermost else found:
            if self.is_hit(node):
                copy = self.tree.copy()
                yield copy, next(part for i, part in enumerate(copy.walk()) if i == position)

    def is_hit(self, node: exp.Expr) -> bool:
        """Whether ``node`` stands at the place of the refusal."""
        place = self.place
        own = self.reader.span(node)
        if place is None or own is None:
            return True
        return own.start < place.stop and place.start < own.stop

    def tables(self, node: exp.Expr) -> Iterator[tuple[str, Table]]:
        """The declared tables that the SELECT of ``node`` reads, each with its name there."""
        select = node if isinstance(node, exp.Select) else node.parent_select
        while select is not None:
            items = [select.args.get("from_"), *(select.args.get("joins") or ())]
            for item in items:
                table = item.this if item is not None else None
                if isinstance(table, exp.Table) and table.name in self.schema.tables:
                    yield table.alias_or_name, self.schema.tables[table.name]
            select = select.parent_select

    def find_column(self, node: exp.Column) -> tuple[Table, Column] | None:
        """The declared column that a name most likely means."""
        for alias, table in self.tables(node):
            column = table.column(node.name)
            if column is not None and node.table in ("", alias):
                return table, column
        named = [(t, c) for t in self.schema.tables.values() if (c := t.column(node.name))]
        return named[0] if named else None


def read_tree(text: str, reader: Reader) -> exp.Expr | None:
    """The tree of a question, if it has one."""
    try:
        tokens = tokenize(text)
        reader.tokens.extend(tokens)
        (tree,) = parse_trees(text, tokens)
    except (SqlglotError, ValueError, RecursionError):
        return None
    return tree.this if isinstance(tree, Explain) else tree


def write_tree(tree: exp.Expr) -> str | None:
    """A tree as text, if any text has it."""
    try:
        return write_text(tree)
    except (TypeError, RecursionError, SqlglotError):  # of a tree that no text has
        return None


def make_call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call of a function."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def whole(number: int) -> exp.Expr:
    """A constant."""
    return exp.Literal.number(number)


# --- what only the curator can say ---------------------------------------------------------------


def declare_bounds(torn: Torn) -> bool:
    """The line of the schema that says what a column can be; the numbers are not ours to know."""
    for _, node in torn.each(exp.Column):
        found = torn.find_column(node) if isinstance(node, exp.Column) else None
        if found is None or found[1].domain.bounded or not found[1].kind.is_number:
            continue
        table, column = found
        if column.name in (table.unit or ()):
            continue
        line = f'{column.name} = {{ type = "{column.kind.value}", bounds = [LOW, HIGH]'
        line += "" if column.nullable else ", nullable = false"
        torn.refusal.declaration = f"[tables.{table.name}.columns]\n{line} }}"
        torn.refusal.fix = (
            f"the curator declares under [tables.{table.name}.columns] {line} }}; or say it in the "
            f"question, GREATEST(LEAST({column.name}, HIGH), LOW) in place of {column.name}: with "
            "numbers that you know without the data. What lies outside is moved to them, so that "
            f"too narrow ones change the answer.{_offer_auto(node, table)}"
        )
        return True
    return False


def _offer_auto(node: exp.Expr, table: Table) -> str:
    """That bounds may be looked for; not of one person's own rows, which have no ranks to find."""
    select = node.parent_select
    group = None if select is None else select.args.get("group")
    keys = set() if group is None else {part.name.casefold() for part in group.expressions}
    if table.unit and {name.casefold() for name in table.unit} <= keys:
        return ""
    return offer_auto(node.find_ancestor(exp.Anonymous))


def buy_bounds(torn: Torn) -> Iterator[exp.Expr]:
    """The question with bounds that are looked for, by turns of each aggregate that takes some."""
    for root, node in torn.each(exp.Column):
        if find_bounds_of(node):
            yield root


def find_bounds_of(node: exp.Expr) -> bool:
    """Let the aggregate around ``node`` look for bounds in the data; False if it takes none."""
    call = node.find_ancestor(exp.Anonymous)
    while call is not None and not offer_auto(call):
        call = call.find_ancestor(exp.Anonymous)
    if call is None or any(isinstance(part, exp.Kwarg) for part in call.expressions):
        return False
    call.append("expressions", exp.Kwarg(this=exp.var(BOUNDS), expression=exp.var(AUTO)))
    return True


# --- leaving out ---------------------------------------------------------------------------------


def leave_out(torn: Torn) -> Mended:
    """Without what cannot be: a condition, a column of the answer, a key, a join."""
    if torn.refusal.span is None and torn.tree is not None:
        named = (
            c for c in torn.tree.find_all(exp.Anonymous) if c.name.upper() in torn.refusal.what
        )
        torn.place = next((torn.reader.span(call) for call in named), None)
    yield from islice(_find_left_out(torn), MOST_LEFT_OUT)


MOST_LEFT_OUT = 3
"""How many parts are left out by turns: whoever wrote more that cannot be meant something else."""


MOST_NAMES = 8
"""How many columns a question may name of which a part is left out."""


def _find_left_out(torn: Torn) -> Mended:
    columns = torn.tree.find_all(exp.Column) if torn.tree is not None else ()
    if len({column.name for column in columns}) > MOST_NAMES:
        return
    for root, node in torn.each(exp.Connector, innermost=True):
        yield from _leave_out_of(torn, root, node)
    for root, node in torn.each(exp.Where, exp.Having, exp.Join, exp.Select, exp.Group, exp.Order):
        yield from _leave_out_of(torn, root, node)
    for root, node in torn.each(exp.Where):
        if node.parent is not None and isinstance(node.this, exp.Connector):
            node.parent.set("where", None)
            yield "of all rows: ", root


def _leave_out_of(torn: Torn, root: exp.Expr, node: exp.Expr) -> Mended:
    place = torn.place
    if place is None:
        return

    def is_torn(part: exp.Expr | None) -> bool:
        own = torn.reader.span(part) if part is not None else None
        return own is not None and own.start <= place.start and place.stop <= own.stop

    match node:
        case exp.Connector(this=left, expression=right):
            for part, other in ((left, right), (right, left)):
                if is_torn(part):
                    words = name_left_out(torn, part)
                    node.replace(other.copy())
                    yield words, root
                    return
        case exp.Where(this=condition) | exp.Having(this=condition):
            inside = isinstance(condition, exp.Connector)
            if is_torn(condition) and not inside and isinstance(node.parent, exp.Select):
                words = name_left_out(torn, condition)
                node.parent.set("where" if isinstance(node, exp.Where) else "having", None)
                yield words, root
        case exp.Join() if torn.is_hit(node.this):
            words = f"without what is joined as '{node.this.alias_or_name}': "
            node.pop()
            yield words, root
        case exp.Select() | exp.Group() | exp.Order():
            yield from _leave_out_item(
                torn, root, node, [e for e in node.expressions if is_torn(e)]
            )


def _leave_out_item(torn: Torn, root: exp.Expr, node: exp.Expr, items: list[exp.Expr]) -> Mended:
    if len(items) != 1:
        return
    item = items[0]
    words = name_left_out(torn, item)
    select = node if isinstance(node, exp.Select) else node.parent
    name, tree = item.alias, item.unalias()
    for clause in ("group", "order"):
        part = select.args.get(clause) if isinstance(select, exp.Select) else None
        for key in list(part.expressions) if part is not None else ():
            named = key.this if isinstance(key, exp.Ordered) else key
            if key is not item and (named == tree or (name and named.name == name)):
                key.pop()
        if part is not None and not part.expressions:
            part.pop()
    item.pop()
    if not node.expressions:
        if isinstance(node, exp.Select):
            return
        node.pop()
    yield words, root


def name_left_out(torn: Torn, node: exp.Expr) -> str:
    """What is left out, in the analyst's own words."""
    said = torn.reader.words(node)
    whole = bool(said) and said.count("(") == said.count(")")
    return f"without {said}: " if whole and len(said) <= 60 else "without that part: "
