"""What is left, asked in Snowflake's words at every door of a server."""

from __future__ import annotations

from typing import Any

import psycopg
from patience import PATIENCE_S

from discreet.curate import remote

ASKED = "SELECT * FROM TABLE(SNOWFLAKE.DATA_PRIVACY.ESTIMATE_REMAINING_DP_AGGREGATES('visits'))"
NUMBER = "NUMBER_OF_REMAINING_DP_AGGREGATES"


def test_over_http_and_its_client(server: Any) -> None:
    key = server.person()
    found = server.ask(ASKED, "1/10", key=key)
    assert found.status_code == 200, found.text
    told = found.json()
    assert next(column["name"] for column in told["columns"]) == NUMBER
    assert (told["id"], told["paid"]["text"]) == (None, "free")
    with remote.connect(server.url, timeout_s=PATIENCE_S, key=key) as client:
        answer = client.ask(ASKED)  # nothing is offered: it costs nothing
        assert answer.column("BUDGET_WINDOW") == ["Never"]
        assert any("free, from the account alone" in note for note in answer.notes)
        assert client.spent.epsilon == 0
        listed = client.ask("SELECT city FROM (SELECT DISTINCT city FROM visits) AS c")
        assert "Cork" in listed.column("city")
        assert client.spent.epsilon == 0


def test_over_the_wire_of_postgresql(doors: Any) -> None:
    key = doors.datasets["clinic"].key
    line = f"host=127.0.0.1 port={doors.port('postgres')} user=curator dbname=clinic"
    with psycopg.connect(line, password=key) as connection, connection.cursor() as cursor:
        cursor.execute(ASKED)
        names = [column.name for column in cursor.description or ()]
        (row,) = cursor.fetchall()
        told = dict(zip(names, row, strict=True))
        assert (told["BUDGET_WINDOW"], told[NUMBER] > 0) == ("Never", True)
