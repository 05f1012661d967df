"""One connection: the messages of both protocols, one after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

from discreet.errors import Refusal
from discreet.server.asking import Asker
from discreet.server.postgres import wire
from discreet.server.postgres.commands import ENDING, Commands, State, check_room
from discreet.server.postgres.listing import Listing
from discreet.server.postgres.relay import Bind, Failed
from discreet.server.postgres.reports import Said, report_refusal, sqlstate
from discreet.server.postgres.routing import Kind
from discreet.server.postgres.statements import Outcome, Portal, Prepared, Statements
from discreet.server.postgres.tokens import split
from discreet.server.postgres.variables import Variables
from discreet.server.refusals import failed_refusal

IDLE_S = 4 * 3600.0
DRAIN_S = 60.0
MOST_PARAMETERS = 1000
MOST_HELD = 32 * 1024 * 1024
"""Bytes of rows that the cursors of one session hold."""
_EXTENDED = (b"P", b"B", b"D", b"E", b"C", b"H")
_COPIES = (b"d", b"c", b"f")
_FINE = "00000"


class Session:
    """One connection of somebody who has shown a key."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        asker: Asker,
        listing: Listing,
        variables: Variables,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._asker = asker
        self._state = State()
        self._statements = Statements(asker, listing, variables)
        self._commands = Commands(self._state, self._statements, variables, self._run)
        self._skipping = False

    @property
    def counted(self) -> str:
        """The key that limits are kept for."""
        return self._asker.counted

    def cancel(self) -> None:
        """Stop waiting for what is under way."""
        self._statements.cancel()

    async def serve(self) -> None:
        """Answer until the client leaves."""
        try:
            self._send(wire.ready(self._state.transaction))
            while True:
                await self._drain()
                async with asyncio.timeout(IDLE_S):
                    message = await wire.read_message(self._reader)
                if message.kind == b"X":
                    return
                await self._take(message)
        except TimeoutError:
            self._send(Said("57P05", "this session was idle for too long.").report("FATAL"))
        finally:
            self._statements.close()

    async def _take(self, message: wire.Message) -> None:
        if message.kind == b"S":
            self._finish()
        elif message.kind == b"Q":
            body = wire.Body(message.body)
            text = body.text()
            body.end()
            await self._guard(self._simple(text), extended=False)
            self._finish()
        elif message.kind == b"F":
            self._send(Said("0A000", "function calls of the protocol are not taken.").report())
            self._finish()
        elif message.kind in _EXTENDED:
            if not self._skipping:
                logged = message.kind == b"E"
                await self._guard(self._answer_extended(message), extended=True, logged=logged)
        elif message.kind not in _COPIES:
            raise wire.Broken

    def _finish(self) -> None:
        self._skipping = False
        if self._state.transaction == "I":
            self._state.end_portals()
        self._send(wire.ready(self._state.transaction))

    async def _guard(self, work: Awaitable[None], *, extended: bool, logged: bool = True) -> None:
        """Do what a message asks; an error is told, and what follows it skipped."""
        started = time.monotonic()
        server, told = self._asker.server, (_FINE, b"")
        try:
            await work
        except Refusal as refusal:
            server.metrics.count("discreet_refusals_total", code=refusal.code)
            told = sqlstate(refusal.code), report_refusal(refusal)
        except Said as said:
            told = said.state, said.report()
        except Failed as error:
            told = error.state, error.message
        except wire.Broken:
            raise
        except Exception as error:
            server.log.mistake(error)
            told = sqlstate("A18"), report_refusal(failed_refusal())
        state, message = told
        self._send(message)
        if state != _FINE:
            self._skipping = extended
            if self._state.transaction == "T":
                self._state.transaction = "E"
        server.metrics.count("discreet_requests_total", route="postgres", status=state)
        if logged or state != _FINE:
            ms = round(1000 * (time.monotonic() - started))
            server.log.write("statement", status=state, key=self._asker.key_id, ms=ms)

    def _send(self, message: bytes) -> None:
        self._writer.write(message)

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(DRAIN_S):
                await self._writer.drain()
        except (TimeoutError, OSError):
            raise wire.Broken from None

    # --- running ------------------------------------------------------------------------------

    async def _run(self, portal: Portal) -> Outcome:
        kind, tokens = portal.prepared.kind, portal.prepared.tokens
        if self._state.transaction == "E" and (not tokens or not tokens[0].says(*ENDING)):
            raise Said(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            )
        if kind is None:
            found = Outcome("")
        elif kind is Kind.COMMAND:
            found = await self._commands.run(portal)
        else:
            found = await self._statements.run(portal)
        others = (other.outcome for other in self._state.portals.values() if other is not portal)
        if found.size + sum(one.size for one in others if one is not None) > MOST_HELD:
            raise Said("54000", "the cursors of this session hold too much; close some.")
        portal.outcome = found
        return found

    async def _send_rows(self, portal: Portal, outcome: Outcome, most: int) -> None:
        stop = len(outcome.rows) if most <= 0 else min(len(outcome.rows), portal.at + most)
        for number in range(portal.at, stop):
            self._send(outcome.rows[number])
            if number % 1000 == 999:
                await self._drain()
        fetched, portal.at = stop - portal.at, stop
        for one in outcome.notices:
            self._send(one)
        outcome.notices = []
        if most > 0 and stop < len(outcome.rows):
            self._send(wire.SUSPENDED)
        elif portal.prepared.kind is None:
            self._send(wire.EMPTY)
        else:
            counted = outcome.tag in ("SELECT", "FETCH")
            self._send(wire.complete(f"{outcome.tag} {fetched}" if counted else outcome.tag))

    # --- the simple protocol ------------------------------------------------------------------

    async def _simple(self, text: str) -> None:
        """Every statement of a text is understood before the first is run."""
        found = [await self._statements.prepare(text, tokens) for tokens in split(text)]
        if not found:
            self._send(wire.EMPTY)
        if any(prepared.parameters for prepared in found):
            raise Said("42P02", "there are no parameters in the simple protocol.")
        for prepared in found:
            portal = Portal(prepared)
            outcome = await self._run(portal)
            if outcome.description is not None:
                self._send(outcome.description)
            await self._send_rows(portal, outcome, 0)

    # --- the extended protocol ----------------------------------------------------------------

    async def _answer_extended(self, message: wire.Message) -> None:
        body = wire.Body(message.body)
        match message.kind:
            case b"P":
                await self._parse(body)
            case b"B":
                self._bind(body)
            case b"D":
                await self._describe(body)
            case b"E":
                await self._execute(body)
            case b"C":
                self._close(body)
            case _:  # a flush: everything is sent at once anyhow
                body.end()

    async def _parse(self, body: wire.Body) -> None:
        name, text = body.text(), body.text()
        oids = tuple(body.number() & 0xFFFFFFFF for _ in range(body.count()))
        body.end()
        statements = split(text)
        if len(statements) > 1:
            raise Said("42601", "cannot insert multiple commands into a prepared statement")
        if name and name in self._state.prepared:
            raise Said("42P05", "there is a prepared statement of that name already.")
        first = statements[0] if statements else []
        prepared = await self._statements.prepare(text, first, oids)
        if prepared.parameters > MOST_PARAMETERS:
            raise Said("54000", f"a statement has at most {MOST_PARAMETERS} parameters.")
        check_room(self._state.prepared, name)
        self._state.prepared[name] = prepared
        self._send(wire.PARSED)

    def _bind(self, body: wire.Body) -> None:
        portal, name = body.text(), body.text()
        formats = tuple(body.short() for _ in range(body.count()))
        values: list[bytes | None] = []
        for _ in range(body.count()):
            length = body.number()
            values.append(None if length == -1 else body.some(length))
        results = tuple(body.short() for _ in range(body.count()))
        body.end()
        prepared = self._find_prepared(name)
        if any(one not in (0, 1) for one in (*formats, *results)):
            raise Said("08P01", "a format is neither text nor binary.")
        if len(formats) not in (0, 1, len(values)) or len(values) != prepared.parameters:
            raise Said("08P01", "the parameters are not as many as the statement has.")
        if portal and portal in self._state.portals:
            raise Said("42P03", "there is a cursor of that name already.")
        check_room(self._state.portals, portal)
        bind = Bind(prepared.oids, formats, tuple(values), results)
        self._state.portals[portal] = Portal(prepared, bind)
        self._send(wire.BOUND)

    def _find_prepared(self, name: str) -> Prepared:
        found = self._state.prepared.get(name)
        if found is None:
            raise Said("26000", "there is no prepared statement of that name.")
        return found

    async def _describe(self, body: wire.Body) -> None:
        what, name = body.some(1), body.text()
        body.end()
        if what == b"S":
            prepared = self._find_prepared(name)
            types = await self._statements.find_types(prepared)
            description = await self._statements.describe_prepared(prepared)
            self._send(wire.parameter_description(types))
        elif what == b"P":
            portal = self._state.find_portal(name)
            prepared = portal.prepared
            if portal.outcome is not None:
                description = portal.outcome.description
            else:
                description = await self._statements.describe_portal(portal)
        else:
            raise Said("08P01", "only statements and portals are described.")
        if description is None and prepared.kind is Kind.COMMAND:
            described = self._commands.describe(prepared)
            if isinstance(described, list):
                described = wire.row_description(described, ())
            description = described
        self._send(description or wire.NO_DATA)

    async def _execute(self, body: wire.Body) -> None:
        name, most = body.text(), body.number()
        body.end()
        portal = self._state.find_portal(name)
        await self._send_rows(portal, portal.outcome or await self._run(portal), most)

    def _close(self, body: wire.Body) -> None:
        what, name = body.some(1), body.text()
        body.end()
        if what == b"S":
            self._state.prepared.pop(name, None)
        else:
            self._state.portals.pop(name, None)
        self._send(wire.CLOSED)


__all__ = ["Session"]
