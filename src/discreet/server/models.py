"""What goes over the line, as types: the source of the OpenAPI document.

Losses, limits and spends are texts, exact: a JSON number would be rounded on its
way.  What is sent in may be a number too, and is taken as its shortest decimal.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from discreet.price.watch import WatchSettings
from discreet.publication.declared import Declared
from discreet.publication.folder import read_declared
from discreet.question.offer import Offer
from discreet.release.notes import MarginUnit

Number = Annotated[StrictStr, Field(max_length=100)] | StrictInt | StrictFloat
Text = Annotated[str, Field(max_length=20_000)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][\w.@+-]*$")]
State = Literal["queued", "running", "done", "failed", "interrupted"]


class Sent(BaseModel):
    """What a client sends: nothing but what is described."""

    model_config = ConfigDict(extra="forbid", strict=False)


class Given(BaseModel):
    """What the server sends."""

    model_config = ConfigDict(extra="forbid")


class Refusal(Given):
    """Every error: what, why it matters to a person in the data, and what to do instead."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "code": "Q1",
                "title": "a column without public bounds",
                "what": "column 'income' has no public bounds.",
                "why": "one person could add any amount, and no amount of noise would hide them.",
                "fix": "declare bounds for 'income' in the schema.",
                "place": [11, 17],
            }
        }
    )
    code: str
    title: str
    what: str
    why: str
    fix: str
    place: list[int] | None = Field(None, description="offsets into the question, in characters")
    rewriting: str | None = Field(None, description="a whole question that is accepted instead")
    offer: dict[str, str] | None = Field(
        None, description="amounts, each of which would be accepted beside the question"
    )
    declaration: str | None = Field(
        None, description="lines of the schema with which the question would be accepted"
    )


class Price(Given):
    """A loss, exact; null is infinite."""

    epsilon: str | None
    rho: str | None
    delta: str
    text: str


class Budget(Given):
    """What may be lost; either epsilon (with delta) or rho is promised."""

    epsilon: str | None
    rho: str | None
    delta: str
    text: str


class Remaining(Given):
    """What is left, as an analyst would ask."""

    epsilon: str | None
    rho: str
    delta: str
    counts: int
    within: int
    confidence: str
    text: str


class Gauge(Given):
    """One account: the dataset's, an analyst's, a block's."""

    name: str
    budget: Budget | None
    spent: Price
    remaining: Remaining | None
    share: float = Field(description="the part that is used, from 0 to 1; for pictures")


class LostIn(Given):
    """What people who are in several datasets have lost in one of them."""

    name: str
    spent: Price


class EntityGauge(Gauge):
    """What people who are in several datasets have lost in all of them."""

    datasets: list[LostIn]


class Balance(Given):
    """What is left."""

    dataset: Gauge
    analyst: Gauge | None
    blocks: list[Gauge]
    entities: list[EntityGauge]
    text: str


class Grant(Given):
    """What a key opens in one dataset."""

    name: str
    analyst: str
    role: str


class Me(Given):
    """The holder of the key."""

    key: str
    expires: datetime | None
    datasets: list[Grant]


class Rotation(Sent):
    """A key in place of the one that is used."""

    expires: datetime | None = None


class NewKey(Given):
    """A key, shown once."""

    key: str
    id: str
    expires: datetime | None


class Summary(Given):
    """A dataset that the key opens."""

    name: str
    analyst: str
    role: str
    budget: Budget
    tables: list[str]
    deadline_s: float


class Datasets(Given):
    """What the key opens."""

    datasets: list[Summary]


class Release(Given):
    """A release that was made."""

    name: str
    kind: str
    of: str


class Releases(Given):
    """The releases of a dataset."""

    releases: list[Release]


class ToldMargin(Given):
    """How far off a number of a release may be, and what kind of promise that is."""

    promise: Literal["exact", "certified", "typical", "none"]
    within: float | None


class Told(Given):
    """What a release says: free, with a margin for every number that has one."""

    question: str
    columns: list[str]
    rows: list[list[Any]]
    margins: dict[str, list[ToldMargin]]
    cells: list[list[str]]
    notes: list[str]
    cost: Literal["free"]


class MakeRelease(Sent):
    """A release that is to be made: what it is, and the settings of its kind with its price."""

    name: Annotated[str, Field(max_length=63, examples=["visits_2026"])]
    kind: Annotated[str, Field(max_length=32, examples=["marginals"])] = "synthetic"
    of: Text
    settings: dict[str, Any] = Field(examples=[{"epsilon": "0.5", "columns": ["city"]}])

    def declared(self) -> Declared:
        """What is declared, or a refusal."""
        return read_declared({**self.settings, "name": self.name, "kind": self.kind, "of": self.of})


class ReleaseStage(Given):
    """A stage of a release before it is drawn."""

    name: str
    loss: str
    says: str


class ReleasePlan(Given):
    """What a release would count and cost; nothing was charged."""

    release: dict[str, Any]
    unit: str
    rows_per_unit: int
    loss: Price
    stages: list[ReleaseStage]


class ReleaseCard(Given):
    """What a release is and promises, in words."""

    name: str
    card: str


class AskRelease(Sent):
    """A SELECT about one release."""

    question: Text
    confidence: Number = "0.95"


class Column(Given):
    """A column as declared."""

    name: str
    kind: str
    nullable: bool
    bounds: list[str] | None
    values: list[Any] | None
    values_count: int | None
    unit: bool
    text: str


class Table(Given):
    """A table as declared."""

    name: str
    public: bool
    unit: list[str] | None
    entity: str | None
    unit_text: str
    max_rows_per_unit: int | None
    max_groups_per_unit: int | None
    blocks: list[str]
    columns: list[Column]


class Word(Given):
    """A function or an aggregate."""

    name: str
    usage: str
    meaning: str


class Schema(Given):
    """The public part of a dataset."""

    name: str
    neighbours: str
    promise: str
    max_joined_rows_per_unit: int
    tables: list[Table]
    functions: list[Word]
    aggregates: list[Word]
    keywords: list[str]
    examples: list[str]


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


class Waited(Sent):
    """What may take a while, and how long to wait before it is something to come back for."""

    wait_s: Annotated[float, Field(ge=0, le=60)] = 30.0


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


class Watch(Sent):
    """A run that is to be opened: paid for once, by epsilon (and delta) for all of it."""

    epsilon: Number
    threshold: Number | None = None
    at_most: Annotated[int, Field(ge=1, le=1000)] = 1
    delta: Number = 0
    numbers: bool = False
    monotonic: bool = False
    name: Annotated[str, Field(max_length=64)] = ""

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
    """A question to a run; the same number is told the same."""

    question: Text
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

    questions: Annotated[list[Text], Field(max_length=100)] = []
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


class QualityChecks(Waited):
    """Properties that should hold, by name, or as SELECT DISTANCE_TO_...(...) FROM a table."""

    checks: (
        Text
        | Annotated[
            dict[Annotated[str, Field(max_length=200)], dict[str, Number | list[str]]],
            Field(max_length=100),
        ]
    )
    epsilon: Number


class QualityExplanation(Given):
    """What a report would cost, and how far off its numbers would be."""

    checks: list[dict[str, str | None]]
    sensitivity: int
    margin: int
    loss: Price


class QualityReport(Given):
    """Of each property, about how many units stand in its way."""

    id: str
    distances: dict[str, int]
    margin: int
    price: Price
    replayed: bool


class MedianWanted(Waited):
    """A median with noise to fit the data: by smooth sensitivity, or if a bound is passed."""

    question: Text
    epsilon: Number
    delta: Number
    bound: Number | None = None

    def settings(self) -> dict[str, Any]:
        """The keywords with which the curator releases it."""
        return {"epsilon": self.epsilon, "delta": self.delta, "bound": self.bound}


class MedianExplanation(Given):
    """What such a median would cost."""

    by: str
    margin: float | None
    loss: Price


class RobustMedian(Given):
    """A median; null where the proposed bound may not hold."""

    id: str
    value: float | None
    margin: float | None
    price: Price
    replayed: bool


class Choose(Waited):
    """Questions of one number each, by name, or one with public groups: which is largest?"""

    candidates: Text | dict[Annotated[str, Field(max_length=200)], Text]
    epsilon: Number | None = None
    rho: Number | None = None
    k: Annotated[int, Field(ge=1, le=1000)] = 1
    counts: bool = False

    def offer(self) -> Offer:
        """What is offered, or a refusal."""
        return Offer.of(epsilon=self.epsilon, rho=self.rho)


class ChoiceExplanation(Given):
    """What a choice would cost, and how far below the best who is chosen may be."""

    choice: str
    candidates: int
    sensitivity: float
    method: str
    margin: float
    theorem_margin: float
    loss: Price


class Chosen(Given):
    """Who was chosen, best first."""

    id: str
    chosen: list[str]
    numbers: list[float] | None
    margin: float
    theorem_margin: float
    price: Price
    replayed: bool


class RunVerdict(Given):
    """On which side of its threshold one number is."""

    question: str
    threshold: str
    above: bool
    value: float | None
    group: list[str | None]


class Verdicts(Given):
    """What a run told, and how it stands."""

    verdicts: list[RunVerdict]
    grouped: bool
    asked: int
    remaining: int
    ended: Literal["halted", "closed", "lost"] | None


class Entry(Given):
    """One line of the transcript."""

    id: str
    at: datetime
    analyst: str
    question: str
    spend: dict[str, Any]
    price: Price | None
    state: Literal["answered", "open", "burnt", "refused", "closed"]
    code: str | None
    count: int = Field(description="refusals that it stands for; their questions were not kept")
    answer: str | None
    shown: bool


class Transcript(Given):
    """A page of the transcript, newest first."""

    entries: list[Entry]
    next: str | None


class SavedOffer(Sent):
    """What was offered for a question, as texts."""

    epsilon: Number | None = None
    rho: Number | None = None
    delta: Number | None = None
    within: Number | None = None


class NewSaved(Sent):
    """A question to be kept under a name."""

    folder: Annotated[str, Field(max_length=100)] = ""
    name: Annotated[str, Field(min_length=1, max_length=100)]
    question: Text
    offer: SavedOffer = SavedOffer()


class Saved(Given):
    """A question that is kept."""

    id: str
    folder: str
    name: str
    question: str
    offer: dict[str, Any]


class SavedList(Given):
    """The questions that somebody keeps, by folder and name."""

    saved: list[Saved]


class Limit(Sent):
    """What an analyst may cost any one person."""

    epsilon: Number | None = None
    delta: Number = 0
    rho: Number | None = None
    accept_large_delta: bool = Field(
        default=False, description="insist on a delta of 1/100 or more, which may publish somebody"
    )


class NewAnalyst(Sent):
    """Somebody who may come in."""

    name: Name
    role: Literal["analyst", "auditor", "curator"] = "analyst"
    limit: Limit | None = None
    expires: datetime | None = None


class ChangedAnalyst(Sent):
    """What changes of an analyst; what is left out stays."""

    limit: Limit | None = None
    disabled: Literal[True] | None = None


class KeyWanted(Sent):
    """A key for an analyst, in this dataset and perhaps in others of the same curator."""

    expires: datetime | None = None
    also: Annotated[list[Annotated[str, Field(max_length=128)]], Field(max_length=100)] = []


class KeyListed(Given):
    """A key by its public part."""

    id: str
    expires: datetime | None
    revoked: bool
    at: datetime | None


class Analyst(Given):
    """Somebody who may come in."""

    name: str
    role: str
    limit: Budget | None
    expires: datetime | None
    disabled: bool
    spent: Price
    share: float | None
    keys: list[KeyListed]


class Analysts(Given):
    """Everybody who may come in."""

    analysts: list[Analyst]


class Record(Given):
    """A record of the ledger."""

    sequence: int
    kind: str
    at: str
    analyst: str
    body: dict[str, Any]
    digest: str


class Records(Given):
    """Records of the ledger, in order."""

    records: list[Record]
    first: int
    last: int


class Verification(Given):
    """Whether the ledger holds together."""

    holds: bool
    records: int
    head: str
    findings: list[str]
    text: str


class Checkpoint(Given):
    """A signed statement of where the ledger stands."""

    sequence: int
    digest: str
    at: str
    signature: str | None
    public_key: str | None


class Checkpoints(Given):
    """The checkpoints the ledger knows."""

    checkpoints: list[Checkpoint]


class Point(Given):
    """What was spent by the end of a day or an hour."""

    at: datetime
    spent: Price
    share: float
    questions: int


class Spending(Given):
    """Spend over time, of a dataset or of an analyst."""

    points: list[Point]
    since: datetime | None = Field(description="when nothing was spent yet")
    budget: Budget
