"""What clocks show: the moment at which a question is read, and the same moment in other zones.

What ``now`` is was fixed when reading began; here it becomes a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.question.domain import change_zone as zoned
from discreet.question.domain import is_zone
from discreet.question.sql.dialect import NOW, NOW_WITHOUT_BRACKETS, TODAY, Reader, copy_span
from discreet.question.sql.scalars import call, write_constant

if TYPE_CHECKING:
    from discreet.question.sql.times import Inner

# --- now ------------------------------------------------------------------------------------


def now(node: exp.Expr, reader: Reader) -> exp.Expr | None:
    """The constant that CURRENT_DATE or NOW() is; None if it is something else."""
    if not _is_now(node):
        return None
    name = node.name.upper()
    moment = _clock(node, reader)
    value = moment.date() if name in TODAY else moment
    return copy_span(write_constant(value), node.this if isinstance(node, exp.Column) else node)


def _is_now(node: exp.Expr) -> bool:
    name = node.name.upper()
    if isinstance(node, exp.Column):
        quoted = isinstance(node.this, exp.Identifier) and node.this.args.get("quoted")
        return name in NOW_WITHOUT_BRACKETS and not node.table and not quoted
    return isinstance(node, exp.Anonymous) and name in NOW and not node.expressions


def _clock(node: exp.Expr, reader: Reader) -> datetime:
    """What the clocks of the declared time zone show now; in UTC, if none is declared."""
    zones = {c.time_zone for t in reader.schema.tables.values() for c in t.columns if c.time_zone}
    if len(zones) > 1:
        raise reader.refusal(
            "Q10",
            node,
            f"clocks in {' and '.join(sorted(zones))} do not show the same now.",
            why="a moment compared with another zone's clock is hours off, for some people only.",
            fix=reader.suggest_fix(
                node,
                _say_zone(min(zones)),
                f"say whose clocks: NOW() AT TIME ZONE '{min(zones)}'.",
                "saying whose clocks: ",
            ),
        )
    return _show_now(zones.pop(), reader) if zones else reader.now


def _say_zone(zone: str) -> Callable[[exp.Expr], None]:
    def change(node: exp.Expr) -> None:
        node.replace(exp.AtTimeZone(this=node.copy(), zone=exp.Literal.string(zone)))

    return change


def _show_now(zone: str, reader: Reader) -> datetime:
    return zoned(reader.now, "UTC", zone) or reader.now


# --- time zones ----------------------------------------------------------------------------


def read_zone(node: exp.Expr, reader: Reader) -> str:
    """The time zone that a constant names."""
    if isinstance(node, exp.Literal) and node.is_string and is_zone(node.name):
        return str(node.name)
    raise reader.refusal(
        "Q10",
        node,
        "this names no time zone.",
        why="which hour a row belongs to must be certain for every row.",
        fix="write a constant of the time zone database: 'Europe/Paris', 'UTC'.",
    )


def _say_own_zone(node: exp.Expr) -> None:
    """Say of a point in time that is shown elsewhere that its clocks are those of UTC."""
    parent, utc = node.parent, exp.Literal.string("UTC")
    if isinstance(parent, exp.Anonymous):  # CONVERT_TIMEZONE('Asia/Tokyo', x)
        parent.set("expressions", [utc, *parent.expressions])
    else:
        node.replace(exp.AtTimeZone(this=node.copy(), zone=utc))


def change_zone(
    node: exp.Expr, old: str | None, new: str, inner: Inner, reader: Reader
) -> exp.Expr:
    """What clocks in ``new`` show when those in ``old`` (None: the column's own) show ``node``."""
    point = inner.time(node)
    own = inner.zone_of_column(point) if isinstance(point, exp.Column) else None
    if old is None and own is None:
        raise reader.refusal(
            "Q10",
            node,
            "it is not declared whose clocks this shows.",
            why="read as another zone's, a row would count for another hour or day.",
            fix=reader.suggest_fix(
                node,
                _say_own_zone,
                'the curator declares it, time_zone = "UTC" beside the column\'s type, or you say '
                f"it: CONVERT_TIMEZONE('UTC', '{new}', x).",
                "if it shows UTC, which else the curator declares with time_zone: ",
            ),
        )
    return call("convert_timezone", write_constant(old or own or ""), write_constant(new), point)


def at_zone(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """``x AT TIME ZONE 'Europe/Paris'``: as clocks there show the moment.

    Twice, ``x AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Paris'`` says first whose clocks x shows;
    of what has a declared zone that would say it again, and otherwise.
    """
    zone, part = read_zone(node.args["zone"], reader), node.this.unnest()
    if _is_now(part) and part.name.upper() not in TODAY:
        return copy_span(write_constant(_show_now(zone, reader)), node)
    if not isinstance(part, exp.AtTimeZone):
        return change_zone(part, None, zone, inner, reader)
    point = inner.time(part.this)
    if isinstance(point, exp.Column) and inner.zone_of_column(point) is not None:
        raise reader.refusal(
            "Q10",
            part,
            "it is declared already whose clocks this shows.",
            why="taken for another zone's, a row would count for another hour or day.",
            fix=f"say once in whose clocks you want it: AT TIME ZONE '{zone}'.",
        )
    return change_zone(part.this, read_zone(part.args["zone"], reader), zone, inner, reader)
