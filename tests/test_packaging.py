"""What is built holds what is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import pythons
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"


def test_the_wheel_holds_the_whole_package(tmp_path):
    """Every module, the page's files, the mark that it is typed; and nothing else."""
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        commands = next(n for n in wheel.namelist() if n.endswith("entry_points.txt"))
        assert b"discreet = discreet.cli:main" in wheel.read(commands)
    files = (path for path in (SOURCE / "discreet").rglob("*") if path.is_file())
    wanted = {str(path.relative_to(SOURCE)) for path in files if path.suffix != ".pyc"}
    assert held == wanted
    assert {"discreet/py.typed", "discreet/server/static/index.html"} <= held


# --- installed -----------------------------------------------------------------------------------

EXTRAS = {
    "accounting": "import dp_accounting",
    "delta": "import deltalake",
    "lab": "import pysat.solvers, scipy, vl_convert",
    "plots": "import altair, vl_convert",
    "postgres": "import adbc_driver_postgresql, psycopg",
    "spark": "import pyspark",
    "synthetic": "import scipy",
}
"""Each extra, and what it is for."""
HEAVY = {"spark"}
"""Half a gigabyte that the set-up of the tests has installed already, by the same constraint."""
FIRST_ANSWER = """
import discreet, pyarrow, sys
schema = '[tables.t]\\nunit = "u"\\nmax_rows_per_unit = 1\\ncolumns.u = "integer"'
with discreet.curator({"t": pyarrow.table({"u": range(900)})}, schema=schema, budget=1) as c:
    print(abs(c.ask("SELECT COUNT(*) AS n FROM t", epsilon=1).value() - 900) < 100)
print("site-packages" in discreet.__file__)
"""


def call(*command: object, cwd: Path, stream: str = "stdout") -> str:
    """What a command prints, far from this directory and its environment."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(getattr(done, stream))


FORGOTTEN = """
import discreet, gc, pyarrow
schema = '[tables.t]\\nunit = "u"\\nmax_rows_per_unit = 1\\ncolumns.u = "integer"'
curator = discreet.curator({"t": pyarrow.table({"u": range(900)})}, schema=schema, budget=1)
curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
del curator
gc.collect()
"""
"""Nobody is told off for a curator that was not closed."""


def test_the_versions_promised_are_those_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = {c.rpartition(" ")[2] for c in project["classifiers"] if "Python :: 3." in c}
    assert said == set(pythons.SUPPORTED)
    assert project["requires-python"] == f">={pythons.SUPPORTED[0]}"
    assert pythons.OWN in pythons.SUPPORTED


def make_environment(python: str, place: Path) -> Path:
    """The interpreter of an environment with nothing in it, not even pip: ours installs for it."""
    call(python, "-m", "venv", "--without-pip", place, cwd=place.parent)
    return place / "bin" / "python"


def install(python: Path, wanted: object) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    options = ("--quiet", "--no-compile", "-c", ROOT / "constraints.txt")
    call(*pip, "install", *options, wanted, cwd=python.parent)


def test_the_wheel_answers_in_the_newest_python_that_is_here(tmp_path):
    """This one is tried below, with everything; ``make pythons`` runs tests in all others."""
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    for version, python in list(pythons.find_others().items())[-1:]:
        made = make_environment(python, tmp_path / version)
        install(made, built)
        assert call(made, "-c", FIRST_ANSWER, cwd=tmp_path) == "True\nTrue\n"
        warned = (made, "-W", "default::ResourceWarning", "-c", FORGOTTEN)
        assert call(*warned, cwd=tmp_path, stream="stderr") == ""


def test_every_extra_is_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert EXTRAS.keys() == project["optional-dependencies"].keys()


def test_the_wheel_answers_in_an_empty_environment_and_with_its_extras(tmp_path):
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    python = make_environment(sys.executable, tmp_path / "empty")
    install(python, built)
    assert call(python, "-c", FIRST_ANSWER, cwd=tmp_path) == "True\nTrue\n"
    assert "ask" in call(python.with_name("discreet"), "--help", cwd=tmp_path)
    with pytest.raises(AssertionError, match="ModuleNotFoundError"):
        call(python, "-c", EXTRAS["postgres"], cwd=tmp_path)
    install(python, f"{built}[{','.join(EXTRAS.keys() - HEAVY)}]")
    for extra, use in EXTRAS.items():
        call(sys.executable if extra in HEAVY else python, "-c", use, cwd=tmp_path)
