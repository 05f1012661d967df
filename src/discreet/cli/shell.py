"""``discreet shell``: ask one question after the other, and see each price before it is paid."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from discreet.cli import screen
from discreet.cli.accounts import show_balance, show_transcript
from discreet.cli.asking import describe_quote, list_choices
from discreet.cli.options import CURATOR
from discreet.cli.schema import describe_schema
from discreet.errors import InvalidParameter, Refusal
from discreet.question.offer import Offer

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from discreet.curate.curator import Curator
    from discreet.curate.quote import Quote
    from discreet.question.schema import Schema

HISTORY = ".discreet_history"
COMMANDS = {
    "help": "this list",
    "tables": "what may be asked about: tables, columns, who is protected",
    "balance": "what is spent and what is left",
    "transcript": "what was asked so far",
    "epsilon": "pay this much for each question: \\epsilon 0.1",
    "rho": "pay this much, as concentrated loss: \\rho 0.01",
    "within": "ask for an accuracy and pay the least that buys it: \\within 50",
    "delta": "the failure mass that may be paid, too: \\delta 1e-9",
    "confidence": "how surely the margins hold: \\confidence 0.99",
    "quit": "leave (or Ctrl-D)",
}


class Lines(Protocol):
    """Where statements come from."""

    def statements(self) -> Iterator[str]:
        """Each SQL statement or command, in order."""

    def confirms(self, question: str) -> bool:
        """Whether the person says yes."""


def complete(text: str) -> bool:
    """Whether a statement is whole: a command, or SQL up to a semicolon outside quotes.

    >>> [complete(text) for text in ("SELECT COUNT(*)", "SELECT ';", "SELECT 2;", "\\\\help")]
    [False, False, True, True]
    >>> complete("help"), complete("SELECT COUNT(*) AS\\nhelp")
    (True, False)
    """
    begun = text.strip()
    if not begun or begun.startswith("\\") or _is_word(begun):
        return True
    return begun.endswith(";") and not any(begun.count(quote) % 2 for quote in "'\"")


def _is_word(text: str) -> bool:
    """Whether it is a command that needs no backslash where it stands alone, as in psql."""
    return text.lower() in ("help", "quit", "exit")


@dataclass(slots=True)
class Shell:
    """A conversation with one curator as one analyst."""

    curator: Curator
    analyst: str
    offer: Offer
    lines: Lines
    sure: bool = False  # nothing is confirmed
    done: bool = field(default=False, init=False)

    def run(self) -> None:
        """Until the end of the input, or ``\\quit``."""
        for statement in self.lines.statements():
            text = statement.strip().rstrip(";").strip()
            if text:
                self._run_statement(text)
            if self.done:
                return

    def _run_statement(self, text: str) -> None:
        """One statement; a refusal is printed and the conversation goes on.

        So it does after Ctrl-C, for a person; what is piped in ends there.
        """
        try:
            if _is_word(text):
                self._command(text.lower())
            elif text.startswith("\\"):
                self._command(*text[1:].split(maxsplit=1))
            else:
                self._ask(text)
        except Refusal as refusal:
            screen.print_refusal(refusal.translate("shell"))
            screen.print_text("")
        except KeyboardInterrupt:
            if not isinstance(self.lines, Terminal):
                raise
            screen.print_text(f"{screen.STOPPED_WORDS}\n")

    # --- questions ---------------------------------------------------------------------------

    def _ask(self, sql: str) -> None:
        if re.match(r"explain\b", sql, re.IGNORECASE):
            typer.echo(str(self.curator.explain(sql, **self.offer.amounts())))
            for line in self._list_choices(sql):
                screen.print_text(line)
            screen.print_text("")
            return
        told = self.curator.tell(sql)
        if told is not None:
            screen.print_told(told)
            screen.print_text("")
            return
        offer, quote = self._quote(sql)
        for line in describe_quote(quote, str(offer.confidence)):
            screen.print_text(line)
        if quote.outcome == "known" and offer.empty:  # what could be paid instead, beside it
            for line in self._list_choices(sql)[len(quote.choices) :]:
                screen.print_text(line)
        if quote.refusal is not None:
            screen.print_text("")
        elif quote.free or self.sure or self.lines.confirms("spend it? [y/N] "):
            screen.print_text("")
            answer = self.curator.ask(sql, analyst=self.analyst, **offer.amounts())
            screen.print_answer(answer, confidence=str(offer.confidence))
            screen.print_text("")
        else:
            screen.print_text("not asked; nothing was spent.\n")

    def _list_choices(self, sql: str) -> list[str]:
        """What is known and what the current offer would buy, side by side."""
        quote = self.curator.price(sql, analyst=self.analyst, **self.offer.amounts())
        return list_choices(quote)

    def _quote(self, sql: str) -> tuple[Offer, Quote]:
        """The price of what the statement itself offers, or else of the current offer."""
        written = Offer(delta=self.offer.delta, confidence=self.offer.confidence)
        try:
            return written, self.curator.price(sql, analyst=self.analyst, **written.amounts())
        except Refusal as refusal:
            if refusal.code != "Q43":
                raise
        return self.offer, self.curator.price(sql, analyst=self.analyst, **self.offer.amounts())

    # --- commands ----------------------------------------------------------------------------

    def _command(self, name: str = "help", argument: str = "") -> None:
        if name in ("q", "quit", "exit"):
            self.done = True
        elif name in ("epsilon", "rho", "within", "delta", "confidence"):
            self._set(name, argument.strip())
        elif name in self._displays():
            self._displays()[name]()
            screen.print_text("")
        else:
            raise InvalidParameter(
                "P4",
                f"there is no \\{name}.",
                why="nothing was asked and nothing was spent.",
                fix="use one of " + ", ".join("\\" + known for known in COMMANDS) + ".",
            )

    def _displays(self) -> dict[str, Callable[[], None]]:
        return {
            "help": self._help,
            "tables": self._tables,
            "balance": self._balance,
            "transcript": lambda: show_transcript(self.curator.transcript(self.analyst)),
        }

    def _balance(self) -> None:
        show_balance(self.curator, None if self.analyst == CURATOR else self.analyst)

    def _help(self) -> None:
        screen.print_text("SQL ends with a semicolon. Each price is shown before it is paid.")
        for name, words in COMMANDS.items():
            screen.print_text(f"  \\{name:<12}{words}")

    def _tables(self) -> None:
        for line in describe_schema(self.curator.schema):
            screen.print_text(line)

    def _set(self, name: str, argument: str) -> None:
        amounts: dict[str, Any] = {**self.offer.amounts()}
        if name not in ("delta", "confidence"):  # these three stand for each other
            amounts |= {"epsilon": None, "rho": None, "within": None}
        if argument:
            self.offer = Offer.of(**(amounts | {name: argument}))
        screen.print_text(f"each question offers {self.offer}.\n")


# --- where statements come from --------------------------------------------------------------


class Pipe:
    """Lines of a file or of another program."""

    def __init__(self) -> None:
        self._waiting: list[str] = []

    def _next(self) -> str | None:
        return self._waiting.pop() if self._waiting else (sys.stdin.readline() or None)

    def statements(self) -> Iterator[str]:
        """Statements of one or more lines; the last one may lack its semicolon."""
        begun: list[str] = []
        while (line := self._next()) is not None:
            begun.append(line)
            if complete("".join(begun)):
                yield "".join(begun)
                begun = []
        if begun:
            yield "".join(begun)

    def confirms(self, question: str) -> bool:
        """The next line is the answer, if it is one; any other is left to be read as SQL."""
        line = self._next()
        said = "" if line is None else line.strip().lower()
        if line is not None and said not in ("y", "yes", "n", "no", ""):
            self._waiting.append(line)
        screen.print_text(f"{question}{said if said in ('y', 'yes', 'n', 'no') else 'no'}")
        return said in ("y", "yes")


class Terminal:
    """A person at a keyboard: history, completion, several lines."""

    def __init__(self, schema: Schema, history: Path) -> None:
        self._session = _make_prompt(schema, history)

    def statements(self) -> Iterator[str]:
        """Until Ctrl-D; Ctrl-C drops what was begun."""
        while True:
            try:
                yield self._session.prompt("discreet> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return

    def confirms(self, question: str) -> bool:
        """Whether the person types yes."""
        from prompt_toolkit import prompt

        try:
            return prompt(question).strip().lower() in ("y", "yes")
        except (KeyboardInterrupt, EOFError):
            return False


def _make_prompt(schema: Schema, history: Path) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory, InMemoryHistory
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

    from discreet.cli.completion import SqlCompleter

    try:
        history.touch(mode=0o600)  # questions are the analyst's own business
        kept: FileHistory | InMemoryHistory = FileHistory(str(history))
    except OSError:
        kept = InMemoryHistory()
    return PromptSession(
        history=kept,
        completer=SqlCompleter(schema, COMMANDS),
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
        multiline=Condition(lambda: not complete(get_app().current_buffer.text)),
        prompt_continuation="     ...> ",
    )


def shell(curator: Curator, *, home: Path, analyst: str, epsilon: str, yes: bool) -> None:
    """Talk until the input ends."""
    offer = Offer.of(epsilon=epsilon)
    person = sys.stdin.isatty()
    lines: Lines = Terminal(curator.schema, home / HISTORY) if person else Pipe()
    if person:
        screen.print_text(
            f"Asking as {analyst}. Each question offers epsilon = {epsilon}; its price and margin "
            "are shown before it is paid. SQL ends with a semicolon; \\help lists the commands.\n"
        )
    Shell(curator, analyst, offer, lines, sure=yes).run()


__all__ = ["COMMANDS", "Shell", "complete", "shell"]
