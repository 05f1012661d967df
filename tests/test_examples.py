"""The notebook runs from top to bottom, as a reader would run it."""

import ast
import importlib.util
import json
from collections.abc import Iterator
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


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Any]:
    """A real kernel, in a directory of its own, without the package that draws bars."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(
        startup_timeout=PATIENCE_S, kernel_name="python3", cwd=str(tmp_path)
    )
    try:
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
    run_in(kernel, BARE)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    shown = [run_in(kernel, "".join(c["source"])) for c in cells if c["cell_type"] == "code"]
    assert sum("<table" in text and " ± " in text for text in shown) >= 2
    assert any("Fix:" in text for text in shown)


LAB = sorted((Path(__file__).parents[1] / "examples" / "lab").glob("*.ipynb"))


def test_every_chapter_of_the_lab_has_a_notebook_that_runs_in_a_plain_kernel(kernel):
    """One kernel for all; what each showed when it was written is kept in it."""
    spec = importlib.util.spec_from_file_location("make_lab", LAB[0].parent / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert [path.stem.split("_")[1] for path in LAB] == [one.name for one in make.CHAPTERS]
    run_in(kernel, BARE)
    for path, chapter in zip(LAB, make.CHAPTERS, strict=True):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert [(c["cell_type"], "".join(c["source"])) for c in cells] == make.cells(chapter)
        for cell in cells:
            if cell["cell_type"] == "code":
                assert cell["outputs"], path.name
                assert run_in(kernel, "".join(cell["source"])), path.name


def test_there_is_a_notebook():
    assert NOTEBOOKS
