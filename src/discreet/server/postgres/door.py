"""The socket: TLS, the proof of a key, cancelling; then a session for each connection."""

from __future__ import annotations

import asyncio
import base64
import ssl
import struct
from contextlib import suppress
from pathlib import Path

from starlette.concurrency import run_in_threadpool

from discreet.errors import AccessRefusal, Refusal
from discreet.ledger.keys import Proved, find_proved, public_part, recheck
from discreet.noise.entropy import random_bytes
from discreet.server.asking import Asker
from discreet.server.postgres import wire
from discreet.server.postgres.catalogue import Catalogue
from discreet.server.postgres.listing import Listing
from discreet.server.postgres.reports import Said, refuse_key, refuse_plaintext, report_refusal
from discreet.server.postgres.scram import Exchange, end_point
from discreet.server.postgres.session import Session
from discreet.server.postgres.variables import STATUS, Variables, read_options
from discreet.server.settings import HEADER_TIME_S
from discreet.server.state import ServerState

MOST_SESSIONS, MOST_OF_A_KEY = 50, 20
"""Sessions at once, of all keys and of one."""
MOST_STRANGERS = 500
"""Connections at once that have not shown a key, and those that have."""
_READ_AHEAD = 256 * 1024


class PostgresDoor:
    """Listens for PostgreSQL's clients."""

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
        self._wanted = port
        self._tls = _context(tls_cert, tls_key)
        self._channel = end_point(tls_cert)
        self._catalogues = {
            name: Catalogue(name, dataset.curator.engine.catalogue.schema)
            for name, dataset in server.datasets.items()
        }
        self._listings = {
            name: Listing(server.datasets[name].curator, catalogue)
            for name, catalogue in self._catalogues.items()
        }
        self._defaults = {name: one.offers for name, one in server.datasets.items()}
        self._version = "15.0"
        self._listening: asyncio.Server | None = None
        self._sessions: dict[bytes, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0

    @property
    def port(self) -> int:
        """Where it listens."""
        if self._listening is None:
            return self._wanted
        return int(self._listening.sockets[0].getsockname()[1])

    async def open(self) -> None:
        """Start the empty servers, then listen."""
        for name, catalogue in self._catalogues.items():
            await catalogue.start()
            relay = await self._listings[name].connect()
            self._version = relay.version or self._version
            relay.close()
        self._listening = await asyncio.start_server(
            self._connect, self._host, self._wanted, limit=_READ_AHEAD
        )

    async def close(self) -> None:
        """Take nothing new, end every session, and leave nothing behind."""
        if self._listening is not None:
            self._listening.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for catalogue in self._catalogues.values():
            await catalogue.stop()

    # --- a connection -------------------------------------------------------------------------

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._tasks.add(task)
        self._connections += 1
        try:
            await self._serve(reader, writer)
        except (wire.Broken, OSError, ssl.SSLError, TimeoutError):
            pass
        except asyncio.CancelledError:
            writer.write(Said("57P01", "the server is stopping.").report("FATAL"))
        except Exception as error:
            self._server.log.mistake(error)
        finally:
            self._connections -= 1
            self._tasks.discard(task)
            with suppress(OSError, RuntimeError):
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEADER_TIME_S):
                if self._connections > MOST_STRANGERS:
                    raise Said("53300", "too many connections are open already.")
                started = await self._start(reader, writer)
                if started is None:
                    return
                session = await self._enter(reader, writer, started)
        except Refusal as refusal:
            writer.write(report_refusal(refusal, severity="FATAL"))
            return
        except Said as said:
            writer.write(said.report("FATAL"))
            return
        name = random_bytes(8)
        self._sessions[name] = session
        writer.write(wire.frame(b"K", name))
        try:
            await session.serve()
        finally:
            del self._sessions[name]

    async def _start(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> dict[str, str] | None:
        """The parameters of a connection that may go on; None if there is nothing more to do."""
        encrypted = False
        for _ in range(3):
            body = await wire.read_start(reader)
            (code,) = struct.unpack(">i", body[:4])
            if code == wire.CANCEL_REQUEST:
                session = self._sessions.get(body[4:])
                if session is not None:
                    session.cancel()
                return None
            if code == wire.SSL_REQUEST and self._tls is not None and not encrypted:
                if getattr(reader, "_buffer", b""):  # sent in the open, to be read as encrypted
                    raise wire.Broken
                writer.write(b"S")
                await writer.start_tls(self._tls)
                encrypted = True
            elif code in (wire.SSL_REQUEST, wire.GSS_REQUEST):
                writer.write(b"N")
            elif code >> 16 == 3:
                if self._tls is not None and not encrypted:
                    raise refuse_plaintext()
                return _read_parameters(wire.Body(body[4:]), writer, code & 0xFFFF)
            else:
                raise Said("0A000", "this version of the protocol is not spoken here.")
        raise wire.Broken

    async def _enter(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, told: dict[str, str]
    ) -> Session:
        """A session for whoever has a key of the dataset."""
        server = self._server
        user, database = told.pop("user", ""), told.pop("database", "")
        peer = writer.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        server.strangers.look(address, public_part(user) or user.removeprefix("discreet_"))
        try:
            proved = await self._prove(reader, writer, user, database)
            dataset = server.datasets[database]
            grant = await run_in_threadpool(recheck, dataset.account, database, proved.key_id)
        except (AccessRefusal, Said):
            server.strangers.count_failure(address)
            raise
        server.strangers.came_in(proved.key_id)
        same = sum(
            session.counted == server.lineage.first(proved.key_id)
            for session in self._sessions.values()
        )
        if same >= MOST_OF_A_KEY or len(self._sessions) >= MOST_SESSIONS:
            raise Said("53300", "too many sessions are open already.")
        variables = Variables(self._defaults[database].of(grant))
        for name, value in read_options(told.pop("options", "")):
            variables.assign(name, value)
        if told.pop("replication", "off") not in ("off", "false", "0", "no"):
            raise Said("0A000", "there is nothing to replicate here.")
        for name, value in told.items():
            if not name.startswith("_pq_."):
                variables.assign(name, value)
        signature = base64.b64encode(proved.signature)
        writer.write(wire.authentication(12, b"v=" + signature))
        writer.write(wire.authentication(0))
        shown = {
            "server_version": self._version,
            "application_name": told.get("application_name", ""),
        }
        for name, value in {**STATUS, **shown, "session_authorization": user}.items():
            writer.write(wire.parameter_status(name, value))
        return Session(
            reader,
            writer,
            asker=Asker(server, dataset, proved.key_id),
            listing=self._listings[database],
            variables=variables,
        )

    async def _prove(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str, database: str
    ) -> Proved:
        """Let the client prove that it has a key; every failure takes the same steps and words."""
        encrypted = writer.get_extra_info("ssl_object") is not None
        nonce = base64.b64encode(random_bytes(24)).decode()
        exchange = Exchange(nonce, self._channel if encrypted else None)
        offered = b"".join(wire.string(name) for name in exchange.mechanisms)
        writer.write(wire.authentication(10, offered + b"\0"))
        body = await _read_proof(reader)
        mechanism, length = body.text(), body.number()
        challenge = exchange.begin(mechanism, body.some(length))
        body.end()
        writer.write(wire.authentication(11, challenge))
        proof, message = exchange.finish((await _read_proof(reader)).rest())
        datasets = self._server.datasets
        known = database in datasets
        account = datasets[database if known else next(iter(datasets))].account
        found = await run_in_threadpool(find_proved, account, user if known else "", proof, message)
        if found is None:
            raise refuse_key()
        return found


def _context(tls_cert: Path | None, tls_key: Path | None) -> ssl.SSLContext | None:
    if tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls_cert, tls_key)
    return context


async def _read_proof(reader: asyncio.StreamReader) -> wire.Body:
    message = await wire.read_message(reader)
    if message.kind != b"p":
        raise wire.Broken
    return wire.Body(message.body)


def _read_parameters(body: wire.Body, writer: asyncio.StreamWriter, minor: int) -> dict[str, str]:
    found: dict[str, str] = {}
    while name := body.text():
        found[name] = body.text()
    body.end()
    unknown = [name for name in found if name.startswith("_pq_.")]
    if minor or unknown:
        names = b"".join(wire.string(name) for name in unknown)
        writer.write(wire.frame(b"v", struct.pack(">ii", 0, len(unknown)) + names))
    return found


__all__ = ["PostgresDoor"]
