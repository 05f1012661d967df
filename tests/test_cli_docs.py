"""docs/cli.md says of every command what ``--help`` says, and its examples and the README's run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from masking import assert_same
from typer.testing import CliRunner

from discreet.cli import app, main

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
HEADING = re.compile(r"^#{2,3} (discreet [a-z -]+)$", re.MULTILINE)
NAMED = re.compile(r"`(--[a-z-]+|[A-Z]+)[^`]*`")
TALKING = ("discreet shell", "discreet demo", "discreet survey serve")
ELSEWHERE = {"serve", "audit"}
"""Commands of other doors, which have pages of their own."""


WHOLE = typer.main.get_command(app)


def commands(group=None, path: tuple[str, ...] = ("discreet",)) -> Iterator[tuple[str, object]]:
    """Every command and group, with its whole name."""
    for name, command in (group or WHOLE).commands.items():
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


# --- synopses, and commands in the lines of pages -----------------------------------------------

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "deploy" / "README.md"]
PAGES += [page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts]
SYNOPSIS = re.compile(r"^```\n(discreet .*?)^```$", re.MULTILINE | re.DOTALL)
PART = re.compile(r"(-{1,2}[a-z]+)(?: ([A-Z]+))?|\[([A-Z]+)\](\.\.\.)?")
IN_LINE = re.compile(r"(?<!`)`((?:discreet|make|python -m) [^`\n]+)`(?!`)")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def read_synopsis(text: str) -> dict[str, str]:
    """What a command may be given, and what each option is given in turn."""
    found = {}
    for option, given, argument, many in PART.findall(text):
        found[option or argument] = many if argument else given
    return found


def list_parameters(command) -> dict[str, str]:
    """The same, as the command itself knows it."""
    found = {}
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            found[parameter.metavar] = "..." if parameter.nargs == -1 else ""
        elif "--help" not in parameter.opts:
            shortest = min(parameter.opts, key=len)
            found[shortest] = "" if parameter.is_flag else parameter.metavar
    return found


def read_synopses() -> dict[str, str]:
    return {
        f"{page.relative_to(ROOT)}: {text.split()[1]}": text
        for page in PAGES
        for text in SYNOPSIS.findall(page.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("name", read_synopses())
def test_a_synopsis_says_what_the_command_takes(name):
    command = WHOLE.commands[name.split()[-1]]
    assert read_synopsis(read_synopses()[name]) == list_parameters(command)


def test_synopses_are_found():
    assert {name.split()[-1] for name in read_synopses()} == {"audit", "lab"}
    assert read_synopsis("discreet audit [DIRECTORY] [--quick] [--html FILE] [NAME]...") == {
        "DIRECTORY": "",
        "--quick": "",
        "--html": "FILE",
        "NAME": "...",
    }


def test_the_page_of_the_audit_lists_its_options():
    page = (ROOT / "docs" / "zoo.md").read_text(encoding="utf-8")
    audit = WHOLE.commands["audit"]
    assert documented(page.split("## discreet audit")[1]) == declared(audit)


def is_understood(line: str) -> bool:
    """Whether there is such a command, with such options; or such a module, or such a target."""
    words = line.replace("…", "x").replace("...", "x")
    first, *rest = shlex.split(words)
    if first == "make":
        return all(word in TARGETS or "=" in word for word in rest)
    if first == "python":
        return rest[1] == "venv" or any(
            (ROOT / place / f"{rest[1].replace('.', '/')}{end}").exists()
            for place in ("", "tests", "src")
            for end in (".py", "/__main__.py")
        )
    command = WHOLE
    while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return rest[0] == "COMMAND"
        command = command.commands[rest.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    return given <= known


def test_commands_in_the_lines_of_pages_are_understood():
    named = {
        (str(page.relative_to(ROOT)), line)
        for page in PAGES
        for line in IN_LINE.findall(page.read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    assert sorted(one for one in named if not is_understood(one[1])) == []


@pytest.mark.parametrize(
    "line",
    [
        "discreet asks",
        "discreet ask --epsilons 1",
        "discreet ledger verifies",
        "make demos",
        "python -m benches",
    ],
)
def test_a_command_that_is_not_there_is_noticed(line):
    assert not is_understood(line)


def test_completion_is_offered():
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "--install-completion" in shown


# --- examples ----------------------------------------------------------------------------------


def examples(text: str) -> list[tuple[str, list[str]]]:
    """The commands of the ``console`` blocks, each with the lines printed below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and found[-1][0].endswith("\\"):
                found[-1] = (f"{found[-1][0][:-1]} {line}", [])
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
            assert_same(page, "\n".join(output), printed.out)
