"""Refusals: the closed set of ways this library says no.

The tree, drawn before it was coded::

    Refusal                      every refusal; code, what, why, fix
    ├── InvalidParameter   P     a number or argument outside its domain
    ├── Halted             H     an interactive mechanism that has stopped
    ├── SchemaRefusal      S     what the curator declared does not hold together
    ├── QuestionRefusal    Q     the question has no private answer as written
    ├── BudgetRefusal      B     the account cannot pay
    ├── AccessRefusal      A     this person may not ask this
    ├── LedgerRefusal      L     the account itself cannot be trusted or written
    └── DataRefusal        D     the engine could not; charged, and nothing said of why

A refusal has three parts: *what* is wrong, *why* it matters to a person in the
data, and a *fix* the reader can type.  Its text may quote the question, the
schema and the budget, never a value, a row count, a group key or an engine's
own message: an error is an output, and outputs are charged.

Every code has one title here and one heading in ``docs/errors.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

CODES: dict[str, str] = {
    "P1": "not a number this library can take exactly",
    "P2": "a number outside its domain",
    "P3": "a size that is not a whole number of draws",
    "P4": "arguments that contradict each other",
    "P5": "nothing to choose from",
    "P6": "a value that does not fit the declared shape or grid",
    "P7": "more than the recorded bytes",
    "P8": "an optional component that is not installed",
    "H1": "the mechanism has halted",
    "H2": "the joint sensitivity would exceed what was promised",
}
"""Every code and its title."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the question's text the trouble is: offsets of its first and past-last character."""

    text: str
    start: int
    stop: int

    def underlined(self) -> str:
        """The line of the question that holds the place, and carets beneath it.

        >>> print(Place("SELECT SUM(income) FROM people", 11, 17).underlined())
        SELECT SUM(income) FROM people
                   ^^^^^^
        """
        first = self.text.rfind("\n", 0, self.start) + 1
        end = self.text.find("\n", first)
        line = self.text[first:] if end < 0 else self.text[first:end]
        width = max(1, min(self.stop, first + len(line)) - self.start)
        return f"{line}\n{' ' * (self.start - first)}{'^' * width}"


class Refusal(Exception):
    """The answer is no; ``str`` says what, why and what to do instead.

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
        self, code: str, what: str, *, why: str, fix: str, place: Place | None = None
    ) -> None:
        if code not in CODES or not code.startswith(self.family):
            raise KeyError(f"{code!r} is not a code of {type(self).__name__}")
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.place = place

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.what}"]
        if self.place is not None:
            lines.append(self.place.underlined())
        return "\n".join([*lines, f"Why: {self.why}", f"Fix: {self.fix}"])

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.what, self.why, self.fix, self.place)

    def to_json(self) -> dict[str, object]:
        """The one shape in which every door shows a refusal."""
        shape: dict[str, object] = {
            "code": self.code,
            "title": CODES[self.code],
            "what": self.what,
            "why": self.why,
            "fix": self.fix,
        }
        if self.place is not None:
            shape["place"] = [self.place.start, self.place.stop]
        return shape


def _rebuild(
    kind: type[Refusal], code: str, what: str, why: str, fix: str, place: Place | None
) -> Refusal:
    return kind(code, what, why=why, fix=fix, place=place)


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
