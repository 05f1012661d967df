"""The notebook runs from top to bottom, as a reader would run it."""

import ast
import importlib
import importlib.util
import inspect
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

from discreet.release.answer import Answer

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))


def run(source: str, names: dict[str, object]) -> object:
    """Run a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return (
        None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    )


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook(notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    shown = [run("".join(c["source"]), names) for c in cells if c["cell_type"] == "code"]
    tables = [value for value in shown if isinstance(value, Answer)]
    assert tables
    for table in tables:
        assert " ± " in table._repr_html_()
    printed = capsys.readouterr().out
    assert "Fix:" in printed
    assert "more counts within" in printed


BARE = "import sys\nsys.modules['ipywidgets'] = None  # as in a kernel that has nothing else"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real kernel, in a directory of its own, without the package that draws bars."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(
        startup_timeout=PATIENCE_S, kernel_name="python3", cwd=str(tmp_path_factory.mktemp("k"))
    )
    try:
        run_in(client, BARE)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run_in(kernel: Any, source: str) -> str:
    """What a cell shows, as HTML where it has that; an error fails the test."""
    shown: list[str] = []

    def keep(message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "error":
            pytest.fail(f"{content['ename']}: {content['evalue']}")
        elif message["msg_type"] == "stream":
            shown.append(content["text"])
        elif "data" in content:
            data = content["data"]
            shown.append(data.get("text/html", data.get("text/plain", "")))

    kernel.execute_interactive(source, output_hook=keep, timeout=PATIENCE_S)
    return "".join(shown)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_in_a_plain_kernel(notebook, kernel):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    shown = [run_in(kernel, "".join(c["source"])) for c in cells if c["cell_type"] == "code"]
    assert sum("<table" in text and " ± " in text for text in shown) >= 2
    assert any("Fix:" in text for text in shown)


LAB = sorted((Path(__file__).parents[1] / "examples" / "lab").glob("*.ipynb"))


def read_code(path: Path) -> list[str]:
    """The cells of a notebook that are code, each with what it showed when it was written."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] for cell in cells if cell["cell_type"] == "code"), path.name
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_every_chapter_of_the_lab_has_a_notebook():
    spec = importlib.util.spec_from_file_location("make_lab", LAB[0].parent / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert [path.stem.split("_")[1] for path in LAB] == [one.name for one in make.CHAPTERS]
    for path, chapter in zip(LAB, make.CHAPTERS, strict=True):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert [(c["cell_type"], "".join(c["source"])) for c in cells] == make.cells(chapter)


def check_calls(source: str) -> int:
    """Whatever a cell imports is there, and takes the arguments that it is called with."""
    tree, known, checked = ast.parse(source), {}, 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                with suppress(ImportError):  # a module that only its package's path knows
                    importlib.import_module(f"{node.module}.{alias.name}")
                known[alias.name] = getattr(importlib.import_module(node.module), alias.name)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in known:
                getattr(known[name], attribute)
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in known:
                called = known[name]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if (
                inspect.ismodule(known.get(name))
            ):
                called = getattr(known[name], attribute)
            case _:
                continue
        named = {word.arg: None for word in node.keywords}
        inspect.signature(called).bind(*node.args, **named)
        checked += 1
    return checked


@pytest.mark.parametrize("path", LAB, ids=lambda path: path.stem)
def test_what_a_notebook_of_the_lab_calls_is_there(path):
    """Without running it: the chapters themselves run in test_lab.py."""
    assert sum(map(check_calls, read_code(path)))
    for wrong in ("lab import differencing\n\ndifferencing.ran", "lab import nowhere\n\nrun"):
        with pytest.raises((AttributeError, ImportError)):
            check_calls(f"from discreet.{wrong}(people=100)")
    with pytest.raises(TypeError):
        check_calls("from discreet.lab import differencing\n\ndifferencing.run(person=100)")


QUICK = ("difference", "distance")
"""Chapters whose notebooks take a moment."""


@pytest.mark.parametrize(
    "some",
    [
        [path for path in LAB if path.stem.split("_")[1] in QUICK],
        pytest.param(LAB, marks=pytest.mark.soak),
    ],
    ids=["quick", "all"],
)
def test_notebooks_of_the_lab_run_in_a_plain_kernel(some, kernel):
    """One kernel for all of them."""
    assert len(some) >= len(QUICK)
    for path in some:
        for source in read_code(path):
            assert run_in(kernel, source), path.name


def test_there_is_a_notebook():
    assert NOTEBOOKS
