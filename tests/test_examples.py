"""The notebook runs from top to bottom, as a reader would run it."""

import ast
import json
from pathlib import Path

import pytest

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


def test_there_is_a_notebook():
    assert NOTEBOOKS
