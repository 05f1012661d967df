"""What somebody meets in the first hour with the library: names, help, types, what is printed."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from promised import PUBLIC

import discreet
from discreet.errors import InvalidParameter, SchemaRefusal
from discreet.release import render

SCHEMA = """
[tables.visits]
unit = "patient_id"
max_rows_per_unit = 3
columns.patient_id = "integer"
columns.day = { type = "integer", bounds = [1, 200] }
columns.cost = { type = "decimal", bounds = [0, 500] }
"""
VISITS = pa.table(
    {
        "patient_id": [n // 3 for n in range(900)],
        "day": [1 + n % 200 for n in range(900)],
        "cost": [float(n % 97) for n in range(900)],
    }
)


@pytest.fixture
def clinic() -> Iterator[discreet.Curator]:
    with discreet.curator({"visits": VISITS}, schema=SCHEMA, budget=300) as curator:
        yield curator


# --- help ------------------------------------------------------------------------------------


def list_told(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module promises that takes parameters: classes, functions and methods of ours."""
    for name in module.__all__:
        yield from list_callables(name, getattr(module, name))


def list_callables(name: str, thing: Any) -> Iterator[tuple[str, Any]]:
    """A function or a class by its name, and the public methods of a class."""
    if inspect.isclass(thing):
        if is_made_by_calls(thing):
            yield name, thing
    elif inspect.isfunction(inspect.unwrap(thing)):
        yield name, thing
    for own, member in inspect.getmembers_static(thing) if inspect.isclass(thing) else ():
        method = inspect.unwrap(getattr(member, "__func__", member))  # of classmethods and others
        if inspect.isfunction(method) and not own.startswith("_") and is_ours(method):
            yield f"{name}.{own}", method


def is_ours(thing: Any) -> bool:
    """Whether it was written here, and not inherited from Python."""
    return str(thing.__module__).startswith("discreet.")


def is_made_by_calls(kind: type) -> bool:
    """Whether it takes parameters of its own: protocols and enumerations do not, and few errors."""
    bare = issubclass(kind, BaseException) and "__init__" not in vars(kind)
    return not (bare or issubclass(kind, Enum) or getattr(kind, "_is_protocol", False))


def find_untold(thing: Any) -> list[str]:
    """The parameters that the help of something does not tell.

    Told is what stands in double backticks in its own prose, or is a field that has a docstring.
    A bare word may be there by accident, and an example alone tells nobody.  What is "As" something
    else may leave the rest to that, if it tells all of the rest.
    """
    rest = [name for name in list_parameters(thing) if name not in list_named(thing)]
    other = find_likened(thing)
    borrowed = other is not None and set(rest) <= set(list_parameters(other)) & list_named(other)
    return [] if borrowed else rest


def list_parameters(thing: Any) -> list[str]:
    """What somebody passes by name or by place; what begins with an underscore is nobody's."""
    given = inspect.signature(thing).parameters
    return [name for name in given if name not in ("self", "cls") and not name.startswith("_")]


def read_prose(thing: Any) -> str:
    """The docstring, without its examples."""
    return EXAMPLE.sub("", inspect.getdoc(thing) or "")


EXAMPLE = re.compile(r"^ *>>> .*(?:\n.*\S.*)*", re.MULTILINE)
"""What is typed, and what comes of it up to the next empty line."""

NAMED = re.compile(r"``\*{0,2}(\w+)(?:[\[(=][^`]*)?``")
"""A name in double backticks, or what is made of it: ``of``, ``of[i]``, ``of(x)``, ``of=3``."""

LIKENED = re.compile(r"\AAs :(?:class|func|meth):`~?(\w+)`")


def list_named(thing: Any) -> set[str]:
    """The names that a docstring has in double backticks, and the fields with one of their own."""
    fields = list_fields(thing) if inspect.isclass(thing) else ()
    return set(NAMED.findall(read_prose(thing))).union(fields)


def list_fields(kind: type) -> Iterator[str]:
    """The fields of a class, its bases' too, after which a docstring stands."""
    for one in kind.__mro__:
        if one.__module__ in sys.modules and (is_ours(one) or one.__module__ == __name__):
            (written,) = ast.parse(dedent(inspect.getsource(one))).body
            assert isinstance(written, ast.ClassDef)
            for field, said in pairwise(written.body):
                match field, said:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str())),
                    ):
                        yield name


def find_likened(thing: Any) -> Any:
    """What something says at its beginning that it is like: beside it, or in the same module."""
    found = LIKENED.match(read_prose(thing))
    if found is None:
        return None
    place = sys.modules[thing.__module__]
    for part in thing.__qualname__.split(".")[:-1]:
        place = getattr(place, part)
    return getattr(place, found[1])


@pytest.mark.parametrize("name", PUBLIC)
def test_help_tells_every_parameter(name: str):
    told = dict(list_told(import_module(name)))
    assert told
    untold = {thing: find_untold(found) for thing, found in told.items()}
    assert {thing: missing for thing, missing in untold.items() if missing} == {}


REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
DIRECTIVE = re.compile(r"^\.\. auto(module|class|function):: (\S+)((?:\n +:.*)*)", re.MULTILINE)


def test_help_tells_every_parameter_of_what_the_reference_has_besides():
    """Every module that it shows is promised; here is what it shows of others."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md")))
    shown = DIRECTIVE.findall(text)
    modules = {name for kind, name, how in shown if kind == "module" and "no-members" not in how}
    assert modules == set(PUBLIC)
    single = {name: name.rpartition(".")[::2] for kind, name, _ in shown if kind != "module"}
    assert {"discreet.Curator", "discreet.curate.results.Remote"} < set(single)
    told = {
        one: found
        for name, (place, own) in single.items()
        for one, found in list_callables(name, getattr(import_module(place), own))
    }
    assert len(told) > 50
    assert {one: missing for one, found in told.items() if (missing := find_untold(found))} == {}


def test_an_example_tells_no_parameter():
    def scale(number: int, by: int) -> int:
        """So many times ``number``.

        >>> scale(3, by=2)  # ``by`` is the factor
        6
        """
        return number * by

    assert find_untold(scale) == ["by"]


def test_a_word_of_the_prose_tells_no_parameter():
    def weigh(of: int, by: int, **rest: int) -> int:
        """The weight of something, divided by its size, and the rest of it: ``of.by + to(by)``."""
        return of // by

    def weigh_well(of: int, by: int, **rest: int) -> int:
        """The weight of ``of``, divided ``by=2`` or more, and the ``**rest`` of it."""
        return of // by

    assert find_untold(weigh) == ["of", "by", "rest"]
    assert find_untold(weigh_well) == []


class Box:
    """A box that is ``wide``, and of some depth."""

    wide: int
    deep: int
    high: int
    """From its floor to its lid."""

    def __init__(self, wide: int, deep: int, high: int) -> None:
        """All are whole numbers, ``deep`` too: who asks for help on the class is not shown this."""

    def fill(self, depth: int, of: str) -> None:
        """Fill it to a ``depth`` with a lot ``of`` it."""

    def empty(self, depth: int, of: str) -> None:
        """As :meth:`fill`, the other way round."""

    def shake(self, depth: int, by: int) -> None:
        """As :meth:`fill`, by hand."""

    def turn(self, depth: int) -> None:
        """Turn it by some depth; as :meth:`fill`."""


class Chest(Box):
    """A box with a lid."""


def test_a_class_tells_its_parameters_by_its_fields_too():
    assert find_untold(Box) == ["deep"]
    assert find_untold(Chest) == ["wide", "deep"]


def test_a_likeness_tells_all_parameters_or_none():
    assert find_untold(Box.fill) == []
    assert find_untold(Box.empty) == []
    assert find_untold(Box.shake) == ["depth", "by"]
    assert find_untold(Box.turn) == ["depth"]


# --- a user's own script, under mypy -----------------------------------------------------------

ROOT = Path(__file__).parents[1]


def test_a_users_script_is_under_mypy_and_runs(tmp_path: Path):
    """`make types` checks the examples with the library: `ask` gives an answer, and so on."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "examples" in settings["tool"]["mypy"]["files"]
    script = ROOT / "examples" / "first_script.py"
    assert ".ask(" in script.read_text(encoding="utf-8")
    said = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert " ± " in said.stdout
    assert "Enough for" in said.stdout


# --- what is printed ---------------------------------------------------------------------------


def test_reprs_fit_a_screen(clinic: discreet.Curator):
    question = "SELECT day, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY day"
    answer = clinic.ask(question, epsilon=1)
    shown = [answer, clinic.explain(question, epsilon=1), clinic.balance(), clinic.schema, clinic]
    shown.append(clinic.price(question, epsilon=1))
    for thing in shown:
        lines = repr(thing).splitlines()
        assert 1 <= len(lines) <= 24, type(thing)
        assert max(map(len, lines)) <= 160, type(thing)
    assert " ± " in repr(answer)
    assert "0x" not in "".join(map(repr, shown))


def test_margins_stand_beside_the_values_in_a_data_frame(clinic: discreet.Curator):
    answer = clinic.ask("SELECT COUNT(*) AS n, AVG(cost) AS mean FROM visits", epsilon=20)
    frame = answer.to_pandas(margins=True)
    assert frame["n"][0] == answer.column("n")[0]
    beside = [name for name in frame.columns if name not in ("n", "mean")]
    assert any(name.startswith("n") for name in beside)
    assert any(name.startswith("mean") for name in beside)
    assert list(answer.to_pandas().columns) == ["n", "mean"]
    assert list(answer.to_polars(margins=True).columns) == list(frame.columns)
    wider = answer.to_pandas(margins=True, confidence="0.999")
    margin = next(name for name in beside if "margin" in name and name.startswith("n"))
    assert wider[margin][0] > frame[margin][0]


def test_a_data_frame_of_what_is_not_installed_is_refused_with_what_to_type(
    clinic: discreet.Curator, monkeypatch: pytest.MonkeyPatch
):
    answer = clinic.ask("SELECT COUNT(*) AS here FROM visits", epsilon=1)
    monkeypatch.setattr(render, "find_spec", lambda _name: None)
    for package, frame in (("pandas", answer.to_pandas), ("polars", answer.to_polars)):
        with pytest.raises(InvalidParameter, match=f"P8: (.|\n)*Fix: pip install {package}"):
            frame(margins=True)
    assert answer.to_arrow().num_rows == 1


def test_explaining_has_its_own_method(clinic: discreet.Curator):
    with pytest.raises(InvalidParameter, match="EXPLAIN is not charged"):
        clinic.ask("EXPLAIN SELECT COUNT(*) FROM visits", epsilon=1)
    assert clinic.explain("EXPLAIN SELECT COUNT(*) FROM visits", epsilon=1).loss.epsilon == 1


# --- schemas and budgets as people pass them -----------------------------------------------------


def test_a_schema_is_a_text_a_path_or_a_dict(tmp_path: Path):
    file = tmp_path / "clinic.toml"
    file.write_text(SCHEMA)
    wanted = discreet.Schema.from_text(SCHEMA)
    columns = {c.name: c.kind.value for c in wanted.tables["visits"].columns}
    shape = {"tables": {"visits": {"unit": "patient_id", "columns": columns}}}
    for given in (SCHEMA, file, str(file), wanted):
        with discreet.curator({"visits": VISITS}, schema=given, budget="0.5") as curator:
            assert curator.schema == wanted
    with discreet.curator({"visits": VISITS}, schema=shape, budget="0.5") as curator:
        assert curator.schema.tables["visits"].unit == ("patient_id",)


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"schema": "no/such.toml"}, SchemaRefusal),
        ({"schema": 7}, InvalidParameter),
        ({"schema": None}, InvalidParameter),
        ({"budget": None}, InvalidParameter),
        ({"budget": True}, InvalidParameter),
        ({"budget": -1}, InvalidParameter),
        ({"budget": "plenty"}, InvalidParameter),
        ({"tables": "visits.parquet"}, InvalidParameter),
    ],
)
def test_what_is_neither_is_refused_in_our_words(given: dict[str, Any], refused: type):
    call = {"tables": {"visits": VISITS}, "schema": SCHEMA, "budget": 3} | given
    with pytest.raises(refused) as caught:
        discreet.curator(call.pop("tables"), **call)
    assert caught.value.fix


# --- the README ------------------------------------------------------------------------------


def test_the_readme_skips_nothing_and_says_how_to_get_the_command():
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert "SKIP" not in text
    assert "__import__" not in text
    assert "pip install" in text
    assert ".venv/bin" in text
    assert len(text.splitlines()) <= 80
    assert max(map(len, text.splitlines())) <= 180
    more = text.split("## More")[1]
    assert len(re.findall(r"\]\(", more)) == 3
    assert len(re.findall(r"(?<!!)\[[^]]*\]\(", text)) <= 4
