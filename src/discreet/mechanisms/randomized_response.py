"""Randomized response: noise in the answer of every respondent."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, enclose, log_up
from discreet.exact.numbers import Exact, failure_share, positive, proportion, whole
from discreet.mechanisms.grid import is_sequence, match_kind, require_names, set_fields, write_call
from discreet.noise import bernoulli, uniform_below
from discreet.noise.table import Table, draw_array

_MOST_CATEGORIES = 2**31


class Estimate(NamedTuple):
    """An unbiased estimate, the ``value``, and its ``standard_error``."""

    value: float
    standard_error: float


class _Response:
    """What both forms share: one probability for the truth, another for each other answer."""

    __slots__ = ()

    categories: int
    truthful: float
    """The probability of reporting the truth."""
    otherwise: float
    """The probability of each of the other answers."""

    def _draw_kept(self, size: int | None) -> Any:
        """Ones where the truth is reported, exactly as often as stated."""
        raise NotImplementedError

    def release(self, value: Any) -> Any:
        """The report of one respondent, or of each one in a list, tuple or array.

        ``value`` is the answer, or the answers. They are whole numbers below ``categories``, or
        booleans where there are two; reports are of the same kind.
        """
        if isinstance(value, np.ndarray):
            return self._reports(value)
        if is_sequence(value):
            codes = [_code(one, self.categories) for one in value]
            reports = self._reports(np.array(codes, dtype=np.int64)).tolist()
            kinds = zip(reports, value, strict=True)
            return match_kind(value, (bool(x) if isinstance(one, bool) else x for x, one in kinds))
        code = _code(value, self.categories)
        # Both draws are always made: how long a report takes must not tell whether it is true.
        away = 0 if self.categories == 2 else uniform_below(self.categories - 1)
        report = code if self._draw_kept(None) else (code + 1 + away) % self.categories
        return bool(report) if isinstance(value, bool | np.bool_) else report

    def _reports(self, answers: NDArray[Any]) -> NDArray[Any]:
        codes = _codes(answers, self.categories)
        lies = 1 - self._draw_kept(codes.size)
        if self.categories == 2:
            reports = codes.reshape(-1) ^ lies
        else:
            away = 1 + uniform_below(self.categories - 1, codes.size)
            reports = (codes.reshape(-1) + lies * away) % self.categories
        shaped: NDArray[np.int64] = reports.reshape(codes.shape)
        return shaped.astype(np.bool_) if answers.dtype.kind == "b" else shaped

    def estimate(self, reports: Any, subset: Collection[int] = (1,)) -> Estimate:
        """How many who sent these ``reports`` have a true answer in ``subset``, without bias.

        Any set of answers and any set of respondents (pass only their reports),
        as often as wanted: it is post-processing.  The standard error is that
        of the reports given the answers, at the estimated number of each kind.

        >>> survey = RandomizedResponse(epsilon=2, categories=4)
        >>> estimate = survey.estimate(survey.release([2] * 900 + [3] * 600), subset={2})
        >>> abs(estimate.value - 900) < 9 * estimate.standard_error
        True
        """
        wanted = {_code(one, self.categories) for one in subset}
        codes = _codes(np.asarray(reports), self.categories).reshape(-1)
        count, size = codes.size, len(wanted)
        hits = int(np.isin(codes, list(wanted)).sum())
        inside = self.truthful + (size - 1) * self.otherwise if size else 0.0
        outside = size * self.otherwise
        if size in (0, self.categories):
            return Estimate(float(hits), 0.0)
        value = (hits - count * outside) / (inside - outside)
        share = min(max(value, 0.0), float(count))
        variance = share * inside * (1 - inside) + (count - share) * outside * (1 - outside)
        return Estimate(value, math.sqrt(variance) / (inside - outside))

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, respondents: int
    ) -> float:
        """How far an estimated number is off, except with probability ``beta``: Hoeffding's bound.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``respondents`` is how many there
        are.

        Holds for every subset of the answers, whatever the truth is.
        """
        allowed = failure_share(beta, confidence)
        count = whole(respondents, name="respondents", least=1)
        spread = math.sqrt(count * float(log_up(2 / allowed)) / 2)
        return spread / (self.truthful - self.otherwise)


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class RandomizedResponse(_Response):
    """Report the true answer with probability e**epsilon / (e**epsilon + categories - 1).

    Definition:
        M(x) = x with probability e**epsilon / (e**epsilon + k - 1), and each of
        the k - 1 other answers with probability 1 / (e**epsilon + k - 1), where
        k is ``categories``, at least 2.

    Guarantee:
        ``epsilon``-differentially private for the respondent, who changes one
        answer into any other; no curator is trusted.  The bound is attained.

    Accuracy:
        ``estimate`` is unbiased for the number of respondents in any subset of
        the answers; ``margin`` bounds its error by
        sqrt(n ln(2 / beta) / 2) (e**epsilon + k - 1) / (e**epsilon - 1).

    Reference:
        Warner (1965); DMNS Example 1; DR 3.2; for k answers Kairouz, Oh and
        Viswanath (2014).

    Example:
        >>> survey = RandomizedResponse(epsilon="1/2", categories=5)
        >>> survey
        RandomizedResponse(epsilon='1/2', categories=5)
        >>> survey.loss.epsilon
        Fraction(1, 2)
        >>> survey.release(3) in range(5), len(survey.release([4, 2, 2, 3]))
        (True, 4)
        >>> round(survey.margin("0.05", respondents=10_000))
        1183
    """

    epsilon: Fraction
    categories: int
    truthful: float = field(init=False, compare=False)
    otherwise: float = field(init=False, compare=False)
    loss: Loss = field(init=False, compare=False)

    def __init__(self, *, epsilon: Exact, categories: int = 2) -> None:
        price = positive(epsilon, name="epsilon")
        count = _categories(categories)
        truthful, otherwise = (_middle(price, count, index) for index in (0, 1))
        loss = Loss.randomized_response(price) if count == 2 else Loss.pure(price)
        set_fields(self, epsilon=price, categories=count, loss=loss)
        set_fields(self, truthful=truthful, otherwise=otherwise)

    def __repr__(self) -> str:
        return write_call(self, epsilon=self.epsilon, categories=self.categories)

    def _draw_kept(self, size: int | None) -> Any:
        table = _truth_table(self.epsilon, self.categories)
        return table.draw_one() if size is None else draw_array(size, table.fill)

    def law(self, value: Any) -> FiniteLaw:
        """The exact law of the report of one respondent whose answer is ``value``."""
        code = _code(value, self.categories)

        def masses() -> list[arb]:
            truthful, otherwise = _masses(self.epsilon, self.categories)
            return [truthful if one == code else otherwise for one in range(self.categories)]

        return FiniteLaw(tuple(range(self.categories)), masses)


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class TwoCoinResponse(_Response):
    """Toss a coin: answer truthfully, or toss again and answer at random.

    Definition:
        With probability ``truth`` M(x) = x; otherwise M(x) is uniform over the
        k = ``categories`` answers, so it may be the truth even then.

    Guarantee:
        ln(1 + k truth / (1 - truth))-differentially private for the respondent;
        with fair coins and two answers that is ln 3.  The loss is that
        logarithm rounded up; the law itself is rational.

    Accuracy:
        As for ``RandomizedResponse``: an unbiased ``estimate`` with its standard
        error, and ``margin`` sqrt(n ln(2 / beta) / 2) / truth.

    Reference:
        DR 3.2 and Claim 3.5, with any coins and any number of answers.

    Example:
        >>> coins = TwoCoinResponse(truth="1/2")
        >>> coins.law(True).fractions
        (Fraction(1, 4), Fraction(3, 4))
        >>> round(float(coins.loss.epsilon), 6)                     # ln 3
        1.098612
        >>> [report in (True, False) for report in coins.release([True, False])]
        [True, True]
    """

    truth: Fraction
    categories: int
    truthful: float = field(init=False, compare=False)
    otherwise: float = field(init=False, compare=False)
    loss: Loss = field(init=False, compare=False)

    def __init__(self, *, truth: Exact, categories: int = 2) -> None:
        share = proportion(truth, name="truth")
        count = _categories(categories)
        otherwise = (1 - share) / count
        epsilon = log_up(1 + count * share / (1 - share))  # rounds up: never less private
        loss = Loss.randomized_response(epsilon) if count == 2 else Loss.pure(epsilon)
        set_fields(self, truth=share, categories=count, loss=loss)
        set_fields(self, truthful=float(share + otherwise), otherwise=float(otherwise))

    def __repr__(self) -> str:
        return write_call(self, truth=self.truth, categories=self.categories)

    def _draw_kept(self, size: int | None) -> Any:
        return bernoulli(self.truth + (1 - self.truth) / self.categories, size)

    def law(self, value: Any) -> FiniteLaw:
        """The exact law of the report of one respondent whose answer is ``value``: rational."""
        code = _code(value, self.categories)
        otherwise = (1 - self.truth) / self.categories
        return FiniteLaw.exact(
            (one, otherwise + self.truth if one == code else otherwise)
            for one in range(self.categories)
        )


def _masses(epsilon: Fraction, categories: int) -> tuple[arb, arb]:
    """The probabilities of the truth and of each other answer, at the precision in force."""
    small = ball(-epsilon).exp()
    total = 1 + (categories - 1) * small
    return 1 / total, small / total


def _middle(epsilon: Fraction, categories: int, index: int) -> float:
    low, high = enclose(lambda: _masses(epsilon, categories)[index])
    return float((low + high) / 2)


@lru_cache(maxsize=128)
def _truth_table(epsilon: Fraction, categories: int) -> Table:
    def cumulatives() -> Iterator[arb]:
        yield _masses(epsilon, categories)[0]

    return Table(cumulatives, lambda position: 1 - position)


def _categories(categories: object) -> int:
    count = whole(categories, name="categories", least=2)
    if count > _MOST_CATEGORIES:
        raise InvalidParameter(
            "P2",
            f"categories must be at most 2**31, got {count}.",
            why="more answers than that cannot be told apart in the arithmetic of reports.",
            fix="hash the answers into fewer categories first.",
        )
    return count


def _code(value: Any, categories: int) -> int:
    if isinstance(value, bool | np.bool_):
        if categories == 2:
            return int(value)
    elif isinstance(value, numbers.Integral) and 0 <= int(value) < categories:
        return int(value)
    raise _not_an_answer(categories)


def _codes(answers: NDArray[Any], categories: int) -> NDArray[np.int64]:
    kind = answers.dtype.kind
    if not answers.size:
        return np.zeros(answers.shape, dtype=np.int64)
    if kind == "b" and categories == 2:
        return answers.astype(np.int64)
    if kind in "iu" and int(answers.min()) >= 0 and int(answers.max()) < categories:
        return answers.astype(np.int64)
    raise _not_an_answer(categories)


def _not_an_answer(categories: int) -> InvalidParameter:
    return InvalidParameter(
        "P6",
        f"an answer is not a whole number from 0 to {categories - 1}.",
        why="a report outside the declared answers would say who gave it.",
        fix="number the answers from 0, or pass booleans where there are two.",
    )
