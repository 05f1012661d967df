"""``discreet audit``: what it runs, what it files, and how it ends."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from html.parser import HTMLParser

import pytest
from cli_cases import BY_CITY, is_refusal, make_session, runner

from discreet import mechanisms
from discreet.accounting.law import DiscreteLaplaceLaw
from discreet.audit import exact, fit, game, installation, replay, report, timing
from discreet.audit.fuzzing import Fuzz, Moved
from discreet.audit.verdict import Verdict
from discreet.audit.zoo import animals, walk
from discreet.cli import audit as door
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import discrete_laplace
from discreet.question.question import AGGREGATES

ALPHA = Fraction(1, 10**9)
SUBJECTS = installation.subjects()


def ids(subject) -> str:
    return type(subject.mechanism).__name__


# --- what is run -------------------------------------------------------------------------------


def test_every_mechanism_of_the_library_is_audited():
    kinds = {getattr(mechanisms, name) for name in mechanisms.__all__}
    promising = {one for one in kinds if isinstance(one, type) and hasattr(one, "loss")}
    promising -= {mechanisms.AdaptiveRun}  # which AdaptiveLaplace starts
    assert len(promising) > 20
    assert {type(one.mechanism) for one in SUBJECTS} == promising


@pytest.mark.parametrize("subject", [one for one in SUBJECTS if one.law], ids=ids)
def test_the_law_is_proved_on_a_pair_that_needs_most_of_the_promise(subject):
    found = installation._compute_law(subject)
    assert found.verdict is Verdict.PROVED
    seen = report.share(found)
    assert seen <= 1 + 2**-30
    idle = {"Quantile", "Sparse", "SmoothMedian", "ProposeTestRelease"}
    assert seen > 0.5 or ids(subject) in idle


def test_less_noise_is_found_by_the_law_the_releases_and_the_game():
    """A mechanism whose releases have two thirds of the noise it promises."""
    honest = next(one for one in SUBJECTS if isinstance(one.mechanism, Laplace))
    loud = Laplace(sensitivity=7, epsilon="9/10")
    sly = replace(honest, law=loud.law, release=loud.release)
    assert installation._compute_law(sly).alarm
    assert installation._fit_releases(replace(honest, release=loud.release), 6_000).alarm
    sly = replace(honest, release=lambda x: Laplace(sensitivity=7, epsilon=3).release(x))
    assert installation._play_game(sly, 6_000).alarm


@pytest.mark.parametrize("subject", SUBJECTS, ids=ids)
def test_every_mechanism_can_be_played_against(subject):
    assert installation._play_game(subject, 700).verdict is Verdict.CONSISTENT


def test_samplers_bits_and_time():
    found = [installation.run_task(task) for task in installation.noise_tasks(quick=True)]
    assert [one.finding.verdict for one in found] == [Verdict.CONSISTENT] * len(found)


def test_every_aggregate_is_asked_and_answered():
    """No question of the audit is refused, so none of the 20 passes by not being asked."""
    found = [installation.run_task(task) for task in installation.question_tasks(quick=True)]
    assert [one.subject for one in found] == [one.usage for one in AGGREGATES.values()]
    assert all(not one.finding.refused and one.finding.cases for one in found)
    assert [one.finding.verdict for one in found] == [Verdict.CONSISTENT] * len(found)


def test_a_part_of_a_fuzz_has_its_own_findings_and_refusals():
    tried = {"a": 10, "b": 9, "c": 0, "d": 0}
    whole = Fuzz(tried, {"c": "Q1"}, (Moved("b", "world", "it moves"),))
    assert installation.part_of(whole, ["a"]) == Fuzz({"a": 10}, {}, ())
    assert installation.part_of(whole, ["d"]).verdict is Verdict.UNDECIDED
    assert installation.part_of(whole, ["b"]).alarm
    assert installation.part_of(whole, ["c"]).verdict is Verdict.UNDECIDED


def test_a_schema_is_asked_of_its_rows_its_bounds_and_its_lists():
    asked = installation.schema_questions(installation.EXAMPLE)
    assert asked == (
        'SELECT COUNT(*) AS n FROM "visits"',
        'SELECT "city", COUNT(*) AS n FROM "visits" GROUP BY "city"',
        'SELECT AVG("age") AS mean FROM "visits"',
        'SELECT AVG("cost") AS mean FROM "visits"',
    )
    assert installation._quote('a"b') == '"a""b"'


# --- what is filed -----------------------------------------------------------------------------

COUNT = Laplace(sensitivity=3, epsilon="1/2")


def done(finding, *, part=installation.LAWS, subject="a <subject> & more") -> installation.Done:
    return installation.Done(part, subject, finding, 0.25)


def made(*findings, zoo=None) -> report.Report:
    return report.Report(
        "this installation",
        tuple(done(one) for one in findings),
        zoo,
        datetime(2026, 3, 4, 5, 6, tzinfo=UTC),
        12.5,
        False,
        report.environment(),
    )


KEPT, BROKEN = exact(COUNT, 40, 43), exact(COUNT, 40, 45)


def test_a_broken_promise_is_told_first():
    good, bad = made(KEPT), made(KEPT, BROKEN)
    assert good.clean
    assert not bad.clean
    assert bad.broken == (bad.checks[1],)
    assert good.sentence == "1 checks of this installation: no promise was found broken."
    assert bad.sentence == "2 checks of this installation: 1 found a promise broken."
    assert 'class="banner bad"' in bad.to_html()
    assert 'class="banner bad"' not in good.to_html()


def test_what_came_to_no_conclusion_is_told(monkeypatch, capsys):
    """A question that was never compared is not one in which nothing was found."""
    asked = Fuzz({"SELECT pid FROM visits": 0}, {"SELECT pid FROM visits": "Q12"}, ())
    found = made(KEPT, asked)
    assert found.sentence.endswith("no promise was found broken. 1 came to no conclusion.")
    assert "could be checked (refused: Q12)" in asked.sentence
    monkeypatch.setenv("COLUMNS", "120")
    door._show(found, [])
    row = next(line for line in capsys.readouterr().out.splitlines() if "exact laws" in line)
    assert re.findall(r"\d+", row) == ["2", "1", "0", "1", "0"]


def test_an_auditor_that_misses_a_known_bug_is_not_clean():
    animal = animals(named="unclipped sum")
    assert made(KEPT, zoo=walk([animal])).clean
    for blind in (replace(animal, broken=animal.twin), replace(animal, twin=animal.broken)):
        found = made(KEPT, zoo=walk([blind]))
        assert found.blind
        assert not found.clean
        assert "failed its own test" in found.sentence


def test_the_json_has_everything_and_its_digest():
    found = made(KEPT, BROKEN, zoo=walk([animals(named="unclipped sum")]))
    written = json.loads(json.dumps(found.to_json()))
    claimed = written.pop("digest")
    plain = json.dumps(written, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert claimed == report.digest(written) == hashlib.sha256(plain.encode()).hexdigest()
    assert written["format"] == 1
    assert written["clean"] is False
    assert written["started"] == "2026-03-04T05:06:00+00:00"
    assert written["environment"].keys() >= {"discreet", "python", "numpy", "duckdb", "system"}
    assert [one["verdict"] for one in written["checks"]] == ["proved", "broken"]
    assert written["checks"][0]["epsilon"] == ["0.5", "0.5"]
    assert written["zoo"]["specimens"][0]["found"] is True
    assert claimed == report.digest(dict(reversed(written.items())))
    written["checks"][1]["verdict"] = "proved"
    assert claimed != report.digest(written)
    assert claimed in found.to_html()


def test_how_much_was_seen_of_what_is_allowed():
    assert report.share(KEPT) == 1
    assert report.share(BROKEN) == pytest.approx(5 / 3)
    assert report.share(exact(Gaussian(sensitivity=3, rho="1/8"), 40, 42)) == pytest.approx(4 / 9)
    both = exact(COUNT.law, 40, 43, promised=report.Loss.approximate("1/4", "1/2"))
    gap = float(both.delta_at("1/4")[1])
    assert report.share(both) == pytest.approx(2 * gap)
    played = game(
        lambda x, n: x + discrete_laplace(6, n), 0, 3, trials=4000, promised="1/2", batch=True
    )
    assert report.share(played) == pytest.approx(float(played.lower) / 0.5)
    drawn = fit(lambda n: discrete_laplace(6, n), DiscreteLaplaceLaw(0, Fraction(6)), alpha=ALPHA)
    assert report.share(drawn) == drawn.distance / drawn.allowed
    timed = timing(len, [3], [4], rounds=200)
    assert report.share(timed) == abs(timed.statistic) / timed.allowed
    replayed = replay(lambda rows: COUNT.release(len(rows)), [3, 5], [3, 5, 8])
    assert report.share(replayed) is None
    nothing = game(lambda x, size: x + discrete_laplace(8, size), 0, 1, promised=0, batch=True)
    assert report.share(nothing) is None


class Tags(HTMLParser):
    """Every tag, with what it names outside of itself."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.outside: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.outside += [
            (k, v) for k, v in attrs if k in {"src", "href", "data", "action", "srcset"}
        ]
        if tag not in {"meta", "br", "rect", "line", "polyline", "polygon"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in {"rect", "line", "polyline", "polygon"}:
            assert self.open.pop() == tag


def test_the_page_is_one_file_that_asks_for_nothing():
    found = made(KEPT, BROKEN, zoo=walk([animals(named="unclipped sum")]))
    page = found.to_html()
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert not tags.outside
    assert not tags.seen & {"script", "link", "iframe", "img", "object", "form"}
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_what_is_quoted_is_escaped_and_drawn():
    page = made(KEPT).to_html()
    assert "a &lt;subject&gt; &amp; more" in page
    assert "<subject>" not in page
    assert page.count("<figure>") == 1
    assert "100 % of what is allowed" in page


# --- how it ends -------------------------------------------------------------------------------


@pytest.fixture
def run(capsys, monkeypatch):
    """The command, with little to do besides a session's questions."""
    monkeypatch.setattr(installation, "mechanism_tasks", lambda quick: (task(KEPT),))
    monkeypatch.setattr(installation, "noise_tasks", lambda quick: ())
    monkeypatch.setattr(installation, "question_tasks", lambda quick: ())
    monkeypatch.setattr("discreet.audit.zoo._ALL", (animals(named="unclipped sum"),))
    return runner(capsys)


def task(finding) -> installation.Task:
    return installation.Task(installation.LAWS, "a subject", lambda: finding)


def test_nothing_found_ends_with_0_and_files_both(run, tmp_path):
    page, data = tmp_path / "a.html", tmp_path / "a.json"
    code, out, err = run("audit", "--quick", "--html", page, "--json", data)
    assert code == 0
    assert "no promise was found broken" in out
    assert "1 of 1 known bugs found" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert err == ""
    written = json.loads(data.read_text(encoding="utf-8"))
    assert written["quick"] is True
    assert written["digest"] in page.read_text(encoding="utf-8")


def test_a_breach_ends_with_1(run, monkeypatch, tmp_path):
    monkeypatch.setattr(installation, "noise_tasks", lambda quick: (task(BROKEN),))
    data = tmp_path / "a.json"
    code, out, _ = run("audit", "--json", data)
    assert code == door.FOUND == 1
    assert "BROKEN" in out
    assert json.loads(data.read_text(encoding="utf-8"))["clean"] is False


def test_a_refusal_ends_with_2_before_anything_is_done(run, monkeypatch, tmp_path):
    def never(**_):
        raise AssertionError("the work was started")

    monkeypatch.setattr(installation, "run_task", never)
    assert is_refusal(run("audit", "--html", tmp_path / "nowhere" / "a.html"), "P9")
    assert is_refusal(run("audit", tmp_path), "S20")
    assert list(tmp_path.iterdir()) == []


def test_trying_a_file_leaves_what_is_in_it(run, tmp_path):
    kept = tmp_path / "old.html"
    kept.write_text("an older report", encoding="utf-8")
    assert is_refusal(run("audit", tmp_path / "nowhere", "--html", kept), "S20")
    assert kept.read_text(encoding="utf-8") == "an older report"


def test_a_session_is_audited_without_its_private_tables(run, tmp_path):
    home = make_session(tmp_path / "clinic")
    assert run("ask", BY_CITY, "--epsilon", "0.1", "-s", home)[0] == 0
    for table in home.glob("*.parquet"):
        table.unlink()
    data = tmp_path / "a.json"
    code, out, err = run("audit", home, "--quick", "--json", data)
    assert code == 0, err
    written = json.loads(data.read_text(encoding="utf-8"))
    mine = [one for one in written["checks"] if one["part"] == installation.SESSION]
    assert [one["subject"] for one in mine] == ["the schema", BY_CITY]
    assert all(one["verdict"] == "consistent" and not one["refused"] for one in mine)
    assert "the session clinic" in written["subject"]
    assert "this session" in out
