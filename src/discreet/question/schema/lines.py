"""TOML, and the line on which each thing was said."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from decimal import Decimal
from typing import Any

from discreet.errors import SchemaRefusal
from discreet.exact.records import dataclass

Path = tuple[str, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_ENTRY = re.compile(rf"\s*({_DOTTED})\s*=")
_WHERE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a TOML text, and for each key the line it stands on."""

    data: Mapping[str, Any]
    name: str = "the schema"
    lines: Mapping[Path, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, *, name: str) -> Document:
        """Read a text; numbers with a point stay exact decimals.

        >>> document = Document.parse("[budget]\\nepsilon = 0.3", name="clinic.toml")
        >>> document.data["budget"]["epsilon"], document.lines["budget", "epsilon"]
        (Decimal('0.3'), 2)
        """
        try:
            data = tomllib.loads(text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as error:
            raise SchemaRefusal(
                "S1",
                f"{name}{_line_of(error, text)} is not TOML: {_WHERE.sub('', str(error)).strip()}.",
                why="what is public must be read the same way by everyone.",
                fix="correct that line; https://toml.io shows the notation.",
            ) from None
        lines: dict[Path, int] = {}
        for path, number in _locate(text):
            lines.setdefault(path, number)
        return cls(data, name, lines)

    def where(self, path: Path) -> str:
        """The file and line of ``path``, or of the nearest thing around it that has one."""
        while path:
            if path in self.lines:
                return f"{self.name}, line {self.lines[path]}"
            path = path[:-1]
        return self.name

    @contextmanager
    def at(self, *path: str) -> Iterator[None]:
        """A refusal inside names the line of ``path``, unless it already names one."""
        try:
            yield
        except SchemaRefusal as refusal:
            if refusal.what.startswith(self.name):
                raise
            raise SchemaRefusal(
                refusal.code,
                f"{self.where(path)}: {refusal.what}",
                why=refusal.why,
                fix=refusal.fix,
            ) from None


def _line_of(error: tomllib.TOMLDecodeError, text: str) -> str:
    found = _WHERE.search(str(error))
    if found is None:
        return ""
    return f", line {found[1] or len(text.splitlines())}"


def _locate(text: str) -> Iterator[tuple[Path, int]]:
    """Where each header and each key stands; lines inside long strings may be found too."""
    inside: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header, entry = _HEADER.match(line), _ENTRY.match(line)
        if header:
            inside = _parts(header[1])
            yield from _prefixes((), inside, number)
        elif entry:
            yield from _prefixes(inside, _parts(entry[1]), number)


def _prefixes(start: Path, parts: Path, number: int) -> Iterator[tuple[Path, int]]:
    for length in range(1, len(parts) + 1):
        yield (*start, *parts[:length]), number


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))
