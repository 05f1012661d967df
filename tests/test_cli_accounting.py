"""The commands ``epsilon`` and ``compose``: what they print, write and refuse."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction
from xml.etree import ElementTree

import pytest

from discreet.accounting.meaning import Meaning
from discreet.cli import main


@pytest.fixture
def run(capsys):
    """(exit code, standard output, standard error) of a command line."""

    def command(*arguments: str) -> tuple[int, str, str]:
        code = 0
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code or 0
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def test_epsilon_prints_the_promise_within_eighty_columns(run):
    code, out, err = run("epsilon", "0.5", "--delta", "1e-6", "--group", "4")
    assert (code, err) == (0, "")
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "4 people together" in out
    for what, value in Meaning(epsilon="0.5", delta="1e-6", group=4).table():
        assert any(what in line and value in line for line in out.splitlines())


def test_epsilon_as_json_and_picture(run, tmp_path):
    file = tmp_path / "promise.svg"
    code, out, err = run("epsilon", "1/3", "--delta", "1e-9", "--json", "--svg", str(file))
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told == Meaning(epsilon="1/3", delta="1e-9").to_json()
    assert Fraction(told["presence"]["factor"]) >= Fraction(math.exp(1 / 3))
    assert Fraction(told["value"]["factor"]) >= Fraction(math.exp(2 / 3))
    _, out, _ = run("epsilon", "1/3", "--delta", "1e-9", "--json", "--neighbours", "change-one")
    changed = json.loads(out)
    assert (changed["presence"], changed["value"]) == (None, told["presence"])
    assert ElementTree.fromstring(file.read_text(encoding="utf-8")).tag.endswith("svg")


def test_compose_prints_every_theorem(run):
    code, out, err = run("compose", "--count", "60", "--epsilon", "0.1", "--delta", "1e-6")
    assert (code, err) == (0, "")
    assert all(len(line) <= 80 for line in out.splitlines())
    for method in ("basic", "advanced", "optimal", "concentrated", "profile"):
        assert any(line.split()[:1] == [method] for line in out.splitlines())


def test_compose_stays_in_its_columns_whatever_is_typed(run):
    typed = "0." + "3" * 60
    code, out, _ = run("compose", "--count", "1000", "--epsilon", typed, "--delta", "1e-6")
    lines = out.splitlines()
    assert code == 0
    assert all(len(line) <= 80 for line in lines)
    headings = next(line for line in lines if line.strip())
    assert headings.split() == ["theorem", "ε", "of", "1,000", "releases", "reference"]


def test_compose_as_json_agrees_with_the_closed_forms(run):
    arguments = ("compose", "--count", "60", "--epsilon", "0.1", "--delta", "1e-6", "--json")
    told = json.loads(run(*arguments)[1])
    rows = {row["method"]: Fraction(row["epsilon"]) for row in told["rows"]}
    assert rows["basic"] == 6
    # DR Theorem 3.20, all of delta being slack because the releases have none of their own.
    advanced = math.sqrt(2 * 60 * math.log(1e6)) * 0.1 + 60 * 0.1 * math.expm1(0.1)
    assert advanced <= float(rows["advanced"]) <= advanced * (1 + 1e-5)
    assert rows[told["best"]] == min(rows.values())
    laplace = json.loads(run(*arguments, "--mechanism", "laplace")[1])
    better = {row["method"]: Fraction(row["epsilon"]) for row in laplace["rows"]}
    assert better["profile"] < rows["profile"]


def test_compose_draws_each_theorem(run, tmp_path):
    file = tmp_path / "compose.svg"
    code, _, _ = run(
        "compose", "--count", "30", "--epsilon", "0.1", "--delta", "1e-6", "--svg", str(file)
    )
    assert code == 0
    root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 5


@pytest.mark.parametrize(
    "arguments",
    [
        ("epsilon", "-1"),
        ("epsilon", "nan"),
        ("epsilon", "much"),
        ("epsilon", "0.5", "--delta", "1"),
        ("epsilon", "0.5", "--delta", "-1"),
        ("epsilon", "0.5", "--group", "0"),
        ("epsilon", "0.5", "--svg", "/no/such/directory/file.svg"),
        ("compose", "--count", "0", "--epsilon", "0.1", "--delta", "1e-6"),
        ("compose", "--count", "9", "--epsilon", "inf", "--delta", "1e-6"),
        ("compose", "--count", "9", "--epsilon", "0.1", "--delta", "0"),
        ("compose", "--count", "9", "--epsilon", "0.1", "--delta", "2"),
        ("compose", "--count", "9", "--epsilon", "0.1", "--delta", "0.1", "--each-delta", "-1"),
        (
            *("compose", "--count", "9", "--epsilon", "0.1", "--delta", "0.1"),
            *("--each-delta", "0.01", "--mechanism", "laplace"),
        ),
        ("compose", "--count", "9", "--epsilon", "0.1", "--delta", "1e-6", "--each-delta", "1e-6"),
        ("compose", "--count", "9", "--epsilon", "1e300", "--delta", "1e-6"),
        ("compose", "--count", "1" + "0" * 15, "--epsilon", "0.1", "--delta", "1e-6"),
    ],
    ids=" ".join,
)
def test_refusals_are_three_lines_and_exit_code_two(run, arguments):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    first, why, fix = err.splitlines()
    assert first[0].isupper()
    assert first[1:].split(":")[0].isdigit()
    assert why.startswith("Why: ")
    assert fix.startswith("Fix: ")


@pytest.mark.parametrize("arguments", [("epsilon",), ("epsilon", "1", "--no"), ("nonsense",)])
def test_usage_errors_have_no_traceback(run, arguments):
    code, out, err = run(*arguments)
    assert code == 2
    assert "Traceback" not in out + err


def test_the_installed_command_shows_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", "from discreet.cli import main; main()", "epsilon", "-3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("P2: epsilon must be greater than 0")
    assert len(done.stderr.splitlines()) == 3


@pytest.mark.parametrize("module", ["discreet", "discreet.cli"])
def test_importing_is_quick(module):
    """Nothing heavy is loaded before it is used, and the processor time stays small."""
    program = (
        f"import {module}, resource, sys;"
        "used = resource.getrusage(resource.RUSAGE_SELF);"
        "heavy = {'numpy', 'flint', 'duckdb', 'scipy'} & set(sys.modules);"
        "print(used.ru_utime + used.ru_stime, *sorted(heavy))"
    )
    command = [sys.executable, "-c", program]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(5)  # the least counts: others take caches away, and the first may compile
    ]
    assert [heavy for _, *heavy in runs] == [[]] * 5
    assert min(float(used) for used, *_ in runs) < (0.3 if module == "discreet" else 1.0)
