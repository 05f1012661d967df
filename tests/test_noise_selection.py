"""Choice by score: where the true cumulative weights decide, and what is refused."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise, permutations, product
from math import prod

import noise_reference as reference
import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.noise import exponential_choice, permute_and_flip, selection
from discreet.noise.entropy import use_recording, use_source
from discreet.noise.selection import _Gaps

LAST = 2**64 - 1
SCORES = [3, 0, 7, 7, 1, -4]
RATE = Fraction(3, 10)
WEIGHTS = [2, 1, 5, 1, 9, 1000]


def little(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def boundaries(weights: list[Decimal]) -> list[Decimal]:
    total = sum(weights, Decimal(0))
    return [part / total for part in accumulate(weights)][:-1]


def true_weights(scores, rate, counts=None) -> list[Decimal]:
    counts = counts or [1] * len(scores)
    return [reference.exp(rate * Fraction(s)) * c for s, c in zip(scores, counts, strict=True)]


def words_of(boundary: Decimal, count: int) -> list[int]:
    whole = reference.binary_digits(boundary, 64 * count)
    return [whole >> (64 * place) & LAST for place in reversed(range(count))]


@pytest.fixture(autouse=True)
def hundred_digits():
    with localcontext() as context:
        context.prec = reference.DIGITS
        yield


# --- exponential choice ----------------------------------------------------------------------


@pytest.mark.parametrize("counts", [None, WEIGHTS])
@pytest.mark.parametrize("ties", [0, 1, 2])
@pytest.mark.parametrize("kind", [list, np.array, lambda s: [Fraction(x) for x in s]])
def test_a_choice_changes_exactly_at_the_true_boundaries(counts, ties, kind):
    for index, boundary in enumerate(boundaries(true_weights(SCORES, RATE, counts))):
        *same, last = words_of(boundary, ties + 1)
        for word, expected in ((last - 1, index), (last + 1, index + 1)):
            with use_recording(little(*same, word)):
                assert exponential_choice(kind(SCORES), RATE, weights=counts) == expected


@pytest.mark.parametrize("away", [2**20, 2**26, 2**27, 2**28, 2**29, 2**40])
def test_doubles_decide_only_what_is_certain(away):
    """Digits at distances below, at and above the slack of the sums in doubles."""
    for index, boundary in enumerate(boundaries(true_weights(SCORES, RATE))):
        (word,) = words_of(boundary, 1)
        for digits, expected in ((word - away, index), (word + away, index + 1)):
            with use_recording(little(digits)):
                assert exponential_choice(SCORES, RATE) == expected


@pytest.mark.parametrize("counts", [None, WEIGHTS, [2**62] * 6])
def test_doubles_decide_whatever_is_clear(counts, monkeypatch):
    """A 64-digit word far from every boundary costs no ball, also in the first place."""

    def never(*_):
        raise AssertionError

    monkeypatch.setattr(selection, "_decide", never)
    edges = [Decimal(0), *boundaries(true_weights(SCORES, RATE, counts)), Decimal(1)]
    for index, (low, high) in enumerate(pairwise(edges)):
        with use_recording(little(int((low + high) / 2 * 2**64))):
            assert exponential_choice(SCORES, RATE, weights=counts) == index


def test_the_first_and_the_last_candidate_own_the_ends():
    with use_recording(little(0)):
        assert exponential_choice(SCORES, RATE) == 0
    with use_recording(little(LAST)):
        assert exponential_choice(SCORES, RATE) == len(SCORES) - 1
    with use_recording(little(0)):  # a total far above one leaves the ends where they are
        assert exponential_choice(SCORES, RATE, weights=[2**62] * 6) == 0


def test_in_a_long_list_the_block_is_chosen_first_and_then_the_candidate():
    """2500 candidates are three blocks; the boundaries of both choices are the true ones."""
    scores = [(i * 7919) % 100 for i in range(2500)]
    counts = [1 + i % 3 for i in range(2500)]
    weights = true_weights(scores, Fraction(1, 20), counts)
    parts = [weights[start : start + 1024] for start in (0, 1024, 2048)]
    sums = [sum(part, Decimal(0)) for part in parts]
    for block, boundary in enumerate(boundaries(sums)):
        (head, tail) = words_of(boundary, 2)
        for word, chosen in ((tail - 1, block), (tail + 1, block + 1)):
            inner = boundaries(parts[chosen])
            for place in (0, 400, len(inner) - 1):
                first, second = words_of(inner[place], 2)
                for step, offset in ((-1, 0), (1, 1)):
                    with use_recording(little(head, word, first, second + step)):
                        found = exponential_choice(np.array(scores), "1/20", weights=counts)
                    assert found == chosen * 1024 + place + offset


def test_a_block_of_hopeless_candidates_is_chosen_among_exactly():
    """Its weights underflow every double; measured from its own best they do not."""
    scores = [10**9] + [0] * 1023 + [900, 903] + [-(10**18)] * 1000
    gap = Fraction(10**9 - 903)
    # The second block owns about exp(-10**9) of the whole: choose it by hand.
    gaps = _Gaps.below_best(np.array(scores), Fraction(1)).part(1024, 2048)
    near = gaps.from_best()
    assert near.exact(1) == 0
    assert near.exact(0) == 3
    assert near.doubles[:2].tolist() == [3.0, 0.0]
    assert gaps.exact(1) == gap
    # The same with doubles that cannot be told apart, and with infinite ones.
    for rate in (Fraction(10**300), Fraction(10) ** 400):
        far = _Gaps.below_best(np.array(scores), rate).part(1024, 2048)
        assert far.doubles.min() > 700
        assert far.from_best().exact(1) == 0
        assert far.from_best().doubles[1] == 0.0
        assert far.from_best().doubles[0] >= 700


def test_a_hopeless_block_is_reached_by_the_digits_that_reach_it():
    scores = [1000] + [0] * 1023 + [5, 8]
    ones = 23  # words: exp(-992) is 2**-1431, and 64 * 23 = 1472
    weights = true_weights([5, 8], Fraction(1))
    first, second = words_of(boundaries(weights)[0], 2)
    for step, expected in ((-1, 1024), (1, 1025)):
        with use_recording(little(*[LAST] * ones, first, second + step)):
            assert exponential_choice(scores, 1) == expected


def test_equal_weights_with_boundaries_on_the_grid_terminate():
    """With four equal candidates the boundaries are 1/4, 1/2, 3/4: exactly the digits drawn."""
    for scores in ([4, 4, 4, 4], [Fraction(1, 3)] * 4):
        for quarter in range(4):
            with use_recording(little(quarter << 62, 0)):
                assert exponential_choice(scores, 2) == quarter
            if quarter:
                with use_recording(little((quarter << 62) - 1, LAST)):
                    assert exponential_choice(scores, 2) == quarter - 1


def test_equal_weights_that_are_no_doubles_terminate():
    """exp(-5) four times, behind a best candidate whose weight is settled first."""
    scores = [0] * 1024 + [-5] * 4
    gaps = _Gaps.below_best(scores, Fraction(1)).part(1024, 1028)
    assert gaps.from_best() is gaps
    total = 1024 + 4 * reference.exp(Fraction(-5))
    (head,) = words_of(1024 / total, 1)
    for quarter in range(4):
        with use_recording(little(head + 2**40, quarter << 62, 1)):
            assert exponential_choice(scores, 1) == 1024 + quarter


# --- permute and flip ------------------------------------------------------------------------


def flipped_in_order(p: list[Fraction]) -> list[Fraction]:
    """McKenna and Sheldon's definition: average over all orders of the first head."""
    law = [Fraction(0)] * len(p)
    orders = list(permutations(range(len(p))))
    for order in orders:
        reached = Fraction(1, len(orders))
        for candidate in order:
            law[candidate] += reached * p[candidate]
            reached *= 1 - p[candidate]
    return law


def uniform_among_heads(p: list[Fraction]) -> list[Fraction]:
    law = [Fraction(0)] * len(p)
    for coins in product((0, 1), repeat=len(p)):
        probability = prod(q if coin else 1 - q for q, coin in zip(p, coins, strict=True))
        for candidate, coin in enumerate(coins):
            if coin:
                law[candidate] += probability / sum(coins)
    return law


@pytest.mark.parametrize("p", [(1, 3), (1, 1, 2, 5), (7, 1, 3, 1, 9)])
def test_uniform_among_the_heads_is_the_first_head_of_a_random_order(p):
    """Lemma 9, in fractions; one candidate, the best, has probability one."""
    probabilities = [Fraction(1)] + [Fraction(1, 1 + k) for k in p]
    assert flipped_in_order(probabilities) == uniform_among_heads(probabilities)
    assert sum(uniform_among_heads(probabilities)) == 1


def test_coins_fall_at_the_true_probabilities_and_heads_are_equally_likely():
    gaps = [RATE * (7 - score) for score in SCORES]
    edges = [int(reference.exp(-gap) * 2**64) for gap in gaps]
    for flips in product((0, 1), repeat=len(SCORES)):
        drawn = [
            min(max(edge + (-(2**40) if flip else 2**40), 0), LAST - 1)
            for edge, flip in zip(edges, flips, strict=True)
        ]
        heads = [i for i, f in enumerate(flips) if f or gaps[i] == 0]
        for which, head in enumerate(heads):
            with use_recording(np.array(drawn, dtype=np.uint64).tobytes() + little(which)):
                assert permute_and_flip(SCORES, RATE) == head


def test_a_tied_coin_is_settled_by_the_true_digits():
    head, tail = words_of(reference.exp(-RATE * 4), 2)
    drawn = [head] + [LAST] * 5  # candidate 0 ties; 2 and 3, the best, are heads whatever is drawn
    for word, expected in ((tail - 1, 0), (tail + 1, 2)):
        with use_recording(np.array(drawn, dtype=np.uint64).tobytes() + little(word, 0)):
            assert permute_and_flip(SCORES, RATE) == expected


# --- shapes and refusals -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.int64, object])
def test_every_integer_type_is_understood(dtype):
    scores = np.array([1, 120, 3], dtype=dtype)
    assert exponential_choice(scores, 50) == 1
    assert permute_and_flip(scores, 50) == 1


@pytest.mark.parametrize("choose", [exponential_choice, permute_and_flip])
def test_scores_may_be_written_in_every_exact_way(choose):
    for scores in (["0.5", "900", "1/3"], [0.5, 900.0, 0.25], np.array([0.5, 900.0, 0.25])):
        assert choose(scores, rate="2.5") == 1


@pytest.mark.parametrize("choose", [exponential_choice, permute_and_flip])
@pytest.mark.parametrize(
    ("scores", "rate", "code"),
    [
        ([], 1, "P5"), (np.array([], dtype=np.int64), 1, "P5"), ([1, 2], -1, "P2"),
        ([1, 2], float("nan"), "P1"), ([1, float("nan")], 1, "P1"), ([1, float("inf")], 1, "P1"),
        ([1, None], 1, "P1"), ([1, True], 1, "P1"), (np.array([[1, 2]]), 1, "P6"),
        (np.array(3), 1, "P6"), ([[1], [2]], 1, "P1"), (np.array([True]), 1, "P1"),
    ],
)  # fmt: skip
def test_what_is_no_choice_is_refused(choose, scores, rate, code):
    with pytest.raises(InvalidParameter) as refusal:
        choose(scores, rate)
    assert refusal.value.code == code


@pytest.mark.parametrize("canary", ["31337x", (31337,), float("nan")])
def test_a_refused_score_is_not_quoted(canary):
    with pytest.raises(InvalidParameter) as refusal:
        exponential_choice([1, canary], 1)
    assert "31337" not in str(refusal.value)
    assert "nan" not in str(refusal.value)


@pytest.mark.parametrize(
    "weights", [[1], [1, 0, 1], [1, -2, 1], [1.5, 1, 1], [True] * 3, [[1] * 3]]
)
def test_what_is_no_weight_is_refused(weights):
    with pytest.raises(InvalidParameter) as refusal:
        exponential_choice([1, 2, 3], 1, weights=weights)
    assert refusal.value.code == "P4"


def test_one_candidate_is_always_chosen():
    with use_source(lambda count: b"\xff" * count):
        assert exponential_choice([5], 3) == 0
    assert permute_and_flip(["7/2"], 3) == 0
