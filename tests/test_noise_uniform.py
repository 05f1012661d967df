"""Uniform integers, permutations and samples."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.noise import random_permutation, sample_without_replacement, uniform_below
from discreet.noise.entropy import use_recording, use_source

LAST = 2**64 - 1


def native(*words: int) -> bytes:
    return np.array(words, dtype=np.uint64).tobytes()


@pytest.mark.parametrize("n", [1, 2, 3, 6, 1000, 2**32, 2**63 - 1, 2**63, 2**64 // 3 + 1])
def test_a_word_counts_as_its_remainder_unless_it_is_among_the_last(n):
    usable = 2**64 // n * n
    fine = [0, 1, n - 1, n, usable - 1, usable - n]
    with use_recording(native(*fine)):
        assert uniform_below(n, len(fine)).tolist() == [word % n for word in fine]
    for word in fine:
        with use_recording(word.to_bytes(8, "little")):
            assert uniform_below(n) == word % n
    if usable < 2**64:
        for refused in {usable, LAST}:
            with use_recording(native(5, refused, 6) + native(refused) + native(7)):
                assert uniform_below(n, 3).tolist() == [5 % n, 7 % n, 6 % n]
            with use_recording(refused.to_bytes(8, "little") + (7).to_bytes(8, "little")):
                assert uniform_below(n) == 7 % n


def test_many_refused_words_are_drawn_again():
    n = 2**64 // 3 + 1
    draws = uniform_below(n, 100_000)
    assert (draws >= 0).all()
    assert 0.49 < (draws < n // 2).mean() < 0.51


@pytest.mark.parametrize("n", [0, -1, 2**63 + 1, 2.5, "6", True, None, float("nan")])
def test_what_is_no_bound_is_refused(n):
    for size in (None, 3):
        with pytest.raises(InvalidParameter, match="P2: n must be"):
            uniform_below(n, size)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 255, 256, 257, 2**14 - 1, 2**14, 2**14 + 1, 10**6])
def test_a_permutation_holds_every_number_once(n):
    order = random_permutation(n)
    assert order.dtype == np.int64
    assert (np.sort(order) == np.arange(n)).all()


def test_distinct_keys_order_the_numbers():
    """The permutation lists the numbers by their keys."""
    for keys in permutations([1, 2, 3, 4]):
        with use_recording(native(*(key << 60 for key in keys))):
            expected = [keys.index(key) for key in (1, 2, 3, 4)]
            assert random_permutation(4).tolist() == expected


def numbers(choice: tuple[int, ...]) -> bytes:
    return b"".join(c.to_bytes(8, "little") for c in choice)


def test_equal_keys_are_ordered_uniformly():
    """All keys equal: the six outcomes of the two choices of Fisher and Yates give six orders."""
    orders = Counter()
    for choice in product(range(3), range(2)):
        with use_recording(native(9 << 60, 9 << 60, 9 << 60) + numbers(choice)):
            orders[tuple(random_permutation(3).tolist())] += 1
    assert orders == dict.fromkeys(permutations(range(3)), 1)


def test_two_runs_of_equal_keys_are_ordered_apart():
    orders = Counter()
    keys = [5 << 60, 2 << 60, 5 << 60, 2 << 60, 3 << 60]
    for choice in product(range(2), range(2)):
        with use_recording(native(*keys) + numbers(choice)):
            orders[tuple(random_permutation(5).tolist())] += 1
    assert orders == {
        (a, b, 4, c, d): 1 for a, b in permutations([1, 3]) for c, d in permutations([0, 2])
    }


def test_a_run_of_equal_keys_across_a_chunk_is_one_run():
    """Equal keys on both sides of the 2**20th word: no number is lost, the run is permuted."""
    n = 2**20 + 3
    keyed = np.zeros(n, dtype=np.uint64)
    keyed[:] = np.arange(n, dtype=np.uint64) << np.uint64(30)  # distinct, increasing keys
    keyed[2**20 - 2 :] = np.uint64(2**63)  # the last five share one
    parts = iter([keyed[: 2**20].tobytes(), keyed[2**20 :].tobytes()])
    small = iter([0, 0, 0, 0])

    def source(count: int) -> bytes:
        return next(small).to_bytes(8, "little") if count == 8 else next(parts)

    with use_source(source):
        order = random_permutation(n)
    assert (order[: 2**20 - 2] == np.arange(2**20 - 2)).all()
    first = 2**20 - 2
    assert order[first:].tolist() == [first + i for i in (1, 2, 3, 4, 0)]


@pytest.mark.parametrize(
    ("n", "k"),
    [(0, 0), (7, 0), (7, 7), (7, 2), (100, 24), (100, 26), (10**12, 9), (30_000, 30_000)],
)
def test_a_sample_has_no_repeats(n, k):
    chosen = sample_without_replacement(n, k)
    assert chosen.dtype == np.int64
    assert len(set(chosen.tolist())) == k == chosen.size
    assert all(0 <= number < n for number in chosen.tolist())


def test_repeats_are_dropped_and_order_kept():
    with use_recording(native(8, 3, 8, 5) + native(3) + native(11)):
        assert sample_without_replacement(100, 4).tolist() == [8, 3, 5, 11]


@pytest.mark.parametrize(
    ("n", "k", "code"),
    [(3, 4, "P4"), (-1, 0, "P2"), (5, -1, "P3"), (5, 1.0, "P3"), ("5", 1, "P2"), (5, True, "P3")],
)
def test_what_is_no_sample_is_refused(n, k, code):
    with pytest.raises(InvalidParameter) as refusal:
        sample_without_replacement(n, k)
    assert refusal.value.code == code


@pytest.mark.parametrize("n", [-1, 2.0, "3", True, None])
def test_what_is_no_length_is_refused(n):
    with pytest.raises(InvalidParameter, match="P3: n must be"):
        random_permutation(n)
