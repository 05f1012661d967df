"""The lab on one's own session: attacks on a copy of some of its people, which charges nothing.

Only whoever holds the data can run it: it reads the source, takes of some people whether they have
one secret, and attacks that copy, first behind answers as other systems give them and then behind
the curator with the session's own ε.  The session's ledger is neither read nor written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from discreet.accounting.budget import Budget
from discreet.engine.duckdb.examine import Secret
from discreet.errors import InvalidParameter
from discreet.lab.attacks import ATTACKS, Attack, Reconstruction, Tracing
from discreet.lab.chapters import Chapter, Seen, compare, find_chapter
from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome
from discreet.lab.target import Jittering, Open, Ours, Suppressing
from discreet.question.domain import Kind
from discreet.question.schema import Column, Owners, Schema, Table

if TYPE_CHECKING:
    from discreet.curate.session import Session

MOST = 200
"""How many people a copy has at most: the linear program works on all of them."""
LEAST = 20
COPY = Schema.from_text("""
[tables.people]
unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = { type = "integer", bounds = [0, 9999] }
secret = { type = "integer", bounds = [0, 1] }
""")
_TEST = re.compile(r"\s*(\w+)\s*(?:(=|<|>)\s*(.+?))?\s*", re.DOTALL)
_WHY = "the attack is on somebody's secret, and somebody's it must be."


@dataclass(frozen=True, slots=True)
class Copy:
    """Some people of a session: a number for each, and whether they have the secret."""

    people: pa.Table
    table: str
    secret: Secret

    def __str__(self) -> str:
        return f"{self.people.num_rows} people of '{self.table}', secret: {self.secret}"


def copy_people(
    session: Session, *, table: str | None = None, secret: str | None = None, people: int = 96
) -> Copy:
    """A copy of so many units of a ``table``: of each, whether a row of theirs has the ``secret``.

    ``secret`` is a column, or a column, one of =, < and >, and a value; by default the first
    column that is declared to be true or false, or has declared values, or bounds.
    """
    from discreet.engine.duckdb.engine import DuckDBEngine

    if not LEAST <= people <= MOST:
        raise InvalidParameter(
            "P2",
            f"the lab copies from {LEAST} to {MOST} people, not {people}.",
            why="fewer tell nothing of an attack, and more take long to solve for.",
            fix=f"copy from {LEAST} to {MOST}, such as 96.",
        )
    found = _find_table(session.schema, table)
    meant = _read_secret(found, secret)
    needed = {c.values_from[0] for c in found.columns if c.values_from}
    tables = {n: t for n, t in session.schema.tables.items() if n in {found.name, *needed}}
    sources = {n: source for n, source in session.sources().items() if n in tables}
    with DuckDBEngine(sources, replace(session.schema, tables=tables), opened=False) as engine:
        bits = engine.copy_bits(found.name, meant, people)
    if len(bits) < LEAST:
        raise InvalidParameter(
            "P2",
            f"fewer than {LEAST} people are in table '{found.name}'.",
            why="so few tell nothing of an attack.",
            fix="name a table with more people.",
        )
    copied = pa.table({"id": range(len(bits)), "secret": bits})
    return Copy(copied, found.name, meant)


def _find_table(schema: Schema, name: str | None) -> Table:
    owned = {
        n: t
        for n, t in schema.tables.items()
        if not t.public and t.source is not None and t.owners is Owners.ONE
    }
    found = next(iter(owned), None) if name is None else name
    if found not in owned:
        raise InvalidParameter(
            "P5",
            "there is no table whose rows each belong to one person."
            if name is None
            else f"{name!r} is no table whose rows each belong to one person.",
            why=_WHY,
            fix=f"one of: {', '.join(owned)}." if owned else "run the lab on its own town.",
        )
    return owned[found]


def _read_secret(table: Table, text: str | None) -> Secret:
    columns = {c.name: c for c in table.columns if c.name not in (table.unit or ())}
    if text is None:
        chosen = [guess for c in columns.values() if (guess := _usual(c.name, c)) is not None]
        chosen.sort(key=lambda one: one[0])
        if not chosen:
            raise _no_secret(table, columns)
        return chosen[0][1]
    read = _TEST.fullmatch(text)
    if read is None or read[1] not in columns:
        raise _no_secret(table, columns)
    name, sign, value = read.groups()
    kind = columns[name].kind
    if sign is None:
        usual = _usual(name, columns[name])
        if usual is None:
            raise _no_secret(table, columns)
        return usual[1]
    value = value.strip("'\"")
    if sign == "=":
        return Secret(name, "=", value.lower() if kind is Kind.BOOLEAN else value)
    try:
        return Secret(name, sign, float(value))
    except ValueError:
        raise _no_secret(table, columns) from None


def _usual(name: str, column: Column) -> tuple[int, Secret] | None:
    """The secret that a column suggests, by what is declared of it; the plainest kind first."""
    kind, values = column.kind, column.values
    if kind is Kind.BOOLEAN:
        return 0, Secret(name, "=", "true")
    if values and kind is Kind.TEXT:
        return 1, Secret(name, "=", str(values[0]))
    low, high = column.domain.low, column.domain.high
    if kind.is_number and low is not None and high is not None:
        return 2, Secret(name, ">", float((low + high) / 2))
    return None


def _no_secret(table: Table, columns: Iterable[str]) -> InvalidParameter:
    return InvalidParameter(
        "P5",
        f"that is no secret of the people in '{table.name}'.",
        why=_WHY,
        fix="--secret COLUMN, 'COLUMN = VALUE' or 'COLUMN > NUMBER'; its columns are "
        f"{', '.join(columns)}.",
    )


# --- attacks -----------------------------------------------------------------------------------


def own_chapters(copy: Copy, epsilon: Fraction, names: Sequence[str] = ()) -> list[Chapter]:
    """The chapters of the lab that can be run on a copy, with what the session promises in all."""
    for name in names:
        find_chapter(name)
        if name not in ATTACKS:
            raise InvalidParameter(
                "P5",
                f"the chapter {name!r} is about people who do not exist.",
                why="it needs more of everybody than one secret, or no data at all.",
                fix=f"on a session, one of: {', '.join(ATTACKS)}.",
            )
    return [_own(name, copy, epsilon) for name in names or ATTACKS]


def _own(name: str, copy: Copy, epsilon: Fraction) -> Chapter:
    known = find_chapter(name)
    return replace(known, run=partial(_run, name, copy, epsilon))


def _run(name: str, copy: Copy, epsilon: Fraction) -> Seen:
    tables = {"people": copy.people}
    found: list[Outcome] = []
    for attack in (_fit(one, copy.people.num_rows) for one in ATTACKS[name]):
        for make in _TARGETS[attack.name]:
            with make(tables) as target:
                found.append(attack.run(target, copy.people))
        found.append(attack_ours(attack, copy.people, epsilon))
    return Seen(tuple(found), (str(copy),), (compare(found, f"Secrets of '{copy.table}'"),))


def _fit(attack: Attack, people: int) -> Attack:
    """Four questions for each person are enough to solve for all of them."""
    if isinstance(attack, Reconstruction | Tracing):
        return replace(attack, questions=4 * people)
    return attack


def attack_ours(attack: Attack, people: pa.Table, epsilon: Fraction) -> Outcome:
    """The attack on the curator with ``epsilon`` in all, divided among its questions."""
    price = str(epsilon / attack.questions)
    budget = Budget(epsilon=epsilon)
    with Ours({"people": people}, schema=COPY, budget=budget, epsilon=price) as target:
        return attack.run(target, people, epsilon=epsilon)


def _jitter(tables: dict[str, pa.Table]) -> Open:
    return Jittering(tables, scale=4, dice=Dice("jitter"))


_TARGETS: dict[str, tuple[Callable[[dict[str, pa.Table]], Open], ...]] = {
    "a count of one": (Open, Suppressing),
    "differencing": (Open,),
    "a tracker": (Suppressing,),
    "averaging 400 answers": (_jitter,),
    "reconstruction": (Open,),
    "tracing": (Open,),
}

__all__ = ["Copy", "attack_ours", "copy_people", "own_chapters"]
