"""E9: work amplified by one person's rows, seen by the clock or by a failure.

Self-joins on the unit, with a condition that one person's rows meet or not: only somebody with
the property makes millions of rows, of which one is kept.  What is kept is paid for; how long it
took to make them is not.  So what joins can make of one unit is bounded by public knowledge.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from math import comb
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from patience import PATIENCE_S
from served import serve_session

import discreet
from discreet.curate import session
from discreet.errors import QuestionRefusal
from discreet.ledger import keys
from discreet.question.builder import count

ALPHA = 1e-6
ROWS = 18  # of each person
PEOPLE, MORE = 80, 200  # the more for `make soak`
FEWER, FEWER_ILL = 28, 8  # enough where the attack succeeds: to find all has chance 3e-7
EPSILON = "1e-11"
AGAIN = "2e-11"  # another question, not a replay
ENORMOUS = "max_joined_rows_per_unit = 2000000000"
"""A schema without a ceiling: the curator has said so, in the open."""

SCHEMA = f"""
[tables.visits]
source = "visits.parquet"
unit = "pid"
max_rows_per_unit = {ROWS}
[tables.visits.columns]
pid = "integer"
diag = {{ type = "text", values = ["flu", "hiv"] }}
city = {{ type = "text" }}

[tables.diary]
source = "visits.parquet"
unit = "pid"
[tables.diary.columns]
pid = "integer"
diag = {{ type = "text", values = ["flu", "hiv"] }}

[tables.towns]
source = "towns.parquet"
public = true
[tables.towns.columns]
name = "text"
street = "integer"
"""
STREETS = 90  # of the one town
OPTIONS = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 1)"


def joined(joins: int, condition: str, *, kind: str = "JOIN") -> str:
    """The attack: so many self-joins on the unit, and one row of what they make is counted."""
    partners = " ".join(f"{kind} visits v{i} ON v0.pid = v{i}.pid" for i in range(1, joins + 1))
    return f"SELECT {OPTIONS} COUNT(*) AS n FROM visits v0 {partners} WHERE {condition}"


def has_it(person: int) -> str:
    return f"v0.pid = {person} AND v0.diag = 'hiv'"


# --- what is accepted --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return {name: pa.table(columns) for name, columns in made_up([0, 1]).items()}


def made_up(ill: list[int]) -> dict[str, dict[str, list[object]]]:
    rows = [(person, row) for person in range(len(ill)) for row in range(ROWS)]
    visits: dict[str, list[object]] = {
        "pid": [person for person, _ in rows],
        "diag": ["hiv" if ill[person] else "flu" for person, _ in rows],
        "city": [f"town {row}" for _, row in rows],
    }
    towns: dict[str, list[object]] = {"name": ["town 1"] * STREETS, "street": [*range(STREETS)]}
    return {"visits": visits, "diary": dict(visits), "towns": towns}


@pytest.fixture
def curator(tables: dict[str, pa.Table]) -> Iterator[discreet.Curator]:
    schema = discreet.Schema.from_text(SCHEMA)
    with discreet.curator(tables, schema=schema, budget=discreet.Budget(epsilon=1)) as found:
        yield found


PAIRS = "SELECT a.pid, a.city FROM visits a JOIN visits b ON a.pid = b.pid"
TOO_MANY = {
    joined(2, has_it(1)): ROWS**3,
    joined(5, has_it(1)): ROWS**6,
    joined(5, has_it(1), kind="LEFT JOIN"): ROWS**6,
    joined(2, "v0.diag = 'hiv'").replace("COUNT(*)", "COUNT(DISTINCT v0.pid)"): ROWS**3,
    # more equal columns do not help: all rows of one person may be equal
    f"SELECT {OPTIONS} COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid AND a.city = b.city "
    "JOIN visits c ON a.pid = c.pid AND a.city = c.city": ROWS**3,
    # as common tables, each of which is small enough
    f"WITH two AS ({PAIRS}) SELECT {OPTIONS} COUNT(*) FROM two a JOIN two b ON a.pid = b.pid": ROWS
    ** 4,
    # with a public table, in which a name stands for many rows
    f"SELECT {OPTIONS} COUNT(*) FROM visits JOIN towns ON city = name": ROWS * STREETS,
    f"SELECT {OPTIONS} COUNT(*) FROM visits LEFT JOIN towns ON city = name": ROWS * STREETS,
    # both sides of a union
    f"SELECT {OPTIONS} COUNT(*) FROM ({' UNION ALL '.join([PAIRS] * 5)}) AS u": 5 * ROWS**2,
    # inside a sub-query that has one row for each person
    f"SELECT {OPTIONS} COUNT(*) FROM visits v JOIN (SELECT a.pid, COUNT(*) AS n FROM visits a "
    "JOIN visits b ON a.pid = b.pid JOIN visits c ON a.pid = c.pid GROUP BY a.pid) AS s "
    "ON v.pid = s.pid": ROWS**3,
    # and inside one that has several
    f"SELECT {OPTIONS} COUNT(*) FROM (SELECT a.pid, a.city, COUNT(*) AS n FROM visits a "
    "JOIN visits b ON a.pid = b.pid GROUP BY a.pid, a.city) AS s "
    "JOIN visits v ON v.pid = s.pid": ROWS**3,
}


@pytest.mark.parametrize(("text", "most"), TOO_MANY.items(), ids=range(len(TOO_MANY)))
def test_too_many_rows_of_one_person_are_refused_with_their_number(
    curator: discreet.Curator, text: str, most: int
) -> None:
    with pytest.raises(QuestionRefusal, match=rf"Q45: .* {most:,} rows .* 1,000") as told:
        curator.ask(text, epsilon=EPSILON)
    assert "max_joined_rows_per_unit" in told.value.fix
    assert curator.spent.epsilon == 0
    for free in (curator.explain, curator.price):
        with pytest.raises(QuestionRefusal, match="Q45"):
            free(text, epsilon=EPSILON)


UNBOUNDED = (
    f"SELECT {OPTIONS} COUNT(*) FROM diary a JOIN diary b ON a.pid = b.pid",
    f"SELECT {OPTIONS} COUNT(*) FROM diary a JOIN visits b ON a.pid = b.pid",
    f"SELECT {OPTIONS} COUNT(*) FROM visits a LEFT JOIN diary b ON a.pid = b.pid",
    f"SELECT {OPTIONS} COUNT(*) FROM visits v JOIN (SELECT pid, diag, COUNT(*) AS n FROM diary "
    "GROUP BY pid, diag) AS s ON v.pid = s.pid",
    f"SELECT {OPTIONS} COUNT(*) FROM visits v JOIN (SELECT pid FROM diary UNION ALL "
    "SELECT pid FROM visits) AS s ON v.pid = s.pid",
    f"SELECT {OPTIONS} COUNT(*) FROM diary JOIN towns ON diag = name",
)


@pytest.mark.parametrize("text", UNBOUNDED, ids=range(len(UNBOUNDED)))
def test_rows_that_nobody_has_bounded_are_not_multiplied(
    curator: discreet.Curator, text: str
) -> None:
    with pytest.raises(QuestionRefusal, match="Q41"):
        curator.ask(text, epsilon=EPSILON)
    assert curator.spent.epsilon == 0


@pytest.mark.parametrize(
    "text",
    [
        joined(1, has_it(1)),  # 324 rows
        f"SELECT {OPTIONS} COUNT(*) FROM diary",  # as many as somebody has, each read once
        f"SELECT {OPTIONS} COUNT(*) FROM diary d JOIN (SELECT pid, COUNT(*) AS n FROM visits "
        "GROUP BY pid) AS s ON d.pid = s.pid",  # one partner multiplies nothing
    ],
)
def test_what_multiplies_little_is_answered(curator: discreet.Curator, text: str) -> None:
    assert curator.ask(text, epsilon="1/8").rows


def test_built_in_python_it_is_the_same(curator: discreet.Curator) -> None:
    pairs = curator.table("visits").join(curator.table("visits", alias="w"), on="pid")
    named = pairs.select(pid=pairs["pid"])
    twice = named.join(named.named("other"), on="pid")
    for rows, most in ((pairs, ROWS**2), (twice, ROWS**4)):
        question = rows.agg(n=count()).contributing(max_rows=1)
        if most <= curator.schema.most_joined_rows:
            curator.explain(question, epsilon=EPSILON)
        else:
            with pytest.raises(QuestionRefusal, match=rf"Q45: .* {most:,} rows"):
                curator.ask(question, epsilon=EPSILON)


def test_the_ceiling_is_declared(tables: dict[str, pa.Table]) -> None:
    budget = discreet.Budget(epsilon=1)
    for most, accepted in ((ROWS**2 - 1, False), (ROWS**2, True)):
        schema = discreet.Schema.from_text(f"max_joined_rows_per_unit = {most}\n{SCHEMA}")
        with discreet.curator(tables, schema=schema, budget=budget) as curator:
            assert curator.schema.most_joined_rows == most  # and after public tables were read
            if accepted:
                curator.explain(joined(1, has_it(1)), epsilon=EPSILON)
            else:
                with pytest.raises(QuestionRefusal, match=f"{ROWS**2} rows of one pid"):
                    curator.explain(joined(1, has_it(1)), epsilon=EPSILON)


# --- through the server ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clinic:
    """A dataset behind the server, its curator's key, and who in it is ill."""

    name: str
    key: str
    ill: list[int]


def make_clinic(home: Path, ill: list[int], declared: str = "") -> Clinic:
    """A session with the default settings; nobody has declared more than ``declared``."""
    home.mkdir()
    for name, columns in made_up(ill).items():
        pq.write_table(pa.table(columns), home / f"{name}.parquet")
    text = f"{declared}\n[budget]\nepsilon = 1\n{SCHEMA}"
    with closing(session.init(home, text).curator(opened=False)) as curator:
        return Clinic(home.name, keys.new_key(curator.account, "curator"), ill)


Seen = tuple[bool, float]
FAILED = "D1"  # what a question that was accepted, charged and did not end says


def observe(
    url: str, at: Clinic, client: httpx.Client, question: str, epsilon: str = EPSILON
) -> Seen:
    """All that an analyst sees besides the noise: whether it failed, and how long it took."""
    began = time.perf_counter()
    body = {"question": question, "epsilon": epsilon, "wait_s": 60}
    headers = {"Authorization": f"Bearer {at.key}"}
    response = client.post(f"{url}/v1/datasets/{at.name}/ask", json=body, headers=headers)
    took = time.perf_counter() - began
    failed = response.status_code != httpx.codes.OK
    assert not failed or response.json()["error"]["code"] == FAILED, "not even accepted"
    return failed, took


def attack_clinic(url: str, at: Clinic, attack: Callable[[int], str]) -> list[tuple[Seen, int]]:
    """For each person, in some order: what was observed of them, and whether they are ill.

    Twice as many as are ill, the slowest, are asked about once more, and what was better counts:
    a machine that was busy for a moment makes somebody slow once.
    """
    order = random.sample(range(len(at.ill)), len(at.ill))
    with httpx.Client(timeout=PATIENCE_S) as client:
        observe(url, at, client, attack(len(at.ill)))  # nobody: what is loaded once is loaded now
        seen = {person: observe(url, at, client, attack(person)) for person in order}
        for person in sorted(order, key=seen.__getitem__, reverse=True)[: 2 * sum(at.ill)]:
            again = observe(url, at, client, attack(person), AGAIN)
            seen[person] = min(seen[person], again)
    return [(seen[person], at.ill[person]) for person in order]


def found_by(home: Path, ill: list[int], attack: Callable[[int], str], *, clinics: int) -> int:
    """How many of the ill are among as many whom the attack says are ill: the slowest, or failed.

    The people are spread over some datasets, each with an engine and deadlines of its own and
    asked one question after the other: they mostly wait, so all of them at once.
    """
    shares = [ill[first::clinics] for first in range(clinics)]
    made = [make_clinic(home / f"c{n}", share) for n, share in enumerate(shares)]
    directories = [str(home / clinic.name) for clinic in made]
    with (
        serve_session(home / made[0].name, made[0].key, *directories) as served,
        ThreadPoolExecutor(clinics) as pool,
    ):
        parts = pool.map(lambda at: attack_clinic(served.url, at, attack), made)
        seen = [one for part in parts for one in part]
    random.shuffle(seen)  # what cannot be told apart is not told apart by the order
    suspects = sorted(seen, key=lambda one: one[0], reverse=True)[: sum(ill)]
    return sum(is_ill for _, is_ill in suspects)


def chance_of(found: int, people: int, ill: int) -> float:
    """How likely as many guesses as there are ill people find so many of them, or more."""
    ways = sum(comb(ill, n) * comb(people - ill, ill - n) for n in range(found, ill + 1))
    return ways / comb(people, ill)


def some_ill(people: int, ill: int) -> list[int]:
    return random.sample([1] * ill + [0] * (people - ill), people)


def deep(person: int) -> str:
    """ROWS**6 rows, 34 million, of whom has it, and none of anybody else."""
    return joined(5, has_it(person))


def deepest_accepted(person: int) -> str:
    """As deep as it is allowed with these bounds."""
    return joined(1, has_it(person))


def test_has_power() -> None:
    """What the tests ask for is rarer by chance than they claim, and not by far."""
    assert chance_of(FEWER_ILL, FEWER, FEWER_ILL) <= ALPHA
    assert chance_of(31, PEOPLE, PEOPLE // 2) <= ALPHA < chance_of(30, PEOPLE, PEOPLE // 2)
    assert chance_of(68, MORE, MORE // 2) <= ALPHA < chance_of(65, MORE, MORE // 2)


@pytest.mark.parametrize("people", [PEOPLE, pytest.param(MORE, marks=pytest.mark.soak)])
def test_with_default_settings_the_clock_tells_nobody_apart(tmp_path: Path, people: int) -> None:
    ill = some_ill(people, people // 2)
    found = found_by(tmp_path, ill, deepest_accepted, clinics=people // 40)
    assert chance_of(found, people, sum(ill)) > ALPHA


def test_with_default_settings_the_attack_is_refused(curator: discreet.Curator) -> None:
    for person in range(8):
        with pytest.raises(QuestionRefusal, match="Q45"):
            curator.explain(deep(person), epsilon=EPSILON)


def processor_s(process: int) -> float:
    """Seconds of the processor that a process and its children have used: no others' work."""
    used = sum(
        map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13])
    )
    children = [
        int(child)
        for thread in Path(f"/proc/{process}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
    return used / os.sysconf("SC_CLK_TCK") + sum(map(processor_s, children))


def test_without_the_ceiling_it_tells_everybody_apart(tmp_path: Path) -> None:
    """By failure, or by the work that was done before the answer left.

    An answer leaves when it is there, so work is what an analyst sees of an idle machine. It is
    measured as time of the processor: a busy one is slow for everybody, and the work is the same.
    """
    at = make_clinic(tmp_path / "c", some_ill(FEWER, FEWER_ILL), ENORMOUS)
    seen: list[tuple[bool, float, int]] = []
    with (
        serve_session(tmp_path / "c", at.key) as served,
        httpx.Client(timeout=PATIENCE_S) as client,
    ):
        observe(served.url, at, client, deep(FEWER))  # nobody: what is loaded once is loaded now
        for person, is_ill in enumerate(at.ill):
            before = processor_s(served.process.pid)
            failed, _ = observe(served.url, at, client, deep(person))
            seen.append((failed, processor_s(served.process.pid) - before, is_ill))
    suspects = sorted(seen, reverse=True)[:FEWER_ILL]
    assert chance_of(sum(is_ill for *_, is_ill in suspects), FEWER, FEWER_ILL) <= ALPHA
