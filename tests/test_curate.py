"""The curator end to end, on a real DuckDB."""

import json
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet.errors import BudgetRefusal, DataRefusal, InvalidParameter, QuestionRefusal, Refusal
from discreet.question.blocks import Area
from discreet.question.builder import col, count, mean
from discreet.question.expressions import ColumnRef, Literal
from discreet.question.offer import Offer
from discreet.question.question import Output
from discreet.release.answer import Answer
from discreet.release.display import cell
from discreet.release.explanation import Explanation
from discreet.release.record import answer_to_bytes

SCHEMA = """
[tables.visits]
unit = "patient_id"
max_rows_per_unit = 3
[tables.visits.columns]
patient_id = "integer"
city = { type = "text", values = ["Cork", "Delft", "Faro"], nullable = false }
street = "text"
age = { type = "integer", bounds = [0, 110] }
cost = { type = "decimal", bounds = [0, 800] }
"""


def rows(patients: int = 3000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    patient = np.repeat(np.arange(patients), 2)
    return {
        "patient_id": patient,
        "city": np.array(["Cork", "Delft", "Faro"])[patient % 3],
        "street": np.where(patient % 7 == 0, patient.astype(str), "Main"),
        "age": rng.integers(0, 111, patient.size),
        "cost": rng.uniform(0, 800, patient.size),
    }


def clinic(tables: object = None, *, epsilon: int = 50, **engine: object) -> discreet.Curator:
    return discreet.curator(
        {"visits": pd.DataFrame(rows()) if tables is None else tables},
        schema=discreet.Schema.from_text(SCHEMA),
        budget=discreet.Budget(epsilon=epsilon, delta="1e-6"),
        **engine,
    )


def test_an_answer_is_near_the_truth_and_says_how_near():
    answer = clinic().ask(
        "SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city", epsilon=20
    )
    assert answer.column("city") == ["Cork", "Delft", "Faro"]
    margins = answer.margins("0.999999")
    for n, margin in zip(answer.column("n"), margins["n"], strict=True):
        assert abs(n - 2000) <= margin
    assert all(390 < mean < 410 for mean in answer.column("mean"))
    assert answer.loss.epsilon <= 20
    assert margins["city"] == [None] * 3


def test_an_answer_is_built_once_and_its_numbers_are_those_stored(monkeypatch):
    built = []
    build = Answer.__init__

    def count(self, *given, **named):
        built.append(1)
        build(self, *given, **named)

    monkeypatch.setattr(Answer, "__init__", count)
    with clinic() as curator:
        text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
        answer = curator.ask(text, epsilon=2)
        assert len(built) == 1
        stored = curator.account.answer(answer.id).answer
        assert curator.ask(text, epsilon=2).rows == answer.rows
        assert len(built) == 2
    assert answer_to_bytes(answer) == stored


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet", "csv"])
def test_every_kind_of_table_answers(kind, tmp_path):
    data = rows(600)
    table: object = {
        "pandas": lambda: pd.DataFrame(data),
        "polars": lambda: pl.DataFrame(data),
        "arrow": lambda: pa.table(data),
        "parquet": lambda: _written(tmp_path / "v.parquet", pd.DataFrame(data).to_parquet),
        "csv": lambda: _written(tmp_path / "v.csv", pd.DataFrame(data).to_csv),
    }[kind]()
    answer = clinic(table).ask("SELECT COUNT(*) AS n FROM visits", epsilon=40)
    assert abs(answer.value() - 1200) < 20


def _written(path, write) -> str:
    write(path, index=False)
    return str(path)


def test_the_account_is_charged_before_data_is_read_and_refuses(monkeypatch):
    curator = clinic(epsilon=1)
    seen = []
    run = curator.engine.run
    monkeypatch.setattr(curator.engine, "run", lambda plan: seen.append(curator.spent) or run(plan))
    curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="3/4")
    assert [loss.epsilon for loss in seen] == [Fraction(3, 4)]
    with pytest.raises(BudgetRefusal, match="B1"):
        curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 40", epsilon="3/4")
    assert len(seen) == 1
    assert curator.spent.epsilon == Fraction(3, 4)


def test_what_is_not_a_question_is_refused():
    curator = clinic()
    for strange in (5, None, b"SELECT COUNT(*) AS n FROM visits", curator.table("visits"), rows(3)):
        for method in (curator.ask, curator.price, curator.explain):
            with pytest.raises(InvalidParameter, match="is not a question") as refusal:
                method(strange, epsilon="1/2")
            assert "Delft" not in str(refusal.value)


def test_a_failure_after_the_charge_is_not_refunded(monkeypatch):
    curator = clinic()

    def fails(plan):
        raise MemoryError

    monkeypatch.setattr(curator.engine, "run", fails)
    with pytest.raises(DataRefusal, match="D1"):
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/2")
    assert curator.spent.epsilon == Fraction(1, 2)


def test_explain_is_free_and_reads_nothing_private(monkeypatch):
    curator = clinic()
    monkeypatch.setattr(curator.engine, "run", lambda plan: pytest.fail("data was read"))
    plan = curator.explain("SELECT city, SUM(cost) AS s FROM visits GROUP BY city", epsilon="1/2")
    same = curator.explain(
        "EXPLAIN SELECT city, SUM(cost) AS s FROM visits GROUP BY city", epsilon="1/2"
    )
    assert isinstance(same, Explanation)
    assert str(plan) == str(same)
    assert curator.spent.epsilon == 0
    for word in ("Laplace", "sensitivity", "at most 3 rows", "SELECT"):
        assert word in str(plan)


def test_explain_is_the_same_for_other_data():
    question = "SELECT city, AVG(cost) AS m FROM visits GROUP BY city"
    one = clinic().explain(question, epsilon="1/2")
    other = clinic(pd.DataFrame(rows(5))).explain(question, epsilon="1/2")
    assert str(one) == str(other)
    assert one.certificate == other.certificate


def test_private_groups_hide_the_lonely():
    answer = clinic().ask(
        "SELECT street, COUNT(*) AS n FROM visits GROUP BY street", epsilon=2, delta="1e-7"
    )
    assert answer.column("street") == ["Main"]
    assert any("absent" in note for note in answer.notes)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MEDIAN(age) AS x FROM visits",
        "SELECT APPROX_QUANTILES(age, 4) AS x FROM visits",
        "SELECT MIN(age) AS x FROM visits",
        "SELECT MAX(cost) AS x FROM visits",
        "SELECT MODE(city) AS x FROM visits",
        "SELECT VAR_SAMP(cost) AS x FROM visits",
        "SELECT CORR(cost, age) AS x FROM visits",
        "SELECT COUNT(DISTINCT street) AS x FROM visits",
        "SELECT COUNT(DISTINCT patient_id) AS x FROM visits",
        "SELECT COUNT(*) FILTER (WHERE age > 40) AS x FROM visits",
    ],
)
def test_every_aggregate_answers(sql):
    answer = clinic().ask(sql, epsilon=5)
    assert isinstance(answer, Answer)
    assert len(answer.rows) == 1
    assert answer.rows[0].values[0] is not None
    assert str(answer)


def test_quantiles_are_near():
    answer = clinic().ask("SELECT MEDIAN(age) AS m FROM visits", epsilon=20)
    assert 50 <= answer.value() <= 60
    assert answer.margins()["m"][0] > 0


def test_post_processing_is_free_and_ordered():
    answer = clinic().ask(
        "SELECT city, COUNT(*) AS n, SUM(cost) / COUNT(*) AS mean FROM visits GROUP BY city "
        "HAVING COUNT(*) > 10 ORDER BY mean DESC LIMIT 2",
        epsilon=20,
    )
    means = answer.column("mean")
    assert len(means) == 2
    assert means == sorted(means, reverse=True)


def test_an_answer_becomes_every_kind_of_table():
    answer = clinic().ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=5)
    assert answer.to_arrow().column_names == ["city", "n"]
    assert list(answer.to_pandas()["n"]) == answer.column("n")
    assert answer.to_polars()["city"].to_list() == answer.column("city")
    assert "<table>" in answer._repr_html_()


def test_outputs_lie_on_a_public_grid_in_json_and_arrow():
    """THREATS N2 for the curator: counts are whole, sums are multiples of a power of two."""
    answer = clinic().ask("SELECT SUM(cost) AS s, COUNT(*) AS n FROM visits", epsilon="1/2")
    total = answer.column("s")[0]
    assert (total * 1024).is_integer()
    assert isinstance(answer.column("n")[0], int)
    assert json.loads(json.dumps(total)) == total == answer.to_arrow()["s"][0].as_py()


def test_the_certificate_is_plain_json():
    answer = clinic().ask("SELECT SUM(cost) AS s FROM visits", epsilon="1/2")
    certificate = json.loads(json.dumps(answer.certificate))
    assert certificate["neighbours"] == "add/remove"
    assert certificate["loss"]["epsilon"] == "1/2"
    assert certificate["measurements"][0]["mechanism"] == "discrete Laplace"
    assert certificate["unit"] == "patient_id"
    assert certificate["discreet"] == discreet.__version__
    (variable,) = certificate["measurements"][0]["measured"]["variables"]
    assert (variable["low"], variable["high"]) == ("0", "800")


def test_prepared_and_unprepared_agree_exactly():
    curator = clinic()
    question = "SELECT city, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY city"
    parsed, _ = curator._parse_question(question)
    priced = curator.price_question(parsed, Offer.of(epsilon="1/2"))
    before = curator.engine.run(curator.engine.compile(priced.plan)).open_for_release()
    curator.prepare()
    after = curator.engine.run(curator.engine.compile(priced.plan)).open_for_release()
    assert before.groups == after.groups
    assert (before.measured[0] == after.measured[0]).all()


@pytest.mark.parametrize(
    ("sql", "spend"),
    [
        ("SELECT patient_id FROM visits", {"epsilon": 1}),
        ("SELECT COUNT(*) FROM visits", {}),
        ("SELECT COUNT(*) FROM visits", {"epsilon": 0}),
        ("SELECT COUNT(*) FROM visits", {"epsilon": "nonsense"}),
        ("SELECT COUNT(*) FROM visits", {"within": -3}),
        ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "rho": 1}),
        ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "within": 50}),
        ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "delta": -1}),
        ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "delta": 2}),
        ("SELECT VARIANCE(cost) FROM visits", {"epsilon": "1e-18"}),
        ("SELECT COUNT(*) FROM nowhere", {"epsilon": 1}),
        ("SELECT COUNT(*) FROM visits WHERE city = '\udcff'", {"epsilon": 1}),
        ("SELECT COUNT(*) FROM visits", {"epsilon": 1, "analyst": "\udcff"}),
        ("SELECT street, COUNT(*) FROM visits GROUP BY street", {"epsilon": 1}),
    ],
)
def test_bad_questions_are_refused_and_cost_nothing(sql, spend):
    curator = clinic()
    with pytest.raises(Refusal) as refused:
        curator.ask(sql, **spend)
    assert refused.value.fix
    assert curator.spent.epsilon == 0


def test_a_spend_may_be_written_in_the_statement():
    answer = clinic().ask(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5) city, COUNT(*) AS n "
        "FROM visits GROUP BY city"
    )
    assert answer.loss.epsilon == Fraction(1, 2)
    with pytest.raises(QuestionRefusal):
        clinic().ask("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0) COUNT(*) FROM visits")


def test_a_delta_completes_a_spend_written_in_the_statement():
    answer = clinic().ask(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2) street, COUNT(*) AS n "
        "FROM visits GROUP BY street",
        delta="1e-7",
    )
    assert 0 < answer.loss.delta <= Fraction(1, 10**7)


def test_a_failure_after_the_charge_says_nothing(monkeypatch):
    curator = clinic()

    def fails(plan):
        raise ValueError("could not convert 'CANARY' to a number")

    monkeypatch.setattr(curator.engine, "run", fails)
    with pytest.raises(DataRefusal) as refused:
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/2")
    assert "CANARY" not in f"{refused.value}{refused.value.__context__}{refused.value.__cause__}"


def test_the_same_question_is_answered_again_for_free():
    curator = clinic()
    first = curator.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon="1/2")
    spent = curator.spent
    again = curator.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon="1/2")
    assert again.replayed
    assert not first.replayed
    assert (again.column("n"), again.id) == (first.column("n"), first.id)
    assert curator.spent == spent
    assert "free" in str(again)


def test_other_post_processing_of_the_same_numbers_is_free():
    curator = clinic()
    first = curator.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon="1/2")
    spent = curator.spent
    other = curator.ask(
        "SELECT city, 2 * COUNT(*) AS twice FROM visits GROUP BY city ORDER BY twice DESC LIMIT 2",
        epsilon="1/2",
    )
    assert other.replayed
    assert other.column("twice") == sorted((2 * n for n in first.column("n")), reverse=True)[:2]
    assert curator.spent == spent


@pytest.mark.parametrize(
    ("sql", "spend"),
    [
        ("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", {"rho": "1/8"}),
        ("SELECT city, COUNT(cost) AS n FROM visits GROUP BY city", {"epsilon": "1/2"}),
        ("SELECT city, COUNT(*) AS n FROM visits WHERE age > 3 GROUP BY city", {"epsilon": "1/2"}),
    ],
)
def test_another_question_or_spend_is_not_a_replay(sql, spend):
    curator = clinic()
    curator.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon="1/2")
    spent = curator.spent
    assert not curator.ask(sql, **spend).replayed
    assert curator.spent != spent


def test_a_changed_file_is_a_new_data_version_and_is_paid_for(tmp_path):
    path = tmp_path / "v.parquet"
    pd.DataFrame(rows(300)).to_parquet(path, index=False)
    curator = clinic(str(path))
    curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=4)
    pd.DataFrame(rows(3000)).to_parquet(path, index=False)
    answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=4)
    assert not answer.replayed
    assert abs(answer.value() - 6000) < 100
    assert curator.spent.epsilon == 8


def test_a_question_cut_short_is_finished_without_paying_again(monkeypatch):
    curator = clinic()
    with monkeypatch.context() as cut:
        cut.setattr(curator.engine, "run", lambda plan: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/2")
    spent = curator.spent
    assert spent.epsilon == Fraction(1, 2)
    assert curator.price("SELECT COUNT(*) AS n FROM visits", epsilon="1/2").outcome == "resumed"
    answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/2")
    assert isinstance(answer, Answer)
    assert curator.spent == spent


def test_a_failed_question_is_paid_for_again(monkeypatch):
    curator = clinic()
    with monkeypatch.context() as broken:
        broken.setattr(curator.engine, "run", lambda plan: 1 / 0)
        with pytest.raises(DataRefusal, match="D1"):
            curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/2")
    curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/2")
    assert curator.spent.epsilon == 1
    assert [entry.state for entry in curator.transcript()] == ["burnt", "answered"]


def test_an_accuracy_too_dear_is_refused_with_what_is_possible():
    curator = clinic(epsilon=1)
    with pytest.raises(BudgetRefusal, match=r"With all that is left .* 'n' within ±"):
        curator.ask("SELECT COUNT(*) AS n FROM visits", within=1)
    left = curator.ask("SELECT COUNT(*) AS n FROM visits", within=40)
    assert left.margins()["n"][0] <= 40


def test_an_accuracy_too_dear_is_told_with_what_improving_the_known_gives():
    """What is told is what can be had: with what is known, and not one step nearer."""
    curator = clinic(epsilon=1)
    question = "SELECT COUNT(*) AS n FROM visits"
    curator.ask(question, epsilon="0.7")
    with pytest.raises(BudgetRefusal) as refused:
        curator.ask(question, within=1)
    (told,) = re.findall(r"\(within = ([\d.]+), which improves what is known\)", refused.value.fix)
    assert f"'n' within ±{told}." in refused.value.fix
    alone = curator.price(question, epsilon="0.3", fresh=True).margins()["n"]
    assert float(told) < alone
    with pytest.raises(BudgetRefusal):
        curator.ask(question, within=float(told) - 0.11)
    assert curator.ask(question, within=told).margins()["n"][0] <= float(told)


def test_an_accuracy_too_dear_is_told_with_what_is_known_and_free():
    curator = clinic(epsilon=1)
    question = "SELECT COUNT(*) AS n FROM visits"
    known = curator.ask(question, epsilon=1).margins()["n"][0]
    with pytest.raises(BudgetRefusal, match=rf"Free, .* is 'n' within ±{known:g}\."):
        curator.ask(question, within=1)
    assert curator.ask(question, within=known).charged.epsilon == 0


def test_a_question_that_seems_to_touch_nobody_is_charged_to_all(monkeypatch):
    """Whatever mistake ever made an area empty, no answer is free."""
    monkeypatch.setattr(
        "discreet.question.blocks.reachability.reach",
        lambda _question, _schema, space: Area(space, ()),
    )
    apart = SCHEMA.replace("[tables.visits.columns]", 'blocks = ["city"]\n[tables.visits.columns]')
    curator = discreet.curator(
        {"visits": pd.DataFrame(rows())}, schema=apart, budget=discreet.Budget(epsilon=50)
    )
    curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/2")
    assert curator.spent.epsilon == Fraction(1, 2)
    assert curator.space.parts


def test_price_says_whether_the_account_would_pay():
    curator = clinic(epsilon=1)
    sql = "SELECT COUNT(*) AS n FROM visits"
    assert curator.price(sql, epsilon="1/2").outcome == "admitted"
    refused = curator.price(sql, epsilon=5)
    assert (refused.outcome, refused.refusal.code) == ("B1", "B1")
    curator.ask(sql, epsilon="1/2")
    assert curator.price(sql, epsilon="1/2").free
    assert curator.spent.epsilon == Fraction(1, 2)


def test_decisions_do_not_need_the_data(tmp_path):
    """THREATS A9: with the private source gone, the same is refused and the same is charged."""
    path = tmp_path / "v.parquet"
    pd.DataFrame(rows(300)).to_parquet(path, index=False)
    plugged, unplugged = clinic(str(path), epsilon=1), clinic(str(path), epsilon=1, opened=False)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(path.read_bytes())
    plugged.engine._sources["visits"] = clinic(str(copy)).engine._sources["visits"]
    path.unlink()
    for sql, epsilon in (
        ("SELECT COUNT(*) AS n FROM visits", "1/2"),
        ("SELECT street FROM visits", "1/2"),
        ("SELECT COUNT(*) AS n FROM visits WHERE age > 9", "3/4"),
        ("SELECT AVG(cost) AS n FROM visits", "1/4"),
    ):
        told = []
        for curator in (plugged, unplugged):
            try:
                curator.ask(sql, epsilon=epsilon)
                told.append("charged")
            except DataRefusal:
                told.append("charged")
            except Refusal as refusal:
                told.append(str(refusal))
        assert told[0] == told[1]
        assert plugged.spent == unplugged.spent


def test_questions_in_python_are_asked_and_explained():
    curator = clinic()
    asked = (
        curator.table("visits")
        .where(col("age") >= 18)
        .group_by("city")
        .agg(n=count(), cost=mean("cost"))
    )
    assert curator.explain(asked, epsilon=5).margins()["n"] > 0
    assert curator.ask(asked, epsilon=5).columns == ("city", "n", "cost")


def test_sums_of_any_size_are_answered_alike():
    """THREATS E1: no one's value makes a sum fail, however large the declared bounds."""
    schema = """
    [tables.t]
    unit = "id"
    max_rows_per_unit = 1
    [tables.t.columns]
    id = "integer"
    x = { type = "decimal", bounds = [-1e308, 1e308] }
    n = { type = "integer", bounds = [0, 4611686018427387904] }
    """
    aggregates = ("SUM", "AVG", "VAR_POP", "STDDEV", "MEDIAN", "MAX")
    listed = ", ".join(f"{f}({c}) AS {f}_{c}" for f in aggregates for c in "xn")
    for value, whole in ((0.0, 0), (1e308, 2**62), (-1e308, 2**62)):
        table = pa.table({"id": range(50), "x": [value] * 50, "n": [whole] * 50})
        curator = discreet.curator(
            {"t": table},
            schema=discreet.Schema.from_text(schema),
            budget=discreet.Budget(epsilon=500),
        )
        answer = curator.ask(f"SELECT {listed} FROM t", epsilon=400)
        assert str(answer)
        assert answer.to_arrow().num_rows == len(answer.to_polars()) == 1
        json.dumps(answer.rows[0].values, allow_nan=False)


def test_margins_of_choices_histograms_and_what_has_none():
    answer = clinic().ask(
        "SELECT age, MODE(city) AS top, HISTOGRAM(cost, 0, 400, 800) AS bins, age + 1 AS next, "
        "MEDIAN(cost) * 2 AS twice, COUNT(*) * 2 AS double_n FROM visits GROUP BY age LIMIT 1",
        epsilon=5,
    )
    margins = {name: column[0] for name, column in answer.margins().items()}
    assert margins["age"] is margins["next"] is margins["twice"] is None
    assert margins["top"] > 0
    assert margins["bins"] > 0
    assert margins["double_n"] > 0
    assert "rows)" in str(answer)


def test_sets_grow_with_confidence():
    answer = clinic().ask("SELECT AVG(cost) AS m FROM visits", epsilon=1)
    confidences = ("0.5", "0.95", "0.999", "0.999999999")
    margins = [answer.margins(confidence)["m"][0] for confidence in confidences]
    assert margins == sorted(margins)
    assert margins[-1] > 3 * margins[1]


def test_what_does_not_fit_a_screen_is_counted_once():
    answer = clinic().ask("SELECT age, AVG(cost) AS m FROM visits GROUP BY age", epsilon=20)
    lines = repr(answer).splitlines()
    (told,) = [line for line in lines if line.startswith("…")]
    shown = lines.index(told) - 2
    assert told == f"… {len(answer.rows) - shown} more rows: print(…) shows the first 40"
    assert len(lines) <= 24
    few = clinic().ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=20)
    assert repr(few) == str(few)


def test_an_infinite_epsilon_is_explained():
    concentrated = clinic().ask("SELECT COUNT(*) AS n FROM visits", rho="0.1")
    assert concentrated.loss.epsilon == float("inf")
    assert any(note.startswith("ε = ∞: ") for note in concentrated.notes)
    pure = clinic().ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1")
    assert not any("∞" in note for note in pure.notes)


@pytest.mark.parametrize("budget", ["lots", "3 epsilon", [3], {"epsilon": 3}, object])
def test_a_budget_that_is_no_number_is_refused_as_a_budget(budget):
    with pytest.raises(InvalidParameter) as caught:
        discreet.curator({}, schema="[tables]", budget=budget)
    assert caught.value.what.startswith("the budget is ")
    assert "epsilon must" not in str(caught.value)
    assert "budget=3" in caught.value.fix


def test_only_the_rows_shown_have_sets_computed(monkeypatch):
    answer = clinic().ask("SELECT age, AVG(cost) AS m FROM visits GROUP BY age", epsilon=20)
    computed = []
    real = Answer._sets
    monkeypatch.setattr(Answer, "_sets", lambda *a: computed.extend(a[3]) or real(*a))
    assert "… 72 more rows" in str(answer)
    assert len(computed) == 40


@pytest.mark.parametrize(
    ("value", "margin", "shown"),
    [
        (2**70, 5.0, "1,180,591,620,717,411,303,424 ± 5"),
        (2**60 + 1, 2.2, "1,152,921,504,606,846,977 ± 3"),
        (1.25e-20, 3.1e-21, "1.25e-20 ± 3.12e-21"),
        (3.2e300, 4.5e299, "3.2e+300 ± 4.52e+299"),
        (3.2e300, float("inf"), "3.2e+300 ± inf"),
        (12.5, 0.0, "12.5 ± 0"),
        (0.123456, 0.00123, "0.1235 ± 0.0013"),
        (["a", "b"], 2.0, "a, b (each ± 2.0)"),
    ],
)
def test_numbers_of_any_size_are_shown(value, margin, shown):
    assert cell(value, margin) == shown


def test_explain_says_whose_rows_and_predicts_means():
    plan = clinic().explain("SELECT AVG(cost) AS m FROM visits", epsilon="1/2")
    assert "one unit: patient_id" in str(plan)
    assert "for 1,000 rows" in str(plan)
    assert plan.margins() == {"m": None}
    small, large = (plan.margins(rows=rows)["m"] for rows in (1_000, 100_000))
    assert small > 50 * large > 0


def test_what_python_takes_for_equal_is_planned_apart():
    """1 and true are equal to Python; built questions have no text that would tell them apart."""
    curator = clinic()
    asked = curator.table("visits").agg(n=count()).question()
    one, other = (
        replace(asked, text="", outputs=(Output("n", ColumnRef("n")), Output("k", Literal(value))))
        for value in (1, True)
    )
    assert one == other
    offer = Offer.of(epsilon="1/2")
    shown = [curator.find_plan(q, offer).priced.question.outputs[1] for q in (one, other)]
    assert [type(output.expression.value) for output in shown] == [int, bool]


def test_a_replay_is_read_once():
    curator = clinic()
    text = "SELECT COUNT(*) AS n FROM visits"
    first = curator.ask(text, epsilon="1/2")
    again, same = (curator.ask(text, epsilon="1/2") for _ in range(2))
    assert again is same
    assert (again.replayed, again.value()) == (True, first.value())
    other = curator.ask("SELECT COUNT(*) AS visits FROM visits", epsilon="1/2")
    assert (other.columns, other.value()) == (("visits",), first.value())  # its own names


# --- an answer is built once -----------------------------------------------------------------

BUILT = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 2
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Delft"], nullable = false }
ward = { type = "text", values = ["east", "west"], nullable = false }
"""


@pytest.mark.parametrize(
    ("asked", "built"),
    [
        ([("SELECT COUNT(*) AS n FROM visits", 1)], [1]),
        # The second time it is read off the ledger, and kept as it was read.
        ([("SELECT COUNT(*) AS n FROM visits", 1)] * 3, [1, 1, 0]),
        # Two questions of a statement.
        (
            [
                (
                    "WITH a AS (SELECT COUNT(*) AS n FROM visits WHERE city = 'Cork'), "
                    "b AS (SELECT COUNT(*) AS m FROM visits WHERE city = 'Delft') "
                    "SELECT n + m AS both FROM a, b",
                    1,
                )
            ],
            [2],
        ),
        # What is measured, and three totals that are added up from it.
        (
            [
                (
                    "SELECT city, ward, COUNT(*) AS n FROM visits GROUP BY CUBE (city, ward)",
                    1,
                )
            ],
            [4],
        ),
        # What is known already, free.
        (
            [
                ("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", 2),
                ("SELECT COUNT(*) AS n FROM visits", None),
            ],
            [1, 1],
        ),
    ],
)
def test_an_answer_is_built_once_for_each_question(monkeypatch, asked, built):
    from discreet.release import answer as answers

    rows = pa.table(
        {
            "patient": [i // 2 for i in range(40)],
            "city": ["Cork", "Delft"] * 20,
            "ward": ["east"] * 20 + ["west"] * 20,
        }
    )
    read = answers.read_aggregates
    times: list[int] = []

    def count_readings(*given):
        times[-1] += 1
        return read(*given)

    monkeypatch.setattr(answers, "read_aggregates", count_readings)
    with discreet.curator({"visits": rows}, schema=BUILT, budget=100) as curator:
        for text, epsilon in asked:
            times.append(0)
            answer = curator.ask(text, **({} if epsilon is None else {"epsilon": epsilon}))
            answer.margins()
            str(answer)
    assert times == built
