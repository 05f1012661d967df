"""Arrow Flight SQL: a statement is described when it is sent, and charged when it is fetched.

The key is a bearer token, so off this machine the line is encrypted, as HTTP's is.  What
is offered stands in headers of the call (``discreet-epsilon: 0.1``) or in the statement.
``EXPLAIN`` before a question says what it would cost and charges nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import flight

from discreet.curate.free_tables import list_free_tables
from discreet.errors import AccessRefusal, Refusal
from discreet.ledger.keys import public_part
from discreet.publication.told import Told
from discreet.question.domain import Kind
from discreet.question.offer import Offer
from discreet.release.amounts import loss_json
from discreet.release.answer import Answer
from discreet.server.asking import Asker, Shown, read_columns
from discreet.server.flight import messages
from discreet.server.flight.parameters import count_parameters, fill_parameters, read_row
from discreet.server.offers import AMOUNTS, make_offer
from discreet.server.refusals import Unreadable, failed_refusal
from discreet.server.state import ServerState

T = TypeVar("T")
HEADER = "discreet-"
_TYPES = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DECIMAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}
_WIDE = pa.decimal128(38, 0)
_PREPARED = b"prepared "
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+", re.IGNORECASE)
_PLAN = pa.schema([pa.field("QUERY PLAN", pa.string(), nullable=False)])
"""What a question would cost, line by line: the column that PostgreSQL has for it."""
_CATALOGS = pa.schema([pa.field("catalog_name", pa.string(), nullable=False)])
_SCHEMAS = pa.schema(
    [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string(), nullable=False),
    ]
)
_TABLE_TYPES = pa.schema([pa.field("table_type", pa.string(), nullable=False)])
_TABLES = pa.schema(
    [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("table_type", pa.string(), nullable=False),
    ]
)
_LISTS = pa.map_(pa.int32(), pa.list_(pa.int32()))
_VALUES = {
    "string_value": pa.string(),
    "bool_value": pa.bool_(),
    "bigint_value": pa.int64(),
    "int32_bitmask": pa.int32(),
    "string_list": pa.list_(pa.string()),
    "int32_to_int32_list_map": _LISTS,
}
_INFO = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field(
            "value",
            pa.dense_union([pa.field(name, kind) for name, kind in _VALUES.items()]),
            nullable=False,
        ),
    ]
)
"""What is known of the server beyond its tables: of that, nothing is told."""
_WITH_SCHEMA = _TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and what they offer for what they ask."""

    asker: Asker
    offer: Offer
    margins: bool
    confidence: str


class _Headers(flight.ServerMiddleware):  # type: ignore[misc]
    """The headers of a call."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers


class _ReadHeaders(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def start_call(self, _: Any, headers: Mapping[str, Sequence[Any]]) -> _Headers:
        """Keep what was sent last under each name."""
        found = {}
        for name, values in headers.items():
            value = values[-1] if values else ""
            found[name.lower()] = value.decode("latin-1") if isinstance(value, bytes) else value
        return _Headers(found)


class FlightDoor:
    """Listens for clients of Flight SQL."""

    def __init__(
        self,
        server: ServerState,
        *,
        host: str,
        port: int,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
    ) -> None:
        self._server = server
        self._host = host
        self._port = port
        self._tls = None
        if tls_cert is not None and tls_key is not None:
            self._tls = (tls_cert.read_bytes(), tls_key.read_bytes())
        self._listening: _Service | None = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port if self._listening is None else int(self._listening.port)

    async def open(self) -> None:
        """Listen, in threads of the library's own."""
        loop = asyncio.get_running_loop()
        scheme = "grpc" if self._tls is None else "grpc+tls"
        where = f"{scheme}://{self._host}:{self._port}"
        tls = {} if self._tls is None else {"tls_certificates": [self._tls]}
        self._listening = _Service(self._server, loop, where, tls)

    async def close(self) -> None:
        """Take nothing new."""
        if self._listening is not None:
            await asyncio.to_thread(self._listening.shutdown)


class _Service(flight.FlightServerBase):  # type: ignore[misc]
    """The calls of Flight, answered on the server's own loop."""

    def __init__(
        self, server: ServerState, loop: asyncio.AbstractEventLoop, where: str, tls: dict[str, Any]
    ) -> None:
        super().__init__(where, middleware={"headers": _ReadHeaders()}, **tls)
        self._server = server
        self._loop = loop

    # --- what Flight calls --------------------------------------------------------------------

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """What a statement will give; free."""
        return self._answer(context, lambda call: self._inform(call, descriptor))

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """The columns of what a statement will give; free."""

        def schema(call: Call) -> Any:
            name, fields = messages.unpack(descriptor.command)
            return flight.SchemaResult(self._schema_of(call, name, fields))

        try:
            return self._answer(context, schema)
        except flight.FlightError as error:
            raise error.with_traceback(None) from None

    # In this call alone the library tells also its own errors with the lines of the program.
    get_schema.__code__ = get_schema.__code__.replace(co_filename="flight")

    def do_get(self, context: Any, ticket: Any) -> Any:
        """The rows; a question is charged here and nowhere else."""
        return self._answer(context, lambda call: flight.RecordBatchStream(self._get(call, ticket)))

    def do_action(self, context: Any, action: Any) -> Any:
        """Prepare a statement, or forget it; what is prepared is its text, and nothing is kept."""
        return self._answer(context, lambda call: iter(list(self._act(call, action))))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> Any:
        """Bind the parameters of a prepared statement; nothing else is taken in, and all is free.

        The statement with its parameters is what is prepared from then on: nothing is kept here.
        """

        def bind(call: Call) -> None:
            self._wait(call.asker.admit())
            name, fields = messages.unpack(descriptor.command)
            if name != "CommandPreparedStatementQuery":
                raise messages.unreadable()
            constants = read_row(chunk.data for chunk in reader)
            text = fill_parameters(_question(name, fields), constants)
            told = messages.write_message({1: _PREPARED + text.encode()})
            writer.write(pa.py_buffer(told))

        return self._answer(context, bind)

    def do_exchange(self, context: Any, *_: Any) -> Any:
        """Nothing is exchanged."""
        return self._refuse(context)

    def list_flights(self, context: Any, _: Any) -> Any:
        """No answer is listed here: each is had by asking for it."""
        return self._refuse(context)

    def _refuse(self, context: Any) -> Any:
        def refuse(_: Call) -> Any:
            raise messages.unreadable()

        return self._answer(context, refuse)

    def list_actions(self, _: Any) -> list[tuple[str, str]]:
        """What can be done beside asking."""
        return [("CreatePreparedStatement", "describe it"), ("ClosePreparedStatement", "forget it")]

    # --- how they are answered ----------------------------------------------------------------

    def _answer(self, context: Any, work: Callable[[Call], T]) -> T:
        try:
            return work(self._admit(context))
        except Refusal as refusal:
            self._server.metrics.count("discreet_refusals_total", code=refusal.code)
            raise _tell(refusal) from None
        except Exception as error:
            self._server.log.mistake(error)
            raise _tell(failed_refusal()) from None

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _admit(self, context: Any) -> Call:
        headers: Mapping[str, str] = context.get_middleware("headers").headers
        return self._wait(self._identify(headers, _address(context.peer())))

    async def _identify(self, headers: Mapping[str, str], address: str) -> Call:
        """Who calls, as HTTP would know them."""
        server = self._server
        kind, _, key = headers.get("authorization", "").partition(" ")
        given = key.strip() if kind.lower() == "bearer" else None
        server.strangers.look(address, public_part(given))
        try:
            caller = await asyncio.to_thread(server.identify, given)
        except AccessRefusal:
            server.strangers.count_failure(address)
            raise
        server.strangers.came_in(caller.key_id)
        wanted = headers.get(f"{HEADER}dataset") or next(iter(caller.grants))
        if len(caller.grants) > 1 and f"{HEADER}dataset" not in headers:
            raise Unreadable(
                "this key opens several datasets.", f"say which: the header {HEADER}dataset: NAME."
            )
        grant = caller.grant(wanted)
        dataset = server.datasets[wanted]
        amounts = dataset.offers.of(grant)
        said = {name: headers[HEADER + name] for name in AMOUNTS if headers.get(HEADER + name)}
        if {"epsilon", "rho", "within"} & said.keys():
            amounts = {n: a for n, a in amounts.items() if n not in ("epsilon", "rho", "within")}
        amounts |= said
        margins = headers.get(f"{HEADER}margins", "off").lower() in ("on", "true", "1")
        asker = Asker(server, dataset, caller.key_id)
        fresh = headers.get(f"{HEADER}fresh", "off").lower() in ("on", "true", "1")
        offer = replace(make_offer(amounts), fresh=fresh)
        return Call(asker, offer, margins, amounts.get("confidence", "0.95"))

    # --- statements ---------------------------------------------------------------------------

    def _inform(self, call: Call, descriptor: Any) -> Any:
        command = descriptor.command
        name, fields = messages.unpack(command)
        schema = self._schema_of(call, name, fields)
        ticket = command
        if name in ("CommandStatementQuery", "CommandPreparedStatementQuery"):
            ticket = messages.pack("TicketStatementQuery", {1: _question(name, fields).encode()})
        end = flight.FlightEndpoint(flight.Ticket(ticket), [])
        return flight.FlightInfo(schema, descriptor, [end], -1, -1)

    def _schema_of(self, call: Call, name: str, fields: dict[int, list[bytes | int]]) -> pa.Schema:
        match name:
            case "CommandGetCatalogs":
                return _CATALOGS
            case "CommandGetDbSchemas":
                return _SCHEMAS
            case "CommandGetSqlInfo":
                return _INFO
            case "CommandGetTableTypes":
                return _TABLE_TYPES
            case "CommandGetTables":
                return _WITH_SCHEMA if fields.get(5, [0])[-1] else _TABLES
        return self._schema_of_text(call, _question(name, fields))

    def _schema_of_text(self, call: Call, text: str) -> pa.Schema:
        explained = _EXPLAIN.match(text)
        shown = self._describe(call, text if explained is None else text[explained.end() :])
        return _schema(shown) if explained is None else _PLAN

    def _describe(self, call: Call, text: str) -> tuple[Shown, ...]:
        return self._wait(call.asker.describe([text], margins=call.margins))

    def _get(self, call: Call, ticket: Any) -> pa.Table:
        name, fields = messages.unpack(ticket.ticket)
        if name == "TicketStatementQuery":
            text = messages.text_of(fields, 1) or ""
            explained = _EXPLAIN.match(text)
            if explained is not None:
                told = self._wait(call.asker.explain(text[explained.end() :], call.offer))
                return pa.table([told.splitlines()], schema=_PLAN)
            shown = self._describe(call, text)
            answer: Answer | Told | None
            answer = self._wait(call.asker.tell(text, call.confidence))
            if answer is None:
                answer = self._wait(call.asker.ask(text, call.offer))
            return _table(answer, shown, call.confidence)
        self._wait(call.asker.admit())
        return _list(name, fields, call.asker)

    def _act(self, call: Call, action: Any) -> Iterator[Any]:
        if action.type == "CreatePreparedStatement":
            _, fields = messages.unpack(action.body.to_pybytes())
            text = messages.text_of(fields, 1) or ""
            if "$" in text:  # what has parameters is described, and counted, when they are known
                self._wait(call.asker.admit())
            count = count_parameters(text)
            wanted = pa.schema([pa.field(str(n + 1), pa.null()) for n in range(count)])
            result = {1: _PREPARED + text.encode(), 3: wanted.serialize().to_pybytes()}
            if not count:  # else what it gives is known when they are
                result[2] = self._schema_of_text(call, text).serialize().to_pybytes()
            yield flight.Result(
                pa.py_buffer(messages.pack("ActionCreatePreparedStatementResult", result))
            )
        elif action.type != "ClosePreparedStatement":
            raise messages.unreadable()


def _question(name: str, fields: dict[int, list[bytes | int]]) -> str:
    text = messages.text_of(fields, 1)
    if name == "CommandPreparedStatementQuery" and text is not None:
        text = text.removeprefix(_PREPARED.decode())
    elif name != "CommandStatementQuery":
        raise messages.unreadable()
    return text or ""


def _address(peer: object) -> str:
    """The address of ``ipv4:10.0.0.7:51234``.

    >>> _address("ipv4:10.0.0.7:51234")
    '10.0.0.7'
    """
    return str(peer).partition(":")[2].rpartition(":")[0]


def _tell(refusal: Refusal) -> Exception:
    """A refusal as Flight tells it; its one shape beside the text."""
    told = refusal.translate("flight")
    # Other exceptions would reach the client with the lines of this program.
    kind = _ERRORS.get(told.code, flight.FlightServerError)
    error: Exception = kind(str(told), json.dumps(told.to_json()).encode())
    return error


_ERRORS = {
    "A10": flight.FlightUnauthenticatedError,
    "A11": flight.FlightUnauthenticatedError,
    "A12": flight.FlightUnauthorizedError,
    "A13": flight.FlightUnauthorizedError,
    "A15": flight.FlightUnavailableError,
    "A17": flight.FlightUnavailableError,
}


# --- as Arrow -----------------------------------------------------------------------------------


def _type(shown: Shown) -> pa.DataType:
    column = shown.column
    one = _WIDE if column.total and column.kind is Kind.INTEGER else _TYPES[column.kind]
    return pa.list_(one) if column.listed else one


def _schema(shown: Sequence[Shown]) -> pa.Schema:
    return pa.schema([pa.field(one.name, _type(one)) for one in shown])


def _table(answer: Answer | Told, shown: Sequence[Shown], confidence: str) -> pa.Table:
    columns = read_columns(answer, shown, confidence)
    if columns is None:
        raise failed_refusal()
    arrays = []
    for one, values in zip(shown, columns, strict=True):
        try:
            arrays.append(pa.array([_fit(value, one) for value in values], _type(one)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            raise Unreadable(
                "a released number is too large for the type of its column.",
                "offer more, so that there is less noise; the stored answer is free over HTTP.",
            ) from None
    about = {"discreet:notes": "\n".join(answer.notes)}
    if isinstance(answer, Answer):  # what a release or a survey says is free
        about["discreet:price"] = json.dumps(loss_json(answer.loss), ensure_ascii=False)
        about["discreet:replayed"] = str(answer.replayed).lower()
    return pa.table(arrays, schema=_schema(shown).with_metadata(about))


def _fit(value: Any, shown: Shown) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [_fit(one, shown) for one in value]
    match shown.column.kind:
        case Kind.INTEGER:
            return int(value)
        case Kind.DECIMAL:
            return float(value)
        case Kind.TEXT:
            return str(value)
    return value


def _list(name: str, fields: dict[int, list[bytes | int]], asker: Asker) -> pa.Table:
    """What there is: the declared tables of the dataset, its releases and its surveys."""
    match name:
        case "CommandGetCatalogs":
            return pa.table([[asker.dataset.name]], schema=_CATALOGS)
        case "CommandGetDbSchemas":
            return pa.table([[asker.dataset.name], ["public"]], schema=_SCHEMAS)
        case "CommandGetTableTypes":
            return pa.table([["TABLE"]], schema=_TABLE_TYPES)
        case "CommandGetSqlInfo":
            return pa.Table.from_batches([], schema=_INFO)
        case "CommandGetTables":
            return _list_tables(fields, asker)
    raise messages.unreadable()


def _list_tables(fields: dict[int, list[bytes | int]], asker: Asker) -> pa.Table:
    curator = asker.dataset.curator
    free = {name: one.table for name, one in list_free_tables(curator).items()}
    declared = {**curator.engine.catalogue.schema.tables, **free}
    pattern = messages.text_of(fields, 3)
    names = [name for name in declared if pattern is None or _like(name, pattern)]
    count = len(names)
    columns: list[Any] = [[asker.dataset.name] * count, ["public"] * count, names]
    columns.append(["TABLE"] * count)
    if not fields.get(5, [0])[-1]:
        return pa.table(columns, schema=_TABLES)
    schemas = [
        pa.schema([pa.field(c.name, _TYPES[c.kind], c.nullable) for c in declared[name].columns])
        for name in names
    ]
    columns.append([schema.serialize().to_pybytes() for schema in schemas])
    return pa.table(columns, schema=_WITH_SCHEMA)


def _like(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern of LIKE; one step for each of its characters, and no way back.

    >>> _like("visits", "v%s"), _like("visits", "v_s"), _like("visits", "%" * 500 + "!")
    (True, False, False)
    """
    reached = {0}  # how many characters of the name what was read of the pattern can stand for
    for one in pattern:
        if one == "%":
            reached = set(range(min(reached), len(name) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(name) and one in ("_", name[at])}
        if not reached:
            return False
    return len(name) in reached


__all__ = ["FlightDoor"]
