"""Texts, amounts and refusals: what all other types are made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from discreet.server.models.meanings import SENT

Number = Annotated[StrictStr, Field(max_length=100)] | StrictInt | StrictFloat
Text = Annotated[str, Field(max_length=20_000)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][\w.@+-]*$")]
State = Literal["queued", "running", "done", "failed", "interrupted"]


class Sent(BaseModel):
    """What a client sends: nothing but what is described."""

    model_config = ConfigDict(extra="forbid", strict=False)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> Any:
        """Its description, with the meaning of every field."""
        made = handler(core)
        for name, field in handler.resolve_ref_schema(made).get("properties", {}).items():
            names = [f"{one.__name__}.{name}" for one in cls.__mro__]
            meaning = next((SENT[one] for one in [*names, name] if one in SENT), None)
            if meaning is not None:
                field.setdefault("description", meaning)
        return made


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
                "why": "one patient could add any amount, and no amount of noise would hide them.",
                "fix": "the curator declares bounds for it, or ask what is under 'rewriting'.",
                "place": [7, 18],
                "rewriting": "SELECT SUM(income, bounds => AUTO) FROM visits",
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


class Waited(Sent):
    """What may take a while, and how long to wait before it is something to come back for."""

    wait_s: Annotated[float, Field(ge=0, le=60)] = 30.0
