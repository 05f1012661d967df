"""The privacy clause: ``WITH DIFFERENTIAL_PRIVACY OPTIONS(name = value, ...)``."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.offer import CONFIDENCE, Offer
from discreet.question.question import Limits
from discreet.question.sql.dialect import PrivacyClause, Reader
from discreet.question.sql.scalars import (
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

OPTIONS = (*AMOUNT_OPTIONS, *LIMIT_OPTIONS, "privacy_unit_column")


def read_options(
    clause: exp.Expr, rows: Rows, reader: Reader
) -> tuple[Limits, Offer | None, exp.Expr | None]:
    """What one unit may contribute, what the analyst offers, and the clause in normal form."""
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
