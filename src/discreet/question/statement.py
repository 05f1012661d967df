"""A statement: questions, and SQL on their answers.

Each question of it is priced, charged, released and stored by itself, as if it had been asked
alone; what stands around them is computed from the released numbers, and free.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from discreet.exact.records import dataclass
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import ColumnRef
from discreet.question.functions import domain_of
from discreet.question.offer import CONFIDENCE, Offer
from discreet.question.ownership import columns
from discreet.question.question import AGGREGATES, Question, check_aggregate

MOST_QUESTIONS = 32
"""How many questions one statement may ask."""


@dataclass(frozen=True, slots=True)
class Column:
    """What is known of a released column beforehand: its kind, and whether it is a list."""

    name: str
    kind: Kind
    total: bool = False  # a sum of whole numbers, which may be wide
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """A column that holds a released number, times ``scale`` and plus ``shift``.

    ``row`` is the extra column of a :class:`Trace` that says which row of the answer it is from.
    """

    question: int
    column: str
    scale: Fraction
    shift: Fraction
    row: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The same SQL with extra columns at its end: from which rows of the answers each row is.

    ``carried`` says for each column what it may hold; where it has several origins, at most one
    of their rows is not NULL.  Each answer has a column ``ROW_NUMBER`` here.
    """

    sql: str
    carried: tuple[tuple[Carried, ...], ...]
    rows: int
    certain: tuple[bool, ...] = ()
    """For each column whether nothing that was released with noise is in it."""


ROW_NUMBER = "row.number"


@dataclass(frozen=True, slots=True)
class Levels:
    """The questions of one ROLLUP, CUBE or GROUPING SETS, by number.

    ``finer`` says for each of them which one has groups that it may be added up from; None for
    those that have no finer one.
    """

    questions: tuple[int, ...]
    finer: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class First:
    """What is asked before the rest of a statement: its answer is a constant there.

    ``numbers`` are its questions among all of the statement's; ``listed``: all its rows are read,
    and not one value; ``keys``: so many of its columns say of which group the last one is.
    """

    statement: Statement
    numbers: tuple[int, ...]
    listed: bool = False
    keys: int = 0


@dataclass(frozen=True, slots=True)
class Statement:
    """Questions in the order of their first use, and the SQL that reads their answers.

    ``sql`` is in the words of the engine and reads nothing but the answers, each under
    :func:`answer_name`, and the public tables named in ``tables``, under :func:`public_name`.
    ``spend`` is offered for all of them together; a question may have an offer of its own, which
    is for all questions of its ``levels``.  ``ends`` are the columns of questions, by number, whose
    intervals are read, at ``confidence``: under :func:`interval_name` each such answer stands
    again, with their ends beside it.  ``first`` is what stands in conditions: until it is answered
    the questions around it have NULL in its place, and are priced so, and never asked.
    ``accounts`` are the tables for which the account is asked what is left, under
    :func:`account_name`; ``listed`` asks for groups that are declared, and nothing else of them,
    each under :func:`group_name`: neither has a price.
    """

    questions: tuple[Question, ...]
    sql: str
    tables: tuple[str, ...] = ()
    trace: Trace | None = None
    spend: Offer | None = None
    text: str = ""
    levels: tuple[Levels, ...] = ()
    ends: tuple[tuple[int, str], ...] = ()
    confidence: Fraction = CONFIDENCE
    first: tuple[First, ...] = ()
    accounts: tuple[str, ...] = ()
    listed: tuple[Question, ...] = ()

    def list_ends(self, number: int) -> tuple[str, ...]:
        """The columns of a question whose intervals are read."""
        return tuple(column for question, column in self.ends if question == number)


def answer_name(number: int) -> str:
    """The table in which ``sql`` finds the answer of a question; nobody can write this name.

    >>> answer_name(0), public_name("cities")
    ('question.1', 'public.cities')
    """
    return f"question.{number + 1}"


def interval_name(number: int) -> str:
    """The table in which ``sql`` finds the answer of a question with the ends of intervals."""
    return f"intervals.{number + 1}"


def name_ends(column: str) -> tuple[str, str]:
    """The columns there that hold the lower and the upper end; nobody can write these names.

    >>> name_ends("n")
    ('low.n', 'high.n')
    """
    return f"low.{column}", f"high.{column}"


def public_name(table: str) -> str:
    """The table in which ``sql`` finds a public table."""
    return f"public.{table}"


def group_name(number: int) -> str:
    """The table in which ``sql`` finds groups that are declared."""
    return f"listed.{number + 1}"


def account_name(table: str) -> str:
    """The table in which ``sql`` finds what is left of the budget of a table's units."""
    return f"account.{table}"


ACCOUNT_COLUMNS = (
    Column("NUMBER_OF_REMAINING_DP_AGGREGATES", Kind.INTEGER),
    Column("BUDGET_LIMIT", Kind.DECIMAL),
    Column("BUDGET_WINDOW", Kind.TEXT),
    Column("BUDGET_SPENT", Kind.DECIMAL),
    Column("BUDGET_LEFT", Kind.DECIMAL),
    Column("BUDGET_PER_AGGREGATE", Kind.DECIMAL),
)
"""What the account tells: the columns of Snowflake, then what it estimates with."""


def list_public_columns(table: str, catalogue: Catalogue) -> tuple[Column, ...]:
    """The columns of a public table."""
    return tuple(Column(c.name, c.kind) for c in catalogue.schema.tables[table].columns)


def list_columns(question: Question, catalogue: Catalogue) -> tuple[Column, ...]:
    """The columns of a question's answer, from public knowledge alone."""
    source = columns(question.source, catalogue.multiplicity)
    known: dict[str, Domain] = {k.name: domain_of(k.expression, source) for k in question.keys}
    totals: set[str] = set()
    lists: set[str] = set()
    for aggregate in question.aggregates:
        known[aggregate.name] = check_aggregate(aggregate, source)
        if aggregate.function == "SUM":
            totals.add(aggregate.name)
        if AGGREGATES[aggregate.function].many or len(aggregate.parameters) > 1:
            lists.add(aggregate.name)
    return tuple(
        _describe(output.name, _source(output.expression), known, totals, lists)
        or Column(output.name, domain_of(output.expression, known).kind, total=True)
        for output in question.outputs
    )


def _source(expression: object) -> str | None:
    return expression.name if isinstance(expression, ColumnRef) else None


def _describe(
    name: str, source: str | None, known: Mapping[str, Domain], totals: set[str], lists: set[str]
) -> Column | None:
    if source is None:
        return None
    return Column(name, known[source].kind, source in totals, source in lists)
