"""A condition is the same however it is written, and under WHERE as under FILTER; no other is."""

from __future__ import annotations

import itertools
import random

import duckdb
import pyarrow as pa
import pytest

import discreet
from discreet.accounting.loss import NOTHING
from discreet.curate.curator import Curator, describe_rows, list_places
from discreet.errors import QuestionRefusal
from discreet.known import derive as deriving
from discreet.known.combine import combine
from discreet.known.derive import NotKnown, derive, list_groups, same_text
from discreet.known.places import MOST_CONDITIONS, list_sought
from discreet.known.released import Released
from discreet.price import plan
from discreet.price.plan import normalise
from discreet.question.expressions import Call, ColumnRef, Expression, Literal

PEOPLE = 120
ROWS = pa.table(
    {
        "patient": [i // 3 for i in range(3 * PEOPLE)],
        "cost": [None if i % 11 == 0 else float(i * 37 % 21) * 10 for i in range(3 * PEOPLE)],
        "paid": [float(i * 17 % 23) * 10 for i in range(3 * PEOPLE)],
        "reason": [("accident", "check-up", "illness", None)[i * i % 7 % 4] for i in range(360)],
        "code": [i * 5 % 13 - 4 for i in range(3 * PEOPLE)],
    }
)
SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 3
[tables.visits.columns]
patient = "integer"
cost = { type = "decimal", bounds = [0, 300] }
paid = { type = "decimal", bounds = [0, 300], nullable = false }
reason = { type = "text", values = ["accident", "check-up", "illness"] }
code = "integer"
"""
MUCH = 60  # so much epsilon that no draw of this file is other than 0: exp(-20) each


def clinic() -> Curator:
    return discreet.curator({"visits": ROWS}, schema=SCHEMA, budget=50_000)


def count_truly(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.register("visits", ROWS)
        return connection.execute(sql).fetchall()


def count(condition: str) -> str:
    return f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"


def by(key: str) -> str:
    return f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY 1"


# --- one condition in several words --------------------------------------------------------------


@pytest.mark.parametrize("column", ["cost", "paid"])  # which may be NULL, and which is not
@pytest.mark.parametrize("bought", ["{0} > 100", "{0} <= 100", "NOT {0} > 100", "100 < {0}"])
def test_the_rest_beside_a_comparison_is_free_and_the_right_number(column, bought):
    with clinic() as curator:
        curator.ask(by(bought.format(column)), epsilon=MUCH)
        spent = curator.spent
        for asked in ("{0} > 100", "{0} <= 100", "100 >= {0}", "NOT {0} <= 100", "NOT 100 < {0}"):
            sql = count(asked.format(column))
            found = curator.ask(sql)
            assert found.charged == NOTHING
            assert [(found.value(),)] == count_truly(sql)
        sql = by(f"{column} <= 100")
        assert {row.values for row in curator.ask(sql).rows} == set(count_truly(sql))
        assert curator.spent == spent


def test_what_was_counted_beside_a_condition_is_what_its_contrary_asks_for():
    with clinic() as curator:
        curator.ask(count("cost > 100"), within=100)
        spent = curator.spent
        table = dict(row.values for row in curator.ask(by("cost > 100")).rows)
        assert curator.ask(count("cost <= 100")).value() == table[False]
        assert curator.ask(count("cost > 100")).value() == table[True]
        assert set(table) == {False, True, None}  # whose cost is missing is in neither
        assert curator.spent == spent


@pytest.mark.parametrize(
    "true", ["1 = 1", "NOT 1 < 0", "'a' <> 'b'", "CASE WHEN 1 >= 0 THEN TRUE ELSE FALSE END"]
)
def test_what_is_true_of_every_row_leaves_nobody_out(true):
    with clinic() as curator:
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=MUCH)
        told = [count(true), f"SELECT COUNT(*) FILTER (WHERE {true}) AS n FROM visits"]
        for sql in told:
            found = curator.ask(sql)
            assert found.charged == NOTHING
            assert [(found.value(),)] == count_truly(sql)
        curator.ask(count("code >= 2"), epsilon=MUCH)
        sql = count(f"NOT code < 2 AND {true}")
        assert [(curator.ask(sql).value(),)] == count_truly(sql)


@pytest.mark.parametrize("asked", ["cost >= 100", "cost < 100", "cost <= 101", "paid <= 100"])
def test_what_is_another_comparison_is_not_told(asked):
    with clinic() as curator:
        curator.ask(by("cost > 100"), epsilon=MUCH)
        with pytest.raises(QuestionRefusal, match="neither what it may cost"):
            curator.ask(count(asked))


SIGNS = {
    "equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=",
}  # fmt: skip


def list_written() -> list[tuple[Expression, str]]:
    """Comparisons of two columns and a constant, denied up to twice; with their SQL."""
    sides = [(ColumnRef("x"), "x"), (ColumnRef("y"), "y"), (Literal(1), "1.0")]
    found: list[tuple[Expression, str]] = [
        (Call(name, (a, b)), f"({one} {sign} {other})")
        for name, sign in SIGNS.items()
        for (a, one), (b, other) in itertools.permutations(sides, 2)
    ]
    for _ in range(2):
        found += [(Call("not", (form,)), f"(NOT {sql})") for form, sql in found]
    return found


def test_conditions_of_one_form_are_the_same_on_every_row():
    """True, false and NULL, on all rows of a small domain; what differs somewhere is kept apart."""
    written = list_written()
    listed = "(VALUES (NULL), (0.0), (1.0), (1.5), ('NaN'::DOUBLE))"
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT {', '.join(sql for _, sql in written)} FROM "
            f"(SELECT a::DOUBLE AS x, b::DOUBLE AS y FROM {listed} one(a), {listed} other(b))"
        ).fetchall()
    forms: dict[str, set[tuple[object, ...]]] = {}
    for (condition, _), outcomes in zip(written, zip(*found, strict=True), strict=True):
        forms.setdefault(same_text(normalise(condition)), set()).add(outcomes)
    assert all(len(outcomes) == 1 for outcomes in forms.values())
    assert len(forms) == len(set().union(*forms.values())) == 6 * 3  # six signs of three pairs


def test_a_form_that_forgets_equality_is_found(monkeypatch):
    monkeypatch.setitem(plan.OPPOSITE, "greater", "less")
    with clinic() as curator:
        curator.ask(by("paid > 100"), epsilon=MUCH)
        found = curator.ask(count("paid < 100"))
        assert [(found.value(),)] != count_truly(count("paid < 100"))


def test_a_condition_that_is_said_twice_is_one():
    """Not two, of which the second stands for another."""
    with clinic() as curator:
        keys = "SELECT reason, COUNT(*) AS n FROM visits WHERE {} GROUP BY reason"
        curator.ask(keys.format("paid > 100 AND 100 < paid"), epsilon=MUCH)
        for more in ("COALESCE(reason, 'illness') = 'illness'", "reason IS NULL"):
            found = curator.ask(keys.format(f"paid > 100 AND {more}"))
            assert found.charged == NOTHING
            told = {row.values for row in found.rows if row.values[1]}
            assert told == set(count_truly(keys.format(f"paid > 100 AND {more}")))


# --- WHERE and FILTER ----------------------------------------------------------------------------

FILTERED = (
    "SELECT COUNT(*) FILTER (WHERE reason = 'accident') AS a, "
    "COUNT(*) FILTER (WHERE reason = 'check-up') AS c FROM visits"
)


def test_what_was_paid_under_filter_is_free_under_where():
    with clinic() as curator:
        paid = curator.ask(FILTERED, epsilon="0.1")
        spent = curator.spent
        for name, reason in (("a", "accident"), ("c", "check-up")):
            for offer in ({}, {"epsilon": "0.1"}, {"within": 100}):
                found = curator.ask(count(f"reason = '{reason}'"), **offer)
                assert found.charged == NOTHING
                assert found.value() == paid.column(name)[0]  # the released number, and no other
                assert found.margins()["n"] == paid.margins()[name]
        assert curator.spent == spent
        assert curator.ledger.verify().ok


@pytest.mark.parametrize("other", ["reason = 'illness'", "reason IN ('accident', 'check-up')",
                                   "reason = 'accident' AND paid > 100", "paid > 100"])  # fmt: skip
def test_what_was_not_counted_under_a_filter_is_not_told(other):
    with clinic() as curator:
        curator.ask(FILTERED, epsilon=1)
        with pytest.raises(QuestionRefusal, match="neither what it may cost"):
            curator.ask(count(other))


def test_what_was_paid_under_where_is_free_under_filter_where_all_of_it_is_asked_so():
    with clinic() as curator:
        paid = curator.ask(count("NOT paid > 100"), epsilon="0.1")
        found = curator.ask("SELECT COUNT(*) FILTER (WHERE paid <= 100) AS n FROM visits")
        assert found.charged == NOTHING
        assert found.value() == paid.value()
        with pytest.raises(QuestionRefusal, match="neither what it may cost"):
            curator.ask(
                "SELECT COUNT(*) FILTER (WHERE paid <= 100) AS n, COUNT(*) AS m FROM visits"
            )


def test_people_of_the_same_rows_are_the_same_people():
    with clinic() as curator:
        paid = curator.ask(
            "SELECT COUNT(DISTINCT patient) FILTER (WHERE paid > 100) AS n FROM visits",
            epsilon="0.1",
        )
        sql = "SELECT COUNT(DISTINCT patient) AS n FROM visits WHERE {}"
        found = curator.ask(sql.format("paid > 100"))
        assert (found.value(), found.charged) == (paid.value(), NOTHING)
        for other in ("paid > 100 AND reason = 'illness'", "paid <= 100"):
            with pytest.raises(QuestionRefusal, match="neither what it may cost"):
                curator.ask(sql.format(other))


def released(curator: Curator, sql: str) -> Released:
    answer = curator.ask(sql, fresh=True, epsilon=MUCH)
    return Released(1, answer.priced, answer.groups, answer.released, answer.loss)


def tell(curator: Curator, sql: str, source: Released) -> object:
    priced = curator.explain(sql, epsilon=1).priced
    multiplicity = curator.engine.catalogue.multiplicity
    found = derive(priced, source, multiplicity=multiplicity)
    return combine(priced, [found], list_groups(priced, multiplicity)).rows[0].values[0]


CONDITIONS = ["paid > 100", "NOT paid <= 100", "cost <= 150", "NOT 150 < cost", "cost > 50",
              "reason = 'illness'"]  # fmt: skip
SHAPES = ["COUNT(*)", "COUNT(cost)", "SUM(paid)", "COUNT(DISTINCT patient)"]


def write(draw: random.Random, shape: str, key: str = "") -> str:
    """Up to two conditions, each under WHERE or under FILTER."""
    some = draw.sample(CONDITIONS, draw.randint(0, 2))
    where = [one for one in some if draw.randrange(2)]
    own = [one for one in some if one not in where]
    filtered = f" FILTER (WHERE {' AND '.join(own)})" if own else ""
    kept = f" WHERE {' AND '.join(where)}" if where else ""
    grouped = f" GROUP BY {key}" if key else ""
    return f"SELECT {key + ', ' if key else ''}{shape}{filtered} AS n FROM visits{kept}{grouped}"


def test_whatever_is_told_is_the_number_of_its_own_rows():
    """Over many pairs of questions, in either place of each condition; and many are told."""
    draw, told, moved = random.Random(7), 0, 0
    off = dict.fromkeys(SHAPES, 0) | {"SUM(paid)": 900}  # a sum's noise: of sixty scales
    with clinic() as curator:
        for _ in range(24):
            shape = draw.choice(SHAPES)
            paid = write(draw, shape, draw.choice(("", "", "paid > 100", "reason")))
            source = released(curator, paid)
            for _ in range(12):
                asked = write(draw, shape)
                try:
                    found = tell(curator, asked, source)
                except NotKnown:
                    continue
                ((right,),) = count_truly(asked)
                assert abs(found - (right or 0)) <= off[shape], (paid, asked)
                told += 1
                moved += ("FILTER" in paid) != ("FILTER" in asked)
    assert told >= 20
    assert moved >= 5


LIMITED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 1) COUNT(*){} AS n FROM visits{}"


def test_a_limit_of_rows_keeps_others_under_where_than_under_filter(monkeypatch):
    """Rows are chosen after a WHERE and before a FILTER: neither tells the other."""
    under = LIMITED.format(" FILTER (WHERE paid > 100)", "")
    where = LIMITED.format("", " WHERE paid > 100")
    with clinic() as curator:
        source, other = released(curator, under), released(curator, where)
        for sql, one in ((where, source), (under, other)):
            with pytest.raises(NotKnown, match="at most 1 rows"):
                tell(curator, sql, one)
        monkeypatch.setattr(deriving._Derivation, "_check_additive", lambda _self: None)
        assert tell(curator, where, source) < other.entries(0)[0][0]  # another number


def test_what_may_be_computed_otherwise_under_a_condition_is_not_told():
    """A code has no bounds: under WHERE code < 5 AND code > 0 its powers are whole numbers."""
    square = "code * code % 10 = 6"
    with clinic() as curator:
        source = released(curator, f"SELECT COUNT(*) FILTER (WHERE {square}) AS n FROM visits")
        with pytest.raises(NotKnown, match="not certain that the engine computes the same"):
            tell(curator, count(square), source)
        source = released(curator, "SELECT COUNT(*) FILTER (WHERE code > 3) AS n FROM visits")
        assert [(tell(curator, count("code > 3"), source),)] == count_truly(count("code > 3"))


@pytest.mark.parametrize("keys", ["code >= 5 AS a, code <= 0 AS b", "code < 5 AS a, code > 0 AS b"])
def test_nor_under_a_condition_that_is_read_off_the_keys(keys):
    """It narrows the code as well, and stands in no other place than before."""
    filtered = "COUNT(*) FILTER (WHERE code * code % 10 = 6) AS n FROM visits"
    narrow = f"SELECT {filtered} WHERE code < 5 AND code > 0"
    with clinic() as curator:
        source = released(curator, f"SELECT {keys}, {filtered} GROUP BY 1, 2")
        with pytest.raises(NotKnown, match="not certain that the engine computes the same"):
            tell(curator, narrow, source)
        told = (
            f"SELECT {keys}, code * code % 10 = 6 AS c, COUNT(*) AS n FROM visits GROUP BY 1, 2, 3"
        )
        source = released(curator, told)
        with pytest.raises(NotKnown, match="not certain that the engine computes the same"):
            tell(curator, narrow, source)


def test_an_answer_of_many_conditions_is_kept_in_few_places():
    """Each place names all of its conditions and is recorded with the charge."""
    several = " AND ".join(f"code <> {n}" for n in range(20, 20 + MOST_CONDITIONS - 1))
    filtered = "SELECT COUNT(*) FILTER (WHERE paid > 100) AS n FROM visits WHERE "
    with clinic() as curator:
        most = curator.explain(filtered + several, epsilon=1).priced.plan
        more = curator.explain(f"{filtered}{several} AND code <> 90", epsilon=1).priced.plan
        assert [len(one.conditions) for one in list_places(most)] == [7, MOST_CONDITIONS]
        assert [len(one.conditions) for one in list_places(more)] == [MOST_CONDITIONS]


def test_an_answer_is_looked_for_by_its_rows_in_one_form():
    with clinic() as curator:
        plain = curator.explain(count("paid > 100"), epsilon=1).priced
        asked = describe_rows(plain.plan)
        assert list_places(plain.plan) == list_sought(plain, asked) == (asked,)
        denied = curator.explain(count("NOT 100 >= paid AND paid > 100"), epsilon=1).priced
        assert list_places(denied.plan)[0] == describe_rows(denied.plan)  # as it was recorded ever
        assert list_places(denied.plan)[1:] == (asked,)
        filtered = curator.explain(FILTERED, epsilon=1).priced
        assert len(list_places(filtered.plan)) == 3
        whole = describe_rows(filtered.plan)
        assert list_sought(filtered, whole) == (whole,)
        limited = curator.explain(LIMITED.format("", " WHERE NOT paid > 100"), epsilon=1).priced
        asked = describe_rows(limited.plan)
        assert list_places(limited.plan) == list_sought(limited, asked) == (asked,)
