"""What a session does by itself: transactions, settings, cursors.

Transactions mean nothing, for an answer is charged and stored for good, and still work
as clients expect: settings made in one that is rolled back are undone, an error in one
must be rolled back, cursors end with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from discreet.server.postgres.relay import Bind
from discreet.server.postgres.reports import Said, not_a_question, notice
from discreet.server.postgres.routing import Kind
from discreet.server.postgres.statements import (
    Outcome,
    Portal,
    Prepared,
    Statements,
    write_texts,
)
from discreet.server.postgres.tokens import Token, unquote
from discreet.server.postgres.types import TEXT, Field
from discreet.server.postgres.variables import BALANCE, Variables, read_assignment

MOST_NAMES = 200
"""Prepared statements of one session, and its cursors."""
ENDING = ("COMMIT", "END", "ROLLBACK", "ABORT")
_CURSOR = (
    *("BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL"),
    *("CURSOR", "WITH", "WITHOUT", "HOLD"),
)


@dataclass(slots=True)
class State:
    """What a session remembers."""

    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    transaction: str = "I"
    """Idle (I), in a transaction (T), in a failed one (E)."""

    def end_portals(self, *, every: bool = False) -> None:
        """Forget the cursors that do not outlive their transaction."""
        self.portals = {n: p for n, p in self.portals.items() if p.held and not every}

    def find_portal(self, name: str) -> Portal:
        """A cursor, or an error."""
        found = self.portals.get(name)
        if found is None:
            raise Said("34000", "there is no cursor of that name.")
        return found


def check_room(names: dict[str, Any], name: str) -> None:
    """Refuse one name too many."""
    if len(names) >= MOST_NAMES and name not in names:
        raise Said("54000", f"a session has at most {MOST_NAMES} statements and cursors.")


class Commands:
    """The commands of one session."""

    def __init__(
        self,
        state: State,
        statements: Statements,
        variables: Variables,
        run: Callable[[Portal], Awaitable[Outcome]],
    ) -> None:
        self._state = state
        self._statements = statements
        self._variables = variables
        self._run_portal = run
        self._plain: dict[str, Callable[[list[Token]], Outcome]] = {
            "BEGIN": lambda _: self._begin("BEGIN"),
            "START": lambda _: self._begin("START TRANSACTION"),
            **dict.fromkeys(ENDING, self._end),
            "SAVEPOINT": self._keep,
            "RELEASE": self._keep,
            "SET": self._set,
            "RESET": self._reset,
            "CLOSE": self._close,
            "DEALLOCATE": self._deallocate,
            "DISCARD": self._discard,
            "UNLISTEN": lambda _: Outcome("UNLISTEN"),
        }

    async def run(self, portal: Portal) -> Outcome:
        """What a command does."""
        tokens = portal.prepared.tokens
        word = tokens[0].text.upper()
        if word in self._plain:
            return self._plain[word](tokens)
        match word:
            case "SHOW":
                return await self._show(portal)
            case "DECLARE":
                return await self._declare(portal)
            case "FETCH" | "MOVE":
                return await self._fetch(tokens, word)
        raise not_a_question(word)

    def describe(self, prepared: Prepared) -> list[Field] | bytes | None:
        """The columns that a command will give."""
        if prepared.tokens[0].says("SHOW"):
            return [Field(_name_shown(prepared.tokens), TEXT)]
        if prepared.tokens[0].says("FETCH"):
            portal = self._state.portals.get(_read_fetch(prepared.tokens)[0])
            if portal is not None and portal.outcome is not None:
                return portal.outcome.description
        return None

    # --- transactions -------------------------------------------------------------------------

    def _begin(self, tag: str) -> Outcome:
        if self._state.transaction == "I":
            self._variables.begin()
            self._state.transaction = "T"
            return Outcome(tag)
        return Outcome(tag, notices=[notice("there is already a transaction in progress")])

    def _end(self, tokens: list[Token]) -> Outcome:
        word = tokens[0].text.upper()
        if any(token.says("PREPARED") for token in tokens):
            raise not_a_question(f"{word} PREPARED")
        if any(token.says("TO") for token in tokens):  # a savepoint: nothing was kept since
            self._check_inside("ROLLBACK TO SAVEPOINT")
            self._state.transaction = "T"
            return Outcome("ROLLBACK")
        committed = word in ("COMMIT", "END") and self._state.transaction != "E"
        if self._state.transaction != "I":
            self._variables.end(committed=committed)
            self._state.end_portals()
        self._state.transaction = "I"
        if any(token.says("CHAIN") for token in tokens) and not tokens[-2].says("NO"):
            self._begin("BEGIN")
        return Outcome("COMMIT" if committed else "ROLLBACK")

    def _keep(self, tokens: list[Token]) -> Outcome:
        self._check_inside(tokens[0].text.upper())
        return Outcome(tokens[0].text.upper())

    def _check_inside(self, what: str) -> None:
        if self._state.transaction == "I":
            raise Said("25P01", f"{what} can only be used in transaction blocks")

    # --- settings -----------------------------------------------------------------------------

    def _set(self, tokens: list[Token]) -> Outcome:
        rest = [token for token in tokens[1:] if not token.says("SESSION", "LOCAL")]
        if rest and rest[0].says("ROLE", "AUTHORIZATION"):
            raise Said(
                "42501",
                "permission denied to set role",
                "who asks is who showed a key.",
                "connect with the key of whom you want to be.",
            )
        if rest and rest[0].says("TRANSACTION", "CHARACTERISTICS", "CONSTRAINTS"):
            return Outcome("SET")
        found = read_assignment(tokens)
        if found is None:
            raise Said("42601", "this setting cannot be read.", hint="SET name = 'value'.")
        name, value, local = found
        self._variables.assign(name, value, local=local)
        return Outcome("SET")

    def _reset(self, tokens: list[Token]) -> Outcome:
        rest = tokens[1:]
        if rest and rest[0].says("ALL"):
            self._variables.reset()
        elif rest and not rest[0].says("ROLE", "SESSION"):
            self._variables.assign("".join(unquote(token) for token in rest), None)
        return Outcome("RESET")

    async def _show(self, portal: Portal) -> Outcome:
        name = _name_shown(portal.prepared.tokens)
        if name.lower() == BALANCE:
            return await self._statements.tell_balance(name, portal.bind.results)
        value = self._variables.show(name)
        if value is None:
            return await self._statements.run(portal)
        return write_texts(Field(name, TEXT), [value], "SHOW", portal.bind.results)

    def _discard(self, tokens: list[Token]) -> Outcome:
        if tokens[-1].says("ALL"):
            self._variables.reset()
            self._state.prepared.clear()
            self._state.end_portals(every=True)
        return Outcome(" ".join(token.text.upper() for token in tokens[:2]))

    def _deallocate(self, tokens: list[Token]) -> Outcome:
        if tokens[-1].says("ALL"):
            self._state.prepared.clear()
        else:
            self._state.prepared.pop(_name(tokens[-1]), None)
        return Outcome("DEALLOCATE")

    # --- cursors ------------------------------------------------------------------------------

    async def _declare(self, portal: Portal) -> Outcome:
        tokens, state = portal.prepared.tokens, self._state
        at = next((i for i, token in enumerate(tokens) if token.says("FOR")), 0)
        options = tokens[2:at]
        if not 2 < at < len(tokens) - 1 or any(not token.says(*_CURSOR) for token in options):
            raise Said("42601", "this cursor cannot be read.")
        name = _name(tokens[1])
        if name in state.portals:
            raise Said("42P03", "there is a cursor of that name already.")
        check_room(state.portals, name)
        held = any(token.says("WITH") for token in options)
        if not held:
            self._check_inside("DECLARE CURSOR")
        whole = portal.prepared
        inner = await self._statements.prepare(whole.text, tokens[at + 1 :], whole.oids)
        if inner.kind is Kind.COMMAND:
            raise not_a_question(inner.tokens[0].text.upper())
        binary = any(token.says("BINARY") for token in options)
        bind = Bind(inner.oids, portal.bind.formats, portal.bind.values, (int(binary),))
        state.portals[name] = Portal(inner, bind, held=held)
        return Outcome("DECLARE CURSOR")

    async def _fetch(self, tokens: list[Token], word: str) -> Outcome:
        name, most = _read_fetch(tokens)
        portal = self._state.find_portal(name)
        outcome = portal.outcome or await self._run_portal(portal)
        rows = outcome.rows[portal.at :] if most is None else outcome.rows[portal.at :][:most]
        portal.at += len(rows)
        notices, outcome.notices = outcome.notices, []
        if word == "MOVE":
            return Outcome(f"MOVE {len(rows)}", notices=notices)
        return Outcome("FETCH", outcome.description, rows, notices)

    def _close(self, tokens: list[Token]) -> Outcome:
        if tokens[-1].says("ALL"):
            self._state.end_portals(every=True)
        else:
            self._state.portals.pop(_name(tokens[-1]), None)
        return Outcome("CLOSE CURSOR")


def _name_shown(tokens: list[Token]) -> str:
    words = [unquote(token) for token in tokens[1:]]
    known = {
        "transaction isolation level": "transaction_isolation",
        "time zone": "TimeZone",
        "session authorization": "session_authorization",
    }
    return known.get(" ".join(words).lower()) or "".join(words)


def _name(token: Token) -> str:
    return token.name if token.name is not None else token.text


def _read_fetch(tokens: list[Token]) -> tuple[str, int | None]:
    """The cursor of FETCH or MOVE, and how many rows; None is all that are left."""
    words = [token for token in tokens[1:-1] if not token.says("FROM", "IN", "FORWARD", "NEXT")]
    most: int | None = 1
    if words and words[0].says("ALL"):
        most = None
    elif words and words[0].text.isdecimal() and words[0].text.isascii() and len(words) == 1:
        most = min(int(words[0].text[:18]), 10**9)
    elif words:
        raise Said("0A000", "cursors go forward only.", hint="FETCH FORWARD 100 FROM name.")
    return _name(tokens[-1]), most


__all__ = ["ENDING", "Commands", "State", "check_room"]
