"""Where the texts, and we, said more about privacy than is so."""

from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa
import pytest

import discreet
from discreet.accounting.divergence import max_divergence
from discreet.accounting.meaning import Meaning
from discreet.mechanisms import Laplace

SCHEMA = """
[tables.patients]
unit = "person"
max_rows_per_unit = 1
columns.person = "integer"
columns.ill = { type = "text", values = ["yes", "no"] }
"""


# --- DMNS Proposition A-5(1): epsilon for what is learnt about a value --------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_a_histogram_moves_a_belief_about_a_value_by_tanh_of_half_epsilon(epsilon):
    """Under add/remove two values are two steps apart, and the curator's histogram attains it."""
    rows = pa.table({"person": [1], "ill": ["yes"]})
    curator = discreet.curator(
        {"patients": rows},
        schema=discreet.Schema.from_text(SCHEMA),
        budget=discreet.Budget(epsilon=10),
    )
    asked = "SELECT ill, COUNT(*) AS n FROM patients GROUP BY ill"
    (mechanism,) = curator.explain(asked, epsilon=epsilon).priced.mechanisms
    assert isinstance(mechanism, Laplace)
    ill, well, absent = (mechanism.law(counts) for counts in ([1, 0], [0, 1], [0, 0]))
    assert max_divergence(ill, absent)[1] <= epsilon
    assert max_divergence(ill, well)[0] == 2 * epsilon
    # The outcome (1, 0), seen by one who believed 1/(1 + e**epsilon): Bayes, exactly.
    odds = float(ill.mass((1, 0)) / well.mass((1, 0)))
    prior = 1 / (1 + math.exp(epsilon))
    after = prior * odds / (prior * odds + 1 - prior)
    moved = math.tanh(float(epsilon) / 2)
    assert after - prior == pytest.approx(moved, rel=1e-9)
    promise = Meaning(epsilon=epsilon)
    assert after - prior > float(promise.presence.belief_change) * 1.2
    assert float(promise.value.belief_change) == pytest.approx(moved, rel=1e-9)
