"""What one unit can move together: never priced below brute force, and rarely above it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import joint_cases
import numpy as np
import pandas as pd
import pytest
from joint_cases import brute_force, make_schema, write_statements

import discreet
from discreet.curate.eras import Era
from discreet.errors import SchemaRefusal
from discreet.mechanisms import Gaussian, Laplace, Staircase
from discreet.price import Priced, changes, joint, price, priced
from discreet.price.plan import GroupSum, Moments, Reach, Scaled, Sum, Units, compute_sensitivity
from discreet.question.catalogue import Catalogue
from discreet.question.expressions import ColumnRef
from discreet.question.offer import Offer
from discreet.question.schema import Neighbours, Schema
from discreet.question.sql import parse

ONE = Offer.of(epsilon=1)


def offer(text: str, schema: Schema, spend: Offer = ONE, **how: bool) -> Priced:
    return price(parse(text, schema), spend, Catalogue(schema), **how)


def compare(seed: int, count: int, rows: int, *, grouped: bool, change_one: bool = False) -> float:
    """How often the price is what brute force finds; it is never less."""
    schema = make_schema(rows, change_one=change_one)
    tight = 0
    for text in write_statements(seed, count, grouped=grouped):
        asked = offer(text, schema)
        most, _ = brute_force(asked, rows, change_one=change_one)
        stated = float(asked.loss.epsilon)
        assert most <= stated * (1 + 1e-9), (text, most, stated)
        tight += most >= stated * (1 - 1e-3)
    return tight / count


def test_no_unit_moves_more_than_the_joint_price_and_most_prices_are_attained():
    assert compare(1, 20, 1, grouped=True) >= 0.95


def test_several_rows_of_a_unit_are_priced_together():
    assert compare(2, 8, 2, grouped=False) >= 0.95


@pytest.mark.parametrize(
    ("rows", "count", "grouped"), [(1, 20, True), (1, 20, False), (2, 6, False)]
)
def test_a_change_is_priced_at_what_it_moves(rows, count, grouped):
    assert compare(3, count, rows, grouped=grouped, change_one=True) >= 0.95


def test_several_rows_in_groups_are_priced_at_what_a_change_moves():
    assert compare(7, 5, 2, grouped=True, change_one=True) >= 0.95


@pytest.mark.parametrize(
    "text",
    [
        "SELECT b AS k, SUM(y) AS a, COUNT(DISTINCT patient) AS n FROM visits GROUP BY b",
        "SELECT b AS k, SUM(y) AS a, COUNT(*) AS n FROM visits WHERE b GROUP BY b",
        "SELECT x > 1 AS k, SUM(y) AS a, COUNT_IF(y > 0) AS n, AVG(x) AS m FROM visits GROUP BY 1",
    ],
)
def test_several_rows_in_groups_change_by_no_more_than_their_price_in_rho(text):
    """Sums of both signs are longer than they are far."""
    asked = offer(text, make_schema(2, change_one=True), Offer.of(rho="1/500"))
    assert all(isinstance(m, Gaussian) for m in asked.mechanisms)
    assert brute_force(asked, 2, change_one=True)[1] <= float(asked.loss.rho) * (1 + 1e-9)


def test_a_total_that_is_clipped_changes_by_no_more_than_its_price_in_rho():
    """From one end to the other in the one group there is, where both ends have other signs."""
    schema = Schema.from_text("""
    neighbours = "change-one"
    [tables.visits]
    unit = "patient"
    max_rows_per_unit = 1
    columns.patient = "integer"
    columns.b = "boolean"
    columns.y = { type = "integer", bounds = [-1, 5] }
    """)
    total = "SUM(y, contribution_bounds_per_group => (-1, 5))"
    text = f"SELECT b AS k, {total} AS a, COUNT_IF(y > 2) AS n FROM visits WHERE b GROUP BY b"
    asked = offer(text, schema, Offer.of(rho="1/500"))
    (place,) = [i for i, m in enumerate(asked.plan.measurements) if isinstance(m, GroupSum)]
    lost = 0.0
    for index, mechanism in enumerate(asked.mechanisms):
        assert isinstance(mechanism, Gaussian)
        gap = asked.plan.measurements[index].span if index == place else 1
        lost += gap**2 / (2 * float(mechanism.sigma_squared))
    assert lost <= float(asked.loss.rho) * (1 + 1e-9)


@pytest.mark.parametrize("grouped", [True, False])
def test_a_change_moves_no_more_than_its_price_in_rho(grouped):
    schema, compared = make_schema(1, change_one=True), 0
    for text in write_statements(8, 12, grouped=grouped):
        asked = offer(text, schema, Offer.of(rho="1/500"))
        if all(isinstance(m, Gaussian) for m in asked.mechanisms):
            compared += 1
            assert brute_force(asked, 1, change_one=True)[1] <= float(asked.loss.rho) * (1 + 1e-9)
    assert compared > 6


@pytest.mark.soak
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("change_one", [False, True])
def test_joint_prices_for_long(rows, change_one):
    count = 60 if change_one and rows == 2 else 200
    assert compare(4, count, rows, grouped=rows == 1, change_one=change_one) >= 0.95


def unknown_is_false(patch):
    """What is not understood is taken not to happen."""
    original = joint.Cutter._flag

    def flag(self, condition):
        return original(self, condition) if self._is_listed(condition) else joint._FALSE

    patch.setattr(joint.Cutter, "_flag", flag)


def null_is_forgotten(patch):
    """No column is ever missing."""
    original = joint.Axis.values
    patch.setattr(joint.Axis, "values", lambda self: [v for v in original(self) if v is not None])


def units_by_row(patch):
    """A unit is taken to be counted by one of its rows alone."""
    patch.setattr(joint, "is_by_row", lambda *_: True)


def all_columns_are_the_units(patch):
    """Rows of one unit are taken to be alike."""
    patch.setattr(
        joint, "constant_columns", lambda *_: frozenset(f"visits.{n}" for n in joint_cases.VALUES)
    )


def cuts_without_ends(patch):
    """Only what lies between the constants is looked at, and not the constants themselves."""
    patch.setattr(joint.Cutter, "_is_listed", lambda *_: False)
    patch.setattr(joint, "_between_whole", lambda cuts: {Fraction(int(c) + 1) for c in cuts})


def noise_in_steps(patch):
    """Staircase noise, of which one row loses all."""
    patch.setattr(priced.Offered, "by_steps", lambda *_: True)


MUTANTS = {
    unknown_is_false: (1, "SELECT COUNT_IF(y > x) AS a, COUNT_IF(b) AS c FROM visits"),
    null_is_forgotten: (1, "SELECT COUNT_IF(x IS NULL) AS a, COUNT_IF(b) AS c FROM visits"),
    units_by_row: (
        2,
        "SELECT COUNT(DISTINCT patient) FILTER (WHERE b) AS a, "
        "COUNT(DISTINCT patient) FILTER (WHERE NOT b) AS c, COUNT_IF(x = 1) AS d FROM visits",
    ),
    all_columns_are_the_units: (
        2,
        "SELECT COUNT(DISTINCT patient) FILTER (WHERE b) AS a, "
        "COUNT(DISTINCT patient) FILTER (WHERE NOT b) AS c FROM visits",
    ),
    cuts_without_ends: (1, "SELECT COUNT_IF(x = 1) AS a, COUNT_IF(x <= 1) AS c FROM visits"),
    noise_in_steps: (
        2,
        "SELECT SUM(y) FILTER (WHERE b) AS a, SUM(y) FILTER (WHERE NOT b) AS c FROM visits",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_each_mistake_is_found_by_brute_force(mutant, monkeypatch):
    rows, text = MUTANTS[mutant]
    schema, spend = make_schema(rows), Offer.of(epsilon=4)
    sound = offer(text, schema, spend)
    assert brute_force(sound, rows)[0] <= float(sound.loss.epsilon) * (1 + 1e-9)
    mutant(monkeypatch)
    wrong = offer(text, schema, spend)
    assert brute_force(wrong, rows)[0] > float(wrong.loss.epsilon) * (1 + 1e-9)


def counted_alike_is_not_moved(patch):
    """Who is counted before and after is taken to say the same of a value."""
    patch.setattr(
        changes,
        "_moments_apart",
        lambda _, one, other: Fraction(one == "nothing" or other == "nothing"),
    )


def groups_stay(patch):
    """A changed row is taken to stay in its group."""
    patch.setattr(
        changes, "_find_groups", lambda layout, _: np.zeros(math.prod(layout.shape), dtype=int)
    )


def ends_are_forgotten(patch):
    """A value between two constants is taken to be the one that stands for it."""
    patch.setattr(joint.Axis, "_range", lambda _, value: (joint.number_of(value),) * 2)


def one_row_for_all(patch):
    """A unit of several rows is taken to be counted once by each of them."""
    patch.setattr(changes, "is_by_row", lambda *_: True)


def parts_in_steps(patch):
    """Staircase noise, of which half a move loses all."""
    patch.setattr(priced.Offered, "by_steps", lambda *_: True)


CHANGED = {
    counted_alike_is_not_moved: (
        *(1, 1),
        "SELECT AVG(x) FILTER (WHERE b) AS a, AVG(y) FILTER (WHERE b) AS c FROM visits",
    ),
    groups_stay: (
        *(1, 1),
        "SELECT b, COUNT_IF(x < 2) AS a, COUNT_IF(x < 3) AS c FROM visits GROUP BY b",
    ),
    ends_are_forgotten: (
        *(1, 1),
        "SELECT SUM(y) FILTER (WHERE y > -2) AS a, SUM(y) FILTER (WHERE y > -2 AND x > 0) AS c "
        "FROM visits",
    ),
    one_row_for_all: (
        *(2, 1),
        "SELECT COUNT(DISTINCT patient) FILTER (WHERE b) AS a, COUNT(DISTINCT patient) FILTER "
        "(WHERE NOT b) AS c, COUNT(DISTINCT patient) FILTER (WHERE b IS NULL) AS d FROM visits",
    ),
    parts_in_steps: (
        *(1, 4),
        "SELECT SUM(y) FILTER (WHERE b) AS a, SUM(y) FILTER (WHERE NOT b) AS c FROM visits",
    ),
}


@pytest.mark.parametrize("mutant", CHANGED, ids=lambda mutant: mutant.__name__)
def test_each_mistake_about_a_change_is_found_by_brute_force(mutant, monkeypatch):
    rows, epsilon, text = CHANGED[mutant]
    schema, spend = make_schema(rows, change_one=True), Offer.of(epsilon=epsilon)
    sound = offer(text, schema, spend)
    assert brute_force(sound, rows, change_one=True)[0] <= float(sound.loss.epsilon) * (1 + 1e-9)
    mutant(monkeypatch)
    changes._find_changes.cache_clear()
    wrong = offer(text, schema, spend)
    changes._find_changes.cache_clear()
    assert brute_force(wrong, rows, change_one=True)[0] > float(wrong.loss.epsilon) * (1 + 1e-9)


def test_a_size_is_compared_as_a_number_between_two():
    """ABS(y) = 2 says which y it is, so that those who meet it move a sum of y no other way."""
    text = "SELECT COUNT_IF(ABS(y) {}) AS a, COUNT_IF(y {}) AS c FROM visits"
    for sizes, numbers in (
        ("> 1", "BETWEEN -1 AND 1"),
        ("<= 1", "> 1"),
        ("<> 2", "= 2"),
        ("= 2", "= 1"),
    ):
        asked = offer(text.format(sizes, numbers), make_schema(1))
        assert set(asked.together) == {(0, 1), (1, 0)}, sizes
    both = offer(text.format(">= 1", "= -1"), make_schema(1))
    assert both.together is None


def test_two_counts_of_disjoint_rows_cost_what_one_costs():
    text, schema = "SELECT COUNT_IF(x < 2) AS a, COUNT_IF(x >= 2) AS b FROM visits", make_schema(2)
    both, before = offer(text, schema), offer(text, schema, apart=True)
    assert [m.scale for m in both.mechanisms] == [2, 2]
    assert [m.epsilon for m in before.mechanisms] == [Fraction(1, 2)] * 2
    assert both.loss.epsilon == before.loss.epsilon == 1


def test_a_total_beside_its_parts_is_paid_by_all_of_them():
    asked = offer(
        "SELECT COUNT(*) AS n, COUNT_IF(x < 2) AS a, COUNT_IF(x >= 2) AS b FROM visits",
        make_schema(2),
    )
    assert asked.together == ((1, 1, 0), (1, 0, 1))
    assert asked.loss.epsilon == 1


def test_shares_never_add_up_to_more_than_was_offered():
    meetings = tuple(
        tuple(Fraction(w) for w in row) for row in ((1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1))
    )
    for pure in (True, False):
        for sizes in ([1.0, 1.0, 1.0, 1.0], [1e-9, 5.0, 1.0, 1e6]):
            shares = joint.share_out(sizes, meetings, pure=pure)
            used = [sum(w * s for w, s in zip(m, shares, strict=True)) for m in meetings]
            assert max(used) == 1
            assert min(shares) > 0


def test_a_condition_that_nobody_meets_is_not_free():
    asked = offer("SELECT COUNT_IF(x > 9) AS a, COUNT_IF(x > 8) AS b FROM visits", make_schema(2))
    assert asked.loss.epsilon == 1
    assert all(isinstance(m, Laplace) for m in asked.mechanisms)


def test_staircases_are_bought_where_a_unit_has_one_row():
    text = "SELECT SUM(y) FILTER (WHERE b) AS a, SUM(y) FILTER (WHERE NOT b) AS c FROM visits"
    kinds = [
        {type(m) for m in offer(text, make_schema(rows), Offer.of(epsilon=4)).mechanisms}
        for rows in (1, 2)
    ]
    assert kinds == [{Staircase}, {Laplace}]


# --- change-one ----------------------------------------------------------------------------------

X = ColumnRef("visits.x")


@pytest.mark.parametrize(
    ("measurement", "grouped", "l1", "l2_squared"),
    [
        (Moments(), False, 3, 9),
        (Moments(), True, 6, 18),
        (Moments((Scaled(X, Fraction(1), 0, 7),), (1,)), False, 42, 882),
        (Units(), False, 1, 1),
        (Units(), True, 6, 6),
        (Sum(Scaled(X, Fraction(1), 2, 5), None), False, 21, 441),
        (Sum(Scaled(X, Fraction(1), -2, 5), None), False, 15, 225),
        (Sum(Scaled(X, Fraction(1), -2, 5), None), True, 18, 225),
        (Sum(Scaled(X, Fraction(1), 2, 5), None), True, 42, 882),
    ],
)
def test_a_change_moves_no_more_than_it_can(measurement, grouped, l1, l2_squared):
    reach = Reach(3, 3, 3) if grouped else Reach(1, 3, 3)
    found = compute_sensitivity(measurement, reach, Neighbours.CHANGE_ONE, grouped=grouped)
    assert (found.l1, found.l2_squared) == (l1, l2_squared)


# --- columns of the unit -------------------------------------------------------------------------

PEOPLE = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 10
[tables.visits.columns]
patient = "integer"
sex = { type = "text", values = ["f", "m"], per_unit = PER_UNIT }
cost = { type = "decimal", bounds = [0, 10] }
"""


def people(*, per_unit: bool) -> str:
    return PEOPLE.replace("PER_UNIT", str(per_unit).lower())


def test_people_are_counted_by_the_groups_they_can_be_in():
    text = "SELECT sex, COUNT(DISTINCT patient) AS n FROM visits GROUP BY sex"
    own = offer(text, Schema.from_text(people(per_unit=True)))
    rows = offer(text, Schema.from_text(people(per_unit=False)))
    assert (own.sensitivities[0].l1, rows.sensitivities[0].l1) == (1, 3)  # f, m and NULL
    assert (
        offer(text, Schema.from_text(people(per_unit=True)), apart=True).sensitivities[0].l1 == 10
    )


def test_conditions_on_columns_of_the_unit_are_met_by_all_its_rows():
    text = (
        "SELECT COUNT(DISTINCT patient) FILTER (WHERE sex = 'f') AS f, "
        "COUNT(DISTINCT patient) FILTER (WHERE sex = 'm') AS m FROM visits"
    )
    own, rows = (offer(text, Schema.from_text(people(per_unit=p))) for p in (True, False))
    assert [m.scale for m in own.mechanisms] == [1, 1]
    assert [m.scale for m in rows.mechanisms] == [2, 2]


@pytest.mark.parametrize("prepared", [False, True])
def test_what_is_declared_to_be_the_units_is_enforced(prepared, tmp_path):
    """Patients that say different things are read as if they had said one of them."""
    visits = pd.DataFrame(
        {
            "patient": [p for p in range(50) for _ in range(4)],
            "sex": ["f", "m", None, "f"] * 50,
            "cost": [1.0, 2.0, 3.0, 4.0] * 50,
        }
    )
    with discreet.curator(
        {"visits": visits}, schema=people(per_unit=True), budget=1800, store=str(tmp_path)
    ) as curator:
        if prepared:
            curator.prepare()
        found = curator.ask(
            "SELECT sex, COUNT(DISTINCT patient) AS n, COUNT(*) AS rows FROM visits GROUP BY sex",
            epsilon=500,
        )
        table = found.to_pandas()
    assert table["n"].sum() == 50
    assert (table["rows"] == 4 * table["n"]).all()
    assert (table["n"] > 0).all()  # no value is preferred for everybody


def test_rows_without_the_declaration_say_what_they_say():
    visits = pd.DataFrame({"patient": [1, 1], "sex": ["f", "m"], "cost": [1.0, 2.0]})
    with discreet.curator(
        {"visits": visits}, schema=people(per_unit=False), budget=1800
    ) as curator:
        text = "SELECT sex, COUNT(DISTINCT patient) AS n FROM visits GROUP BY sex"
        assert curator.ask(text, epsilon=500).to_pandas()["n"].sum() == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('sex = { type = "text", per_unit = "yes" }', "per_unit"),
        ('sex = { type = "text", of_unit = true }', "of_unit"),
    ],
)
def test_a_declaration_that_is_not_understood_is_refused(line, words):
    text = people(per_unit=True).replace(
        'sex = { type = "text", values = ["f", "m"], per_unit = true }', line
    )
    with pytest.raises(SchemaRefusal, match=words):
        Schema.from_text(text)


def test_a_public_table_has_no_columns_of_a_unit():
    text = '[tables.t]\npublic = true\n[tables.t.columns]\na = { type = "text", per_unit = true }'
    with pytest.raises(SchemaRefusal, match="public and declares per_unit"):
        Schema.from_text(text)


# --- what was paid for before --------------------------------------------------------------------


def _find_as_of(find, era, question, spend, _=None):
    return find(question, spend, era)


def test_what_was_paid_for_at_earlier_prices_of_a_change_is_still_free():
    visits = pd.DataFrame({"patient": [1, 2, 3], "sex": ["f", "m", "f"], "cost": [1.0, 2.0, 3.0]})
    text = (
        "SELECT SUM(cost) FILTER (WHERE sex = 'f') AS f, SUM(cost) FILTER (WHERE sex = 'm') AS m "
        "FROM visits"
    )
    schema = 'neighbours = "change-one"\n' + people(per_unit=False).replace("[0, 10]", "[-9, 9]")
    found = []
    for era in (Era.NOW, Era.SIDES, Era.APART, Era.FIRST):
        with discreet.curator({"visits": visits}, schema=schema, budget=9) as curator:
            with pytest.MonkeyPatch.context() as patch:
                find = partial(_find_as_of, curator.find_plan, era)
                patch.setattr(curator, "find_plan", find)
                first = curator.ask(text, epsilon=1)
            found.append([str(m) for m in first.priced.mechanisms])
            spent = curator.spent
            again = curator.ask(text, epsilon=1)
            assert again.replayed
            assert curator.spent == spent
            assert again.to_json()["rows"] == first.to_json()["rows"]
    assert found[0] != found[1] != found[2]


def test_what_was_paid_for_at_earlier_prices_is_still_free():
    visits = pd.DataFrame({"patient": [1, 2, 3], "sex": ["f", "m", "f"], "cost": [1.0, 2.0, 3.0]})
    text = "SELECT COUNT_IF(sex = 'f') AS f, COUNT_IF(sex = 'm') AS m FROM visits"
    for era in (Era.APART, Era.FIRST):
        with discreet.curator(
            {"visits": visits}, schema=people(per_unit=False), budget=9
        ) as curator:
            with pytest.MonkeyPatch.context() as patch:
                find = partial(_find_as_of, curator.find_plan, era)
                patch.setattr(curator, "find_plan", find)
                first = curator.ask(text, epsilon=1)
            spent = curator.spent
            again = curator.ask(text, epsilon=1)
            assert again.replayed
            assert curator.spent == spent
            assert again.to_json()["rows"] == first.to_json()["rows"]
