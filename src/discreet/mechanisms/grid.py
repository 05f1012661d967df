"""What mechanisms on numbers share: the public grid, where real numbers become whole before noise.

A grid is the multiples of one power of two.  It is part of the mechanism and
public; every released number is a multiple of it, so the last digits of an
answer say nothing about the data (Mironov 2012 is the attack this prevents).
Scaling by a power of two is exact in doubles, and so is the rounding here.

Rounding moves values, so it can move two neighbouring values apart.  How far is
Lemma 1 of ``docs/proofs/laplace.md`` for sums of distances, and Lemma 2 for
sums of squares.  Both need a rounding that commutes with shifts by whole steps:
halves go up.  Rounding halves to even would not do: 1/2 and 3/2 are one step
apart and would become 0 and 2.

Before the grid stands what every mechanism shows, how it is made and writes itself down.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import sqrt_up
from discreet.exact.numbers import Exact, fraction, positive
from discreet.exact.records import dataclass

T = TypeVar("T")


class Mechanism(Protocol):
    """The common surface: what it costs, and how it answers."""

    @property
    def loss(self) -> Loss:
        """What one release costs one unit, under add/remove neighbours."""
        ...

    def release(self, value: Any, /) -> Any:
        """The value with noise, of the same kind as it came in."""
        ...


def require_names(cls: type[T]) -> type[T]:
    """Refuse, in the words of this house, arguments that a class cannot be made with.

    >>> from discreet.mechanisms import Gaussian
    >>> Gaussian(2, rho="1/8")
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: P4: Gaussian is not made with these arguments: too many \
positional arguments.
    Why: whether a number is the sensitivity or the price must be beyond doubt.
    Fix: name them: Gaussian(rho=..., sensitivity=..., sensitivity_squared=..., grid=..., \
entries_changed=..., epsilon=..., delta=...).
    """
    make: Callable[..., None] = vars(cls)["__init__"]

    @wraps(make)
    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        try:
            make(self, *args, **named)
        except TypeError:
            refusal = find_misfit(cls, make, self, args, named)
            if refusal is None:  # the arguments fit: something else is wrong
                raise
        else:
            return
        raise refusal

    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


def find_misfit(
    cls: type, make: Callable[..., None], self: Any, args: Any, named: Any
) -> InvalidParameter | None:
    """A refusal of arguments that do not fit; None if they do, and something else is wrong."""
    import inspect  # only where something is wrong

    signature = inspect.signature(make)
    try:
        signature.bind(self, *args, **named)
    except TypeError as error:
        parameters = list(signature.parameters.values())[1:]
        listed = ", ".join(
            one.name if one.kind is one.POSITIONAL_OR_KEYWORD else f"{one.name}=..."
            for one in parameters
        )
        return InvalidParameter(
            "P4",
            f"{cls.__name__} is not made with these arguments: {error}.",
            why="whether a number is the sensitivity or the price must be beyond doubt.",
            fix=f"name them: {cls.__name__}({listed}).",
        )
    return None


def set_fields(mechanism: object, **fields: object) -> None:
    """Set the fields of a frozen object, once, while it is being made."""
    for name, value in fields.items():
        object.__setattr__(mechanism, name, value)


def match_kind(value: Any, items: Iterable[Any]) -> list[Any] | tuple[Any, ...]:
    """``items`` as a tuple if ``value`` is one, else as a list."""
    return tuple(items) if isinstance(value, tuple) else list(items)


def is_sequence(value: object) -> bool:
    """Whether ``value`` holds several numbers, apart from arrays."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def write_call(mechanism: object, **fields: object) -> str:
    """A ``repr`` that reads like the call that made the object; ``None`` is left out.

    >>> write_call(Fraction(3, 4), sensitivity=Fraction(3), epsilon=Fraction(1, 4), grid=None)
    "Fraction(sensitivity=3, epsilon='1/4')"
    """
    shown = ", ".join(
        f"{name}={_text(field)}" for name, field in fields.items() if field is not None
    )
    return f"{type(mechanism).__name__}({shown})"


def _text(field: object) -> str:
    if isinstance(field, Fraction):
        return str(field) if field.denominator == 1 else repr(str(field))
    return repr(field)


Integers = NDArray[np.int64]

LEAST, GREATEST = -(2**63), 2**63 - 1
"""The ends of 64-bit integers, where arrays saturate."""

_FURTHEST = 900


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Grid:
    """The multiples of ``step``, a power of two.

    >>> grid = Grid("1/1024")
    >>> grid.snap(2.5), grid.snap(Fraction(5, 3))
    (2560, 1707)
    >>> grid.lift(2560, like=2.5)
    2.5
    >>> grid.steps("0.7", entries_changed=3)
    719
    """

    step: Fraction
    exponent: int = field(init=False, compare=False)
    reach: float = field(init=False, compare=False)
    """Doubles below this size are certainly within 2**63 steps."""

    def __init__(self, step: Exact) -> None:
        exact = positive(step, name="step")
        exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
        if exact != Fraction(2) ** exponent or abs(exponent) > _FURTHEST:
            raise InvalidParameter(
                "P2",
                f"a grid's step must be a power of two from 2**-900 to 2**900, got {exact}.",
                why="only scaling by a power of two is exact in binary arithmetic, and inexact "
                "scaling would let the last digits of an answer tell the data apart.",
                fix="pass a step such as '1/1024', 0.25 or 8.",
            )
        set_fields(self, step=exact, exponent=exponent, reach=math.ldexp(1.0, exponent + 62))

    def __repr__(self) -> str:
        return f"Grid({str(self.step)!r})" if self.step.denominator > 1 else f"Grid({self.step})"

    def snap(self, value: Any) -> Any:
        """The multiple nearest to ``value``, in steps, halves up: an int, or int64s for an array.

        Refused, without saying which value, if a value is not finite or is
        further than 2**63 steps from zero.  That refusal depends on the data:
        :meth:`clip` first is total.
        """
        if isinstance(value, np.ndarray):
            return _array_steps(value, self)
        return _scalar_steps(value, self)

    def lift(self, steps: Any, *, like: Any) -> Any:
        """``steps`` as a number of the kind of ``like``: floats for floats, else exact fractions.

        Always a multiple of the step: doubles beyond 2**53 steps are as well,
        because the distance between them is at least one step.
        """
        if isinstance(steps, np.ndarray):
            return np.ldexp(steps.astype(np.float64), self.exponent)
        if isinstance(like, float | np.floating):
            return math.ldexp(float(steps), self.exponent)
        return steps * self.step

    def clip(self, value: Any, *, lower: Exact, upper: Exact) -> Any:
        """``value`` between two bounds (put on the grid first); whatever is not a number is lower.

        The bounds are ``lower`` and ``upper``.

        Total: every value has a result, so that nothing about it can be told
        from a refusal.

        >>> Grid("1/4").clip([2.0, float("nan"), float("inf")], lower=-3, upper="5/2")
        [2.0, -3.0, 2.5]
        """
        ends = fraction(lower, name="lower"), fraction(upper, name="upper")
        low, high = (self.snap(end) * self.step for end in ends)
        if low > high:
            raise InvalidParameter(
                "P4",
                f"lower {low} is above upper {high}.",
                why="no value lies between them.",
                fix="pass lower and upper in order.",
            )
        if isinstance(value, np.ndarray):
            return _clip_array(value, low, high)
        if is_sequence(value):
            return match_kind(value, (self.clip(one, lower=low, upper=high) for one in value))
        return _clip_scalar(value, low, high)

    def steps(self, sensitivity: Exact, *, entries_changed: int) -> int:
        """The greatest sum of distances, in steps, after snapping; Lemma 1, attained.

        ``sensitivity`` is that sum before snapping, ``entries_changed`` how many entries one unit
        changes.
        """
        exact = positive(sensitivity, name="sensitivity")
        return math.ceil(exact / self.step) + entries_changed - 1

    def steps_squared(self, sensitivity_squared: Exact, *, entries_changed: int) -> int:
        """A bound on the sum of squared distances, in steps, after snapping; Lemma 2.

        ``sensitivity_squared`` is that sum before snapping, ``entries_changed`` how many entries
        one unit changes.
        """
        exact = positive(sensitivity_squared, name="sensitivity_squared") / self.step**2
        if entries_changed == 1:
            return (math.isqrt(math.ceil(exact) - 1) + 1) ** 2
        return math.floor(exact + entries_changed + 2 * sqrt_up(exact * entries_changed))


def add_noise(
    value: Any, grid: Grid | None, draw: Callable[[int | None], Any], *, exact: bool = False
) -> Any:
    """``value`` plus an independent draw in every entry, of the same kind as it came in.

    Python integers grow as they must, in arrays of dtype object as well; arrays of
    64-bit integers (unless ``exact``), and everything on a grid, saturate at the ends.
    Saturating is post-processing of a sum that never wraps: neither an overflow
    nor an error can tell neighbours apart.
    """
    value = read_array(value)
    if isinstance(value, np.ndarray):
        steps = _array_steps(value, grid)
        flat, noise = steps.reshape(-1), draw(steps.size)
        add = exact_sum if (exact and grid is None) or flat.dtype == object else saturating_sum
        noisy = add(flat, noise).reshape(steps.shape)
        return noisy if grid is None else grid.lift(noisy, like=noisy)
    if is_sequence(value):
        whole = [_scalar_steps(one, grid) for one in value]
        sums = map(_sum(grid), whole, draw(len(whole)).tolist())
        if grid is None:
            return match_kind(value, sums)
        lifted = (grid.lift(total, like=one) for total, one in zip(sums, value, strict=True))
        return match_kind(value, lifted)
    total = _sum(grid)(_scalar_steps(value, grid), draw(None))
    return total if grid is None else grid.lift(total, like=value)


def read_array(value: Any) -> Any:
    """What calls itself an array (a series of pandas, say) as numpy's; all else as it is."""
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__array__"):
        return value
    try:
        return np.asarray(value)
    except Exception:  # whatever another library says of it may quote the data
        return value


def to_steps(value: Any, grid: Grid | None) -> list[int] | int:
    """The whole numbers that noise is added to: one for a scalar, a flat list otherwise."""
    value = read_array(value)
    if isinstance(value, np.ndarray):
        return [int(one) for one in _array_steps(value, grid).reshape(-1)]
    if is_sequence(value):
        return [_scalar_steps(one, grid) for one in value]
    return _scalar_steps(value, grid)


def count_entries(value: Any) -> int:
    """How many numbers ``value`` holds."""
    value = read_array(value)
    if isinstance(value, np.ndarray):
        return value.size
    return len(value) if is_sequence(value) else 1


def saturating_sum(values: Integers, noise: Integers) -> Integers:
    """Elementwise sum that stops at the ends of 64-bit integers instead of wrapping.

    >>> saturating_sum(np.array([2**63 - 5, 40]), np.array([9, 2])).tolist()
    [9223372036854775807, 42]
    """
    total = values + noise
    # Two's complement: the sum overflowed where its sign differs from both signs.
    wrapped = ((values ^ total) & (noise ^ total)) < 0
    if wrapped.any():
        total[wrapped] = np.where(values[wrapped] < 0, LEAST, GREATEST)
    return total


def exact_sum(values: NDArray[Any], noise: Integers) -> NDArray[Any]:
    """Elementwise sum in Python's integers, which grow as they must.

    >>> exact_sum(np.array([2**63 - 5, 40]), np.array([9, 2])).tolist()
    [9223372036854775812, 42]
    """
    if values.dtype == object:
        grown: NDArray[Any] = values + noise.astype(object)
        return grown
    total = values + noise
    exact = total.astype(object)
    wrapped = ((values ^ total) & (noise ^ total)) < 0  # as in saturating_sum
    if wrapped.any():
        exact[wrapped] = values[wrapped].astype(object) + noise[wrapped].astype(object)
    return exact


def _sum(grid: Grid | None) -> Callable[[int, int], int]:
    if grid is None:
        return int.__add__
    return lambda steps, noise: min(max(steps + noise, LEAST), GREATEST)


def _clip_scalar(value: Any, low: Fraction, high: Fraction) -> float | Fraction:
    if isinstance(value, float | np.floating):
        double = float(value)
        return float(low) if math.isnan(double) else min(max(double, float(low)), float(high))
    if isinstance(value, Decimal) and value.is_infinite():
        return high if value > 0 else low
    number = _exact_number(value)
    return low if number is None else min(max(number, low), high)


def _clip_array(values: NDArray[Any], low: Fraction, high: Fraction) -> NDArray[Any]:
    if values.dtype.kind in "iu":  # stays whole: doubles would round what is beyond 2**53
        least = min(max(math.ceil(low), LEAST), GREATEST)
        most = min(max(math.floor(high), least), GREATEST)
        wholes: Integers = np.clip(_to_signed(values), least, most)
        return wholes
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            doubles = values.astype(np.float64)
    else:
        listed = [float(_clip_scalar(value, low, high)) for value in values.reshape(-1).tolist()]
        doubles = np.array(listed, dtype=np.float64).reshape(values.shape)
    doubles[np.isnan(doubles)] = float(low)
    clipped: NDArray[np.float64] = np.clip(doubles, float(low), float(high))
    return clipped


def _exact_number(value: Any) -> Fraction | None:
    """The number a scalar holds, a double exactly as stored; ``None`` if it is no finite number."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, numbers.Rational):
        return Fraction(value)
    if isinstance(value, float | np.floating):
        return Fraction(float(value)) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else None
    return None


def _scalar_steps(value: Any, grid: Grid | None) -> int:
    if grid is None:
        if type(value) is int:
            return value
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            return int(value)
        raise _not_whole(value)
    if type(value) is float and abs(value) < grid.reach:  # as for arrays, and as exact
        scaled = math.ldexp(value, -grid.exponent)
        below = math.floor(scaled)
        return below + (scaled - below >= 0.5)
    number = _exact_number(value)
    if number is None:
        raise _off_grid(grid)
    steps = math.floor(number / grid.step + Fraction(1, 2))
    if not LEAST <= steps <= GREATEST:
        raise _off_grid(grid)
    return steps


def _array_steps(values: NDArray[Any], grid: Grid | None) -> NDArray[Any]:
    kind = values.dtype.kind
    if grid is None:
        if kind == "O":
            return _wholes(values)
        if kind not in "iu":
            raise _not_whole(values)
        return _to_signed(values)
    if kind in "iu":
        return _shift_to_grid(_to_signed(values), grid)
    if kind != "f" or values.dtype.itemsize > 8:
        raise _off_grid(grid)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.ldexp(values.astype(np.float64), -grid.exponent)
        below = np.floor(scaled)
        # Exact: the fractional part of a double is a double, or rounds to one at least 1/2.
        nearest = below + (scaled - below >= 0.5)
        if not np.all((nearest >= float(LEAST)) & (nearest < -float(LEAST))):
            raise _off_grid(grid)
    return nearest.astype(np.int64)


def _wholes(values: NDArray[Any]) -> NDArray[Any]:
    """An array of Python's integers, which have any size; numpy's are turned into them."""
    listed = values.reshape(-1).tolist()
    if set(map(type, listed)) <= {int}:
        return values
    exact = np.empty(len(listed), dtype=object)
    exact[:] = [_scalar_steps(one, None) for one in listed]
    return exact.reshape(values.shape)


def _to_signed(values: NDArray[Any]) -> Integers:
    """Any integers as 64-bit ones; the largest saturate, which never moves two values apart."""
    if values.dtype.kind == "u":
        values = np.minimum(values, np.uint64(GREATEST))
    return values.astype(np.int64, copy=False)


def _shift_to_grid(values: Integers, grid: Grid) -> Integers:
    if grid.exponent > 0:
        if grid.exponent > 63:  # every 64-bit integer is nearest to zero
            return np.zeros_like(values)
        halves = values >> (grid.exponent - 1)
        return (halves >> 1) + (halves & 1)
    reach = GREATEST >> min(-grid.exponent, 63)
    if values.size and (int(values.min()) < -reach - 1 or int(values.max()) > reach):
        raise _off_grid(grid)
    return values << min(-grid.exponent, 63)


def _not_whole(value: Any) -> InvalidParameter:
    why, fix = _why_not_whole(value)
    return InvalidParameter(
        "P6",
        "the value to release must be a whole number, or a sequence or array of them.",
        why=why,
        fix=fix,
    )


def _why_not_whole(value: Any) -> tuple[str, str]:
    """What is wrong with a value by its kind, and what to do; of an array by its type alone."""
    kind = value.dtype.kind if isinstance(value, np.ndarray | np.generic) else ""
    if isinstance(value, str | bytes) or kind in tuple("SUT"):
        return (
            "noise is added to numbers, and this is text, which would pass through as it is.",
            "count first, and release the counts; one of several words is chosen by "
            "ExponentialMechanism.",
        )
    if isinstance(value, bool) or kind == "b":
        return (
            "a truth value is one person's answer, and what is read as 0 or 1 by mistake has a "
            "sensitivity that nobody thought of.",
            "pass int(value), or astype(int) of an array, if 0 and 1 are meant; a single answer "
            "is hidden by RandomizedResponse.",
        )
    if kind == "f" or isinstance(value, numbers.Number):
        if isinstance(value, float | np.floating | Decimal) and _exact_number(value) is None:
            return (
                "it is not a number, or infinite: noise would leave it as it is, and that it came "
                "about tells of the data.",
                "leave out what is missing, or clip it: grid.clip(values, lower=..., upper=...).",
            )
        return (
            "noise on whole numbers hides a change of whole numbers only; the digits after the "
            "point would pass through untouched and name the person.",
            "state a public grid, such as grid=Grid('1/1024'), and real values are put on it.",
        )
    return (
        "noise is added to numbers, and this is none: what is missing, or of another kind, would "
        "pass through as it is.",
        "pass whole numbers: an int, a list or tuple of them, an array or a series.",
    )


def _off_grid(grid: Grid) -> InvalidParameter:
    return InvalidParameter(
        "P6",
        f"a value is not a finite number within 2**63 steps of {grid!r}.",
        why="there is no place for it on the public grid, and a value left off the grid would be "
        "released without noise that covers it.",
        fix="clip first, which answers for every value: grid.clip(values, lower=..., upper=...).",
    )
