"""Repeated collection: what is lost over k rounds, and that the client keeps to it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.divergence import max_divergence
from discreet.errors import InvalidParameter
from discreet.exact.balls import exp_bounds
from discreet.local import Client, Memoised
from discreet.noise.entropy import random_bytes, use_recording

prices = st.fractions(min_value=Fraction(1, 4), max_value=3, max_denominator=12)


@settings(max_examples=25, deadline=None)
@given(prices, prices, st.integers(2, 4), st.integers(1, 4))
def test_the_loss_over_rounds_is_exact(permanent, one, categories, rounds):
    """Every pair of answers, every sequence of reports."""
    memo = Memoised(categories, permanent=permanent + one, one=one)
    loss = memo.loss_over(rounds).epsilon
    laws = [memo.law(place, rounds=rounds) for place in range(2)]
    low, _ = max_divergence(*laws)
    ratio = max(
        a / b for a, b in zip(laws[0].fractions, laws[1].fractions, strict=True)
    )  # rational, so compared exactly
    assert exp_bounds(loss)[1] >= ratio
    assert loss - low < Fraction(1, 10**9)


def test_the_loss_grows_to_what_is_kept():
    memo = Memoised(5, permanent="3/2", one="1/3")
    losses = [memo.loss_over(k).epsilon for k in (0, 1, 2, 5, 20, 1000, 10**6)]
    assert losses == sorted(losses)
    assert losses[0] == 0
    assert losses[1] <= Fraction(1, 3)
    assert Fraction(14, 10) < losses[-1] <= Fraction(3, 2)


def test_one_round_is_the_survey_it_says():
    memo = Memoised(4, permanent=2, one=1)
    assert memo.law(2).fractions == memo.round.law(2).fractions


def test_the_client_keeps_to_what_was_agreed():
    memo = Memoised(3, permanent=2, one=1)
    client = memo.client(periods=2, rounds=3)
    for _ in range(3):
        assert client.report(1) in range(3)
    with pytest.raises(InvalidParameter):
        client.report(1)
    assert client.lost == memo.loss_over(3)
    client.next_period()
    client.report(2)
    assert client.lost == memo.loss_over(3) + memo.loss_over(1)
    assert client.most == 2 * memo.loss_over(3)
    with pytest.raises(InvalidParameter):
        client.next_period()
    with pytest.raises(InvalidParameter):
        client.report(3)


def test_a_changed_answer_waits_for_the_next_period():
    """With the same bytes, the reports are the same whatever the later answers are."""
    memo = Memoised(3, permanent=2, one=1)
    data = random_bytes(1000)
    found = []
    for later in (1, 2):
        client = memo.client(periods=1, rounds=9)
        with use_recording(data):
            found.append([client.report(1)] + [client.report(later) for _ in range(8)])
    assert found[0] == found[1]


def test_a_client_is_stored_and_opened_again():
    memo = Memoised(3, permanent=2, one=1)
    client = memo.client(periods=2, rounds=3)
    client.report(1)
    client.next_period()
    client.report(0)
    again = Client.from_json(client.to_json())
    assert again.to_json() == client.to_json()
    assert again.lost == client.lost
    again.report(0)
    again.report(0)
    with pytest.raises(InvalidParameter):
        again.report(0)


@pytest.mark.parametrize(
    "damage", [{"kept": None}, {"round": 0}, {"past": [1, 1]}, {"round": 99}, {"kept": 3}]
)
def test_a_store_that_lost_its_memo_is_refused(damage):
    client = Memoised(3, permanent=2, one=1).client(periods=2, rounds=3)
    client.report(1)
    with pytest.raises(InvalidParameter):
        Client.from_json({**client.to_json(), **damage})


def test_one_report_cannot_cost_more_than_all():
    with pytest.raises(InvalidParameter):
        Memoised(3, permanent=1, one=1)
