"""discreet: a differential-privacy curator.

The public face; everything is imported when first used, so that ``import
discreet`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import audit, mechanisms, noise
    from discreet.answer import Answer
    from discreet.budget import Budget
    from discreet.client import connect
    from discreet.curate import Curator, curator
    from discreet.errors import Refusal
    from discreet.ledger import Ledger, Policy
    from discreet.loss import Loss
    from discreet.meaning import Meaning
    from discreet.schema import Column, Neighbours, Schema, Table
    from discreet.session import open  # noqa: A004 (as a file is opened, so is a session)

__version__ = "0.1.0"

_HOME = {
    "Answer": "answer",
    "Budget": "budget",
    "Column": "schema",
    "Curator": "curate",
    "Ledger": "ledger",
    "Loss": "loss",
    "Meaning": "meaning",
    "Neighbours": "schema",
    "Policy": "ledger",
    "Refusal": "errors",
    "Schema": "schema",
    "Table": "schema",
    "connect": "client",
    "curator": "curate",
    "open": "session",
}
_MODULES = ("audit", "mechanisms", "noise")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"discreet.{name}")
    if name in _HOME:
        return getattr(import_module(f"discreet.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "Answer",
    "Budget",
    "Column",
    "Curator",
    "Ledger",
    "Loss",
    "Meaning",
    "Neighbours",
    "Policy",
    "Refusal",
    "Schema",
    "Table",
    "__version__",
    "audit",
    "connect",
    "curator",
    "mechanisms",
    "noise",
    "open",
]
