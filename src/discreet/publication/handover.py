"""What a plan published, in one folder to hand over: every release, an index, checksums.

Each release is a folder in it, as whole as by itself; ``publication.json`` says which there are
and what all of them cost together, ``index.html`` says it in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from discreet.errors import DataRefusal, InvalidParameter
from discreet.exact.numbers import decimal_up
from discreet.publication.declared import KINDS
from discreet.publication.folder import (
    MOST_BYTES,
    WORDING,
    Made,
    read_certificate,
    read_folder,
    write_folder,
)
from discreet.publication.placing import SUMS, find_changes, is_plain, place_folder, settle
from discreet.publication.report import STYLE, describe_promise, write_table
from discreet.publication.verifying import OTHER_WORDS, Checked, check_files, verify_made
from discreet.release.display import plural

FORMAT = "discreet publication"
INDEX, PAGE = "publication.json", "index.html"


def write_handover(listed: Sequence[Made], folder: Path) -> Path:
    """Write the folder, all of it or nothing; an earlier one is replaced, and nothing else is."""
    check_place(folder)
    return place_folder(folder, lambda draft: _write_files(listed, draft), anew=True)


def check_place(folder: Path) -> None:
    """Refuse to write where something else is, or was put beside a publication.

    One that waits to take its place, because a process was killed, takes it first.
    """
    settle(folder)
    if folder.exists() and not _is_as_written(folder):
        raise InvalidParameter(
            "P9",
            f"{folder} is there already, and is no publication as it was written.",
            why="what is in it would be lost.",
            fix="name a folder that is not there yet.",
        )


def _is_as_written(folder: Path) -> bool:
    try:
        _read_index(folder)
    except DataRefusal:
        return False
    return find_changes(folder) == []


def _write_files(listed: Sequence[Made], folder: Path) -> None:
    for made in listed:
        write_folder(made, folder / made.declared.name)
    said = {
        "format": FORMAT,
        "version": 1,
        "releases": [made.declared.name for made in listed],
        "loss": _add_up(made.certificate() for made in listed),
    }
    text = json.dumps(said, indent=2, ensure_ascii=False)
    (folder / INDEX).write_text(text + "\n", encoding="utf-8")
    (folder / PAGE).write_text(_write_page(listed), encoding="utf-8")


def _add_up(certificates: Any) -> dict[str, str]:
    """What all stages of some releases cost together: epsilon and rho, each by itself."""
    found: dict[str, Fraction] = {}
    for said in certificates:
        for stage in said["stages"]:
            kind = stage["kind"]
            found[kind] = found.get(kind, Fraction(0)) + Fraction(stage["amount"])
    return {kind: str(amount) for kind, amount in sorted(found.items())}


def _write_page(listed: Sequence[Made]) -> str:
    rows = "".join(
        f'<tr><td><a href="{made.declared.name}/report.html">{escape(made.declared.name)}</a></td>'
        f"<td>{escape(KINDS[made.declared.kind])}</td><td>{escape(str(made.loss))}</td></tr>"
        for made in listed
    )
    promises = "".join(
        f"<section><h2>{escape(made.declared.name)}</h2><p>{escape(describe_promise(made))}</p>"
        "</section>"
        for made in listed
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Publication</title>'
        f"<style>{STYLE}</style><body><h1>Publication</h1><p>Releases that were planned and "
        "charged together. Their losses add up.</p>"
        f"{write_table(['release', 'kind', 'loss'], rows)}{promises}</body></html>\n"
    )


def is_handover(folder: Path) -> bool:
    """Whether it is such a folder, and not that of one release."""
    return (folder / INDEX).is_file()


def verify_handover(folder: Path) -> list[Checked]:
    """Whether it is whole, each release holds, and the losses add up to what is said."""
    said = _read_index(folder)
    names = said["releases"]
    inside = sorted(one.name for one in folder.iterdir() if one.is_dir())
    beside = {one.name for one in folder.iterdir() if not one.is_dir()}
    only = sorted(names) == inside and beside == {INDEX, PAGE, SUMS}
    says = f"{plural(len(inside), 'folder')} and {plural(len(beside), 'file')}, {len(names)} listed"
    checks = [check_files(folder), Checked("list of releases", only, says)]
    found = []
    for name in names:
        found.append(read_folder(folder / name))
        own = verify_made(found[-1], folder / name)
        checks += [Checked(f"{name}: {one.what}", one.holds, one.says) for one in own]
    checks.append(_check_page(found, folder / PAGE))
    total = _add_up(read_certificate(folder / name) for name in names)
    signs = {"rho": "ρ", "epsilon": "ε"}
    words = ", ".join(f"{signs[kind]} = {decimal_up(Fraction(one))}" for kind, one in total.items())
    return [*checks, Checked("loss of all releases", total == said["loss"], words)]


def _check_page(listed: Sequence[Made], page: Path) -> Checked:
    """Whether the page says of the releases what they say of themselves."""
    if any(made.wording != WORDING for made in listed):
        return Checked(PAGE, None, OTHER_WORDS)
    held = page.read_bytes() if is_plain(page, most=MOST_BYTES) else b""
    holds = held == _write_page(listed).encode()
    return Checked(PAGE, holds, "as it follows" if holds else "says something else")


def _read_index(folder: Path) -> Mapping[str, Any]:
    try:
        if not is_plain(folder / INDEX, most=MOST_BYTES):
            raise FileNotFoundError(folder / INDEX)
        said = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        names = said["releases"]
        known = said["format"] == FORMAT and said["version"] == 1
        plain = all(isinstance(name, str) and Path(name).parts == (name,) for name in names)
        once = isinstance(names, list) and len(set(names)) == len(names)  # each is read again
        if known and plain and once and ".." not in names and isinstance(said["loss"], dict):
            found: Mapping[str, Any] = said
            return found
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass
    raise DataRefusal(
        "D2",
        f"{folder.name!r} is not a publication that can be read.",
        why="without a list of its releases nothing can be said of it.",
        fix="ask whoever made it for the folder again.",
    )


__all__ = ["check_place", "is_handover", "verify_handover", "write_handover"]
