"""Series of constants written out: ``generate_series(0, 2)`` is ``(VALUES (0), (1), (2))``."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from sqlglot import exp

MOST_LISTED = 1_000
"""How many constants a series may be; a longer one is left as it is, and refused."""

_UNTIL = {"GENERATE_SERIES", "GENERATE_ARRAY", "GENERATE_DATE_ARRAY", "GENERATE_TIMESTAMP_ARRAY"}
"""What counts to its end; RANGE stops before it."""

_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600}

Point = int | date


def list_series(node: exp.Expr) -> None:
    """Replace a series in FROM, if its ends and its step are constants, by its values."""
    inside = node.args.get("expressions") if isinstance(node, exp.Unnest) else [node.this]
    call = inside[0] if isinstance(inside, list) and len(inside) == 1 else None
    if not isinstance(call, exp.Anonymous) or call.name.upper() not in (*_UNTIL, "RANGE"):
        return
    said = {name for name, value in node.args.items() if value}
    values = _list_values(call) if said <= {"this", "expressions", "alias"} else None
    if not values:
        return
    alias = node.args.get("alias")
    table = alias.this.copy() if alias is not None and alias.this is not None else None
    table = table or exp.to_identifier(call.name.lower())
    columns = [] if alias is None else [name.copy() for name in alias.args.get("columns") or ()]
    made = exp.Values(
        expressions=[exp.Tuple(expressions=[_write(value)]) for value in values],
        alias=exp.TableAlias(this=table, columns=columns or [table.copy()]),
    )
    node.replace(made)


def _list_values(call: exp.Anonymous) -> list[Point] | None:
    """The values of a series; None if it is not one of constants, or too long."""
    name, given = call.name.upper(), list(call.expressions)
    if name == "RANGE" and len(given) == 1:
        given = [exp.Literal.number(0), *given]
    if len(given) not in (2, 3):
        return None
    step = given[2] if len(given) == 3 else None
    low, high = (_read(part, timed=name != "GENERATE_ARRAY") for part in given[:2])
    if low is None or high is None or isinstance(low, int) != isinstance(high, int):
        return None
    found: list[Point] = []
    for value in _count_up(low, step):
        beyond = _order(value) > _order(high) or (name == "RANGE" and value == high)
        if beyond:
            return found
        if len(found) == MOST_LISTED:
            return None
        found.append(value)
    return None


def _order(value: Point) -> float:
    if isinstance(value, int):
        return value
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (moment - datetime(1, 1, 1)).total_seconds()


def _count_up(low: Point, step: exp.Expr | None) -> Iterator[Point]:
    """From ``low`` on; nothing, if the step is not a constant that leads upwards."""
    if isinstance(low, int):
        size = 1 if step is None else _read_whole(step)
        value = low
        while size is not None and size > 0:
            yield value
            value += size
        return
    unit, many = "DAY", 1
    if step is not None:
        if not isinstance(step, exp.Interval) or step.this is None or not step.this.name.isdigit():
            return
        unit = str(step.args.get("unit") or "").upper().removesuffix("S")
        many = int(step.this.name)
    place = 0
    while 0 < many <= MOST_LISTED:
        moved = _move(low, unit, many * place)
        if moved is None:
            return
        yield moved
        place += 1


def _move(low: date, unit: str, many: int) -> date | None:
    try:
        if unit in _MONTHS:
            months = low.year * 12 + low.month - 1 + many * _MONTHS[unit]
            year, month = months // 12, months % 12 + 1
            return low.replace(year=year, month=month, day=min(low.day, monthrange(year, month)[1]))
        if unit in _DAYS:
            return low + timedelta(days=many * _DAYS[unit])
        if unit in _SECONDS and isinstance(low, datetime):
            return low + timedelta(seconds=many * _SECONDS[unit])
    except (ValueError, OverflowError):
        return None
    return None


def _read(part: exp.Expr, *, timed: bool) -> Point | None:
    """A constant: a whole number, a date or a timestamp."""
    whole = _read_whole(part)
    if whole is not None or not timed:
        return whole
    text, kind = part, None
    if isinstance(part, exp.Cast):
        text, kind = part.this, part.args["to"].this
    if not isinstance(text, exp.Literal) or not text.is_string:
        return None
    try:
        moment = datetime.fromisoformat(text.name)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    plain = kind is exp.DType.DATE or (kind is None and len(text.name) == 10)
    if kind not in (None, exp.DType.DATE, exp.DType.TIMESTAMP):
        return None
    return moment.date() if plain else moment


def _read_whole(part: exp.Expr) -> int | None:
    sign = 1
    if isinstance(part, exp.Neg):
        sign, part = -1, part.this
    digits = part.name if isinstance(part, exp.Literal) and not part.is_string else ""
    return sign * int(digits) if digits.isdigit() and len(digits) < 16 else None


def _write(value: Point) -> exp.Expr:
    if isinstance(value, int):
        literal = exp.Literal.number(abs(value))
        return exp.Neg(this=literal) if value < 0 else literal
    kind = exp.DType.TIMESTAMP if isinstance(value, datetime) else exp.DType.DATE
    text = exp.Literal.string(
        value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
    )
    return exp.Cast(this=text, to=exp.DataType(this=kind, nested=False))


__all__ = ["MOST_LISTED", "list_series"]
