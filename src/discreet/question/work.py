"""How much work one unit's rows can be: bounded by public knowledge, like what they add.

A function of a text takes time by its length, a pattern by its length times the text's.  Where a
condition spares everybody else's rows, a question made of such functions takes longer for one unit
than for none, and the clock is paid for by nobody.  So what a row can cost is added up from the
question alone, in nanoseconds that were measured at their worst, times the rows that one unit can
have at that step, and limited (``docs/known-vulnerabilities.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from discreet.errors import QuestionRefusal
from discreet.question.domain import TEXT_LIMIT, Domain, Kind, Value
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions.patterns import count_states
from discreet.question.ownership import (
    Multiplicity,
    columns,
    find_declared_multiplicity,
    row_bound,
    unit,
)
from discreet.question.question import Question
from discreet.question.relation import (
    Filter,
    GraphRows,
    OwnerJoin,
    PerUnit,
    Project,
    PublicJoin,
    PublicSource,
    Relation,
    Source,
    Union,
    UnitJoin,
    UnitWindow,
    Windowed,
)

NANOSECONDS_PER_ROW = 50_000
"""What functions may cost for each of the rows that joins may make of one unit: with a thousand of
them, a fifth of the server's default deadline."""

MOST_RELEASED_STATES = 100
"""How long a pattern may be, once written out, that released values are matched with in Python."""

_CALL = 20
"""Of any function, on a row."""
_CHARACTER = 10
"""Of each character of a text, looked at once."""
_CHARACTERS = {
    **dict.fromkeys(("contains", "replace", "split_part", "strpos"), 45),
    "cast_boolean": 100,
    "trim": 15,
}
"""Where a character costs more."""
_STATE = 35
"""Of each character, for each state of a pattern."""
_COMPARED = 4
"""Of each character, for each character of a LIKE pattern that is tried there."""

_OTHER_TEXT = 200
"""Longer than any number or moment that is written out by a constant format."""

Lengths = Mapping[str, int]
"""How many characters each column can have; 0 if it is not a text."""


def _longest(lengths: Sequence[int]) -> int:
    return max(lengths, default=0)


_TEXTS: Mapping[str, Callable[[Sequence[int]], int]] = {
    "cast_text": lambda lengths: max(_longest(lengths), _OTHER_TEXT),
    "coalesce": _longest,
    "concat": sum,
    "greatest": _longest,
    "if": _longest,
    "least": _longest,
    "lower": _longest,
    "nullif": _longest,
    "replace": lambda lengths: lengths[0] * max(1, lengths[2]),
    "right": lambda lengths: lengths[0],
    "split_part": lambda lengths: lengths[0],
    "strftime": lambda lengths: _OTHER_TEXT + 10 * _longest(lengths),
    "substr": lambda lengths: lengths[0],
    "trim": _longest,
    "upper": _longest,
}
"""How long the text is that a function makes of texts so long; other functions make none."""


def check_work(
    question: Question, rows: int, multiplicity: Multiplicity = find_declared_multiplicity
) -> None:
    """Refuse a question whose functions could take too long on one unit's rows.

    ``rows`` is how many joins may make of one unit; a unit of which nobody said how many rows
    it has counts as if it had so many.
    """
    total = sum(_steps(question, rows, multiplicity))
    most = NANOSECONDS_PER_ROW * rows
    if total > most:
        name = unit(question.source).name
        enough = -(-total // NANOSECONDS_PER_ROW)
        declared = row_bound(question.source, multiplicity) is not None
        raise QuestionRefusal(
            "Q46",
            f"the functions could take {_milliseconds(total)} on the rows of one {name}, and at "
            f"most {_milliseconds(most)} are allowed.",
            why="the work would be so much more for some than for others that the time it takes, "
            "or that it fails, could tell who they are.",
            fix="use fewer functions of texts, and shorter patterns. The curator may declare the "
            "values of the texts, a smaller max_rows_per_unit for the tables, or a larger "
            f"max_joined_rows_per_unit for the schema: {enough} would do.",
            declaration=f"max_joined_rows_per_unit = {enough}" if declared else None,
        )
    for expression in _list_released(question):
        _check_released(expression)


def _milliseconds(nanoseconds: int) -> str:
    return f"{-(-nanoseconds // 1_000_000):,} ms"


def _steps(question: Question, rows: int, multiplicity: Multiplicity) -> Iterator[int]:
    """Nanoseconds of one unit at each step of a question."""
    found: list[int] = []

    def walk(relation: Relation) -> Lengths:
        lengths, computed = _step(relation, walk, multiplicity)
        times = _rows(_origin(relation), rows, multiplicity)
        found.append(times * sum(expression_work(e, lengths)[0] for e in computed))
        return _follow_lengths(relation, lengths)

    lengths = walk(question.source)
    times = _rows(question.source, rows, multiplicity)
    yield from found
    for expression in _list_measured(question):
        work, length = expression_work(expression, lengths)
        yield times * (work + _CHARACTER * length)  # and it is compared, or hashed


def _rows(relation: Relation, most: int, multiplicity: Multiplicity) -> int:
    bound = row_bound(relation, multiplicity)
    return most if bound is None else bound


def _origin(relation: Relation) -> Relation:
    """The relation on whose rows this one computes."""
    match relation:
        case Filter(source=source) | Project(source=source) | PerUnit(source=source):
            return source
        case Windowed(source=source):
            return source
        case PublicJoin(left=left):
            return left
        case _:
            return relation


def _step(
    relation: Relation, walk: Callable[[Relation], Lengths], multiplicity: Multiplicity
) -> tuple[Lengths, Sequence[Expression]]:
    """The columns that a step computes with, and what it computes."""
    match relation:
        case Source() | GraphRows():
            return _list_lengths(columns(relation, multiplicity)), ()
        case Filter(source=source, predicate=predicate):
            return walk(source), (predicate,)
        case Project(source=source, columns=computed):
            return walk(source), [e for _, e in computed]
        case PerUnit(source=source, keys=keys, aggregates=aggregates):
            inside = [a.argument for _, a in aggregates if a.argument is not None]
            return walk(source), [*(e for _, e in keys), *inside]
        case Windowed(source=source, columns=windows):
            return walk(source), [e for _, window in windows for e in _list_computed(window)]
        case PublicJoin(left=left, right=right, on=on):
            mine = walk(left)
            return {**mine, **_public(right, multiplicity)}, [e for e, _ in on]
        case UnitJoin(left=left, right=right) | OwnerJoin(left=left, right=right):
            return {**walk(left), **walk(right)}, ()
        case Union(left=left, right=right):
            one, other = walk(left), walk(right)
            return {name: max(one[name], other[name]) for name in one}, ()


def _public(right: PublicSource, multiplicity: Multiplicity) -> Lengths:
    return _list_lengths(columns(right, multiplicity))


def _follow_lengths(relation: Relation, lengths: Lengths) -> Lengths:
    """The columns that a step hands on."""
    match relation:
        case Project(columns=computed) | PerUnit(keys=computed, aggregates=()):
            return {name: expression_work(e, lengths)[1] for name, e in computed}
        case PerUnit(keys=keys, aggregates=aggregates):
            made = {name: expression_work(e, lengths)[1] for name, e in keys}
            return made | {
                name: 0 if a.argument is None else expression_work(a.argument, lengths)[1]
                for name, a in aggregates
            }
        case Windowed(columns=windows):
            made = {
                name: max((expression_work(e, lengths)[1] for e in w.arguments), default=0)
                for name, w in windows
            }
            return {**lengths, **made}
        case _:
            return lengths


def _list_computed(window: UnitWindow) -> Iterator[Expression]:
    yield from window.arguments
    yield from window.partition
    yield from (expression for expression, _ in window.order)


def _list_lengths(known: Mapping[str, Domain]) -> Lengths:
    return {name: _length(domain) for name, domain in known.items()}


def _length(domain: Domain) -> int:
    if domain.kind is not Kind.TEXT:
        return 0
    if domain.values is None:
        return TEXT_LIMIT
    return _find_longest(domain.values)


@lru_cache(maxsize=256)
def _find_longest(values: tuple[Value, ...]) -> int:
    """Of values that a schema lists: the same for every question."""
    return max((len(value) for value in values if isinstance(value, str)), default=0)


# --- of one row ----------------------------------------------------------------------------


def expression_work(expression: Expression, lengths: Lengths) -> tuple[int, int]:
    """Nanoseconds of an expression on one row, at most, and the length of the text it makes.

    >>> looked = Call("like", (Call("lower", (ColumnRef("city"),)), Literal("b%")))
    >>> expression_work(looked, {"city": 4096}), expression_work(looked, {"city": 7})
    ((81960, 0), (180, 0))
    """
    match expression:
        case ColumnRef(name=name):
            return 0, lengths.get(name, TEXT_LIMIT)
        case Literal(value=value):
            return 0, len(value) if isinstance(value, str) else 0
        case Call(function=name, arguments=arguments):
            parts = [expression_work(argument, lengths) for argument in arguments]
            inside = [length for _, length in parts]
            made = _TEXTS.get(name)
            length = 0 if made is None else min(made(inside), TEXT_LIMIT)
            own = _CALL + _own_work(expression, inside)
            return own + sum(work for work, _ in parts), length
        case Case(branches=branches, otherwise=otherwise):
            conditions = [expression_work(condition, lengths)[0] for condition, _ in branches]
            results = [expression_work(e, lengths) for e in (*(v for _, v in branches), otherwise)]
            work = sum(conditions) + sum(one for one, _ in results)
            return _CALL * len(results) + work, max(length for _, length in results)


def _own_work(call: Call, lengths: Sequence[int]) -> int:
    name, pattern = call.function, _pattern(call)
    if name == "regexp_matches" and pattern is not None:
        return _STATE * lengths[0] * count_states(pattern)
    looked = _CHARACTERS.get(name, _CHARACTER) * sum(lengths)
    if name == "like" and pattern is not None:
        # Pieces without _ are found as texts are; one with is tried at every place.
        tried = max((len(piece) for piece in pattern.split("%") if "_" in piece), default=0)
        return _CHARACTER * lengths[0] + _COMPARED * lengths[0] * tried
    return looked


def _pattern(call: Call) -> str | None:
    """The constant text that a call ends with."""
    last = call.arguments[-1] if call.arguments else None
    return last.value if isinstance(last, Literal) and isinstance(last.value, str) else None


# --- what is computed ----------------------------------------------------------------------


def _list_measured(question: Question) -> Iterator[Expression]:
    """The keys and what is aggregated."""
    yield from (key.expression for key in question.keys)
    for aggregate in question.aggregates:
        yield from aggregate.arguments
        if aggregate.condition is not None:
            yield aggregate.condition


def _list_released(question: Question) -> Iterator[Expression]:
    """What is computed of released values, here and for nothing."""
    yield from (output.expression for output in question.outputs)
    yield from (order.expression for order in question.order)
    if question.having is not None:
        yield question.having


def _check_released(expression: Expression) -> None:
    for call in _calls(expression):
        pattern = _pattern(call)
        if call.function != "regexp_matches" or pattern is None:
            continue
        states = count_states(pattern)
        if states > MOST_RELEASED_STATES:
            raise QuestionRefusal(
                "Q46",
                f"a pattern for released values is {states:,} states long, and at most "
                f"{MOST_RELEASED_STATES} are allowed.",
                why="what is computed of an answer is free, so what it takes is limited.",
                fix="use a shorter pattern, or match the rows: WHERE REGEXP_MATCHES(...).",
            )


def _calls(expression: Expression) -> Iterator[Call]:
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case Call() as call:
                yield call
                waiting += call.arguments
            case Case(branches=branches, otherwise=otherwise):
                waiting += [*_flat(branches), otherwise]
            case _:
                pass


def _flat(branches: Iterable[tuple[Expression, Expression]]) -> Iterator[Expression]:
    for condition, value in branches:
        yield condition
        yield value
