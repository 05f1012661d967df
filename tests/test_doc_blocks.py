"""Every block of code in the README and the documents is run by a test; none is skipped.

Doctests run where they stand (``>>>``); tutorials, recipes, the page of every mechanism and
``console`` blocks have tests of their own.  Here are the others: commands of a shell, settings,
SQL, cells of Python.  What is neither (a layout, a line of a log) is listed with its reason.
"""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
import yaml
from masking import assert_same
from patience import PATIENCE_S
from services import require

import discreet
from discreet.curate import session as sessions
from discreet.local.survey import Survey
from discreet.publication.agenda import read_agenda
from discreet.question.schema import Schema
from discreet.server.settings import Settings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: where it is, which kind it says it is, what it holds."""

    page: str
    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}: {self.text.splitlines()[0][:40] if self.text else ''}"


def read_blocks() -> list[Block]:
    pages = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [
        Block(str(page.relative_to(ROOT)), kind.strip(), text)
        for page in pages
        if "_build" not in page.parts
        for kind, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if not kind.startswith("{")  # of the site's own
    ]


BLOCKS = read_blocks()


def of(page: str, kind: str) -> list[str]:
    """The blocks of a page that are not doctests."""
    found = [one.text for one in BLOCKS if one.page == page and one.kind == kind]
    return [text for text in found if ">>>" not in text]


# --- which test runs a block -------------------------------------------------------------------

TESTED = {
    "docs/learn/index.md": ("test_tutorials.py", {"sh"}),
    "docs/learn/": ("test_tutorials.py", {"console", "python", "text", "toml"}),
    "docs/cookbook/": ("test_cookbook.py", {"text"}),
    "docs/every-mechanism.md": ("test_every_mechanism.py", {"text"}),
    "docs/questions.md": ("test_question_docs.py", {"sql", "toml"}),
    "docs/errors.md": ("test_error_docs.py", {"toml"}),
}
"""Of a page, or of all pages in a folder: what runs its blocks, and which kinds."""
CONSOLES = {"README.md", "docs/index.md", "docs/cli.md", "docs/publication.md"}
SHELL = {
    "README.md",
    "docs/cli.md",
    "docs/ledger.md",
    "docs/local.md",
    "docs/postgres.md",
    "docs/server.md",
}
CELLS = {"README.md", "docs/ledger.md", "docs/mechanisms.md", "docs/publication.md"}
CELLS |= {"docs/postgres.md", "docs/server.md"}
SETTINGS = {"docs/engines.md", "docs/graphs.md", "docs/ledger.md", "docs/local.md"}
SETTINGS |= {"docs/publication.md", "docs/schema.md", "docs/server.md"}
ASKED = {"docs/graphs.md", "docs/known.md", "docs/selection.md", "docs/sql.md"}
PICTURES = {
    "docs/architecture.md": "the rooms, drawn",
    "docs/page.md": "the page, drawn",
    "docs/server.md": "its processes, drawn",
    "docs/faults.md": "a line of a report that was",
    "docs/benchmarks.md": "what a benchmark printed (test_benchmarks.py)",
    "docs/postgres.md": "a dialogue, which is held below",
}
"""What is read and not typed, and why."""
TYPED = re.compile(
    r"^(\$ )?(discreet|python3?|make|curl|psql|pip|cd|export) |^(import|from) \w", re.M
)


def find_test(block: Block) -> str | None:
    """What runs a block; nothing if nobody does."""
    for place, (test, kinds) in TESTED.items():
        if block.page.startswith(place):
            return test if block.kind in kinds else None
    if ">>>" in block.text:
        return "doctest"
    if block.page == "docs/engines.md" and block.kind in ("sh", "python"):
        return "spark/test_spark_prepares.py"
    if block.page == "docs/api.md" and block.kind == "json":
        return "server/test_api_page.py"
    if block.page == "docs/faults.md" and block.kind == "console":
        return "faults/test_faults.py"
    if block.kind == "" and block.text.startswith("discreet ") and "[" in block.text:
        return "test_cli_docs.py"  # a synopsis
    rules = {
        "console": CONSOLES,
        "sh": SHELL | {"docs/benchmarks.md"},
        "python": CELLS,
        "toml": SETTINGS,
        "sql": ASKED,
        "yaml": {"docs/server.md"},
        "text": set(PICTURES),
    }
    return "here" if block.page in rules.get(block.kind, ()) else None


def test_every_block_is_run():
    assert len(BLOCKS) > 200
    assert [block.name for block in BLOCKS if find_test(block) is None] == []


def test_no_command_is_hidden_in_what_is_only_read():
    """Recipes and mechanisms print theirs, which their tests compare."""
    read = [one for one in BLOCKS if one.kind in ("", "text") and find_test(one) == "here"]
    assert len(read) > 10
    assert [one.name for one in read if TYPED.search(one.text)] == []


def test_a_block_of_a_new_kind_is_noticed():
    assert find_test(Block("docs/asking.md", "ruby", "puts 7")) is None
    assert find_test(Block("docs/asking.md", "python", "print(7)")) is None
    assert find_test(Block("docs/cli.md", "", "discreet demo")) is None
    assert find_test(Block("docs/learn/analyst.md", "sql", "SELECT 7")) is None
    assert find_test(Block("docs/learn/index.md", "python", "print(7)")) is None
    assert find_test(Block("docs/cookbook/census.md", "python", "print(7)")) is None
    assert find_test(Block("docs/questions.md", "sh", "discreet demo")) is None


def test_refusals_of_doctests_are_compared_whole(pytestconfig):
    """With the name of what is raised, and every line of it."""
    assert pytestconfig.getini("doctest_optionflags") == ["NORMALIZE_WHITESPACE"]
    sources = [*DOCS.rglob("*.md"), *(ROOT / "src").rglob("*.py"), ROOT / "README.md"]
    parts = [part for one in sources for part in one.read_text(encoding="utf-8").split(">>> ")]
    refused = [part for part in parts if "\nTraceback (" in re.sub(r"\n +", "\n", part)]
    assert len(refused) > 10
    assert [part for part in refused if "doctest:" in part] == []


# --- commands ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runner():
    spec = spec_from_file_location("run_pages", DOCS / "run_pages.py")
    found = module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    found.PATIENCE_S = PATIENCE_S
    return found


ELSEWHERE = {
    "make demo": "sets an environment up; test_cli_screens.py compares what the demonstration says",
    "make test": "is what runs this",
    "python3 -m venv": "test_packaging.py types it in a copy of what is installed",
    "export PATH=": "which has `discreet` in its bin",
    "discreet demo": "test_cli_screens.py compares what it says",
    "make bench": "measures for hours; test_benchmarks.py sees what it would run",
    "python -m bench": "measures; test_benchmarks.py sees that there is such a section",
}
"""What begins so is not typed here, and why."""


def commands_of(page: str) -> list[str]:
    """What a page types outside of ``console`` blocks, without remarks."""
    lines = "\n".join(of(page, "sh")).replace("\\\n", " ").splitlines()
    typed = [re.sub(r"\s{2,}#.*", "", line).replace("COMMAND", "ask") for line in lines]
    return [line for line in typed if line.strip() and not line.startswith(tuple(ELSEWHERE))]


def test_what_is_typed_elsewhere_is_on_a_page():
    text = "\n".join(one.text for one in BLOCKS if one.kind == "sh")
    assert [one for one in ELSEWHERE if not re.search(rf"^{one}", text, re.MULTILINE)] == []


@pytest.fixture
def shell(runner, tmp_path, monkeypatch):
    """A shell beside a session with made-up people, files to begin one from, and a survey's."""
    monkeypatch.setenv("PATH", str(require("postgres")), prepend=":")
    runner.PORTS = ("8765", "5433", "8815", "8766")
    made = runner.Shell(tmp_path, runner.find_ports())
    pd.DataFrame({"patient_id": range(9), "city": ["Cork"] * 9}).to_parquet(
        tmp_path / "visits.parquet"
    )
    pd.DataFrame({"patient_id": range(9), "age": range(30, 39)}).to_csv(
        tmp_path / "patients.csv", index=False
    )
    (tmp_path / "file.csv").write_text("smokes,sleep\nnever,7\ndaily,5\n", encoding="utf-8")
    (tmp_path / "smoking.toml").write_text(of("docs/local.md", "toml")[0], encoding="utf-8")
    yield made
    made.close()


def type_in(shell, line: str) -> str:
    """Type a line; a server runs on behind it, on a port that is free."""
    if "init clinic" in line:
        shell.run("rm -rf clinic")
    if " serve" in line:
        shell.run("kill $! 2>/dev/null; wait")
        own = "8766" if "survey" in line else "8765"
        line = f"{line} --port {own} &"
        if "survey" in line:
            return shell.run(f"({line[:-2]} >survey.log 2>&1 &)")
        return shell.run(line)
    said = shell.run(f"{line} </dev/null; echo code $?")
    assert said.endswith("code 0"), f"{line}\n{said}"
    assert '"why"' not in said, f"{line}\n{said}"  # curl is content with a refusal
    return said


@pytest.mark.parametrize("page", sorted(SHELL))
def test_commands_of_a_page_run(page, shell, runner, monkeypatch):
    typed = commands_of(page)
    assert typed
    shell.run("discreet init clinic --sample")
    if page in ("README.md", "docs/ledger.md"):
        shell.run("cd clinic")
    if page == "docs/cli.md":  # which begins another one from the files beside it
        shell.run("mv clinic sample; export DISCREET_SESSION=$PWD/sample")
    if page == "docs/postgres.md":
        shell.run("discreet analyst add ana --epsilon 0.8 --key -s clinic")
    for line in typed:
        shell.run(f"export KEY={shell.key}")
        type_in(shell, line)
        if page == "docs/postgres.md" and "5433" in line and "psql" in line:
            talk_to_postgres(shell)
    names: dict[str, object] = {"Path": Path}
    monkeypatch.setenv("KEY", shell.key)
    for cell in of(page, "python") if page in ("README.md", "docs/server.md") else ():
        source = cell.replace(runner.COPIED, shell.key).replace("8765", shell.ports["8765"])
        assert "±" in runner.run_cell(source, names)
        names["clinic"].close()
    if page == "docs/ledger.md":
        check_export(shell, runner)
    if page == "docs/postgres.md":
        (cell,) = of(page, "python")
        names["key"] = shell.key
        runner.run_cell(cell.replace("8815", shell.ports["8815"]), names)
        assert names["table"].num_rows == 8


def talk_to_postgres(shell) -> None:
    """The statements of the page's dialogue, by psql, which prints what is shown."""
    (dialogue,) = (text for text in of("docs/postgres.md", "text") if "=>" in text)
    typed = " ".join(f'-c "{line}"' for line in re.findall(r"=> (.+;)", dialogue))
    line = 'PGPASSWORD=$KEY psql "host=127.0.0.1 port=5433 dbname=clinic user=ana"'
    printed = type_in(shell, f"{line} {typed}").splitlines()[:-1]
    shown = [one for one in dialogue.splitlines() if "=>" not in one]
    kept = [one for one in printed if one and one != "SET" and not re.match(r"\(\d+ rows\)", one)]
    assert_same("docs/postgres.md", "\n".join(shown), "\n".join(kept))


def check_export(shell, runner) -> None:
    """The auditor's two lines, with the checkpoint that was just signed."""
    folder = shell.folder / "clinic"
    (cell,) = of("docs/ledger.md", "python")
    signed = max((folder / "ledger.sqlite.checkpoints").iterdir())
    source = cell.replace("log.jsonl", str(folder / "log.jsonl"))
    source = source.replace("from-march.json", str(signed)).replace('"9f03..."', "None")
    assert runner.run_cell(source, {})


# --- settings ------------------------------------------------------------------------------------

COLUMNS = {
    "visits": {"patient_id": '"integer"', "city": '{ type = "text", values = ["york"] }'},
    "friends": {"src": '"integer"', "dst": '"integer"'},
    "messages": {"sender": '"integer"', "receiver": '"integer"'},
    "prescriptions": {"insured": '"integer"'},
}
CLINIC = """
[budget]
epsilon = 3
delta = 1e-9
[tables.clinic]
source = "clinic.parquet"
unit = "who"
[tables.clinic.columns]
who = "integer"
"""


def complete(block: str) -> str:
    """A part of a ``discreet.toml``, with what the page leaves out."""
    for table, columns in COLUMNS.items():
        if f"[tables.{table}]" in block and f"[tables.{table}.columns]" not in block:
            unit = "" if re.search(rf"\[tables\.{table}\][^\[]*unit =", block) else "patient_id"
            source = f"[tables.{table}]\n" + (f'unit = "{unit}"\n' if unit else "")
            source += "" if "source =" in block else f'source = "{table}.parquet"\n'
            block = block.replace(f"[tables.{table}]\n", source)
            listed = "\n".join(f"{name} = {kind}" for name, kind in columns.items())
            block += f"\n[tables.{table}.columns]\n{listed}\n"
    plain = CLINIC if "[budget]" not in block else ""
    return plain + block


@pytest.mark.parametrize(
    "block", [one for one in BLOCKS if one.kind == "toml"], ids=lambda one: one.name
)
def test_settings_are_understood(block, tmp_path):
    text = block.text
    if block.page.startswith(("docs/learn/", "docs/questions.md")):
        return  # a session is begun with it there
    if block.page == "docs/local.md" and "[surveys]" not in text:
        assert Survey.parse(text).questions
        return
    file = tmp_path / "discreet.toml"
    if block.page == "docs/publication.md":
        file.write_text(text if "[plan]" in text else f"[plan]\nepsilon = 2\n[[release]]\n{text}")
        assert read_agenda(file)
        return
    (tmp_path / "cities.csv").write_text("name\nyork\n", encoding="utf-8")
    (tmp_path / "provider-secret").write_text("secret", encoding="utf-8")
    file.write_text(complete(text), encoding="utf-8")
    session = sessions.read(tmp_path)
    assert session.schema.tables
    Settings.of(session.settings.get("server", {}))


# --- questions -----------------------------------------------------------------------------------

WORLD = """
[tables.visits]
unit = "patient_id"
max_rows_per_unit = 12
[tables.visits.columns]
patient_id = "integer"
city = { type = "text", values = ["york", "leeds"], nullable = false }
age = { type = "integer", bounds = [0, 120] }
cost = { type = "decimal", bounds = [0, 5000] }
day = { type = "date", bounds = [2024-01-01, 2026-12-31] }
[tables.patients]
unit = "patient_id"
max_rows_per_unit = 1
[tables.patients.columns]
patient_id = "integer"
[tables.cities]
public = true
[tables.cities.columns]
name = "text"
region = { type = "text", values = ["north", "south"] }
[tables.bids]
unit = "bidder"
max_rows_per_unit = 5
[tables.bids.columns]
bidder = "integer"
bid = { type = "integer", bounds = [0, 10] }
[tables.prices]
public = true
[tables.prices.columns]
price = { type = "integer", values = [2, 4, 6] }
[tables.messages]
unit = { any = ["sender", "receiver"] }
entity = "person"
max_rows_per_unit = 200
max_rows_per_pair = 1
crowding = { rho = 0.02, delta = 1e-9 }
[tables.messages.columns]
sender = "integer"
receiver = "integer"
[tables.people]
unit = "person"
entity = "person"
max_rows_per_unit = 1
[tables.people.columns]
person = "integer"
age_group = { type = "text", values = ["young", "old"] }
"""


@pytest.fixture(scope="module")
def curator():
    days = pd.to_datetime(["2025-01-01", "2025-02-01"]).date
    tables = {
        "visits": pd.DataFrame(
            {
                "patient_id": [1, 2],
                "city": "york",
                "age": 30,
                "cost": 7.0,
                "day": days,
            }
        ),
        "patients": pd.DataFrame({"patient_id": [1, 2]}),
        "cities": pd.DataFrame({"name": ["york", "leeds"], "region": ["north", "north"]}),
        "bids": pd.DataFrame({"bidder": [1, 2], "bid": [3, 4]}),
        "prices": pd.DataFrame({"price": [2, 4, 6]}),
        "messages": pd.DataFrame({"sender": [1], "receiver": [2]}),
        "people": pd.DataFrame({"person": [1, 2], "age_group": ["young", "old"]}),
    }
    budget = discreet.Budget(epsilon=9, delta="1e-6")
    with discreet.curator(tables, schema=Schema.from_text(WORLD), budget=budget) as made:
        made.prepare()  # tests whether few people stand in too many rows
        yield made


@pytest.mark.parametrize(
    "block",
    [one for one in BLOCKS if one.kind == "sql" and one.page in ASKED],
    ids=lambda one: one.name,
)
def test_questions_are_answered(block, curator):
    offer = {} if "epsilon =" in block.text else {"epsilon": "0.5"}
    assert curator.ask(block.text, **offer).columns


# --- the rest ----------------------------------------------------------------------------------


def test_a_function_of_ones_own_is_averaged(runner):
    frame = pd.DataFrame({"who": range(400), "stay": [n % 50 for n in range(400)]})
    schema = Schema.from_text("""
    [tables.visits]
    unit = "who"
    max_rows_per_unit = 1
    [tables.visits.columns]
    who = "integer"
    stay = { type = "integer", bounds = [0, 60] }
    """)
    (cell,) = of("docs/mechanisms.md", "python")
    budget = discreet.Budget(epsilon=1)
    with discreet.curator({"visits": frame}, schema=schema, budget=budget) as clinic:
        # One block at a time takes a second or more: fewer blocks say the same.
        source = cell.replace("blocks=100", "blocks=4, seconds=5")
        assert runner.run_cell(source, {"clinic": clinic})


def test_settings_of_others_are_well_formed():
    for text in of("docs/server.md", "yaml"):
        assert yaml.safe_load(text)["scrape_configs"]
