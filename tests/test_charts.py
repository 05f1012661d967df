"""Pictures of answers: what is drawn is what was released, and nothing that is not known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import altair
import pyarrow as pa
import pytest
from cli_cases import BY_CITY, is_refusal, make_session, runner

import discreet
from discreet import charts
from discreet.audit.observing import observe
from discreet.errors import InvalidParameter

WARDS = ["surgery", "heart", "children"]
SCHEMA = """
[tables.visits]
unit = "pid"
max_rows_per_unit = 1
[tables.visits.columns]
pid = "integer"
ward = { type = "text", values = ["surgery", "heart", "children", "nobody"] }
room = { type = "integer", bounds = [0, 93] }
floor = { type = "integer", bounds = [0, 7] }
day = { type = "date", bounds = ["2024-01-01", "2024-01-30"] }
sex = { type = "text", values = ["F", "M"] }
cost = { type = "decimal", bounds = [0, 100] }
"""


@pytest.fixture(scope="module")
def clinic() -> Iterator[discreet.Curator]:
    n = 900
    table = pa.table(
        {
            "pid": range(n),
            "ward": [WARDS[i % 3] if i % 10 else None for i in range(n)],
            "room": [i % 94 for i in range(n)],
            "floor": [i % 8 for i in range(n)],
            "day": [date(2024, 1, 1) + timedelta(i % 30) for i in range(n)],
            "sex": ["FM"[i % 2] for i in range(n)],
            "cost": [float(i % 100) for i in range(n)],
        }
    )
    schema = discreet.Schema.from_text(SCHEMA)
    budget = discreet.Budget(epsilon=10_00)
    with discreet.curator({"visits": table}, schema=schema, budget=budget) as curator:
        yield curator


def ask(clinic: discreet.Curator, question: str, epsilon: str = "5") -> discreet.Answer:
    return clinic.ask(f"{question}", epsilon=epsilon)


def drawn(picture: charts.Picture) -> list[dict[str, Any]]:
    return list(picture.spec["data"]["values"])


def marks(picture: charts.Picture) -> list[str]:
    layers = [layer["mark"] for layer in picture.spec.get("layer", [picture.spec])]
    return [mark if isinstance(mark, str) else mark["type"] for mark in layers]


def test_bars_are_the_released_counts_with_their_intervals(clinic: discreet.Curator) -> None:
    answer = ask(clinic, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    picture = answer.draw()
    ends = answer.intervals()["n"]
    found = {row["group"]: (row["value"], row["low"], row["high"]) for row in drawn(picture)}
    for row, interval in zip(answer.rows, ends, strict=True):
        ward, n = row.values
        assert interval is not None
        assert found["(none)" if ward is None else ward] == (n, interval.low, interval.high)
    assert marks(picture)[0] == "bar"
    assert [row["none"] for row in drawn(picture)] == [False] * 4 + [True]  # apart, and last


def test_means_are_points_and_need_not_begin_at_zero(clinic: discreet.Curator) -> None:
    answer = ask(clinic, "SELECT ward, AVG(cost) AS mean FROM visits GROUP BY ward")
    picture = answer.draw()
    assert marks(picture)[0] == "point"
    assert picture.spec["layer"][0]["encoding"]["y"]["scale"] == {"zero": False}


def test_a_group_of_which_nothing_is_known_is_not_drawn(clinic: discreet.Curator) -> None:
    question = "SELECT ward, AVG(cost) AS mean FROM visits GROUP BY ward"
    with observe("one draw in forty would tell of people"):
        answer = ask(clinic, question, "0.5")
    says = {
        row[0]: ends[1]["says"]
        for row, ends in zip(answer.to_json()["rows"], answer.to_json()["intervals"], strict=True)
    }
    assert says["nobody"] in ("anything", "no people")
    picture = answer.draw()
    assert "nobody" not in {row["group"] for row in drawn(picture)}
    assert "without a value: see the table" in picture.spec["title"]["subtitle"]


def test_days_are_dates_on_a_line_with_a_band(clinic: discreet.Curator) -> None:
    picture = ask(clinic, "SELECT day, COUNT(*) AS n FROM visits GROUP BY day").draw()
    assert marks(picture) == ["area", "line"]
    assert picture.spec["layer"][1]["encoding"]["x"]["type"] == "temporal"
    assert drawn(picture)[0]["group"] == "2024-01-01"
    assert len(drawn(picture)) == 30  # the days; who has none is told in words
    assert "without a key: " in picture.spec["title"]["subtitle"]


def test_ranks_are_never_on_the_axis_of_values(clinic: discreet.Curator) -> None:
    answer = ask(clinic, "SELECT sex, MEDIAN(cost) AS middle FROM visits GROUP BY sex")
    picture = answer.draw()
    for row, interval in zip(drawn(picture), answer.intervals()["middle"], strict=True):
        if interval is None:
            assert row["low"] is None
            assert row["high"] is None
    if answer.margin_units["middle"] == "ranks" and not any(answer.intervals()["middle"]):
        assert "ranks" in picture.spec["title"]["subtitle"]


def test_of_many_groups_it_says_how_many_are_shown(clinic: discreet.Curator) -> None:
    shown = ask(clinic, "SELECT room, COUNT(*) AS n FROM visits GROUP BY room").to_json()
    named = {**shown, "chart": {**shown["chart"], "kind": "bars"}}
    picture = charts.draw_answer(named)
    assert len(drawn(picture)) == 40
    assert "40 of 95 groups shown" in picture.spec["title"]["subtitle"]


def test_two_keys_are_bars_side_by_side_or_a_heat_map(clinic: discreet.Curator) -> None:
    few = ask(clinic, "SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY ward, sex").draw()
    assert "xOffset" in few.spec["layer"][0]["encoding"]
    many = ask(clinic, "SELECT ward, floor, COUNT(*) AS n FROM visits GROUP BY ward, floor").draw()
    assert marks(many) == ["rect"]
    assert "see the table" in many.spec["title"]["subtitle"]


def test_a_histogram_has_its_edges(clinic: discreet.Curator) -> None:
    picture = ask(clinic, "SELECT HISTOGRAM(cost, 0, 10, 50, 100) AS h FROM visits").draw()
    assert [(row["from"], row["to"]) for row in drawn(picture)] == [(0, 10), (10, 50), (50, 100)]
    assert all(row["low"] <= row["value"] <= row["high"] for row in drawn(picture))


def test_bars_of_a_histogram_stand_on_zero(clinic: discreet.Curator) -> None:
    picture = ask(clinic, "SELECT HISTOGRAM(cost, 0, 20, 100) AS h FROM visits").draw()
    assert picture.spec["layer"][0]["encoding"]["y2"] == {"datum": 0}


def test_days_and_a_few_series_are_lines_and_many_a_heat_map(clinic: discreet.Curator) -> None:
    for keys in ("day, sex", "sex, day"):
        picture = ask(clinic, f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY {keys}").draw()
        assert marks(picture) == ["area", "line"]
        line = picture.spec["layer"][1]["encoding"]
        assert (line["x"]["type"], line["x"]["title"]) == ("temporal", "day")
        assert {row["series"] for row in drawn(picture)} == {"F", "M", "(none)"}
    many = ask(clinic, "SELECT day, floor, COUNT(*) AS n FROM visits GROUP BY day, floor").draw()
    assert marks(many) == ["rect"]


def test_a_heat_map_says_how_much_of_each_key_it_shows(clinic: discreet.Curator) -> None:
    picture = ask(clinic, "SELECT room, floor, COUNT(*) AS n FROM visits GROUP BY 1, 2").draw()
    assert len(drawn(picture)) == 40 * 9
    assert "40 of 95 of room shown" in picture.spec["title"]["subtitle"]


def test_a_picture_is_as_wide_as_it_is_wanted(clinic: discreet.Curator) -> None:
    answer = ask(clinic, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    narrow, broad = answer.draw(wide=300), answer.draw(wide=900)
    for picture, wide in ((narrow, 300), (broad, 900)):
        assert f'width="{wide}"' in picture.svg()[:200]
        assert picture.title == "n by ward"
    angles = [p.spec["layer"][0]["encoding"]["x"]["axis"]["labelAngle"] for p in (narrow, broad)]
    assert angles == [-40, 0]
    room = ask(clinic, "SELECT room, COUNT(*) AS n FROM visits GROUP BY room")
    assert 'width="300"' in room.draw(wide=300).svg()[:200]


def test_what_is_computed_from_answers_is_drawn_too(clinic: discreet.Curator) -> None:
    question = (
        "SELECT ward, n / SUM(n) OVER () AS share FROM "
        "(SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)"
    )
    picture = ask(clinic, question).draw()
    assert drawn(picture)
    picture.svg()


@pytest.mark.parametrize("paper", ["light", "dark"])
def test_it_is_rendered_without_a_request(clinic: discreet.Curator, paper: Any) -> None:
    picture = ask(clinic, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward").draw()
    text = picture.svg(paper=paper)
    assert text.startswith('<svg role="img" ')
    assert text.count("<path") > 10
    links = set(re.findall(r"https?://[^\"'> ]+", text))
    assert links <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"href|<script|<image|url\(", text)


def test_a_notebook_gets_an_altair_chart_and_a_table_with_a_picture(
    clinic: discreet.Curator,
) -> None:
    answer = ask(clinic, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    assert isinstance(answer.plot(), altair.TopLevelMixin)
    assert answer.plot().to_dict()["title"]["text"] == "n by ward"
    assert "<table>" in answer._repr_html_()
    assert "<svg" in answer._repr_html_()
    assert "<svg" not in ask(clinic, "SELECT COUNT(*) AS n FROM visits")._repr_html_()


def test_a_key_is_text_whatever_it_looks_like() -> None:
    rows = [{"group": "<b>&", "value": 1, "low": 0, "high": 2, "none": False, "series": None}]
    text = charts.bars(rows, x="x", y="y", title="<script>").svg()
    assert "<script" not in text
    assert "<b>" not in text


def test_what_cannot_be_drawn_is_refused(clinic: discreet.Curator, tmp_path: Path) -> None:
    answer = ask(clinic, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    with pytest.raises(InvalidParameter, match="no column of numbers 'm'"):
        answer.draw("m")
    with pytest.raises(InvalidParameter, match="P9"):
        answer.draw().save(tmp_path / "a.png")
    with pytest.raises(InvalidParameter, match="P9"):
        answer.draw().save(tmp_path / "missing" / "a.svg")
    with pytest.raises(InvalidParameter, match="light or for dark"):
        answer.draw().svg(paper="blue")  # type: ignore[arg-type]
    texts = ask(clinic, "SELECT MODE(ward) AS most FROM visits")
    with pytest.raises(InvalidParameter, match="no column of numbers"):
        texts.draw()


def test_the_command_line_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, run = make_session(tmp_path / "clinic"), runner(capsys)
    asked = ("ask", BY_CITY, "--epsilon", "0.1", "-s", home)
    _, before, _ = run("balance", "--json", "-s", home)
    assert is_refusal(run(*asked, "--plot", "a.png"), "P9")
    _, after, _ = run("balance", "--json", "-s", home)
    assert json.loads(after) == json.loads(before)  # refused before anything is paid
    code, out, _ = run(*asked, "--plot", tmp_path / "a.svg")
    assert code == 0
    assert "Oslo" in out or "city" in out
    assert (tmp_path / "a.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("last", "shown"),
    [
        ("2024-02-29T17:29:50", {"17:25", "17:25:30"}),
        ("2024-02-29T23:10:00", {"18:00", "23:00"}),
        ("2024-03-04T09:00:00", {"2 Mar", "12:00"}),
        ("2027-03-04T09:00:00", {"2025", "Jul"}),
    ],
)
def test_the_afternoon_is_no_morning(last, shown):
    """What is written under a line over time is what a clock of 24 hours shows."""
    points = [("2024-02-29T17:24:50", 0.1), (last, 0.2)]
    drawn = charts.grammar.lines([("a", points)], x="", y="y", title="", x_scale="time")
    written = re.findall(r">([^<>]+)</text>", drawn.svg())
    assert shown <= set(written)
    assert not re.search(r"\b05:2|[AP]M\b", " ".join(written))
    rows = [{"group": at, "value": v, "low": v, "high": v} for at, v in points]
    timeline = charts.grammar.timeline(rows, x="at", y="n", title="", series=None)
    assert shown <= set(re.findall(r">([^<>]+)</text>", timeline.svg()))
    timeline.altair()
