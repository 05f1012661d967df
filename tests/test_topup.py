"""Improving what is known: the difference is charged, once, and the account keeps it so."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.accounting.loss import NOTHING, Loss
from discreet.curate import curator as curating
from discreet.curate.curator import Curator
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.known import topup
from discreet.known.released import Released
from discreet.ledger import Ledger, Policy, Request
from discreet.ledger.books import EFFECTS
from discreet.release.derived import Derived

ROWS = pa.table(
    {
        "patient": [*range(400)],
        "city": [("Cork", "Delft", "Faro")[i % 3] for i in range(400)],
        "cost": [float(i * 7 % 800) for i in range(400)],
    }
)
SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 1
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Delft", "Faro"], nullable = false }
cost = { type = "decimal", bounds = [0, 800], nullable = false }
"""
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
TOTAL = "SELECT COUNT(*) AS n FROM visits"


def clinic(source: object = ROWS, **options) -> Curator:
    budget = options.pop("budget", discreet.Budget(epsilon=100, delta="1e-6"))
    return discreet.curator({"visits": source}, schema=SCHEMA, budget=budget, **options)


@pytest.fixture
def on_disk(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(ROWS, tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


# --- what is charged ---------------------------------------------------------------------------


def test_in_memory_the_difference_in_epsilon_is_charged_and_half_the_square_in_rho():
    with clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.1")
        second = curator.ask(BY_CITY, epsilon="0.3")
        assert second.charged.epsilon == Fraction(2, 10)
        assert second.charged.rho == Fraction(9, 200)
        assert second.loss == first.loss.rounded() + second.charged
        assert second.worth.epsilon == Fraction(3, 10)
        assert second.margins() == clinic().ask(BY_CITY, epsilon="0.3").margins()
        assert curator.spent == second.loss
        again = curator.ask(BY_CITY, epsilon="0.3")
        assert again.replayed
        assert again.loss == second.loss
        assert curator.ask(BY_CITY, epsilon="0.1").column("n") == first.column("n")  # still valid
        certificate = second.certificate
        assert certificate["charged"]["epsilon"] == "1/5"
        assert certificate["worth"]["epsilon"] == certificate["loss"]["epsilon"] == "3/10"
        assert curator.ledger.verify().ok


def test_from_files_an_independent_measurement_is_added(on_disk):
    with clinic(on_disk) as curator:
        curator.ask(BY_CITY, epsilon="0.3")
        second = curator.ask(BY_CITY, epsilon="0.5")
        assert isinstance(second, Derived)
        assert float(second.charged.epsilon) == pytest.approx(0.4, rel=0.01)  # 3, 4, 5
        assert float(second.loss.epsilon) == pytest.approx(0.7, rel=0.01)
        assert float(second.worth.epsilon) == pytest.approx(0.5, rel=0.01)
        weights = [float(origin.weight) for origin in second.origins]
        assert weights == pytest.approx([9 / 25, 16 / 25], abs=0.01)
        assert "with weight 0.3" in str(second)
        spent = curator.spent
        again = curator.ask(BY_CITY, epsilon="0.5")
        assert curator.spent == spent
        assert again.charged == NOTHING
        assert again.column("n") == second.column("n")


def test_gaussian_noise_is_topped_up_by_the_difference_in_rho(on_disk):
    for source in (ROWS, on_disk):
        with clinic(source) as curator:
            first = curator.ask(BY_CITY, rho="0.01")
            second = curator.ask(BY_CITY, rho="0.03")
            assert float(second.charged.rho) == pytest.approx(0.02, rel=0.002)
            assert float(curator.spent.rho) == pytest.approx(0.03, rel=0.002)
            direct = clinic().ask(BY_CITY, rho="0.03")
            assert second.margins()["n"][0] == pytest.approx(direct.margins()["n"][0], abs=1)
            assert first.margins()["n"][0] > second.margins()["n"][0]


def test_a_total_is_topped_up_beside_what_its_groups_tell():
    with clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.5")
        total = curator.ask(TOTAL, epsilon="0.5")
        # A third of the accuracy is known: three cells of the same noise each.
        assert float(total.charged.epsilon) == pytest.approx(0.5 * math.sqrt(2 / 3), rel=0.01)
        assert float(total.worth.epsilon) == pytest.approx(0.5, rel=0.01)


def test_an_accuracy_is_topped_up_too():
    with clinic() as curator:
        curator.ask(BY_CITY, within=30)
        spent = curator.spent.epsilon
        second = curator.ask(BY_CITY, within=10)
        assert max(second.margins()["n"]) <= 10
        direct = clinic().price(BY_CITY, within=10).loss.epsilon
        assert curator.spent.epsilon == pytest.approx(direct, rel=1e-6)
        assert second.charged.epsilon == pytest.approx(direct - spent, rel=1e-6)


@pytest.mark.parametrize("within", [40, 60, 75, 90])
def test_an_accuracy_that_is_topped_up_holds_for_the_noise_of_all_draws(on_disk, within):
    """Several draws have other tails than one of the same variance: 60 was 60.28 at 95 %."""
    finer = "SELECT city, cost > 400 AS dear, COUNT(*) AS n FROM visits GROUP BY 1, 2"
    with clinic(on_disk) as curator:
        improved = 0
        for share in ("0.4", "0.6", "0.8"):
            whole = curator.price(TOTAL, within=within, fresh=True).loss.epsilon
            curator.ask(finer, epsilon=Fraction(share) * whole * 2, fresh=True)
            answer = curator.ask(TOTAL, within=within)
            assert answer.margins()["n"][0] <= within
            improved += answer.charged != NOTHING and answer.charged.epsilon < whole
        assert improved


def test_what_is_worth_less_than_what_is_known_is_free():
    with clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.5")
        spent = curator.spent
        assert curator.ask(BY_CITY, epsilon="0.2").charged == NOTHING
        assert curator.spent == spent


def test_fresh_measures_again_at_the_full_price_and_then_both_are_combined():
    with clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.5")
        second = curator.ask(BY_CITY, epsilon="0.5", fresh=True)
        third = curator.ask(BY_CITY, epsilon="0.5", fresh=True)
        assert second.charged == third.charged == first.loss
        assert curator.spent.epsilon == Fraction(3, 2)
        known = curator.ask(BY_CITY)
        assert [float(o.weight) for o in known.origins] == pytest.approx([1 / 3] * 3, abs=0.002)
        assert float(known.worth.epsilon) == pytest.approx(0.5 * math.sqrt(3), rel=0.03)
        assert curator.ask(BY_CITY, epsilon="0.5").column("n") == first.column("n")
    with pytest.raises(InvalidParameter, match="fresh is a str"):
        clinic().ask(BY_CITY, epsilon="0.5", fresh="yes")


def test_means_are_combined_by_their_moments():
    sql = "SELECT AVG(cost) AS mean FROM visits"
    with clinic() as curator:
        one = curator.ask(sql, epsilon=1)
        curator.ask(sql, epsilon=1, fresh=True)
        both = curator.ask(sql)
        assert both.margins()["mean"][0] < one.margins()["mean"][0]
        # Half the difference of two draws: further with probability (1 + x/2) exp(-x), x = 30.
        assert abs(both.value() - one.value()) <= 5 * one.margins()["mean"][0]


# --- a chain counts as its last release -----------------------------------------------------------


def test_a_parent_is_never_combined_with_its_child():
    with clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.4")
        second = curator.ask(BY_CITY, epsilon="0.5")
        total = curator.ask(TOTAL)
        assert [origin.id for origin in total.origins] == [second.id]


def test_mutant_that_combines_a_parent_with_its_child_claims_a_margin_that_does_not_hold(
    monkeypatch,
):
    """The two share noise: their mean is off as one of them is, not as two of them are."""
    monkeypatch.setattr(Released, "shares_noise", lambda _self, _other: False)
    with clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.5")
        second = curator.ask(BY_CITY, epsilon="0.501")
        mutant = curator.ask(TOTAL)
        assert len(mutant.origins) == 2
        # Almost the same noise twice, and yet it is claimed to be smaller by a root of two.
        assert mutant.margins()["n"][0] < 0.8 * math.sqrt(3) * second.margins()["n"][0]


# --- two children, other data, other prices: refused, nothing lost -------------------------------


def refine_request(curator: Curator, answer: int, **changes) -> Request:
    planned = curator.find_plan(
        curator._parse_question(BY_CITY)[0], discreet.question.offer.Offer.of(epsilon="0.2")
    )
    loss = topup.price_refinement(Loss.pure("0.1"), planned.priced.loss)
    request = curator.make_request(
        planned, discreet.question.offer.Offer.of(epsilon="0.2"), "curator"
    )
    basis = curator.engine.find_basis(planned.compiled)
    stated = {"loss": loss, "parent": answer, "basis": basis, "key": "k"}
    return replace(request, **{**stated, **changes})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"data_version": "other"}, "other data"),
        ({"basis": "other"}, "other data"),
        ({"basis": None}, "other data"),
        ({"parent": 3}, "no answer"),
        ({"parent": 999}, "no answer"),
        ({"loss": Loss(Fraction(1, 10), Fraction(15, 1000))}, "not that of an improvement"),
        ({"loss": Loss(Fraction(0), Fraction(2, 100))}, "not that of an improvement"),
    ],
)
def test_what_may_not_be_refined_is_refused_in_the_charge_itself(changes, fault):
    with clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.1")
        spent = curator.spent
        with pytest.raises(InvalidParameter, match=fault):
            curator.account.charge(refine_request(curator, first.id, **changes))
        assert curator.spent == spent


def test_the_second_child_of_an_answer_is_refused():
    with clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.1")
        curator.account.charge(refine_request(curator, first.id))
        with pytest.raises(InvalidParameter, match="improved already"):
            curator.account.charge(refine_request(curator, first.id, key="another"))
        # Whoever asks for more gets an independent measurement instead.
        third = curator.ask(BY_CITY, epsilon="0.3")
        assert isinstance(third, Derived)
        assert curator.ledger.verify().ok


def test_burnt_and_foreign_answers_are_not_improved(tmp_path):
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        options = {"ledger": ledger, "policy": Policy(shared_answers=False)}
        budget = discreet.Budget(epsilon=100)
        with (
            Curator({"visits": ROWS}, schema=SCHEMA, budget=budget, dataset="a", **options) as one,
            Curator({"visits": ROWS}, schema=SCHEMA, budget=budget, dataset="b", **options) as two,
        ):
            first = one.ask(BY_CITY, epsilon="0.1")
            one.account.add_analyst("ana")
            with pytest.raises(InvalidParameter, match="no answer"):
                two.account.charge(refine_request(two, first.id))
            foreign = refine_request(one, first.id, analyst="ana")
            with pytest.raises(InvalidParameter, match="no answer"):
                one.account.charge(foreign)
            burnt = one.pay(TOTAL, epsilon="0.1")
            with pytest.raises(Exception, match="D1"):
                one.burn(burnt)
            with pytest.raises(InvalidParameter, match="no answer"):
                one.account.charge(refine_request(one, burnt.receipt.id))
            assert ledger.verify().ok


@pytest.mark.parametrize(
    "mutant", ["two children", "rho of the difference", "other data", "other rows", "any rows"]
)
def test_mutants_of_the_account_are_found_by_verifying(monkeypatch, mutant):
    """The check in the transaction is left out; the log gives it away."""
    with clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.1")
        monkeypatch.setattr(type(curator.account), "_check_parent", lambda *_: None)
        changes = {
            "two children": {},
            "rho of the difference": {"loss": Loss(Fraction(1, 10), Fraction(15, 1000))},
            "other data": {"data_version": "changed"},
            "other rows": {"basis": "changed"},
            "any rows": {"basis": None},
        }[mutant]
        curator.account.charge(refine_request(curator, first.id, **changes))
        if mutant == "two children":
            assert curator.ledger.verify().ok
            curator.account.charge(refine_request(curator, first.id, key="second"))
        found = curator.ledger.verify()
        assert not found.ok
        assert "improves an answer" in str(found)


def test_mutant_that_refines_other_data_is_off(monkeypatch):
    """Lemma 10: given a wrong truth, the noise has another law: here it is off by the change."""
    from discreet.mechanisms import Laplace

    coarse, fine = Laplace(sensitivity=1, epsilon="0.1"), Laplace(sensitivity=1, epsilon="0.2")
    before, after = np.zeros(40_000, dtype=np.int64), np.full(40_000, 100, dtype=np.int64)
    released = coarse.release(before)
    noise = (fine.refine(after, released, scale=coarse.scale) - after).astype(np.int64)
    assert abs(noise.mean()) > 5  # a direct answer is off by 0.1 at most, in the mean of so many
    with clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.1")
        monkeypatch.setattr(type(curator.engine), "find_basis", lambda *_: None)
        assert isinstance(curator.ask(BY_CITY, epsilon="0.2"), Derived)  # never refined


def test_what_was_paid_for_as_a_difference_is_never_answered_afresh(monkeypatch):
    """Left open by an interruption, a refinement is finished as one; else 0.2 costs 0.1."""
    with clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.1")
        paid = curator.pay(BY_CITY, epsilon="0.2")
        assert paid.improving is not None
        assert paid.improving.parent == first.id
        resumed = curator.pay(BY_CITY, epsilon="0.2")
        assert resumed.receipt.resumed
        assert resumed.improving is not None
        assert resumed.improving.parent == first.id
        called = []
        monkeypatch.setattr(curating, "release", lambda *_: called.append(1))
        answer = curator._answer(resumed)
        assert not called
        assert answer.loss.epsilon == Fraction(1, 5)


def test_a_snapshot_knows_what_was_refined():
    with clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.1")
        curator.ask(BY_CITY, epsilon="0.2")
        standing = curator.account.standing()
        again = type(standing).from_json(json.loads(json.dumps(standing.to_json())))
        assert again.refined == standing.refined == {4: 6}
        assert EFFECTS["charge"] is not None


def test_nothing_is_known_of_private_groups_that_were_asked_for_again():
    sql = "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost"
    with clinic() as curator:
        curator.ask(sql, epsilon=1, delta="1e-9")
        spent = curator.spent
        curator.ask(sql, epsilon=2, delta="1e-9")
        assert curator.spent.epsilon == spent.epsilon + 2  # nothing is shared
        with pytest.raises(QuestionRefusal, match="private"):
            curator.ask(TOTAL)


# --- a finer table is refined, and what was asked is added up from it ---------------------------


def pure_clinic(**options) -> Curator:
    """With a budget of epsilon alone: what costs least epsilon is what costs least."""
    return clinic(budget=discreet.Budget(epsilon=100), **options)


def epsilon_of_cells(epsilon: float, cells: int) -> float:
    """What each of some cells costs whose sum has the variance of one number at ``epsilon``.

    Discrete Laplace noise of epsilon has the variance 1 / (2 sinh(epsilon / 2)**2).
    """
    return 2 * math.asinh(math.sqrt(cells) * math.sinh(epsilon / 2))


def test_a_finer_table_is_refined_where_that_costs_less_than_measuring_the_sum():
    with pure_clinic() as curator:
        groups = curator.ask(BY_CITY, epsilon="0.5")
        total = curator.ask(TOTAL, epsilon="0.5")
        # Three cells, each with a third of the variance; found in steps of a 256th.
        more = epsilon_of_cells(0.5, 3) - 0.5
        assert float(total.charged.epsilon) == pytest.approx(more, abs=0.5 / 256 + 1e-3)
        assert float(total.charged.epsilon) < 0.5 * math.sqrt(2 / 3)  # a measurement beside it
        assert float(total.worth.epsilon) == pytest.approx(0.5, rel=0.02)
        assert total.loss.rounded() == curator.spent
        (record,) = [r for r in curator.ledger.records() if r.content.get("parent") == groups.id]
        refined = curator.ask(BY_CITY)
        assert refined.charged == NOTHING
        assert total.column("n") == [sum(refined.column("n"))]
        assert [origin.id for origin in total.origins] == [record.sequence]
        spent = curator.spent
        for sql in (TOTAL, "SELECT COUNT(*) AS n FROM visits WHERE city <> 'Faro'"):
            assert curator.ask(sql, epsilon="0.5").charged == NOTHING  # of the refined table
        assert curator.spent == spent
        assert curator.ledger.verify().ok


@pytest.mark.parametrize("within", [12, 10, 7])
def test_a_sum_of_a_refined_table_is_as_near_as_was_asked(within):
    with pure_clinic() as curator:
        curator.ask(BY_CITY, within=10)
        quote = curator.price(TOTAL, within=within)
        total = curator.ask(TOTAL, within=within)
        assert max(total.margins()["n"]) <= within
        assert total.charged == quote.loss
        assert total.charged.epsilon < pure_clinic().price(TOTAL, within=within).loss.epsilon


def test_a_refined_table_is_combined_with_what_shares_no_noise_with_it():
    with pure_clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.5")
        other = curator.ask(BY_CITY, epsilon="0.2", fresh=True)
        total = curator.ask(TOTAL, epsilon="0.5")
        ids = {origin.id for origin in total.origins}
        assert other.id in ids
        assert first.id not in ids  # what was refined is never combined with its refinement
        assert len(ids) == 2
        assert float(total.worth.epsilon) >= 0.5 * 0.99


def test_a_finer_table_is_refined_once_and_then_its_refinement_is():
    with pure_clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.5")
        for epsilon in ("0.5", "0.6", "0.7"):
            curator.ask(TOTAL, epsilon=epsilon)
        parents = [
            r.content["parent"]
            for r in curator.ledger.records()
            if r.kind == "charge" and "parent" in r.content
        ]
        assert len(parents) == len(set(parents)) == 3
        # However many steps there were: all that was ever charged is the last one's epsilon.
        assert float(curator.spent.epsilon) == pytest.approx(epsilon_of_cells(0.7, 3), abs=0.005)
        assert curator.ledger.verify().ok


def test_a_refinement_for_a_sum_that_was_cut_short_is_gone_on_with(monkeypatch):
    with pure_clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.5")
        paid = curator.pay(TOTAL, epsilon="0.5")
        assert paid.improving.rolled_up
        assert paid.improving.parent == first.id
        spent = curator.spent
        resumed = curator.pay(TOTAL, epsilon="0.5")
        assert resumed.receipt.resumed
        assert resumed.receipt.id == paid.receipt.id
        called = []
        monkeypatch.setattr(curating, "release", lambda *_: called.append(1))
        total = curator._answer(resumed)
        assert not called
        assert curator.spent == spent
        assert total.column("n") == [sum(curator.ask(BY_CITY).column("n"))]


def test_while_a_refinement_is_open_no_other_is_made_of_the_same_table():
    with pure_clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.5")
        curator.pay(TOTAL, epsilon="0.5")
        for quoted in curator.price(TOTAL, epsilon="0.6").choices:
            assert "adds up" not in quoted.source
        assert curator.pay(TOTAL, epsilon="0.6").receipt.parent is None
        assert curator.ledger.verify().ok


def test_mutant_that_refines_a_table_twice_for_two_sums_is_refused_by_the_account(monkeypatch):
    with pure_clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.5")
        curator.pay(TOTAL, epsilon="0.5")
        monkeypatch.setattr(type(curator.account), "is_refined", lambda *_: False)
        assert curator.pay(TOTAL, epsilon="0.6").receipt.parent is None
        monkeypatch.setattr(type(curator.account), "_check_parent", lambda *_: None)
        assert curator.pay(TOTAL, epsilon="0.55").receipt.parent is not None
        found = curator.ledger.verify()
        assert not found.ok
        assert "improved already" in str(found)


def test_who_may_not_pay_for_the_whole_table_does_not_pay_for_it_in_parts():
    """What one question may cost is a cap on the whole of it, of the finer one too."""
    with (
        Ledger.open("sqlite://") as ledger,
        Curator(
            {"visits": ROWS},
            schema=SCHEMA,
            budget=discreet.Budget(epsilon=100),
            ledger=ledger,
            policy=Policy(question=discreet.Budget(epsilon="0.6")),
        ) as curator,
    ):
        curator.ask(BY_CITY, epsilon="0.5")
        total = curator.ask(TOTAL, epsilon="0.5")  # 0.366 more would make the table 0.866
        assert all(r.content.get("parent") is None for r in ledger.records())
        assert float(total.charged.epsilon) == pytest.approx(0.5 * math.sqrt(2 / 3), rel=0.01)


def test_a_finer_table_is_not_refined_where_concentrated_accounting_lasts_longer():
    """A refinement is charged half the square of all epsilon in rho: there it is no bargain."""
    with clinic() as curator:  # 100, 1e-6: the rhos are what lasts
        curator.ask(BY_CITY, epsilon="0.5")
        total = curator.ask(TOTAL, epsilon="0.5")
        assert all(r.content.get("parent") is None for r in curator.ledger.records())
        assert float(total.charged.epsilon) == pytest.approx(0.5 * math.sqrt(2 / 3), rel=0.01)


def test_a_finer_table_that_is_read_from_a_file_is_not_refined(on_disk):
    with clinic(on_disk, budget=discreet.Budget(epsilon=100)) as curator:
        curator.ask(BY_CITY, epsilon="0.5")
        total = curator.ask(TOTAL, epsilon="0.5")
        assert float(total.charged.epsilon) == pytest.approx(0.5 * math.sqrt(2 / 3), rel=0.01)


def test_nobody_else_pays_for_the_refinement_of_a_table():
    """A question about some blocks is not bought by a refinement that is charged to all."""
    schema = SCHEMA.replace("max_rows", 'blocks = ["city"]\nmax_rows')
    with discreet.curator({"visits": ROWS}, schema=schema, budget=100) as curator:
        finer = "SELECT city, cost > 400 AS dear, COUNT(*) AS n FROM visits GROUP BY 1, 2"
        curator.ask(finer, epsilon="0.5")
        cork = curator.ask("SELECT COUNT(*) AS n FROM visits WHERE city = 'Cork'", epsilon="0.5")
        assert cork.charged != NOTHING
        assert all(r.content.get("parent") is None for r in curator.ledger.records())


# --- the law, seen from outside ------------------------------------------------------------------


def test_a_coupled_answer_has_the_law_of_a_direct_one():
    """Many cells in one question: their noise after a top-up is that of the wanted scale."""
    rows = pa.table({"patient": [1], "age": [500]})
    schema = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 1
columns.patient = "integer"
columns.age = { type = "integer", bounds = [0, 900], nullable = false }
"""
    sql = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    with discreet.curator({"visits": rows}, schema=schema, budget=10) as curator:
        curator.ask(sql, epsilon="0.1")
        noise = np.array(curator.ask(sql, epsilon="0.5").column("n"))
    p = math.exp(-0.5)
    shares = {k: float((noise == k).mean()) for k in range(-3, 4)}
    for k, share in shares.items():
        expected = (1 - p) / (1 + p) * p ** abs(k)
        assert share == pytest.approx(expected, abs=6 * math.sqrt(expected / noise.size))


# --- the choices side by side --------------------------------------------------------------------


def test_a_price_shows_what_is_known_what_improving_it_costs_and_a_new_measurement():
    with clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.1")
        quote = curator.price(BY_CITY, epsilon="0.2")
        spent = curator.spent
        assert [str(choice).split("   ")[0] for choice in quote.choices] == [
            "free",
            "ε = 0.1, ρ = 0.02, δ = 0",
            "ε = 0.2, ρ = 0.0199336, δ = 0",
        ]
        assert f"improves answer #{first.id}, which stays valid" in str(quote.choices[1])
        assert [dict(choice.margins)["n"] for choice in quote.choices] == [30, 15, 15]
        assert quote.loss.epsilon == Fraction(1, 10)
        assert curator.spent == spent
        assert curator.ask(BY_CITY, epsilon="0.2").charged == quote.loss


def test_a_price_shows_the_refinement_of_a_finer_table_beside_the_others():
    with pure_clinic() as curator:
        first = curator.ask(BY_CITY, epsilon="0.5")
        spent = curator.spent
        quote = curator.price(TOTAL, epsilon="0.5")
        free, refined, beside, direct = quote.choices
        assert free.free
        assert str(refined).endswith(
            f"improves answer #{first.id}, which stays valid, and adds up its groups"
        )
        assert str(beside).endswith(f"improves answer #{first.id}, which stays valid")
        assert direct.source == "a new measurement"
        charges = [choice.charge.epsilon for choice in quote.choices]
        assert charges == sorted(charges)
        assert quote.loss == refined.charge
        assert dict(refined.margins)["n"] <= dict(direct.margins)["n"]
        assert curator.spent == spent
        assert curator.ask(TOTAL, epsilon="0.5").charged == quote.loss


def test_a_price_of_what_is_known_is_nothing():
    with clinic() as curator:
        curator.ask(BY_CITY, epsilon="0.5")
        for offer in ({}, {"within": 50}, {"epsilon": "0.1"}):
            quote = curator.price(TOTAL, **offer)
            assert quote.free
            assert quote.outcome == "known"
            assert quote.to_json()["charge"]["epsilon"] == "0"
            assert "3 groups added up" in str(quote.choices[0])
