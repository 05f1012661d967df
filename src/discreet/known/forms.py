"""One form of a condition: what is true, false and NULL on the same rows has the same text.

``cost <= 100``, ``100 >= cost`` and ``NOT cost > 100`` are one condition.  Only what is the same
on every row, NULL included, is brought together (``docs/proofs/known.md``, Lemma 17).  The form
is for comparing: what is shown, planned and run stays as it was asked.
"""

from __future__ import annotations

from discreet.price.plan import split_condition
from discreet.question.expressions import Call, Case, Expression
from discreet.question.functions import references

_DENIED = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
}
"""What a comparison is if it is denied."""
_TURNED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""What a comparison is with its sides exchanged."""


def same_text(value: object) -> str:
    """A text that is the same for the same meaning: Python takes 1 and true for equal."""
    return repr(value)


def normalise(expression: Expression) -> Expression:
    """The expression in its one form: nothing is denied that can be said, constants stand last.

    >>> from discreet.question.expressions import ColumnRef, Literal
    >>> dear = Call("less", (Literal(100), ColumnRef("cost")))
    >>> normalise(dear)
    Call(function='greater', arguments=(ColumnRef(name='cost'), Literal(value=100)))
    >>> normalise(Call("not", (dear,)))
    Call(function='less_equal', arguments=(ColumnRef(name='cost'), Literal(value=100)))
    """
    match expression:
        case Call(function="not", arguments=(part,)):
            return _deny(normalise(part))
        case Call(function=name, arguments=(a, b)) if name in _TURNED:
            a, b = normalise(a), normalise(b)
            if _rank(b) < _rank(a):
                return Call(_TURNED[name], (b, a))
            return Call(name, (a, b))
        case Call(function=name, arguments=arguments):
            return Call(name, tuple(map(normalise, arguments)))
        case Case(branches=branches, otherwise=otherwise):
            formed = tuple((normalise(a), normalise(b)) for a, b in branches)
            return Case(formed, normalise(otherwise))
    return expression


def list_conditions(condition: Expression | None) -> tuple[Expression, ...]:
    """The parts of which all must be true, each in its one form."""
    return () if condition is None else split_condition(normalise(condition))


def _deny(form: Expression) -> Expression:
    match form:
        case Call(function="not", arguments=(part,)):
            return part
        case Call(function=name, arguments=(a, b)) if name in _DENIED:
            return Call(_DENIED[name], (a, b))
    return Call("not", (form,))


def _rank(form: Expression) -> tuple[bool, str]:
    """Constants after all that is looked at, and else in the order of their texts."""
    return not references(form), same_text(form)


__all__ = ["list_conditions", "normalise", "same_text"]
