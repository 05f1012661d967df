"""Reading, summarising and rewriting the golden questions of ``tests/golden/*.sql``.

Each block of a file is an optional comment, one question, and its verdict::

    -- People: the unit counted once each.
    SELECT COUNT(DISTINCT patient_id) AS patients FROM visits;
    --> accepted
    --> values: patients = COUNT(DISTINCT visits.patient_id)
    --> rows: at most 20 of one unit

or ``--> refused Q12``.  A line ``--> price: ...`` is compared with what
``price_of`` says, where it is present.  After a change of the dialect::

    python tests/golden_cases.py            # rewrites the verdicts; read the diff
    python tests/golden_cases.py --prices   # and gives a price to those that have none
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from discreet.errors import Refusal
from discreet.question.catalogue import Catalogue
from discreet.question.ownership import row_bound, unit_columns
from discreet.question.question import Key, Question
from discreet.question.schema import Schema
from discreet.question.sql import ParsedStatement, _column, _Surface, parse_statement
from discreet.question.sql.aggregates import write_aggregate
from discreet.question.sql.dialect import write_text
from discreet.question.sql.scalars import column
from discreet.question.statement import Statement

FOLDER = Path(__file__).parent / "golden"
SCHEMA = Schema.from_toml(FOLDER / "clinic.toml")
NOW = datetime(2026, 11, 16, 12, 30)


@dataclass(frozen=True)
class Case:
    """One question and its verdict."""

    file: str
    line: int
    comment: tuple[str, ...]
    question: str
    verdict: tuple[str, ...]

    @property
    def price(self) -> str | None:
        """What the file says of the price, if anything."""
        return next((v for v in self.verdict if v.startswith("price:")), None)

    @property
    def rest(self) -> tuple[str, ...]:
        """The verdict without the price."""
        return tuple(v for v in self.verdict if not v.startswith("price:"))


def cases(path: Path) -> Iterator[Case]:
    """The questions of one file."""
    comment: list[str] = []
    question: list[str] = []
    verdict: list[str] = []
    start = 0
    for number, line in enumerate([*path.read_text().splitlines(), ""], start=1):
        if line.startswith("--> "):
            verdict.append(line.removeprefix("--> "))
        elif line:
            if line.startswith("-- ") and not question:
                comment.append(line)
            else:
                start = start or number
                question.append(line)
        elif question:
            text = "\n".join(question).removesuffix(";")
            yield Case(path.name, start, tuple(comment), text, tuple(verdict))
            comment, question, verdict, start = [], [], [], 0


def all_cases() -> list[Case]:
    """Every golden question."""
    return [case for path in sorted(FOLDER.glob("*.sql")) for case in cases(path)]


def verdict_of(text: str) -> tuple[str, ...]:
    """What the parser makes of ``text``, in the words of the golden files."""
    try:
        return summary(accept(text))
    except Refusal as refusal:
        return (f"refused {refusal.code}",)


def accept(text: str) -> ParsedStatement:
    """What the parser makes of ``text``, and the engine of what stands around questions."""
    found = parse_statement(text, SCHEMA, now=NOW)
    if isinstance(found.question, Statement):
        _check_bound(found.question)
    return found


def summary(found: ParsedStatement) -> tuple[str, ...]:
    """An accepted question in a few lines."""
    question = found.question
    lines = ["explained" if found.explain else "accepted"]
    if isinstance(question, Statement):
        asked = enumerate(question.questions, start=1)
        lines += [f"question {number}: {_unquoted(part.text)}" for number, part in asked]
        lines.append(f"computed: {_unquoted(question.sql)}")
        if question.spend is not None:
            lines.append(f"spend: {question.spend}")
        return tuple(lines)
    if question.keys:
        lines.append("groups: " + ", ".join(map(_key, question.keys)))
    if question.aggregates:
        lines.append("values: " + ", ".join(_aggregates(question)))
    after = [
        word
        for word, there in (
            ("HAVING", question.having is not None),
            ("ORDER BY", bool(question.order)),
            (f"LIMIT {question.limit}", question.limit is not None),
        )
        if there
    ]
    names = {*(k.name for k in question.keys), *(a.name for a in question.aggregates)}
    computed = [o.name for o in question.outputs if o.name not in names]
    if computed:
        after.insert(0, f"computed {', '.join(computed)}")
    if after:
        lines.append("after: " + ", ".join(after))
    lines.append("rows: " + _rows(question))
    if question.spend is not None:
        given = {
            "epsilon": question.spend.epsilon,
            "rho": question.spend.rho,
            "delta": question.spend.delta,
            "within": dict(question.spend.within).get(""),
        }
        lines.append("spend: " + ", ".join(f"{k} {v}" for k, v in given.items() if v is not None))
    return tuple(lines)


def _check_bound(statement: Statement) -> None:
    """Let the engine take what stands around the questions, as the curator does; or refuse."""
    from discreet.release.combining import bind

    bind(statement, Catalogue(SCHEMA))


def _unquoted(sql: str) -> str:
    return sql.replace('"', "")


def _key(key: Key) -> str:
    if key.values is None:
        return f"{key.name} (private)"
    null = " and NULL" if None in key.values else ""
    return f"{key.name} ({sum(v is not None for v in key.values)} public{null})"


def _aggregates(question: Question) -> Iterator[str]:
    unit = [_column(name) for name in unit_columns(question.source) if name is not None]
    for aggregate in question.aggregates:
        tree = _Surface(unit).tree(write_aggregate(aggregate, column))
        yield f"{aggregate.name} = {write_text(tree)}".replace('"', "")


def _rows(question: Question) -> str:
    limits = question.limits
    bound = row_bound(question.source)
    found = f"at most {bound} of one unit" if bound is not None else "no bound on one unit's"
    if limits.max_rows is not None:
        found += f", {limits.max_rows} counted"
    if limits.max_groups is not None:
        found += f", in {limits.max_groups} groups"
    if limits.max_rows_per_group is not None:
        found += f", {limits.max_rows_per_group} in each"
    return found


def price_of(question: Question | Statement) -> str:
    """The price of a question at epsilon 1/2 and delta 1e-9, in one line.

    Of a statement, the price of each of its questions at that offer.
    """
    if isinstance(question, Statement):
        prices = [price_of(part).removeprefix("price: ") for part in question.questions]
        return f"price: {' / '.join(prices)}"
    from discreet.price import price
    from discreet.question.offer import Offer

    spend = Offer(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9))
    try:
        priced = price(question, spend, Catalogue(SCHEMA))
    except Refusal as refusal:
        return f"price: refused {refusal.code}"
    mechanisms = ", ".join(type(mechanism).__name__ for mechanism in priced.mechanisms)
    return f"price: {priced.loss}; {mechanisms}"


def rewrite(path: Path, *, prices: bool = False) -> str:
    """One file, with every verdict as the parser gives it now; prices where there were some."""
    title = path.read_text().split("\n", 1)[0]
    blocks = [title]
    for case in cases(path):
        verdict = [*verdict_of(case.question)]
        if verdict[0] == "accepted" and (prices or case.price is not None):
            verdict.append(price_of(parse_statement(case.question, SCHEMA, now=NOW).question))
        comment = [line for line in case.comment if line != title]
        lines = [*comment, f"{case.question};", *(f"--> {v}" for v in verdict)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.sql")):
        file.write_text(rewrite(file, prices="--prices" in sys.argv))
