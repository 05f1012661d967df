"""The lab on one's own session: attacks on a copy of some of its people, which charges nothing.

Only whoever holds the data can run it: it reads the source, takes of some people whether they have
one secret and a code for each other thing that the table says of them, and attacks that copy, first
behind answers as other systems give them and then behind the curator with the session's own ε.  The
session's ledger is neither read nor written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.accounting.budget import Budget
from discreet.engine.duckdb.examine import Secret
from discreet.errors import InvalidParameter
from discreet.lab.attacks import ATTACKS, TARGETS, Attack, Linkage, Make, Reconstruction, Tracing
from discreet.lab.chapters import Chapter, Seen, find_chapter, separate
from discreet.lab.dalenius import REPEAT, SECRET_BITS, Unlocking
from discreet.lab.linkage import share_unique
from discreet.lab.outcome import Outcome, compare
from discreet.lab.separations import Parity, Studies, expected_success
from discreet.lab.target import Ours
from discreet.question.domain import Kind
from discreet.question.schema import Column, Owners, Schema, Table

if TYPE_CHECKING:
    from discreet.curate.session import Session

MOST = 200
"""How many people are attacked at most: the linear program works on all of them."""
LEAST = 20
CROWD = 20_000
"""How many are copied at most, for the chapter that needs many."""
GROUP = 20
"""So many people are in each group of the utility vector, at least."""
CODEWORD = 8
"""So many bits has the shortest codeword behind which gossip hides one bit."""
LARGEST = 700
"""The largest ε that a copy is attacked with: beyond it an account counts no more."""
KNOWN = 8
"""So many columns besides the secret are taken for known at most."""
BITS, MOST_BITS = 5, 10
"""So many things that are so or not must be known of people to tell three ways apart, and are."""
STUDIES = 40
"""So many studies are chosen among the people."""
_TEST = re.compile(r"\s*(\w+)\s*(?:(=|<|>)\s*(.+?))?\s*", re.DOTALL)
_WHY = "the attack is on somebody's secret, and somebody's it must be."


@dataclass(frozen=True, slots=True)
class Copy:
    """Some people of a session: of each a number, whether they have the secret, and codes."""

    people: pa.Table
    table: str
    secret: Secret
    known: tuple[str, ...] = ()
    """The columns that stand as codes ``known0``, ``known1``, ... for what a register might say."""
    crowd: pa.Table | None = None
    """Many more of them: a number, and whether they have the secret."""

    def __str__(self) -> str:
        return f"{self.people.num_rows} people of '{self.table}', secret: {self.secret}"

    @property
    def codes(self) -> tuple[str, ...]:
        """The columns of codes."""
        return tuple(f"known{place}" for place in range(len(self.known)))


def copy_people(
    session: Session, *, table: str | None = None, secret: str | None = None, people: int = 96
) -> Copy:
    """A copy of so many units of a ``table``: of each, whether a row of theirs has the ``secret``.

    ``secret`` is a column, or a column, one of =, < and >, and a value; by default the first
    column that is declared to be true or false, or has declared values, or bounds.
    """
    from discreet.engine.duckdb.engine import DuckDBEngine
    from discreet.engine.opening import require_copy

    require_copy(session.engine.get("kind", "duckdb"), "the lab")
    if not LEAST <= people <= MOST:
        raise InvalidParameter(
            "P2",
            f"the lab attacks from {LEAST} to {MOST} people, not {people}.",
            why="fewer tell nothing of an attack, and more take long to solve for.",
            fix=f"attack from {LEAST} to {MOST}, such as 96.",
        )
    found = _find_table(session.schema, table)
    meant = _read_secret(found, secret)
    needed = {c.values_from[0] for c in found.columns if c.values_from}
    tables = {n: t for n, t in session.schema.tables.items() if n in {found.name, *needed}}
    sources = {n: source for n, source in session.sources().items() if n in tables}
    known = [c.name for c in found.columns if c.name not in {*(found.unit or ()), meant.column}]
    known = known[:KNOWN]
    with DuckDBEngine(sources, replace(session.schema, tables=tables), opened=False) as engine:
        rows = engine.copy_people(found.name, meant, known, CROWD)
    if len(rows) < LEAST:
        raise InvalidParameter(
            "P2",
            f"fewer than {LEAST} people are in table '{found.name}'.",
            why="so few tell nothing of an attack.",
            fix="name a table with more people.",
        )
    crowd = pa.table({"id": range(len(rows)), "secret": [bit for bit, *_ in rows]})
    few = crowd.slice(0, people)
    if len(set(few["secret"].to_pylist())) == 1:
        raise InvalidParameter(
            "P5",
            "all people who would be attacked have the secret, or none has.",
            why="what everybody has is no secret, and is guessed without an attack.",
            fix="name another: --secret 'COLUMN > NUMBER' with about as many above as below.",
        )
    for place in range(len(known)):
        few = few.append_column(f"known{place}", [[row[1 + place] for row in rows[:people]]])
    return Copy(few, found.name, meant, tuple(known), crowd)


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
        number = float(value)
    except ValueError:
        raise _no_secret(table, columns) from None
    if not (kind.is_number and isfinite(number)):  # texts have no order that is a secret
        raise _no_secret(table, columns)
    return Secret(name, sign, number)


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


@dataclass(frozen=True, slots=True)
class Trial:
    """An attack on a copy: behind each of some targets, and then behind ours."""

    attack: Attack
    people: pa.Table
    targets: tuple[Make, ...]


def own_chapters(copy: Copy, epsilon: Fraction, names: Sequence[str] = ()) -> list[Chapter]:
    """The chapters of the lab that can be run on a copy, with what the session promises in all."""
    if epsilon > LARGEST:
        raise InvalidParameter(
            "P2",
            f"the lab attacks a promise of at most {LARGEST}.",
            why="a larger epsilon hides nobody, which no attack needs to show.",
            fix="a smaller one: --epsilon 1.",
        )
    impossible = why_not(copy)
    for name in names:
        find_chapter(name)
        if name in impossible:
            others = ", ".join(one for one in ATTACKS if one not in impossible)
            raise InvalidParameter(
                "P5",
                f"the chapter {name!r} cannot be run on these people.",
                why=impossible[name],
                fix=f"on this session, one of: {others}.",
            )
    return [_own(name, copy, epsilon) for name in names or ATTACKS if name not in impossible]


def why_not(copy: Copy) -> dict[str, str]:
    """The chapters that cannot be run on a copy, and why."""
    found = {}
    if choose_studies(copy) is None:
        found["separate"] = (
            f"it needs at least {BITS} things that are so or not of each person, and people of "
            "both parities over many sets of them; the table tells less."
        )
    if not copy.known:
        found["link"] = "the table says nothing of anybody but who they are and the secret."
    if _codeword(copy) < CODEWORD:
        least = CODEWORD * REPEAT * GROUP
        found["dalenius"] = (
            f"gossip needs a table that tells much: of at least {least:,} people, and here are "
            "fewer."
        )
    return found


def _own(name: str, copy: Copy, epsilon: Fraction) -> Chapter:
    known = find_chapter(name)
    return replace(known, run=partial(_run, name, copy, epsilon))


def choose_studies(copy: Copy) -> Studies | None:
    """Studies of the people of a copy, each of one parity over a set of their own bits.

    The bits are the secret's and those of the codes, the lowest of each column first.
    None where there are too few.
    """
    codes = [np.array(copy.people[name]) for name in ("secret", *copy.codes)]
    bits = [
        (code >> place) & 1
        for place in range(CROWD.bit_length())
        for code in codes
        if int(code.max()) >> place
    ][:MOST_BITS]
    if len(bits) < BITS:
        return None
    rows = np.sum([bit << place for place, bit in enumerate(bits)], axis=0)
    return Studies.choose(rows, STUDIES, min(16, len(rows) // 4), len(bits))


def _separate(copy: Copy, epsilon: Fraction) -> Seen:
    """Asked, published in advance, each alone: of studies that are chosen among the copy."""
    studies = choose_studies(copy)
    if studies is None:
        raise ValueError("why_not says so")
    found = separate(Parity.among(studies), str(epsilon))
    theory = expected_success(studies.people, studies.columns, epsilon)
    shares = (f"{share:.0%} {word}" for word, share in zip(_WAYS, theory.values(), strict=True))
    figures = (
        str(copy),
        f"studies of {studies.people} of them, by {studies.columns} things that are so or not; by "
        f"the theorem: {', '.join(shares)}",
    )
    return Seen(tuple(found), figures, (compare(found, f"Parities in '{copy.table}'"),))


_WAYS = ("asked", "published in advance", "each alone")


def _run(name: str, copy: Copy, epsilon: Fraction) -> Seen:
    if name == "separate":
        return _separate(copy, epsilon)
    found: list[Outcome] = []
    for trial in (_try(attack, copy) for attack in ATTACKS[name]):
        tables = {"people": trial.people}
        for make in trial.targets:
            with make(tables) as target:
                found.append(trial.attack.run(target, trial.people))
        found.append(attack_ours(trial.attack, trial.people, epsilon))
    figures = [str(copy)]
    if name == "link":
        alone = share_unique(
            copy.people.to_pylist(), lambda person: tuple(person[code] for code in copy.codes)
        )
        figures.append(f"alone among them with {', '.join(copy.known)}: {alone:.0%}")
    return Seen(tuple(found), tuple(figures), (compare(found, f"Secrets of '{copy.table}'"),))


def _try(attack: Attack, copy: Copy) -> Trial:
    """The attack in the size of a copy, on whom, and what it breaks."""
    people = copy.people
    if isinstance(attack, Reconstruction | Tracing):  # four questions for each person are enough
        attack = replace(attack, questions=4 * people.num_rows)
    elif isinstance(attack, Linkage):
        attack = replace(attack, known=copy.codes, sought="secret", tried=40)
    elif isinstance(attack, Unlocking):
        people = people if copy.crowd is None else copy.crowd
        word = _codeword(copy)
        bits = max(1, SECRET_BITS * word // 40)
        attack = replace(attack, groups=REPEAT * word, secret_bits=bits)
    return Trial(attack, people, TARGETS[attack.name])


def _codeword(copy: Copy) -> int:
    """How many bits of a codeword a copy can hide: seven groups for each."""
    people = copy.people if copy.crowd is None else copy.crowd
    return min(40, int(people.num_rows) // (REPEAT * GROUP))


def attack_ours(attack: Attack, people: pa.Table, epsilon: Fraction) -> Outcome:
    """The attack on the curator with ``epsilon`` in all, divided among its questions."""
    price = str(epsilon / attack.questions)
    budget, schema = Budget(epsilon=epsilon), declare(people)
    with Ours({"people": people}, schema=schema, budget=budget, epsilon=price) as target:
        return attack.run(target, people, epsilon=epsilon)


def declare(people: pa.Table) -> Schema:
    """What a curator would declare of a copy: numbers, and bits."""
    bounds = dict.fromkeys(people.column_names, CROWD - 1) | {"secret": 1}
    columns = "\n".join(
        f'{name} = {{ type = "integer", bounds = [0, {most}] }}' for name, most in bounds.items()
    )
    return Schema.from_text(
        f'[tables.people]\nunit = "id"\nmax_rows_per_unit = 1\n[tables.people.columns]\n{columns}\n'
    )


__all__ = [
    "Copy",
    "attack_ours",
    "choose_studies",
    "copy_people",
    "declare",
    "own_chapters",
    "why_not",
]
