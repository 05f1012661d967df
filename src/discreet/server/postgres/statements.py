"""Statements of a session: described, filled with their parameters, and run where they belong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from discreet.errors import Refusal
from discreet.publication.told import Told
from discreet.release.answer import Answer
from discreet.server.asking import Asker, Shown, read_columns
from discreet.server.postgres import wire
from discreet.server.postgres.listing import Listing
from discreet.server.postgres.relay import Bind, Failed, Relay
from discreet.server.postgres.reports import (
    Said,
    notice_answer,
    report_refusal,
    sqlstate,
)
from discreet.server.postgres.routing import Kind, blank_schema, route, takes_a_parser
from discreet.server.postgres.tokens import Filled, Part, Token, rewrite
from discreet.server.postgres.types import (
    TEXT,
    Field,
    encode,
    example,
    type_of,
    write_constant,
)
from discreet.server.postgres.variables import Variables

T = TypeVar("T")
PLAN = Field("QUERY PLAN", TEXT)
_UNKNOWN = ("42P01", "42601")
"""A table that is not there, a text that cannot be read."""


@dataclass(slots=True)
class Prepared:
    """A statement that was parsed; ``text`` is the whole text that it stands in."""

    text: str
    tokens: list[Token]
    kind: Kind | None
    """None: there is nothing in it."""
    oids: tuple[int, ...] = ()
    types: tuple[int, ...] | None = None
    """The types of its parameters, when they have been found out."""
    described: tuple[Shown, ...] | None = None

    @property
    def sql(self) -> str:
        """Its own text."""
        return self.text[self.tokens[0].start : self.tokens[-1].stop]

    @property
    def parameters(self) -> int:
        """How many parameters it has."""
        numbers = (int(t.text[1:6]) for t in self.tokens if t.part is Part.PARAMETER)
        return max([len(self.oids), *numbers])


@dataclass(slots=True)
class Outcome:
    """What a statement gave: rows as bytes, and how its completion is called."""

    tag: str
    description: bytes | None = None
    rows: list[bytes] = field(default_factory=list)
    notices: list[bytes] = field(default_factory=list)
    size: int = 0
    """Bytes of its rows."""

    def __post_init__(self) -> None:
        self.size = sum(map(len, self.rows))


@dataclass(slots=True)
class Portal:
    """A statement with its parameters; once run, its rows and how many were fetched."""

    prepared: Prepared
    bind: Bind = field(default_factory=Bind)
    outcome: Outcome | None = None
    at: int = 0
    held: bool = False


class Placed(Said):
    """A refusal of a question, told where it stands in the text that the client sent."""

    def __init__(self, refusal: Refusal, filled: Filled) -> None:
        super().__init__(sqlstate(refusal.code), refusal.what)
        self.refusal = refusal
        self.filled = filled

    def report(self, severity: str = "ERROR") -> bytes:
        """The message, with a caret where it has a place."""
        span = self.refusal.span
        position = None
        if span is not None and span.text == self.filled.text:
            position = self.filled.origin(span.start) + 1
        return report_refusal(self.refusal, position=position, severity=severity)


class Statements:
    """The statements of one session."""

    def __init__(self, asker: Asker, listing: Listing, variables: Variables) -> None:
        self._asker = asker
        self._listing = listing
        self._variables = variables
        self._schema = asker.dataset.curator.engine.catalogue.schema
        self._declared = {name.lower() for name in self._schema.tables}
        self._relay: Relay | None = None
        self._typing: Relay | None = None
        self._cancelled = asyncio.Event()

    @property
    def _tables(self) -> set[str]:
        """What a question may name: declared tables, and what was released or reported by now."""
        return {*self._declared, *self._asker.dataset.curator.list_free()}

    def cancel(self) -> None:
        """Stop waiting for what is under way."""
        self._cancelled.set()

    def close(self) -> None:
        """Let go of the connections to the empty PostgreSQL."""
        for relay in (self._relay, self._typing):
            if relay is not None:
                relay.close()

    async def prepare(self, text: str, tokens: list[Token], oids: tuple[int, ...] = ()) -> Prepared:
        """A statement, and where it goes; what takes a parser is counted, and waits in line."""
        if not tokens:
            return Prepared(text, [], None, oids)
        if not takes_a_parser(tokens, self._tables):
            return Prepared(text, tokens, route(text, tokens, self._tables), oids)
        await self._asker.admit()
        found = await self._asker.dataset.explain(
            lambda: route(text, tokens, self._tables), self._asker.counted
        )
        return Prepared(text, tokens, found, oids)

    # --- describing ---------------------------------------------------------------------------

    async def find_types(self, prepared: Prepared) -> tuple[int, ...]:
        """The types of parameters: as declared, else as PostgreSQL would take them."""
        if prepared.types is None:
            count = prepared.parameters
            declared = [*prepared.oids, *(0 for _ in range(count - len(prepared.oids)))]
            asked = prepared.kind not in (None, Kind.COMMAND) and 0 in declared
            found = await self._ask_types(prepared) if asked else ()
            prepared.types = tuple(
                oid or (found[number] if number < len(found) else TEXT)
                for number, oid in enumerate(declared)
            )
        return prepared.types

    async def _ask_types(self, prepared: Prepared) -> Sequence[int]:
        typing = prepared.kind is not Kind.CATALOGUE
        relay = await self._connect(typing=typing)
        text = rewrite(prepared.text, prepared.tokens, _blank_clause(prepared.tokens)).text
        try:
            return (await relay.describe(text, prepared.oids)).parameters
        except Failed as error:
            if typing:  # written as the curator understands it, and PostgreSQL does not
                return ()
            raise error from None

    async def describe_prepared(self, prepared: Prepared) -> bytes | None:
        """The columns of a statement whose parameters are not known; None if the session knows."""
        if prepared.kind is Kind.CATALOGUE:
            relay = await self._connect()
            described = relay.describe(prepared.sql, prepared.oids)
            return (await self._ask_relay(prepared, described)).description
        if prepared.kind is Kind.QUESTION:
            types = await self.find_types(prepared)
            texts = (self._fill(prepared, one).text for one in self._examples(types))
            margins = self._variables.margins
            prepared.described = await self._asker.describe(texts, margins=margins, bound=not types)
            return wire.row_description(_fields(prepared.described), ())
        return wire.row_description([PLAN], ()) if prepared.kind is Kind.EXPLAIN else None

    async def describe_portal(self, portal: Portal) -> bytes | None:
        """The columns of a bound statement; None if the session knows."""
        prepared = portal.prepared
        if prepared.kind is Kind.CATALOGUE:
            relay = await self._connect()
            described = relay.describe_bound(prepared.sql, portal.bind)
            return (await self._ask_relay(prepared, described)).description
        if prepared.kind is Kind.QUESTION:
            shown = await self._describe_question(prepared, await self._fill_portal(portal))
            return wire.row_description(_fields(shown), portal.bind.results)
        return wire.row_description([PLAN], ()) if prepared.kind is Kind.EXPLAIN else None

    async def _describe_question(self, prepared: Prepared, filled: Filled) -> tuple[Shown, ...]:
        known = prepared.described
        if prepared.parameters and known is not None and any(one.free for one in known):
            return known  # by all rows there are; those that are wanted now may be none
        margins = self._variables.margins
        try:
            found = await self._asker.describe([filled.text], margins=margins)
        except Refusal as refusal:
            raise Placed(refusal, filled) from None
        if prepared.described is not None and prepared.described != found:
            raise Said("0A000", "cached plan must not change result type")
        return found

    def _examples(self, types: Sequence[int]) -> list[list[str]]:
        """Constants that stand for parameters while a question is described."""
        texts = ["'x'", "NULL"]
        for table in self._schema.tables.values():
            for column in table.columns:
                if column.values and isinstance(column.values[0], str):
                    texts.append(write_constant(column.values[0].encode(), TEXT, False))
        shown = dict.fromkeys(texts[:40])
        return [
            [text if example(oid) == "'x'" else example(oid) for oid in types] for text in shown
        ]

    # --- filling in parameters ----------------------------------------------------------------

    async def _fill_portal(self, portal: Portal) -> Filled:
        types = await self.find_types(portal.prepared)
        formats = portal.bind.formats
        constants = [
            write_constant(value, oid, bool(wire.format_of(formats, number)))
            for number, (value, oid) in enumerate(zip(portal.bind.values, types, strict=True))
        ]
        return self._fill(portal.prepared, constants)

    def _fill(self, prepared: Prepared, constants: Sequence[str]) -> Filled:
        """The question with its parameters as constants, as the curator reads it."""
        tokens = prepared.tokens[1:] if prepared.kind is Kind.EXPLAIN else prepared.tokens
        put = blank_schema(tokens, self._tables)
        if any(token.part is Part.ESCAPED for token in tokens):
            raise _refuse_escapes(prepared.text, tokens)
        for number, token in enumerate(tokens):
            if token.part is Part.PARAMETER:
                index = int(token.text[1:6]) - 1
                if not 0 <= index < len(constants) or len(token.text) > 6:
                    raise Said("42P02", "there is no such parameter.")
                put[number] = constants[index]
        return rewrite(prepared.text, tokens, put)

    # --- running ------------------------------------------------------------------------------

    async def run(self, portal: Portal) -> Outcome:
        """Run a question, an explanation or a statement about the catalogue."""
        self._cancelled.clear()
        match portal.prepared.kind:
            case Kind.QUESTION:
                return await self._ask(portal)
            case Kind.EXPLAIN:
                return await self._explain(portal)
        return await self._wait(self._run_catalogue(portal))

    async def _wait(self, work: Coroutine[Any, Any, T], *, goes_on: bool = False) -> T:
        """The result of some work, unless the client cancels; what ``goes_on`` is paid for."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            _let_go(task, goes_on=goes_on)
            raise
        finally:
            stop.cancel()
        if task.done():
            return task.result()
        _let_go(task, goes_on=goes_on)
        raise Said(
            "57014",
            "canceling statement due to user request",
            "a question that was charged stays charged, and its answer is stored." * goes_on,
            "ask the same again: it is free." * goes_on,
        )

    async def _run_catalogue(self, portal: Portal) -> Outcome:
        await self._asker.admit()
        dataset, counted = self._asker.dataset, self._asker.counted
        dataset.concurrency.enter(counted)
        try:
            relay = await self._connect()
            run = relay.run(portal.prepared.sql, portal.bind)
            found = await self._ask_relay(portal.prepared, run)
        finally:
            dataset.concurrency.leave(counted)
        described = found.description
        has_rows = described[:1] == b"T"
        tag = found.tag.rsplit(" ", 1)[0] if has_rows else found.tag
        return Outcome(tag or "SELECT", described if has_rows else None, found.rows, found.notices)

    async def _ask_relay(self, prepared: Prepared, work: Awaitable[T]) -> T:
        """What the empty PostgreSQL says; of a table that nobody has, what the curator says.

        The name may be one that is spelled nearly like a declared table's.
        """
        try:
            return await work
        except Failed as error:
            if error.state not in _UNKNOWN:
                raise
            tokens = prepared.tokens[1:] if prepared.tokens[0].says("EXPLAIN") else prepared.tokens
            filled = rewrite(prepared.text, tokens, {})
            try:
                await self._asker.describe([filled.text], margins=False)
            except Refusal as refusal:
                if refusal.rewriting is not None:
                    raise Placed(refusal, filled) from None
            raise error from None

    async def _ask(self, portal: Portal) -> Outcome:
        filled = await self._fill_portal(portal)
        formats = portal.bind.results
        described = await self._describe_question(portal.prepared, filled)
        if len(formats) not in (0, 1, len(described)):  # before it is charged
            raise Said("08P01", "the formats are not as many as the columns.")
        confidence = self._variables.confidence
        answer: Answer | Told | None
        try:
            answer = await self._wait(self._asker.tell(filled.text, confidence))
            if answer is None:
                asked = self._asker.ask(filled.text, self._variables.offer)
                answer = await self._wait(asked, goes_on=True)
        except Refusal as refusal:
            raise Placed(refusal, filled) from None
        rows = await asyncio.to_thread(_encode_rows, answer, described, formats, confidence)
        notices = []
        if self._variables.notices:
            notices = [await asyncio.to_thread(notice_answer, answer, confidence)]
        return Outcome("SELECT", wire.row_description(_fields(described), formats), rows, notices)

    async def _explain(self, portal: Portal) -> Outcome:
        filled = await self._fill_portal(portal)
        try:
            text = await self._wait(self._asker.explain(filled.text, self._variables.offer))
        except Refusal as refusal:
            raise Placed(refusal, filled) from None
        return write_texts(PLAN, text.splitlines(), "EXPLAIN", portal.bind.results)

    async def tell_balance(self, name: str, formats: Sequence[int]) -> Outcome:
        """What was spent and what is left, as lines of a column of that name."""
        lines = await self._asker.tell_balance()
        return write_texts(Field(name, TEXT), lines, "SHOW", formats)

    async def _connect(self, *, typing: bool = False) -> Relay:
        """This session's own connection to the empty PostgreSQL, which lists all there is now."""
        await self._listing.renew()
        relay = self._typing if typing else self._relay
        if relay is None or relay.closed:
            relay = await self._listing.connect(typing=typing)
            if typing:
                self._typing = relay
            else:
                self._relay = relay
        return relay


def _refuse_escapes(text: str, tokens: Sequence[Token]) -> Said:
    """What is said to other ways of writing a text; where it is plain, with the whole question.

    >>> from discreet.server.postgres.tokens import tokenize
    >>> asked = "SELECT COUNT(*) FROM visits WHERE note = $$it's$$"
    >>> _refuse_escapes(asked, tokenize(asked)).hint
    "write it as '...': ask SELECT COUNT(*) FROM visits WHERE note = 'it''s'"
    """
    hint = "write it as '...'; a quote inside is written twice."
    inside = {n: t.text.split("$", 2) for n, t in enumerate(tokens) if t.part is Part.ESCAPED}
    if all(len(parts) == 3 and not parts[0] for parts in inside.values()):
        # Between its dollars a text stands as it is.
        texts = {n: body[: -len(tag) - 2] for n, (_, tag, body) in inside.items()}
        put = {n: "'" + body.replace("'", "''") + "'" for n, body in texts.items()}
        hint = f"write it as '...': ask {rewrite(text, tokens, put).text}"
    return Said(
        "0A000",
        "a question takes text as '...' only, without escapes or dollars.",
        "readers differ on what such a text says, and another text asks another thing.",
        hint,
    )


def write_texts(column: Field, lines: Sequence[str], tag: str, formats: Sequence[int]) -> Outcome:
    """Lines of text as rows of one column."""
    rows = [wire.data_row([line.encode()]) for line in lines]
    return Outcome(tag, wire.row_description([column], formats), rows)


def _fields(shown: Sequence[Shown]) -> list[Field]:
    return [
        Field(s.name, type_of(s.column.kind, total=s.column.total, listed=s.column.listed))
        for s in shown
    ]


def _encode_rows(
    answer: Answer | Told, shown: Sequence[Shown], formats: Sequence[int], confidence: str
) -> list[bytes]:
    """The rows of an answer as they are sent, in the columns that were described."""
    columns = read_columns(answer, shown, confidence)
    if columns is None:
        raise Said("0A000", "the columns of the answer are not those that were described.")
    fields = _fields(shown)
    encoded = [
        [encode(value, field.oid, bool(wire.format_of(formats, n))) for value in values]
        for n, (field, values) in enumerate(zip(fields, columns, strict=True))
    ]
    return [wire.data_row(row) for row in zip(*encoded, strict=True)]


def _let_go(task: asyncio.Future[Any], *, goes_on: bool) -> None:
    if not goes_on:
        task.cancel()
    _UNDER_WAY.add(task)
    task.add_done_callback(_forget)


_UNDER_WAY: set[asyncio.Future[Any]] = set()
"""What goes on although nobody waits for it."""


def _forget(task: asyncio.Future[Any]) -> None:
    _UNDER_WAY.discard(task)
    if not task.cancelled():
        task.exception()


def _blank_clause(tokens: Sequence[Token]) -> dict[int, str]:
    """Nothing in the place of the privacy clause, which PostgreSQL does not know."""
    put: dict[int, str] = {}
    for at, token in enumerate(tokens[:-1]):
        if not (token.says("WITH") and tokens[at + 1].says("DIFFERENTIAL_PRIVACY")):
            continue
        stop = at + 2
        if stop + 1 < len(tokens) and tokens[stop].says("OPTIONS"):
            depth, stop = 0, stop + 1
            while stop < len(tokens):
                depth += {"(": 1, ")": -1}.get(tokens[stop].text, 0)
                stop += 1
                if depth == 0:
                    break
        put |= dict.fromkeys(range(at, stop), " ")
    return put


__all__ = ["Outcome", "Placed", "Portal", "Prepared", "Statements", "write_texts"]
