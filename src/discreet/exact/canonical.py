"""The one text of a JSON value: what is hashed, signed or compared must have one spelling."""

from __future__ import annotations

import json
from typing import Any


def canonical_json(value: Any, *, ascii_only: bool = False) -> str:
    """``value`` as JSON with its keys sorted, no spaces, and no number that JSON does not have.

    The same value has the same bytes for ever: they are in ledgers.  ``ascii_only``
    escapes every other character, as the keys of replays always did.

    >>> canonical_json({"b": 7, "ä": [3, None]})
    '{"b":7,"ä":[3,null]}'
    >>> print(canonical_json({"b": 7, "ä": [3, None]}, ascii_only=True))
    {"b":7,"\\u00e4":[3,null]}
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False
    )


__all__ = ["canonical_json"]
