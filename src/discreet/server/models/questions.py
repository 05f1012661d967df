"""Questions, what they would cost, and their answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from discreet.question.offer import Offer
from discreet.release.notes import MarginUnit
from discreet.server.models.base import Given, Number, Price, Refusal, Sent, State, Text, Waited


class Ask(Sent):
    """A question and what is offered for it: one of epsilon, rho, within."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"question": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"},
                {"question": "SELECT COUNT(*) AS n FROM visits", "within": "50"},
            ]
        },
    )
    question: Text
    epsilon: Number | None = None
    rho: Number | None = None
    delta: Number | None = None
    within: Number | dict[Annotated[str, Field(max_length=128)], Number] | None = None
    confidence: Number = "0.95"
    fresh: bool = Field(False, description="measure anew, whatever is known already")

    def offer(self) -> Offer:
        """What is offered, or a refusal."""
        return Offer.of(
            epsilon=self.epsilon,
            rho=self.rho,
            delta=self.delta,
            within=self.within,
            confidence=self.confidence,
            fresh=self.fresh,
        )


class AskNow(Ask, Waited):
    """A question, and how long to wait before it becomes a job."""


Within = Number | dict[Annotated[str, Field(max_length=128)], Number]
"""One margin for all numbers of an answer, or one for each by name."""


class AskAll(Sent):
    """Several questions, and what is offered for all of them; ``within`` may be one for each."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "questions": [
                        "SELECT COUNT(*) AS n FROM visits WHERE city = 'Aalborg'",
                        "SELECT COUNT(*) AS n FROM visits WHERE city = 'Bergen'",
                    ],
                    "epsilon": "0.1",
                },
            ]
        },
    )
    questions: Annotated[list[Text], Field(min_length=1, max_length=100)]
    epsilon: Number | None = None
    rho: Number | None = None
    delta: Number | None = None
    within: Within | Annotated[list[Within], Field(max_length=100)] | None = None
    confidence: Number = "0.95"
    fresh: bool = Field(False, description="measure anew, whatever is known already")

    def offer(self) -> dict[str, Any]:
        """What is offered, as it was sent."""
        return self.model_dump(exclude={"questions"})


class AnswerColumn(Given):
    """A column of an answer."""

    name: str
    role: Literal["key", "value"]
    aggregate: str | None
    kind: str | None
    margin_kind: str | None = Field(description="how its margins are known")
    margin_unit: MarginUnit | None = Field(description="what its margins count")


class ExplainedColumn(AnswerColumn):
    """A column of the answer to come."""

    mechanism: str | None
    margin: float | None
    margin_text: str | None


class Groups(Given):
    """A GROUP BY key."""

    name: str
    public: bool
    count: int | None


class Explanation(Given):
    """A question's price and margins, before it is asked."""

    question: str
    price: Price
    confidence: str
    columns: list[ExplainedColumn]
    groups: list[Groups]
    unit: str
    neighbours: str
    notes: list[str]
    certificate: dict[str, Any]
    engine_sql: str
    text: str
    affordable: bool
    free: bool
    outcome: str
    refusal: Refusal | None
    charge: Price
    choices: list[dict[str, Any]] = Field(
        description="what is known, what improving it costs, what a new measurement costs"
    )
    parts: list[dict[str, Any]] | None = Field(
        None, description="the explanation of each question of a statement"
    )


class FreeExplanation(Given):
    """What a release or a survey says costs nothing, and is told whoever asks."""

    question: str
    free: Literal[True]
    outcome: Literal["public"]
    columns: list[str]
    notes: list[str]


class CurvePoint(Given):
    """One offer, what it would cost, and how far off the answer may be."""

    epsilon: str
    price: Price
    margins: dict[str, float | None]
    words: dict[str, str]


class Curve(Given):
    """Accuracy against price; where a margin depends on a group's size, for so many rows."""

    points: list[CurvePoint]
    confidence: str
    assumed_rows: int


class Chart(Given):
    """Which picture suits the answer."""

    kind: Literal["number", "bars", "line", "grouped", "histogram", "table"]
    x: str | None
    series: str | None
    y: list[str]
    edges: list[float] | None = None


class Interval(Given):
    """Between which numbers a value lies; null is no end."""

    low: float | None
    high: float | None
    says: Literal["anything", "no people"] | None


class Part(Given):
    """One question of a statement: its own answer, and what that cost."""

    answer: str | None
    question: str
    replayed: bool
    price: Price


class Answer(Given):
    """A released table: values, margins, price; of a statement, without an id of its own."""

    id: str | None
    dataset: str
    question: str
    at: datetime | None
    replayed: bool
    price: Price
    paid: Price
    confidence: str
    columns: list[AnswerColumn]
    rows: list[list[Any]]
    margins: list[list[float | None]]
    intervals: list[list[Interval | None]]
    cells: list[list[str]]
    chart: Chart
    notes: list[str]
    certificate: dict[str, Any]
    text: str
    parts: list[Part] | None = Field(None, description="the questions of a statement")


class AnswersTogether(Given):
    """The answers of questions that were asked together, in their order, and what all cost."""

    id: str
    replayed: bool
    price: Price
    answers: list[Answer]


class Job(Given):
    """A question that is being computed; nothing here depends on data."""

    id: str
    state: State
    position: int | None
    elapsed_s: float
    limit_s: float
    progress: float
    answer: str | None
    again: bool = Field(
        default=False,
        description="one question of a statement: send the statement again when this has ended",
    )
