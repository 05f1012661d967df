"""What is released once, as a table or a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from discreet.publication.agenda import Agenda, parse_agenda
from discreet.publication.declared import Declared
from discreet.publication.folder import read_declared
from discreet.server.models.base import Given, Number, Price, Sent, Text, Waited


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

    def declare(self) -> Declared:
        """What is declared, or a refusal."""
        return read_declared({**self.settings, "name": self.name, "kind": self.kind, "of": self.of})


class PlanReleases(Sent):
    """A release plan, in the words of its file: a price for all, or targets, and each release."""

    plan: dict[str, Any] = Field(default_factory=dict, examples=[{"epsilon": "2"}])
    release: list[dict[str, Any]] = Field(
        examples=[[{"name": "cities", "kind": "marginals", "of": "visits", "columns": ["city"]}]]
    )

    def agenda(self) -> Agenda:
        """What is planned, or a refusal."""
        return parse_agenda({"plan": self.plan, "release": self.release})


class MakeReleases(PlanReleases, Waited):
    """A release plan that is to be run."""


class HandOver(Sent):
    """The releases that are handed over in one folder."""

    releases: Annotated[
        list[Annotated[str, Field(max_length=63, pattern=r"^[a-z][a-z0-9_]*$")]],
        Field(max_length=1000, examples=[["visits_2026"]]),
    ]


class StepRelease(Sent):
    """Which step of a counter is to be published: the next, if it is not said."""

    number: Annotated[int, Field(ge=1, le=2**16, examples=[3])] | None = None


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


class PlannedOne(Given):
    """A release of a plan: its price, how near a usual number then is, and was wanted to be."""

    name: str
    kind: str
    amount: str
    within: float | None
    wanted: float | None


class ReleasesPlan(Given):
    """The prices of a plan's releases, and both curves; nothing was charged."""

    kind: Literal["rho", "epsilon"]
    total: str
    releases: list[PlannedOne]
    curve: list[tuple[float, list[float]]] = Field(
        description="for several prices of all, how near each release would be"
    )
    least: list[tuple[float, float]] = Field(
        description="for targets so many times as wide, the least price for all"
    )
    missed: list[str]


class MadeReleases(Given):
    """The certificates of a plan's releases."""

    releases: list[dict[str, Any]]


class ReleaseCard(Given):
    """What a release is and promises, in words."""

    name: str
    card: str


class Surveyed(Given):
    """A survey whose reports can be asked."""

    name: str
    title: str
    epsilon: str
    respondents: int
    questions: list[str]


class SurveysFound(Given):
    """The surveys of a dataset."""

    surveys: list[Surveyed]


class AskRelease(Sent):
    """A SELECT about one release, or one survey."""

    question: Text
    confidence: Number = "0.95"
