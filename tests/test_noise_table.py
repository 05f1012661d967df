"""Inversion: every threshold, every tie, every cell of the guide."""

from __future__ import annotations

from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import islice

import noise_reference as reference
import numpy as np
import pytest
from flint import arb

from discreet.exact.balls import ball
from discreet.noise import gaussian, laplace
from discreet.noise.bernoulli import _exponential_coin
from discreet.noise.entropy import use_recording, use_source
from discreet.noise.table import SMALL, Table

LAST = 2**64 - 1


@dataclass(frozen=True, eq=False)
class Law:
    """A table of the library, and its cumulative probabilities computed another way."""

    table: Table
    cumulatives: list[Decimal]

    @classmethod
    def of(cls, table: Table, masses) -> Law:
        with localcontext() as context:
            context.prec = reference.DIGITS
            return cls(table, reference.cumulatives(masses(table.thresholds.size + 3)))

    @cache  # noqa: B019
    def binary(self, bits: int) -> list[int]:
        """The first ``bits`` binary digits of every cumulative."""
        with localcontext() as context:
            context.prec = reference.DIGITS
            return [reference.binary_digits(c, bits) for c in self.cumulatives]

    def thresholds(self) -> list[int]:
        return self.binary(64)[: self.table.thresholds.size]

    def next_word(self, position: int, words: int = 1) -> int:
        """Binary digits 64 * words + 1 ... 64 * (words + 1) of a cumulative."""
        return self.binary(64 * (words + 1))[position] & LAST


def laplace_law(scale) -> Law:
    block = 2 ** laplace._shift(Fraction(scale))
    return Law.of(
        laplace._two_sided(Fraction(scale)).top,
        lambda count: reference.laplace_blocks(Fraction(scale), block, count),
    )


def geometric_law(scale) -> Law:
    block = 2 ** laplace._shift(Fraction(scale))
    return Law.of(
        laplace._one_sided(Fraction(scale)).top,
        lambda count: reference.geometric_blocks(Fraction(scale), block, count),
    )


def digit_law(step, bits) -> Law:
    return Law.of(laplace._digit(step, bits), lambda _: reference.digit(step, bits)[:-1])


def gaussian_law(sigma_squared) -> Law:
    return Law.of(
        gaussian._two_sided(Fraction(sigma_squared)),
        lambda count: reference.gaussian(Fraction(sigma_squared), count),
    )


def proposal_law(sigma_squared) -> Law:
    proposal = gaussian._proposal(Fraction(sigma_squared))
    scaled = Fraction(sigma_squared) / 4**proposal.shift
    return Law.of(proposal.blocks, lambda count: reference.half_gaussian(scaled, count))


def coin_law(x) -> Law:
    return Law.of(_exponential_coin(Fraction(x)), lambda _: [reference.exp(-Fraction(x))])


LAWS = {
    "laplace 1/3": lambda: laplace_law(Fraction(1, 3)),
    "laplace 2": lambda: laplace_law(2),
    "laplace 20": lambda: laplace_law(20),
    "laplace 32": lambda: laplace_law(32),
    "laplace 1000": lambda: laplace_law(1000),
    "laplace 2**40": lambda: laplace_law(2**40),
    "geometric 5/2": lambda: geometric_law(Fraction(5, 2)),
    "geometric 10**6": lambda: geometric_law(10**6),
    "digit of 1000": lambda: digit_law(Fraction(1, 1000), 5),
    "digit of 2**40": lambda: digit_law(Fraction(2**24, 2**40), 8),
    "gaussian 1": lambda: gaussian_law(1),
    "gaussian 9/4": lambda: gaussian_law(Fraction(9, 4)),
    "gaussian 20": lambda: gaussian_law(400),
    "gaussian 1000": lambda: gaussian_law(1000**2),
    "proposal 10**6": lambda: proposal_law(10**12),
    "coin 3/7": lambda: coin_law(Fraction(3, 7)),
}
SMALL_LAWS = [
    "laplace 1/3", "laplace 2", "geometric 5/2", "digit of 1000", "gaussian 1", "gaussian 9/4",
    "gaussian 20", "coin 3/7",
]  # fmt: skip


@cache
def made(name: str) -> Law:
    return LAWS[name]()


@pytest.fixture(params=LAWS)
def law(request):
    return made(request.param)


@pytest.fixture(params=SMALL_LAWS)
def small_law(request):
    return made(request.param)


def little(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


# --- thresholds ------------------------------------------------------------------------------


def test_every_threshold_is_the_floor_of_its_cumulative(law):
    assert law.table.thresholds.tolist() == law.thresholds()


def test_an_infinite_table_ends_where_64_digits_end():
    assert int(laplace_law(20).table.thresholds[-1]) == LAST
    assert int(gaussian_law(400).table.thresholds[-1]) == LAST


def with_flipped_threshold(table: Table, position: int) -> Table:
    """The same table with the last bit of one threshold wrong, as a bad build would have it."""
    wrong = object.__new__(Table)
    for name in Table.__slots__:
        setattr(wrong, name, getattr(table, name))
    wrong.thresholds = table.thresholds.copy()
    wrong.thresholds[position] ^= np.uint64(1)
    return wrong


def wrong_decisions(law: Law, table: Table) -> list[int]:
    """Thresholds at which digits just below or just above the true ones are decided wrongly."""
    wrong = []
    for position, threshold in enumerate(law.thresholds()):
        word = law.next_word(position)
        for extension in (word - 1, word + 1):
            expected = table._value(selected(law, threshold, extension))
            with use_recording(little(threshold, extension)):
                if table.draw_one() != expected:
                    wrong.append(position)
    return wrong


@pytest.mark.parametrize("name", ["gaussian 1", "digit of 1000", "coin 3/7"])
def test_a_threshold_with_its_last_bit_flipped_is_found(name):
    law = made(name)
    assert wrong_decisions(law, law.table) == []
    for position in range(law.table.thresholds.size):
        wrong = with_flipped_threshold(law.table, position)
        assert wrong.thresholds.tolist() != law.thresholds()
        assert wrong_decisions(law, wrong) == [position]


def test_a_ball_that_contains_a_whole_number_is_refined_or_bounded():
    """The three ways of a cumulative whose ball at 128 bits does not settle 64 digits."""

    def table(*cumulatives) -> list[int]:
        table = Table(lambda: iter([c() for c in cumulatives]), lambda position: position)
        return table.thresholds.tolist()

    just_above = Fraction(2**63, 2**64) + Fraction(1, 3 * 2**400)
    assert table(lambda: ball(just_above)) == [2**63]
    just_below = Fraction(2**63, 2**64) - Fraction(1, 3 * 2**400)
    assert table(lambda: ball(just_below)) == [2**63 - 1]
    assert table(lambda: arb(10) ** -5000) == [0]
    assert table(lambda: ball(Fraction(-(10**900))).exp()) == [0]
    assert table(lambda: 1 - arb(10) ** -5000) == [LAST]
    assert table(lambda: -ball(Fraction(-(10**900))).expm1()) == [LAST]


def test_nobody_can_write_into_a_shared_table():
    table = laplace_law(20).table
    for array in (table.thresholds, table._values, table._guide):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


# --- ties ------------------------------------------------------------------------------------


def selected(law: Law, *words: int) -> int:
    """#{j : c_j <= u} for every u that begins with these digits, which are those of no c_j."""
    bits = 64 * len(words)
    digits = int.from_bytes(b"".join(word.to_bytes(8, "big") for word in words), "big")
    return bisect_left(law.binary(bits), digits)


def test_every_threshold_decides_exactly_where_the_true_digits_say(small_law):
    """U = t_j, then words just below and just above the next 64 digits of c_j."""
    law = small_law
    for position, threshold in enumerate(law.thresholds()):
        word = law.next_word(position)
        for next_word in (word - 1, word + 1):
            assert 0 <= next_word <= LAST
            expected = law.table._value(selected(law, threshold, next_word))
            with use_recording(little(threshold, next_word)):
                assert law.table.draw_one() == expected
        if law.cumulatives[position + 1 :] and law.binary(64)[position + 1] != threshold:
            assert selected(law, threshold, word - 1) == position
            assert selected(law, threshold, word + 1) == position + 1


def test_every_second_tie_decides_exactly_too(small_law):
    law = small_law
    for position, threshold in enumerate(law.thresholds()):
        first, second = law.next_word(position), law.next_word(position, words=2)
        results = []
        for third in (second - 1, second + 1):
            expected = law.table._value(selected(law, threshold, first, third))
            with use_recording(little(threshold, first, third)):
                results.append(law.table.draw_one())
            assert results[-1] == expected
        assert results[0] != results[1]


def test_ties_in_a_short_array_are_settled_one_by_one(small_law):
    law = small_law
    thresholds = law.thresholds()[:100]
    extensions = [law.next_word(i) + (-1) ** i for i in range(len(thresholds))]
    expected = [
        law.table._value(selected(law, threshold, extension))
        for threshold, extension in zip(thresholds, extensions, strict=True)
    ]
    out = np.empty(len(thresholds), dtype=np.int64)
    with use_recording(np.array(thresholds, dtype=np.uint64).tobytes() + little(*extensions)):
        law.table.fill(out)
    assert out.tolist() == expected


def test_ties_in_a_long_array_are_settled_too(small_law):
    """Through the guide: the words of the first 16 digits, the rest of the open ones, the ties."""
    law = small_law
    thresholds = (law.thresholds() * 300)[: SMALL + 50]
    heads = np.array([threshold >> 48 for threshold in thresholds], dtype=np.uint16)
    rest = np.array([threshold << 16 & LAST for threshold in thresholds], dtype=np.uint64)
    # ... whose leading 48 digits are the ones that are missing.
    count = law.table.thresholds.size
    extensions = [law.next_word(i % count) + (-1) ** (i // count) for i in range(len(thresholds))]
    expected = [
        law.table._value(selected(law, threshold, extension))
        for threshold, extension in zip(thresholds, extensions, strict=True)
    ]
    out = np.empty(len(thresholds), dtype=np.int64)
    with use_recording(heads.tobytes() + rest.tobytes() + little(*extensions)):
        law.table.fill(out)
    assert out.tolist() == expected


def test_beyond_the_table_the_tail_goes_on():
    """U of 64 ones, then 2, 3 or 4 more such words: each doubles how far out the draw is."""
    with localcontext() as context:
        context.prec = 200
        for words in (2, 3, 4):
            cumulatives = reference.cumulatives(reference.geometric_blocks(Fraction(3), 1, 1200))
            u = Decimal(2 ** (64 * words) - 2) / 2 ** (64 * words)
            with use_recording(little(*[LAST] * (words - 1), LAST - 1, 0, 0)):
                assert laplace.geometric(3) == sum(c <= u for c in cumulatives)


# --- the guide -------------------------------------------------------------------------------


def test_every_cell_of_the_guide_is_right(law):
    """Decided: both ends of the cell select that value.  Undecided: a threshold lies inside."""
    table = law.table
    guide, thresholds = table._guide, table.thresholds
    bits = guide.size.bit_length() - 1
    assert bits == (20 if thresholds.size > 2500 else 16)
    first = np.arange(guide.size, dtype=np.uint64) << np.uint64(64 - bits)
    last = first | np.uint64(2 ** (64 - bits) - 1)
    at_first = np.searchsorted(thresholds, first, side="left")
    after_last = np.searchsorted(thresholds, last, side="right")
    decided = guide != np.iinfo(np.int16).min
    assert (at_first[decided] == after_last[decided]).all()
    assert (guide[decided] == table._values[at_first[decided]]).all()
    assert (at_first[~decided] < after_last[~decided]).all()


def test_the_guide_leaves_values_open_that_do_not_fit_it():
    outcomes = np.array([-32768, 5, 40000])
    quarters = [ball(Fraction(1, 4)), ball(Fraction(3, 4))]
    wide = Table(lambda: iter(quarters), lambda position: outcomes[position])
    cells = wide._guide
    assert set(cells.tolist()) == {5, -32768}
    out = np.empty(4000, dtype=np.int64)
    wide.fill(out)
    assert set(out.tolist()) == {-32768, 5, 40000}


@pytest.mark.parametrize("name", ["laplace 20", "laplace 32", "gaussian 1000", "digit of 2**40"])
def test_long_and_short_arrays_agree_on_the_same_digits(name):
    table = made(name).table
    count = 20_000
    digits = np.frombuffer(np.random.default_rng(5).bytes(8 * count), dtype=np.uint64)
    word = 16 if table._guide.size == 2**16 else 32
    heads = (digits >> np.uint64(64 - word)).astype(f"u{word // 8}")
    open_ = table._guide[heads >> (word - table._guide.size.bit_length() + 1)] == -(2**15)
    replay = iter([heads.tobytes(), (digits[open_] << np.uint64(word)).tobytes()])
    out = np.empty(count, dtype=np.int64)
    with use_source(lambda _: next(replay)):
        table.fill(out)
    assert 0 < open_.sum() < count
    assert (out == table._invert(digits)).all()
    with use_recording(little(*digits[:200].tolist())):
        assert [table.draw_one() for _ in range(200)] == out[:200].tolist()


def test_cumulatives_can_be_read_again_from_any_position(law):
    once = list(islice(law.table._cumulatives(), 6))
    again = list(islice(law.table._cumulatives(), 6))
    assert all(a.overlaps(b) for a, b in zip(once, again, strict=True))


def test_tables_built_by_many_threads_at_once_are_right():
    """Arb's precision is one setting for the process: threads that build tables take turns."""
    scales = [Fraction(n, 7) for n in (3, 5, 8, 9, 10, 11)] * 3
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(laplace._two_sided.__wrapped__, scales))
    for scale, digits in zip(scales, built, strict=True):
        law = Law.of(digits.top, lambda n, s=scale: reference.laplace_blocks(s, 1, n))
        assert digits.top.thresholds.tolist() == law.thresholds()
