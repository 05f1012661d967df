"""What is built holds what is needed."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
import pythons
import services
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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

FIRST = """
schema = '[tables.t]\\nunit = "u"\\nmax_rows_per_unit = 1\\ncolumns.u = "integer"'
import discreet, sys, pyarrow
question = "SELECT COUNT(*) AS n FROM t"
def ask(source):
    with discreet.curator({"t": source}, schema=schema, budget=1) as curator:
        answer = curator.ask(question, epsilon=1)
        assert abs(answer.value() - 900) < 100
        return answer
"""
USES = {
    "accounting": """
from discreet.accounting import LaplaceProfile, compare
found = compare(LaplaceProfile(sensitivity=2, scale=25), counts=(10,), delta="1e-6", peer=True)
assert "dp-accounting" in str(found).replace("_", "-")
""",
    "delta": "ask(sys.argv[1])",
    "lab": """
import numpy
from discreet.lab.clauses import Clauses
from discreet.lab.reconstruction import solve
assert solve(numpy.eye(3), numpy.array([1.0, 0, 1])).tolist() == [1, 0, 1]
clauses = Clauses()
one = clauses.make()
clauses.add(-one)
assert clauses.find([one]) == [[False]]
""",
    "plots": """
answer = ask(pyarrow.table({"u": range(900)}))
assert answer.plot().to_dict()["data"]
""",
    "postgres": """
from discreet.ledger import Ledger
with Ledger.open(sys.argv[2], create=True) as ledger:
    assert ledger.datasets() == ()
ask(sys.argv[1])
""",
    "spark": """
from discreet.engine.spark.session import open_session
quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
session = open_session("local[1]", settings={"spark.driver.extraJavaOptions": quick})
assert session.range(7).toDF("u").schema.names == ["u"]
session.stop()
""",
    "synthetic": """
import numpy
from discreet.publication import Column, Records, Spend, synthesize
rows = numpy.arange(900)[:, None] // [1, 2] % [4, 3]
columns = [Column("age", 4, ordered=True), Column("job", 3)]
made = synthesize(Records(columns, rows), columns, Spend.concentrated("1/5"), label="1")
assert abs(len(made.rows) - 900) < 200
""",
}
"""Each extra, and one use of it."""
WITHOUT = """
import json, sys
from importlib.machinery import PathFinder
hidden = set(json.loads(sys.argv.pop(1)))
class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            return None
        return super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
"""
"""Python that finds all but what is ``hidden``, as if that had not been installed."""
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


def answers_in(others: list[tuple[str, str]], folder: Path) -> None:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    for version, python in others:
        made = make_environment(python, folder / version)
        install(made, built)
        assert call(made, "-c", FIRST_ANSWER, cwd=folder) == "True\nTrue\n"
        warned = (made, "-W", "default::ResourceWarning", "-c", FORGOTTEN)
        assert call(*warned, cwd=folder, stream="stderr") == ""


def test_the_wheel_answers_in_the_newest_other_python_that_is_here(tmp_path):
    """This one is tried below, with everything; ``make pythons`` runs tests in all others."""
    answers_in(list(pythons.find_others().items())[-1:], tmp_path)


@pytest.mark.soak
def test_the_wheel_answers_in_all_others_that_are_here(tmp_path):
    answers_in(list(pythons.find_others().items())[:-1], tmp_path)


def test_every_extra_is_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert USES.keys() == project["optional-dependencies"].keys()


def find_closure(requires: list[str], extra: str) -> set[str]:
    """The distributions that pip would install for one extra, which are here in such versions."""
    found: set[tuple[str, str]] = set()
    wanted = [(Requirement(text), extra) for text in requires]
    while wanted:
        one, asked = wanted.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": asked}):
            continue
        name = canonicalize_name(one.name)
        assert one.specifier.contains(metadata.version(name), prereleases=True), one
        for more in {"", *one.extras} - {had for known, had in found if known == name}:
            found.add((name, more))
            wanted += [(Requirement(text), more) for text in metadata.requires(name) or ()]
    return {name for name, _ in found}


def use(extra: str, requires: list[str], wheel: Path, *given: object) -> str:
    """What one use says where nothing is but the wheel, what it requires and one extra's."""
    kept = find_closure(requires, extra)
    homes = metadata.packages_distributions()
    hidden = [n for n, of in homes.items() if not kept & set(map(canonicalize_name, of))]
    text = WITHOUT + f"sys.path.insert(0, {str(wheel)!r})\n" + FIRST + USES[extra]
    text += f"\nassert discreet.__file__.startswith({str(wheel)!r})"
    command = (sys.executable, "-c", text, json.dumps(sorted({*hidden} - {"discreet"})), *given)
    return call(*command, cwd=wheel)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The wheel's files, and what it says that it requires."""
    place = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(place), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        wheel.extractall(place / "files")
        (said,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        requires = email.message_from_bytes(wheel.read(said)).get_all("Requires-Dist")
    return place / "files", requires


@pytest.mark.parametrize("extra", sorted(USES.keys() - {"postgres", "delta"}))
def test_an_extra_brings_all_that_its_use_needs(extra, unpacked):
    wheel, requires = unpacked
    if extra == "spark":
        services.require("java")
    use(extra, requires, wheel)


def test_the_extra_of_delta_brings_all_that_its_use_needs(unpacked, tmp_path):
    wheel, requires = unpacked
    deltalake.write_deltalake(tmp_path / "t", pa.table({"u": range(900)}))
    use("delta", requires, wheel, tmp_path / "t")


def test_the_extra_of_postgres_brings_all_that_its_use_needs(unpacked, postgres):
    wheel, requires = unpacked
    postgres.execute("CREATE TABLE t AS SELECT u FROM generate_series(1, 900) AS u")
    table = f"postgresql://{services.OWNER}@/{postgres.database}?host={postgres.home}#t"
    use("postgres", requires, wheel, table, postgres.url)


def test_what_an_extra_forgets_is_noticed(unpacked):
    """Though another extra brings it, and it is installed here."""
    wheel, requires = unpacked
    fewer = [one for one in requires if not (one.startswith("scipy") and "lab" in one)]
    assert len(fewer) == len(requires) - 1
    with pytest.raises(AssertionError, match="ModuleNotFoundError: No module named 'scipy'"):
        use("lab", fewer, wheel)


SHOWN = re.compile(r"^python3 -m venv .+$\n^export PATH=.+$", re.MULTILINE)


def test_the_wheel_answers_in_an_empty_environment_and_the_readme_installs_it(tmp_path):
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    python = make_environment(sys.executable, tmp_path / ".venv")
    install(python, built)
    assert call(python, "-c", FIRST_ANSWER, cwd=tmp_path) == "True\nTrue\n"
    assert "ask" in call(python.with_name("discreet"), "--help", cwd=tmp_path)
    with pytest.raises(AssertionError, match="ModuleNotFoundError"):
        call(python, "-c", "import psycopg", cwd=tmp_path)
    type_what_the_readme_shows(tmp_path)


def type_what_the_readme_shows(place: Path) -> None:
    """In a copy of what is built, ``python3`` being this one; what it requires is there."""
    (typed,) = SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    shutil.copytree(SOURCE, place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    settings = f"export PATH={Path(sys.executable).parent}:$PATH PIP_NO_COMPILE=1"
    lines = f"{settings}\n{typed}\nwhich discreet\ndiscreet --version"
    where, shown = call("bash", "-ec", lines, cwd=place).splitlines()[-2:]
    assert where == str(place / ".venv" / "bin" / "discreet")
    assert shown == f"discreet {metadata.version('discreet')}"
    (said,) = place.glob(".venv/lib/python3*/site-packages/discreet-*.dist-info/direct_url.json")
    assert json.loads(said.read_text())["url"] == place.as_uri()  # not the wheel of before
