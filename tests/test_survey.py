"""Surveys: declarations, reports in Python and in JavaScript, what is stored, what is refused."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from services import require

import discreet
from discreet.cli import main
from discreet.errors import Refusal
from discreet.local import (
    Direct,
    Hadamard,
    HashedSets,
    HybridMean,
    LocalHashing,
    OneBitMean,
    PiecewiseMean,
    SubsetSelection,
    Unary,
)
from discreet.local.collection import Collection
from discreet.local.compare import compare
from discreet.local.page import answer_page, policy, results_page
from discreet.local.plan import plan, read_reports, write_report
from discreet.local.survey import Survey
from discreet.noise.entropy import random_bytes, use_source

STATIC = Path(discreet.__file__).parent / "local" / "static"
CANARY = "zebra-8675309"

TEXT = """
name = "smoking"
title = "Smoking among students"
epsilon = 2
[[questions]]
name = "smokes"
text = "Do you smoke?"
options = ["never", "sometimes", "daily"]
[[questions]]
name = "sleep"
text = "How many hours did you sleep?"
lower = 0
upper = 14
"""


@pytest.fixture
def survey() -> Survey:
    return Survey.parse(TEXT)


@pytest.fixture
def collection(survey, tmp_path) -> Collection:
    return Collection.new(survey, tmp_path / "smoking", tokens=5)


# --- the same bytes, the same report ---------------------------------------------------------

RANDOMIZERS = [
    Direct(2, epsilon="1/2"),
    Direct(7, epsilon=1),
    Unary(9, epsilon=1),
    Unary(21, epsilon=3, optimised=False),
    SubsetSelection(13, epsilon="1/2"),
    SubsetSelection(40, epsilon=2),
    LocalHashing(100, epsilon=1),
    LocalHashing(1000, epsilon=4),
    HashedSets(100, epsilon=1),
    HashedSets(2**40, epsilon=4),
    HashedSets(9, epsilon=8),
    Hadamard(100, epsilon=1),
    OneBitMean(lower=0, upper=9, epsilon=1),
    PiecewiseMean(lower=-3, upper="9.5", epsilon=1),
    HybridMean(lower=0, upper=9, epsilon="1/2"),
    HybridMean(lower=0, upper=9, epsilon=2),
]
DRIVER = """
const made = require(process.argv[1]);
const groups = JSON.parse(require("fs").readFileSync(0));
const out = groups.map(([plan, cases]) => cases.map(([value, hex]) => {
  const bytes = Buffer.from(hex, "hex");
  let place = 0;
  const draw = (count) => {
    if (place + count > bytes.length) throw new Error("more than was recorded");
    return bytes.subarray(place, place += count);
  };
  return [made[plan.kind](draw, value, plan), place];
}));
console.log(JSON.stringify(out));
"""
RECORDED = 100_000 // len(RANDOMIZERS)
"""Inputs of each kind, the same in every run: a hundred thousand of all."""
DIGESTS = json.loads(
    (Path(__file__).parent / "recorded" / "local_reports.json").read_text(encoding="utf-8")
)
"""Of the reports that are made of them, by the randomizer."""


def in_javascript(groups):
    """What the page's script makes of plans with answers and bytes; and how many it used."""
    run = subprocess.run(
        [require("node"), "-e", DRIVER, STATIC / "randomize.js"],
        input=json.dumps(groups),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-500:]
    return json.loads(run.stdout)


def in_python(randomizer, value, data):
    used = 0

    def source(count):
        nonlocal used
        used += count
        return data[used - count : used]

    with use_source(source):
        report = write_report(randomizer, randomizer.release(value))
    return [report, used]


def answer_of(randomizer, drawn):
    """An answer from eight bytes; numbers a little beyond their bounds, too."""
    whole = int.from_bytes(drawn, "little")
    if hasattr(randomizer, "categories"):
        return whole % randomizer.categories
    low, high = float(randomizer.lower) - 1, float(randomizer.upper) + 1
    return low + (high - low) * (whole / 2**64)


def answers_of(randomizer, count):
    return [answer_of(randomizer, random_bytes(8)) for _ in range(count)]


def agree(randomizer, count, draw=random_bytes):
    """What both make of the same answers and bytes: one process for all; what was made."""
    cases, expected = [], []
    for _ in range(count):
        value, data = answer_of(randomizer, draw(8)), draw(600)
        expected.append(in_python(randomizer, value, data))
        cases.append([value, data[: expected[-1][1]].hex()])  # and not a byte more
    (found,) = in_javascript([[plan(randomizer), cases]])
    apart = [case for case, one, other in zip(cases, found, expected, strict=True) if one != other]
    assert apart[:1] == []
    return expected


def read_stream(seed):
    """The same bytes in every run."""
    data, place = hashlib.shake_256(seed.encode()).digest(608 * RECORDED), 0

    def draw(count):
        nonlocal place
        place += count
        return data[place - count : place]

    return draw


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_javascript_and_python_agree_on_recorded_inputs(randomizer):
    """A hundred thousand of all kinds; the reports are those of every version so far."""
    made = agree(randomizer, RECORDED, read_stream(repr(randomizer)))
    digest = hashlib.sha256(json.dumps(made).encode()).hexdigest()
    assert digest == DIGESTS[repr(randomizer)]


@pytest.mark.soak
@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_javascript_and_python_agree_on_a_hundred_thousand_new_inputs(randomizer):
    """Of each kind, drawn anew in every run."""
    for _ in range(5):
        agree(randomizer, 20_000)


def test_every_randomizer_of_the_page_is_compared():
    said = "console.log(Object.keys(require(process.argv[1])).join(' '))"
    run = subprocess.run(
        [require("node"), "-e", said, STATIC / "randomize.js"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(run.stdout.split()) == {type(one).__name__ for one in RANDOMIZERS}


def test_javascript_and_python_agree_where_digits_tie():
    """Bytes made so that the first 64 digits are those of the probability, and of rejections."""
    cases, expected = [], []
    for randomizer in (Direct(7, epsilon=1), Unary(5, epsilon=1), Hadamard(5, epsilon=1)):
        for chance in (randomizer.inside, randomizer.outside):
            digits = chance.numerator * 2**64 // chance.denominator
            tie = int(digits).to_bytes(8, "little")
            for data in (tie * 60, b"\xff" * 24 + tie * 57, tie * 8 + random_bytes(500)):
                whole = data + random_bytes(800)
                expected.append(in_python(randomizer, 3, whole))
                cases.append([plan(randomizer), [[3, whole.hex()]]])
    assert any(used > 40 for _, used in expected)  # more digits were asked for
    assert in_javascript(cases) == [[one] for one in expected]


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_reports_are_read_as_they_were_written(randomizer):
    values = answers_of(randomizer, 30)
    reports = randomizer.release(np.array(values))
    written = json.loads(json.dumps([write_report(randomizer, one) for one in reports]))
    assert np.array_equal(read_reports(randomizer, written), reports)
    for bad in (-1, 2**70, "zz", "", CANARY, 0.5, True, None, [1], {"a": 1}, "0" * 400):
        with pytest.raises(Refusal) as refused:
            read_reports(randomizer, [bad])
        assert CANARY not in str(refused.value)


# --- declarations ----------------------------------------------------------------------------


def test_the_price_is_shared_by_the_questions(survey):
    assert survey.loss.epsilon == 2
    assert sum(one.loss.epsilon for one in survey.randomizers) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 2", ""),
        ("epsilon = 2", "epsilon = 0"),
        ("epsilon = 2", "epsilon = true"),
        ("epsilon = 2", 'epsilon = "much"'),
        ('name = "smoking"', 'name = "a b"'),
        ('name = "sleep"', 'name = "smokes"'),
        ('"never", "sometimes", "daily"', '"never"'),
        ('"never", "sometimes", "daily"', '"never", "never"'),
        ('"never", "sometimes", "daily"', '"never", 3'),
        ("lower = 0", "lower = 20"),
        ("lower = 0", ""),
        ("lower = 0", 'options = ["a", "b"]'),
        ("upper = 14", "upper = 14\nweight = 3"),
        ("epsilon = 2", "epsilon = 2\nanalyst = 3"),
        ("[[questions]]", "[[question]]"),
        ("epsilon = 2", "epsilon = "),
    ],
)
def test_declarations_that_do_not_hold_together_are_refused(old, new):
    with pytest.raises(Refusal):
        Survey.parse(TEXT.replace(old, new))


def test_unknown_options_are_refused(survey):
    for answers in ({"smokes": "often", "sleep": 7}, {"smokes": "never", "sleep": "x"}, {}):
        with pytest.raises(Refusal):
            survey.release(answers)
    with pytest.raises(Refusal):
        survey.release_many({"smokes": ["never"]})


def test_results_have_ranges_that_hold(survey):
    count = 3000
    reports = survey.release_many(
        {"smokes": ["never"] * 2000 + ["daily"] * 1000, "sleep": [6.0] * count}
    )
    smokes, sleep = survey.results(reports, beta="1e-9")
    for (name, one), true in zip(smokes.lines, (2000, 0, 1000), strict=True):
        assert one.low <= true <= one.high, name
    assert sleep.lines[0][1].low <= 6 <= sleep.lines[0][1].high
    assert smokes.to_json()["respondents"] == count
    assert survey.results([])[1].lines == ()


PAY = """
name = "pay"
epsilon = "1/2"
[[questions]]
name = "salary"
lower = 0
upper = 1000000
"""


def test_the_range_of_a_mean_lies_between_the_bounds():
    """Few reports at a small price: without the bounds the range would reach beyond both."""
    survey = Survey.parse(PAY)
    reports = survey.release_many({"salary": [0] * 20 + [1_000_000] * 20})
    _, mean = survey.results(reports, beta="1e-9")[0].lines[0]
    assert (mean.low, mean.high) == (0, 1_000_000)
    alone = survey.randomizers[0].estimate(survey.columns(reports)[0], beta="1e-9")
    assert alone.low < 0
    assert alone.high > 1_000_000
    assert alone.value == mean.value


def test_the_results_are_written_without_powers_of_ten(tmp_path, capsys):
    """Tens of thousands of reports, and means of thousands, are numbers that people can read."""
    late = '[[questions]]\nname = "late"\noptions = ["yes", "no"]'
    survey = Survey.parse(PAY.replace('"1/2"', "8") + late)
    collection = Collection.new(survey, tmp_path / "pay", tokens=1)
    with pytest.raises(SystemExit):
        main(["survey", "results", str(collection.directory)])
    assert capsys.readouterr().out == "No reports yet.\n"
    people = 30_000
    answers = {"salary": [456_789] * people, "late": ["no"] * people}
    collection.add(survey.release_many(answers))
    page = tmp_path / "results.html"
    question = "SELECT late, COUNT(*) AS n, AVG(salary) AS mean FROM survey GROUP BY late"
    for asked in (
        ["results", str(collection.directory), "--html", str(page)],
        ["ask", str(collection.directory), question],
    ):
        with pytest.raises(SystemExit) as stop:
            main(["survey", *asked])
        assert not stop.value.code
        said = capsys.readouterr().out
        assert "30,000 reports" in said
        assert re.search(r"\bno\b.* (29|30|31),\d{3}\b", said)
        assert "e+" not in said
        assert "None" not in said
    assert re.search(r"Mean 4\d\d,\d{3}, between 4\d\d,\d{3} and 4\d\d,\d{3}\.", page.read_text())
    assert "from 0 to 1,000,000." in page.read_text()


@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        ("--people", ["--answers", "5", "--people", "-1"]),
        ("--answers", ["--answers", "1", "--people", "9"]),
    ],
)
def test_a_comparison_is_refused_by_the_name_of_its_option(option, arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["local", "compare", "--epsilon", "1", *arguments])
    assert stop.value.code == 2
    assert f"P2: {option} must be a whole number of at least" in capsys.readouterr().err


def test_a_declaration_that_is_not_there_is_said_to_be_a_missing_file(tmp_path):
    with pytest.raises(Refusal, match="check the name of the file"):
        Survey.read(tmp_path / "smoking.toml")


# --- what is stored --------------------------------------------------------------------------


def stored(collection) -> list[tuple]:
    database = sqlite3.connect(collection.directory / "reports.sqlite")
    rows = [
        row
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for row in database.execute(f"SELECT * FROM {table}")
    ]
    database.close()
    return rows


def test_what_is_stored_is_what_was_sent_and_nothing_else(survey, collection):
    token = collection.tokens()[2]
    before = set(stored(collection))
    report = survey.release({"smokes": "daily", "sleep": 5})
    collection.receive(token, report)
    new = set(stored(collection)) - before
    hashed = hashlib.sha256(token.encode()).digest()
    assert (hashed, 1) in new
    (kept,) = [row for row in new if row != (hashed, 1)]
    assert json.loads(kept[1]) == report
    assert len(kept) == 2
    assert collection.reports() == [report]
    assert token.encode() not in (collection.directory / "reports.sqlite").read_bytes()


def test_a_token_counts_once_and_refusals_leave_it_unused(survey, collection):
    token = collection.tokens()[0]
    for bad in ([3, 0], [0], [0, -1], "x", [0, 10**9], [0, 0, 0], {"a": 1}, None):
        with pytest.raises(Refusal):
            collection.receive(token, bad)
    assert collection.reports() == []
    report = survey.release({"smokes": "never", "sleep": 9})
    collection.receive(token, report)
    with pytest.raises(Refusal) as refused:
        collection.receive(token, report)
    assert refused.value.code == "A16"
    with pytest.raises(Refusal) as refused:
        collection.receive("not a token", report)
    assert refused.value.code == "A13"
    assert collection.reports() == [report]


def test_one_token_at_the_same_time_counts_once(survey, collection):
    token, report = collection.tokens()[0], survey.release({"smokes": "never", "sleep": 9})
    start, refused = threading.Barrier(8), []

    def send():
        start.wait()
        try:
            collection.receive(token, report)
        except Refusal as no:
            refused.append(no.code)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert refused == ["A16"] * 7
    assert len(collection.reports()) == 1


def test_reports_are_not_kept_in_the_order_they_came(survey, tmp_path):
    collection = Collection.new(survey, tmp_path / "many", tokens=1)
    sent = [survey.release({"smokes": "never", "sleep": 9}) for _ in range(200)]
    for report in sent:
        collection.add([report])
    assert collection.reports() != sent  # 200 numbers out of 10**5 in the same order: never
    assert sorted(map(str, collection.reports())) == sorted(map(str, sent))


@pytest.mark.parametrize("together", [False, True])
def test_the_bytes_of_the_file_do_not_say_in_which_order_reports_came(survey, tmp_path, together):
    """Attack: read the file itself, in which a database keeps what came last in front."""
    collection = Collection.new(survey, tmp_path / "ordered", tokens=40)
    sent = [survey.release({"smokes": "never", "sleep": one / 4}) for one in range(40)]
    if together:
        collection.add(sent)
    else:
        for token, report in zip(collection.tokens(), sent, strict=True):
            collection.receive(token, report)
    database = sqlite3.connect(collection.directory / "reports.sqlite")
    names = [name for (name,) in database.execute("SELECT name FROM reports ORDER BY name")]
    database.close()
    content = (collection.directory / "reports.sqlite").read_bytes()
    places = [content.index(name) for name in names]
    assert all(content.count(name) == 1 for name in names)
    assert places == sorted(places, reverse=True)  # as their random names say, and nothing else


def test_a_collection_keeps_to_its_survey(collection, survey):
    with pytest.raises(Refusal) as refused:
        Collection.new(survey, collection.directory, tokens=5)
    assert refused.value.code == "S21"
    file = collection.directory / "survey.toml"
    file.write_text(TEXT.replace("epsilon = 2", "epsilon = 3"))
    with pytest.raises(Refusal):
        Collection(collection.directory)
    with pytest.raises(Refusal) as refused:
        Collection(collection.directory.parent)
    assert refused.value.code == "S20"
    assert (collection.directory / "tokens.txt").stat().st_mode & 0o077 == 0


def test_a_page_that_was_changed_is_not_served(collection):
    """Attack: put another script on the disk; its hash must not be published as the page's."""
    page = collection.directory / "page.html"
    page.write_bytes(page.read_bytes().replace(b"JSON.stringify({ survey", b"JSON.stringify({ x"))
    with pytest.raises(Refusal) as refused:
        Collection(collection.directory)
    assert "published" in str(refused.value)


def test_surveys_of_before_kept_no_hash_of_their_page(collection):
    with closing(sqlite3.connect(collection.directory / "reports.sqlite")) as database, database:
        database.execute("DROP TABLE page")
    database.close()
    assert Collection(collection.directory).page == collection.page


def test_a_file_is_reported_once(survey, collection):
    """Attack on oneself: the command typed twice would randomise everybody twice."""
    reports = survey.release_many({"smokes": ["never"] * 3, "sleep": [6.0] * 3})
    collection.add(reports, once=True)
    with pytest.raises(Refusal) as refused:
        collection.add(reports, once=True)
    assert refused.value.code == "A16"
    assert "--other-people" in str(refused.value)
    assert collection.count == 3
    collection.add(reports)
    assert collection.count == 6


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_options_that_look_like_numbers_are_words(tmp_path, name):
    """A reader of files takes 1 and 2 for numbers; the survey offers the words "1" and "2"."""
    text = 'name = "rooms"\nepsilon = 2\n[[questions]]\nname = "rooms"\noptions = ["1", "2", "12"]'
    collection = Collection.new(Survey.parse(text), tmp_path / "rooms", tokens=1)
    if name.endswith("csv"):
        (tmp_path / name).write_text("rooms\n1\n12\n2\n")
    else:
        pq.write_table(pa.table({"rooms": [1, 12, 2]}), tmp_path / name)
    with pytest.raises(SystemExit) as stop:
        main(["survey", "answer", str(collection.directory), "--from", str(tmp_path / name)])
    assert not stop.value.code
    assert collection.count == 3
    (tmp_path / "more.csv").write_text("rooms\n01\n")  # another word
    arguments = ["--from", str(tmp_path / "more.csv"), "--other-people"]
    with pytest.raises(SystemExit) as stop:
        main(["survey", "answer", str(collection.directory), *arguments])
    assert stop.value.code == 2
    assert collection.count == 3


def test_a_crowd_of_false_reports_moves_a_number_as_far_as_is_stated(survey):
    """Poisoning: m reports that nobody drew move a count by m (1 - q) / (p - q), and no further."""
    (smokes, _), lies = survey.randomizers, 40
    honest = np.zeros(1000, dtype=np.int64)
    before = smokes.estimate(np.append(honest, np.full(lies, 0))).values[2]
    after = smokes.estimate(np.append(honest, np.full(lies, 2))).values[2]
    p, q = smokes.inside, smokes.outside
    assert after - before == pytest.approx(float(lies / (p - q)))


# --- pages -----------------------------------------------------------------------------------


def test_the_page_is_one_file_that_runs_only_its_own_script(survey, collection):
    page = answer_page(survey)
    assert collection.page == page.encode()
    assert collection.page_hash == hashlib.sha256(page.encode()).hexdigest()
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert "http://" not in page
    assert "https://" not in page
    assert answer_page(survey) == page  # the same for everybody
    assert "connect-src &#x27;self&#x27;" in page
    elsewhere = answer_page(survey, endpoint="https://survey.example.org/report")
    assert "connect-src https://survey.example.org;" in elsewhere
    for bad in ("javascript:alert(1)", "https://a b", "//x/y", "https://x/;script-src *"):
        with pytest.raises(Refusal):
            answer_page(survey, endpoint=bad)


@pytest.mark.parametrize(
    ("epsilon", "share", "weak"),
    [
        ("1/2", "62.3 %", False),
        ("3", "95.3 %", False),
        ("6", "99.8 %", True),
        ("20", "100 %", True),
    ],
)
def test_the_page_says_before_anything_is_answered_what_a_report_could_tell(epsilon, share, weak):
    """An author who declares a large epsilon cannot have the page promise that nothing is told."""
    text = TEXT.replace("epsilon = 2", f'epsilon = "{epsilon}"')
    assert text != TEXT
    written = answer_page(Survey.parse(text))
    assert share in written
    assert ("very little protection" in written) == weak
    assert ('class="warning">What is sent' in written) == weak
    assert "never says for sure" not in written


def test_hostile_words_stay_words():
    evil = "</script><script>alert(1)</script>{{script}}"
    survey = Survey.parse(TEXT.replace("Smoking among students", evil).replace("never", evil))
    page = answer_page(survey)
    assert page.count("<script") == 2
    assert "<script>alert" not in page
    shown = results_page(survey, survey.results([survey.release({"smokes": evil, "sleep": 3})]))
    assert "<script" not in shown
    assert "script-src" not in policy("")


def test_comparison_of_the_models():
    found = compare(5, 1, 10_000)
    assert found.local > 40 * found.central
    again = compare(5, 1, found.needed)
    assert again.local / found.needed == pytest.approx(found.central / 10_000, rel=0.02)
    assert found.to_json()["respondents_needed"] == found.needed
