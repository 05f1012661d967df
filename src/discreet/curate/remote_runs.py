"""Runs behind a server, with the methods of those in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any

from discreet.exact.numbers import Exact

if TYPE_CHECKING:
    from discreet.curate.curator import Asking
    from discreet.curate.interviews import Reply
    from discreet.curate.runs import Verdict

Send = Callable[[str, str, Mapping[str, Any] | None], Any]
"""A request to the run: its method, the rest of its address, its body; what comes back."""


class RemoteRun:
    """A run that is paid for, on a server; made by ``watch(...)`` or ``run(number)``.

    What was lost on the way is told again as it was: each question carries its number.
    """

    def __init__(
        self, shape: Mapping[str, Any], send: Send, write: Callable[[Asking], str]
    ) -> None:
        self.id = int(shape["id"])
        self.shape = shape
        """How it stood at the opening, as it was sent."""
        self._send, self._write = send, write
        self.asked = int(shape["asked"])
        self.remaining = int(shape["remaining"])
        self.ended: str = shape["ended"] or ""

    def __repr__(self) -> str:
        state = f", {self.ended}" if self.ended else ""
        return f"<Run {self.id}: {self.asked} asked, {self.remaining} more may be above{state}>"

    def ask(
        self, question: Asking, *, threshold: Exact | None = None, number: int | None = None
    ) -> Verdict | tuple[Verdict, ...]:
        """Whether the number that ``question`` asks for is above its threshold."""
        body = {
            "question": self._write(question),
            "threshold": None if threshold is None else str(threshold),
            "number": self.asked if number is None else number,
        }
        found = self._send("POST", "/ask", body)
        self.asked, self.remaining = int(found["asked"]), int(found["remaining"])
        self.ended = found["ended"] or ""
        verdicts = tuple(_read_verdict(one) for one in found["verdicts"])
        return verdicts if found["grouped"] else verdicts[0]

    def ask_many(
        self, questions: Iterable[Asking], *, threshold: Exact | None = None
    ) -> list[Verdict | tuple[Verdict, ...]]:
        """Ask in order, until the questions end or the run halts."""
        told = []
        for question in questions:
            told.append(self.ask(question, threshold=threshold))
            if self.ended:
                break
        return told

    def close(self) -> None:
        """End the run; nothing comes back."""
        if not self.ended:
            self.ended = self._send("DELETE", "", None)["ended"] or ""

    def __enter__(self) -> RemoteRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()


class RemoteInterview:
    """An interview that is paid for, on a server; made by ``interview(...)``.

    What was lost on the way is told again as it was: each question carries its number.
    """

    def __init__(
        self, shape: Mapping[str, Any], send: Send, write: Callable[[Asking], str]
    ) -> None:
        self.id = int(shape["id"])
        self.shape = shape
        """How it stood at the opening, as it was sent."""
        self._send, self._write = send, write
        self.asked = int(shape["asked"])
        self.joint = float(shape["joint"])
        self.ended: str = shape["ended"] or ""

    def __repr__(self) -> str:
        state = f", {self.ended}" if self.ended else ""
        most = self.shape["interview"]["sensitivity"]
        told = f"{self.asked} asked, joint sensitivity {self.joint:g} of {most}"
        return f"<Interview {self.id}: {told}{state}>"

    def ask(self, question: Asking, *, number: int | None = None) -> Reply:
        """The number that ``question`` asks for, with noise; one for each of its public groups."""
        from discreet.curate.interviews import Reply

        body = {
            "question": self._write(question),
            "number": self.asked if number is None else number,
        }
        found = self._send("POST", "/ask", body)
        self.asked, self.joint = int(found["asked"]), float(found["joint"])
        self.ended = found["ended"] or ""
        return Reply(
            found["question"],
            tuple(found["values"]),
            tuple(tuple(group) for group in found["groups"]),
            found["moved"],
            found["margin"],
        )

    def close(self) -> None:
        """End the interview; nothing comes back."""
        if not self.ended:
            self.ended = self._send("DELETE", "", None)["ended"] or ""

    def __enter__(self) -> RemoteInterview:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()


def _read_verdict(shape: Mapping[str, Any]) -> Verdict:
    from discreet.curate.runs import Verdict

    return Verdict(
        str(shape["question"]),
        Fraction(shape["threshold"]),
        bool(shape["above"]),
        shape["value"],
        tuple(shape["group"]),
    )


__all__ = ["RemoteInterview", "RemoteRun"]
