"""The privacy clause: ``WITH DIFFERENTIAL_PRIVACY OPTIONS(name = value, ...)``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.question import Limits, Spend
from discreet.question.sql.constants import is_constant, normal_constant, read_constant
from discreet.question.sql.dialect import PrivacyClause
from discreet.question.sql.reader import Reader
from discreet.question.sql.sources import Rows
from discreet.question.sql.write import options_tree

WHOLE = {
    "max_rows": "max_rows",
    "max_rows_contributed": "max_rows",
    "max_groups_contributed": "max_groups",
    "max_rows_per_group": "max_rows_per_group",
}
"""Options that are whole numbers of at least 1, and the limit each one is."""

AMOUNTS = ("epsilon", "rho", "delta", "within", "confidence")
"""Options that are positive numbers; delta and confidence are also below 1."""

NAMES = (*AMOUNTS, *WHOLE, "privacy_unit_column")


def read_options(
    clause: exp.Expr | None, rows: Rows, reader: Reader
) -> tuple[Limits, Spend | None, exp.Expr | None]:
    """What one unit may contribute, what the analyst offers, and the clause in normal form."""
    if clause is None:
        return Limits(), None, None
    values: dict[str, Fraction] = {}
    for option in clause.expressions:
        name = option.this.name.lower() if _is_option(option) else ""
        if name not in NAMES or name in values:
            raise _misread(reader, option, f"is not one of {', '.join(NAMES)}, each given once")
        if name == "privacy_unit_column":
            _check_unit(option.expression, rows, reader)
        else:
            values[name] = _number(name, option, reader)
    limits, spend = _limits(values, clause, reader), _spend(values, clause, reader)
    tree = options_tree(limits, spend)
    kept = {k: v for k, v in clause.args.items() if k != "expressions"}
    if tree is not None and any(kept.values()):
        tree = PrivacyClause(expressions=tree.expressions, **kept)
    return limits, spend, tree


def _is_option(option: exp.Expr) -> bool:
    return isinstance(option, exp.EQ) and isinstance(option.this, exp.Column)


def _number(name: str, option: exp.Expr, reader: Reader) -> Fraction:
    tree = normal_constant(option.expression, reader)
    value = read_constant(tree) if tree is not None and is_constant(tree) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or value <= 0:
        raise _misread(reader, option, "is not a positive number")
    if name in WHOLE and (not isinstance(value, int) or value > 10**9):
        raise _misread(reader, option, "is not a whole number from 1 to 1000000000")
    if name in ("delta", "confidence") and value >= 1:
        raise _misread(reader, option, "is not below 1")
    return Fraction(value)


def _limits(values: dict[str, Fraction], clause: exp.Expr, reader: Reader) -> Limits:
    found: dict[str, int] = {}
    for name, field in WHOLE.items():
        if name in values:
            if field in found:
                raise _misread(reader, clause, f"gives {field} twice")
            found[field] = int(values[name])
    if "max_rows" in found and len(found) > 1:
        raise _misread(reader, clause, "bounds rows in all and groups at once: choose one way")
    return Limits(**found)


def _spend(values: dict[str, Fraction], clause: exp.Expr, reader: Reader) -> Spend | None:
    offered = Spend(values.get("epsilon"), values.get("rho"), values.get("delta"))
    if sum(name in values for name in ("epsilon", "rho", "within")) > 1:
        raise _misread(reader, clause, "gives more than one of epsilon, rho and within")
    if "confidence" in values and "within" not in values:
        raise _misread(reader, clause, "gives a confidence without within")
    if "within" in values:
        confidence = values.get("confidence", Spend().confidence)
        return replace(offered, within=(("", values["within"]),), confidence=confidence)
    return offered if offered != Spend() else None


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


def _misread(reader: Reader, node: exp.Expr, what: str) -> QuestionRefusal:
    return reader.refusal(
        "Q28",
        node,
        f"this option {what}.",
        why="an option that is not understood cannot be honoured.",
        fix="write OPTIONS(epsilon = 0.5, delta = 1e-9, max_groups_contributed = 3), or leave "
        "it out and offer the price when asking.",
    )
