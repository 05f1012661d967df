"""Who may come in: keys, analysts, their groups and limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from discreet.server.models.account import Gauge
from discreet.server.models.base import Budget, Given, Name, Number, Price, Sent


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


class SignIn(Given):
    """Whether one can sign in with a provider."""

    available: bool
    provider: str | None


class Rotation(Sent):
    """A key in place of the one that is used."""

    expires: datetime | None = None


class NewKey(Given):
    """A key, shown once."""

    key: str
    id: str
    expires: datetime | None


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
    group: Name | None = Field(default=None, description="whose common limit counts, too")


class ChangedAnalyst(Sent):
    """What changes of an analyst; what is left out stays."""

    limit: Limit | None = None
    disabled: Literal[True] | None = None
    group: Name | None = Field(default=None, description="another group; null for none")


class KeyWanted(Sent):
    """A key for an analyst, in this dataset and perhaps in others of the same curator."""

    expires: datetime | None = None
    also: list[Annotated[str, Field(max_length=128)]] = Field(default_factory=list, max_length=100)


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
    group: str | None
    signs_in: bool = Field(description="whether they sign in with a provider")
    identity: str | None = Field(
        description="who the provider says they are: its address, #, and its name for them"
    )
    keys: list[KeyListed]


class Group(Given):
    """Analysts under a common limit."""

    name: str
    limit: Budget | None = Field(description="of all of them together")
    each: Budget | None = Field(description="of each without a limit of their own")
    together: Gauge | None


class Analysts(Given):
    """Everybody who may come in, and the groups they may be in."""

    analysts: list[Analyst]
    groups: list[Group]
