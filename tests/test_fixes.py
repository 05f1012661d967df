"""Amounts are spelled as each door takes them; what people mistype is told as they meant it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_cases import Run, runner
from golden_cases import FOLDER
from patience import PATIENCE_S
from served import KEY, Served, serve_session

import discreet
from discreet.cli.shell import Pipe, Shell
from discreet.curate import session
from discreet.curate.curator import Curator
from discreet.errors import QuestionRefusal, Refusal
from discreet.question.offer import Offer
from discreet.question.schema import SchemaFile
from discreet.question.sql import parse

GROUPED = "SELECT doctor, COUNT(*) AS n FROM visits GROUP BY doctor"
COUNTED = "SELECT COUNT(*) AS n FROM visits"
OFFERED = {"epsilon": "0.5", "delta": "1e-9"}

Asked = dict[str, Any]
Door = Callable[[str, Asked], Asked | None]
"""Explains a question at an offer: None, or the refusal as that door shows it."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clinic of the golden questions, with hardly anybody in it."""
    folder = tmp_path_factory.mktemp("golden")
    home = folder / "clinic"
    home.mkdir()
    text = (FOLDER / "clinic.toml").read_text()
    text = re.sub(r"\[tables\.(\w+)\](.*)", r'[tables.\1]\2\nsource = "\1.parquet"', text)
    settings = "[budget]\nepsilon = 50\ndelta = 1e-6\n[server]\nrate_per_minute = 100000\n"
    settings += "burst = 10000\n"
    schema = discreet.Schema.from_toml(FOLDER / "clinic.toml")
    for table in schema.tables.values():
        rows: dict[str, pa.Array] = {
            column.name: pa.array([], pa.string()) for column in table.columns
        }
        if table.public:
            rows = {
                "name": pa.array(["york", "leeds", "hull"]),
                "region": pa.array(["north"] * 3),
                "people": pa.array([10, 20, 30]),
            }
        pq.write_table(pa.table(rows), home / f"{table.name}.parquet")
    session.init(home, f"{settings}{text}")
    return home


@pytest.fixture(scope="module")
def curator(home: Path) -> Iterator[Curator]:
    with discreet.open(home, opened=False) as found:
        yield found


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    from discreet.ledger.keys import new_key

    with discreet.open(home, opened=False) as found:
        key = new_key(found.account, "curator")
    assert KEY.fullmatch(key)
    with serve_session(home, key) as server:
        yield server


def python_door(curator: Curator) -> Door:
    def door(question: str, offer: Asked) -> Asked | None:
        try:
            curator.explain(question, **offer)
        except Refusal as refusal:
            return refusal.to_json()
        return None

    return door


def command_door(run: Run, home: Path) -> Door:
    def door(question: str, offer: Asked) -> Asked | None:
        options = [part for name, amount in offer.items() for part in (f"--{name}", amount)]
        code, _, err = run("explain", question, *options, "--json", "-s", home)
        return None if code == 0 else dict(json.loads(err))

    return door


def client_of(served: Served) -> httpx.Client:
    return httpx.Client(timeout=PATIENCE_S, headers={"Authorization": f"Bearer {served.key}"})


def http_door(client: httpx.Client, served: Served) -> Door:
    def door(question: str, offer: Asked) -> Asked | None:
        url = f"{served.url}/v1/datasets/{served.dataset}/explain"
        found = client.post(url, json={"question": question, **offer})
        return None if found.status_code == httpx.codes.OK else dict(found.json())

    return door


def check_offers(door: Door, spell: Callable[[str, str], str]) -> None:
    """Amounts that are missing: spelled as they are typed there, and accepted."""
    for question, offer in ((GROUPED, {"epsilon": "0.5"}), (COUNTED, {})):
        refused = door(question, offer)
        assert refused is not None
        assert refused["offer"]
        for name, amount in refused["offer"].items():
            assert spell(name, amount) in refused["fix"]
            assert door(question, offer | {name: amount}) is None


def test_python(curator: Curator) -> None:
    door = python_door(curator)
    check_offers(door, lambda name, amount: f"{name}='{amount}'")


def test_the_command_line(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    door = command_door(runner(capsys), home)
    check_offers(door, lambda name, amount: f"--{name} {amount}")
    code, _, err = runner(capsys)("explain", GROUPED, "--epsilon", "0.5", "-s", home)
    assert (code, "--delta 1e-9" in err, "delta=" in err) == (2, True, False)


def test_http(served: Served) -> None:
    with client_of(served) as client:
        door = http_door(client, served)
        check_offers(door, lambda name, amount: f'"{name}": "{amount}"')
    with discreet.connect(served.url, key=served.key, timeout_s=PATIENCE_S) as remote:
        with pytest.raises(QuestionRefusal) as caught:  # Python again, on the other side
            remote.explain(GROUPED, epsilon="0.5")
        assert "delta='1e-9'" in caught.value.fix
        assert remote.explain(GROUPED, epsilon="0.5", **caught.value.offer) is not None


class Declining(Pipe):
    """Somebody who looks at prices and pays none."""

    def confirms(self, question: str) -> bool:
        return False


def test_the_shell(curator: Curator, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(curator, "curator", Offer.of(epsilon="0.5"), Declining())
    shell._run_statement(GROUPED)
    printed = capsys.readouterr().out
    (typed,) = re.findall(r"\\delta \S+?(?=,)", printed)
    shell._run_statement(typed)
    capsys.readouterr()
    shell._run_statement(GROUPED)
    assert "price:" in capsys.readouterr().out
    shell._run_statement(f"EXPLAIN {GROUPED}")
    assert "groups: doctor (private" in capsys.readouterr().out


# --- what people mistype -----------------------------------------------------------------------

SCHEMA = discreet.Schema.from_text("""
[tables.stays]
unit = "patient"
max_rows_per_unit = 5
columns.patient = "integer"
columns.sex = { type = "text", values = ["F", "M"] }
columns.ward = { type = "text", values = ["cardiology", "surgery"] }
columns.days = { type = "integer", bounds = [0, 60] }
columns.income = { type = "decimal" }
columns.note = "text"
columns.at = "timestamp"
[tables.wards]
public = true
columns.ward = "text"
""")


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        (
            'SELECT COUNT(*) FROM stays WHERE sex = "F"',
            "SELECT COUNT(*) FROM stays WHERE sex = 'F'",
        ),
        (
            'SELECT COUNT(*) FROM stay WHERE sx = "F" AND dais > 3',
            "SELECT COUNT(*) FROM stays WHERE sex = 'F' AND days > 3",
        ),
        ("SELECT AVG(dys) AS d FROM stayz", "SELECT AVG(days) AS d FROM stays"),
        ("SELECT SUM(ward) FROM stays", "SELECT COUNT(ward) FROM stays"),
        (
            "SELECT COUNT(*) FROM stays a ASOF JOIN stay b ON a.patient = b.patient AND "
            "a.at > b.at",
            "SELECT COUNT(*) FROM stays AS a ASOF JOIN stays AS b ON a.patient = b.patient AND "
            "a.at > b.at",
        ),
        ("SELECT SKEWNESS(dayz) FROM stays", "SELECT SKEWNESS(days) FROM stays"),
        (
            "SELECT COUNT(*) FROM stays WHERE SKEWNESS(days) > 1 AND ward = 'surgery'",
            "SELECT COUNT(*) FROM stays WHERE ward = 'surgery' HAVING SKEWNESS(days) > 1",
        ),
        (
            "SELECT ward, SKEWNESS(days) FROM stays WHERE ward = 'surgry' GROUP BY ward",
            "SELECT ward, SKEWNESS(days) FROM stays WHERE ward = 'surgery' GROUP BY ward",
        ),
        ("SELECT AVG(KURTOSIS(days)) FROM stays", "SELECT KURTOSIS(days) FROM stays"),
        (
            "SELECT ward COUNT(*) AS n FROM stays GROUP BY ward",
            "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward",
        ),
        (
            "SELECT ward, sex, AVG(days) sd, STDDEV(days) FROM stays GROUP BY ward sex",
            "SELECT ward, sex, AVG(days) sd, STDDEV(days) FROM stays GROUP BY ward, sex",
        ),
        (
            "SELECT COUNT(*) FROM stays QUALIFY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY "
            "at) = 2",
            "SELECT COUNT(*) FROM (SELECT * FROM stays QUALIFY ROW_NUMBER() OVER (PARTITION BY "
            "patient ORDER BY at) = 2) AS stays",
        ),
        (
            "SELECT FLOR(days) AS d, COUNT(*) FROM stays GROUP BY FLOR(days)",
            "SELECT FLOOR(days) AS d, COUNT(*) FROM stays GROUP BY FLOOR(days)",
        ),
        (
            "SELECT COUNT(*) FROM stays WHERE ward = 'cardiolgy'",
            "SELECT COUNT(*) FROM stays WHERE ward = 'cardiology'",
        ),
        (
            "SELECT COUNT(*) FROM stays WHERE sex IN ('f', 'M')",
            "SELECT COUNT(*) FROM stays WHERE sex IN ('F', 'M')",
        ),
        (
            "SELECT COUNT(*) FROM stays WHERE HOUR(at AT TIME ZONE 'Asia/Tokyo') = 3",
            "SELECT COUNT(*) FROM stays WHERE HOUR(at AT TIME ZONE 'UTC' AT TIME ZONE "
            "'Asia/Tokyo') = 3",
        ),
        (
            "SELECT COUNT(*) FROM stays WHERE HOUR(CONVERT_TIMEZONE('Asia/Tokyo', at)) = 3",
            "SELECT COUNT(*) FROM stays WHERE HOUR(CONVERT_TIMEZONE('UTC', 'Asia/Tokyo', at)) = 3",
        ),
        *(
            (
                f"SELECT {name}(days > 50) FROM stays",
                "SELECT COUNT_IF(days > 50) > 0 FROM stays",
            )
            for name in ("BOOL_OR", "LOGICAL_OR", "BOOLOR_AGG")
        ),
        *(
            (
                f"SELECT {name}(days > 50) FROM stays",
                "SELECT COUNT_IF(days > 50) = COUNT(days > 50) FROM stays",
            )
            for name in ("BOOL_AND", "LOGICAL_AND", "EVERY", "BOOLAND_AGG")
        ),
        ("SELECT COUTN(*) FROM stays", "SELECT COUNT(*) FROM stays"),
        (
            "SELECT ward, MEDAIN(days) FROM stays GROUP BY ward",
            "SELECT ward, MEDIAN(days) FROM stays GROUP BY ward",
        ),
        ("SELECT AVERAGE(days) FROM stays", "SELECT AVG(days) FROM stays"),
        (
            "SELECT COUNT(*) FROM stays WHERE FLOR(days) = 3",
            "SELECT COUNT(*) FROM stays WHERE FLOOR(days) = 3",
        ),
        ("SELCT COUNT(*) FROM stays", "SELECT COUNT(*) FROM stays"),
        (
            "SELECT ward, COUNT(*) FROM stays GRUOP BY ward",
            "SELECT ward, COUNT(*) FROM stays GROUP BY ward",
        ),
        (
            "SELECT ward, COUNT(*) AS n FROM stays WHERE n > 5 AND days > 2 GROUP BY ward",
            "SELECT ward, COUNT(*) AS n FROM stays WHERE days > 2 GROUP BY ward HAVING n > 5",
        ),
        (
            "SELECT COUNT(*) FROM stays s WHERE s.ward <> 'Surgery'",
            "SELECT COUNT(*) FROM stays AS s WHERE s.ward <> 'surgery'",
        ),
    ],
)
def test_the_fix_is_the_whole_question_as_it_was_meant(typed: str, instead: str) -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse(typed, SCHEMA)
    assert caught.value.rewriting == instead
    parse(instead, SCHEMA)


@pytest.mark.parametrize(
    "bucket",
    [
        "WIDTH_BUCKET(days, 0, 60, ward)",
        "WIDTH_BUCKET(days, 60, 0, 6)",
        "WIDTH_BUCKET(days, 0, 60, 2.5)",
        "WIDTH_BUCKET(days, 0, 60, 0)",
        "TIME_BUCKET(INTERVAL '5 days', at)",
        "TIME_SLICE(at, 2, 'HOUR')",
    ],
)
def test_buckets_of_another_shape_are_refused_with_the_one_there_is(bucket: str) -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse(f"SELECT {bucket} AS b, COUNT(*) AS n FROM stays GROUP BY b", SCHEMA)
    assert caught.value.code in ("Q10", "Q33")


def test_a_constant_that_nobody_has_lists_those_that_some_may_have() -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse("SELECT COUNT(*) FROM stays WHERE ward = 'zzz'", SCHEMA)
    assert caught.value.code == "Q36"
    assert "'cardiology', 'surgery'" in caught.value.fix
    assert caught.value.rewriting is None


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM stays WHERE note = 'zzz'",  # no values are declared
        "SELECT COUNT(*) FROM stays WHERE ward = 'surgery'",
        "SELECT COUNT(*) FROM (SELECT patient, UPPER(ward) AS ward FROM stays) AS s "
        "WHERE ward = 'SURGERY'",  # another column of that name
        "SELECT COUNT(*) FROM stays WHERE LOWER(sex) = 'f'",
        "SELECT COUNT(*) FROM stays AS s JOIN wards AS w ON w.ward = s.ward "
        "WHERE w.ward = 'maternity'",  # a public table lists what it likes
    ],
)
def test_other_constants_are_let_be(question: str) -> None:
    parse(question, SCHEMA)


def test_no_bounds_are_made_up() -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse("SELECT AVG(income) FROM stays", SCHEMA)
    assert caught.value.code == "Q1"
    assert not re.search(r"\d", caught.value.fix)
    assert "bounds = [LOW, HIGH]" in caught.value.fix


@pytest.mark.parametrize(
    ("asked", "bought"),
    [
        ("SELECT AVG(income) FROM stays", "SELECT AVG(income, bounds => AUTO) FROM stays"),
        (
            "SELECT ward, SUM(income) AS s, COUNT(*) AS n FROM stays GROUP BY ward",
            "SELECT ward, SUM(income, bounds => AUTO) AS s, COUNT(*) AS n FROM stays GROUP BY ward",
        ),
        (  # a name with a typo of what has no bounds
            "SELECT AVG(incme) AS m FROM stays",
            "SELECT AVG(income, bounds => AUTO) AS m FROM stays",
        ),
    ],
)
def test_bounds_are_declared_or_bought(asked: str, bought: str) -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse(asked, SCHEMA)
    assert caught.value.rewriting == bought
    assert caught.value.fix.endswith(f"found in the data privately: ask {bought}")
    parse(bought, SCHEMA)


def test_what_takes_no_bounds_is_offered_none() -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse("SELECT CORR(income, income) FROM stays", SCHEMA)
    assert caught.value.rewriting is None
    assert "bounds = [LOW, HIGH]" in caught.value.fix


def test_a_rewriting_that_changes_the_number_says_so() -> None:
    union = "SELECT COUNT(*) AS n FROM (SELECT note FROM stays UNION SELECT note FROM stays) AS u"
    sampled = "SELECT COUNT(*) FROM stays TABLESAMPLE (10 PERCENT)"
    for question, words in ((union, "counts twice"), (sampled, "of all rows")):
        with pytest.raises(QuestionRefusal) as caught:
            parse(question, SCHEMA)
        assert caught.value.rewriting is not None
        assert words in caught.value.fix


def test_how_to_find_a_limit_of_rows_is_a_question_that_works() -> None:
    rows = pa.table({"who": [n % 50 for n in range(400)]})
    schema = '[tables.v]\nunit = "who"\ncolumns.who = "integer"'
    with discreet.curator({"v": rows}, schema=schema, budget=50) as curator:
        with pytest.raises(QuestionRefusal) as caught:
            curator.ask("SELECT COUNT(*) FROM v", epsilon=1)
        assert caught.value.code == "Q41"
        assert "'v'" in caught.value.fix
        finding = caught.value.fix[caught.value.fix.index("SELECT QUANTILE_CONT") :]
        found = curator.ask(finding, epsilon=40).value()
        assert 7 <= found <= 9
        options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = {round(found)})"
        curator.ask(f"SELECT {options} COUNT(*) FROM v", epsilon=1)


@pytest.mark.parametrize(("delta", "offered"), [("1e-9", "1e-11"), ("1e-6", "1e-9"), (0, None)])
def test_the_delta_that_is_offered_is_one_that_the_account_can_pay(delta: Any, offered: str | None):
    rows = pa.table({"who": list(range(400)), "tag": ["a", "b"] * 200})
    schema = '[tables.v]\nunit = "who"\nmax_rows_per_unit = 1\n'
    schema += 'columns.who = "integer"\ncolumns.tag = "text"'
    question = "SELECT tag, COUNT(*) AS n FROM v GROUP BY tag"
    budget = discreet.Budget(epsilon=9, delta=delta)
    with discreet.curator({"v": rows}, schema=schema, budget=budget) as curator:
        with pytest.raises(QuestionRefusal) as caught:
            curator.ask(question, epsilon=1)
        assert caught.value.offer == ({} if offered is None else {"delta": offered})
        if offered is not None:
            assert f"delta='{offered}'" in caught.value.fix
            assert len(curator.ask(question, epsilon=1, delta=offered).rows) == 2


def test_a_fix_that_takes_an_order_away_is_no_crash() -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse("SELECT MODE() WITHIN GROUP (ORDER BY nowhere) AS usual FROM stays", SCHEMA)
    assert caught.value.code == "Q7"


def test_a_column_that_is_not_there_lists_those_that_are_in_one_sentence() -> None:
    text = '[tables.orders]\nunit = "who"\nmax_rows_per_unit = 3\n'
    schema = SchemaFile.parse(f'{text}columns.who = "integer"\ncolumns.city = "text"').schema
    with pytest.raises(QuestionRefusal) as caught:
        parse("SELECT order_no FROM orders", schema)
    assert caught.value.fix == (
        "the columns are city, who; how many rows there are can be told: "
        "ask SELECT COUNT(*) AS n FROM orders"
    )


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("city = York", "city = 'York'"),
        ("York <> city", "'York' <> city"),
        ("city IN (York, 'Cork')", "city IN ('York', 'Cork')"),
        ("smoker = 'yes'", "smoker"),
        ("smoker <> 'Yes'", "NOT smoker"),
    ],
)
def test_a_value_is_put_into_quotes_and_a_boolean_needs_none(condition: str, meant: str) -> None:
    text = '[tables.people]\nunit = "who"\nmax_rows_per_unit = 1\ncolumns.who = "integer"\n'
    text += 'columns.smoker = "boolean"\n'
    text += 'columns.city = { type = "text", values = ["York", "Cork"] }'
    schema = SchemaFile.parse(text).schema
    with pytest.raises(QuestionRefusal) as caught:
        parse(f"SELECT COUNT(*) AS n FROM people WHERE {condition}", schema)
    assert caught.value.rewriting == f"SELECT COUNT(*) AS n FROM people WHERE {meant}"


@pytest.mark.parametrize(("nullable", "instead"), [("true", "NULL"), ("false", "'York'")])
def test_a_value_that_nobody_has_is_read_as_what_is_declared(nullable: str, instead: str) -> None:
    text = '[tables.people]\nunit = "who"\nmax_rows_per_unit = 1\ncolumns.who = "integer"\n'
    text += f'columns.city = {{ type = "text", values = ["York", "Cork"], nullable = {nullable} }}'
    schema = SchemaFile.parse(text).schema
    with pytest.raises(QuestionRefusal) as caught:
        parse("SELECT COUNT(*) AS n FROM people WHERE city = 'york'", schema)
    assert caught.value.code == "Q36"
    assert f"any other value is read as {instead}, so" in caught.value.why
