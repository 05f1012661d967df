"""Expressions of block columns, computed on every block at once as the engine would.

A value that depends on block columns alone is the same for all rows of a unit,
and known for each block.  It is an array with one dimension for each block
column, of length one where the value does not depend on that column.  What is
not certain to be what the engine computes is not known (None): then every
outcome is taken to be possible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Domain, Kind, Value
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import FUNCTIONS, domain_of_literal
from discreet.question.functions.declaration import (
    Function,
    Plain,
    as_engine,
    common_kind,
    constant,
    union,
)
from discreet.question.functions.interpret import result_of

Objects = npt.NDArray[np.object_]
Mask = npt.NDArray[np.bool_]

MOST_VALUES = 20_000
"""How many values of a computed expression are worked out; beyond, it is not understood.

Enough for each day of half a century, and NULL.
"""

_EXACT = 2**53
_WIDER = {Kind.INTEGER: Kind.DECIMAL, Kind.DATE: Kind.TIMESTAMP}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A value on each block as the engine has it, and its domain; NULL is None.

    The same value is the same object, so that what is computed of it is
    remembered from one question to the next.
    """

    values: Objects
    domain: Domain

    def of_kind(self, kind: Kind) -> Objects:
        """The values as the engine has them where ``kind`` is computed."""
        if _WIDER.get(self.domain.kind) is kind and not self.domain.is_null:
            return _each(lambda v: as_engine(v, kind), self.values)
        return self.values


R = TypeVar("R")


def memoize(function: Callable[..., R]) -> Callable[..., R]:
    """The function, which remembers its last results unless they are large."""
    cached = lru_cache(maxsize=256)(function)

    @wraps(function)
    def either(*arguments: Any) -> R:
        large = any(isinstance(a, Known) and a.values.size > MOST_VALUES for a in arguments)
        return function(*arguments) if large else cached(*arguments)

    return either


@memoize
def find_nulls(value: Known) -> Mask:
    """Where the value is NULL."""
    missing = np.empty((1,) * value.values.ndim, dtype=object)
    return np.equal(value.values, missing).astype(np.bool_)


Columns = Mapping[str, Known]


def evaluate_on_blocks(expression: Expression, columns: Columns, dimensions: int) -> Known | None:
    """What ``expression`` is on each block, if it depends on ``columns`` alone."""
    match expression:
        case ColumnRef(name=name):
            return columns.get(name)
        case Literal(value=value):
            return _constant(type(value).__name__, value, dimensions)
        case Call(function="if", arguments=(condition, a, b)):
            return evaluate_on_blocks(Case(((condition, a),), b), columns, dimensions)
        case Call(function=name, arguments=arguments):
            parts = _evaluate_all(arguments, columns, dimensions)
            return None if parts is None else _call(name, *parts)
        case Case():
            return _case(expression, columns, dimensions)


@lru_cache(maxsize=1024)
def _constant(_: str, value: Value | None, dimensions: int) -> Known:
    """A constant, by its type too: true is not one."""
    domain = domain_of_literal(value)
    single = np.empty((1,) * dimensions, dtype=object)
    single[...] = as_engine(value, domain.kind)
    return Known(single, domain)


def _evaluate_all(
    expressions: Sequence[Expression], columns: Columns, dimensions: int
) -> list[Known] | None:
    found: list[Known] = []
    for expression in expressions:
        value = evaluate_on_blocks(expression, columns, dimensions)
        if value is None:
            return None
        found.append(value)
    return found


@memoize
def _call(name: str, *parts: Known) -> Known | None:
    function = FUNCTIONS[name]
    domains = tuple(part.domain for part in parts)
    try:
        if name in _COMPARE:  # true, false or NULL: the values say which, and the domain need not
            return Known(_compare(_COMPARE[name], *parts), function.domain(domains))
        result = result_of(name, domains)
    except QuestionRefusal:  # typed where more is known, which here is not
        return None
    if _is_unsettled(result, parts):
        return None
    if name == "in" and all(part.values.size == 1 for part in parts[1:]):
        return Known(_among(*parts), result)
    shape = np.broadcast_shapes(*(part.values.shape for part in parts))
    if math.prod(shape) > MOST_VALUES or not all(_same_in_engine(function, p) for p in parts):
        return None
    kind = result.kind
    found = _each(function.evaluate, *(part.of_kind(kind) for part in parts))
    if kind in _WIDER.values():
        found = _each(lambda v: as_engine(v, kind), found)
    return Known(found, result)


def _is_unsettled(result: Domain, parts: Sequence[Known]) -> bool:
    """Whether the engine might compute in whole numbers what the domains here give as doubles.

    It does so where conditions have narrowed the columns further than is seen here.
    """
    if result.kind is not Kind.DECIMAL or all(p.domain.kind is Kind.DECIMAL for p in parts):
        return False
    low, high = result.low, result.high
    return low is None or high is None or max(-low, high) > _EXACT


def _same_in_engine(function: Function, part: Known) -> bool:
    """Whether the engine's function is known to agree, to the last bit, on these arguments."""
    kind = part.domain.kind
    return all(
        function.listable(constant(value, kind)) for value in part.values.flat if value is not None
    )


def _compare(compare: Callable[[Any, Any], Any], a: Known, b: Known) -> Objects:
    kind = common_kind((a.domain, b.domain), "a comparison")
    missing = find_nulls(a) | find_nulls(b)
    if not missing.any():
        found = np.asarray(compare(a.of_kind(kind), b.of_kind(kind)))
        return found.astype(object)  # of one constant, numpy gives a truth of its own
    left, right = (np.broadcast_to(part.of_kind(kind), missing.shape) for part in (a, b))
    found = np.empty(missing.shape, dtype=object)  # NULL, except where both are there
    found[~missing] = compare(left[~missing], right[~missing])
    return found


def _among(first: Known, *options: Known) -> Objects:
    kind = common_kind(tuple(p.domain for p in (first, *options)), "IN")
    listed = {option.of_kind(kind).item() for option in options}
    otherwise = None if None in listed else False
    listed.discard(None)
    values = first.of_kind(kind)
    found = [
        None if v is None else True if v in listed else otherwise for v in values.ravel().tolist()
    ]
    return np.array(found, dtype=object).reshape(values.shape)


def _case(case: Case, columns: Columns, dimensions: int) -> Known | None:
    conditions = _evaluate_all([c for c, _ in case.branches], columns, dimensions)
    values = _evaluate_all([*(v for _, v in case.branches), case.otherwise], columns, dimensions)
    if conditions is None or values is None:
        return None
    result = union([value.domain for value in values], "CASE")
    arrays = [part.values for part in (*conditions, *values)]
    size = math.prod(np.broadcast_shapes(*(array.shape for array in arrays)))
    if _is_unsettled(result, values) or size > MOST_VALUES:
        return None
    count = len(conditions)

    def choose(*parts: Plain) -> Plain:
        chosen = next((i for i in range(count) if parts[i] is True), count)
        return as_engine(parts[count + chosen], result.kind)

    return Known(_each(choose, *arrays), result)


def _each(function: Callable[..., Plain], *arrays: Objects) -> Objects:
    """``function`` applied block by block."""
    found: Objects = np.frompyfunc(function, len(arrays), 1)(*arrays)
    return found if isinstance(found, np.ndarray) else np.array(found, dtype=object)
