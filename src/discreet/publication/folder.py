"""A release as a folder to hand over, complete or absent; and what its receiver can check.

``certificate.json`` says what was declared, promised and charged; ``measurements.parquet``
holds every draw.  Everything else is computed from these two, so whoever has the folder
can compute it again: :func:`read_folder` does, and :mod:`verifying` compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.accounting.loss import Loss
from discreet.accounting.neighbours import Neighbours
from discreet.errors import DataRefusal, InvalidParameter, LedgerRefusal, Refusal
from discreet.exact.numbers import fraction
from discreet.publication.declared import Declared
from discreet.publication.draws import (
    draw_lines,
    draw_loss,
    noise_parameter,
    shape_of,
)
from discreet.publication.handed import TooLarge, read_parquet
from discreet.publication.legend import KEY, write_legend
from discreet.publication.measure import Measurement, Query
from discreet.publication.outline import Outline
from discreet.publication.placing import is_plain, place_folder
from discreet.publication.product import PLANNER, Product, make_product
from discreet.publication.spend import Kind as SpendKind
from discreet.publication.spend import Spend
from discreet.publication.typed import counts_table, round_counts, rows_table
from discreet.question.domain import Kind
from discreet.question.levels import Levels
from discreet.release.record import from_json, to_json

FORMAT = "discreet release"
CERTIFICATE, MEASUREMENTS = "certificate.json", "measurements.parquet"
CARD, REPORT = "card.md", "report.html"
WORDING = 4
"""The version of the words of card and report: whoever changes one of them counts on."""
MOST_BYTES = 2**28
"""Of a text that somebody hands over: a longer one is not read."""
_MOST_NUMBERS = 10**8  # in all draws of a release, maps and matrices included


@dataclass(frozen=True, slots=True)
class Promise:
    """What a release promises to whom: beside its stages, all that its certificate says."""

    dataset: str
    unit: str
    neighbours: str
    rows_per_unit: int
    """By how many rows the data differ at most: a change takes some out and puts some in."""

    @property
    def counted(self) -> int:
        """How many rows of one unit are counted at most."""
        changed = self.neighbours == Neighbours.CHANGE_ONE.value
        return self.rows_per_unit // 2 if changed else self.rows_per_unit


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A release that was made: what was declared, what was charged, what came of it."""

    declared: Declared
    levels: tuple[Levels, ...]
    promise: Promise
    stages: tuple[Outline, ...]
    charges: tuple[int, ...]
    product: Product
    planner: int = PLANNER
    wording: int = WORDING

    @property
    def loss(self) -> Loss:
        """What all stages cost together, as the ledger counts them."""
        return sum((stage.spend.loss.rounded() for stage in self.stages), start=_nothing())

    def certificate(self) -> dict[str, Any]:
        """What was declared, promised and charged, as JSON."""
        spend = self.stages[0].spend
        total = sum((stage.spend.amount for stage in self.stages), start=Fraction(0))
        return {
            "format": FORMAT,
            "version": 1,
            "planner": self.planner,
            "wording": self.wording,
            "declared": self.declared.to_json(),
            "dataset": self.promise.dataset,
            "promise": {
                spend.kind.value: str(total),
                "epsilon_at_delta": _convert(self.declared),
                "unit": self.promise.unit,
                "neighbours": self.promise.neighbours,
                "rows_per_unit": self.promise.rows_per_unit,
            },
            "columns": [_levels_json(one) for one in self.levels],
            "stages": [
                {
                    "name": stage.name,
                    "kind": stage.spend.kind.value,
                    "amount": str(stage.spend.amount),
                    "charge": charge,
                    "units": list(stage.spend.loss.to_units()),
                }
                for stage, charge in zip(self.stages, self.charges, strict=True)
            ],
        }

    def lines(self) -> list[dict[str, Any]]:
        """The lines of ``measurements.parquet``."""
        names = [column.name for column in self.product.columns]
        return [
            line
            for stage, measurements in self.product.measured.items()
            for line in draw_lines(stage, names, measurements)
        ]


def _convert(declared: Declared) -> list[str] | None:
    if declared.epsilon is None:
        return None
    return [str(declared.epsilon), str(declared.delta or 0)]


def _levels_json(levels: Levels) -> dict[str, Any]:
    return {
        "name": levels.name,
        "column": levels.column,
        "type": levels.kind.value,
        "count": levels.count,
        "nullable": levels.nullable,
        "values": None if levels.values is None else to_json(levels.values),
        "low": str(levels.low),
        "high": str(levels.high),
        "step": None if levels.step is None else str(levels.step),
        "words": [levels.describe(level) for level in range(min(levels.size, 1000))],
    }


def _read_levels(line: Mapping[str, Any]) -> Levels:
    return Levels(
        line["column"],
        Kind(line["type"]),
        line["count"],
        line["nullable"],
        None if line["values"] is None else tuple(from_json(line["values"])),
        fraction(line["low"]),
        fraction(line["high"]),
        None if line["step"] is None else fraction(line["step"]),
    )


# --- writing ------------------------------------------------------------------------------------


def data_files(made: Made) -> dict[str, Any]:
    """The tables of a release by the name of their file, without its ending."""
    import pyarrow as pa

    found = {}
    if made.product.placed is not None:
        found[ROWS] = rows_table(made.levels, made.product.placed)
    for table in made.product.tables:
        found[f"tables/{table.name}"] = counts_table(made.levels, table)
    if made.product.answers:
        questions, values, margins = zip(*made.product.answers, strict=True)
        found["answers"] = pa.table(
            {"question": list(questions), "n": list(values), "margin": list(margins)}
        )
    return found


ROWS = "rows"
"""The file of synthetic rows; all others hold counts."""


def legible(name: str, table: Any) -> Any:
    """The table of a file as its CSV has it, for people; its Parquet has every digit."""
    return table if name == ROWS else round_counts(table)


def write_folder(made: Made, folder: Path, *, anew: bool = False) -> Path:
    """Write a release, all of it or nothing: it appears under its name when it is complete.

    ``anew`` takes the place of an earlier folder: that of a counter, after another step.
    """
    return place_folder(folder, lambda draft: _write_files(made, draft), anew=anew)


def _write_files(made: Made, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    from discreet.publication.report import write_card, write_report

    for name, table in data_files(made).items():
        (folder / name).parent.mkdir(exist_ok=True)
        pq.write_table(table, folder / f"{name}.parquet")
        csv.write_csv(legible(name, table), folder / f"{name}.csv")
    schema = _schema().with_metadata({KEY: write_legend(made)})
    pq.write_table(pa.Table.from_pylist(made.lines(), schema=schema), folder / MEASUREMENTS)
    certificate = json.dumps(made.certificate(), indent=2, ensure_ascii=False)
    (folder / CERTIFICATE).write_text(certificate + "\n", encoding="utf-8")
    (folder / CARD).write_text(write_card(made), encoding="utf-8")
    (folder / REPORT).write_text(write_report(made), encoding="utf-8")


def _schema() -> Any:
    import pyarrow as pa

    texts = ("stage", "kind", "noise", "parameter", "sensitivity", "loss")
    whole = pa.list_(pa.int64())
    lists = ("shape", "values", "matrix", "diagonal", "reference", "ranks")
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("columns", pa.list_(pa.string())),
            ("maps", pa.list_(whole)),
            *((name, whole) for name in lists),
        ]
    )


# --- reading and checking -----------------------------------------------------------------------


class Replayed:
    """A measurer of what was drawn before: the lines of ``measurements.parquet``, in order."""

    def __init__(self, lines: Sequence[Mapping[str, Any]]) -> None:
        self._lines = list(lines)
        self._next = 0

    def turn_to(self, stage: str) -> bool:  # noqa: ARG002 (lines are in the order of the stages)
        """Whether there are lines left."""
        return self._next < len(self._lines)

    def measure(self, queries: Sequence[Query]) -> list[Measurement]:
        """What was drawn for these queries, which must be those that the lines tell of."""
        lines = self._lines[self._next : self._next + len(queries)]
        self._next += len(queries)
        if len(lines) != len(queries):
            raise _damaged_refusal("measurements are missing.")
        return [_replay(query, line) for query, line in zip(queries, lines, strict=True)]


def _replay(query: Query, line: Mapping[str, Any]) -> Measurement:
    same = (
        list(shape_of(query)) == line["shape"]
        and fraction(line["parameter"]) == noise_parameter(query.noise)
        and fraction(line["loss"]) == draw_loss(query)
    )
    if not same:
        raise _damaged_refusal("a measurement is not the one that the plan asks for.")
    values = np.array(line["values"], dtype=np.int64).reshape(shape_of(query))
    return Measurement(query, values)


def read_folder(folder: Path) -> Made:
    """The release in a folder, computed again from its certificate and its measurements."""
    import pyarrow as pa

    try:
        said = read_certificate(folder)
        lines = read_lines(folder)
    except (OSError, ValueError, RecursionError, pa.ArrowException):
        raise DataRefusal(
            "D2",
            f"{folder.name!r} is not the folder of a release.",
            why="without a certificate and measurements nothing can be said of it.",
            fix=f"name a folder that holds {CERTIFICATE} and {MEASUREMENTS}.",
        ) from None
    with trusting_nothing():
        if said["format"] != FORMAT or said["version"] != 1:
            raise _damaged_refusal("the certificate is of another format or version.")
        return remake(said, lines)


def read_certificate(folder: Path) -> dict[str, Any]:
    """What a folder says of itself; nothing that could be read in two ways."""
    file = folder / CERTIFICATE
    if not is_plain(file, most=MOST_BYTES):
        raise FileNotFoundError(file)
    said = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_take_once)
    if not isinstance(said, dict):
        raise _damaged_refusal("its certificate is of another form.")
    return said


def _take_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _damaged_refusal("its certificate says something twice.")
    return found


@contextmanager
def trusting_nothing() -> Iterator[None]:
    """A refusal, whatever is wrong with the form of what somebody handed over."""
    try:
        yield
    except Refusal:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError):
        raise _damaged_refusal("a part of it is missing or has another form.") from None


def remake(said: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> Made:
    """A release from what it was declared to be and what was drawn: the reconstruction."""
    declared = read_declared(said["declared"])
    levels = tuple(_read_levels(one) for one in said["columns"])
    promise = said["promise"]
    rows = promise["rows_per_unit"]
    stages = tuple(
        Outline(one["name"], Spend(SpendKind(one["kind"]), fraction(one["amount"]), rows), "")
        for one in said["stages"]
    )
    planner, wording = said.get("planner", 1), said.get("wording", 0)
    if type(planner) is not int or planner not in range(1, PLANNER + 1):
        raise _damaged_refusal("it was planned by a later version of the program.")
    whole = declared.spend(rows_per_unit=rows)
    product = make_product(declared, levels, whole, Replayed(lines), planner=planner)
    return Made(
        declared,
        levels,
        Promise(said["dataset"], promise["unit"], promise["neighbours"], rows),
        stages,
        tuple(one["charge"] for one in said["stages"]),
        product,
        planner,
        wording,
    )


def read_declared(said: Mapping[str, Any]) -> Declared:
    """What a certificate or a plan declares."""
    given = dict(said)
    try:
        name, kind, source = (given.pop(key) for key in ("name", "kind", "of"))
    except KeyError as error:
        raise InvalidParameter(
            "P4",
            f"a release is declared without {error.args[0]!r}.",
            why="a release is paid for once, so what it is must be plain before.",
            fix='write name = "…", kind = "…" and of = "…".',
        ) from None
    return Declared.of(name, kind=kind, of=source, **given)


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """The draws; a small file may say that it holds more than there is room for."""
    if not is_plain(folder / MEASUREMENTS):
        raise FileNotFoundError(folder / MEASUREMENTS)
    try:
        held = read_parquet(folder / MEASUREMENTS, most_values=_MOST_NUMBERS, most_bytes=MOST_BYTES)
    except TooLarge as error:
        raise _damaged_refusal(str(error)) from None
    lines: list[dict[str, Any]] = held.to_pylist()
    return lines


def read_legend(folder: Path) -> bytes | None:
    """What the measurements say of themselves; None in a folder of before they did."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(folder / MEASUREMENTS) as file:
        said = (file.metadata.metadata or {}).get(KEY)
    return None if said is None else bytes(said)


def _nothing() -> Loss:
    return Loss(Fraction(0), Fraction(0))


def _damaged_refusal(what: str) -> LedgerRefusal:
    return LedgerRefusal(
        "L10",
        f"the release cannot be read: {what}",
        why="numbers that do not belong together would say what nobody measured.",
        fix="ask whoever made it for the folder again.",
    )


__all__ = [
    "WORDING",
    "Made",
    "Promise",
    "data_files",
    "legible",
    "read_certificate",
    "read_folder",
    "read_legend",
    "read_lines",
    "write_folder",
]
