"""Fuzzing of tables that are bought for a question of some of their rows.

Whatever is asked: no person moves such a table further than it is charged, and the question, and
any other that is read off it, is told the number that it would be told by itself.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from fuzz.test_neighbours import SETTINGS
from fuzz.worlds import Vector, World, distance, vectors, worlds
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from discreet.accounting.loss import NOTHING, Loss
from discreet.engine.truth import Opened, SparseCounts
from discreet.errors import QuestionRefusal, SchemaRefusal
from discreet.known import derive as deriving
from discreet.known.combine import combine
from discreet.known.derive import NotKnown, derive, list_groups
from discreet.known.released import Released
from discreet.known.widen import widen
from discreet.mechanisms import Gaussian, Laplace, Staircase
from discreet.price import Priced, price
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.schema import Neighbours
from discreet.question.sql import parse
from discreet.release.answer import Answer, Row

QUICK, QUICK_CASES = 5, 7
SEARCHED = 80  # worlds, at most, until a mutant is found
SHARDS, LONG, LONG_CASES = 4, 150, 300  # of the long run: so many worlds and tables in each
QUESTIONS, LATER, PEOPLE = 5, 4, 3
OFFERS = [Offer.of(epsilon=3), Offer.of(rho="0.5"), Offer.of(epsilon=1, delta="1e-6")]

CONDITIONS = [
    *("v.region = 'north'", "v.region <> 'north'", "v.region IN ('north', 'west')"),
    *("NOT v.region IN ('north')", "v.region IS NULL", "v.region IS NOT NULL", "v.region < 'o'"),
    *("(v.region IS NULL OR v.region = 'west')", "UPPER(v.region) = 'NORTH'"),
    *("COALESCE(v.region, 'west') = 'west'", "v.region LIKE '%th'", "v.region = v.t"),
    *("v.b", "NOT v.b", "v.b IS NOT TRUE", "v.b IS NULL", "v.b = (v.x > 1)"),
    *("v.x > 1", "NOT v.x > 1", "v.x IN (0, 3)", "v.x IS NOT NULL", "v.y > v.x", "v.y = 0.25"),
    *("v.x <= 1", "1 < v.x", "v.x >= 1", "v.x >= v.y", "NOT v.y <> 0.25"),
    *("v.y / v.x > 1 AND v.x <> 0", "LN(v.y) < 1", "v.t LIKE '%th'", "v.day < DATE '2024-02-01'"),
    *("NULLIF(v.region, 'north') IS NULL", "CASE WHEN v.b THEN v.region ELSE 'north' END = 'west'"),
]
KEYS = ["", "", "v.region", "v.b", "v.x > 2", "v.region = 'north'", "UPPER(v.region)"]
MEASURED = [
    *("COUNT(*)", "COUNT(v.x)", "COUNT(v.region)", "SUM(v.x)", "SUM(v.y)", "AVG(v.x)"),
    *("VAR_POP(v.x)", "COUNT(*) FILTER (WHERE v.x > 0)", "SUM(v.x) FILTER (WHERE v.b)"),
    *("HISTOGRAM(v.x, [-4, 0, 2, 12])", "COUNT_IF(v.b)", "COUNT(DISTINCT v.x)"),
]
SOURCES = [
    *("visits v", "visits v", "visits v", "visits v JOIN cities c ON v.region = c.name"),
    "(SELECT * FROM visits w WHERE w.x > 0 UNION ALL SELECT * FROM visits w WHERE w.b) v",
]


@dataclass
class Case:
    """Questions about one world, of which each is the same by itself and read off a table."""

    world: World
    catalogue: Catalogue
    offer: Offer
    draw: random.Random
    source: str
    done: Counter[str] = field(default_factory=Counter)

    def ask(self) -> Priced | None:
        conditions = " AND ".join(self.draw.sample(CONDITIONS, self.draw.randint(1, 2)))
        key = self.draw.choice(KEYS)
        measured = ", ".join([*([f"{key} AS k"] if key else []), self.draw.choice(MEASURED)])
        sql = f"SELECT {measured} AS a FROM {self.source} WHERE {conditions}"
        try:
            asked = parse(f"{sql} GROUP BY {key}" if key else sql, self.catalogue)
            return price(asked, self.offer, self.catalogue)
        except (QuestionRefusal, SchemaRefusal):
            return None

    def check(self) -> None:
        """One question, the table that is bought for it, and others that are read off that."""
        asked = self.ask()
        wider = None if asked is None else widen(asked.question, self.catalogue.multiplicity)
        if asked is None or wider is None:
            return
        table = price(wider, self.offer, self.catalogue)
        self.check_loss(table)
        self.world.show_everybody()
        opened = self.world.run(table.plan)
        if (parts := open_parts(opened)) is None:
            return
        self.done["tables"] += 1
        known = Released(1, table, opened.groups, parts, NOTHING, (1,))
        self.done["told"] += self.compare(asked, known)
        for _ in range(LATER):
            if (later := self.ask()) is not None:
                self.done["told later"] += self.compare(later, known)

    def check_loss(self, priced: Priced) -> None:
        """No person moves it further than it is charged; of a change, one instead of another."""
        run, seen = self.world.runner(priced.plan), list[list[Vector]]()
        for person in self.world.people()[:PEOPLE]:
            self.world.show_without(person)
            seen.append(vectors(run()))
        changed = priced.neighbours is Neighbours.CHANGE_ONE
        self.world.show_everybody()
        pairs = [(a, b) for a in seen for b in (seen if changed else [vectors(run())])]
        for one, other in pairs:
            epsilon, rho = weigh(priced, one, other)
            assert epsilon <= float(priced.loss.epsilon) * (1 + 1e-9), priced.question.text
            assert rho <= float(priced.loss.rho) * (1 + 1e-9), priced.question.text
        self.done["pairs"] += len(pairs)

    def compare(self, asked: Priced, known: Released) -> bool:
        """Whether it is told; and what, if so, is what it would be by itself."""
        multiplicity = self.catalogue.multiplicity
        try:
            found = derive(asked, known, multiplicity=multiplicity)
        except NotKnown:
            return False
        opened = self.world.run(asked.plan)
        parts = open_parts(opened)
        assert parts is not None
        told = combine(asked, [found], list_groups(asked, multiplicity)).rows
        own = Answer(asked, opened.groups, parts).rows
        assert list_values(told) == list_values(own), (asked.question.text, known.priced.question)
        return True


def open_parts(opened: Opened) -> tuple[Any, ...] | None:
    """What was measured, without noise; None where something is chosen of it."""
    if any(isinstance(one, SparseCounts) for one in opened.measured):
        return None
    return tuple(np.asarray(one).astype(object) for one in opened.measured)


def list_values(rows: tuple[Row, ...]) -> list[list[Any]]:
    return [[round(v, 6) if isinstance(v, float) else v for v in row.values] for row in rows]


def weigh(priced: Priced, one: list[Vector], other: list[Vector]) -> tuple[float, float]:
    """What a step from one to the other loses, in epsilon and in rho."""
    lost = NOTHING
    for bought, a, b in zip(priced.mechanisms, one, other, strict=True):
        moved, squared = distance(a, b)
        match bought:
            case Laplace(scale=scale):
                lost += Loss.laplace(sensitivity=moved, scale=scale)
            case Staircase() if moved:
                lost += bought.loss
            case Gaussian(sigma_squared=spread):
                lost += Loss.gaussian(sensitivity_squared=squared, sigma_squared=spread)
    return float(lost.epsilon), float(lost.rho)


def fuzz(examples: int, *, shard: int = 0, **options: Any) -> Counter[str]:
    """How many tables were bought, pairs compared, and questions told."""
    done: Counter[str] = Counter()

    @seed(shard)
    @settings(**{**SETTINGS, "max_examples": examples, **options})
    @given(world=worlds(), chance=st.integers(0, 2**32))
    def tables_tell_what_is_asked(world: World, chance: int) -> None:
        draw = random.Random(chance)
        try:
            schema = world.schema
            if draw.randrange(2) and not schema.tables["visits"].blocks:
                schema = replace(schema, neighbours=Neighbours.CHANGE_ONE)
            for _ in range(QUESTIONS):
                offer, source = draw.choice(OFFERS), draw.choice(SOURCES)
                Case(world, Catalogue(schema), offer, draw, source, done).check()
        finally:
            world.close()

    tables_tell_what_is_asked()
    return done


def test_a_table_is_charged_what_it_tells_and_tells_what_is_asked() -> None:
    done = fuzz(QUICK)
    assert done["tables"] >= QUICK_CASES
    assert done["told"] >= done["tables"] // 2
    assert done["told later"] > 0


def forgets_parts(patch: pytest.MonkeyPatch) -> None:
    """A group of several values is taken for each of them."""
    patch.setattr(deriving._Derivation, "_keep_whole", lambda self, kept, at: kept)


def forgets_nulls(patch: pytest.MonkeyPatch) -> None:
    """A condition that is NULL is taken for one that holds."""

    def holds(self: Any, conditions: Any) -> Any:
        kept = np.ones(int(np.prod(self.shape)), dtype=np.bool_)
        for condition in conditions:
            kept &= np.array([v is not False for v in self.on_cells(condition)], dtype=np.bool_)
        return kept

    patch.setattr(deriving._Derivation, "_holds", holds)


@pytest.mark.parametrize("mutant", [forgets_parts, forgets_nulls])
def test_a_table_that_is_read_wrongly_is_found(
    mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        fuzz(SEARCHED, phases=(Phase.generate,))


@pytest.mark.soak
@pytest.mark.parametrize("shard", range(1, 1 + SHARDS))
def test_tables_are_charged_what_they_tell_for_long(shard: int) -> None:
    assert fuzz(LONG, shard=shard)["tables"] >= LONG_CASES
