"""Refusals: the closed set of ways this library says no.

The tree, drawn before it was coded::

    Refusal                      every refusal; code, what, why, fix, perhaps a rewriting
    ├── InvalidParameter   P     a number or argument outside its domain
    ├── Halted             H     an interactive mechanism that has stopped
    ├── SchemaRefusal      S     what the curator declared does not hold together
    ├── QuestionRefusal    Q     the question has no private answer as written
    ├── BudgetRefusal      B     the account cannot pay
    ├── AccessRefusal      A     this person may not ask this
    ├── LedgerRefusal      L     the account itself cannot be trusted or written
    └── DataRefusal        D     the engine could not; charged, and nothing said of why

A refusal has three parts: *what* is wrong, *why* it matters to a person in the
data, and a *fix* the reader can type.  Where a whole question would be accepted
instead, it is the refusal's *rewriting*, beside being told in the fix; where an amount would
do, it is the refusal's *offer*, and each door spells it as it is typed there; where only the
curator can help, the lines of the schema that would are its *declaration*.  Its text
may quote the question, the schema and the budget, never a value, a row count, a
group key or an engine's own message: an error is an output, and outputs are charged.

Every code has one title here and one heading in ``docs/errors.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

CODES: dict[str, str] = {
    "P1": "not a number this library can take exactly",
    "P2": "a number outside its domain",
    "P3": "a size that is not a whole number of draws",
    "P4": "arguments that contradict each other",
    "P5": "nothing to choose from",
    "P6": "a value that does not fit the declared shape or grid",
    "P7": "more than the recorded bytes",
    "P8": "an optional component that is not installed",
    "P9": "a file that cannot be written",
    "P10": "a delta that would let somebody be published",
    "Q40": "no public list of values to choose from",
    "Q41": "nothing bounds what one unit contributes",
    "Q42": "groups that are not public need a delta",
    "Q43": "neither a price nor an accuracy was given",
    "Q44": "this accuracy cannot be promised",
    "Q45": "a join that makes too many rows of one unit",
    "Q46": "functions that could take too long on one unit's rows",
    "Q47": "SQL around questions that cannot be computed",
    "Q48": "a question that is not one number",
    "Q49": "a number that does not only grow",
    "Q52": "a question that rows of two people cannot answer",
    "Q60": "a question that this engine does not run",
    "D1": "the engine could not answer",
    "D2": "a source that cannot be opened as declared",
    "D3": "a table that stays closed",
    "B1": "the budget does not cover this question",
    "B2": "the analyst's allocation does not cover this question",
    "B3": "more than one question may cost",
    "B4": "the budget of people in several datasets does not cover this question",
    "B5": "the common limit of a group does not cover this question",
    "A1": "an analyst who does not exist",
    "A2": "an analyst who may no longer ask",
    "A3": "access that has expired",
    "L1": "a ledger that cannot be opened",
    "L2": "a ledger that is damaged",
    "L3": "a ledger of another version",
    "L4": "a ledger behind its checkpoint",
    "L5": "the ledger stopped after a failed write",
    "L6": "the ledger is busy",
    "L7": "the clock runs backwards",
    "L8": "a checkpoint that cannot be trusted",
    "L9": "blocks that were declared anew",
    "L10": "a stored value that cannot be read",
    "L11": "a dataset whose people changed",
    "L12": "nothing in the ledger by that number",
    "L13": "a file that is there already",
    "L14": "a ledger that was closed",
    "L15": "people in several datasets who are declared in two ways",
    "A10": "no key, or none that opens anything here",
    "A11": "a key that has expired",
    "A12": "not for this role",
    "A13": "nothing here by that name",
    "A14": "a request that cannot be read",
    "A15": "more requests than are let in",
    "A16": "an idempotency key used for something else",
    "A17": "the server is not ready",
    "A18": "the server failed",
    "A19": "an open line to other machines",
    "A20": "a sign-in that cannot be completed",
    "A21": "nobody who may ask here",
    "A22": "a port that another program listens on",
    "H1": "the mechanism has halted",
    "H2": "the joint sensitivity would exceed what was promised",
    "H3": "a live mechanism cannot be copied",
    "S1": "a schema file that cannot be read",
    "S2": "a declaration that is not understood",
    "S3": "bounds that do not hold together",
    "S4": "allowed values that do not hold together",
    "S5": "a table that does not say whose its rows are",
    "S6": "a declaration that names nothing",
    "S7": "a limit per unit that is not a whole number",
    "S8": "a file whose columns cannot be listed",
    "S9": "a public table that is not as declared",
    "S10": "blocks that cannot be listed",
    "S11": "blocks of which one person could be in two",
    "S12": "rows of two people that cannot be protected",
    "S20": "a directory that holds no session",
    "S21": "a session that is there already",
    "S22": "a session whose account is not there",
    "Q1": "a column without public bounds",
    "Q2": "SQL that cannot be read",
    "Q3": "a question too long or too deeply nested",
    "Q4": "more than one statement",
    "Q5": "a statement that is not a question",
    "Q6": "a table that does not exist",
    "Q7": "a column that does not exist",
    "Q8": "a name that could mean two things",
    "Q9": "a function outside the allow-list",
    "Q10": "a function given kinds it does not take",
    "Q11": "a clause outside the dialect",
    "Q12": "rows shown one by one",
    "Q13": "DISTINCT outside COUNT",
    "Q14": "a window function",
    "Q15": "a sub-query inside an expression",
    "Q16": "LIMIT or ORDER BY below the release",
    "Q17": "sampling of rows",
    "Q18": "a join of private tables that is not on the unit",
    "Q19": "a kind of join outside the dialect",
    "Q20": "a join condition outside the dialect",
    "Q21": "a set operation outside the dialect",
    "Q22": "a sub-query that mixes people",
    "Q23": "one group per person",
    "Q24": "a column neither grouped nor aggregated",
    "Q25": "an aggregate where none can stand",
    "Q26": "a question about no private table",
    "Q27": "more groups than can be listed",
    "Q28": "an option that is not understood",
    "Q29": "a common table expression outside the dialect",
    "Q30": "a question that was not wholly understood",
    "Q31": "a constant that cannot be read",
    "Q32": "an aggregate outside the allow-list",
    "Q33": "an aggregate given arguments it does not take",
    "Q34": "a name that cannot be used",
    "Q35": "nothing to measure",
    "Q36": "a constant that nobody's value can be",
}
"""Every code and its title."""


_QUOTED = 80


def quote_value(value: object) -> str:
    """``value`` as a refusal quotes it: never long, and never itself an error.

    >>> quote_value("0.25"), len(quote_value("9" * 5000))
    ("'0.25'", 80)
    """
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value)
    except ValueError:  # Python declines to write out integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 3]}..."


_SCREEN = 80
"""How many columns a line may have that is underlined."""


def _cut_line(line: str, at: int, width: int) -> tuple[str, int, int]:
    """As much of a line as a screen holds around ``at``, where that stands then, and how wide.

    >>> line, at, width = _cut_line("x" * 90 + "here" + "y" * 90, 90, 4)
    >>> len(line), line[:3], line[-3:], line[at : at + width]
    (80, '… x', 'y …', 'here')
    """
    room = _SCREEN - 4  # for what stands where it was cut
    begin = max(0, min(at - max(0, room - width) // 2, len(line) - room))
    begin = begin if begin > 2 else 0
    stop = min(len(line), begin + room)
    before, after = "… " if begin else "", " …" if stop < len(line) else ""
    shown = min(width, max(1, stop - at))
    return f"{before}{line[begin:stop]}{after}", len(before) + at - begin, shown


@dataclass(frozen=True, slots=True)
class Span:
    """Where in the question's ``text`` the trouble is: from ``start`` up to before ``stop``."""

    text: str
    start: int
    stop: int

    def underline(self) -> str:
        """The line of the question that holds the span, and carets beneath it.

        Of a line that is wider than a screen, the part around the span: folded, the carets would
        stand beneath something else.

        >>> print(Span("SELECT SUM(income) FROM people", 11, 17).underline())
        SELECT SUM(income) FROM people
                   ^^^^^^
        """
        first = self.text.rfind("\n", 0, self.start) + 1
        end = self.text.find("\n", first)
        line = self.text[first:] if end < 0 else self.text[first:end]
        at = self.start - first
        width = max(1, min(self.stop, first + len(line)) - self.start)
        if len(line) > _SCREEN:
            line, at, width = _cut_line(line, at, width)
        return f"{line}\n{' ' * at}{'^' * width}"


_A_PERSON = re.compile(r"\b(one|each|every|any one) person\b")
"""Whom a refusal speaks of, until it is known what the unit is."""


class Refusal(Exception):
    """The answer is no; ``str`` says ``what``, ``why`` and what to do instead, the ``fix``.

    ``code`` is one of ``CODES``, ``span`` the place in the question, ``rewriting`` a whole
    question that is accepted instead, ``offer`` the amounts with which it would be, and
    ``declaration`` the lines of the schema with which it would be; what only somebody who knows
    can say stands in capitals there: LOW, HIGH.

    >>> raise Refusal("P2", "epsilon must be positive, got -3.",
    ...               why="a negative loss would pay the analyst.",
    ...               fix="pass a positive number, such as epsilon='0.1'.")
    Traceback (most recent call last):
    ...
    discreet.errors.Refusal: P2: epsilon must be positive, got -3.
    Why: a negative loss would pay the analyst.
    Fix: pass a positive number, such as epsilon='0.1'.
    """

    family: ClassVar[str] = ""

    def __init__(
        self,
        code: str,
        what: str,
        *,
        why: str,
        fix: str,
        span: Span | None = None,
        rewriting: str | None = None,
        offer: Mapping[str, str] | None = None,
        declaration: str | None = None,
    ) -> None:
        if code not in CODES or not code.startswith(self.family):
            raise KeyError(f"{code!r} is not a code of {type(self).__name__}")
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.span = span
        self.rewriting = rewriting
        self.offer = dict(offer or {})
        self.declaration = declaration

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.what}"]
        if self.span is not None:
            lines.append(self.span.underline())
        return "\n".join([*lines, f"Why: {self.why}", f"Fix: {self.fix}"])

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: these words, and not the way through our files that led to them.

        IPython asks for it.  Where another error stands behind the refusal, all is shown.
        """
        behind = None if self.__suppress_context__ else self.__context__
        if self.__cause__ is not None or behind is not None:
            from traceback import format_exception  # which nobody else needs

            return "".join(format_exception(self)).splitlines()
        return [*str(self).splitlines(), *getattr(self, "__notes__", ())]

    def naming(self, unit: str) -> Self:
        """The same refusal, calling a person ``unit`` where the schema says something else.

        >>> refused = Refusal("Q1", "no bounds.", why="one person could add it.", fix="bound it.")
        >>> refused.naming("pair (src, dst)").why
        'one pair (src, dst) could add it.'
        """
        what, why, fix = (
            _A_PERSON.sub(lambda found: f"{found[1]} {unit}", text)  # a name is no pattern
            for text in (self.what, self.why, self.fix)
        )
        return type(self)(
            self.code,
            what,
            why=why,
            fix=fix,
            span=self.span,
            rewriting=self.rewriting,
            offer=self.offer,
            declaration=self.declaration,
        )

    def translate(self, door: Door, *, heard: Door = "python") -> Self:
        """The same refusal, its fix in the language of a ``door``; ``heard`` is what it is in now.

        >>> refused = Refusal("Q42", "no delta.", why="it shows.", fix="offer delta='1e-9'.",
        ...                   offer={"delta": "1e-9"})
        >>> [refused.translate(door).fix for door in ("command", "shell", "http")]
        ['offer --delta 1e-9.', 'offer \\\\delta 1e-9.', 'offer "delta": "1e-9".']
        """
        fix = self.fix
        for name, amount in self.offer.items():
            fix = fix.replace(_spell(heard, name, amount), _spell(door, name, amount))
        if fix == self.fix:
            return self
        told = copy(self)
        told.fix = fix
        return told

    def __reduce__(self) -> tuple[object, ...]:
        told: dict[str, Any] = {
            "why": self.why,
            "fix": self.fix,
            "span": self.span,
            "rewriting": self.rewriting,
        }
        told |= {"offer": self.offer, "declaration": self.declaration}
        return _rebuild, (type(self), self.code, self.what, told)

    def to_json(self) -> dict[str, object]:
        """The one shape in which every door shows a refusal."""
        shape: dict[str, object] = {
            "code": self.code,
            "title": CODES[self.code],
            "what": self.what,
            "why": self.why,
            "fix": self.fix,
        }
        if self.span is not None:
            # Clients were promised this name.
            shape["place"] = [self.span.start, self.span.stop]
        if self.rewriting is not None:
            shape["rewriting"] = self.rewriting
        if self.offer:
            shape["offer"] = dict(self.offer)
        if self.declaration is not None:
            shape["declaration"] = self.declaration
        return shape


def _rebuild(kind: type[Refusal], code: str, what: str, told: dict[str, Any]) -> Refusal:
    return kind(code, what, **told)


Door = Literal["python", "command", "shell", "http", "postgres", "flight"]
"""Where a refusal is read: what can be typed there is spelled differently."""


def _spell(door: Door, name: str, amount: str) -> str:
    """An amount of an offer, as it is typed at a door."""
    match door:
        case "python":
            return f"{name}='{amount}'"
        case "command":
            return f"--{name} {amount}"
        case "shell":
            return f"\\{name} {amount}"
        case "http":
            return f'"{name}": "{amount}"'
        case "postgres":
            return f"SET discreet.{name} = '{amount}'"
        case "flight":
            return f"the header discreet-{name}: {amount}"


class InvalidParameter(Refusal, ValueError):
    """A number or argument outside its domain; also a ``ValueError``."""

    family = "P"


class Halted(Refusal):
    """An interactive mechanism that has given all it promised."""

    family = "H"


class SchemaRefusal(Refusal):
    """What the curator declared does not hold together."""

    family = "S"


class QuestionRefusal(Refusal):
    """The question has no private answer as written."""

    family = "Q"


class BudgetRefusal(Refusal):
    """The account cannot pay."""

    family = "B"


class AccessRefusal(Refusal):
    """This person may not ask this."""

    family = "A"


class LedgerRefusal(Refusal):
    """The account itself cannot be trusted or written."""

    family = "L"


class DataRefusal(Refusal):
    """The engine could not answer; the charge stands and nothing is said of why."""

    family = "D"


__all__ = [
    "CODES",
    "AccessRefusal",
    "BudgetRefusal",
    "DataRefusal",
    "Door",
    "Halted",
    "InvalidParameter",
    "LedgerRefusal",
    "QuestionRefusal",
    "Refusal",
    "SchemaRefusal",
    "Span",
]
