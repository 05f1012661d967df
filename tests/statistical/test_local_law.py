"""Reports have the law they state, and mutants of the randomizers do not.

ALPHA is the chance that a correct randomizer fails one test; ``detects`` says how far from
the law a sampler must be to be found with probability 0.99.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.divergence import max_divergence
from discreet.accounting.law import FiniteLaw
from discreet.audit.fit import fit
from discreet.local import (
    Direct,
    Hadamard,
    HashedSets,
    HeavyHitters,
    HybridMean,
    ItemSets,
    LocalHashing,
    Memoised,
    OneBitMean,
    Ordinal,
    PiecewiseMean,
    SubsetSelection,
    Unary,
)
from discreet.local.hashing import code_of_text
from discreet.local.packed import unpack
from discreet.mechanisms import TwoCoinResponse
from discreet.noise import bernoulli

ALPHA = "1e-9"
N = 40_000  # finds a law that is 0.033 away in its distribution function, see test_has_power


def drawn(randomizer, value, n=N):
    reports = randomizer.release([value] * n if isinstance(value, set) else np.full(n, value))
    if isinstance(randomizer, Unary):
        return unpack(reports, randomizer.categories)
    if isinstance(randomizer, SubsetSelection):
        return [tuple(np.flatnonzero(row)) for row in unpack(reports, randomizer.categories)]
    return reports


CASES = [
    (Direct(5, epsilon="3/2"), 3),
    (Unary(6, epsilon="3/2"), 3),
    (Unary(6, epsilon="3/2", optimised=False), 3),
    (LocalHashing(7, epsilon="3/2"), 3),
    (HashedSets(7, epsilon="3/2"), 3),
    (SubsetSelection(7, epsilon="1/2"), 3),
    (SubsetSelection(7, epsilon=3), 3),
    (SubsetSelection(12, epsilon="1/2"), 3),
    (SubsetSelection(80, epsilon=4), 3),
    (Hadamard(6, epsilon="3/2"), 3),
    (OneBitMean(lower=0, upper=9, epsilon=1, steps=9), 4),
    (PiecewiseMean(lower=0, upper=9, epsilon=1, steps=9), 4),
    (HybridMean(lower=0, upper=9, epsilon=2, steps=9), 4),
    (Ordinal(9, epsilon=2, branching=3), 7),
    (ItemSets(5, epsilon=2, at_most=3), {1, 4}),
]


@pytest.mark.parametrize(("randomizer", "value"), CASES, ids=repr)
def test_reports_have_the_law(randomizer, value):
    found = fit(drawn(randomizer, value), randomizer.law(value), alpha=ALPHA)
    assert not found.alarm
    assert found.detects("0.99") < 0.05


@pytest.mark.parametrize(("randomizer", "value"), CASES, ids=repr)
def test_has_power(randomizer, value):
    """The same reports refute the law of another answer."""
    other = {0} if isinstance(value, set) else 1
    reports, law = drawn(randomizer, value), randomizer.law(other)
    if isinstance(randomizer, HashedSets):  # thousands of keys: what tells two answers apart
        told = which_are_named(randomizer, (value, other))
        reports, law = list(map(told, reports.tolist())), law.image(told)
        assert not fit(reports, randomizer.law(value).image(told), alpha=ALPHA).alarm
    assert fit(reports, law, alpha=ALPHA).alarm


def which_are_named(sets: HashedSets, values: tuple[int, ...]) -> Callable[[int], tuple[bool, ...]]:
    """Of a report, whether the set of hashes in it has that of each value."""
    codes = [np.array([sets.code(value)]) for value in values]
    hashes = [sets.hash(np.arange(sets.keys), code).tolist() for code in codes]

    def told(report: int) -> tuple[bool, ...]:
        key, first = divmod(report, sets.buckets)
        return tuple((own[key] - first) % sets.buckets < sets.size for own in hashes)

    return told


@pytest.mark.parametrize("epsilon", ["1/2", 4])
def test_beginnings_of_texts_have_the_law(epsilon):
    """Too many keys to list: a report's length, and the place of the own hash after its first.

    Given the key, which is uniform, one text and another turn that law round its circle; the
    two together are within epsilon, and 99 % of it apart.
    """
    words = HeavyHitters(length=3, epsilon=epsilon, key=b"a public name")
    g, k, p = words.oracle.buckets, words.oracle.size, words.oracle.inside
    place = [p / k] * k + [(1 - p) / (g - k)] * (g - k)
    law = FiniteLaw.exact((3 * at + j, place[at] / 3) for j in range(3) for at in range(g))
    keys, first = np.divmod((reports := words.release(["lung"] * N)) // 3, g)
    lengths = reports % 3

    def places(text):
        codes = np.array([code_of_text(text[: j + 1], key=words.key) for j in lengths])
        return 3 * ((words.oracle.hash(keys, codes) - first) % g) + lengths

    assert not fit(places("lung"), law, alpha=ALPHA).alarm
    assert fit(places("skin"), law, alpha=ALPHA).alarm
    upper_half = FiniteLaw.exact([(0, Fraction(1, 2)), (1, Fraction(1, 2))])
    assert not fit(2 * keys >= words.oracle.keys, upper_half, alpha=ALPHA).alarm
    other = FiniteLaw.exact((3 * ((at + k) % g), place[at]) for at in range(g))
    one = FiniteLaw.exact((3 * at, place[at]) for at in range(g))
    low, high = max_divergence(one, other)
    assert Fraction(99, 100) * words.epsilon <= low
    assert high <= words.epsilon * (1 + Fraction(1, 2**40))


@pytest.mark.parametrize("epsilon", ["1/2", 3])
def test_sets_of_one_respondent_and_of_many_have_one_law(epsilon):
    sets = SubsetSelection(6, epsilon=epsilon)
    one_by_one = [
        tuple(np.flatnonzero(row)) for _ in range(100) for row in unpack(sets.release([2] * 200), 6)
    ]
    assert not fit(one_by_one, sets.law(2), alpha=ALPHA).alarm


def test_large_sets_are_uniform_beside_the_true_answer():
    """Of 500 answers: every other one is listed as often as any, alone and beside its neighbour."""
    sets, n = SubsetSelection(500, epsilon=1), 100_000
    bits = unpack(sets.check(sets.release(np.full(n, 123))), 500)
    assert (bits.sum(axis=1, dtype=np.int64) == sets.size).all()
    others = np.delete(bits, 123, axis=1)
    q, both = float(sets.outside), float(sets.both[1])
    for found, p in (
        (bits[:, [123]], float(sets.inside)),
        (others, q),
        (others[:, :-1] * others[:, 1:], both),
        (others[:, :-1:8] * others[:, 1::8], both),
    ):
        # Hoeffding: each of fewer than 500 shares strays further with probability 1e-12.
        assert np.abs(found.mean(axis=0) - p).max() < math.sqrt(math.log(2e12) / (2 * n))
        # Laurent and Massart: neither do their squares together; a law with favourites does.
        m, t = found.shape[1], 25
        spread = ((found.mean(axis=0) - p) ** 2).sum() * n / (p * (1 - p))
        assert spread < m + 2 * math.sqrt(m * t) + 2 * t


# --- mutants ---------------------------------------------------------------------------------


def test_exchanged_probabilities_are_found():
    """p and q swapped in the sampler: the own bit is seldom, the others are often."""
    right = Unary(6, epsilon="3/2")

    class Swapped(Unary):
        inside = Fraction(right.outside)
        outside = Fraction(right.inside)

    wrong = Swapped(6, epsilon="3/2")
    assert fit(unpack(wrong.release(np.full(N, 3)), 6), right.law(3), alpha=ALPHA).alarm


def test_a_key_that_is_used_again_is_found(monkeypatch):
    """One hash function for everybody: answers that collide under it are never told apart."""
    oracle = LocalHashing(40, epsilon=3)
    n, true = 60_000, np.zeros(40)
    true[3] = n

    def strays(reports) -> float:
        found = oracle.estimate(reports)
        errors = [math.sqrt(oracle.variance(respondents=n, count=int(c))) for c in true]
        return float((np.abs(found.values - true) / errors).max())

    values = np.full(n, 3)
    # Bernstein: each of 40 numbers is off by 9 standard errors with a chance below 1e-11.
    assert strays(oracle.release(values)) < 9
    monkeypatch.setattr(
        "discreet.local.hashing.uniform_below", lambda bound, size: np.zeros(size, dtype=int) + 5
    )
    assert strays(oracle.release(values)) > 50
    assert fit(oracle.release(values), oracle.law(3), alpha=ALPHA).alarm


def test_a_memo_that_is_lost_is_found():
    """Reports of a client average to what it kept; of one that forgets, to the truth."""
    plan = Memoised(2, permanent=1, one="1/2")
    rounds, people = 100, 300

    def agreement(forget: bool) -> float:
        """The share of people whose most frequent report is the truth."""
        right = 0
        for _ in range(people):
            client = plan.client(periods=1, rounds=rounds)
            total = 0
            for _ in range(rounds):
                if forget:
                    client._kept = None
                total += client.report(1)
            right += total > rounds / 2
        return right / people

    kept = float(plan.kept.truthful)  # 0.73: what an observer can learn for ever
    spread = math.sqrt(math.log(2 / 1e-9) / (2 * people))
    assert abs(agreement(False) - kept) < spread + 0.01
    assert agreement(True) > kept + spread + 0.01


def test_coins_of_a_byte_are_exact_where_bytes_cannot_say():
    """A probability between two bytes: its rest is drawn, and not cut off."""
    from discreet.local.coins import coins

    p = Fraction(1, 1000)  # below 1/256: bytes alone would give never
    n = 4_000_000
    ones = int(coins(p, (n // 100, 100)).sum())
    assert abs(ones - n * p) < 6.2 * math.sqrt(n * p)  # P < 1e-9
    assert int(bernoulli(p, n).sum()) > 0
    assert TwoCoinResponse(truth="1/2").truthful == 0.75
