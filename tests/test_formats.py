"""What others read without us is as its JSON Schema says: every certificate, and nothing else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden_cases import FOLDER, all_cases
from jsonschema import Draft202012Validator

import discreet
from discreet.curate import session
from discreet.question.schema import Schema

FORMATS = Path(__file__).parent.parent / "docs" / "formats"
ROWS = pa.table(
    {
        "patient": [n // 2 for n in range(400)],
        "city": [("Cork", "Faro")[n % 2] for n in range(400)],
        "ward": [f"w{n % 3}" for n in range(400)],
        "age": [n % 90 for n in range(400)],
    }
)
SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 2
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Faro"], nullable = false }
ward = "text"
age = { type = "integer", bounds = [0, 110], nullable = false }
"""


def reader(name: str) -> Draft202012Validator:
    schema = json.loads((FORMATS / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def check(name: str, certificate: dict[str, Any]) -> None:
    """Valid as it is written, and nothing of it may be missing or added."""
    found = reader(name)
    written = json.loads(json.dumps(certificate))
    errors = sorted(found.iter_errors(written), key=str)
    assert not errors, [f"{error.json_path}: {error.message}" for error in errors[:3]]
    assert not found.is_valid({**written, "besides": 1})
    for field in found.schema.get("required", ["loss"]):
        less = {key: value for key, value in written.items() if key != field}
        assert not found.is_valid(less), field


@pytest.fixture(scope="module")
def clinic():
    budget = discreet.Budget(epsilon=10**4, delta="1e-5")
    with discreet.curator({"visits": ROWS}, schema=SCHEMA, budget=budget) as opened:
        yield opened


ASKED = {
    "SELECT city, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY city": {"epsilon": 3},
    "SELECT COUNT(*) AS n FROM visits": {"epsilon": "1/10"},  # from the one before, for nothing
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward": {"epsilon": 2, "delta": "1e-6"},
    "SELECT MEDIAN(age) AS middle, MODE(city) AS most FROM visits": {"epsilon": 2},
    "SELECT SUM(age) AS total FROM visits": {"rho": "1/3"},
    "SELECT SUM(age, bounds => AUTO) AS total FROM visits": {"epsilon": 2},
    "SELECT city, n, n / SUM(n) OVER () AS part FROM "
    "(SELECT city, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY city)": {"epsilon": 3},
}


@pytest.mark.parametrize("text", ASKED)
def test_every_kind_of_answer_has_a_certificate_of_the_schema(clinic, text):
    check("certificate.schema.json", clinic.ask(text, **ASKED[text]).certificate)
    check("certificate.schema.json", clinic.explain(text, **ASKED[text]).certificate)


def test_pairs_say_what_a_person_in_them_loses():
    schema = """
    [tables.friends]
    unit = { pair = ["a", "b"] }
    max_rows_per_unit = 1
    [tables.friends.columns]
    a = "integer"
    b = "integer"
    """
    rows = pa.table({"a": [1, 2, 3], "b": [2, 3, 4]})
    with discreet.curator({"friends": rows}, schema=schema, budget=9) as opened:
        certificate = opened.ask("SELECT COUNT(*) AS n FROM friends", epsilon=1).certificate
    assert certificate["person_in_pairs"]
    check("certificate.schema.json", certificate)


def test_golden_questions_would_have_one():
    """Without their data: what is promised does not depend on it.  Every third one."""
    assert explain_golden(slice(None, None, 3)) > 35


@pytest.mark.soak
def test_really_all_golden_questions_would_have_one():
    assert explain_golden(slice(None)) > 100


def explain_golden(some: slice) -> int:
    """How many golden questions have a certificate, which is as its schema says."""
    found = reader("certificate.schema.json")
    schema = Schema.from_toml(FOLDER / "clinic.toml")
    tables = {name: _empty(table) for name, table in schema.tables.items()}
    seen = 0
    with discreet.curator(
        tables, schema=schema, budget=discreet.Budget(epsilon=9, delta="1e-5")
    ) as c:
        plain = (case for case in all_cases() if case.verdict[:1] == ("accepted",))
        for case in [case for case in plain if "OPTIONS" not in case.question][some]:
            try:
                told = c.explain(case.question, epsilon=1, delta="1e-6").certificate
            except discreet.Refusal:  # of a price, a width: not of a form
                continue
            errors = [error.message for error in found.iter_errors(json.loads(json.dumps(told)))]
            assert not errors, (case.question, errors[:3])
            seen += 1
    return seen


def _empty(table: Any) -> pa.Table:
    return pa.table({column.name: pa.array([], pa.string()) for column in table.columns})


@pytest.mark.parametrize("offer", [{"epsilon": 4, "delta": "1e-9"}, {"epsilon": 4}])
def test_a_release_is_as_its_schema_says(tmp_path, offer):
    (tmp_path / "visits.csv").write_text(
        "patient,city,ward,age\n" + "".join(f"{n},Cork,w1,{n % 90}\n" for n in range(300))
    )
    placed = SCHEMA.replace("[tables.visits]\n", '[tables.visits]\nsource = "visits.csv"\n')
    session.init(tmp_path, f"[budget]\nepsilon = 40\ndelta = 1e-6\n{placed}")
    with discreet.open(tmp_path) as opened:
        opened.make_release("small", of="visits", columns=["city", "age"], **offer)
    written = tmp_path / "releases" / "small" / "certificate.json"
    check("release.schema.json", json.loads(written.read_text(encoding="utf-8")))


def test_a_certificate_with_a_wrong_amount_is_not_one(clinic):
    text = "SELECT COUNT(*) AS n FROM visits WHERE age > 44"
    told = clinic.ask(text, epsilon=1).certificate
    found = reader("certificate.schema.json")
    assert told["measurements"][0]["mechanism"] == "staircase"
    told["measurements"][0]["scale"] = "1"
    assert not found.is_valid(told)  # which is another's
    del told["measurements"][0]["scale"]
    assert found.is_valid(told)
    for wrong in (0.5, "0.5", "one", None):
        changed = copy.deepcopy(told)
        changed["measurements"][0]["epsilon"] = wrong
        assert not found.is_valid(changed), wrong
