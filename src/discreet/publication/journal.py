"""The steps of a counter on disk: what was counted and what was published, each written once.

What a step counted is written before its noise is drawn, what it published before it is shown.
Whoever is killed between the two draws for the first time; whoever is killed afterwards finds
what was drawn.  Counts are the truth, so the folder is as secret as the table and its files are
their owner's alone; only what ``released`` says may leave.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter, LedgerRefusal
from discreet.exact.numbers import canonical_json
from discreet.ledger.store import sync_folder
from discreet.noise.entropy import random_bytes
from discreet.publication.measure import Integers


class Journal:
    """The folder of one counter."""

    def __init__(self, folder: Path, declared: Mapping[str, Any]) -> None:
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self._write_once("counter.json", canonical_json(dict(declared)))
        except OSError as error:
            raise _unwritable(error) from None
        if json.loads(found) != dict(declared):
            raise InvalidParameter(
                "P4",
                f"{folder.name!r} holds the steps of another counter.",
                why="its noise was made for another horizon, another price or other cells.",
                fix="start the counter as it was, or in another folder.",
            )

    def read_steps(self) -> tuple[list[Integers], list[Integers]]:
        """What was counted in each step that was published, and what was published of it."""
        counted: list[Integers] = []
        released: list[Integers] = []
        while (self._folder / _name(len(released) + 1, "released")).exists():
            step = len(released) + 1
            counted.append(self._read(step, "counted"))
            released.append(self._read(step, "released"))
        return counted, released

    def keep(self, step: int, what: str, values: Integers) -> Integers:
        """Write the numbers of a step, durably; the first ones written are the ones."""
        return np.array(self.keep_list(step, what, values.tolist()), dtype=np.int64)

    def keep_list(self, step: int, what: str, values: list[Any]) -> list[Any]:
        """Write a list of a step, durably; the first one written is the one."""
        try:
            found = self._write_once(_name(step, what), json.dumps(values))
        except OSError as error:
            raise _unwritable(error) from None
        kept: list[Any] = json.loads(found)
        return kept

    def has_list(self, step: int, what: str) -> bool:
        """Whether a list was written, which is not read."""
        return (self._folder / _name(step, what)).is_file()

    def find_list(self, step: int, what: str) -> list[Any] | None:
        """A list that was written; None if it was not."""
        try:
            found: list[Any] = json.loads((self._folder / _name(step, what)).read_text())
        except (OSError, ValueError):
            return None
        return found

    def _read(self, step: int, what: str) -> Integers:
        try:
            return np.array(
                json.loads((self._folder / _name(step, what)).read_text()), dtype=np.int64
            )
        except (OSError, ValueError):
            raise LedgerRefusal(
                "L10",
                f"step {step} of the counter was published, and its file {what!r} is gone.",
                why="the noise of later steps is made to go with it; without it a person "
                "would be counted with other weights than the price was made for.",
                fix="bring the folder back from a copy, or start another counter.",
            ) from None

    def _write_once(self, name: str, text: str) -> str:
        """What the file holds: the text, unless it was written before."""
        file = self._folder / name
        draft = self._folder / f".{name}.{random_bytes(4).hex()}"
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            with suppress(FileExistsError):
                os.link(draft, file)
            sync_folder(self._folder)
        finally:
            with suppress(OSError):
                draft.unlink()
        return file.read_text(encoding="utf-8")


def _name(step: int, what: str) -> str:
    return f"{step:06d}.{what}"


def _unwritable(error: OSError) -> InvalidParameter:
    return InvalidParameter(
        "P9",
        f"the steps of the counter cannot be written: {error.strerror or 'the disk said no'}.",
        why="a step that is not on the disk might be drawn a second time.",
        fix="make room, and step again: nothing was published.",
    )


__all__ = ["Journal"]
