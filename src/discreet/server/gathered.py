"""Questions that one statement reads, as they are sent to the process that holds the data.

What comes back has a place for each of them: its released answer, or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from discreet.curate.gathered import Charged, compute_gathered
from discreet.engine.protocol import Engine
from discreet.price.gathering import Gathered
from discreet.release import record


def write_gathered(gathered: Gathered, questions: Sequence[bytes]) -> bytes:
    """Questions, each as it is sent when it is alone, and how one statement reads them."""
    content = {
        "plan": record.to_json(gathered.plan),
        "shape": gathered.shape,
        "chosen": gathered.write_chosen(),
    }
    told = json.dumps(content).encode()
    return b'{"gathered": {"questions": [' + b", ".join(questions) + b"], " + told[1:] + b"}"


def answer_gathered(engine: Engine[Any], content: dict[str, Any]) -> bytes:
    """Their answers, where the data is."""
    gathered = Gathered.read(record.from_json(content["plan"]), content["shape"], content["chosen"])
    questions = [
        Charged(record.from_json(one["priced"]), one["data_version"], one["basis"])
        for one in content["questions"]
    ]
    answers = compute_gathered(engine, gathered, questions)
    return json.dumps([answer.decode() for answer in answers]).encode()


def read_gathered(answer: bytes, count: int) -> list[bytes]:
    """What came back for each of so many questions; nothing for any, if it is something else."""
    found: Any = None
    with suppress(ValueError):
        found = json.loads(answer)
    if not isinstance(found, list) or [type(one) for one in found] != [str] * count:
        return [b""] * count
    return [one.encode() for one in found]


__all__ = ["answer_gathered", "read_gathered", "write_gathered"]
