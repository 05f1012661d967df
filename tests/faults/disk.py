"""The disk that fails on purpose, seen from Python: control, trace, and loss of power.

``disk.c`` numbers what a process does to its files. Here the numbered steps are read back, and
the state in which a loss of power would leave the files is computed from them.

The model of the disk is the weakest that POSIX allows. A written byte is certain only after a
successful fsync of its file; a new, removed or renamed file only after a fsync of its directory.
Whatever is not certain may be there, may be missing, or may be there in part. A fsync that fails
makes nothing certain, and no later fsync makes up for it: the kernel has forgotten those pages
(Rebello et al., "Can applications recover from fsync failures?", 2020).
"""

from __future__ import annotations

import ctypes
import os
import random
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

SOURCE = Path(__file__).parent / "disk.c"
SECTOR = 512
_RECORD = struct.Struct("=QQQqII")


class Fault(IntEnum):
    """What goes wrong at the chosen step; the numbers are those of ``disk.c``."""

    NONE = 0
    KILL = 1
    IO_ERROR = 2
    FULL = 3
    SHORT = 4
    TORN = 5
    PAUSE = 6
    STAYS_FULL = 7
    STAYS_BROKEN = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One numbered thing that a process did: to a file, or a mark of the test."""

    number: int
    kind: str
    path: str
    result: int = 0
    offset: int = 0
    data: bytes = b""

    @property
    def is_mark(self) -> bool:
        """Whether this happened above the disk."""
        return self.kind == "m"

    def __str__(self) -> str:
        words = {"c": "create", "w": "write", "h": "map", "t": "truncate", "s": "fsync"}
        verb = {**words, "u": "remove", "r": "rename", "l": "link"}.get(self.kind)
        return self.path if verb is None else f"{verb} {Path(self.path).name}"


def build(directory: Path, compiler: Path) -> Path:
    """Compile the shim into ``directory``."""
    shim = directory / "disk.so"
    options = ["-shared", "-fPIC", "-O1"]
    subprocess.run([str(compiler), *options, "-o", str(shim), str(SOURCE)], check=True)
    return shim


class Disk:
    """The control of the shim in this process, which must have been started with it."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        try:
            self._watch = library.disk_watch
        except AttributeError:
            raise RuntimeError("start this process with LD_PRELOAD=disk.so") from None
        self._unwatch = library.disk_unwatch
        self._fault = library.disk_fault
        self._mark = library.disk_mark
        self._fault.argtypes = [ctypes.c_long, ctypes.c_int]

    def watch(self, directory: Path, trace: Path) -> None:
        """Number the steps of this process from zero and write them to ``trace``."""
        self._watch(os.fsencode(directory), os.fsencode(trace))

    def unwatch(self) -> None:
        """Be a disk like any other again."""
        self._unwatch()

    def arm(self, step: int, fault: Fault) -> None:
        """Let ``fault`` happen at ``step``."""
        self._fault(step, int(fault))

    def mark(self, text: str) -> None:
        """A step of the test's own."""
        self._mark(text.encode())


def steps(trace: Path) -> list[Step]:
    """Everything that was done, in order; a record cut off by a kill is left out."""
    return list(_steps(trace.read_bytes())) if trace.exists() else []


def _steps(raw: bytes) -> Iterator[Step]:
    at = 0
    while at + _RECORD.size <= len(raw):
        number, offset, size, result, kind, length = _RECORD.unpack_from(raw, at)
        at += _RECORD.size
        path, data = raw[at : at + length], raw[at + length : at + length + size]
        at += length + size
        yield Step(number, chr(kind), path.decode(errors="replace"), result, offset, data)


@dataclass(slots=True)
class _Change:
    """One change of a file's bytes: certain, not yet, or (``lost``) never to be."""

    offset: int
    data: bytes | None  # none: the file is cut at the offset
    certain: bool = False
    lost: bool = False


@dataclass(slots=True)
class _Contents:
    changes: list[_Change] = field(default_factory=list)

    def sync(self, *, failed: bool) -> None:
        for change in self.changes:
            if failed:
                change.lost = not change.certain
            elif not change.lost:
                change.certain = True

    def image(self, survives: Callable[[int], int]) -> bytes:
        """The bytes on the disk; ``survives`` says how many of an uncertain write's there are."""
        image = bytearray()
        for change in self.changes:
            if change.data is None:
                if change.certain or survives(1):
                    del image[change.offset :]
                    image.extend(bytes(change.offset - len(image)))
                continue
            kept = len(change.data) if change.certain else survives(len(change.data))
            if kept:
                image.extend(bytes(max(0, change.offset + kept - len(image))))
                image[change.offset : change.offset + kept] = change.data[:kept]
        return bytes(image)


@dataclass(slots=True)
class Power:
    """Follows a trace, and can at any point say what a loss of power would leave."""

    names: dict[str, _Contents] = field(default_factory=dict)
    certain_names: dict[str, _Contents] = field(default_factory=dict)

    @classmethod
    def on(cls, files: Mapping[str, Path]) -> Power:
        """A disk that holds ``files`` safely, by the names they have in the trace."""
        held = {
            name: _Contents([_Change(0, path.read_bytes(), certain=True)])
            for name, path in files.items()
        }
        return cls(dict(held), held)

    def follow(self, step: Step) -> None:
        """Take in one step."""
        match step.kind:
            case "c":
                self.names[step.path] = _Contents()
            case "w" if step.path in self.names:
                self.names[step.path].changes.append(_Change(step.offset, step.data))
            case "t" if step.path in self.names:
                self.names[step.path].changes.append(_Change(step.offset, None))
            case "s" if step.path in self.names:
                self.names[step.path].sync(failed=step.result != 0)
            case "s" if step.result == 0:
                self._sync_directory(step.path)
            case "u":
                self.names.pop(step.path, None)
            case "r":
                self.names[step.data.decode()] = self.names.pop(step.path)
            case "l":
                self.names[step.data.decode()] = self.names[step.path]

    def _sync_directory(self, directory: str) -> None:
        inside = Path(directory)
        for name in set(self.names) | set(self.certain_names):
            if Path(name).parent == inside:
                _move(name, self.names, self.certain_names)

    def fail(self, coins: random.Random | None) -> dict[str, bytes]:
        """The files after a loss of power; without coins, nothing uncertain survives."""
        left = dict(self.certain_names)
        for name in sorted(set(self.names) | set(self.certain_names)):
            if coins is not None and coins.random() < 0.5:
                _move(name, self.names, left)
        return {
            name: contents.image(lambda size: _surviving(size, coins))
            for name, contents in left.items()
            if not name.endswith("-shm")  # memory
        }


def _move(name: str, source: dict[str, _Contents], target: dict[str, _Contents]) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _surviving(size: int, coins: random.Random | None) -> int:
    """How many bytes of an uncertain write reached the disk: none, all, or some sectors."""
    if coins is None:
        return 0
    luck = coins.random()
    if luck < 0.4:
        return 0
    if luck < 0.8:
        return size
    return min(size, SECTOR * coins.randrange(1 + size // SECTOR) + coins.randrange(2) * 7)
