"""Words, names, kinds, constants, clauses and options, as the dialect has them."""

from __future__ import annotations

import difflib
import re

from sqlglot import exp

from discreet.question.domain import Kind
from discreet.question.functions import FUNCTIONS
from discreet.question.sql.aggregates import NAMES
from discreet.question.sql.dialect import (
    PrivacyClause,
    write_text,
)
from discreet.question.sql.mending.torn import Mended, Torn, find_bounds_of, make_call, whole
from discreet.question.sql.normalize import SPECIAL, SYNONYMS
from discreet.question.sql.spelling import find_nearest

# --- words and texts -----------------------------------------------------------------------------


_OLD_WORDS = (
    ("WITH ANONYMIZATION", "WITH DIFFERENTIAL_PRIVACY", ""),  # and ANON_COUNT is COUNT
    ("/*+", "/*", ""),
    ("|>", "", "the condition chooses rows before they are aggregated: "),
)


def mend_text(torn: Torn) -> Mended:
    """Words of other dialects; brackets and quotes that were never closed."""
    text = torn.text
    for old, new, words in _OLD_WORDS:
        at = text.upper().find(old)
        if at >= 0:
            rest = (
                text[at + len(old) :].replace("ANON_", "")
                if "ANON" in old
                else text[at + len(old) :]
            )
            yield words, f"{text[:at]}{new}{rest}"
    if text.count("'") % 2:
        yield "a quote was never closed: ", f"{text}'"
    yield from correct_words(torn)
    yield from _put_comma(torn)
    missing = text.count("(") - text.count(")")
    if missing > 0:
        words = "a bracket was never closed: "
        for word in (" FROM ", " WHERE ", " GROUP BY "):
            at = text.upper().find(word, text.rfind("("))
            if at >= 0:
                yield words, f"{text[:at]}{')' * missing}{text[at:]}"
        yield words, text + ")" * missing
    elif missing < 0:
        last = text.rfind(")")
        yield "a bracket was never opened: ", text[:last] + text[last + 1 :]


def _put_comma(torn: Torn) -> Mended:
    """``SELECT city COUNT(*)``: a comma before one of the words where the text cannot be read."""
    if torn.place is None:
        return
    words = [part.start() for part in re.finditer(r"[A-Za-z_\"`][\w.\"`]*", torn.text)]
    before = [start for start in words if start <= torn.place.start]
    for start in reversed(before[-2:]):
        head = torn.text[:start].rstrip()
        if head and head[-1] not in ",(":
            yield "a comma was missing: ", f"{head}, {torn.text[start:]}"


_WORDS = (
    "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "BETWEEN", "UNION",
    "JOIN", "INNER", "LEFT", "USING", "WITH",
)  # fmt: skip
_NEARLY = 0.75
"""How alike a word is that was misspelt: one letter missing, or two exchanged."""


def correct_words(torn: Torn) -> Mended:
    """A word of SQL that is spelled nearly like this one, and is no name of anything."""
    names = {c.name.upper() for t in torn.schema.tables.values() for c in t.columns}
    names |= {name.upper() for name in torn.schema.tables}
    text, meant = torn.text, []
    for part in re.finditer(r"'[^']*'|\"[^\"]*\"|[A-Za-z_]+", text):
        word = part[0].upper()
        if not word.isalpha() or word in (*_WORDS, "BY") or word in names:
            continue
        near = difflib.get_close_matches(word, _WORDS, n=1, cutoff=_NEARLY)
        if near:
            meant.append((part.start(), part.end(), near[0]))
    if meant and len(meant) < len(_WORDS):
        for start, end, word in reversed(meant):
            text = f"{text[:start]}{word}{text[end:]}"
        yield f"did you mean {' and '.join(word for _, _, word in meant)}? ", text


def mend_quotes(torn: Torn) -> Mended:
    """$$text$$ is a text of PostgreSQL."""
    for root, node in torn.each(exp.Column):
        if node.name.startswith("$$") and node.name.endswith("$$") and len(node.name) > 3:
            node.replace(exp.Literal.string(node.name[2:-2]))
            yield "a text stands in single quotes: ", root


def quote_values(torn: Torn) -> Mended:
    """A declared value without quotes, compared with the column that has it, is a text."""
    for root, node in torn.each(exp.Column):
        compared = node.parent
        if node.args.get("table") or not isinstance(compared, exp.EQ | exp.NEQ | exp.In):
            continue
        sides = [compared.this, compared.args.get("expression"), *compared.expressions]
        names = {s.name.casefold() for s in sides if isinstance(s, exp.Column) and s is not node}
        listed = {
            str(value)
            for _, table in torn.tables(node)
            for column in table.columns
            if column.name.casefold() in names
            for value in column.domain.values or ()
        }
        if node.name in listed:
            node.replace(exp.Literal.string(node.name))
            yield "texts stand in single quotes: ", root


# --- names ---------------------------------------------------------------------------------------


def rename_twice_named(torn: Torn) -> Mended:
    """The second of two columns, or of two tables, of one name gets another."""
    if torn.tree is None:
        return
    root = torn.tree.copy()
    for select in root.find_all(exp.Select):
        _number_columns(select)
        _number_tables(select)
    yield "", root
    for root, cte in torn.each(exp.CTE):
        new = f"{cte.alias}_2"
        for table in [t for t in root.find_all(exp.Table) if t.name == cte.alias]:
            if table.find_ancestor(exp.CTE) is None:
                alias = table.alias
                table.set("this", exp.to_identifier(new))
                table.set("alias", exp.TableAlias(this=exp.to_identifier(alias or cte.alias)))
        cte.set("alias", exp.TableAlias(this=exp.to_identifier(new)))
        yield "", root


def _number_columns(select: exp.Select) -> None:
    seen: list[str] = []
    for item in list(select.expressions):
        name = item.alias_or_name
        if name and name in seen:
            item.replace(exp.alias_(item.unalias().copy(), f"{name}_{seen.count(name) + 1}"))
        seen.append(name)


def _number_tables(select: exp.Select) -> None:
    start = select.args.get("from_")
    seen = {start.this.alias_or_name} if start is not None else set()
    for join in select.args.get("joins") or ():
        name = join.this.alias_or_name
        if name in seen and isinstance(join.this, exp.Table):
            new = f"{name}_2"
            join.this.set("alias", exp.TableAlias(this=exp.to_identifier(new)))
            on = join.args.get("on")
            for equal in on.find_all(exp.EQ) if on is not None else ():
                if isinstance(equal.expression, exp.Column) and equal.expression.table == name:
                    equal.expression.set("table", exp.to_identifier(new))
        seen.add(name)


def mend_qualified(torn: Torn) -> Mended:
    """A column of a table that is not there is one of a table that is; a name has two parts."""
    for root, node in torn.each(exp.Column):
        if isinstance(node, exp.Column) and node.args.get("db") is not None:
            parts = node.parts
            node.replace(exp.column(parts[1].name, table=parts[0].name))
            yield "", root
    for root, node in torn.each(exp.Column):
        if _is_from_outside(node):
            continue  # the name is right where it comes from
        for alias, table in torn.tables(node):
            if node.args.get("table") and table.column(node.name) is not None:
                node.set("table", exp.to_identifier(alias))
                yield f"there is no '{node.name}' but that of '{alias}': ", root
    for root, node in torn.each(exp.Dot):
        if isinstance(node.this, exp.Column):
            node.replace(node.this.copy())
            yield "", root


def _is_from_outside(node: exp.Expr) -> bool:
    """Whether a column's table is one of a SELECT around its own."""
    query = node.parent_select
    names: list[set[str]] = []
    while query is not None:
        joined = [query.args.get("from_"), *(query.args.get("joins") or [])]
        names.append({part.this.alias_or_name.casefold() for part in joined if part is not None})
        query = query.parent_select
    table = node.text("table").casefold()
    return not any(table in own for own in names[:1]) and any(table in own for own in names[1:])


def mend_spelling(torn: Torn) -> Mended:
    """A column that is spelled nearly like this one, though more than its name needs mending."""
    for root, node in torn.each(exp.Column):
        names = {column.name for _, table in torn.tables(node) for column in table.columns}
        near = find_nearest(node.name, names)
        if near is not None and near != node.name:
            node.set("this", exp.to_identifier(near))
            yield f"did you mean '{near}'? ", root
            if find_bounds_of(node):
                yield (
                    f"did you mean '{near}'? It has no bounds; a part of the offer buys them, "
                    "found in the data privately: ",
                    root,
                )


def plain_names(torn: Torn) -> Mended:
    """A name of the answer in letters, digits and _."""
    for root, node in torn.each(exp.Alias):
        name = "".join(c if c.isalnum() or c == "_" else "_" for c in node.alias).strip("_")
        if name[:1].isdigit():
            name = f"n_{name}"
        if name:
            node.set("alias", exp.to_identifier(name[:128]))
        else:
            node.replace(node.this.copy())
        yield "", root
    if torn.tree is not None and torn.place is None:
        root = torn.tree.copy()
        for alias in list(root.find_all(exp.Alias)):
            if not alias.alias.isidentifier():
                alias.replace(alias.this.copy())
        yield "", root


def select_all_there_is(torn: Torn) -> Mended:
    """Where a column does not exist: all columns that do, which are listed, too."""
    listed, ended, more = torn.refusal.fix.rpartition(".")
    words = f"{listed}; " if ended and not more else ""
    for root, node in torn.each(exp.Select):
        if isinstance(node.args.get("from_"), exp.From):
            node.set("expressions", [exp.Star()])
            yield words, root


# --- kinds ---------------------------------------------------------------------------------------


_YES = frozenset(("yes", "y", "true", "t", "1", "on"))
_NO = frozenset(("no", "n", "false", "f", "0", "off"))


def mend_booleans(torn: Torn) -> Mended:
    """A column that is true or false, compared with a word for it."""
    for root, node in torn.each(exp.EQ, exp.NEQ):
        for side, other in ((node.this, node.expression), (node.expression, node.this)):
            word = other.name.casefold() if isinstance(other, exp.Literal) else ""
            if not isinstance(side, exp.Column) or word not in _YES | _NO:
                continue
            kinds = {
                column.kind
                for _, table in torn.tables(node)
                for column in table.columns
                if column.name.casefold() == side.name.casefold()
            }
            if kinds == {Kind.BOOLEAN}:
                holds = (word in _YES) is isinstance(node, exp.EQ)
                node.replace(side.copy() if holds else exp.Not(this=side.copy()))
                yield f"'{side.name}' is true or false, and needs no text beside it: ", root


def mend_kinds(torn: Torn) -> Mended:
    """A number where a condition stands, a number beside a text, a date beside a number."""
    for root, node in torn.each(exp.Where, exp.Having):
        node.set("this", exp.NEQ(this=node.this.copy(), expression=whole(0)))
        yield "where it is not 0: ", root
    for root, node in torn.each(exp.Sub):
        between = make_call("DATE_DIFF", exp.Literal.string("day"), node.expression, node.this)
        bare = node.parent
        while isinstance(bare, exp.Paren):
            bare = bare.parent
        if isinstance(bare, exp.Extract):
            unit = exp.Literal.string(bare.name.lower())
            bare.replace(make_call("DATE_DIFF", unit, node.expression, node.this))
            yield "boundaries of the calendar that lie between: ", root
        else:
            node.replace(between)
            yield "days that lie between: ", root
    for root, node in torn.each(exp.Binary):
        if isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
            both = [side for side in (node.this, node.expression) if isinstance(side, exp.Column)]
            for side in both:
                side.replace(exp.cast(side.copy(), "TEXT"))
                yield "compared as texts: ", root.copy()
    yield from _mend_calls(torn)


def _mend_calls(torn: Torn) -> Mended:
    for root, node in torn.each(exp.Anonymous):
        if len(node.expressions) > 1:
            node.set("expressions", node.expressions[:1])
            yield "of the first alone: ", root
    for root, node in torn.each(exp.Anonymous):
        for argument in list(node.expressions):
            if isinstance(argument, exp.Column):
                argument.replace(exp.cast(argument.copy(), "TEXT"))
        yield "of the text of it: ", root
    for root, node in torn.each(exp.Anonymous):
        if node.name.upper() in ("SUM", "AVG", "MIN", "MAX"):
            node.set("this", "COUNT")
            yield "texts cannot be added up; how many there are can be told: ", root
    for root, node in torn.each(exp.Binary):
        select = node.parent
        if isinstance(select, exp.Alias):
            select = select.parent
        if isinstance(select, exp.Select) and not isinstance(node, exp.Connector):
            item = node.parent if isinstance(node.parent, exp.Alias) else node
            at = select.expressions.index(item)
            parts = [node.this.copy(), node.expression.copy()]
            kept = [*select.expressions[:at], *parts, *select.expressions[at + 1 :]]
            select.set("expressions", [part for part in kept if not isinstance(part, exp.Interval)])
            yield "each by itself: ", root


def cast_sides(torn: Torn) -> Mended:
    """Both sides of a UNION as texts."""
    for root, node in torn.each(exp.SetOperation):
        for side in (node.this, node.expression):
            if isinstance(side, exp.Select):
                names = [item.alias_or_name for item in side.expressions]
                cast = [exp.cast(item.unalias().copy(), "TEXT") for item in side.expressions]
                named = zip(cast, names, strict=True)
                side.set("expressions", [exp.alias_(c, n) if n else c for c, n in named])
        yield "as texts: ", root


# --- constants -----------------------------------------------------------------------------------


def mend_constants(torn: Torn) -> Mended:
    """Days that no month has, numbers that are too large, intervals that are not whole."""
    yield from _mend_dates(torn)
    for root, node in torn.each(exp.Literal):
        digits = node.name.replace(".", "")
        if not node.is_string and digits.isdigit() and len(digits) > 18:
            node.replace(whole(10**18 - 1))
            yield "with the greatest number there is: ", root
    for root, node in torn.each(exp.Interval):
        amount = node.this.name if node.this is not None else ""
        if amount.replace(".", "", 1).isdigit():
            node.set("this", exp.Literal.string(str(round(float(amount)) or 1)))
            yield "of whole days, months or hours: ", root
    for root, node in torn.each(exp.Limit):
        node.set("expression", whole(10))
        yield "the first ten: ", root
    for root, node in torn.each(exp.Group):
        listed = node.parent.expressions if node.parent is not None else []
        kept = [
            key
            for key in node.expressions
            if not (isinstance(key, exp.Literal) and int(key.name or 0) > len(listed))
        ]
        node.set("expressions", kept)
        if not kept:
            node.pop()
        yield "", root


_DAYS = {"yesterday": -1, "today": 0, "now": 0, "tomorrow": 1}


def _mend_dates(torn: Torn) -> Mended:
    for root, node in torn.each(exp.Literal):
        if not node.is_string:
            continue
        shift = _DAYS.get(node.name.lower())
        if shift is not None:
            day: exp.Expr = make_call("CURRENT_DATE")
            if shift:
                span = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY"))
                kind = exp.Sub if shift < 0 else exp.Add
                day = kind(this=day, expression=span)
            node.replace(day)
            yield f"{node.name} as a date: ", root
        elif len(node.name) >= 10 and node.name[8:10].isdigit():
            for last in ("30", "29", "28"):
                if last < node.name[8:10]:
                    again = root.copy()
                    same = exp.Literal.string(node.name)
                    for part in list(again.find_all(exp.Literal)):
                        if part == same:
                            day_text = f"{node.name[:8]}{last}{node.name[10:]}"
                            part.replace(exp.Literal.string(day_text))
                    yield "the month has no such day; with its last: ", again


def mend_lists(torn: Torn) -> Mended:
    """IN a list of columns is an OR; a pattern that is a column is looked for as it is."""
    for root, node in torn.each(exp.In):
        if node.expressions:
            equal = [exp.EQ(this=node.this.copy(), expression=e.copy()) for e in node.expressions]
            node.replace(exp.paren(exp.or_(*equal)))
            yield "", root
    for root, node in torn.each(exp.Like, exp.ILike):
        node.replace(exp.EQ(this=node.this.copy(), expression=node.expression.copy()))
        yield "where the two are equal: ", root
    for root, node in torn.each(exp.RegexpLike, exp.RegexpILike):
        if isinstance(node.expression, exp.Column):
            node.replace(make_call("CONTAINS", node.this, node.expression))
            yield "where it holds the other as it is, no pattern: ", root


def mend_formats(torn: Torn) -> Mended:
    """Names of months and days without the blanks behind them."""
    for root, node in torn.each(exp.Literal):
        if node.is_string:
            found = node.name
            for word in ("Month", "Day"):
                if word in found and f"FM{word}" not in found:
                    found = found.replace(word, f"FM{word}")
            node.replace(exp.Literal.string(found))
            yield "without blanks behind it: ", root


# --- clauses of other dialects -------------------------------------------------------------------


def translate_clauses(torn: Torn) -> Mended:
    """What other dialects say in a clause of its own, in the words of this one."""
    for root, node in torn.each(exp.Escape):
        like = node.this
        if isinstance(like, exp.Like | exp.ILike):
            pattern = _regular(like.expression.name, node.expression.name)
            kind = exp.RegexpILike if isinstance(like, exp.ILike) else exp.RegexpLike
            made = kind(this=like.this.copy(), expression=exp.Literal.string(pattern))
            node.replace(made)
            yield "", root
    for root, node in torn.each(exp.SimilarTo):
        text = node.expression.name
        if not set(text) & set("|*+?{}()[]"):
            node.replace(exp.Like(this=node.this.copy(), expression=node.expression.copy()))
        else:
            pattern = f"^({text.replace('%', '.*').replace('_', '.')})$"
            made_text = exp.Literal.string(pattern)
            node.replace(exp.RegexpLike(this=node.this.copy(), expression=made_text))
        yield "", root
    for root, node in torn.each(exp.Collate):
        other = node.parent.args.get("expression") if node.parent is not None else None
        if isinstance(other, exp.Literal) and other is not node:
            other.replace(exp.Literal.string(other.name.lower()))
        node.replace(make_call("LOWER", node.this))
        yield "in small letters: ", root
    for root, node in torn.each(exp.NullSafeNEQ, exp.NullSafeEQ):
        yield "", _null_safe(root, node)
    for root, node in torn.each(exp.BitwiseAnd):
        mask = int(node.expression.name) if node.expression.name.isdigit() else 0
        if mask and not mask & (mask + 1):
            number = exp.cast(node.this.copy(), "BIGINT")
            node.replace(exp.paren(exp.Mod(this=number, expression=whole(mask + 1))))
            yield "the remainder of a division: ", root


def _null_safe(root: exp.Expr, node: exp.Expr) -> exp.Expr:
    """Equal, or both missing."""
    left, right = node.this, node.expression
    equal = exp.EQ(this=left.copy(), expression=right.copy())
    null: list[exp.Expr] = [
        exp.Is(this=side.copy(), expression=exp.Null()) for side in (left, right)
    ]
    if isinstance(right, exp.Literal):
        same: exp.Expr = make_call("COALESCE", equal, exp.false())
    else:
        same = exp.paren(make_call("COALESCE", equal, exp.paren(exp.and_(*null))))
    node.replace(exp.Not(this=same) if isinstance(node, exp.NullSafeNEQ) else same)
    return root


def _regular(pattern: str, escape: str) -> str:
    """A pattern of LIKE as a regular expression."""
    found, literal = "", False
    for letter in pattern:
        if not literal and letter == escape:
            literal = True
            continue
        if not literal and letter in "%_":
            found += ".*" if letter == "%" else "."
        else:
            found += f"\\{letter}" if letter in ".[]|()*+?{}^$\\" else letter
        literal = False
    return f"^{found}$"


_WITHOUT = {
    exp.Select: ("locks", "into", "pivots", "offset"),
    exp.CTE: ("materialized",),
    exp.With: ("recursive",),
    exp.Table: ("pivots", "db", "catalog"),
}


def drop_clause(torn: Torn) -> Mended:
    """Without a clause that changes nothing here, or cannot be."""
    for kind, clauses in _WITHOUT.items():
        for position, node in enumerate(torn.tree.walk() if torn.tree is not None else ()):
            for clause in clauses:
                if not isinstance(node, kind) or not node.args.get(clause):
                    continue
                if torn.tree is None:
                    return
                copy = torn.tree.copy()
                same = next(part for i, part in enumerate(copy.walk()) if i == position)
                if clause == "pivots":
                    yield from _count_pivot(copy, same)
                    continue
                same.set(clause, None)
                yield "" if clause == "materialized" else "without that clause: ", copy


def _count_pivot(root: exp.Expr, node: exp.Expr) -> Mended:
    """PIVOT is one aggregate for each value."""
    select, pivot = node.parent_select, (node.args.get("pivots") or [None])[0]
    if pivot is None or not isinstance(select, exp.Select):
        return
    node.set("pivots", None)
    items = []
    for field_ in pivot.args.get("fields") or ():
        for value in field_.expressions if isinstance(field_, exp.In) else ():
            where = exp.Where(this=exp.EQ(this=field_.this.copy(), expression=value.copy()))
            for aggregate in pivot.expressions:
                counted = exp.Filter(this=aggregate.unalias().copy(), expression=where.copy())
                items.append(exp.alias_(counted, value.name, quoted=not value.name.isidentifier()))
    if items:
        select.set("expressions", items)
        yield "one column for each value: ", root


def first_step_alone(torn: Torn) -> Mended:
    """WITH RECURSIVE without what refers to itself."""
    for root, node in torn.each(exp.With):
        node.set("recursive", None)
        for cte in node.expressions:
            if isinstance(cte.this, exp.SetOperation):
                cte.set("this", cte.this.this.copy())
        yield "the first step alone: ", root
    if torn.tree is not None:
        root = torn.tree.copy()
        for node in root.find_all(exp.With):
            node.set("recursive", None)
            for cte in node.expressions:
                if isinstance(cte.this, exp.SetOperation):
                    cte.set("this", cte.this.this.copy())
        yield "the first step alone: ", root


def drop_unread(torn: Torn) -> Mended:
    """Without a WITH that nothing reads; its columns renamed where they are made."""
    for root, node in torn.each(exp.CTE):
        clause = node.parent
        node.pop()
        if clause is not None and not clause.expressions:
            clause.pop()
        yield f"without '{node.alias}': ", root
    if torn.tree is None:
        return
    root = torn.tree.copy()
    for node in [n for n in root.find_all(exp.CTE, exp.Subquery) if _names_columns(n)]:
        inner = node.this
        names = [name.name for name in node.args["alias"].args["columns"]]
        if isinstance(inner, exp.Select) and len(names) == len(inner.expressions):
            made = [
                exp.alias_(item.unalias().copy(), name)
                for item, name in zip(inner.expressions, names, strict=True)
            ]
            inner.set("expressions", made)
            node.args["alias"].set("columns", None)
    yield "", root


def _names_columns(node: exp.Expr) -> bool:
    alias = node.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))


# --- options -------------------------------------------------------------------------------------


def mend_options(torn: Torn) -> Mended:
    """Without an option, or with the privacy clause where it belongs."""
    if torn.tree is None:
        return
    root = torn.tree.copy()
    inner = [c for c in root.find_all(PrivacyClause) if c.parent is not root]
    if inner and isinstance(root, exp.Select) and root.args.get("hint") is None:
        clause = inner[0].copy()
        inner[0].pop()
        root.set("hint", clause)
        yield "", root
    for root, node in torn.each(PrivacyClause):
        count = len(node.expressions)
        order = [i for i, e in enumerate(node.expressions) if _at(torn, e)]
        order += [i for i in reversed(range(count)) if i not in order]
        for position in order:
            again = root.copy()
            clause = next(c for c in again.find_all(PrivacyClause) if c == node)
            option = clause.expressions[position]
            said = write_text(option)
            option.pop()
            if not clause.expressions:
                clause.pop()
            yield f"without {said}: ", again


def _at(torn: Torn, node: exp.Expr) -> bool:
    own, place = torn.reader.span(node), torn.place
    if own is None or place is None:
        return False
    return own.start >= place.start and own.stop <= place.stop and own != place


def correct_functions(torn: Torn) -> Mended:
    """A function, or an aggregate, that is spelled nearly like this one."""
    known = {f.usage.partition("(")[0] for f in FUNCTIONS.values() if "(" in f.usage}
    names = {*known, *NAMES, *(name.upper() for name in (*SYNONYMS, *SPECIAL))}
    for root, node in torn.each(exp.Anonymous):
        called = node.name.upper()
        near = None if called in names else find_nearest(called, names)
        if near is not None and not isinstance(node.this, exp.Identifier):
            for same in root.find_all(exp.Anonymous):
                if same.name.upper() == called:
                    same.set("this", near)
            yield f"did you mean {near}? ", root


def unquote_functions(torn: Torn) -> Mended:
    """A function's name stands without quotes."""
    if torn.tree is None:
        return
    root = torn.tree.copy()
    for call in root.find_all(exp.Anonymous):
        if isinstance(call.this, exp.Identifier):
            call.set("this", call.this.name.upper())
    yield "", root


def keep_questions_alone(torn: Torn) -> Mended:
    """Without what is read beside the questions and does not exist."""
    for root, node in torn.each(exp.Table):
        join = node.parent
        if isinstance(join, exp.Join):
            join.pop()
            yield "without what does not exist here: ", root


def drop_cast(torn: Torn) -> Mended:
    """Without a CAST that there is not."""
    for root, node in torn.each(exp.Cast):
        node.replace(node.this.copy())
        yield "as it is: ", root
