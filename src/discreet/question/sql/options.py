"""The privacy clause: ``WITH DIFFERENTIAL_PRIVACY OPTIONS(name = value, ...)``."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.offer import CONFIDENCE, Offer
from discreet.question.ownership import row_bound
from discreet.question.question import Aggregate, Key, Limits, Question
from discreet.question.sql.dialect import PrivacyClause, Reader
from discreet.question.sql.scalars import (
    call,
    conjunction,
    conjuncts,
    is_constant,
    normalize_constant,
    read_constant,
    write_constant,
)
from discreet.question.sql.sources import Rows

LIMIT_OPTIONS = {
    "max_rows": "max_rows",
    "max_rows_contributed": "max_rows",
    "max_groups_contributed": "max_groups",
    "max_rows_per_group": "max_rows_per_group",
}
"""Options that are whole numbers of at least 1, and the limit each one is."""

AMOUNT_OPTIONS = ("epsilon", "rho", "delta", "within", "confidence")
"""Options that are positive numbers; delta and confidence are also below 1."""

LEAST_UNITS = ("min_privacy_units_per_group", "k_threshold")
"""Options that leave out groups of few units: whole numbers of at least 1."""

STRATEGY = "group_selection_strategy"
PUBLIC_GROUPS, LAPLACE_THRESHOLD = "public_groups", "laplace_threshold"

OPTIONS = (*AMOUNT_OPTIONS, *LIMIT_OPTIONS, *LEAST_UNITS, STRATEGY, "privacy_unit_column")


@dataclass(frozen=True, slots=True)
class Clause:
    """What the privacy clause of a question says, and its normal form.

    ``least_units`` and ``strategy`` are not part of the normal form: one becomes a condition of
    HAVING, and the other only says again how the groups are known.
    """

    limits: Limits
    spend: Offer | None = None
    tree: exp.Expr | None = None
    least_units: int | None = None
    strategy: str | None = None

    def within(self, spend: Offer | None) -> exp.Expr | None:
        """The same clause for a part of the question, with another offer."""
        tree = options_tree(self.limits, spend)
        named = {LEAST_UNITS[0]: self.least_units, STRATEGY: self.strategy}
        rest = [
            exp.EQ(this=exp.column(name), expression=write_constant(value))
            for name, value in named.items()
            if value is not None
        ]
        if not rest:
            return tree
        return PrivacyClause(expressions=[*(tree.expressions if tree else ()), *rest])


def read_options(clause: exp.Expr, rows: Rows, reader: Reader) -> Clause:
    """What one unit may contribute, what the analyst offers, which groups are wanted."""
    values: dict[str, Fraction] = {}
    strategy = None
    for option in clause.expressions:
        name = option.this.name.lower() if _is_option(option) else ""
        if name not in OPTIONS or name in values or (name == STRATEGY and strategy):
            raise _option_refusal(
                reader, option, f"is not one of {', '.join(OPTIONS)}, each given once"
            )
        if name == "privacy_unit_column":
            _check_unit(option.expression, rows, reader)
        elif name == STRATEGY:
            strategy = _read_strategy(option, reader)
        else:
            values[name] = _read_number(name, option, reader)
    limits, spend = _read_limits(values, clause, reader), _read_spend(values, clause, reader)
    tree = options_tree(limits, spend)
    kept = {k: v for k, v in clause.args.items() if k != "expressions"}
    if tree is not None and any(kept.values()):
        tree = PrivacyClause(expressions=tree.expressions, **kept)
    least = [int(values[name]) for name in LEAST_UNITS if name in values]
    if len(least) > 1:
        raise _option_refusal(reader, clause, "gives the least number of units twice")
    return Clause(limits, spend, tree, least[0] if least else None, strategy)


def _read_strategy(option: exp.Expr, reader: Reader) -> str:
    """How the groups are known: a word, bare or quoted."""
    word = option.expression
    name = word.name.lower() if isinstance(word, exp.Column | exp.Var | exp.Literal) else ""
    if name not in (PUBLIC_GROUPS, LAPLACE_THRESHOLD):
        raise _option_refusal(reader, option, "is PUBLIC_GROUPS or LAPLACE_THRESHOLD")
    return name


def check_strategy(
    options: Clause, keys: tuple[Key, ...], node: exp.Expr | None, reader: Reader
) -> None:
    """Groups are public because they are declared or listed, not because somebody says so."""
    private = [key.name for key in keys if key.values is None]
    if options.strategy != PUBLIC_GROUPS or not private:
        return
    raise reader.refusal(
        "Q28",
        node,
        f"the groups of {', '.join(private)} are not public.",
        why="a group that only the data names would show that somebody is in it.",
        fix="declare the column's values in the schema, read the keys from a public table: FROM "
        "keys LEFT JOIN t ON t.x = keys.x; or leave group_selection_strategy out.",
    )


def keep_large(having: exp.Expr | None, least: int, rows: Rows) -> exp.Expr:
    """HAVING, with the least number of units that a group must have: by its noisy number."""
    by_row = not rows.unit or None in rows.unit  # where every row is a unit, rows are counted
    counted = call("COUNT", exp.Star()) if by_row else call("COUNT_UNITS")
    large = exp.GTE(this=counted, expression=write_constant(least))
    return large if having is None else conjunction([*conjuncts(having), large])


def find_remarks(question: Question, options: Clause, reader: Reader) -> tuple[str, ...]:
    """Where BigQuery, whose clause this is, would answer something else."""
    found: list[str] = []
    means = [a.name for a in question.aggregates if a.function == "AVG" and not _has_bounds(a)]
    if means and row_bound(question.source, reader.catalogue.multiplicity) != 1:
        found.append(
            f"{', '.join(means)}: the mean of all rows. BigQuery's AVG in this clause is the mean "
            "of each unit's own mean, here AVG(x, contribution_bounds_per_group => (low, high))."
        )
    if options.least_units is not None:
        found.append(
            f"groups of fewer than {options.least_units} units are left out by their noisy number "
            "of units, so that one of fewer may be shown and one of more may be missing."
        )
    public = bool(question.keys) and all(key.values is not None for key in question.keys)
    if options.strategy == LAPLACE_THRESHOLD and public and options.least_units is None:
        found.append(
            "these groups are public: all of them are shown, also empty ones, and none is left "
            "out by a threshold as BigQuery would."
        )
    return tuple(found)


def find_spellings(select: exp.Select) -> Iterator[str]:
    """Words that are accepted and mean something a little different in BigQuery."""
    if any(part.this.name.lower() == "report_format" for part in select.find_all(exp.Kwarg)):
        yield (
            "report_format: a number stands in its column and its margin beside it, also as JSON; "
            "BigQuery would write both into one cell."
        )
    if any(part.this.name.lower() == "dayofweek" for part in select.find_all(exp.Extract)):
        yield (
            "DAYOFWEEK: Sunday is 0 and Saturday 6, as in PostgreSQL, DuckDB and Snowflake; in "
            "BigQuery they are 1 and 7."
        )


def _has_bounds(aggregate: Aggregate) -> bool:
    return aggregate.bounds_per_group is not None or aggregate.bounds_per_row is not None


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
    if name in (*LIMIT_OPTIONS, *LEAST_UNITS) and (not isinstance(value, int) or value > 10**9):
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
