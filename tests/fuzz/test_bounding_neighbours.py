"""Neighbour fuzzing of what bounding removed: nobody moves its numbers further than it charges.

A look at it is a question on a wider schema, where one plane has many more rows than a question
would read, and values beyond their bounds.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzz.worlds import Vector, allows, distance, vectors
from test_bounding import make_curator

from discreet.curate.bounding import TIMES, list_looks
from discreet.price.plan import find_moves
from discreet.question.offer import Offer

pricing = import_module("discreet.price.priced")
WORLDS, PLANES = 2, 5


def make_flights(rng: np.random.Generator) -> pd.DataFrame:
    """Few planes: with hardly a flight, with just as many as are read, and with far too many."""
    sizes = rng.choice([1, 3, 29, 30, 31, 90, TIMES * 30 - 1, TIMES * 30, 2 * TIMES * 30], PLANES)
    plane = np.repeat(np.arange(PLANES), sizes)
    delay = rng.choice([-1e300, -0.5, 0.0, 7.25, 120.0, 120.5, 1e9, np.nan], plane.size)
    month = rng.integers(-3, 16, plane.size)
    return pd.DataFrame({"plane": plane, "month": month, "delay": delay})


def measure(flights: pd.DataFrame) -> list[tuple[Any, list[Vector]]]:
    """Every look: its price, and the integers that noise would be added to."""
    measured = []
    with make_curator({"flights": flights}) as curator:
        for look in list_looks(curator.schema, curator.schema.tables["flights"]):
            with curator._bounding._open(look) as engine:
                priced = curator._bounding._price(engine, look, Offer.of(epsilon=1))
                truth = engine.run(engine.compile(priced.plan))
                measured.append((priced, vectors(truth.open_for_release())))
    return measured


def check(seed: int) -> int:
    rng = np.random.default_rng(seed)
    flights, cases = make_flights(rng), 0
    whole = measure(flights)
    for plane in range(PLANES):
        others = measure(flights[flights["plane"] != plane])
        for (priced, with_it), (_, without) in zip(whole, others, strict=True):
            parts = zip(
                priced.plan.measurements, priced.sensitivities, with_it, without, strict=True
            )
            for measured, bound, a, b in parts:
                l1, l2_squared = distance(a, b)
                assert l1 <= bound.l1, (priced.question.text, l1, bound)
                assert l2_squared <= bound.l2_squared, (priced.question.text, l2_squared, bound)
                moves = find_moves(measured, priced.reach, priced.neighbours, grouped=False)
                gaps = [abs(a.get(key, 0) - b.get(key, 0)) for key in a.keys() | b.keys()]
                assert allows(moves, [gap for gap in gaps if gap]), (priced.question.text, gaps)
                cases += 1
    return cases


@pytest.mark.parametrize("seed", range(WORLDS))
def test_no_plane_moves_what_is_said_of_bounding_further_than_it_costs(seed):
    assert check(seed) >= 4 * PLANES


def test_a_charge_that_is_too_small_is_found(monkeypatch):
    """Seeded: as if a plane had half of what the look reads of it."""
    compute = pricing.compute_sensitivity

    def halved(*about, **options):
        found = compute(*about, **options)
        return type(found)(max(1, found.l1 // 2), max(1, found.l2_squared // 4))

    monkeypatch.setattr(pricing, "compute_sensitivity", halved)
    with pytest.raises(AssertionError):
        check(0)
