"""docs/cli.md says of every command what ``--help`` says, and its examples and the README's run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from discreet.cli import app, main

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
HEADING = re.compile(r"^#{2,3} (discreet [a-z -]+)$", re.MULTILINE)
NAMED = re.compile(r"`(--[a-z-]+|[A-Z]+)[^`]*`")
TALKING = ("discreet shell", "discreet demo", "discreet survey serve")
ELSEWHERE = {"serve", "audit"}
"""Commands of other doors, which have pages of their own."""


def commands(group=None, path: tuple[str, ...] = ("discreet",)) -> Iterator[tuple[str, object]]:
    """Every command and group, with its whole name."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if len(path) > 1 or name not in ELSEWHERE:
            yield " ".join((*path, name)), command
            if hasattr(command, "commands"):
                yield from commands(command, (*path, name))


COMMANDS = dict(commands())


def sections() -> dict[str, str]:
    parts = HEADING.split(REFERENCE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def documented(text: str) -> set[str]:
    """What the first column of the section's tables names."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in NAMED.findall(cell)}


def declared(command) -> set[str]:
    names = set()
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            names.add(re.sub(r"[^A-Z]", "", parameter.metavar or parameter.name.upper()))
        else:
            names.add(max(parameter.opts, key=len))
    return names - {"--help"}


def test_every_command_has_a_heading_and_no_heading_is_without_a_command():
    assert sections().keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_lists_the_options_of_the_help(name):
    command = COMMANDS[name]
    if not hasattr(command, "commands"):
        assert documented(sections()[name]) == declared(command)


@pytest.mark.parametrize("name", ["discreet", *COMMANDS])
def test_help_fits_eighty_columns_and_is_not_cut(name):
    run = CliRunner().invoke(app, [*name.split()[1:], "--help"])
    assert run.exit_code == 0
    assert all(len(line) <= 80 for line in run.output.splitlines())
    listed = run.output.partition("Commands:")[2]
    cut = [line for line in listed.splitlines() if line.endswith("...")]
    assert not [line for line in cut if line.split()[0] not in ELSEWHERE]


@pytest.mark.parametrize("name", [n for n, c in COMMANDS.items() if not hasattr(c, "commands")])
def test_json_is_everywhere_but_where_a_person_talks(name):
    options = declared(COMMANDS[name])
    assert ("--json" in options) is (name not in TALKING)


def test_every_setting_is_documented():
    from discreet.curate.session import _KEYS

    for section, keys in _KEYS.items():
        assert f"`[{section}]`" in REFERENCE
        for key in keys:
            assert f"`{key}`" in REFERENCE, key


def test_completion_is_offered():
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "--install-completion" in shown


# --- examples ----------------------------------------------------------------------------------


def words(line: str) -> str:
    """A line of output without what chance decides: numbers, and the width of columns."""
    return re.sub(r"[\d.,─\s-]+", "", line)


def examples(text: str) -> list[tuple[str, list[str]]]:
    """The commands of the ``console`` blocks, each with the lines printed below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.startswith("> "):
                found[-1] = (f"{found[-1][0]} {line[2:]}", [])
            elif found:
                found[-1][1].append(line)
    return found


@pytest.mark.parametrize(
    "page", ["README.md", "docs/index.md", "docs/cli.md", "docs/publication.md"]
)
def test_examples_run_and_print_what_they_show(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_SESSION", raising=False)
    shown = examples((ROOT / page).read_text(encoding="utf-8"))
    assert shown
    for command, output in shown:
        name, *arguments = shlex.split(command)
        if name == "cd":
            monkeypatch.chdir(*arguments)
            continue
        assert name == "discreet"
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        printed = capsys.readouterr()
        assert not stop.value.code, printed.err
        if any(output):
            assert [words(x) for x in printed.out.split("\n") if words(x)] == [
                words(x) for x in output if words(x)
            ]
