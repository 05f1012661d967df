"""S1 to S3: sums that round, depend on order, or wrap around.

Each attack is shown on floating-point or fixed-width sums first, then tried here.
"""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet
from discreet.question.domain import Kind
from discreet.question.offer import Offer


def curator(values, low, high, kind: Kind = Kind.DECIMAL, **engine) -> discreet.Curator:
    table = discreet.Table(
        "t",
        (discreet.Column("x", kind, low, high, nullable=False),),
        unit=("row",),
        max_rows_per_unit=1,
    )
    data = pa.table({"x": pa.array(values)})
    return discreet.curator(
        {"t": data},
        schema=discreet.Schema({"t": table}),
        budget=discreet.Budget(epsilon=1),
        **engine,
    )


def exact_entries(clinic: discreet.Curator, sql: str = "SELECT SUM(x) AS s FROM t"):
    """The integers before noise, and the sensitivity claimed for them."""
    question, _ = clinic._parse_question(sql)
    priced = clinic.price_question(question, Offer.of(epsilon="1/2"))
    opened = clinic.engine.run(clinic.engine.compile(priced.plan)).open_for_release()
    return opened.measured[0].astype(object)[0], priced.sensitivities[0].l1


@pytest.mark.parametrize("p", [4, 5, 6])
def test_s1_rounding_in_a_float_sum_moves_more_than_one_value_can(p):
    """Casacuberta et al. (2022): close bounds, 2**p zeros, and one value more or less."""
    low = 0.5 * (1 + 2.0 ** (p - 53) - 2.0**-52)
    high = 0.5 * (1 + 2.0 ** (p - 53))
    zeros = [0.0] * 2**p
    one, other = [*zeros, 0.0], [*zeros, 1.0]

    def clipped(values):
        return [min(max(v, low), high) for v in values]

    assert abs(sum(clipped(one)) - sum(clipped(other))) > 8 * (high - low)  # the attack works
    first, claim = exact_entries(curator(one, Fraction(low), Fraction(high)))
    second, _ = exact_entries(curator(other, Fraction(low), Fraction(high)))
    assert sum(abs(a - b) for a, b in zip(first, second, strict=True)) <= 2 * claim
    fewer, _ = exact_entries(curator(zeros, Fraction(low), Fraction(high)))
    assert sum(abs(a - b) for a, b in zip(second, fewer, strict=True)) <= claim


def test_s2_order_threads_and_parts_change_nothing():
    rng = np.random.default_rng(4)
    values = rng.normal(0, 1e3, 5000) * 10.0 ** rng.integers(-6, 4, 5000)
    shuffled = rng.permutation(values)
    assert math.fsum(values) != float(np.sum(shuffled)) or sum(values) != sum(shuffled)
    found = {
        tuple(exact_entries(curator(data, -1000, 1000, threads=threads))[0])
        for data in (values, shuffled, np.sort(values))
        for threads in (1, 2, 4)
    }
    assert len(found) == 1


@pytest.mark.parametrize("power", [31, 63])
def test_s3_nothing_wraps(power):
    top = 2**power - 1
    with np.errstate(over="ignore"):
        narrow = np.array([top, 1], dtype=np.int32 if power == 31 else np.int64)
        assert int(narrow.sum(dtype=narrow.dtype)) < 0  # the attack works
    low, high = -(2**62), 2**62
    first, claim = exact_entries(curator([top, 0], low, high, Kind.INTEGER))
    second, _ = exact_entries(curator([top, 1], low, high, Kind.INTEGER))
    assert sum(abs(a - b) for a, b in zip(first, second, strict=True)) <= 2 * claim
    assert all(entry >= 0 for entry in [*first, *second])


def test_s3_many_extreme_values_do_not_wrap_in_the_answer():
    clinic = curator([2**62] * 50, -(2**62), 2**62, Kind.INTEGER)
    total = clinic.ask("SELECT SUM(x) AS s FROM t", epsilon="1/2").value()
    assert float(total) > 0


def test_s4_s5_people_who_share_values_are_bounded_one_by_one():
    """Two people with the same rows are two people: each keeps its own share."""
    rows = pd.DataFrame({"who": [1] * 9 + [2] * 9, "x": [5] * 18})
    table = discreet.Table(
        "t",
        (discreet.Column("who", Kind.INTEGER), discreet.Column("x", Kind.INTEGER, 0, 8)),
        unit=("who",),
        max_rows_per_unit=4,
    )
    schema = discreet.Schema({"t": table})

    def count(data: pd.DataFrame) -> int:
        clinic = discreet.curator({"t": data}, schema=schema, budget=discreet.Budget(epsilon=1))
        return int(exact_entries(clinic, "SELECT COUNT(*) AS n FROM t")[0][0])

    assert count(rows) == 8
    assert count(rows[rows.who == 1]) == 4
