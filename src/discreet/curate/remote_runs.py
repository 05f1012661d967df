"""Runs behind a server, with the methods of those in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from discreet.exact.numbers import Exact

if TYPE_CHECKING:
    from discreet.curate.curator import Asking
    from discreet.curate.interviews import Reply
    from discreet.curate.learning import Learned
    from discreet.curate.runs import Told, Verdict, Verdicts

Send = Callable[[str, str, Mapping[str, Any] | None], Any]
"""A request to the run: its method, the rest of its address, its body; what comes back."""


_AT_ONCE = 250
"""How many questions a run is asked in one request."""


class _Remote:
    """What both kinds of runs share: a number, questions that carry theirs, an end."""

    def __init__(
        self, shape: Mapping[str, Any], send: Send, write: Callable[[Asking], str]
    ) -> None:
        self.id = int(shape["id"])
        self.shape = shape
        """How it stood at the opening, as it was sent."""
        self._send, self._write = send, write
        self._take(shape)

    def _take(self, found: Mapping[str, Any]) -> None:
        """How it stands now."""
        self.asked = int(found["asked"])
        self.ended: str = found["ended"] or ""

    def _ask(self, question: Asking, number: int | None, **more: Any) -> Mapping[str, Any]:
        asked = {"question": self._write(question), **more}
        asked["number"] = self.asked if number is None else number
        found: Mapping[str, Any] = self._send("POST", "/ask", asked)
        self._take(found)
        return found

    def close(self) -> None:
        """End it; nothing comes back."""
        if not self.ended:
            self.ended = self._send("DELETE", "", None)["ended"] or ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()


class RemoteRun(_Remote):
    """A run that is paid for, on a server; made by ``watch(...)`` or ``run(number)``.

    What was lost on the way is told again as it was: each question carries its number.  ``shape``
    is how it stood at the opening, ``send`` makes a request to it, ``write`` a question's text.
    """

    def _take(self, found: Mapping[str, Any]) -> None:
        super()._take(found)
        self.remaining = int(found["remaining"])

    def __repr__(self) -> str:
        state = f", {self.ended}" if self.ended else ""
        return f"<Run {self.id}: {self.asked} asked, {self.remaining} more may be above{state}>"

    def ask(
        self, question: Asking, *, threshold: Exact | None = None, number: int | None = None
    ) -> Told:
        """Whether the number that ``question`` asks for is above ``threshold``, or the run's own.

        ``number`` says the how-manieth question it is, as :meth:`Run.ask`'s does.
        """
        level = None if threshold is None else str(threshold)
        return _read_told(self._ask(question, number, threshold=level))

    def ask_new(self, question: Asking, *, threshold: Exact | None = None) -> Told | None:
        """Ask ``question`` of data that this run has not been asked about, and of no other: None.

        ``threshold`` is that of :meth:`ask`.  Where an answer was lost on the way, it is the
        question with the number before ``asked``.
        """
        level = None if threshold is None else str(threshold)
        asked = {"question": self._write(question), "threshold": level, "new": True}
        found: Mapping[str, Any] = self._send("POST", "/ask", asked)
        self._take(found)
        return _read_told(found) if found["verdicts"] else None

    def ask_one(
        self, question: Asking, *, threshold: Exact | None = None, number: int | None = None
    ) -> Verdict:
        """The verdict on a ``question`` without groups; of one with GROUP BY nothing is shown.

        What was told then is told again by ``ask_groups`` with its ``number``, as it was.
        ``threshold`` is that of :meth:`ask`.
        """
        from discreet.curate.runs import Verdict, several_verdicts

        told = self.ask(question, threshold=threshold, number=number)
        if not isinstance(told, Verdict):
            raise several_verdicts()
        return told

    def ask_groups(
        self, question: Asking, *, threshold: Exact | None = None, number: int | None = None
    ) -> Verdicts:
        """The verdicts on a ``question``, one for each group; one without GROUP BY has one.

        ``threshold`` and ``number`` are those of :meth:`ask`.
        """
        from discreet.curate.runs import Verdicts

        return Verdicts(self.ask(question, threshold=threshold, number=number))

    def ask_many(
        self, questions: Iterable[Asking], *, threshold: Exact | None = None
    ) -> list[Told]:
        """Ask in order, until ``questions`` end or the run halts; the server reads many at once.

        ``threshold`` is that of :meth:`ask`, for all of them.
        """
        level = None if threshold is None else str(threshold)
        written, told = [self._write(question) for question in questions], []
        for start in range(0, len(written), _AT_ONCE):
            some = written[start : start + _AT_ONCE]
            body = {"questions": some, "threshold": level, "number": self.asked}
            found: Mapping[str, Any] = self._send("POST", "/ask_many", body)
            self._take(found)
            told += [_read_told(one) for one in found["told"]]
            if self.ended:
                break
        return told


class RemoteInterview(_Remote):
    """An interview that is paid for, on a server; made by ``interview(...)``.

    What was lost on the way is told again as it was: each question carries its number.  ``shape``
    is how it stood at the opening, ``send`` makes a request to it, ``write`` a question's text.
    """

    def _take(self, found: Mapping[str, Any]) -> None:
        super()._take(found)
        self.joint = float(found["joint"])

    def __repr__(self) -> str:
        state = f", {self.ended}" if self.ended else ""
        most = self.shape["interview"]["sensitivity"]
        told = f"{self.asked} asked, joint sensitivity {self.joint:g} of {most}"
        return f"<Interview {self.id}: {told}{state}>"

    def ask(self, question: Asking, *, number: int | None = None) -> Reply:
        """The number that ``question`` asks for, with noise; one for each of its public groups.

        ``number`` says the how-manieth question it is: one asked before is told as it was.
        """
        from discreet.curate.interviews import Reply

        found = self._ask(question, number)
        return Reply(
            found["question"],
            tuple(found["values"]),
            tuple(tuple(group) for group in found["groups"]),
            found["moved"],
            found["margin"],
        )


class RemoteLearning:
    """A run of private multiplicative weights on a server; made by ``learn(...)``.

    ``shape`` is how it stood at the opening; ``send`` asks it questions, ``write`` makes the text
    of one.
    """

    def __init__(
        self,
        shape: Mapping[str, Any],
        send: Callable[[list[str]], Mapping[str, Any]],
        write: Callable[[Asking], str],
    ) -> None:
        self._send, self._write = send, write
        self._take(shape)

    def _take(self, shape: Mapping[str, Any]) -> None:
        self.id = int(shape["id"])
        self.margin = float(shape["margin"])
        self.asked, self.surprises = int(shape["asked"]), int(shape["surprises"])

    def __repr__(self) -> str:
        return f"<LearningRun {self.id}: {self.asked} asked, {self.surprises} surprises>"

    def ask(self, question: Asking) -> Learned:
        """The count that ``question`` asks for: a COUNT(*) under conditions on the columns."""
        from discreet.curate.learning import Learned

        found = self._send([self._write(question)])
        self._take(found)
        (told,) = found["answers"]
        return Learned(told["question"], told["value"], told["margin"], told["surprised"])


def _read_told(found: Mapping[str, Any]) -> Told:
    """What was told of one question."""
    from discreet.curate.runs import Verdicts

    verdicts = Verdicts(_read_verdict(one) for one in found["verdicts"])
    return verdicts if found["grouped"] else verdicts[0]


def _read_verdict(shape: Mapping[str, Any]) -> Verdict:
    from discreet.curate.runs import Verdict

    return Verdict(
        str(shape["question"]),
        Fraction(shape["threshold"]),
        bool(shape["above"]),
        shape["value"],
        tuple(shape["group"]),
    )


__all__ = ["RemoteInterview", "RemoteLearning", "RemoteRun", "Send"]
