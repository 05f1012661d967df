"""Exact numbers in, certified bounds out, and rounding on purpose."""

from __future__ import annotations

import decimal
import math
import os
import signal
import threading
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st
from patience import PATIENCE_S

from discreet.errors import InvalidParameter
from discreet.exact import balls, numbers

fractions = st.fractions(max_denominator=10**12)
positives = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)


# --- numbers in ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, Fraction(3)), (np.int8(-3), Fraction(-3)), (2**200, Fraction(2**200)),
        (0.1, Fraction(1, 10)), (1e22, Fraction(10**22)), (-2.5e-7, Fraction(-1, 4 * 10**6)),
        (np.float64(0.1), Fraction(1, 10)), (np.float32(0.1), Fraction(1, 10)),
        (5e-324, Fraction(5, 10**324)), (-0.0, Fraction(0)),
        ("0.25", Fraction(1, 4)), (" 2/3 ", Fraction(2, 3)), ("-1e-3", Fraction(-1, 1000)),
        ("+.5", Fraction(1, 2)), ("5.", Fraction(5)), ("1E+3", Fraction(1000)),
        ("-7/21", Fraction(-1, 3)), ("3/007", Fraction(3, 7)),
        (Decimal("0.1"), Fraction(1, 10)), (Decimal("1E+3"), Fraction(1000)),
        (Fraction(22, 7), Fraction(22, 7)),
    ],
)  # fmt: skip
def test_the_number_that_was_meant(value, expected):
    assert numbers.fraction(value) == expected
    assert type(numbers.fraction(value)) is Fraction


@pytest.mark.parametrize(
    "value",
    [
        math.nan, math.inf, -math.inf, np.float32("nan"), Decimal("NaN"), Decimal("-Infinity"),
        True, np.True_, None, [], (1,), 1j, b"1", object(), "", "one", "1/0", "1/00", "0x10",
        "1_000", "1 000", "1,5", "1e", "--1", "1/2/3", "1/-2", "e5", ".", "inf", "nan", "٣",
        "1e99999", "9" * 5000, Decimal("1e1000000"), Decimal("1e-1000000"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InvalidParameter) as refusal:
        numbers.fraction(value, name="epsilon")
    assert refusal.value.code == "P1"
    assert "epsilon" in refusal.value.what
    assert len(str(refusal.value)) < 500


def test_what_was_typed_is_told_how_to_write_it():
    with pytest.raises(InvalidParameter, match=r"Fix: write epsilon as 0.25, .* with a point\."):
        numbers.fraction("0,1", name="epsilon")
    with pytest.raises(InvalidParameter, match="Fix: pass epsilon as an int, a Fraction"):
        numbers.fraction([], name="epsilon")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_its_shortest_decimal(x):
    number = numbers.fraction(x)
    assert float(number) == x
    assert number == Fraction(Decimal(repr(x)))


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (numbers.positive, ["1e-300", 3], [0, -1, "-1e-300", -(10**5000)]),
        (numbers.nonnegative, [0, "1e-300"], [-1, "-1e-300"]),
        (numbers.proportion, ["0.5", "1e-300", "0.999"], [0, 1, -1, "1.0001"]),
    ],
)
def test_domains(check, good, bad):
    for value in good:
        assert check(value, name="beta") == numbers.fraction(value)
    for value in bad:
        with pytest.raises(InvalidParameter, match="P2: beta must"):
            check(value, name="beta")


@pytest.mark.parametrize(
    ("name", "example"),
    [("delta", "1e-9"), ("confidence", "0.95"), ("power", "0.9"), ("beta", "0.05")],
)
def test_each_probability_has_an_example_of_its_own(name, example):
    """Nobody is told to fail one person in twenty."""
    with pytest.raises(InvalidParameter) as refused:
        numbers.proportion(7, name=name)
    assert refused.value.fix == f"pass {name} as a probability such as '{example}'."


def test_a_closed_proportion_admits_its_ends():
    assert numbers.proportion(0, name="p", closed=True) == 0
    assert numbers.proportion(1, name="p", closed=True) == 1
    for value in (-1, "1.1"):
        with pytest.raises(InvalidParameter, match="from 0 to 1"):
            numbers.proportion(value, name="p", closed=True)


def test_a_secret_is_not_quoted():
    for check, value in [(numbers.fraction, "31337x"), (numbers.nonnegative, -31337)]:
        with pytest.raises(InvalidParameter) as open_text:
            check(value, name="x")
        assert "31337" in str(open_text.value)
        with pytest.raises(InvalidParameter) as refusal:
            check(value, name="x", secret=True)
        assert "31337" not in str(refusal.value)


def test_whole_numbers():
    assert numbers.whole(np.int64(7), name="k") == 7
    assert type(numbers.whole(np.int64(7), name="k")) is int
    for value in (2, 2.0, "3", True, None, -(10**5000)):
        with pytest.raises(InvalidParameter, match="P2: k must be a whole number of at least 3"):
            numbers.whole(value, name="k", least=3)


# --- certified bounds ------------------------------------------------------------------------


@given(st.fractions(min_value=-50, max_value=50))
def test_exp_is_enclosed(x):
    low, high = balls.exp_bounds(x, bits=80)
    with decimal.localcontext() as context:
        context.prec = 60
        true = Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())
    slack = true / 10**50
    assert low - slack <= true <= high + slack
    assert (high - low) * 2**80 <= high
    assert balls.exp_down(x, bits=80) == low
    assert balls.exp_up(x, bits=80) == high


@given(positives)
@example(Fraction(1))
@example(1 + Fraction(1, 10**30))
def test_log_is_enclosed(x):
    low, high = balls.log_bounds(x)
    assert balls.exp_down(low) <= x <= balls.exp_up(high)
    assert (high - low) * 2**64 <= max(abs(low), abs(high))
    assert (balls.log_down(x), balls.log_up(x)) == (low, high)


@given(st.fractions(min_value=0, max_value=10**12))
@example(Fraction(0))
@example(Fraction(49, 81))
def test_sqrt_is_enclosed(x):
    low, high = balls.sqrt_bounds(x)
    assert low**2 <= x <= high**2
    assert low >= 0
    assert (high - low) * 2**64 <= high
    assert (balls.sqrt_down(x), balls.sqrt_up(x)) == (low, high)


@given(fractions)
def test_sqrt_of_a_rational_square_is_itself(x):
    assert balls.sqrt_bounds(x**2) == (abs(x), abs(x))


def test_exponents_that_nobody_could_write_out():
    assert balls.exp_bounds(Fraction(-(10**30))) == (0, Fraction(1, 2 ** (2**20)))
    for x in (2**20 + 1, 10**5000):
        with pytest.raises(InvalidParameter, match="P2: the exponent"):
            balls.exp_up(Fraction(x))
    low, high = balls.exp_bounds(Fraction(-(2**20)))
    assert 0 < low < high < Fraction(1, 2 ** (2**20))
    with pytest.raises(ArithmeticError, match="too large or too small"):
        balls.enclose(lambda: balls.ball(Fraction(10**12)).exp())


@pytest.mark.parametrize("bad", [0, -2])
def test_log_and_sqrt_outside_their_domain(bad):
    with pytest.raises(InvalidParameter):
        balls.log_bounds(Fraction(bad))
    with pytest.raises(InvalidParameter):
        balls.sqrt_bounds(Fraction(bad) - 1)


def test_an_enclosure_narrows_until_it_is_good_enough():
    asked = []

    def cancelling():
        asked.append(ctx.prec)
        return balls.ball(Fraction(1, 10**40)).exp() - 1

    low, high = balls.enclose(cancelling, bits=64)
    assert len(asked) > 1
    assert low <= Fraction(1, 10**40) + Fraction(1, 2 * 10**80) <= high
    assert high - low < Fraction(1, 10**59)


def test_zero_is_exact_or_given_up(monkeypatch):
    assert balls.enclose(lambda: arb(0)) == (0, 0)
    monkeypatch.setattr(balls, "_MOST_BITS", 1 << 12)  # the same, without the wait
    with pytest.raises(ArithmeticError, match="does not narrow"):
        balls.enclose(lambda: balls.ball(2).sqrt() ** 2 - 2)
    with pytest.raises(ArithmeticError, match="lies on the grid"):
        balls.floor_scaled(lambda: balls.ball(2).sqrt() ** 2 / 4, 64)
    with pytest.raises(ArithmeticError):
        balls.enclose(lambda: arb(1) / arb(0))


def test_giving_up_takes_seconds_and_not_minutes():
    with pytest.raises(ArithmeticError):
        balls.enclose(lambda: balls.ball(2).sqrt() ** 2 - 2)


@given(st.fractions(min_value=Fraction(1, 100), max_value=40), st.integers(10, 200))
def test_floor_scaled(x, bits):
    if x != 0:
        found = balls.floor_scaled(lambda: balls.ball(-x).exp(), bits)
        low, high = balls.exp_bounds(-x, bits=bits + 40)
        assert math.floor(low * 2**bits) <= found <= math.floor(high * 2**bits)
        assert found <= high * 2**bits
        assert found + 1 > low * 2**bits


def test_the_precision_is_restored_and_not_shared():
    before = ctx.prec
    with suppress(ZeroDivisionError), balls.precision(300):
        assert ctx.prec == 300
        with balls.precision(100):
            assert ctx.prec == 100
        assert ctx.prec == 300
        1 / 0  # noqa: B018
    assert ctx.prec == before


def test_threads_take_turns_at_the_precision():
    """Each thread checks that nobody changes its precision under its feet."""
    disturbed = []

    def work(bits: int) -> None:
        for _ in range(200):
            with balls.precision(bits):
                for _ in range(5):
                    balls.ball(Fraction(1, 3)).exp()
                    if ctx.prec != bits:
                        disturbed.append(bits)

    threads = [threading.Thread(target=work, args=(bits,)) for bits in (64, 90, 128, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert disturbed == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_computes_is_not_locked_out():
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with balls.precision(77):
            inside.set()
            leave.wait(PATIENCE_S)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(PATIENCE_S)
    threading.Timer(0.2, leave.set).start()
    child = os.fork()  # waits until the other thread has left
    if child == 0:
        signal.alarm(int(PATIENCE_S))  # a child that is locked out dies instead of waiting for ever
        with balls.precision(99):
            os._exit(0 if balls.exp_up(Fraction(1)) > 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    with balls.precision(70):
        pass


# --- rounding on purpose ---------------------------------------------------------------------


@given(fractions, positives)
def test_up_and_down_are_the_nearest_multiples_on_their_side(x, unit):
    above, below = numbers.round_up(x, unit), numbers.round_down(x, unit)
    assert (above / unit).denominator == (below / unit).denominator == 1
    assert x <= above < x + unit
    assert x - unit < below <= x


@pytest.mark.parametrize("unit", [0, Fraction(-1, 4)])
def test_a_unit_is_positive(unit):
    for rounded in (numbers.round_up, numbers.round_down):
        with pytest.raises(InvalidParameter, match="P2: unit"):
            rounded(Fraction(7, 10), unit)


@given(st.fractions())
@example(Fraction(0))
@example(Fraction(1, 10**400))
@example(Fraction(10) ** 400)
@example(-(Fraction(10) ** 400))
def test_floats_round_to_their_side_and_no_further(x):
    above, below = numbers.float_up(x), numbers.float_down(x)
    assert below <= x <= above
    assert math.nextafter(above, -math.inf) < x
    assert math.nextafter(below, math.inf) > x
    assert math.copysign(1, numbers.float_down(Fraction(0))) == 1


@given(st.fractions(), st.integers(1, 40))
@example(Fraction(10**6 - 1), 3)
@example(Fraction(10**17), 6)
@example(Fraction(10**400 - 1, 10**200), 5)
@example(Fraction(1, 10**300), 5)
@example(Fraction(-1, 3), 4)
def test_a_printed_loss_is_never_less_than_the_loss(x, digits):
    text = numbers.decimal_up(x, digits)
    printed = Fraction(text)
    assert x <= printed
    if x:
        unit = Fraction(10) ** (
            math.floor(math.log10(abs(x.numerator)) - math.log10(x.denominator)) + 1
        )
        assert printed - x < 2 * unit / Fraction(10) ** (digits - 1)
        mantissa = text.lstrip("-").split("e")[0].replace(".", "").strip("0")
        assert len(mantissa) <= digits + 1


@pytest.mark.parametrize(
    ("x", "digits", "text"),
    [
        (Fraction(1, 3), 4, "0.3334"), (Fraction(-1, 3), 4, "-0.3333"),
        (Fraction(1000), 2, "1000"), (Fraction(1001), 2, "1100"), (Fraction(999999), 2, "1000000"),
        (Fraction(1, 1000), 3, "0.001"), (Fraction(1, 10**12), 3, "1e-12"),
        (Fraction(10**30 + 1), 3, "1.01e+30"), (Fraction(5, 4), 6, "1.25"),
    ],
)  # fmt: skip
def test_printed_losses(x, digits, text):
    assert numbers.decimal_up(x, digits) == text


def test_a_printed_loss_does_not_depend_on_the_decimal_context():
    expected = numbers.decimal_up(Fraction(1234567, 10**6), 6)
    for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_HALF_EVEN):
        with decimal.localcontext() as context:
            context.prec, context.rounding, context.Emax = 2, rounding, 3
            assert numbers.decimal_up(Fraction(1234567, 10**6), 6) == expected == "1.23457"
