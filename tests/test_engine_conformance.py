"""The same integers on every engine, or a refusal before the charge; seeded bugs are found."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import conformance
import engine_cases as cases
import golden_cases as golden
import psycopg
import pyarrow as pa
import pytest
from conformance import compare, find_moved, list_questions, make_neighbours, make_tables
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from poison import COLUMNS, DOMAINS, Poisoned, poisoned
from test_expressions import FUZZ, accepted, conditions_on_columns, trees
from test_functions import calls, kinds_in

from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.postgres import PostgresEngine, doubles, printer, reading
from discreet.engine.postgres.printer import PostgresPrinter
from discreet.engine.printing import Printer
from discreet.engine.typed import OF_KIND, Type, Typed
from discreet.errors import DataRefusal, QuestionRefusal
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, ColumnRef, Expression, Literal
from discreet.question.functions import FUNCTIONS, narrow, render
from discreet.question.schema import Schema

# --- questions -------------------------------------------------------------------------------


def test_golden_questions_give_the_same_integers(postgres):
    """Every third golden question, on a world of odd values."""
    hold_on_one_world(postgres, list_questions()[::3], least=80)


@pytest.mark.soak
def test_all_golden_questions_give_the_same_integers(postgres):
    hold_on_one_world(postgres, list_questions(), least=250)


def hold_on_one_world(postgres, asked, *, least):
    """The same integers, of so many at least; few are refused."""
    tables = make_tables(golden.SCHEMA, "one for all", people=24)
    found = compare("postgres", golden.SCHEMA, [tables], asked, postgres)
    counts = Counter(one.outcome for one in found)
    assert not [one for one in found if one.outcome in ("different", "failed")]
    assert counts["same"] >= least
    # What is found among all rows, which stay where they are, is DuckDB's alone.
    apart = [one for one in found if RANKED_BY_ALL.search(one.question)]
    assert {one.outcome for one in apart} == {"refused"}
    assert counts["refused"] - len(apart) <= 10


RANKED_BY_ALL = re.compile("DISTANCE_TO_(SORTED|CLUSTERS|DEPENDENCY)")


@pytest.mark.soak
def test_golden_questions_on_many_worlds(postgres):
    worlds = [make_tables(golden.SCHEMA, f"many {n}", people=28) for n in range(20)]
    found = compare("postgres", golden.SCHEMA, worlds, list_questions(), postgres)
    assert not [one for one in found if one.outcome in ("different", "failed")]


def test_nobody_moves_an_engine_otherwise_than_another(postgres):
    """With and without each person the integers are DuckDB's, whose neighbours are fuzzed."""
    asked = random.Random(11).sample(list_questions(), 12)
    worlds = make_neighbours(golden.SCHEMA, "neighbours", people=8, gone=4)
    found = compare("postgres", golden.SCHEMA, worlds, asked, postgres)
    assert not [one for one in found if one.outcome in ("different", "failed")]
    assert sum(one.outcome == "same" for one in found) >= 48


BOUNDED = (
    "SELECT COUNT(*), SUM(cost) FROM visits",
    "SELECT city, COUNT(*), AVG(age) FROM visits GROUP BY city",
    "SELECT MEDIAN(age) FROM visits",
)
"""What every engine is asked with somebody gone, besides what is drawn."""


def _keep_every_row(patch):
    """Rows are ranked for each person, and then none is left out."""

    def write(self, query, scope, picked, source, columns):
        return RANKED(self, query, scope, picked, source, columns).rpartition("\nWHERE ")[0]

    patch.setattr(Printer, "_qualify", write)


RANKED = Printer._qualify


def test_nobody_moves_an_engine_further_than_the_price(postgres, monkeypatch):
    """Held to the sensitivities alone; an engine that bounds nobody is found."""
    worlds = make_neighbours(golden.SCHEMA, "priced", people=8, gone=4)
    asked = [*BOUNDED, *random.Random(13).sample(list_questions(), 20)]
    compared, moved = find_moved("postgres", golden.SCHEMA, worlds, asked, postgres)
    assert compared >= 70
    assert not moved
    few = cases.schema()  # in which people have more rows than they may keep
    worlds = make_neighbours(few, "priced", people=8, gone=5)
    assert find_moved("postgres", few, worlds, BOUNDED, postgres) == (15, set())
    _keep_every_row(monkeypatch)
    _, moved = find_moved("postgres", few, worlds, BOUNDED, postgres)
    assert moved == set(BOUNDED)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(6))
def test_nobody_moves_an_engine_further_than_the_price_for_long(postgres, number):
    worlds = make_neighbours(golden.SCHEMA, f"priced {number}", people=12, gone=12)
    compared, moved = find_moved("postgres", golden.SCHEMA, worlds, list_questions(), postgres)
    assert compared >= 2500
    assert not moved


# --- functions -------------------------------------------------------------------------------


class Side:
    """PostgreSQL beside DuckDB, with the same odd values in tables of pairs."""

    def __init__(self, connection: psycopg.Connection[Any], poison: Poisoned) -> None:
        self.connection = connection
        self.poison = poison
        self._made: dict[tuple[Kind, Kind], tuple[str, list[int]]] = {}
        self._mixed: list[int] = []

    def _pair(self, left: Kind, right: Kind) -> tuple[str, list[int]]:
        """The table of a pair of kinds, and which of DuckDB's rows it holds."""
        if (left, right) not in self._made:
            name, columns = self.poison._pair(left, right), self.poison.columns(left, right)
            types = ", ".join(f'"{n}" {conformance.TYPES[c.kind]}' for n, c in columns.items())
            types = types.replace("en-x-icu", "C")  # as every source is read
            self.connection.execute(f"CREATE TEMP TABLE {name} (place int, {types})")
            kept = [
                (place, *(row[n] for n in columns))
                for place, row in enumerate(self.poison.rows[left, right])
                if not any(isinstance(v, str) and "\0" in v for v in row.values())
            ]
            marks = ", ".join(["%s"] * (len(columns) + 1))
            with self.connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", kept)
            self._made[left, right] = name, [row[0] for row in kept]
        return self._made[left, right]

    def compare_mixed(
        self, expressions: list[Expression], columns: Mapping[str, Domain] = DOMAINS
    ) -> dict[str, list[Expression]]:
        """What PostgreSQL makes of expressions on the mixed table, by outcome."""
        rows = self.poison.mix()
        if not self._mixed:
            types = ", ".join(f'"{n}" {conformance.TYPES[c.kind]}' for n, c in COLUMNS.items())
            types = types.replace("en-x-icu", "C")
            self.connection.execute(f"CREATE TEMP TABLE mixed (place int, {types})")
            self._mixed = [
                place
                for place, row in enumerate(rows)
                if not any(isinstance(v, str) and "\0" in v for v in row.values())
            ]
            marks = ", ".join(["%s"] * (len(COLUMNS) + 1))
            with self.connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO mixed VALUES ({marks})",
                    [(place, *rows[place].values()) for place in self._mixed],
                )
        scope = {None: {n: Typed("", OF_KIND[c.kind]) for n, c in COLUMNS.items()}}
        found: dict[str, list[Expression]] = {}
        computed = self.poison.compute_mixed(expressions, columns)
        for expression, values in zip(expressions, computed, strict=True):
            outcome = "refused"
            with suppress(QuestionRefusal):
                text = PostgresPrinter({}).node(render(expression, columns), scope).text
                outcome = "failed"
                with suppress(psycopg.Error):
                    got = self.connection.execute(f"SELECT {text} FROM mixed ORDER BY place")
                    wanted = [values[place] for place in self._mixed]
                    same = all(_same(a, b) for a, (b,) in zip(wanted, got.fetchall(), strict=True))
                    outcome = "same" if same else "different"
            found.setdefault(outcome, []).append(expression)
        return found

    def compare(self, listed: list[Call]) -> Counter[str]:
        """How often PostgreSQL says the same, something different, fails, or is not asked."""
        found: Counter[str] = Counter()
        by_table: dict[tuple[Kind, Kind], list[Call]] = {}
        for call in listed:
            by_table.setdefault(kinds_in(call.arguments), []).append(call)
        for kinds, some in by_table.items():
            name, kept = self._pair(*kinds)
            columns = {
                n: Typed("", OF_KIND[c.kind]) for n, c in self.poison.columns(*kinds).items()
            }
            for call, _, values in self.poison.compute(some, *kinds):
                try:
                    text = PostgresPrinter({}).node(render(call, DOMAINS), {None: columns}).text
                except QuestionRefusal:
                    found["refused"] += 1
                    continue
                try:
                    rows = self.connection.execute(
                        f"SELECT {text} FROM {name} ORDER BY place"
                    ).fetchall()
                except psycopg.Error:
                    found["failed"] += 1
                    continue
                wanted = [values[place] for place in kept]
                same = all(_same(a, b) for a, (b,) in zip(wanted, rows, strict=True))
                found["same" if same else "different"] += 1
        return found


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


@pytest.fixture(scope="module")
def side(postgres_for_all) -> Iterator[Side]:
    with poisoned() as poison:
        yield Side(postgres_for_all, poison)


@pytest.fixture(scope="module")
def postgres_for_all() -> Iterator[psycopg.Connection[Any]]:
    """A connection of this module's own, as the engine's are."""
    import services

    server = services.shared_postgres().create()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'; SET jit = off")
        yield connection
    server.drop()


NEVER = {"ln", "log10", "log2", "exp", "power", "convert_timezone", "regexp_matches"}
"""Functions that PostgreSQL refuses whatever they are given."""


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_mean_the_same(side, name):
    listed = list(calls(name))
    some = random.Random(name).sample(listed, min(12, len(listed)))
    found = side.compare(some)
    assert not found["different"]
    assert not found["failed"]
    assert bool(found["same"]) == (name not in NEVER)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_mean_the_same_however_called(side, name):
    found = side.compare(list(calls(name)))
    assert not found["different"]
    assert not found["failed"]


def _holds_on_every_row(
    side: Side, condition: Expression, expressions: list[Expression], tally: Counter[str]
) -> None:
    """Also where the condition does not hold: PostgreSQL may compute before it filters."""
    whole = side.compare_mixed([e for e in expressions if accepted(e)])
    learnt = narrow(DOMAINS, condition) if accepted(condition) else DOMAINS
    narrowed = side.compare_mixed([e for e in expressions if accepted(e, learnt)], learnt)
    for found in (whole, narrowed):
        tally.update({outcome: len(some) for outcome, some in found.items()})
        assert not found.get("failed"), condition
    assert not whole.get("different")


@seed(20240229)
@settings(FUZZ, max_examples=4)
@given(conditions_on_columns(), st.lists(trees(), min_size=10, max_size=20))
def test_nested_expressions_mean_the_same_and_cannot_fail(side, condition, expressions):
    _holds_on_every_row(side, condition, expressions, Counter())


# --- doubles ---------------------------------------------------------------------------------


def _extreme(dice: random.Random) -> float:
    """A double of any size, often at an end of the range."""
    if not dice.randrange(12):
        return dice.choice([0.0, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 1.0])
    power = dice.choice([dice.randint(-1074, 1023), dice.choice([-1074, -1022, -537, 511, 1023])])
    size = math.ldexp(1 + dice.random(), power)
    return dice.choice([-1, 1]) * (size if math.isfinite(size) else 1.7976931348623157e308)


def _compute(sign: str, a: float, b: float) -> float | None:
    if sign == "/" and b == 0:
        return None
    found = {"+": a + b, "-": a - b, "*": a * b}.get(sign)
    if found is not None:
        return found
    try:
        return a / b
    except OverflowError:
        return math.copysign(math.inf, a) * math.copysign(1, b)


def test_doubles_are_computed_as_ieee_754_says(postgres_for_all):
    dice = random.Random(754)
    pairs = [(_extreme(dice), _extreme(dice)) for _ in range(3000)]
    # The ends of the range, from both sides: where a result becomes infinite, or zero.
    for a, _ in pairs[:600]:
        for edge in (2.0**1023, 2.0**-537, 2.0**-538, 1.7976931348623157e308):
            if a and math.isfinite(edge / a):
                pairs += [(a, edge / a), (a, math.nextafter(edge / a, math.inf))]
    postgres_for_all.execute("CREATE TEMP TABLE doubles (place int, a float8, b float8)")
    with postgres_for_all.cursor() as cursor:
        rows = [(place, *pair) for place, pair in enumerate(pairs)]
        cursor.executemany("INSERT INTO doubles VALUES (%s, %s, %s)", rows)
    for sign, write in (
        ("*", doubles.write_product),
        ("/", doubles.write_quotient),
        ("+", lambda a, b: doubles.write_sum(a, b, "+")),
        ("-", lambda a, b: doubles.write_sum(a, b, "-")),
    ):
        found = postgres_for_all.execute(
            f"SELECT {write('a', 'b')} FROM doubles ORDER BY place"
        ).fetchall()
        for (a, b), (result,) in zip(pairs, found, strict=True):
            assert result == _compute(sign, a, b), (sign, a, b)
    for constant in (3.0, -0.1, 2.0**-40, 2.0**1000, 1e308, -5e-324, 1.0):
        for sign in "*/":
            found = postgres_for_all.execute(
                f"SELECT {doubles.write_scaled('a', sign, constant)} FROM doubles ORDER BY place"
            ).fetchall()
            for (a, _), (result,) in zip(pairs, found, strict=True):
                assert result == _compute(sign, a, constant), (sign, a, constant)


# --- seeded bugs -----------------------------------------------------------------------------

TEXTS = [ColumnRef(name) for name in DOMAINS if name.startswith("a_text")]


def plain_doubles(patch):
    """As PostgreSQL multiplies: it raises where a result is infinite, or rounded to zero."""
    patch.setattr(
        PostgresPrinter,
        "of_doubles",
        lambda self, sign, a, b: self._of(f"{a.text} {sign} {b.text}", a, b),
    )


def plain_rounding(patch):
    """PostgreSQL rounds halves to even."""
    patch.setattr(printer, "_round_away", lambda x: f"ROUND({x})")


def plain_cast(patch):
    """There is no TRY_CAST: one value beyond 64 bits stops the statement."""
    patch.setattr(PostgresPrinter, "try_cast", Printer.cast)


def plain_root(patch):
    """SQRT(-1) raises."""
    patch.setitem(printer._FUNCTIONS, "SQRT", lambda _, v: Typed(f"SQRT({v[0].text})", Type.DOUBLE))


def plain_letters(patch):
    """Capital letters beyond ASCII are each engine's own."""
    for name in ("UPPER", "LOWER"):
        patch.setitem(
            printer._FUNCTIONS,
            name,
            lambda _, v, name=name: Typed(f'{name}({v[0].text} COLLATE "C")', Type.TEXT),
        )


def remainder_of_doubles(patch):
    """PostgreSQL has no remainder of doubles."""
    patch.setattr(
        PostgresPrinter,
        "remainder",
        lambda self, a, b: self._of(f"{a.text} % {b.text}", a, b),
    )


def escaped_pattern(patch):
    """In a pattern of PostgreSQL a backslash escapes."""
    patch.setattr(PostgresPrinter, "like", lambda self, v, p: f"{v.text} LIKE {self.quote(p)}")


def unguarded_day(patch):
    """The 29th of February 2023 raises."""
    patch.setattr(printer, "_is_day", lambda _: "TRUE")


def double_as_text(patch):
    """A double is written differently."""
    patch.setattr(PostgresPrinter, "cast", Printer.cast)


def weeks_from_sunday(patch):
    """Which day a week begins with is each engine's own."""

    def write(_, values):
        return Typed(f"CAST(EXTRACT(DOW FROM {values[0].text}) + 1 AS int8)", Type.WHOLE)

    patch.setitem(printer._FUNCTIONS, "ISODOW", write)


def seconds_with_a_fraction(patch):
    """A second of PostgreSQL has a fraction, which a cast rounds."""

    def write(_, values):
        return Typed(f"CAST(EXTRACT(SECOND FROM {values[0].text}) AS int8)", Type.WHOLE)

    patch.setitem(printer._FUNCTIONS, "SECOND", write)


MUTANTS = [
    (plain_doubles, "multiply"),
    (plain_doubles, "divide"),
    (plain_doubles, "add"),
    (plain_rounding, "round"),
    (plain_cast, "cast_integer"),
    (plain_root, "sqrt"),
    (plain_letters, "upper"),
    (remainder_of_doubles, "modulo"),
    (unguarded_day, "cast_date"),
    (double_as_text, "cast_text"),
    (weeks_from_sunday, "isodow"),
    (seconds_with_a_fraction, "second"),
]


@pytest.mark.parametrize(
    ("mutant", "name"), MUTANTS, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_seeded_bug_of_a_function_is_found(side, monkeypatch, mutant, name):
    mutant(monkeypatch)
    found = side.compare(list(itertools.islice(calls(name), 400)))
    assert found["different"] + found["failed"]


def test_a_pattern_with_a_backslash_means_the_same(side, monkeypatch):
    patterns = ["\\", "A\\%_b", "%\\", "A%\\_b", "it's"]
    listed = [Call("like", (text, Literal(one))) for text in TEXTS for one in patterns]
    assert set(side.compare(listed)) == {"same"}
    escaped_pattern(monkeypatch)
    found = side.compare(listed)
    assert found["different"] + found["failed"]


def _first_text(patch):
    patch.setattr(
        reading, "_read_text", lambda name, held: f"{name}::text" if held == "text" else None
    )


def test_texts_compare_by_their_bytes(postgres, monkeypatch):
    """In a database of another language: which text is first, and how groups are sorted."""
    asked = [
        "SELECT COUNT(*) FROM visits WHERE note < 'c'",
        "SELECT COUNT(*) FROM (SELECT patient_id, MIN(note) AS m FROM visits GROUP BY patient_id)"
        " WHERE m >= 'Y'",
    ]
    tables = make_tables(golden.SCHEMA, "letters", people=20)
    notes = itertools.cycle(["Zoe", "adam", "Émile", "zoe", "Adam", "_", "ä"])
    rows = tables["visits"].to_pylist()
    tables["visits"] = tables["visits"].set_column(
        tables["visits"].column_names.index("note"), "note", [[next(notes) for _ in rows]]
    )
    found = compare("postgres", golden.SCHEMA, [tables], asked, postgres)
    assert {one.outcome for one in found} == {"same"}
    _first_text(monkeypatch)
    found = compare("postgres", golden.SCHEMA, [tables], asked, postgres)
    assert "different" in {one.outcome for one in found}


def _unwrapped_union(patch):
    """PostgreSQL sorts a union by names alone."""

    def write(self, query):
        (left, columns), (right, _) = self._query(query.this), self._query(query.expression)
        return f"{left}\nUNION ALL\n{right}{self._order(query, columns)}", columns

    patch.setattr(Printer, "_union", write)


def test_parts_of_groups_that_are_not_listed_are_sorted(postgres, monkeypatch):
    asked = ["SELECT doctor, MEDIAN(age), COUNT(*) FROM visits GROUP BY doctor"]
    tables = make_tables(golden.SCHEMA, "sorted", people=12)
    (found,) = compare("postgres", golden.SCHEMA, [tables], asked, postgres)
    assert found.outcome == "same"
    _unwrapped_union(monkeypatch)
    (found,) = compare("postgres", golden.SCHEMA, [tables], asked, postgres)
    assert found.outcome == "failed"


LONG = "a_name_of_a_column_that_goes_on_until_the_server_cuts_it_off_"
LONG_SCHEMA = Schema.from_text(f"""
[tables.visits]
unit = "who"
max_rows_per_unit = 2
[tables.visits.columns]
who = "integer"
{LONG}1 = {{ type = "integer", bounds = [0, 10] }}
{LONG}2 = {{ type = "integer", bounds = [0, 10] }}
""")


def test_names_that_the_server_would_cut_stay_two(postgres, monkeypatch):
    """PostgreSQL keeps 63 bytes of a name: two columns would be one."""
    columns = {"who": [1, 2, 3], f"{LONG}1": [1, 2, 9], f"{LONG}2": [7, 5, 0]}
    tables = {"visits": pa.table(columns)}
    picked = f"SELECT who, {LONG}1, {LONG}2 FROM visits"
    asked = [f"SELECT COUNT(*) FROM ({picked}) AS picked WHERE {LONG}1 > {LONG}2"]
    (found,) = compare("postgres", LONG_SCHEMA, [tables], asked, postgres)
    assert found.outcome == "same"
    monkeypatch.setattr(PostgresPrinter, "identify", Printer.identify)
    (found,) = compare("postgres", LONG_SCHEMA, [tables], asked, postgres)
    assert found.outcome != "same"


BEYOND = (
    "day = 'infinity'",
    "day = '-infinity'",
    "day = '290000-01-01'",
    "day = '0044-03-15 BC'",
    "arrived = 'infinity'",
    "arrived = '0044-03-15 BC'",
    "arrived = '290000-01-01'",
    "cost = 'NaN'",
    "cost = '-Infinity'",
    "note = U&'\\FFFD'",
)
"""What PostgreSQL holds and we have no value for."""


def test_what_only_postgres_holds_is_read_as_a_copy_is(postgres, tmp_path):
    tables = make_tables(golden.SCHEMA, "beyond", people=20)
    given = conformance.hold_in_postgres(postgres, golden.SCHEMA, tables, "beyond")
    for place, change in enumerate(BEYOND):
        postgres.execute(f"UPDATE beyond.visits SET {change} WHERE patient_id % 10 = {place}")
    asked = [
        "SELECT COUNT(*), COUNT(day), COUNT(arrived), COUNT(cost), COUNT(note) FROM visits",
        "SELECT AVG(cost) FROM visits WHERE arrived + INTERVAL '1' HOUR > TIMESTAMP '2024-01-01'",
        "SELECT MONTH(day), COUNT(*) FROM visits GROUP BY MONTH(day)",
        "SELECT COUNT(*) FROM visits WHERE CAST(day AS TIMESTAMP) > arrived",
    ]
    with (
        DuckDBEngine(given, golden.SCHEMA, store=tmp_path) as copied,
        PostgresEngine(given, golden.SCHEMA, store=tmp_path) as engine,
    ):
        plans = [conformance.plan_question(text, copied.catalogue) for text in asked]
        for plan in plans:
            wanted, got = (
                cases.integers(e.run(e.compile(plan)).open_for_release()) for e in (copied, engine)
            )
            assert got == wanted


FAR_SCHEMA = Schema.from_text("""
[tables.visits]
unit = "who"
max_rows_per_unit = 2
[tables.visits.columns]
who = "integer"
at = "timestamp"
cost = { type = "decimal", bounds = [0, 10] }
""")


def test_a_day_that_is_no_timestamp_stops_nobody(postgres, monkeypatch):
    """A day of the year 300000 cannot be cast, and numbers of any size are held as numeric."""
    postgres.execute("CREATE TABLE visits (who int, at date, cost numeric)")
    postgres.execute(
        "INSERT INTO visits VALUES (1, '300000-01-01', 1e400), (2, '2024-02-29', 2.5), "
        "(3, 'infinity', 'NaN'), (4, NULL, 1e-400), (5, '4000-01-01 BC', '-Infinity')"
    )
    given = conformance.address_for_reader(postgres, "public", "visits")
    with PostgresEngine({"visits": given}, FAR_SCHEMA) as engine:
        plan = conformance.plan_question(
            "SELECT COUNT(at), SUM(cost), COUNT(cost) FROM visits", engine.catalogue
        )
        compiled = engine.compile(plan)
        engine.run(compiled)
        monkeypatch.setattr(reading, "_read_moment", lambda name, _, to: f"{name}::{to}")
        with pytest.raises(DataRefusal):
            engine.run(compiled)
    monkeypatch.undo()
    with PostgresEngine({"visits": given}, FAR_SCHEMA) as engine:
        monkeypatch.setattr(reading, "_read_real", lambda name, _: f"{name}::float8")
        with pytest.raises(DataRefusal):
            engine.run(compiled)
