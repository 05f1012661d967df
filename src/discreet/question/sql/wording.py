"""Which words of a question are said in others first; few are typed so.

Each set of words has a pattern here, so that what most questions do not need is not even read in.
"""

from __future__ import annotations

import re

from sqlglot import exp

from discreet.question.sql.dialect import Reader, check_size

_OTHER_WORDS = re.compile(r"\b(fetch|time|distinct\s+on)\b", re.IGNORECASE)
"""Words of constructions that are written with others here."""

_ONCE = re.compile(r"\b(mode|top_k|approx_top_count|approx_top_k)\s*\(\s*distinct\b", re.IGNORECASE)
"""Words of an aggregate that counts each unit once for a value."""

_IN_THE_WAY = re.compile(r"\bdistance_to_(maximum|reference)\b", re.IGNORECASE)
"""Words of distances that are counts of units."""

_SHORT = re.compile(
    r"\b(semi|anti|asof|lateral|apply|pivot|sample|filter|bool\w*|logical_\w+|every|count_?if|"
    r"(min|max)_by|arg_(min|max)|first|last|skew(ness)?|kurtosis\w*|regr_r2|regr_count|"
    r"(left|right)\s+(outer\s+)?join)\b|\bcount\s*\(\s*\)|\b(generate_\w+|range)\s*\(",
    re.IGNORECASE,
)
"""Words of shorthands that are written out."""


def replace_words(tree: exp.Expr, text: str, reader: Reader) -> None:
    """Say in the words of the dialect what is said in others; few are typed so."""
    if _OTHER_WORDS.search(text):
        from discreet.question.sql.equivalents import respell

        respell(tree)
    if _SHORT.search(text):
        from discreet.question.sql.shorthand import write_out

        write_out(tree, reader)
        check_size(tree)
    if _may_use_names(tree):
        from discreet.question.sql.shorthand import use_names

        use_names(tree, reader)
        check_size(tree)
    if _ONCE.search(text):
        from discreet.question.sql.once import count_once

        count_once(tree, reader)
    if _IN_THE_WAY.search(text):
        from discreet.question.sql.distances import count_in_the_way

        count_in_the_way(tree, reader)


def _may_use_names(tree: exp.Expr) -> bool:
    """Whether some SELECT gives a name that a column without a table is called by."""
    given = {node.alias.casefold() for node in tree.find_all(exp.Alias)}
    return bool(given) and any(
        not node.table and node.name.casefold() in given for node in tree.find_all(exp.Column)
    )


__all__ = ["replace_words"]
