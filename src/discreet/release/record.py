"""Values as text that lasts: answers, explanations, schemas and budgets, exactly, and back.

The text is canonical JSON: keys sorted, no spaces, numbers exact.  Plain texts, whole numbers,
booleans and null stand for themselves, a JSON list for a tuple, and everything else is an object
with one key that names what it is::

    {"fraction": "3/4"}   {"date": "2024-02-29"}   {"Literal": {"value": 7}}

The set of names is closed.  What has another name, or other fields, is refused and never guessed:
a stored answer was paid for once, and must mean the same for ever.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from discreet.accounting.budget import Budget
from discreet.accounting.loss import NOTHING, Loss
from discreet.errors import LedgerRefusal, Refusal
from discreet.exact.numbers import canonical_json
from discreet.mechanisms import Gaussian, KeyRelease, Laplace, Staircase
from discreet.mechanisms.clipping import ClippedSums
from discreet.price import (
    Bought,
    Choice,
    Clipped,
    Counts,
    Fitted,
    Linear,
    Priced,
    Quantile,
    Ratio,
    Reach,
    Selection,
    Sensitivity,
    Spread,
    Threshold,
)
from discreet.price.plan import (
    Contribution,
    Distance,
    DistinctValues,
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Moments,
    Plan,
    Products,
    Scaled,
    Sum,
    Units,
    ValueCounts,
)
from discreet.price.summed import Summed, Term
from discreet.question.domain import Kind
from discreet.question.expressions import Call, Case, ColumnRef, Literal
from discreet.question.offer import Offer
from discreet.question.question import Aggregate, Key, Limits, Order, Output, Question
from discreet.question.relation import (
    Filter,
    GraphRows,
    JoinKind,
    OwnerJoin,
    PerUnit,
    Project,
    PublicJoin,
    PublicSource,
    Shape,
    Source,
    Union,
    UnitAggregate,
    UnitJoin,
    UnitWindow,
    Windowed,
)
from discreet.question.schema import Column, Crowding, Neighbours, Owners, Schema, Table
from discreet.question.statement import Carried, First, Levels, Statement, Trace
from discreet.release.answer import Answer, Released, Selected
from discreet.release.combined import Combined, CombinedExplanation
from discreet.release.derived import Derived, Origin
from discreet.release.explanation import Explanation

_T = TypeVar("_T")
JSON = None | bool | int | str | list[Any] | dict[str, Any]

_RECORDED_AS: dict[type[Any], str] = {Offer: "Spend", Selection: "SelectionNoise"}
"""Classes that have another name now: what was recorded once is read, and hashed, for ever."""

_CLASSES: dict[str, type[Any]] = {
    _RECORDED_AS.get(kind, kind.__name__): kind
    for kind in (
        *(Answer, Explanation, Priced, Plan, Question, Schema, Table, Column, Loss),
        *(Crowding, OwnerJoin, GraphRows),
        *(ColumnRef, Literal, Call, Case),
        *(Source, PublicSource, Filter, Project, PublicJoin, UnitJoin, PerUnit, UnitAggregate),
        *(Windowed, UnitWindow),
        *(Union, Key, Aggregate, Output, Order, Limits, Offer, Contribution),
        *(Scaled, Moments, Units, Histogram, ValueCounts, DistinctValues, GroupTotal),
        *(Sum, GroupSum, GroupMean, Distance),
        *(Linear, Ratio, Quantile, Choice, Counts, Sensitivity, Reach, Threshold),
        *(Selection, Selected, Spread, Clipped, ClippedSums),
        *(Products, Fitted),
        *(Statement, First, Levels, Trace, Carried, CombinedExplanation),
    )
}
_NOT_RECORDED: dict[type[Any], tuple[str, ...]] = {
    Answer: ("id", "replayed", "said", "behind"),
    Explanation: ("now",),
    CombinedExplanation: ("now",),
    Schema: ("population", "max_joined_rows_per_unit", "entities"),
}
_ADDED: dict[type[Any], dict[str, Any]] = {
    Threshold: {"odds": Fraction(0)},
    Priced: {"population": None, "together": None},
    Column: {"per_unit": False, "time_zone": None},
    Table: {
        "owners": Owners.ONE,
        "max_rows_per_pair": None,
        "crowding": None,
        "version": None,
    },
    Question: {"remarks": ()},
    Aggregate: {"auto": False},
    Moments: {"parts": 1},
    Offer: {"fresh": False},
    Statement: {"levels": (), "first": (), "accounts": (), "listed": ()},
}
"""Fields that came later: not written where they say what was meant without them."""
_ENUMS: dict[str, type[Enum]] = {
    kind.__name__: kind for kind in (Kind, Neighbours, JoinKind, Owners, Shape)
}
_ARRAYS = {"int64": np.int64, "object": object}
_THEMSELVES = frozenset({bool, int, str, type(None)})
"""What stands for itself in JSON."""
_INFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


_LEAVES: dict[type, Callable[[Any], JSON]] = {
    Fraction: lambda value: {"fraction": f"{value.numerator}/{value.denominator}"},
    datetime: lambda value: {"timestamp": value.isoformat()},
    date: lambda value: {"date": value.isoformat()},
}
"""What is a value of its own, by its exact class: as :func:`to_json` writes it."""


_MANY = 32
_DAYS = frozenset({date, datetime, type(None)})
"""Of which no two kinds are ever equal: what is written of one is not taken for another's."""


@lru_cache(maxsize=32)
def _list_days(values: tuple[date | None, ...]) -> tuple[JSON, ...]:
    """Days that a schema lists, as they are written with every question about them."""
    return tuple([None if value is None else _LEAVES[type(value)](value) for value in values])


_WRITTEN: dict[int, tuple[object, JSON]] = {}
_MOST_WRITTEN, _REMEMBERED = 64, 10_000
"""So much is remembered, and of lists those that are not longer."""


def _write_once(value: Table | Plan | tuple[Any, ...]) -> JSON:
    """What lists thousands of values and is written again and again: once.

    A declared table stands in every question, a plan in its key and in its answer, a list of
    groups in all of them.  Nobody changes what was written.
    """
    found = _WRITTEN.get(id(value))
    if found is None or found[0] is not value:  # who is remembered lives, and keeps its id
        if len(_WRITTEN) >= _MOST_WRITTEN:
            _WRITTEN.clear()
        written: JSON
        if isinstance(value, tuple):
            written = _write_many(value)
        else:
            written = {type(value).__name__: _fields_json(type(value).__name__, value)}
        found = _WRITTEN[id(value)] = value, written
    return found[1]


def _write_many(values: tuple[Any, ...]) -> JSON:
    if set(map(type, values)) <= _DAYS:
        return [*_list_days(values)]
    if _are_single(values, tuple):  # the groups of one key
        return [[one] for one in _write_many(tuple([one for (one,) in values]))]  # type: ignore[union-attr]
    return _write_each(values)


def _write_each(values: tuple[Any, ...]) -> JSON:
    """A list of which an answer has one for each group: no call for a number."""
    return [
        part
        if type(part) in _THEMSELVES
        else list(part)
        if type(part) is tuple and _THEMSELVES.issuperset(map(type, part))
        else to_json(part)
        for part in values
    ]


def _are_single(parts: Sequence[Any], kind: type[Any]) -> bool:
    """Whether each part is a list of one."""
    return set(map(type, parts)) == {kind} and set(map(len, parts)) == {1}


# --- writing -----------------------------------------------------------------------------------


def to_json(value: object) -> JSON:
    """``value`` in terms of JSON; every class of a priced question and of its answer is known.

    >>> to_json((Fraction(3, 4), date(2024, 2, 29), Literal(7)))
    [{'fraction': '3/4'}, {'date': '2024-02-29'}, {'Literal': {'value': 7}}]
    """
    kind = type(value)
    if kind in _THEMSELVES:
        return value  # type: ignore[return-value]
    if kind is Table or kind is Plan:
        return _write_once(value)  # type: ignore[arg-type]
    if kind in _LEAVES:  # thousands of them in the keys of one question: no search for the class
        return _LEAVES[kind](value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, tuple):
        if len(value) <= _MANY:
            return _write_each(value)
        return _write_once(value) if len(value) <= _REMEMBERED else _write_many(value)
    name, content = _tag(value)
    return {name: content}


def _tag(value: object) -> tuple[str, JSON | float]:
    """The one key of an object, and what stands under it."""
    name = _RECORDED_AS.get(type(value), type(value).__name__)
    match value:
        case Fraction():
            return "fraction", f"{value.numerator}/{value.denominator}"
        case float():
            return "float", value if math.isfinite(value) else str(value)
        case datetime():  # before dates: it is one
            return "timestamp", value.isoformat()
        case date():
            return "date", value.isoformat()
        case list():
            return "list", [to_json(part) for part in value]
        case np.ndarray():
            return "array", _array_json(value)
        case Mapping():
            return "map", [[to_json(k), to_json(v)] for k, v in value.items()]
        case Budget():
            return name, _budget_json(value)
        case Enum():
            return name, value.value
    return name, _fields_json(name, value)


def _write_priced(priced: Priced) -> dict[str, JSON]:
    """As stored answers hold it: the mechanisms are its noises."""
    fields = {
        field: to_json(value)
        for field, value in _list_values(priced).items()
        if field != "mechanisms"
    }
    return {**fields, "noises": _noises_json(priced)}


def _noises_json(priced: Priced) -> list[JSON]:
    """The mechanism of each measurement as stored answers, and the keys of replays, hold it."""
    return [
        _noise_json(mechanism, sensitivity)
        for mechanism, sensitivity in zip(priced.mechanisms, priced.sensitivities, strict=True)
    ]


def replay_key(priced: Priced) -> str:
    """What makes two questions the same: everything measured, and the noise on each of it.

    Names, order, HAVING and arithmetic on the answer are left out: they are free.
    """
    measured, after = (priced.plan, priced.recipes), (priced.threshold, priced.neighbours)
    same = [*map(to_json, measured), _noises_json(priced), *map(to_json, after)]
    text = canonical_json(same, ascii_only=True)
    return hashlib.sha256(text.encode()).hexdigest()


def digest(value: object) -> str:
    """A short name of something recorded, by which it is looked for."""
    text = canonical_json(to_json(value), ascii_only=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _noise_json(mechanism: Bought, sensitivity: Sensitivity) -> JSON:
    moved = to_json(sensitivity)
    match mechanism:
        case Laplace(scale=scale):
            return {"LaplaceNoise": {"scale": to_json(scale), "sensitivity": moved}}
        case Gaussian(sigma_squared=spread):
            return {"GaussianNoise": {"sigma_squared": to_json(spread), "sensitivity": moved}}
        case Staircase(epsilon=epsilon, width=width):
            shape = {"epsilon": to_json(epsilon), "width": width, "sensitivity": moved}
            return {"StaircaseNoise": shape}
        case KeyRelease(epsilon=epsilon, delta=delta, keys=keys):
            price = {"epsilon": to_json(epsilon), "delta": to_json(delta), "keys": keys}
            return {"KeyRelease": price}
        case Summed():
            return {"Summed": _write_summed(mechanism)}
    return to_json(mechanism)


def _fields_json(name: str, value: Any) -> dict[str, JSON]:
    if isinstance(value, Priced):
        return _write_priced(value)
    if _CLASSES.get(name) is not type(value):
        raise TypeError(f"a {name} has no recorded form")
    return {field: to_json(part) for field, part in _list_values(value).items()}


_FIELDS: dict[type[Any], tuple[str, ...]] = {}


def _list_fields(kind: type[Any]) -> tuple[str, ...]:
    """The fields that are recorded.

    An answer's place in a ledger is not part of the answer; nor is how many units there are,
    about, part of what a schema means for one.
    """
    found = _FIELDS.get(kind)
    if found is None:  # there are few classes, and thousands of objects
        left_out = _NOT_RECORDED.get(kind, ())
        names = [f.name for f in fields(kind) if f.init and f.name not in left_out]
        found = _FIELDS[kind] = tuple(names)
    return found


def _list_values(value: Any) -> dict[str, Any]:
    """What is written: every recorded field, but those added later only if they say something."""
    added = _ADDED.get(type(value), {})
    found = {field: getattr(value, field) for field in _list_fields(type(value))}
    return {f: part for f, part in found.items() if f not in added or part != added[f]}


def _array_json(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    kind = "object" if array.dtype == object else "int64"
    if kind == "int64" and array.dtype.kind not in "iu":
        raise TypeError("released entries are whole numbers")
    entries = array.ravel().tolist()
    return {
        "kind": kind,
        "shape": list(array.shape),
        "entries": entries if kind == "int64" else [int(entry) for entry in entries],
    }


def _budget_json(budget: Budget) -> dict[str, JSON]:
    """What it was made from; the rest is computed again."""
    shape = {"delta": to_json(budget.delta), "failures": to_json(budget.failures)}
    if budget.epsilon is not None:
        return {"epsilon": to_json(budget.epsilon), **shape}
    return {"rho": to_json(budget.rho), **shape}


# --- reading -----------------------------------------------------------------------------------


def from_json(value: JSON) -> Any:
    """What ``to_json`` wrote; anything else is refused.

    >>> from_json({"Literal": {"value": {"fraction": "3/4"}}})
    Literal(value=Fraction(3, 4))
    """
    try:
        return _read(value)
    except (
        *(LookupError, TypeError, ValueError, AttributeError),
        *(ArithmeticError, RecursionError, Refusal),
    ):
        raise _unreadable() from None


def _read(value: Any) -> Any:
    if type(value) in _THEMSELVES:
        return value
    if isinstance(value, list):
        if len(value) > _MANY and _are_single(value, list):  # the groups of one key
            return tuple(zip(_read([one for (one,) in value])))
        return tuple(
            [
                part
                if type(part) in _THEMSELVES
                else tuple(part)
                if type(part) is list and _THEMSELVES.issuperset(map(type, part))
                else _read(part)
                for part in value
            ]
        )
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("an object with one key is expected")
    ((name, content),) = value.items()
    if name in _PLAIN:
        return _PLAIN[name](content)
    if name in _ENUMS:
        return _ENUMS[name](content)
    given = {field: _read(part) for field, part in content.items()}
    if name in _MADE:
        return _MADE[name](**given)
    kind = _CLASSES[name]
    if set(_ADDED.get(kind, {}) | given) != set(_list_fields(kind)):
        raise ValueError("other fields than this version knows")
    return kind(**given)


def _read_laplace(*, scale: Fraction, sensitivity: Sensitivity) -> Laplace:
    return Laplace(sensitivity=sensitivity.l1, epsilon=sensitivity.l1 / scale)


def _read_gaussian(*, sigma_squared: Fraction, sensitivity: Sensitivity) -> Gaussian:
    squared = sensitivity.l2_squared
    return Gaussian(sensitivity_squared=squared, rho=squared / (2 * sigma_squared))


def _read_staircase(*, epsilon: Fraction, width: int, sensitivity: Sensitivity) -> Staircase:
    return Staircase(sensitivity=sensitivity.l1, epsilon=epsilon, width=width)


def _read_key_release(*, epsilon: Fraction, delta: Fraction, keys: int) -> KeyRelease:
    return KeyRelease(epsilon=epsilon, delta=delta, keys=keys)


def _read_priced(*, noises: tuple[Bought, ...], **others: Any) -> Priced:
    return Priced(mechanisms=noises, **others)


def _make_summed(*, terms: tuple[tuple[Any, int, int], ...], below: int) -> Summed:
    return Summed(tuple(Term(*term) for term in terms), below)


_MADE: dict[str, Callable[..., Any]] = {
    "Budget": Budget.recorded,  # a large delta was objected to when it was promised, or never
    "GaussianNoise": _read_gaussian,
    "KeyRelease": _read_key_release,
    "LaplaceNoise": _read_laplace,
    "Priced": _read_priced,
    "StaircaseNoise": _read_staircase,
    "Summed": _make_summed,
}
"""What is recorded by other fields than it has; each refuses a field too many or too few."""


def _read_array(content: dict[str, Any]) -> np.ndarray[Any, Any]:
    entries = [int(x) for x in content["entries"]]
    return np.array(entries, dtype=_ARRAYS[content["kind"]]).reshape(content["shape"])


def _read_float(content: float | str) -> float:
    return _INFINITE[content] if isinstance(content, str) else float(content)


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "fraction": lambda text: Fraction(str(text)),
    "float": _read_float,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "list": lambda parts: [_read(part) for part in parts],
    "map": lambda pairs: {_read(k): _read(v) for k, v in pairs},
    "array": _read_array,
}


def _unreadable() -> LedgerRefusal:
    return LedgerRefusal(
        "L10",
        "a stored value cannot be read.",
        why="an answer that is guessed would be one that nobody was promised.",
        fix="read it with the version of discreet that wrote it, or verify the ledger.",
    )


# --- answers and explanations ------------------------------------------------------------------


def answer_to_bytes(answer: Answer) -> bytes:
    """An answer as it is stored or sent: everything it was computed from, nothing else."""
    if isinstance(answer, Combined):
        return canonical_json({"Combined": _write_combined(answer)}).encode()
    return canonical_json(_part_json(answer)).encode()


def answer_from_bytes(data: bytes) -> Answer:
    """The stored answer; it behaves as the one that was stored did."""
    content = _content(data)
    if isinstance(content, dict) and set(content) == {"Combined"}:
        return _read_combined(content["Combined"])
    found = _read_part(content)
    if not isinstance(found, Answer):
        raise _unreadable()
    return found


_UNUSED = Sensitivity(1, 1)
"""What a recorded law is read with; of released noise nothing but its size matters any more."""


def _write_derived(answer: Derived) -> dict[str, Any]:
    """What is sent of an answer that was known; no ledger holds one, only those it is from."""
    laws: dict[Summed, int] = {}
    used = [[laws.setdefault(law, len(laws)) for law in some] for some in answer.laws]
    priced = replace(answer.priced, mechanisms=(), sensitivities=())
    return {
        "priced": to_json(priced),
        "groups": to_json(answer.groups),
        "parts": [
            to_json(part if part.dtype.kind != "f" else part.tolist())
            for part in answer.released
            if isinstance(part, np.ndarray)
        ],
        "laws": [_write_summed(law) for law in laws],
        "used": used,
        "origins": [
            [one.id, one.question, list(one.loss.to_units()), one.groups, to_json(one.weight)]
            for one in answer.origins
        ],
        "said": list(answer.said),
        "equivalent": list(answer.equivalent.to_units()),
        "payment": list(answer.payment.to_units()),
    }


def _write_summed(law: Summed) -> dict[str, Any]:
    terms = [[_noise_json(t.law, _UNUSED), t.count, t.weight] for t in law.terms]
    return {"terms": terms, "below": law.below}


def _read_summed(content: Any) -> Summed:
    terms = tuple(Term(from_json(law), count, weight) for law, count, weight in content["terms"])
    return Summed(terms, content["below"])


def _read_derived(content: Any) -> Derived:
    try:
        listed = [_read_summed(law) for law in content["laws"]]
        laws = tuple(tuple(listed[i] for i in some) for some in content["used"])
        worst = tuple(max(some, key=lambda law: law.variance) for some in laws)
        parts = [from_json(part) for part in content["parts"]]
        payment = Loss.from_units(*content["payment"])
        return Derived(
            replace(
                from_json(content["priced"]),
                mechanisms=worst,
                sensitivities=(Sensitivity(0, 0),) * len(worst),
            ),
            from_json(content["groups"]),
            tuple(p if isinstance(p, np.ndarray) else np.array(p) for p in parts),
            replayed=payment == NOTHING,
            said=tuple(content["said"]),
            laws=laws,
            origins=tuple(
                Origin(number, text, Loss.from_units(*loss), groups, from_json(weight))
                for number, text, loss, groups, weight in content["origins"]
            ),
            equivalent=Loss.from_units(*content["equivalent"]),
            payment=payment,
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _unreadable() from None


def _write_combined(answer: Combined) -> dict[str, Any]:
    """What is sent of a statement's answer; no ledger holds one, only the answers it is from."""
    return {
        "statement": to_json(answer.statement),
        "parts": [
            {"answer": _part_json(part), "id": part.id, "replayed": part.replayed}
            for part in answer.parts
        ],
        "names": to_json(answer.names),
        "table": to_json(answer.table),
        "places": to_json(answer.places),
        **({} if answer.parts else {"nothing": to_json(answer.priced)}),
        **({"said": to_json(answer.said)} if answer.said else {}),
    }


def _part_json(part: Answer) -> JSON:
    if isinstance(part, Derived):
        return {"Derived": _write_derived(part)}
    if part.behind:  # which the ledger knows of what it holds
        charges = [list(loss.to_units()) for loss in part.behind]
        return {"Improved": {"answer": to_json(part), "behind": charges}}
    return to_json(part)


def _read_part(content: Any) -> Answer:
    kind = next(iter(content)) if isinstance(content, dict) and len(content) == 1 else ""
    if kind == "Derived":
        return _read_derived(content[kind])
    if kind == "Improved":
        return _read_improved(content[kind])
    found: Answer = from_json(content)
    return found


def _read_improved(content: Any) -> Answer:
    try:
        charges = tuple(Loss.from_units(*loss) for loss in content["behind"])
        found: Answer = replace(from_json(content["answer"]), behind=charges)
        return found
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _unreadable() from None


def _read_combined(content: Any) -> Combined:
    try:
        parts = [
            _read_part(part["answer"]).number(part["id"], replayed=part["replayed"])
            for part in content["parts"]
        ]
        found = {name: from_json(content[name]) for name in ("names", "table", "places")}
        found |= {name: from_json(content[name]) for name in ("nothing", "said") if name in content}
        return Combined.of(from_json(content["statement"]), parts, **found)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _unreadable() from None


def write_released(priced: Priced, released: Released) -> bytes:
    """What was released, as it is stored: the answer that will be read off it, before it is."""
    content = {
        "priced": to_json(priced),
        "groups": to_json(released.groups),
        "released": to_json(released.parts),
    }
    return canonical_json({"Answer": content}).encode()


def read_released(data: bytes) -> Released:
    """The groups and released numbers of a stored answer, without the question they answered."""
    return _read_released(_content(data))


def join_batch(answers: Iterable[bytes]) -> bytes:
    """Answers that were released together, as they are stored."""
    return canonical_json({"Batch": [json.loads(one) for one in answers]}).encode()


def split_batch(data: bytes) -> list[bytes]:
    """The answers that were released together; or the one that was released by itself."""
    content = _content(data)
    if not (isinstance(content, dict) and set(content) == {"Batch"}):
        return [data]
    parts = content["Batch"]
    if not isinstance(parts, list):
        raise _unreadable()
    return [canonical_json(one).encode() for one in parts]


def read_paid(data: bytes) -> tuple[Priced, Released]:
    """The same with the question, as it was priced; the answer is not read off it."""
    content: Any = _content(data)
    released = _read_released(content)
    priced = from_json(content["Answer"].get("priced"))
    if not isinstance(priced, Priced):
        raise _unreadable()
    return priced, released


def _read_released(content: Any) -> Released:
    try:
        stored = content["Answer"]
        groups, parts = stored["groups"], stored["released"]
    except (LookupError, TypeError):
        raise _unreadable() from None
    return Released(from_json(groups), from_json(parts))


def explanation_to_bytes(explanation: Explanation) -> bytes:
    """An explanation as it is sent."""
    return canonical_json(to_json(explanation)).encode()


def explanation_from_bytes(data: bytes) -> Explanation:
    """The explanation that was sent."""
    return _load(data, Explanation)


def _content(data: bytes) -> JSON:
    try:
        content: JSON = json.loads(data)
    except (ValueError, RecursionError):
        raise _unreadable() from None
    return content


def _load(data: bytes, kind: type[_T]) -> _T:
    value = from_json(_content(data))
    if not isinstance(value, kind):
        raise _unreadable()
    return value


__all__ = [
    "JSON",
    "answer_from_bytes",
    "answer_to_bytes",
    "digest",
    "explanation_from_bytes",
    "explanation_to_bytes",
    "from_json",
    "join_batch",
    "read_paid",
    "read_released",
    "replay_key",
    "split_batch",
    "to_json",
    "write_released",
]
