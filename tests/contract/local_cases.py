"""The randomizers of the local model, pairs of answers and their worst pairs."""

from __future__ import annotations

from fractions import Fraction

from contract.law_case import LawCase, Pair
from hypothesis import strategies as st

from discreet.accounting.loss import Loss
from discreet.local import (
    Attributes,
    Direct,
    Hadamard,
    HashedSets,
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

NEARLY_ALL = Fraction(99, 100)
FEW_SETS = tuple(map(Fraction, ("0.4055", "0.9163", "0.9808", "1.3863", "1.7918")))
"""Prices whose odds are near (g - k) / k, g a small prime: hundreds of reports, not thousands."""
prices = st.fractions(min_value=Fraction(1, 4), max_value=4, max_denominator=12)


def at(randomizer, first, second) -> Pair:
    return Pair(randomizer.law(first), randomizer.law(second), randomizer.loss)


@st.composite
def answers(draw, kind, *, most=9, priced=prices, **options) -> Pair:
    categories = draw(st.integers(2, most))
    oracle = kind(categories, epsilon=draw(priced), **options)
    place = st.integers(0, categories - 1)
    return at(oracle, draw(place), draw(place))


@st.composite
def numbers(draw, kind) -> Pair:
    mean = kind(lower=-3, upper=9, epsilon=draw(prices), steps=draw(st.integers(1, 9)))
    value = st.integers(-30, 90).map(lambda tenths: tenths / 10)
    return at(mean, draw(value), draw(value))


@st.composite
def rows(draw, strategy) -> Pair:
    domains = (3, 2, 3)
    both = Attributes(domains, epsilon=draw(prices), strategy=strategy)
    row = st.tuples(*(st.integers(0, size - 1) for size in domains))
    return at(both, draw(row), draw(row))


@st.composite
def baskets(draw) -> Pair:
    sets = ItemSets(6, epsilon=draw(prices), at_most=3)
    items = st.sets(st.integers(0, 5))
    return at(sets, draw(items), draw(items))


@st.composite
def rounds(draw) -> Pair:
    memo = Memoised(draw(st.integers(2, 3)), permanent=draw(prices) + 1, one=draw(prices) / 4)
    count = draw(st.integers(1, 4))
    first, second = (memo.law(place, rounds=count) for place in (0, 1))
    return Pair(first, second, memo.loss_over(count))


def worst_rounds() -> Pair:
    memo = Memoised(3, permanent="5/2", one="3/4")
    return Pair(memo.law(2, rounds=3), memo.law(1, rounds=3), memo.loss_over(3))


def forgetful() -> Loss:
    """What four reports would cost if nothing were kept between them."""
    return 4 * Memoised(3, permanent="5/2", one="3/4").loss_over(1)


CASES = [
    *(
        LawCase(name, answers(kind, **options), worst, NEARLY_ALL)
        for name, kind, options, worst in (
            ("direct", Direct, {}, lambda: at(Direct(5, epsilon="5/4"), 3, 2)),
            (
                "unary, optimised",
                Unary,
                {"most": 6},
                lambda: at(Unary(5, epsilon="5/4"), 3, 2),
            ),
            (
                "unary, symmetric",
                Unary,
                {"most": 6, "optimised": False},
                lambda: at(Unary(5, epsilon="5/4", optimised=False), 3, 2),
            ),
            ("hashing", LocalHashing, {}, lambda: at(LocalHashing(9, epsilon="5/4"), 7, 2)),
            (
                "hashed sets",
                HashedSets,
                {"most": 7, "priced": st.sampled_from(FEW_SETS)},
                lambda: at(HashedSets(9, epsilon="0.9163"), 7, 2),
            ),
            ("subset", SubsetSelection, {}, lambda: at(SubsetSelection(9, epsilon="5/4"), 7, 2)),
            ("hadamard", Hadamard, {}, lambda: at(Hadamard(9, epsilon="5/4"), 7, 2)),
            ("ordinal", Ordinal, {}, lambda: at(Ordinal(9, epsilon="5/4", branching=3), 7, 2)),
        )
    ),
    *(
        LawCase(
            kind.__name__,
            numbers(kind),
            lambda kind=kind: at(kind(lower=-3, upper=9, epsilon="5/4", steps=7), -3, 9),
            NEARLY_ALL,
        )
        for kind in (OneBitMean, PiecewiseMean, HybridMean)
    ),
    *(
        LawCase(
            f"attributes, {strategy}",
            rows(strategy),
            lambda strategy=strategy: at(
                Attributes((3, 2, 3), epsilon="5/4", strategy=strategy), (0, 0, 0), (2, 1, 2)
            ),
            NEARLY_ALL,
        )
        for strategy in ("split", "sample", "pairs")
    ),
    LawCase(
        "item sets",
        baskets(),
        lambda: at(ItemSets(6, epsilon="5/4", at_most=1), {2}, {5}),
        NEARLY_ALL,
    ),
    LawCase("memoised rounds", rounds(), worst_rounds, NEARLY_ALL),
]
