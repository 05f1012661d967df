"""The map at the end of ``architecture.md``: every module with its first sentence.

    python docs/make_map.py        (or: make map)

Reads the sources and imports nothing.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "discreet"
PAGE = ROOT / "docs" / "architecture.md"
_MAP = re.compile(r"(?<=<!-- map -->\n).*?(?=<!-- end of map -->)", re.DOTALL)


def rooms() -> tuple[str, ...]:
    """From the ground up: the layers of the import contract in ``pyproject.toml``."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract, *_ = settings["tool"]["importlinter"]["contracts"]
    return tuple(layer.strip("()") for layer in reversed(contract["layers"]))


def first_sentence(docstring: str) -> str:
    """The first sentence on one line.

    >>> first_sentence("Exact draws: integers, to\\nthe last digit.  Nothing else.")
    'Exact draws: integers, to the last digit.'
    """
    paragraph = " ".join(docstring.split("\n\n", maxsplit=1)[0].split())
    return re.split(r"(?<=[.!?]) ", paragraph)[0].replace("``", "`")


def modules() -> Iterator[tuple[str, str]]:
    """Every module's path in the package, with its first sentence; a package by its folder."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        place = path.parent if path.name == "__init__.py" else path
        name = place.relative_to(PACKAGE).as_posix()
        yield name + "/" * place.is_dir(), first_sentence(ast.get_docstring(tree) or "")


def room(name: str) -> str:
    """The room a module is in; '' for the public face.

    >>> room("price/plan.py"), room("errors.py"), room("./"), room("__main__.py")
    ('price', 'errors', '', '')
    """
    first = name.split("/", maxsplit=1)[0].removesuffix(".py")
    return "" if first in (".", "__main__") else first


def written() -> str:
    """The map as Markdown: a list for each room, the public face first."""
    listed: dict[str, list[str]] = {}
    for name, sentence in modules():
        shown = name.replace("./", "__init__.py", 1) if name == "./" else name
        listed.setdefault(room(name), []).append(f"- `{shown}`: {sentence}")
    order = ["", *(name for name in rooms() if name in listed)]
    parts = [
        f"### {name or 'The public face'}\n\n" + "\n".join(listed[name]) + "\n" for name in order
    ]
    return "\n" + "\n".join(parts) + "\n"


def page() -> str:
    """The page as it should be."""
    return _MAP.sub(lambda _: written(), PAGE.read_text(encoding="utf-8"))


def main() -> int:
    """Write the map into the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
