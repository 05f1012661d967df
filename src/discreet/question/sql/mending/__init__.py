"""A refused question mended: the nearest one that is accepted, and in which way it differs.

A refusal that has no rewriting of its own is looked up here by its code.  Each mender makes
changes at the place that the refusal marks, every one on a fresh copy of the question; the first
result that is read to its end is the rewriting.  One that is refused in its turn, and has a
rewriting, will do as well: then both changes were needed, and the words say both.

Nothing is mended that would need to know the data, a bound, or somebody's mind: there the
refusal keeps the words it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from discreet.errors import QuestionRefusal
from discreet.question.catalogue import Catalogue
from discreet.question.sql.dialect import Reader
from discreet.question.sql.mending.aggregates import (
    add_count,
    average_of_each,
    count_distinct,
    count_each_value,
    count_shown_rows,
    fewer_keys,
    group_ungrouped,
    mend_arguments,
    move_aggregates,
    translate_aggregates,
)
from discreet.question.sql.mending.clauses import (
    cast_sides,
    correct_functions,
    correct_words,
    drop_cast,
    drop_clause,
    drop_unread,
    first_step_alone,
    keep_questions_alone,
    mend_booleans,
    mend_constants,
    mend_formats,
    mend_kinds,
    mend_lists,
    mend_options,
    mend_qualified,
    mend_quotes,
    mend_spelling,
    mend_text,
    plain_names,
    quote_values,
    rename_twice_named,
    select_all_there_is,
    translate_clauses,
    unquote_functions,
)
from discreet.question.sql.mending.rows import (
    mend_joins,
    mend_sets,
    mend_subqueries,
    mend_windows,
    qualify_rows_first,
)
from discreet.question.sql.mending.torn import (
    Mended,
    Torn,
    buy_bounds,
    declare_bounds,
    leave_out,
    read_tree,
    write_tree,
)

MOST_TRIED = 24
"""How many questions are read to mend one; reading is free, so it is limited."""

MOST_MENDED = 320
"""How many characters a question may have that is mended."""

Attempt = Callable[[str], QuestionRefusal | None]
"""Reads a question: None if it is accepted."""


def mend(refusal: QuestionRefusal, text: str, known: Catalogue, attempt: Attempt) -> None:
    """Give ``refusal`` a rewriting or a declaration, if there is one for the question ``text``."""
    if len(text) > MOST_MENDED:
        return
    reader = Reader(text, known)
    torn = Torn(refusal, text, known.schema, read_tree(text, reader), reader)
    if refusal.code == "Q1" and declare_bounds(torn):
        _offer_bounds(torn, attempt)
        return
    for tried, (words, question) in enumerate(_list_mended(torn)):
        if tried == MOST_TRIED:
            return
        again = attempt(question)
        if again is None:
            _tell(refusal, words, question)
            return
        if again.rewriting is not None:
            more, _, _ = again.fix.partition("ask ")
            _tell(refusal, words + more, again.rewriting)
            return


def _offer_bounds(torn: Torn, attempt: Attempt) -> None:
    """Beside the lines of the schema, the question that buys bounds, if it takes them."""
    for question in islice(filter(None, map(write_tree, buy_bounds(torn))), MOST_TRIED):
        again = attempt(question)
        whole = question if again is None else again.rewriting
        if whole is not None and (again is None or again.code == "Q1"):
            told, _, _ = torn.refusal.fix.partition(" Nobody knows any:")
            words = (
                "If nobody knows any, a part of the offer buys them, found in the data privately"
            )
            _tell(torn.refusal, f"{told} {words}: ", whole)
            return


def _list_mended(torn: Torn) -> Iterator[tuple[str, str]]:
    """Questions that may do instead, each with its words."""
    for mender in MENDERS.get(torn.refusal.code, ()):
        try:
            for words, made in mender(torn):
                question = made if isinstance(made, str) else write_tree(made)
                if question is not None and question != torn.text:
                    yield words, question
        except Exception:  # noqa: S112
            # The text is hostile: whatever a mender stumbles over, the refusal stands as it is.
            continue


def _tell(refusal: QuestionRefusal, words: str, question: str) -> None:
    refusal.fix = f"{words}ask {question}"
    refusal.rewriting = question


Mender = Callable[[Torn], Mended]

MENDERS: dict[str, tuple[Mender, ...]] = {
    "Q1": (average_of_each,),
    "Q2": (mend_text,),
    "Q6": (mend_qualified, keep_questions_alone),
    "Q7": (
        mend_quotes,
        quote_values,
        mend_qualified,
        mend_spelling,
        leave_out,
        select_all_there_is,
    ),
    "Q8": (rename_twice_named,),
    "Q9": (unquote_functions, correct_functions, translate_aggregates, leave_out),
    "Q10": (mend_booleans, mend_kinds, cast_sides, leave_out),
    "Q11": (translate_clauses, drop_clause, drop_cast, leave_out),
    "Q12": (count_shown_rows,),
    "Q13": (count_distinct,),
    "Q14": (qualify_rows_first, mend_windows),
    "Q5": (correct_words,),
    "Q15": (mend_subqueries,),
    "Q18": (mend_joins, mend_sets, leave_out),
    "Q19": (mend_joins, leave_out),
    "Q20": (mend_joins, leave_out),
    "Q21": (mend_sets,),
    "Q24": (qualify_rows_first, group_ungrouped),
    "Q25": (move_aggregates,),
    "Q27": (fewer_keys,),
    "Q28": (mend_options,),
    "Q29": (first_step_alone, drop_unread),
    "Q31": (mend_constants, mend_formats, mend_lists, leave_out),
    "Q32": (translate_aggregates,),
    "Q33": (mend_arguments,),
    "Q34": (plain_names,),
    "Q35": (add_count,),
    "Q40": (count_each_value,),
}
"""What is tried for a refusal of each code, in order."""
