"""The same integers everywhere: golden questions, made-up worlds, and engines side by side.

A question is priced and planned once, with what is public; every engine compiles the plan and runs
it on the same rows.  The outcome is ``same``, or ``refused`` before the charge; an engine that
gives other integers, or fails, is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import engine_cases as cases
import golden_cases as golden
import psycopg
import pyarrow as pa
import services
from fuzz.worlds import Vector, distance, vectors

from discreet.audit.synthetic import make_world
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.postgres import PostgresEngine
from discreet.errors import DataRefusal, QuestionRefusal, Refusal
from discreet.price import Priced, price
from discreet.price.calibration import Selection, find_lumpings
from discreet.price.plan import Plan
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Kind
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse_statement
from discreet.question.statement import Statement

SPEND = Offer(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9))
CITIES = pa.table(
    {
        "name": ["york", "leeds", "hull", None, "o'neill\\town"],
        "region": ["north", "north", "south", "south", None],
        "people": pa.array([200_000, 500_000, 250_000, 7, None], pa.int64()),
    }
)
READER = "conforming_reader"
TYPES = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "bigint",
    Kind.DECIMAL: "double precision",
    Kind.TEXT: 'text COLLATE "en-x-icu"',  # by which "b" comes before "C"
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
}


@cache
def list_questions() -> tuple[str, ...]:
    """Every golden question that is accepted; of a statement, each of its questions."""
    found: dict[str, None] = {}
    for case in golden.all_cases():
        if case.verdict[0].startswith("refused"):
            continue
        question = parse_statement(case.question, golden.SCHEMA, now=golden.NOW).question
        parts = question.questions if isinstance(question, Statement) else (question,)
        found |= dict.fromkeys(part.text for part in parts)
    return tuple(found)


def price_question(text: str, catalogue: Catalogue) -> Priced | None:
    """The price of a question; None if it has none as it stands."""
    question = parse_statement(text, catalogue, now=golden.NOW).question
    try:
        return price(question, SPEND, catalogue)
    except Refusal:
        return None


def plan_question(text: str, catalogue: Catalogue) -> Plan | None:
    """What must be measured for a question; None if it has no price as it stands."""
    priced = price_question(text, catalogue)
    return None if priced is None else priced.plan


# --- worlds --------------------------------------------------------------------------------------


def make_tables(schema: Schema, label: str, *, people: int = 6) -> dict[str, Any]:
    """A world of odd values that every engine can hold: PostgreSQL has no zero character."""
    world = make_world(schema, label, public={"cities": CITIES}, people=people)
    return {name: without_zeros(table) for name, table in world.tables().items()}


def make_neighbours(schema: Schema, label: str, *, people: int, gone: int) -> list[dict[str, Any]]:
    """A world, and the same without each of some people."""
    public = {"cities": CITIES} if "cities" in schema.tables else {}
    world = make_world(schema, label, public=public, people=people)
    chosen = [None, *Random(label).sample(world.people(), gone)]
    return [
        {name: without_zeros(table) for name, table in world.tables(without=one).items()}
        for one in chosen
    ]


def without_zeros(table: pa.Table) -> pa.Table:
    """The table with another text in the place of those with the zero character."""
    columns = {
        name: [v.replace("\0", "~") if isinstance(v, str) else v for v in table[name].to_pylist()]
        for name in table.column_names
    }
    return pa.table(columns, schema=table.schema)


# --- engines -------------------------------------------------------------------------------------


@contextmanager
def open_duckdb(schema: Schema, tables: Mapping[str, Any], _: Any) -> Iterator[DuckDBEngine]:
    with DuckDBEngine(tables, schema, threads=1) as engine:
        yield engine


def hold_in_postgres(
    postgres: services.Postgres, schema: Schema, tables: Mapping[str, Any], place: str
) -> dict[str, Any]:
    """The private tables in a namespace of a server, and where each is for a reader."""
    given = dict(tables)
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {place} CASCADE")
        connection.execute(f"CREATE SCHEMA {place}")
        for name, table in schema.tables.items():
            if table.public:
                continue
            columns = ", ".join(f'"{c.name}" {TYPES[c.kind]}' for c in table.columns)
            connection.execute(f"CREATE TABLE {place}.{name} ({columns})")
            marks = ", ".join(["%s"] * len(table.columns))
            names = [c.name for c in table.columns]
            rows = [tuple(row[n] for n in names) for row in tables[name].to_pylist()]
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {place}.{name} VALUES ({marks})", rows)
            given[name] = address_for_reader(postgres, place, name)
    return given


def address_for_reader(postgres: services.Postgres, place: str, name: str) -> str:
    """Where a table is, for a role that may read it and nothing else."""
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        there = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [READER])
        if there.fetchone() is None:
            connection.execute(f"CREATE ROLE {READER} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {place} TO {READER}")
        connection.execute(f"GRANT SELECT ON {place}.{name} TO {READER}")
    return f"postgresql://{READER}@/{postgres.database}?host={postgres.home}#{place}.{name}"


@contextmanager
def open_postgres(
    schema: Schema, tables: Mapping[str, Any], postgres: services.Postgres
) -> Iterator[PostgresEngine]:
    given = hold_in_postgres(postgres, schema, tables, "conforming")
    with PostgresEngine(given, schema) as engine:
        yield engine


ENGINES = {"duckdb": open_duckdb, "postgres": open_postgres}


# --- side by side --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What an engine made of a question."""

    question: str
    outcome: str  # same, refused, different or failed
    about: str = ""


def compare(
    engine: str,
    schema: Schema,
    worlds: Sequence[Mapping[str, Any]],
    questions: Sequence[str],
    place: Any,
) -> list[Outcome]:
    """What an engine makes of questions that DuckDB answers; compiled once for all the worlds."""
    found: list[Outcome] = []
    pairs: list[tuple[str, Any, Any]] = []
    for number, tables in enumerate(worlds):
        with ExitStack() as stack:
            ours = stack.enter_context(open_duckdb(schema, tables, place))
            theirs = stack.enter_context(ENGINES[engine](schema, tables, place))
            if not number:
                pairs = list(_compile(questions, ours, theirs, found))
            for text, compiled, other in pairs:
                wanted = cases.integers(ours.run(compiled).open_for_release())
                try:
                    got = cases.integers(theirs.run(other).open_for_release())
                except DataRefusal:
                    found.append(Outcome(text, "failed"))
                    continue
                found.append(Outcome(text, "same" if got == wanted else "different"))
    return found


def _compile(
    questions: Sequence[str], ours: Any, theirs: Any, found: list[Outcome]
) -> Iterator[tuple[str, Any, Any]]:
    for text in questions:
        priced = price_question(text, ours.catalogue)
        if priced is None:
            continue
        plan, lumpings = priced.plan, find_lumpings(priced)
        compiled = ours.compile(plan)
        try:
            yield text, compiled, theirs.compile(plan)
            if lumpings:
                yield text, ours.compile(plan, lumpings), theirs.compile(plan, lumpings)
        except QuestionRefusal as refusal:
            found.append(Outcome(text, "refused", refusal.what))


def find_moved(
    engine: str,
    schema: Schema,
    worlds: Sequence[Mapping[str, Any]],
    questions: Sequence[str],
    place: Any,
) -> tuple[int, set[str]]:
    """How many cases were compared, and which questions one person moves further than their price.

    The first world is everybody's, each other is without one person: the engine is held to the
    sensitivities of the price, and to nothing that another engine says.
    """
    compared, moved = 0, set()
    whole: dict[str, Any] = {}
    asked: list[tuple[str, Priced, Any]] = []
    for number, tables in enumerate(worlds):
        with ENGINES[engine](schema, tables, place) as opened:
            if not number:
                asked = list(_price_all(questions, opened))
            for text, priced, compiled in asked:
                found = vectors(opened.run(compiled).open_for_release())
                parts = zip(whole.setdefault(text, found), found, strict=True)
                for index, (a, b) in enumerate(parts):
                    if not _is_within(priced, index, a, b):
                        moved.add(text)
                compared += bool(number)
    return compared, moved


def _is_within(priced: Priced, index: int, a: Vector, b: Vector) -> bool:
    """Whether two vectors are as near as the price says; where a value counts once, each count.

    There (docs/proofs/price.md, Lemma 12) all counts of its groups move in one direction, by one
    each: ``a`` is the world with everybody.
    """
    bound = priced.sensitivities[index]
    if isinstance(priced.mechanisms[index], Selection) and bound.l1 < priced.reach.rows:
        gaps = {key: a.get(key, 0) - b.get(key, 0) for key in a.keys() | b.keys()}
        groups = {group for (group, _), gap in gaps.items() if gap}
        return {*gaps.values()} <= {0, bound.l1} and len(groups) <= priced.reach.groups
    l1, l2_squared = distance(a, b)
    return l1 <= bound.l1 and l2_squared <= bound.l2_squared


def _price_all(questions: Sequence[str], opened: Any) -> Iterator[tuple[str, Priced, Any]]:
    for text in questions:
        priced = price_question(text, opened.catalogue)
        if priced is not None:
            with suppress(QuestionRefusal):
                yield text, priced, opened.compile(priced.plan)
