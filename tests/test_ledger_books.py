"""Balances are what the records add up to: nobody loses more than their block's balance says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_cases import BUDGET, Clock, request, schema

from discreet.accounting.budget import SATURATED, Budget
from discreet.accounting.loss import INFINITY, NOTHING, Loss
from discreet.errors import BudgetRefusal
from discreet.ledger import Ledger
from discreet.ledger.books import (
    add_loss,
    carry_over,
    decode_blocks,
    encode_blocks,
    pack,
    zero_balances,
)

steady = settings(deadline=None, derandomize=True, max_examples=40)

# --- areas ------------------------------------------------------------------------------------


@steady
@given(st.integers(1, 300).flatmap(lambda n: st.lists(st.booleans(), min_size=n, max_size=n)))
def test_an_area_is_recorded_as_it_is(marks):
    mask = np.array(marks)
    edges = np.flatnonzero(np.diff(mask.astype(int), prepend=0, append=0))
    area = encode_blocks(edges, len(marks))
    found = np.zeros(len(marks), dtype=bool)
    found[decode_blocks(area, len(marks))] = True
    assert (found == mask).all()
    assert isinstance(area, str) == (edges.size > 64)


@pytest.mark.parametrize(
    "area",
    [[[-1, 2]], [[2, 2]], [[0, 9]], [[0, 2], [2, 4]], [[3, 4], [0, 1]], "AAAA", "?", pack(b"ab")],
)
def test_what_is_not_an_area_is_not_one(area):
    with pytest.raises(ValueError, match=r"."):
        decode_blocks(area, 8)


# --- sums --------------------------------------------------------------------------------------


def test_sums_saturate_and_never_wrap():
    balances = zero_balances(3)
    for _ in range(5):
        add_loss(balances, slice(0, 2), (SATURATED, 2**61, 3))
    assert balances.tolist() == [[SATURATED, SATURATED, 0], [SATURATED, SATURATED, 0], [15, 15, 0]]


def test_blocks_start_at_the_largest_of_their_origins():
    balances = np.array([[5, 1, 9], [1, 7, 2], [0, 0, 4]], dtype=np.int64)
    found = carry_over(balances, [1, [[0, 2]], [[0, 3]], [[0, 1], [2, 3]]])
    assert found.T.tolist() == [[1, 7, 0], [5, 7, 0], [9, 7, 4], [9, 2, 4]]


losses = st.one_of(
    st.fractions(Fraction(1, 50), 1, max_denominator=50).map(Loss.pure),
    st.fractions(Fraction(1, 500), Fraction(1, 20), max_denominator=500).map(Loss.concentrated),
    st.just(Loss(Fraction(1, 9), INFINITY, Fraction(1, 10**8))),
    st.just(Loss.approximate("1/7", "1e-8")),
)
questions = st.tuples(losses, st.sets(st.integers(0, 3)), st.sampled_from(["curator", "ana"]))


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.lists(questions, max_size=40))
def test_nobody_loses_more_than_their_block_says(asked):
    """For a person of each block: what the admitted questions that reach it cost, added exactly."""
    limit = Budget(epsilon=1, delta="1e-7")
    lost = dict.fromkeys(range(4), NOTHING)
    cost = dict.fromkeys(range(4), NOTHING)
    with Ledger.open("sqlite://", clock=Clock()) as ledger:
        account = ledger.account("clinic", schema=schema(), budget=BUDGET)
        account.add_analyst("ana", limit=limit)
        for number, (loss, blocks, analyst) in enumerate(asked):
            one = request(account, str(number), loss=loss, blocks=tuple(blocks), analyst=analyst)
            exact = loss.rounded()
            admitted = all(BUDGET.admits(lost[block], exact) for block in blocks)
            if analyst == "ana":
                admitted &= all(limit.admits(cost[block], exact) for block in blocks)
            try:
                account.charge(one)
                assert admitted
            except BudgetRefusal:
                assert not admitted
                continue
            for block in blocks:
                lost[block] += exact
                cost[block] += exact if analyst == "ana" else NOTHING
        whole, share = account.balance(), account.balance("ana")
        for block in range(4):
            assert whole.block(block) == lost[block]
            assert share.block(block) == cost[block]
        assert ledger.verify().ok
