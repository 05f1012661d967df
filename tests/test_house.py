"""The house as a stranger sees it: few rooms, each a layer of the imports, few words to learn."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "discreet"
MOST_ROOMS = 20
MOST_WORDS = 30


def rooms() -> set[str]:
    """What stands in the house, but for the files that Python itself asks for."""
    return {
        path.name.removesuffix(".py")
        for path in HOUSE.iterdir()
        if not path.name.startswith("__") and path.name != "py.typed"
    }


def layers() -> list[str]:
    """The rooms of the import contract, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (pointing_down,) = [one for one in contracts if one["type"] == "layers"]
    assert pointing_down["exhaustive"]
    return [name.strip("()") for name in pointing_down["layers"]]


def test_there_are_few_rooms_and_each_is_a_layer():
    assert len(rooms()) <= MOST_ROOMS
    assert sorted(layers()) == sorted(rooms() | {"__main__"})


def test_few_words_are_to_be_learned():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    glossary = text.split("\n## Words\n")[1].split("\n## ")[0]
    words = re.findall(r"^\| ([a-zδε -]+) \|", glossary, re.MULTILINE)[1:]  # the first is a heading
    assert 20 < len(words) <= MOST_WORDS, words
    assert len(set(words)) == len(words)


# --- one idea a file, one step a function ------------------------------------------------------

MOST_LINES = {"function": 60, "file": 800}
LONG_FILES = {
    "curate/curator.py": (940, "the order of events of a question, and the face that it has"),
}
"""Files that are longer, by how much at most, and why."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


def defined(node: ast.AST) -> Iterator[Function]:
    """Every function in a tree: statements alone can hold one."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, Function):
            yield part
        if isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
            yield from defined(part)


@cache
def all_functions() -> tuple[tuple[Path, str, int, tuple[str, ...]], ...]:
    """Every function of ours: its file, its name, how long it is, and its decorators."""
    return tuple(
        (path.relative_to(HOUSE), one.name, one.end_lineno - one.lineno + 1, marks)
        for path in sorted(HOUSE.rglob("*.py"))
        for one in defined(ast.parse(path.read_text(encoding="utf-8")))
        for marks in [tuple(map(ast.unparse, one.decorator_list))]
    )


def test_files_and_functions_can_be_read_at_once():
    for path in sorted(HOUSE.rglob("*.py")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(HOUSE).as_posix()
        most, _ = LONG_FILES.get(name, (MOST_LINES["file"], ""))
        assert text.count("\n") <= most, name
    assert len(all_functions()) > 3000
    for path, name, lines, _ in all_functions():
        assert lines <= MOST_LINES["function"], (path, name)


def test_every_long_file_is_one():
    for name, (most, _) in LONG_FILES.items():
        lines = (HOUSE / name).read_text(encoding="utf-8").count("\n")
        assert MOST_LINES["file"] < lines <= most, name


# --- functions are verbs -----------------------------------------------------------------------

IRREGULAR = """
    begun bent bought bound bred broken brought built caught chosen cut dealt done drawn driven
    fallen fed felt forgiven forgotten fought found frozen given gone got grown heard held hidden
    hung kept known laid led left lent lit lost made meant met paid proven ridden risen said sat
    seen sent shown sold sought spent spoken spun stolen stood struck stuck sung sunk swept sworn
    taken taught thought thrown told torn understood won worn wound woven written
"""
VERBS_IN_ED = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "succeed"})
VERBS_TOO = {
    "bound": "to bound what one unit can add; and a bound, the field's noun",
    "cut": "to cut an axis",
}
FIELD = {
    "advanced": "advanced composition, a theorem's name",
    "calibrated": "public: Gaussian.calibrated(...) is a Gaussian",
    "concentrated": "public: Loss.concentrated(...), beside Loss.pure; and that composition",
    "concentrated_delta": "the delta of concentrated privacy",
    "concentrated_epsilon": "the epsilon of concentrated privacy",
    "bounded_range_price": "bounded range is a property that a mechanism has",
    "randomized_response": "public: a mechanism's name",
    "rounded": "public: a loss as an account stores it",
    "recorded": "public: Budget.recorded(...) is a budget",
    "shuffled": "public: the loss that is left after a shuffler",
    "left": "public: what is left of a balance, beside its property spent",
    "spent_in": "public: the property spent, of one dataset",
    "bounded": "public: count().bounded(...), in the language of questions in Python",
    "lit": "public: a literal, as Polars calls it",
    "named": "public: rows.named(...), in the language of questions in Python",
    "trimmed_mean": "public: the statistic",
    "expected_power": "an expectation",
    "expected_rmse": "an expectation",
    "expected_success": "an expectation",
}
"""Names that are participles on purpose, and why."""


def is_participle(word: str) -> bool:
    """Whether a word says what something was, not what is done."""
    return word in IRREGULAR.split() or (word.endswith("ed") and word not in VERBS_IN_ED)


def functions() -> Iterator[tuple[Path, str]]:
    """Every function of ours by its name; what is read like a value is none."""
    for path, name, _, marks in all_functions():
        if not any("property" in mark for mark in marks):
            yield path, name


def test_no_function_is_called_by_a_participle():
    """``written`` says what something was; what is done is ``write_text``.

    Specimens of the zoo are called by what is wrong with them, and a refusal that is made to be
    raised is a noun.
    """
    found, used = [], set()
    for path, name in functions():
        bare = name.strip("_")
        word = bare.partition("_")[0]
        if not is_participle(word) or path.is_relative_to("audit/zoo"):
            continue
        used |= {word, bare}
        if word not in VERBS_TOO and bare not in FIELD and not bare.endswith("_refusal"):
            found.append(f"{path}: {name}")
    assert found == []
    assert {*VERBS_TOO, *FIELD} <= used, "an exception that nothing needs any more"


def test_participles_are_known():
    """The riddles that functions were once called by, and verbs that look like them."""
    assert all(map(is_participle, ("counted", "turned", "cut", "told", "written", "seated")))
    assert not any(map(is_participle, ("count_rows", "rewrite", "explain", "read", "feed", "run")))
