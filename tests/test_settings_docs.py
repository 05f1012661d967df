"""docs/settings.md has a table for each section: the keys that the code reads, and no others."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import discreet
from discreet.curate import session
from discreet.engine.duckdb.engine import MEMORY_LIMIT
from discreet.engine.opening import KINDS
from discreet.engine.postgres.engine import TIMEOUT_S
from discreet.errors import SchemaRefusal
from discreet.question.schema import declarations
from discreet.server.offers import AMOUNTS
from discreet.server.settings import Settings
from discreet.server.sign_in.settings import SignInSettings, _read_section

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
ROW = re.compile(r"^\| `([A-Za-z_]+)` \| (.+) \| ([^|]+) \|$", re.MULTILINE)
TOP = "The top of the file"
ALIKE = {"`[entities.NAME]`": "the keys of `[budget]`", "`[surveys]`": "Each key is a name"}
"""Sections without keys of their own, with what the page says instead."""


def read_page(text: str) -> dict[str, dict[str, tuple[str, str]]]:
    """Of each section of the page the keys, each with its meaning and default."""
    parts = SECTION.split(text)[1:]
    found = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        rows = ROW.findall(body)
        assert len(rows) == len({key for key, *_ in rows}) == max(body.count("\n| `"), 0), name
        found[name] = {key: (meaning, default) for key, meaning, default in rows}
    return found


TOLD = read_page(PAGE)
_SIGN_IN = {field.name for field in fields(SignInSettings)} - {"client_secret"}
READ: dict[str, set[str]] = {
    TOP: set(declarations.DECLARED) - {"tables", "entities"},
    "`[tables.NAME]`": set(declarations._TABLE),
    "`[tables.NAME.columns]`": set(declarations._COLUMN),
    **{f"`[{name}]`": set(keys) for name, keys in session._KEYS.items()},
    "`[groups.NAME]`": set(session._GROUP_KEYS),
    "`[server]`": {field.name for field in fields(Settings)},
    "`[sign_in]`": _SIGN_IN | {"client_secret_file"},
    "`[offers.NAME]`": set(AMOUNTS),
}


def test_every_section_has_its_place_and_no_other_has():
    sections = {re.sub(r"`\[(\w+).*", r"\1", name) for name in TOLD} - {TOP, "Environment"}
    assert sections == set(declarations.SECTIONS) - READ[TOP]
    assert TOLD.keys() == READ.keys() | ALIKE.keys() | {"Environment"}


@pytest.mark.parametrize("section", READ)
def test_the_keys_of_a_section_are_those_that_are_read(section):
    assert TOLD[section].keys() == READ[section]


def test_what_has_no_keys_of_its_own_says_so():
    for section, words in ALIKE.items():
        body = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
        assert words in body
        assert TOLD[section] == {}


def test_sign_in_reads_the_keys_that_are_compared(tmp_path):
    """A key that does not exist is refused with those that do."""
    with pytest.raises(SchemaRefusal) as refused:
        _read_section({"isuer": "x"}, tmp_path)
    said = refused.value.fix.removeprefix("use ").rstrip(".")
    assert set(said.split(", ")) == READ["`[sign_in]`"]


def test_defaults_are_those_of_the_code():
    defaults = {
        "`[server]`": {field.name: f"{field.default:g}" for field in fields(Settings)},
        "`[sign_in]`": {
            field.name: str(field.default)
            for field in fields(SignInSettings)
            if field.name in {"name_claim", "groups_claim", "scope", "hours"}
        },
        "`[ledger]`": {"address": session.LEDGER, "dataset": session.DATASET},
        "`[engine]`": {
            "kind": KINDS[0],
            "memory_limit": MEMORY_LIMIT,
            "store": session.PREPARED,
            "timeout_s": str(TIMEOUT_S),
        },
    }
    for section, expected in defaults.items():
        told = {key: TOLD[section][key][1] for key in expected}
        assert told == {key: f"`{value}`" for key, value in expected.items()}


def test_variables_of_the_environment_are_those_that_are_read():
    source = Path(discreet.__file__).parent
    read = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(
            r"(?:environ\.get\(|environ\[|getenv\(|envvar=)\"(DISCREET_\w+)\"",
            path.read_text(encoding="utf-8"),
        )
    }
    assert TOLD["Environment"].keys() == read


def test_no_other_page_has_a_table_of_settings():
    for name in ("cli", "schema", "server"):
        text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        assert not re.search(r"^\|[^\n]*\| ?key \|[^\n]*\n|^\| key \|", text, re.MULTILINE), name
        assert "(settings.md" in text
