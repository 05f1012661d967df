"""Choosing among questions through the curator: priced by one score, charged, stored, replayed."""

from __future__ import annotations

import json
from fractions import Fraction
from math import log

import pandas as pd
import pytest
from cli_cases import runner

import discreet
from discreet.accounting.divergence import both_ways, max_divergence
from discreet.curate import choosing, session
from discreet.errors import BudgetRefusal, DataRefusal, InvalidParameter, QuestionRefusal, Refusal
from discreet.mechanisms import TopK

CONDITIONS = tuple(f"c{number}" for number in range(40))
TOML = """
[budget]
epsilon = 100
[tables.ill]
unit = "patient"
max_rows_per_unit = 20
source = "ill.csv"
columns.patient = "integer"
columns.condition = { type = "text", values = [VALUES], nullable = false }
columns.debt = { type = "integer", bounds = [-5, 5] }
[tables.bids]
unit = "bidder"
max_rows_per_unit = 1
source = "bids.csv"
columns.bidder = "integer"
columns.bid = { type = "integer", bounds = [0, 400] }
[tables.prices]
public = true
source = "prices.csv"
columns.price = { type = "integer", values = [100, 101, 300, 301, 302], nullable = false }
""".replace("VALUES", ", ".join(f'"{name}"' for name in CONDITIONS))
BY_PATIENT = "SELECT condition, COUNT(DISTINCT patient) FROM ill GROUP BY condition"
AUCTION = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 5, max_rows_per_group = 1) "
    "p.price, SUM(p.price) FROM bids AS b CROSS JOIN prices AS p WHERE b.bid >= p.price "
    "GROUP BY p.price"
)


def tables(patients: int = 2000) -> dict[str, pd.DataFrame]:
    """Every patient has c7; of the other conditions, fewer and fewer have each."""
    rows = [
        (patient, name, 1)
        for patient in range(patients)
        for place, name in enumerate(("c7", "c3", "c20", "c1"))
        if patient % (place + 1) == 0
    ]
    return {
        "ill": pd.DataFrame(rows, columns=["patient", "condition", "debt"]),
        "bids": pd.DataFrame({"bidder": [1, 2, 3, 4], "bid": [100, 100, 100, 301]}),
        "prices": pd.DataFrame({"price": [100, 101, 300, 301, 302]}),
    }


def settings(text: str = TOML) -> str:
    kept = [line for line in text.splitlines() if not line.startswith("source")]
    return "\n".join(kept).split("epsilon = 100\n")[1]


def clinic(schema: str = "", **options) -> discreet.Curator:
    options = {"budget": 100, **options}
    return discreet.curator(tables(), schema=schema + settings(), **options)


@pytest.fixture(scope="module")
def curator():
    with clinic() as found:
        yield found


def test_the_most_common_of_overlapping_conditions_at_its_true_sensitivity(curator):
    """DR Example 3.4 with 40 conditions, 20 rows a person and epsilon = 0.1."""
    chosen = curator.choose(BY_PATIENT, epsilon="0.1")
    assert chosen.best == "c7"
    assert chosen.contest.mechanism == TopK(
        k=1, sensitivity=1, epsilon="0.1", method="peeling", monotonic=True
    )
    assert chosen.margin() < 60
    assert chosen.contest.theorem_margin() == pytest.approx(log(40 / 0.05) / 0.1, abs=0.01)
    assert chosen.loss.epsilon == Fraction(1, 10)


def test_counts_of_rows_move_by_as_many_rows_as_a_person_has(curator):
    chosen = curator.choose("SELECT condition, COUNT(*) FROM ill GROUP BY condition", epsilon=5)
    assert chosen.contest.mechanism.sensitivity == 20
    assert chosen.best == "c7"


def test_the_largest_few_with_their_numbers(curator):
    chosen = curator.choose(BY_PATIENT, epsilon=20, k=3, counts=True)
    assert chosen.names == ("c7", "c3", "c20")
    for number, truth in zip(chosen.numbers, (2000, 1000, 667), strict=True):
        assert abs(number - truth) < 40
    assert chosen.loss.epsilon == 20
    assert "c7: " in str(chosen)


def test_named_questions_in_a_common_unit(curator):
    chosen = curator.choose(
        {
            "rows": "SELECT COUNT(*) FROM ill",
            "none": "SELECT COUNT(*) FROM ill WHERE condition = 'c39'",
            "debts": "SELECT SUM(debt) FROM ill WHERE condition = 'c1'",
        },
        epsilon=10,
    )
    assert chosen.best == "rows"
    assert chosen.contest.mechanism.sensitivity * chosen.contest.unit == 100
    assert not chosen.contest.mechanism.monotonic  # a debt may be negative


def test_the_auction_of_the_text(curator):
    """DR 3.5: bids of 1.00, 1.00, 1.00 and 3.01; at 1.00 and at 3.01 it earns most."""
    seen = [curator.choose(AUCTION, epsilon=Fraction(60) + n).best for n in range(1)]
    assert set(seen) <= {100, 301, 300}
    contest = choosing.make_contest(
        curator, AUCTION, choosing.Offer.of(epsilon=1), k=1, counts=False
    )
    assert contest.mechanism.sensitivity * contest.unit == 302
    assert contest.names == (100, 101, 300, 301, 302)


def test_a_choice_is_charged_once_and_shown_again_free():
    with clinic() as curator:
        first = curator.choose(BY_PATIENT, epsilon=1)
        again = curator.choose(BY_PATIENT.lower().replace("ill", "ill"), epsilon=1)
        assert (again.names, again.id, again.replayed) == (first.names, first.id, True)
        assert curator.spent.epsilon == 1
        curator.choose(BY_PATIENT, epsilon=2)
        assert curator.spent.epsilon == 3
        assert curator.ledger.verify().ok


def test_under_change_one_nothing_is_monotonic():
    with clinic('neighbours = "change-one"\n') as curator:
        chosen = curator.choose(BY_PATIENT, epsilon=1)
        assert chosen.contest.mechanism.sensitivity == 1
        assert not chosen.contest.mechanism.monotonic


def test_with_rho_the_range_is_bounded(curator):
    chosen = curator.choose(BY_PATIENT, rho="1/8")
    assert chosen.contest.mechanism.method == "gumbel"
    assert chosen.loss.rho <= Fraction(1, 8)


@pytest.mark.parametrize(
    ("candidates", "offer", "code"),
    [
        ({"a": "SELECT COUNT(*) FROM ill"}, {"epsilon": 1}, "P5"),
        ("SELECT COUNT(*) FROM ill", {"epsilon": 1}, "P5"),
        ({"a": BY_PATIENT, "b": BY_PATIENT}, {"epsilon": 1}, "P4"),
        (
            {"a": "SELECT AVG(debt) FROM ill", "b": "SELECT COUNT(*) FROM ill"},
            {"epsilon": 1},
            "Q48",
        ),
        (BY_PATIENT, {}, "P4"),
        (BY_PATIENT, {"epsilon": 1, "k": 41}, "P2"),
        (BY_PATIENT, {"epsilon": 1, "k": 0}, "P2"),
        (BY_PATIENT, {"rho": 1, "counts": True}, "P4"),
        (BY_PATIENT, {"epsilon": 1000}, "B1"),
    ],
)
def test_bad_choices_are_refused_unpaid(candidates, offer, code):
    with clinic() as curator:
        with pytest.raises(Refusal) as caught:
            curator.choose(candidates, **offer)
        assert caught.value.code == code
        assert isinstance(caught.value, InvalidParameter | QuestionRefusal | BudgetRefusal)
        assert curator.spent.epsilon == 0


def test_an_exact_audit_of_neighbouring_tables(monkeypatch):
    """The law of the choice with one patient more or less: within epsilon, and near it."""
    laws = []
    for patients in (2, 3):
        found = tables(patients)

        def release(self, scores):
            laws.append(self.law(scores))
            return [0]

        with (
            discreet.curator(found, schema=settings(), budget=100) as curator,
            monkeypatch.context() as patch,
        ):
            patch.setattr(TopK, "release", release)
            curator.choose(BY_PATIENT, epsilon="3/2")
    least, most = both_ways(max_divergence, *laws)
    assert most <= Fraction(3, 2)
    assert least > Fraction(1, 2)


DISJOINT = "SELECT ward, COUNT(*) FROM stays GROUP BY ward"
WARDS = tuple(f"w{number}" for number in range(12))


def stays(**options):
    """A person is in one ward, so that all counts together move by one."""
    values = ", ".join(f'"{name}"' for name in WARDS)
    rows = [(100 * w + n, name) for w, name in enumerate(WARDS) for n in range(5 + 7 * w)]
    schema = f"""
    [tables.stays]
    unit = "patient"
    max_rows_per_unit = 1
    columns.patient = "integer"
    columns.ward = {{ type = "text", values = [{values}], nullable = false }}
    """
    frame = pd.DataFrame(rows, columns=["patient", "ward"])
    return discreet.curator({"stays": frame}, schema=schema, budget=100, **options)


def test_one_shot_is_taken_where_it_is_nearer_to_the_best():
    with stays() as found, clinic() as ill:
        five = found.explain_choose(DISJOINT, k=5, counts=True, epsilon=1)
        assert five.contest.mechanism.method == "one-shot"
        assert (five.loss.epsilon, five.contest.number_margin()) == (1, 3)
        peeled = choosing.make_contest(
            found, DISJOINT, choosing.Offer.of(epsilon=1), k=5, counts=True, peeled=True
        )
        assert peeled.number_margin() == 30
        assert five.margin() < peeled.margin() / 3
        assert "one unit moves all scores by at most 1" in str(five)
        one = found.explain_choose(DISJOINT, epsilon=1)
        assert one.contest.mechanism.method == "peeling"
        many = ill.explain_choose(BY_PATIENT, k=3, counts=True, epsilon=1)
        assert many.contest.mechanism.method == "peeling"  # somebody may be in twenty of them


def test_what_is_told_in_one_shot_is_true_and_costs_what_was_said():
    with stays() as found:
        told = found.choose(DISJOINT, k=3, counts=True, epsilon=60)
        assert told.names == ("w11", "w10", "w9")
        assert told.numbers == pytest.approx((82, 75, 68), abs=1)
        assert found.spent.epsilon == 60
        assert found.choose(DISJOINT, k=3, counts=True, epsilon=60).replayed


def test_the_scores_of_one_shot_are_moved_by_no_more_than_it_is_priced_for():
    """Every person left out, through the engine: in the L1 norm."""
    with stays() as found:
        contest = choosing.make_contest(
            found, DISJOINT, choosing.Offer.of(epsilon=1), k=3, counts=True
        )
        assert contest.mechanism.sensitivity == 1
        both = {"a": "SELECT COUNT(*) FROM stays WHERE ward = 'w1'"}
        both["b"] = "SELECT COUNT(*) FROM stays WHERE ward IN ('w1', 'w2')"
        overlapping = choosing.make_contest(
            found, both, choosing.Offer.of(epsilon=1), k=2, counts=True
        )
        assert overlapping.mechanism.sensitivity == 2


def test_a_choice_that_was_paid_for_when_all_were_peeled_is_free(monkeypatch):
    with stays() as found:
        real = choosing.make_contest
        with monkeypatch.context() as patch:
            patch.setattr(
                choosing, "make_contest", lambda *args, **more: real(*args, **more, peeled=True)
            )
            before = found.choose(DISJOINT, k=3, counts=True, epsilon=2)
        again = found.choose(DISJOINT, k=3, counts=True, epsilon=2)
        assert (again.names, again.numbers, again.replayed) == (before.names, before.numbers, True)
        assert found.spent.epsilon == 2


def test_what_fails_stays_paid_and_says_nothing(monkeypatch):
    with clinic() as curator:

        def broken(_compiled):
            raise RuntimeError("patient 17")

        monkeypatch.setattr(curator.engine, "run", broken)
        with pytest.raises(DataRefusal) as caught:
            curator.choose(BY_PATIENT, epsilon=1)
        assert "17" not in str(caught.value)
        assert curator.spent.epsilon == 1
        assert [str(entry.state) for entry in curator.transcript()] == ["burnt"]


def test_the_command_line(tmp_path, capsys):
    for name, table in tables(50).items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    session.init(tmp_path, TOML)
    command = runner(capsys)
    words = ("--epsilon", 20, "--top", 2, "--counts", "--session", tmp_path)
    code, out, _ = command("choose", BY_PATIENT, *words, "--json")
    told = json.loads(out)
    assert (code, told["chosen"], len(told["numbers"])) == (0, ["c7", "c3"], 2)
    code, out, _ = command("choose", BY_PATIENT, *words)
    assert out.startswith("c7: ")
