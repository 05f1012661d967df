"""Every public randomizer states its loss, its law, its estimate and its variance; and they hold.

Variances are tried by simulation: surveys are run, and the mean of their squared errors lies within
what an empirical Bernstein bound allows of the stated one (Maurer and Pontil 2009), except with
probability ALPHA; a variance that is half as much again, or two thirds, is refuted.  A stated bound
is not passed, and is not loose beyond what is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from discreet import local
from discreet.accounting.divergence import max_divergence
from discreet.errors import InvalidParameter
from discreet.local import (
    Attributes,
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
from discreet.mechanisms import postprocess

ALPHA = 1e-9
N = 60_000
FEW_SETS = "0.9163"
"""Odds near 5 / 2: sets of two of seven hashes, so that a law is short."""
RESULTS = {
    "Choice",
    "Client",
    "Estimate",
    "Found",
    "Frequencies",
    "Hierarchy",
    "ItemCounts",
    "Joint",
    "Tables",
}
"""Public classes that randomise nothing: what reports say, and who keeps them."""
HEADINGS = ("Definition", "Guarantee", "Accuracy", "Reference", "Example")
RANDOMIZERS = sorted(
    name for name in local.__all__ if isinstance(getattr(local, name), type) and name not in RESULTS
)


@dataclass(frozen=True)
class Case:
    """A randomizer, the errors of many surveys by it, and what it says of their squares."""

    randomizer: object
    value: object
    """An answer that has a law."""
    errors: Callable[[], tuple[np.ndarray, float]]
    """Errors of many surveys, and how large one can be."""
    variance: float
    loose: float = 1.0
    """By how much a stated bound may be above: 1 where the variance is exact."""


def bounds_of_mean_square(errors: np.ndarray, largest: float) -> tuple[float, float]:
    """Between which ends the mean of the squares lies, except with probability ALPHA."""
    squares, n = errors**2, errors.size
    logarithm = math.log(4 / ALPHA)
    margin = math.sqrt(2 * squares.var(ddof=1) * logarithm / n)
    margin += 7 * largest**2 * logarithm / (3 * (n - 1))
    return float(squares.mean() - margin), float(squares.mean() + margin)


def scores(oracle, supported: np.ndarray) -> np.ndarray:
    p, q = float(oracle.inside), float(oracle.outside)
    return (supported - q) / (p - q)


def largest_score(oracle) -> float:
    return 1 + 1 / float(oracle.inside - oracle.outside)


def of_oracle(oracle, *, own: bool, value: int = 3) -> Case:
    """Surveys of one respondent, who has the answer that is counted, or another."""

    def errors():
        reports = oracle.release(np.full(N, value))
        counted = value if own else value - 1
        return scores(oracle, oracle.indicator(reports)[:, counted]) - own, largest_score(oracle)

    return Case(oracle, value, errors, oracle.variance(respondents=1, count=int(own)))


def of_mean(mean, value: float) -> Case:
    def errors():
        width = float(mean.upper - mean.lower) / mean.steps
        found = float(mean.lower) + width * mean.scores(mean.release(np.full(N, value)))
        every = float(mean.lower) + width * mean.scores(np.arange(mean.outcomes))
        return found - value, float(np.abs(every - value).max())

    return Case(mean, value, errors, mean.variance(value))


def of_sets(*, own: bool) -> Case:
    sets = ItemSets(9, epsilon=2, at_most=3)

    def errors():
        reports = sets.release([{4, 7} if own else {1, 2, 7}] * N)
        found = 3 * scores(sets.oracle, sets.oracle.indicator(reports)[:, 4])
        return found - own, 3 * largest_score(sets.oracle)

    return Case(sets, {4, 7}, errors, sets.variance(respondents=1, count=int(own)))


def of_rounds(rounds: int, *, own: bool) -> Case:
    memo = Memoised(4, permanent=3, one="3/2")

    def errors():
        kept = memo.kept.release(np.full(N, 2))
        counted = 2 if own else 1
        hits = sum((memo.again.release(kept) == counted).astype(float) for _ in range(rounds))
        return scores(memo.round, hits / rounds) - own, largest_score(memo.round)

    stated = memo.variance(respondents=1, count=int(own), rounds=rounds)
    return Case(memo, 2, errors, stated)


def of_part(randomizer, oracle, reports, kinds, counted, *, last, have, share=False) -> Case:
    """Surveys of six in which two drew what is asked about; those with another number are left."""
    n, m = 6, 2

    def errors():
        found = np.asarray(reports(randomizer)).reshape(-1, n)
        drew = found % kinds == last
        kept = drew.sum(axis=1) == m
        inner = (found // kinds)[drew & kept[:, None]]
        named = oracle.indicator(inner)[:, counted].reshape(-1, m)
        estimates = scores(oracle, named).sum(axis=1) * (1 / m if share else n / m)
        whole = 1 if share else n
        return estimates - (have / n if share else have), whole * largest_score(oracle)

    if share:
        places = (0, 1) if randomizer.strategy == "pairs" else (1,)
        stated = randomizer.variance(respondents=n, attributes=places, share=Fraction(have, n))
        return Case(randomizer, (1, 2, 0), errors, stated)
    stated = randomizer.variance(respondents=n, count=have)
    return Case(randomizer, "ba", errors, stated)


def of_attributes(strategy: str) -> Case:
    both = Attributes((3, 4, 2), epsilon=3, strategy=strategy)
    people = np.array([[1, 2, 0]] * 2 + [[0, 1, 1]] * 4)
    place = 0 if strategy == "pairs" else 1
    return of_part(
        both,
        both.oracles[place],
        lambda one: one.release(np.tile(people, (N, 1))),
        3,
        1 * 4 + 2 if strategy == "pairs" else 2,
        last=place,
        have=2,
        share=True,
    )


def of_texts() -> Case:
    words = HeavyHitters(length=3, epsilon=FEW_SETS, key=b"a public name", bits=4)
    code = words._code(words.beginning("ba", 3))
    return of_part(
        words,
        words.oracle,
        lambda one: one.release((["ba"] * 2 + ["cab"] * 4) * N),
        3,
        code,
        last=2,
        have=2,
    )


def of_split(*, own: bool) -> Case:
    both = Attributes((3, 4), epsilon=4, strategy="split")
    one, other = both.oracles

    def errors():
        reports = both.release(np.tile([1, 2], (N, 1)))
        left = scores(one, one.indicator(reports[:, 0])[:, 1])
        right = scores(other, other.indicator(reports[:, 1])[:, 2 if own else 3])
        return left * right - own, largest_score(one) * largest_score(other)

    stated = both.variance(respondents=1, attributes=(0, 1), share=int(own))
    return Case(both, (1, 2), errors, stated, 1.0 if own else 1.25)


def of_ranges() -> Case:
    """Surveys of twelve, six of whom drew each level.

    Estimates are read by the weights of every node; some of them as every survey is, too.
    """
    tree = Ordinal(4, epsilon="1/2", branching=2)
    people = [0, 1, 1, 2, 2, 2, 1, 0, 0, 3, 3, 1]
    weights = tree._read_weights(12, [6.0, 6.0], 1, 2)
    parts = [
        2 * scores(one, one.indicator(np.arange(one.categories))) @ w
        for one, w in zip(tree.oracles, weights, strict=True)
    ]  # what each report of a level counts

    def errors():
        found = tree.release(people * N).reshape(-1, 12)
        rows = found[(found % 2).sum(axis=1) == 6]
        levels, inner = rows % 2, rows // 2
        moved = np.where(levels == 0, parts[0][inner % 2], parts[1][inner])
        known = tree.estimate(rows[0]).counts[1:3].sum() - moved[0].sum()
        estimates = known + moved.sum(axis=1)
        for row in range(50):
            counts = tree.estimate(rows[row]).counts
            assert estimates[row] == pytest.approx(counts[1:3].sum(), abs=1e-9)
        ends = [known - 7 + 6 * sum(side(one) for one in parts) for side in (np.min, np.max)]
        return estimates - 7, float(np.abs(ends).max())

    return Case(tree, 2, errors, tree.variance(respondents=12, low=1, high=2), 1.25)


CASES = {
    **{
        f"{kind.__name__}, {'own' if own else 'other'}": (
            lambda kind=kind, own=own: of_oracle(kind(7, epsilon="3/2"), own=own)
        )
        for kind in (Direct, Unary, LocalHashing, HashedSets, SubsetSelection, Hadamard)
        for own in (True, False)
    },
    **{
        f"{kind.__name__}, {value}": (
            lambda kind=kind, value=value: of_mean(
                kind(lower=-1, upper=3, epsilon=2, steps=8), value
            )
        )
        for kind in (OneBitMean, PiecewiseMean, HybridMean)
        for value in (-1.0, 0.5)
    },
    "ItemSets, own": lambda: of_sets(own=True),
    "ItemSets, other": lambda: of_sets(own=False),
    "Memoised, own": lambda: of_rounds(1, own=True),
    "Memoised, own, six rounds": lambda: of_rounds(6, own=True),
    "Memoised, other, six rounds": lambda: of_rounds(6, own=False),
    "Attributes, sample": lambda: of_attributes("sample"),
    "Attributes, pairs": lambda: of_attributes("pairs"),
    "Attributes, split, own": lambda: of_split(own=True),
    "Attributes, split, other": lambda: of_split(own=False),
    "HeavyHitters": of_texts,
    "Ordinal": of_ranges,
}


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_every_randomizer_states_its_whole_contract(name):
    kind = getattr(local, name)
    missing = [one for one in ("loss", "law", "estimate", "variance") if not hasattr(kind, one)]
    assert not missing
    places = [(kind.__doc__ or "").find(f"\n    {heading}:\n") for heading in HEADINGS]
    assert min(places) >= 0
    assert places == sorted(places)
    assert ">>>" in kind.__doc__
    mine = [case for title, case in CASES.items() if title.split(",")[0] == name]
    assert mine, "its variance is tried by nobody"
    case = mine[0]()
    masses = case.randomizer.law(case.value)
    assert masses is not None
    assert case.randomizer.loss.epsilon > 0


def test_a_new_randomizer_that_lacks_anything_would_be_found():
    class Lacking:
        """Report something.

        Definition:
            Something.
        """

        loss = law = estimate = None

    local.Lacking = Lacking
    try:
        with pytest.raises(AssertionError):
            test_every_randomizer_states_its_whole_contract("Lacking")
    finally:
        del local.Lacking
    assert {"Direct", "HeavyHitters", "Memoised"} <= set(RANDOMIZERS)


@pytest.mark.parametrize("name", CASES)
def test_variances_are_those_of_surveys(name):
    case = CASES[name]()
    low, high = bounds_of_mean_square(*case.errors())
    assert low <= case.variance
    assert case.variance <= high * case.loose
    # Power: what is twice as much, or half, is told apart.
    assert high < 2 * case.variance
    assert low > case.variance / (2 * case.loose)


# --- texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1/2", 4])
def test_the_law_of_texts_is_within_its_loss_and_attains_it(epsilon):
    """Given every hash function alike; and of all of them, where few bits stand for a text."""
    words = HeavyHitters(length=3, epsilon=epsilon, key=b"a public name")
    worst = Fraction(0)
    for key in (0, 1, 12_345, words.oracle.keys - 1):
        pair = (words.law(text, hash_key=key) for text in ("lung", "skin"))
        low, high = max_divergence(*pair)
        assert high <= words.epsilon * (1 + Fraction(1, 2**40))
        worst = max(worst, low)
    assert worst >= Fraction(99, 100) * words.epsilon
    with pytest.raises(InvalidParameter):
        words.law("lung")  # too many to list
    with pytest.raises(InvalidParameter):
        words.law("lung", hash_key=words.oracle.keys)


def test_the_law_given_a_key_is_the_law_of_all_given_it():
    words = HeavyHitters(length=2, epsilon=FEW_SETS, key=b"a public name", bits=3)
    every = words.law("ba")
    assert sum(every.fractions) == 1
    for key in (0, 5, words.oracle.keys - 1):
        given = words.law("ba", hash_key=key)
        assert sum(given.fractions) == 1
        for report, chance in zip(given.outcomes, given.fractions, strict=True):
            assert every.exact_mass(report) * words.oracle.keys == chance


def test_named_texts_are_counted_with_ends_that_hold():
    words = HeavyHitters(length=4, epsilon=4, key=b"a public name")
    reports = words.release(["lung"] * 3000 + ["eye"] * 2000)
    found = words.estimate(reports, ["eye", "lung", "heart"], beta="1e-9")
    for one, truth in zip(found, (2000, 3000, 0), strict=True):
        assert one.low <= truth <= one.high
        error = math.sqrt(words.variance(respondents=5000, count=truth))
        assert abs(one.value - truth) < 9 * error
    assert [one.text for one in found] == ["eye", "lung", "heart"]
    assert [one.value for one in words.estimate([], ["eye"])] == [0.0]


# --- ranges ----------------------------------------------------------------------------------


def test_weights_of_a_range_are_what_each_node_counts():
    """One node at a time, a step up: what the estimate of the range moves by."""
    tree = Ordinal(11, epsilon=2, branching=3)
    parts = [7.0, 3.0, 5.0]
    weights = np.concatenate(tree._read_weights(15, parts, 2, 7))
    variances = tree._node_variances(15, parts)
    for node in range(1, len(variances)):
        values = np.zeros(len(variances))
        values[node] = 1
        found = postprocess.consistent(values, parents=tree.parents, variances=variances)
        assert found[-11:][2:8].sum() == pytest.approx(weights[node - 1], abs=1e-12)


@pytest.mark.parametrize("respondents", [0, 1])
def test_variances_of_nobody_are_refused_or_unbounded(respondents):
    tree = Ordinal(9, epsilon=3)
    with pytest.raises(InvalidParameter):
        tree.variance(respondents=respondents, low=2, high=5)
    found = tree.estimate(tree.release([4] * respondents)).count(2, 5)
    assert found.standard_error == math.inf


def test_more_people_with_an_answer_than_there_are_is_refused():
    for one in (Direct(4, epsilon=1), ItemSets(4, epsilon=1, at_most=2)):
        with pytest.raises(InvalidParameter):
            one.variance(respondents=5, count=6)
    with pytest.raises(InvalidParameter):
        Attributes((3, 4), epsilon=1).variance(respondents=5, attributes=(2,))
    with pytest.raises(InvalidParameter):
        Attributes((3, 4), epsilon=1).variance(respondents=5, attributes=(0, 1))
    with pytest.raises(InvalidParameter):
        Attributes((3, 4), epsilon=1, strategy="pairs").variance(respondents=5, attributes=(1,))
    with pytest.raises(InvalidParameter):
        HeavyHitters(length=3, epsilon=1, key=b"k", bits=41)


def test_reports_that_would_not_fit_a_whole_number_are_refused():
    """Cut to 63 bits, they would be reports of other lengths and attributes."""
    with pytest.raises(InvalidParameter):
        HeavyHitters(length=2**10 + 1, epsilon=4, key=b"k")
    with pytest.raises(InvalidParameter):
        Attributes([2] * 257, epsilon=1)
    words = HeavyHitters(length=2**10, epsilon=4, key=b"k")
    assert (words.oracle.keys * words.oracle.buckets) * 2**10 < 2**63
    for epsilon in (Fraction(1, 2**24), 1, 8, 20):
        widest = Attributes((2**16, 2**16), epsilon=epsilon, strategy="pairs").oracles[0]
        assert 1 << widest.report_bits <= 2**45
