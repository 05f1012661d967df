"""What may be asked of rows that two people share: of pairs, and of rows with two owners.

Of a pair its own rows are counted, so that all prices hold; but a group for each end is one for
each person, whom nothing of it protects.  Where both people are protected, rows are bounded where
the table is read and nowhere else, and nothing is measured by person: what has no lemma in
``docs/proofs/graphs.md`` is refused.
"""

from __future__ import annotations

from discreet.errors import QuestionRefusal
from discreet.price.plan import (
    DistinctValues,
    Histogram,
    Measurement,
    Moments,
    Plan,
    Sum,
    ValueCounts,
)
from discreet.question.functions import references
from discreet.question.ownership import (
    Multiplicity,
    has_two_owners,
    owner_columns,
    owner_told,
    reads_graph,
    row_bound,
)
from discreet.question.question import Limits, Question

BY_ROW = (Moments, Sum, Histogram, ValueCounts, DistinctValues)
"""Measurements to which each row adds by itself: those that rows of two people may have."""


def check_owners(question: Question) -> None:
    """Refuse what is not proved for rows of two people, or would be taken for more than it is."""
    named, told = owner_columns(question.source), owner_told(question.source)
    two = has_two_owners(question.source) or reads_graph(question.source)
    for key in question.keys:
        used = references(key.expression)
        if used & named.keys() or used & told:
            raise QuestionRefusal(
                "Q52",
                f"GROUP BY {key.name} makes groups of single people in a table of two.",
                why="each row of the answer would be about somebody and all who share rows with "
                "them.",
                fix="group by a column that is not an owner, or by what a table of people says of "
                "one: JOIN people AS p ON p.person = m.sender ... GROUP BY p.age_group.",
            )
    if not two:
        return
    if question.limits != Limits():
        raise QuestionRefusal(
            "Q52",
            "the question bounds the rows of a person again, in a table whose rows have two "
            "owners.",
            why="dropping one person's rows lets in another's; it is done once, where the table "
            "is read.",
            fix="leave out max_rows, max_groups_contributed and max_rows_per_group.",
        )
    if any(key.values is None for key in question.keys):
        raise QuestionRefusal(
            "Q52",
            "groups that are not listed publicly are asked of rows with two owners.",
            why="whether a group is shown would hang on how many people are in it, and a row of "
            "two people is in it for both.",
            fix="declare the column's values in the schema, or list them: WHERE x IN ('a', 'b').",
        )
    for aggregate in question.aggregates:
        if aggregate.function == "COUNT_UNITS":
            raise QuestionRefusal(
                "Q52",
                "COUNT of persons over a table with two owners.",
                why="a row of two people counts for both.",
                fix="ask COUNT(DISTINCT sender).",
            )
        if aggregate.bounds_per_group is not None:
            raise QuestionRefusal(
                "Q52",
                "totals of each person are bounded in a table whose rows have two owners.",
                why="a row of two people would be in the totals of both.",
                fix="leave out contribution_bounds_per_group.",
            )


def check_plan(plan: Plan, multiplicity: Multiplicity) -> None:
    """Refuse a plan over rows of two people that no lemma covers, whoever made it."""
    if not has_two_owners(plan.source) and not reads_graph(plan.source):
        return
    most = row_bound(plan.source, multiplicity)
    whole = plan.contribution.rows is not None and most is not None
    measured: tuple[Measurement, ...] = plan.measurements
    if (
        whole
        and most == plan.contribution.rows
        and plan.public_keys
        and all(isinstance(m, BY_ROW) for m in measured)
    ):
        return
    raise QuestionRefusal(
        "Q52",
        "this is measured by person, and rows of two people have two.",
        why="what one of them adds could not be told from what the other does.",
        fix="count rows, by columns with declared values.",
    )


__all__ = ["check_owners", "check_plan"]
