"""discreet: a differential-privacy curator.

The public face; everything is imported when first used, so that ``import
discreet`` is quick.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import accounting, audit, local, mechanisms, noise
    from discreet.accounting.budget import Budget
    from discreet.accounting.loss import Loss
    from discreet.accounting.meaning import Meaning
    from discreet.accounting.neighbours import Neighbours
    from discreet.curate.curator import Curator, curator
    from discreet.curate.remote import connect
    from discreet.curate.session import open  # noqa: A004 (as a file is opened, so is a session)
    from discreet.errors import Refusal
    from discreet.ledger import Ledger, Policy
    from discreet.question.schema import Column, Schema, Table
    from discreet.release.answer import Answer

__version__ = "0.1.0"

_HOME = {
    "Answer": "release.answer",
    "Budget": "accounting.budget",
    "Column": "question.schema",
    "Curator": "curate.curator",
    "Ledger": "ledger",
    "Loss": "accounting.loss",
    "Meaning": "accounting.meaning",
    "Neighbours": "accounting.neighbours",
    "Policy": "ledger",
    "Refusal": "errors",
    "Schema": "question.schema",
    "Table": "question.schema",
    "connect": "curate.remote",
    "curator": "curate.curator",
    "open": "curate.session",
}
_MODULES = ("accounting", "audit", "local", "mechanisms", "noise")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _load(name)
    if name in _HOME:
        return getattr(_load(_HOME[name]), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def _load(module: str) -> Any:
    """A module of ours, and what it stands on.

    What importing makes stays for good.  Looking through it for garbage, again and again while
    it grows, is a tenth of what a fresh process pays before its first answer; so it is put with
    what is old, which is looked through least often.
    """
    name = f"discreet.{module}"
    if name in sys.modules:
        return import_module(name)
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if collects:
            if not gc.get_freeze_count():  # what others froze stays frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()


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
    "accounting",
    "audit",
    "connect",
    "curator",
    "local",
    "mechanisms",
    "noise",
    "open",
]
