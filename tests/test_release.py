"""The airlock: what leaves it, and that nobody else stands in it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
from discreet import mechanisms, noise
from discreet.engine.truth import Opened, Truth
from discreet.price import Linear, price
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release import answer as reading
from discreet.release.answer import Answer
from discreet.release.release import release

SRC = Path(discreet.__file__).parent
OUTSIDE = ("price", "question", "engine", "ledger", "curate", "server", "cli")
"""The rooms that a question passes, apart from the airlock: nothing is drawn there."""

MADE_UP = "cli/clinic.py"
"""Draws the people of the demonstration, who do not exist."""

OPENING = {"open_for_release", "release_cells"}

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "patient"
max_rows_per_unit = 3
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Faro", "Cork", "Delft"] }
ward = "text"
cost = { type = "decimal", bounds = [-20, 500] }
""")


# --- nobody else -------------------------------------------------------------------------------


@dataclass
class Seen:
    """What a file reads, calls and imports."""

    used: set[str] = field(default_factory=set)
    """Every name that is read, alone or after a dot: called, or handed on to be called."""
    called: set[str] = field(default_factory=set)
    """The methods that are called."""
    imported: set[str] = field(default_factory=set)
    """Every module, and every name of one."""


def look_at(text: str) -> Seen:
    """One walk over a file."""
    seen = Seen()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                seen.used.add(name)
            case ast.Call(func=ast.Attribute(attr=name)):
                seen.called.add(name)
            case ast.Import(names=names):
                seen.imported |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                seen.imported |= {f"{module}.{alias.name}" for alias in names}
    return seen


WORDS = re.compile(rf"\b({'|'.join([*OPENING, 'release', 'noise', *noise.__all__])})\b")
"""A file without any of them is not parsed: whatever is done with one, it is written there."""


def drawn(name: str, text: str) -> list[str]:
    """What a file outside the airlock does that only the airlock may do."""
    if not WORDS.search(text):
        return []
    seen = look_at(text)
    found = sorted(seen.used & OPENING)
    found += sorted(seen.called & {"release"})
    if name != MADE_UP:
        found += sorted(seen.used & set(noise.__all__))
        entropy = "discreet.noise.entropy.random_bytes"  # names and keys are drawn by others too
        allowed = set() if name.startswith("price/") else {entropy}
        found += sorted(
            one for one in seen.imported if one.startswith("discreet.noise") and one not in allowed
        )
    return found


FILES = [
    path.relative_to(SRC).as_posix() for room in OUTSIDE for path in (SRC / room).rglob("*.py")
]


@pytest.mark.parametrize("name", sorted(FILES))
def test_only_the_airlock_draws_and_opens(name):
    assert drawn(name, (SRC / name).read_text()) == []


def test_only_the_airlock_and_the_audit_open_a_truth():
    openers = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if "open_for_release" in (text := path.read_text())
        and "open_for_release" in look_at(text).used
    }
    assert openers == {"release/release.py"}


@pytest.mark.parametrize(
    "line",
    [
        "truth.open_for_release()",
        "Laplace(sensitivity=3, epsilon=2).release(entries)",
        "draw = noise.discrete_laplace",
        "from discreet.noise.laplace import GREATEST_SCALE",
        "def f():\n    from discreet import noise",
        "mechanism.release_cells(cells)",
    ],
)
def test_such_a_line_would_be_found(line):
    found = drawn("price/keys.py", line)
    if line.endswith("import noise"):  # the module itself: caught where something of it is used
        assert drawn("price/keys.py", f"{line}\n    noise.geometric(3)")
    else:
        assert found


def test_each_mechanism_of_an_answer_is_one_of_the_library():
    """What releases is what is documented with its guarantee: nothing else has a release."""
    question = parse(
        "SELECT city, SUM(cost), MODE(city), MEDIAN(cost) FROM visits GROUP BY city", SCHEMA
    )
    for spend in (Offer(epsilon=Fraction(2)), Offer(rho=Fraction(1, 5))):
        priced = price(question, spend, Catalogue(SCHEMA))
        for recipe in priced.recipes:
            bought = priced.mechanisms[recipe.measurement]
            if hasattr(bought, "top_k"):
                choose = bought.top_k if hasattr(recipe, "count") else bought.quantiles
                bought = choose(recipe)
            assert getattr(mechanisms, type(bought).__name__) is type(bought)
            assert "Guarantee:" in type(bought).__doc__


# --- what leaves -------------------------------------------------------------------------------


def priced_of(text: str, **spend: Fraction):
    offered = Offer(**{"epsilon": Fraction(1, 2), **spend})
    return price(parse(text, SCHEMA), offered, Catalogue(SCHEMA))


def test_numbers_leave_and_no_answer():
    priced = priced_of("SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
    groups = (("Faro",), ("Cork",), ("Delft",))
    wide = np.array([[2**80], [5], [-3]], dtype=object)
    released = release(priced, Truth(Opened(groups, (wide,))))
    assert not isinstance(released, Answer)
    assert released.groups == groups
    (part,) = released.parts
    assert part.dtype == object
    assert {type(entry) for entry in part.ravel().tolist()} == {int}
    assert abs(part[0, 0] - 2**80) < 2**20  # neither cut to 64 bits nor rounded to a double
    assert part[0, 0] % 2**20 != 0 or part[1, 0] != 5  # and with noise


def test_groups_below_the_threshold_stay_inside():
    priced = priced_of(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", delta=Fraction(1, 10**6)
    )
    least = priced.threshold.least
    groups = tuple((f"w{i}",) for i in range(40))
    measured = tuple(
        np.array([[10 * least if i % 2 else -10 * least] for i in range(40)])
        for _ in priced.mechanisms
    )
    released = release(priced, Truth(Opened(groups, measured)))
    assert released.groups == groups[1::2]
    assert all(len(part) == 20 for part in released.parts)


# --- reading it --------------------------------------------------------------------------------

weights = st.fractions(-(10**6), 10**6, max_denominator=2**20)
grids = st.sampled_from(
    [Fraction(2) ** k for k in (-30, -7, 0, 3, 40, 70, -1000)] + [Fraction(3, 7)]
)
entries = st.one_of(st.integers(-(10**6), 10**6), st.integers(-(2**63), 2**63 - 1), st.integers())


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(weights, min_size=2, max_size=3), grids, st.data())
def test_many_groups_are_read_as_one_by_one_in_fractions(coefficients, grid, data):
    """The same numbers, to the last digit, of the same types, whatever the width."""
    row = st.tuples(*[entries] * len(coefficients))
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    part = np.empty((len(rows), len(coefficients)), dtype=object)
    for (i, one), j in product(enumerate(rows), range(len(coefficients))):
        part[i, j] = one[j]
    expected = []
    for one in rows:
        step = round(sum(c * e for c, e in zip(coefficients, one, strict=True)) / grid)
        whole = grid.denominator == 1 and grid < 2**64
        expected.append(step * int(grid) if whole else reading._to_double(step * grid))
    found = reading._read_linear(Linear(0, tuple(coefficients), grid), part)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_a_sum_beyond_64_bits_of_entries_within_is_exact():
    part = np.array([[2**62, 2**62], [-(2**63), 7]], dtype=object)
    recipe = Linear(0, (Fraction(3), Fraction(5)), Fraction(1))
    assert reading._read_linear(recipe, part) == [8 * 2**62, 35 - 3 * 2**63]


@pytest.mark.parametrize(
    ("total", "below", "rounded"), [(5, 2, 2), (7, 2, 4), (-5, 2, -2), (8, 3, 3)]
)
@pytest.mark.parametrize("kind", [np.int64, object])
def test_halves_go_to_even(total, below, rounded, kind):
    assert reading._round_quotient(np.array([total], dtype=kind), below).tolist() == [rounded]
