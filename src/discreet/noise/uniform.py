"""Uniform integers, permutations and samples.  Proof: ``docs/proofs/noise.md``, Lemma 10."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact.numbers import whole
from discreet.noise.entropy import random_bits, random_words
from discreet.noise.table import Integers, check_size, draw_array

_BITS = 64


@overload
def uniform_below(n: int, size: None = None) -> int: ...
@overload
def uniform_below(n: int, size: int) -> Integers: ...
def uniform_below(n: int, size: int | None = None) -> int | Integers:
    """Integers 0 <= z < n, each with probability exactly 1 / n; n is at most 2**63.

    Exactness: a 64-bit word w counts as w mod n unless it is among the last
    2**64 mod n words, which are drawn again.

    >>> sorted(set(uniform_below(6, 1000).tolist()))
    [0, 1, 2, 3, 4, 5]
    """
    bound = whole(n, name="n", least=1)
    if bound > 2**63:
        raise InvalidParameter(
            "P2",
            f"n must be at most 2**63, got {bound}.",
            why="results are 64-bit integers.",
            fix="draw in two parts.",
        )
    if size is None:
        return _draw_one(bound)
    return draw_array(check_size(size), lambda out: _fill(bound, out))


def _draw_one(bound: int) -> int:
    usable = 2**_BITS // bound * bound
    while True:
        word = random_bits(_BITS)
        if word < usable:
            return word % bound


def _fill(bound: int, out: NDArray[Any]) -> None:
    divisor = np.uint64(bound)
    last_usable = np.uint64(2**_BITS // bound * bound - 1)
    drawn = random_words(out.size)
    out[:] = drawn - drawn // divisor * divisor
    refused = np.flatnonzero(drawn > last_usable)
    if refused.size:
        again = np.empty(refused.size, dtype=np.int64)
        _fill(bound, again)
        out[refused] = again


def random_permutation(n: int) -> Integers:
    """The numbers 0 ... n - 1 in an order drawn uniformly from all n! orders.

    Each number gets a random key in the high bits of one word and itself in the
    low bits; sorting the words sorts by key.  Numbers whose keys are equal are
    exchangeable, so their order among themselves is drawn again.

    >>> sorted(random_permutation(5).tolist())
    [0, 1, 2, 3, 4]
    """
    count = check_size(n, name="n")
    index_bits = max(count - 1, 0).bit_length()
    mask = np.uint64(2**index_bits - 1)
    keyed = np.empty(count, dtype=np.uint64)
    step = 1 << 20
    for start in range(0, count, step):
        part = keyed[start : start + step]
        part[:] = random_words(part.size) & ~mask
        part |= np.arange(start, start + part.size, dtype=np.uint64)
    keyed.sort()
    for first, past in _equal_keys(keyed, index_bits):
        group = keyed[first:past].copy()
        keyed[first:past] = group[_short_permutation(past - first)]
    keyed &= mask
    return keyed.view(np.int64)


def _equal_keys(keyed: NDArray[Any], index_bits: int) -> list[tuple[int, int]]:
    """The runs of more than one word with the same key, as (first, past the last)."""
    shift, step = np.uint64(index_bits), 1 << 20
    runs: list[tuple[int, int]] = []
    for start in range(0, max(keyed.size - 1, 0), step):
        keys = keyed[start : start + step + 1] >> shift
        for index in (np.flatnonzero(keys[1:] == keys[:-1]) + start).tolist():
            if runs and runs[-1][1] == index + 1:
                runs[-1] = (runs[-1][0], index + 2)
            else:
                runs.append((index, index + 2))
    return runs


def _short_permutation(n: int) -> list[int]:
    """Fisher-Yates, for the handful of numbers that share a key."""
    order = list(range(n))
    for last in range(n - 1, 0, -1):
        other = _draw_one(last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def sample_without_replacement(n: int, k: int) -> Integers:
    """k different numbers below n, in random order; every such sequence is equally likely.

    >>> len(set(sample_without_replacement(1000, 30).tolist()))
    30
    """
    population = whole(n, name="n")
    wanted = check_size(k, name="k")
    if wanted > population:
        raise InvalidParameter(
            "P4",
            f"cannot choose {wanted} different numbers out of {population}.",
            why="a sample without replacement is never larger than what it is drawn from.",
            fix=f"ask for at most {population}.",
        )
    if wanted * 4 >= population:
        whole_order = random_permutation(population)
        return whole_order if wanted == population else whole_order[:wanted].copy()
    # Uniform draws with the repeats dropped: by symmetry every sequence is equally likely.
    chosen: Integers = np.empty(0, dtype=np.int64)
    while chosen.size < wanted:
        more = uniform_below(population, wanted - chosen.size)
        together = np.concatenate([chosen, more])
        first = np.unique(together, return_index=True)[1]
        chosen = together[np.sort(first)]
    return chosen
