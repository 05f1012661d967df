"""discreet: a differential-privacy curator.

The public face; everything is imported when first used, so that ``import
discreet`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import mechanisms, noise
    from discreet.answer import Answer
    from discreet.budget import Budget
    from discreet.curate import Curator, curator
    from discreet.errors import Refusal
    from discreet.loss import Loss
    from discreet.meaning import Meaning
    from discreet.schema import Column, Neighbours, Schema, Table

__version__ = "0.1.0"

_HOME = {
    "Answer": "answer",
    "Budget": "budget",
    "Column": "schema",
    "Curator": "curate",
    "Loss": "loss",
    "Meaning": "meaning",
    "Neighbours": "schema",
    "Refusal": "errors",
    "Schema": "schema",
    "Table": "schema",
    "curator": "curate",
}
_MODULES = ("mechanisms", "noise")


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
    "Loss",
    "Meaning",
    "Neighbours",
    "Refusal",
    "Schema",
    "Table",
    "__version__",
    "curator",
    "mechanisms",
    "noise",
]
