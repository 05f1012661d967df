"""Runs and interviews, which tell one thing after the other for one price."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from discreet.price.watch import WatchSettings
from discreet.server.models.base import Given, Number, Price, Sent, Text, Waited


class Watch(Sent):
    """A run that is to be opened: paid for once, by epsilon (and delta) for all of it."""

    epsilon: Number
    threshold: Number | None = None
    at_most: Annotated[int, Field(ge=1, le=1000)] = 1
    delta: Number = 0
    numbers: bool = False
    monotonic: bool = False
    name: Annotated[str, Field(max_length=64)] = ""
    once: bool = False

    def settings(self) -> WatchSettings:
        """The keywords with which the curator opens it."""
        return {
            "epsilon": self.epsilon,
            "threshold": self.threshold,
            "at_most": self.at_most,
            "delta": self.delta,
            "numbers": self.numbers,
            "monotonic": self.monotonic,
        }


class ExplainWatch(Watch):
    """A run, and a question that it would be asked."""

    question: Text | None = None
    confidence: Number = "0.95"
    queries: Annotated[int, Field(ge=1, le=10**9)] = 1000


class WatchExplanation(Given):
    """What a run would cost, and how wrong it could be about a number."""

    watch: dict[str, Any]
    loss: Price
    queries: int
    margin: float | None
    theorem_margin: float | None
    sensitivity: float | None


class Run(Given):
    """A run, and how it stands."""

    id: str
    kind: str
    analyst: str
    name: str
    watch: dict[str, Any]
    price: Price
    asked: int
    remaining: int
    ended: Literal["halted", "closed", "lost"] | None


class AskRun(Waited):
    """A question to a run; the same number is told the same.

    ``new``: asked only of data that the run was not asked about; else nothing is told.
    """

    question: Text
    threshold: Number | None = None
    number: Annotated[int, Field(ge=0, le=10**9)] | None = None
    new: bool = False


class AskRunMany(Waited):
    """Questions to a run, in order; what is told again is told by the first one's number."""

    questions: Annotated[list[Text], Field(min_length=1, max_length=250)]
    threshold: Number | None = None
    number: Annotated[int, Field(ge=0, le=10**9)] | None = None


class Interview(Sent):
    """A run that answers while one unit moves all its numbers by at most ``sensitivity``."""

    sensitivity: Number
    epsilon: Number
    name: Annotated[str, Field(max_length=64)] = ""

    def settings(self) -> dict[str, Any]:
        """The keywords with which the curator opens it."""
        return {"sensitivity": self.sensitivity, "epsilon": self.epsilon}


class ExplainInterview(Interview):
    """An interview, and questions that it would be asked."""

    questions: list[Text] = Field(default_factory=list, max_length=100)
    confidence: Number = "0.95"


class InterviewExplanation(Given):
    """What an interview would cost, and whether it would answer the questions."""

    interview: dict[str, Any]
    loss: Price
    joint: float
    admitted: bool
    margin: float | None


class InterviewState(Given):
    """An interview, and how it stands."""

    id: str
    kind: str
    analyst: str
    name: str
    interview: dict[str, Any]
    price: Price
    asked: int
    joint: float
    ended: Literal["halted", "closed", "lost"] | None


class AskInterview(Waited):
    """A question to an interview; the same number is told the same."""

    question: Text
    number: Annotated[int, Field(ge=0, le=10**9)] | None = None


class InterviewReply(Given):
    """Numbers with noise, one for each group, and how the interview stands."""

    question: str
    values: list[float]
    groups: list[list[str | None]]
    moved: float
    margin: float
    asked: int
    joint: float
    ended: Literal["halted", "closed", "lost"] | None


class RunVerdict(Given):
    """On which side of its threshold one number is."""

    question: str
    threshold: str
    above: bool
    value: float | None
    group: list[str | None]


class ToldOne(Given):
    """What a run told of one question: a verdict, or one for each group."""

    verdicts: list[RunVerdict]
    grouped: bool


class Verdicts(Given):
    """What a run told, and how it stands."""

    verdicts: list[RunVerdict]
    grouped: bool
    asked: int
    remaining: int
    ended: Literal["halted", "closed", "lost"] | None


class ToldMany(Given):
    """What a run told of each question up to where it halted, and how it stands."""

    told: list[ToldOne]
    asked: int
    remaining: int
    ended: Literal["halted", "closed", "lost"] | None


class ExplainLearn(Sent):
    """A run of private multiplicative weights: what it learns of, how much it is to be asked."""

    of: Annotated[str, Field(max_length=200, examples=["visits"])]
    columns: Annotated[list[str], Field(min_length=1, max_length=64, examples=[["city"]])]
    rows: Annotated[int, Field(ge=1, le=10**12, examples=[40_000])]
    questions: Annotated[int, Field(ge=1, le=10**6, examples=[200])]
    epsilon: Number
    beta: Number = "0.05"

    def settings(self) -> dict[str, Any]:
        """The keywords with which the curator opens it."""
        return {
            "of": self.of,
            "columns": self.columns,
            "rows": self.rows,
            "questions": self.questions,
            "epsilon": self.epsilon,
            "beta": self.beta,
        }


class Learn(ExplainLearn, Waited):
    """Such a run, and what it is asked now: the same words go on with one that is open."""

    ask: Annotated[list[Text], Field(max_length=100, default_factory=list)]


class LearnExplanation(Given):
    """What such a run would cost, and within what all of its answers would be."""

    of: str
    columns: list[str]
    cells: int
    rows: int
    questions: int
    surprises: int
    beta: str
    loss: Price
    margin: float


class LearnedAnswer(Given):
    """A count from the histogram, or, where that was far off, from the people."""

    question: str
    value: int
    margin: float
    surprised: bool


class LearningState(Given):
    """How such a run stands, and what it was asked now."""

    id: str
    analyst: str
    loss: Price
    margin: float
    asked: int
    surprises: int
    ended: str | None
    answers: list[LearnedAnswer]
