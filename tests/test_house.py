"""The house as a stranger sees it: few rooms, each a layer of the imports, few words to learn."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "discreet"
MOST_ROOMS = 20
MOST_WORDS = 30


def rooms() -> set[str]:
    """What stands in the house, but for the files that Python itself asks for."""
    return {
        path.name.removesuffix(".py")
        for path in HOUSE.iterdir()
        if not path.name.startswith("__") and path.name != "py.typed"
    }


def layers() -> list[str]:
    """The rooms of the import contract, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (pointing_down,) = [one for one in contracts if one["type"] == "layers"]
    assert pointing_down["exhaustive"]
    return [name.strip("()") for name in pointing_down["layers"]]


def test_there_are_few_rooms_and_each_is_a_layer():
    assert len(rooms()) <= MOST_ROOMS
    assert sorted(layers()) == sorted(rooms() | {"__main__"})


def test_few_words_are_to_be_learned():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    glossary = text.split("\n## Words\n")[1].split("\n## ")[0]
    words = re.findall(r"^\| ([a-zδε -]+) \|", glossary, re.MULTILINE)[1:]  # the first is a heading
    assert 20 < len(words) <= MOST_WORDS, words
    assert len(set(words)) == len(words)
