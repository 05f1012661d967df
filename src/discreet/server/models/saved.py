"""Questions that somebody keeps by name."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from discreet.server.models.base import Given, Number, Sent, Text


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
