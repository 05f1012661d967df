"""Plans of several releases, linear questions, and counters, through the curator."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlglot.parser import Parser
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.curate import session as sessions
from discreet.errors import DataRefusal, Halted, InvalidParameter, QuestionRefusal, Refusal
from discreet.ledger.account import Account
from discreet.publication.agenda import parse_agenda, read_agenda
from discreet.publication.declared import Declared
from discreet.publication.handover import check_place, verify_handover, write_handover
from discreet.publication.outline import outline
from discreet.publication.placing import write_sums
from discreet.publication.verifying import verify_folder
from discreet.question.domain import Kind
from discreet.question.levels import Levels
from discreet.question.sql.dialect import QuestionParser

SCHEMA = """
[budget]
epsilon = 40
delta = 1e-6
[tables.visits]
source = "visits.parquet"
unit = "who"
max_rows_per_unit = 2
[tables.visits.columns]
who = "integer"
city = { type = "text", values = ["Cork", "Faro", "Oslo"], nullable = false }
age = { type = "integer", bounds = [0, 19], nullable = false }
day = { type = "date", bounds = [2024-01-01, 2024-01-06], nullable = false }
"""
PLAN = """
[plan]
epsilon = 4
delta = 1e-9
[[release]]
name = "cities"
kind = "marginals"
of = "visits"
columns = ["city", "age"]
weight = 2
[[release]]
name = "ages"
kind = "hierarchy"
of = "visits"
by = ["age"]
"""
STAGES = ["histograms", "distances", "pair tables"]
ASKED = (
    "SELECT COUNT(*) FROM visits WHERE age < 7",
    "SELECT COUNT(*) FROM visits WHERE age BETWEEN 3 AND 12 AND city = 'Cork'",
    "SELECT city, COUNT(*) FROM visits GROUP BY city",
)


def frame(people: int = 1200) -> pd.DataFrame:
    draw = np.random.default_rng(8)
    who = np.repeat(np.arange(people), 2)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, 6, who.size), "D")
    return pd.DataFrame(
        {
            "who": who,
            "city": np.array(["Cork", "Faro", "Oslo"])[who % 3],
            "age": draw.integers(0, 20, who.size),
            "day": days.date,
        }
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    frame().to_parquet(tmp_path / "visits.parquet")
    sessions.init(tmp_path, SCHEMA)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


# --- plans ----------------------------------------------------------------------------------------


def agenda(**changes: object):
    return parse_agenda(
        {
            "plan": changes.get("plan", {"epsilon": 4, "delta": "1e-9"}),
            "release": [
                {"name": "a", "kind": "marginals", "of": "visits", "columns": ["city", "age"]}
                | dict(changes.get("a", {})),
                {"name": "b", "kind": "hierarchy", "of": "visits", "by": ["age"]}
                | dict(changes.get("b", {})),
            ],
        }
    )


@pytest.mark.parametrize("plan", [{"epsilon": 4, "delta": "1e-9"}, {"epsilon": 4}, {"rho": "1/5"}])
def test_no_other_division_of_a_price_has_less_error(home, plan):
    with discreet.open(home, opened=False) as curator:
        asked = agenda(plan=plan, a={"weight": 3})
        division = curator.releases.divide(asked)
        assert division.total == asked.whole.amount

        def total(first: Fraction) -> float:
            power = 0.5 if asked.whole.gaussian else 1.0
            amounts = float(first), float(division.total - first)
            return sum(
                weight * (unit / amount**power) ** 2
                for weight, unit, amount in zip((3, 1), division.units, amounts, strict=True)
            )

        best = total(division.amounts[0])
        for share in (Fraction(9, 10), Fraction(11, 10)):
            assert total(division.amounts[0] * share) > best


@pytest.mark.parametrize("plan", [{"delta": "1e-9"}, {}])
def test_the_least_price_meets_every_target_and_none_with_room(home, plan):
    with discreet.open(home, opened=False) as curator:
        asked = agenda(plan=plan, a={"within": 40}, b={"within": 25})
        division = curator.releases.divide(asked)
        assert division.list_missed() == []
        for margin, target in zip(division.margins, (40, 25), strict=True):
            assert 0.99 * target <= margin <= target
        poor = curator.releases.divide(
            agenda(plan={"epsilon": "0.01"}, a={"within": 40}, b={"within": 25})
        )
        assert [line.split(":")[0] for line in poor.list_missed()] == ["a", "b"]


def test_relative_targets_are_shares_of_a_usual_number_and_both_curves_are_shown(home):
    """3,000 rows in 60 cells are 50 each, in 20 leaves 150: a fifth and a tenth of those."""
    with discreet.open(home, opened=False) as curator:
        shares = {"rows": 3000, "relative": "0.2"}, {"rows": 3000, "relative": "0.1"}
        division = curator.releases.divide(agenda(plan={}, a=shares[0], b=shares[1]))
        cells = [60, 20]  # nobody's city or age is missing
        expected = [0.2 * 3000 / cells[0], 0.1 * 3000 / cells[1]]
        assert list(division.targets) == pytest.approx(expected)
        assert [*division.margins] == pytest.approx(expected, rel=0.01)
        assert dict(division.least_curve())[1] == pytest.approx(float(division.total), rel=0.01)
        assert dict(division.least_curve())[2] == pytest.approx(float(division.total) / 2, rel=0.01)
        for total, margins in division.curve():
            again = curator.releases.divide(agenda(plan={"epsilon": f"{total:.9f}"}))
            best = sum(one**2 for one in again.margins)
            assert best <= sum(one**2 for one in margins) * (1 + 1e-6)
    with pytest.raises(InvalidParameter, match="declared number of rows"):
        agenda(plan={}, a={"relative": "0.1"}, b={"within": 3})


def test_the_nearest_tables_are_whole_and_agree(home):
    with discreet.open(home) as curator:
        synopsis = curator.make_release(
            "best", kind="marginals", of="visits", columns=["city", "age"], best=True, epsilon=3
        )
        found = {table.name: table for table in synopsis.made.product.tables}
        both = found["city_age"].values
        assert (both == np.rint(both)).all()
        assert (both >= 0).all()
        assert np.array_equal(both.sum(axis=1), found["city"].values)
        assert np.array_equal(both.sum(axis=0), found["age"].values)
        truth = frame().groupby(["city", "age"]).size().unstack(fill_value=0).to_numpy()
        shown = both[: truth.shape[0], : truth.shape[1]]
        assert np.abs(shown - truth).max() <= found["city_age"].margin(both, "1e-9")
        with pytest.raises(InvalidParameter, match="unbiased or best"):
            curator.make_release("other", of="visits", best=True, epsilon=3)
    assert all(check.holds for check in verify_folder(home / "releases" / "best"))


def test_too_few_rows_are_told_before_from_what_is_declared_and_from_nothing_else(home):
    def say(rows: int | None) -> str:
        declared = Declared.of("a", kind="synthetic", of="visits", epsilon="0.1", rows=rows)
        with discreet.open(home, opened=False) as curator:
            return " ".join(stage.says for stage in curator.releases.prepare(declared).stages)

    assert "too few" in say(300)
    assert "too few" not in say(3_000_000)
    assert "too few" not in say(None)


def test_a_plan_is_one_charge_and_goes_on_where_it_stopped(home, monkeypatch):
    def run(*arguments: str) -> int:
        return CliRunner().invoke(app, ["release", *arguments, "--session", str(home)]).exit_code

    plan = str(home / "plan.toml")
    assert run("plan", plan) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Account, "publish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run("run", plan) != 0
    with discreet.open(home) as curator:
        spent = curator.spent
        assert spent.rho > 0
        assert not list((home / "releases").glob("*"))
    assert run("run", plan) == 0
    with discreet.open(home) as curator:
        assert curator.spent == spent
        assert curator.releases.names() == ["ages", "cities"]
    for name in ("ages", "cities"):
        assert all(check.holds for check in verify_folder(home / "releases" / name))


def test_a_plan_is_handed_over_in_one_folder_that_can_be_checked(home, tmp_path):
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["release", *arguments])

    given, words = tmp_path / "office", ("run", str(home / "plan.toml"), "--session", str(home))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    assert run(*words, "--folder", str(tmp_path / "other")).exit_code != 0
    assert (tmp_path / "other" / "letter.txt").read_text() == "mine"
    with discreet.open(home) as curator:
        assert curator.spent.rho == 0
    assert run(*words, "--folder", str(given)).exit_code == 0
    with discreet.open(home) as curator:
        spent = curator.spent
    names = {file.name for file in given.iterdir()}
    assert names == {"ages", "cities", "index.html", "publication.json", "SHA256SUMS"}
    assert 'href="ages/report.html"' in (given / "index.html").read_text()
    first = {name: (given / name / "SHA256SUMS").read_text() for name in ("ages", "cities")}
    assert run(*words, "--folder", str(given)).exit_code == 0  # again: the same, and free
    assert {n: (given / n / "SHA256SUMS").read_text() for n in first} == first
    with discreet.open(home) as curator:
        assert curator.spent == spent
    told = run("verify", str(given), "--json")
    assert told.exit_code == 0, told.output
    checks = json.loads(told.stdout)
    assert [one["what"] for one in checks][-1] == "loss of all releases"
    assert "cities: data from measurements" in [one["what"] for one in checks]
    said = json.loads((given / "publication.json").read_text())
    assert Fraction(said["loss"]["rho"]) <= spent.rho
    for change in ({"loss": {"rho": "1/7"}}, {"releases": ["ages"]}):
        (given / "publication.json").write_text(json.dumps({**said, **change}))
        assert run("verify", str(given)).exit_code == 1
    for change in ({"releases": ["../office"]}, {"format": "x"}, {"releases": [3]}, {"loss": 1}):
        (given / "publication.json").write_text(json.dumps({**said, **change}))
        assert run("verify", str(given)).exit_code != 0
    (given / "publication.json").write_text(json.dumps(said))
    (given / "ages" / "card.md").unlink()
    assert run("verify", str(given)).exit_code == 1


def test_a_publication_hides_no_release_and_is_none_outside_its_folder(home, tmp_path):
    """Whoever hands it over writes the checksums, too: they say nothing of what is not listed."""
    with discreet.open(home) as curator:
        division = curator.releases.divide(read_agenda(home / "plan.toml"))
        made = [one.made for one in curator.releases.make_all(division.declared, analyst="curator")]
    given = write_handover(made, tmp_path / "ages" / "office")
    assert all(check.holds for check in verify_handover(given))
    said = json.loads((given / "publication.json").read_text())
    alone = json.loads((given / "ages" / "certificate.json").read_text())["stages"]
    loss = {"rho": str(sum(Fraction(stage["amount"]) for stage in alone))}
    (given / "publication.json").write_text(
        json.dumps({**said, "releases": ["ages"], "loss": loss})
    )
    write_sums(given)
    wrong = [one.what for one in verify_handover(given) if not one.holds]
    assert wrong == ["list of releases", "index.html"]
    odd = [[".."], ["ages"] * 1000, "ages", {"ages": 1}, [["ages"]], [{}], None]
    texts = [json.dumps({**said, "releases": names}) for names in odd]
    for text in (*texts, "[" * 10**5, "7", "[]", ""):
        (given / "publication.json").write_text(text)
        with pytest.raises(DataRefusal, match="D2: "):
            verify_handover(given)


def test_a_publication_that_waits_for_its_place_takes_it_and_nothing_else_does(tmp_path):
    office, waiting = tmp_path / "office", tmp_path / ".office.next"
    write_handover([], office)
    office.rename(waiting)  # as a process left it that was killed between two folders
    check_place(office)
    assert all(check.holds for check in verify_handover(office))
    assert not waiting.exists()
    waiting.mkdir()
    (waiting / "letter.txt").write_text("mine")  # none of ours
    check_place(office)
    assert (waiting / "letter.txt").read_text() == "mine"
    assert office.exists()


def test_what_was_put_beside_a_publication_is_not_lost(tmp_path):
    write_handover([], tmp_path / "office")
    write_handover([], tmp_path / "office")
    (tmp_path / "office" / "letter.txt").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "publication.json").write_text("mine")
    write_sums(tmp_path / "other")
    for name in ("office", "other"):
        with pytest.raises(InvalidParameter, match="P9: "):
            write_handover([], tmp_path / name)
    assert (tmp_path / "office" / "letter.txt").read_text() == "mine"
    assert (tmp_path / "other" / "publication.json").read_text() == "mine"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"plan": {"epsilon": 1}, "release": []},
        {"plan": {"colour": 1}, "release": [{"name": "a", "kind": "synthetic", "of": "visits"}]},
        {"plan": {}, "release": [{"name": "a", "kind": "synthetic", "of": "visits"}]},
        {"plan": {"epsilon": 1}, "release": [{"name": "a", "kind": "synthetic"}]},
        {"release": [{"name": "a", "kind": "synthetic", "of": "v", "epsilon": 1, "within": 2}]},
        {"plan": {"epsilon": 1}, "release": [{"name": "a", "kind": "synthetic", "of": "v"}] * 2},
    ],
)
def test_a_plan_that_is_not_understood_is_refused(document):
    with pytest.raises(InvalidParameter):
        parse_agenda(document)


def test_what_nobody_could_read_is_refused_before_it_is_paid_for():
    """From the declaration, at once: neither billions of sets nor of numbers are listed first."""

    def declare(count: int, size: int, **settings: Any) -> list[str]:
        ends = Fraction(0), Fraction(size - 1), Fraction(1)
        levels = [
            Levels(f"t.c{place}", Kind.INTEGER, size, False, None, *ends) for place in range(count)
        ]
        declared = Declared.of("wide", of="t", epsilon=1, **settings)
        return [one.name for one in outline(declared, levels, declared.spend(rows_per_unit=1))]

    with pytest.raises(InvalidParameter, match="94,966,795 tables were asked for"):
        declare(220, 2, kind="marginals", ways=4)
    with pytest.raises(InvalidParameter, match="up to 124,800,000 numbers"):
        declare(40, 400, kind="marginals", ways=2)
    with pytest.raises(InvalidParameter, match="up to 150,359,040 numbers"):
        declare(40, 400, kind="synthetic")
    with pytest.raises(InvalidParameter, match="up to 16,375,808,000 numbers"):
        declare(2000, 400, kind="synthetic", margins=0)
    assert declare(40, 400, kind="synthetic", margins=0) == STAGES
    assert declare(25, 400, kind="synthetic") == [*STAGES, "certified margins", "typical margins"]


# --- linear questions -----------------------------------------------------------------------------


def test_linear_questions_are_answered_together_within_their_margins(home):
    data = frame()
    truth = [
        (data.age < 7).sum(),
        (data.age.between(3, 12) & (data.city == "Cork")).sum(),
        *data.groupby("city").size(),
    ]
    with discreet.open(home) as curator:
        made = curator.plan(
            ASKED, name="asked", of="visits", columns=["city", "age"], rho="1/4"
        ).made
        found = made.product.answers
        assert len(found) == len(truth) == 5
        for (_, value, margin), true in zip(found, truth, strict=True):
            assert abs(value - true) <= 3 * margin  # at 95 % each: three times that never fails
    assert all(check.holds for check in verify_folder(home / "releases" / "asked"))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(age) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE age < 3 OR city = 'Cork'",
        "SELECT COUNT(*) FROM visits WHERE age > 50",
        "SELECT COUNT(*) FROM visits JOIN visits AS other USING (who)",
        "SELECT COUNT(*) FROM elsewhere",
    ],
)
def test_a_question_that_is_not_linear_is_refused_before_paying(home, text):
    with discreet.open(home) as curator:
        with pytest.raises(QuestionRefusal):
            curator.plan([text], name="asked", of="visits", columns=["city", "age"], rho="1/4")
        assert not curator.spent.rho


# --- counters -------------------------------------------------------------------------------------


def counter(curator: discreet.Curator):
    return curator.make_release("daily", kind="counter", of="visits", by=["day"], rho="1/2")


def test_a_counter_is_charged_at_the_start_and_steps_as_data_arrive(home):
    data = frame()
    first = data[data.day <= pd.Timestamp("2024-01-02").date()]
    first.to_parquet(home / "visits.parquet")
    with discreet.open(home) as curator:
        counter(curator)
        assert curator.spent.rho >= Fraction(1, 2)
        spent = curator.spent
        for _ in range(2):
            curator.step_release("daily")
    data.to_parquet(home / "visits.parquet")
    with discreet.open(home) as curator:
        for _ in range(4):
            synopsis = curator.step_release("daily")
        assert curator.spent == spent
        with pytest.raises(Halted):
            curator.step_release("daily")
        total = synopsis.ask("SELECT COUNT(*) AS n FROM daily", confidence="0.99999999999")
        assert abs(total.value() - len(data)) <= total.margins["n"][0].within
        early = curator.ask("SELECT COUNT(*) AS n FROM daily WHERE day <= DATE '2024-01-03'")
        true = (data.day <= pd.Timestamp("2024-01-03").date()).sum()
        assert abs(early.value() - true) <= 3 * early.margins["n"][0].within
    checks = verify_folder(home / "releases" / "daily")
    assert all(check.holds for check in checks)
    assert sum(check.what.startswith("loss of step") for check in checks) == 6


def test_a_unit_whose_kept_rows_change_moves_no_step_further_than_it_is_charged_for(home):
    """Whoever comes every day, of whom two rows are kept: each step is charged by itself."""
    with discreet.open(home) as curator:
        counter(curator)
        made = [curator.step_release("daily") for _ in range(6)][-1].made
    spends = [stage.spend for stage in made.stages]
    for spend, (draw,) in zip(spends, made.product.measured.values(), strict=True):
        moved = np.abs(draw.query.matrix).sum(axis=0).max() * made.promise.rows_per_unit
        assert moved**2 / (2 * draw.query.noise.sigma_squared) == spend.amount
    assert sum(spend.amount for spend in spends) == Fraction(1, 2)


def test_a_counter_that_is_killed_publishes_no_step_twice(home, monkeypatch):
    publish = Account.publish

    def dying(self, receipt, answer):
        publish(self, receipt, answer)
        raise KeyboardInterrupt

    with discreet.open(home) as curator:
        counter(curator)
        curator.step_release("daily")
        with monkeypatch.context() as patch:
            patch.setattr(Account, "publish", dying)
            with pytest.raises(KeyboardInterrupt):
                curator.step_release("daily")
    with discreet.open(home) as curator:
        spent = curator.spent
        made = curator.step_release("daily").made  # the second, which was stored and never shown
        assert len(made.product.measured) == 2
        for number in (2, 3, 3, 1):  # a number says which: only one that is new is published
            made = curator.step_release("daily", number=number).made
        assert len(made.product.measured) == 3
        with pytest.raises(InvalidParameter, match="the next is 4"):
            curator.step_release("daily", number=5)
        for odd in (0, -1, 1.5, "two", True):
            with pytest.raises(InvalidParameter):
                curator.step_release("daily", number=odd)
        assert curator.spent == spent
    (home / "releases" / "daily").rename(home / "releases" / ".daily.next")  # killed between two
    with discreet.open(home) as curator:
        assert curator.releases.names() == ["daily"]
    shutil.rmtree(home / "releases" / "daily")  # lost altogether: made again, for free
    with discreet.open(home) as curator:
        assert len(counter(curator).made.product.measured) == 3
        assert curator.spent == spent


def test_a_counter_that_is_read_otherwise_now_is_refused_before_it_is_charged(home, monkeypatch):
    """As a version did that took a = b IS NULL for a = (b IS NULL): its counters go on nowhere."""
    both = "(NULLIF(age, 5) = 3) = (NULLIF(age, 7) = 4)"
    text = f"SELECT who, day FROM visits WHERE {both} IS NULL"
    with discreet.open(home) as curator, monkeypatch.context() as patch:
        usual = Parser.IS_PREDICATE_PRECEDENCE
        patch.setattr(QuestionParser, "IS_PREDICATE_PRECEDENCE", usual)
        curator.make_release("daily", kind="counter", of=text, by=["day"], rho="1/2")
        curator.step_release("daily")
        spent = curator.spent
    with discreet.open(home) as curator:
        with pytest.raises(InvalidParameter, match=r"a = \(b IS NULL\)"):
            curator.step_release("daily")
        assert curator.spent == spent
        assert len(curator.releases.find("daily").made.product.measured) == 1


def test_what_is_no_counter_has_no_steps_and_a_long_one_is_refused(home):
    with discreet.open(home) as curator:
        curator.make_release("ages", kind="ranges", of="visits", by="age", rho=1)
        with pytest.raises(InvalidParameter):
            curator.step_release("ages")
        with pytest.raises(Refusal):
            curator.make_release("daily", kind="counter", of="visits", by=["day", "who"], epsilon=1)
