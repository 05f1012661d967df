"""Counters through the curator whose steps share their noise: charged once, counted once."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.curate import session as sessions
from discreet.curate.counting import Counted
from discreet.errors import Halted, LedgerRefusal, Refusal
from discreet.ledger.account import Account
from discreet.publication import Spend
from discreet.publication.counter import STEPS, Counter
from discreet.publication.measure import Running
from discreet.publication.outline import list_steps
from discreet.publication.verifying import verify_folder

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
day = { type = "date", bounds = [2024-01-01, 2024-01-12], nullable = false }
city = { type = "text", values = ["Cork", "Faro"], nullable = false }
"""
DAYS = 12


def frame(people: int = 1200) -> pd.DataFrame:
    who = np.repeat(np.arange(people), 2)
    days = (who * 5 + np.arange(who.size) % 2) % DAYS
    return pd.DataFrame(
        {
            "who": who,
            "day": (pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D")).date,
            "city": np.array(["Cork", "Faro"])[who % 2],
        }
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    frame().to_parquet(tmp_path / "visits.parquet")
    sessions.init(tmp_path, SCHEMA)
    return tmp_path


def start(curator: discreet.Curator, **other):
    declared = {"by": ["day", "city"], "rho": "1/2", "steps_per_unit": 2, **other}
    return curator.make_release("daily", kind="counter", of="visits", **declared)


def test_one_charge_and_a_release_a_day_as_data_arrive(home):
    data = frame()
    seen = data[data.day <= pd.Timestamp("2024-01-05").date()]
    seen.to_parquet(home / "visits.parquet")
    with discreet.open(home) as curator:
        start(curator)
        spent = curator.spent
        assert spent.rho == pytest.approx(0.5)
        for _ in range(5):
            synopsis = curator.step_release("daily")
        early = synopsis.ask("SELECT COUNT(*) AS n FROM daily", confidence="0.999999999999")
        assert abs(early.value() - len(seen)) <= early.margins["n"][0].within
    data.to_parquet(home / "visits.parquet")
    with discreet.open(home) as curator:
        for _ in range(DAYS - 5):
            synopsis = curator.step_release("daily")
        assert curator.spent == spent
        with pytest.raises(Halted):
            curator.step_release("daily")
        sql = "SELECT city, COUNT(*) AS n FROM daily GROUP BY city"
        told = synopsis.ask(sql, confidence="0.999999999999")
    for n, margin in zip(told.column("n"), told.margins["n"], strict=True):
        assert abs(n - len(data) / 2) <= margin.within
    checks = verify_folder(home / "releases" / "daily")
    assert [check.what for check in checks if not check.holds] == []
    (horizon,) = (check for check in checks if check.what == "loss of the horizon")
    assert "0.5 drawn in 12 steps, 0.5 charged" in horizon.says
    text = (Path(__file__).parents[1] / "docs" / "publication.md").read_text()
    names: dict = {"__name__": "reader"}
    exec(compile(text.split("```python\n")[1].partition("```")[0], "reader", "exec"), names)
    said, drawn, _ = names["read"](home / "releases" / "daily" / "measurements.parquet")
    charged = sum(Fraction(stage["amount"]) for stage in said["stages"])
    assert sum(drawn.values()) == charged == Fraction(1, 2)
    assert "at most 2 steps" in (home / "releases" / "daily" / "card.md").read_text()


def test_steps_that_share_their_noise_have_less_of_it(home):
    """A year of days, a person in one of them: less than a sixth of the noise of single steps."""
    counter = Counter(horizon=365, spend=Spend.concentrated("1/2"))
    single = 1 / Spend.concentrated("1/2").divide(np.ones(365))[0].sharpness
    assert counter.deviations()[-1] < single / 6


def test_verify_notices_a_step_with_less_noise_or_for_more_people(home):
    with discreet.open(home) as curator:
        start(curator)
        curator.step_release("daily")
        curator.step_release("daily")
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = home / "releases" / "daily" / "measurements.parquet"
    held = pq.read_table(file)
    for change in ({"ranks": [1]}, {"parameter": "7"}, {"matrix": [STEPS, 3]}):
        lines = held.to_pylist()
        lines[1].update(change)
        pq.write_table(pa.Table.from_pylist(lines, schema=held.schema), file)
        try:
            wrong = [check.what for check in verify_folder(file.parent) if not check.holds]
        except LedgerRefusal:
            continue
        assert "loss of the horizon" in wrong


class Silent:
    """Noise of nothing: so that a test sees what would be told."""

    def release(self, exact):
        return np.asarray(exact)


def told(counted: Counted, touched: int, rows: list[tuple[int, str]], step: int) -> int:
    """What step ``step`` would publish of these (day, owner), without noise; weights all one."""
    query = Running(1, np.ones(step, dtype=np.int64), touched, 1, Silent())
    days = np.array([day for day, _ in rows], dtype=np.int32)
    owners = np.array([who for _, who in rows], dtype=object)
    (found,) = counted.draw(query, [days, owners], [9], step)
    return int(found.values[0])


@pytest.mark.parametrize("touched", [1, 2, 3])
def test_a_person_is_counted_in_so_many_steps_whatever_their_rows_become(tmp_path, touched):
    """Rows that move to today every day: an adversary's, who would be counted for ever."""
    for folder in (None, tmp_path / "kept"):
        counted = Counted(folder, {"a": 1})
        others = [(step, f"once {step}") for step in range(6)]
        totals = [
            told(counted, touched, [(step - 1, "mover"), *others], step) for step in range(1, 7)
        ]
        assert totals == [step + min(step, touched) for step in range(1, 7)]


def test_what_a_step_counted_does_not_change_with_the_rows(tmp_path):
    counted = Counted(tmp_path / "kept", {"a": 1})
    assert told(counted, 1, [(0, "a"), (0, "b")], 1) == 2
    again = Counted(tmp_path / "kept", {"a": 1})  # another process; b is gone, c came late
    assert told(again, 1, [(0, "a"), (0, "c"), (1, "d")], 2) == 3
    assert told(again, 1, [], 1) == 2
    with pytest.raises(Refusal, match="another counter"):
        Counted(tmp_path / "kept", {"a": 2})
    assert repr(again) == "Counted(withheld)"


def test_names_of_owners_are_not_confused(tmp_path):
    """Two columns of a unit: ("a", "b,c") is not ("a,b", "c")."""
    counted = Counted(None, {})
    query = Running(1, np.ones(1, dtype=np.int64), 1, 1, Silent())
    days = np.zeros(2, dtype=np.int32)
    first = np.array(["a", 'a", "b'], dtype=object)
    second = np.array(['b", "c', "c"], dtype=object)
    (found,) = counted.draw(query, [days, first, second], [9], 1)
    assert found.values.tolist() == [2]
    assert len(counted._find(1)[0]) == 2


def test_whoever_is_killed_tells_what_was_counted_first(home, monkeypatch):
    """After the count and before it is stored: the data change, the step does not."""
    monkeypatch.setattr("discreet.publication.counter.Counter.deviations", lambda self: [1] * 12)

    def dying(self, receipt, answer):
        raise KeyboardInterrupt

    with discreet.open(home) as curator:
        start(curator)
        with monkeypatch.context() as patch:
            patch.setattr(Account, "publish", dying)
            with pytest.raises(KeyboardInterrupt):
                curator.step_release("daily")
    (file,) = home.rglob("000001.counted")
    before = file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    frame().head(2).to_parquet(home / "visits.parquet")
    with discreet.open(home) as curator:
        spent = curator.spent
        curator.step_release("daily")
        assert curator.spent == spent
    assert file.read_text() == before
    assert sum(json.loads(before)[1]) == (frame().day == pd.Timestamp("2024-01-01").date()).sum()


def test_without_what_was_counted_nothing_is_told(home):
    with discreet.open(home) as curator:
        start(curator)
        curator.step_release("daily")
    shutil.rmtree(home / "ledger.sqlite.runs" / "counters")
    with discreet.open(home) as curator, pytest.raises(LedgerRefusal, match="is gone"):
        curator.step_release("daily")


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"rho": None, "epsilon": 1}, "Gaussian noise"),
        ({"steps_per_unit": 0}, "in how many steps"),
        ({"steps_per_unit": 13}, "no more than"),
        ({"of": "SELECT day FROM visits"}, "whose a row is"),
    ],
    ids=str,
)
def test_counters_that_cannot_be_are_refused_before_paying(home, declared, says):
    with discreet.open(home) as curator:
        with pytest.raises(Refusal, match=says):
            curator.make_release(
                "daily",
                **{
                    "kind": "counter",
                    "of": "visits",
                    "by": ["day"],
                    "rho": 1,
                    "steps_per_unit": 1,
                    **declared,
                },
            )
        assert curator.spent.rho == 0


def test_the_parts_of_steps_are_those_of_the_worst_unit():
    """Added up they are the horizon's loss, exactly; no unit moves the steps further (Lemma 11)."""
    counter = Counter(
        horizon=9, spend=Spend.concentrated("3/8", rows_per_unit=3), cells=2, steps_per_unit=4
    )
    steps = list_steps(counter)
    total = sum((3 * one.reach) ** 2 for one in steps) / (2 * counter.noise.sigma_squared)
    assert total == counter.spend.amount
    matrix = np.array([[*one.factor[::-1], *[0] * (9 - len(one.factor))] for one in steps])
    draw = np.random.default_rng(3)
    for _ in range(200):
        moved = np.zeros((9, 2))
        for step in draw.choice(9, 4, replace=False):
            moved[step, draw.integers(2)] = draw.integers(-3, 4)
        assert np.square(matrix @ moved).sum() <= sum((3 * one.reach) ** 2 for one in steps)
