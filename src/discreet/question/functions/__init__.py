"""The functions of the allow-list, each total, with its domain rule and its engine form.

A function is declared once: what its result can be (:func:`domain_of`), how the
engine computes it (:func:`render`), and what it is on Python values
(:func:`evaluate`).  No row can make one raise: division by zero, a bad cast, an
overflow, a logarithm of zero give NULL.  ``docs/functions.md`` lists them.
"""

from __future__ import annotations

# Importing a family enters its functions in the allow-list.
from discreet.question.functions import analysis as _analysis  # noqa: F401
from discreet.question.functions import arithmetic as _arithmetic  # noqa: F401
from discreet.question.functions import calendar as _calendar  # noqa: F401
from discreet.question.functions import casts as _casts  # noqa: F401
from discreet.question.functions import formats as _formats  # noqa: F401
from discreet.question.functions import intervals as _intervals  # noqa: F401
from discreet.question.functions import logic as _logic  # noqa: F401
from discreet.question.functions import patterns as _patterns  # noqa: F401
from discreet.question.functions import text as _text  # noqa: F401
from discreet.question.functions.declaration import FUNCTIONS, Function
from discreet.question.functions.interpret import (
    MOST_WRITTEN,
    Outcome,
    Size,
    domain_of,
    domain_of_literal,
    evaluate,
    narrow,
    read_column,
    read_kind,
    references,
    render,
)
from discreet.question.functions.nodes import literal as render_literal

__all__ = [
    "FUNCTIONS",
    "MOST_WRITTEN",
    "Function",
    "Outcome",
    "Size",
    "domain_of",
    "domain_of_literal",
    "evaluate",
    "narrow",
    "read_column",
    "read_kind",
    "references",
    "render",
    "render_literal",
]
