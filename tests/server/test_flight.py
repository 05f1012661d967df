"""Arrow Flight SQL by ADBC's driver: the same questions, keys, prices and refusals."""

from __future__ import annotations

import struct
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import adbc_driver_manager
import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from patience import PATIENCE_S
from pyarrow import flight

from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.server.flight.parameters import count_parameters, fill_parameters, read_row

HEADER = "adbc.flight.sql.rpc.call_header.discreet-"
COUNTED = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
OFF = 200
"""Noise on a count at epsilon 1 and three rows each has scale 3: as far off once in e**66."""


def connect(url: str, key: str, *, options: dict[str, str] | None = None, **offer: str) -> Any:
    given = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {key}", **(options or {})}
    given |= {HEADER + name: amount for name, amount in offer.items()}
    return adbc.connect(url, db_kwargs=given, autocommit=True)


@pytest.fixture(scope="module")
def url(doors: Any) -> str:
    return f"grpc://127.0.0.1:{doors.port('flight')}"


@pytest.fixture(scope="module")
def key(doors: Any) -> str:
    return str(doors.datasets["clinic"].key)


def fetch(cursor: Any, asked: str) -> list[Any]:
    cursor.execute(asked)
    return list(cursor.fetchall())


def ask(url: str, key: str, **offer: Any) -> list[Any]:
    with connect(url, key, **offer) as line, line.cursor() as cursor:
        return fetch(cursor, COUNTED)


def charges(doors: Any) -> int:
    return len(doors.state.datasets["clinic"].curator.transcript())


def test_an_answer_is_a_table_with_its_price(url, key):
    with connect(url, key, epsilon="1") as line, line.cursor() as cursor:
        cursor.execute("SELECT city, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY city")
        table = cursor.fetch_arrow_table()
    assert table.schema.types == [pa.string(), pa.int64(), pa.decimal128(38, 0)]
    assert table["city"].to_pylist() == ["Aalborg", "Bergen", "Cork"]
    assert all(abs(n - 1000) < OFF for n in table["n"].to_pylist())


def test_margins_are_columns_if_they_are_wanted(url, key):
    with connect(url, key, epsilon="1", margins="on") as line, line.cursor() as cursor:
        cursor.execute(COUNTED)
        table = cursor.fetch_arrow_table()
    assert table.column_names == ["city", "n", "n_low", "n_high"]
    for row in table.to_pylist():
        assert row["n_low"] < row["n"] < row["n_high"]


def test_fresh_measures_what_is_known_anew(doors, url, key):
    asked = "SELECT COUNT(*) AS n FROM visits WHERE age < 58 AND remark <> 'flight'"
    counts = []
    for offer in ({"epsilon": "1"}, {"epsilon": "1/2"}, {"epsilon": "1/2", "fresh": "on"}):
        with connect(url, key, **offer) as line, line.cursor() as cursor:
            fetch(cursor, asked)
        counts.append(charges(doors))
    assert [n - counts[0] for n in counts] == [0, 0, 1]


def test_the_schema_is_told_before_anything_is_charged(doors, url, key):
    before = charges(doors)
    asked = "SELECT city, AVG(age) AS mean FROM visits WHERE remark <> 'flight' GROUP BY city"
    with connect(url, key, epsilon="1") as line, line.cursor() as cursor:
        schema = cursor.adbc_execute_schema(asked)
        assert schema.types == [pa.string(), pa.float64()]
        cursor.adbc_prepare(asked)
        assert charges(doors) == before
        cursor.execute(asked)
        cursor.fetchall()
        assert charges(doors) == before + 1
        cursor.execute(asked)  # known, and free
        cursor.fetchall()
        assert charges(doors) == before + 1


def test_tables_are_listed(url, key):
    with connect(url, key) as line:
        (catalog,) = line.adbc_get_objects(depth="tables").read_all().to_pylist()
        assert catalog["catalog_name"] == "clinic"
        (schema,) = catalog["catalog_db_schemas"]
        assert [table["table_name"] for table in schema["db_schema_tables"]] == ["visits"]
        found = line.adbc_get_table_schema("visits")
        assert found.field("age").type == pa.int64()
        assert not found.field("city").nullable
        assert line.adbc_get_info()["driver_name"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("SELECT AVG(income) FROM visits", "Q1: column 'income' has no public bounds"),
        ("SELECT COUNT(*) AS n FROM visits WHERE age < 23", "the header discreet-epsilon: 0.1"),
        ("SELECT * FROM visits", "Q12"),
        ("DROP TABLE visits", "Q5"),
        ("SELECT * FROM pg_catalog.pg_class", "Q"),
    ],
)
def test_refusals_say_why_and_show_no_line_of_the_program(url, key, asked, said):
    with (
        connect(url, key) as line,
        line.cursor() as cursor,
        pytest.raises(adbc_driver_manager.Error) as refused,
    ):
        fetch(cursor, asked)
    assert said in str(refused.value)
    assert "Fix: " in str(refused.value)
    assert "Traceback" not in str(refused.value)
    assert ".py" not in str(refused.value)


def test_a_wrong_key_and_another_dataset_are_refused(doors, url, key):
    other = doors.datasets["other"].key
    for given, offer in ((key[:-1] + "x", {}), ("", {}), (other, {"dataset": "clinic"})):
        with pytest.raises(adbc_driver_manager.Error, match=r"A1[03]"):
            ask(url, given, **offer)


def test_the_line_is_encrypted_where_there_is_a_certificate(tls_doors):
    server, cert = tls_doors
    key, port = server.datasets["clinic"].key, server.port("flight")
    trusted = {"adbc.flight.sql.client_option.tls_root_certs": cert.read_text()}
    assert len(ask(f"grpc+tls://127.0.0.1:{port}", key, options=trusted, epsilon="1")) == 3
    with pytest.raises(adbc_driver_manager.Error):
        ask(f"grpc://127.0.0.1:{port}", key)


CALLS = {
    "put": lambda line, how: line.do_put(COMMAND, pa.schema([]), how)[0].close(),
    "exchange": lambda line, how: line.do_exchange(COMMAND, how)[1].read_all(),
    "list": lambda line, how: list(line.list_flights(b"", how)),
    "path": lambda line, how: line.get_flight_info(flight.FlightDescriptor.for_path("x"), how),
    "schema of a path": lambda line, how: line.get_schema(
        flight.FlightDescriptor.for_path("x"), how
    ),
}
COMMAND = flight.FlightDescriptor.for_command(b"x")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("known", "code"), [(False, "A10"), (True, "A14")])
def test_what_flight_can_do_and_we_do_not_is_refused(url, key, call, known, code):
    """Else it is told with the lines of a program, also to who has no key."""
    headers = [(b"authorization", f"Bearer {key}".encode())] * known
    how = flight.FlightCallOptions(headers=headers, timeout=PATIENCE_S)
    with flight.connect(url) as line, pytest.raises(pa.ArrowException) as caught:
        CALLS[call](line, how)
    assert f"{code}: " in str(caught.value)
    assert "door.py" not in str(caught.value)
    assert "_answer" not in str(caught.value)
    assert call == "schema of a path" or "Traceback" not in str(caught.value)


BOUND = "SELECT COUNT(*) AS n FROM visits WHERE city = $1 AND age < $2"


def test_parameters_are_bound_by_their_types(doors, url, key):
    before = charges(doors)
    with connect(url, key, epsilon="1") as line, line.cursor() as cursor:
        cursor.execute(BOUND, parameters=("Cork", 97))
        ((n,),) = cursor.fetchall()
        assert abs(n - 970) < OFF
        assert charges(doors) == before + 1
        assert fetch(cursor, BOUND.replace("$1", "'Cork'").replace("$2", "97")) == [(n,)]  # known
        cursor.execute(BOUND, parameters=("Cork", 96))
        assert cursor.fetchall() != []
        assert charges(doors) == before + 2


@pytest.mark.parametrize(
    ("asked", "values", "said"),
    [
        (BOUND, ("x' OR 'a' = 'a", 31), "Q"),  # a text that no city is called, and nothing else
        (BOUND, ("Cork",), "A14"),
        (BOUND, ("Cork", 3, 4), "A14"),
        (BOUND, ("Cork", b"3"), "P1"),
        (BOUND, ("Cork", float("nan")), "P1"),
        (BOUND, ("Cork\0", 5), "P1"),
        (rf"{BOUND} AND remark <> E'\''", ("Cork", 5), "A14"),
        (BOUND.replace("$2", "$101"), ("Cork", 5), "A14"),
    ],
)
def test_odd_parameters_ask_nothing_else_and_cost_nothing(doors, url, key, asked, values, said):
    before = charges(doors)
    with (
        connect(url, key, epsilon="1") as line,
        line.cursor() as cursor,
        pytest.raises(adbc_driver_manager.Error, match=rf"{said}\d*: "),
    ):
        cursor.execute(asked, parameters=values)
    assert charges(doors) == before


def test_parameters_come_in_one_row(doors, url, key):
    before = charges(doors)
    rows = pa.table({"1": ["Cork", "Bergen"], "2": [51, 52]})
    with connect(url, key, epsilon="1") as line, line.cursor() as cursor:
        statement = cursor.adbc_statement
        statement.set_sql_query(BOUND)
        statement.prepare()
        statement.bind_stream(rows.to_reader())
        with pytest.raises(adbc_driver_manager.Error, match="one row"):
            statement.execute_query()
    assert charges(doors) == before


def send_again(values: pa.Array, old: bytes = b"", new: bytes = b"") -> list[pa.RecordBatch]:
    """A row as it comes over the line, with other bytes in the last place of some."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("1", values.type)])) as line:
        line.write_batch(pa.record_batch([values], names=["1"]))
    sent = sink.getvalue().to_pybytes()
    before, found, after = sent.rpartition(old) if old else (sent, b"", b"")
    assert found == old
    return list(pa.ipc.open_stream(pa.py_buffer(before + new + after)))


def test_a_forged_text_reads_no_memory_of_the_server():
    """Arrow believes the offsets that it is sent; what is bound is told to who binds it."""
    honest, forged = struct.pack("<ii", 0, 5), struct.pack("<ii", 0, 8)
    assert read_row(send_again(pa.array(["hello"]), honest, honest)) == ["'hello'"]
    for offsets in (forged, struct.pack("<ii", 2_000, 2_001), struct.pack("<ii", -9, 5)):
        with pytest.raises(InvalidParameter, match="P1: "):
            read_row(send_again(pa.array(["hello"]), honest, offsets))


@pytest.mark.parametrize(
    ("values", "old", "new"),
    [
        (pa.array(["caf\u00e9"]), "caf\u00e9".encode(), b"caf\xff\xfe"),
        (pa.array([10**9], pa.int32()).view(pa.date32()), b"", b""),
        (pa.array([43_200_000]).view(pa.date64()), b"", b""),  # noon: no day, and not cut to one
        (pa.array([2**62]).view(pa.timestamp("s")), b"", b""),
    ],
)
def test_values_that_python_has_not_are_refused(values, old, new):
    with pytest.raises(InvalidParameter, match="P1: "):
        read_row(send_again(values, old, new))


def test_a_constant_in_many_places_is_not_written_in_all_of_them():
    """Memory: what is sent has 78 kB, what it stands for 360 MB."""
    long = "SELECT COUNT(*) FROM visits WHERE city IN (" + ",".join(["$1"] * 6_000) + ")"
    with pytest.raises(QuestionRefusal, match="Q3: "):
        fill_parameters(long, ["'" + "a" * 60_000 + "'"])
    with pytest.raises(QuestionRefusal, match="Q3: "):
        count_parameters("SELECT $1" + " a" * 20_000)


def test_preparing_and_binding_are_counted(doors, url, key, monkeypatch):
    counted = []
    monkeypatch.setattr(doors.state.datasets["clinic"].rate, "take", counted.append)
    with connect(url, key, epsilon="1") as line, line.cursor() as cursor:
        statement = cursor.adbc_statement
        statement.set_sql_query(BOUND)
        counted.clear()  # connecting asks something, too
        statement.prepare()
        assert len(counted) == 1
        statement.bind(pa.record_batch({"1": pa.array(["Cork"]), "2": pa.array([True])}))
        with pytest.raises(adbc_driver_manager.Error):  # bound, and then no question
            statement.execute_query()
    assert len(counted) == 3
