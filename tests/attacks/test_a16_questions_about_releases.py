"""A16: SQL about a release ran as it was written: free work without end, and errors of the parser.

A release is public, and a question about it is free.  So its SQL is what the analyst wrote, and
must be held as SQL around a question is: an allow-list, one thread, bounded memory and time.  And
every text is looked at for the names of releases before it is known to be short enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_releases import BUDGET, SCHEMA, frame

import discreet
from discreet.curate import session as sessions
from discreet.engine.duckdb import afterwards
from discreet.errors import Refusal
from discreet.publication.reading import list_tables
from discreet.question.sql import MOST_CHARACTERS


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[discreet.Curator]:
    home: Path = tmp_path_factory.mktemp("released")
    frame(60).to_parquet(home / "visits.parquet")
    sessions.init(home, BUDGET + SCHEMA)
    with discreet.open(home) as found:
        found.make_release(
            "cities", of="visits", kind="marginals", sets=[["city", "sick"]], epsilon=1,
            columns=["city", "sick"],
        )  # fmt: skip
        yield found


COUNT = "SELECT COUNT(*) AS n FROM cities"
ENDLESS = {
    "rows of nothing": f"{COUNT} WHERE LENGTH(RANGE(100000000000)) > 1",
    "a long text": f"{COUNT} WHERE LENGTH(REPEAT(city, 1000000000)) > 1",
    "a long list": f"{COUNT} WHERE LEN(LIST_RESIZE([1], 4000000000, 0)) > 1",
    "a table of nothing": "SELECT COUNT(*) AS n FROM cities, RANGE(1000000000000)",
    "unnested": f"{COUNT} WHERE city IN (SELECT UNNEST(['a', 'b']))",
    "a file": "SELECT COUNT(*) AS n FROM cities, READ_TEXT('/etc/passwd')",
    "settings": f"{COUNT} WHERE CURRENT_SETTING('threads') = '1'",
    "an environment": f"{COUNT} WHERE GETENV('HOME') = 'x'",
    "a statement in a text": "SELECT COUNT(*) AS n FROM cities, QUERY('SELECT 7')",
    "another schema": "SELECT COUNT(*) AS n FROM main.cities, information_schema.cities",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_makes_work_of_nothing_is_refused_before_it_runs(
    curator: discreet.Curator, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        pytest.fail("it was run")

    monkeypatch.setattr(afterwards, "open_locked", never)
    spent = curator.spent
    with pytest.raises(Refusal) as refused:
        curator.releases.find("cities").ask(ENDLESS[name])
    assert refused.value.code == "Q47"
    assert curator.spent == spent


def test_what_is_asked_of_a_release_has_a_time_limit(
    curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release joined with itself is rows to the power of its joins."""
    monkeypatch.setattr(afterwards, "TIME_LIMIT_S", 0.05)
    joined = ", ".join(f"cities c{place}" for place in range(30))
    with pytest.raises(Refusal) as refused:
        curator.releases.find("cities").ask(f"SELECT COUNT(*) AS n FROM {joined}")
    assert refused.value.code == "Q47"


HOSTILE = (
    "SELECT " + "(" * 4000 + "1" + ")" * 4000 + " FROM cities",
    "SELECT COUNT(*) FROM cities WHERE " + "NOT " * 4000 + "sick",
    "SELECT COUNT(*) FROM cities WHERE " + " OR ".join(["sick"] * 4000),
    "SELECT COUNT(*) FROM cities -- " + "x" * MOST_CHARACTERS,
    "SELECT COUNT(*) FROM cities WHERE x = 1e999999999",
    "SELECT CASE " * 500 + "FROM cities",
    "\0",
    "",
)


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_whatever_is_typed_is_refused_and_not_an_error(
    curator: discreet.Curator, place: int
) -> None:
    """Where there is a release, every text is looked at for its name before its length is known."""
    for door in (curator.ask, curator.explain):
        with pytest.raises(Refusal):
            door(HOSTILE[place], epsilon="0.1")


def test_what_is_too_long_names_no_table() -> None:
    assert list_tables("SELECT COUNT(*) FROM cities") == {"cities"}
    assert list_tables("SELECT COUNT(*) FROM cities" + " " * MOST_CHARACTERS) == set()


@pytest.mark.parametrize("text", ["EXPLAIN SELECT 7 FROM t", "CALL secret('x')", "SHOW secret"])
def test_what_is_typed_is_not_written_to_a_log(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """The parser warns of what it does not know, and quotes it."""
    list_tables(text)
    assert not caplog.records


def test_plain_questions_are_answered(curator: discreet.Curator) -> None:
    found = curator.releases.find("cities")
    for text in (
        COUNT,
        f"{COUNT} WHERE LOWER(city) = 'cork' AND NOT sick",
        "SELECT city, COUNT(*) AS n FROM cities WHERE sick OR city IS NULL GROUP BY city",
        "SELECT CASE WHEN sick THEN 1 ELSE 0 END AS k, COUNT(*) AS n FROM cities GROUP BY 1",
    ):
        assert found.ask(text).rows
