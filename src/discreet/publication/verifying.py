"""Whether the folder of a release is what it says: for whoever was handed one and trusts nobody.

Its certificate and its draws are read, and all else is computed again from these two: the plan,
with what each stage costs; every draw's question; the loss, from the form of the draws and their
noise; the tables, as Parquet and as CSV; the card and the words of the report.  What can be known
of a folder alone is checked.  Whether noise was drawn at all, and of which rows, it cannot show.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.accounting.neighbours import Neighbours
from discreet.exact.numbers import decimal_up, fraction
from discreet.publication.draws import loss_of_line
from discreet.publication.folder import (
    CARD,
    CERTIFICATE,
    MEASUREMENTS,
    MOST_BYTES,
    REPORT,
    WORDING,
    Made,
    data_files,
    legible,
    read_certificate,
    read_folder,
    read_legend,
    read_lines,
    trusting_nothing,
)
from discreet.publication.handed import TooLarge, read_parquet
from discreet.publication.legend import write_legend
from discreet.publication.outline import outline
from discreet.publication.placing import SUMS, find_changes, is_plain, list_entries
from discreet.publication.product import find_settings
from discreet.publication.report import write_card, write_report
from discreet.publication.spend import Kind as SpendKind
from discreet.publication.spend import Spend
from discreet.release.display import plural

_DESCRIPTION = re.compile(r"(<p><i>[^<]*</i></p>)")
_NO_PICTURE = ("<script", "<foreignobject", "<style", "<a ", "<image", "<iframe")
OTHER_WORDS = "not compared: in the words of another version; `discreet release report` has ours"
_NAMES = {"rho": "ρ", "epsilon": "ε"}


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at, and whether it holds."""

    what: str
    holds: bool | None
    """None: it cannot be compared here."""
    says: str


def verify_folder(folder: Path) -> list[Checked]:
    """Whether a folder is whole, costs what it says, and follows from its measurements."""
    return verify_made(read_folder(folder), folder)


def verify_made(made: Made, folder: Path) -> list[Checked]:
    """The same of a release that was read from the folder already."""
    said, lines, legend = read_certificate(folder), read_lines(folder), read_legend(folder)
    with trusting_nothing():
        own = made.lines()
        return [
            check_files(folder),
            _check_list(folder, made),
            _check_certificate(said, made),
            _check_draws(own, lines, legend in (None, write_legend(made))),
            *_check_losses(said, own, lines),
            _check_data(made, folder),
            _check_words(made, folder),
        ]


def check_files(folder: Path) -> Checked:
    """Whether every file is the one that the checksums were made of, and there is no other."""
    wrong = find_changes(folder)
    if wrong is None:
        return Checked("checksums", False, f"{SUMS} is missing")
    count = len(list_entries(folder)) - 1
    whole = f"{plural(count, 'file')} as {_were(count)} written"
    says = f"{wrong[0]} is not" if wrong else whole
    return Checked("checksums", not wrong, says)


def _check_list(folder: Path, made: Made) -> Checked:
    """Nothing is handed over beside what a release consists of: it would seem checked, too."""
    data = [f"{name}.{ending}" for name in data_files(made) for ending in ("parquet", "csv")]
    wanted = {*data, CERTIFICATE, MEASUREMENTS, CARD, REPORT, SUMS}
    odd = sorted(wanted ^ set(list_entries(folder)))
    missing = odd and odd[0] in wanted
    says = f"{odd[0]} is {'missing' if missing else 'no part of a release'}" if odd else "complete"
    return Checked("list of files", not odd, says)


def _check_certificate(said: Mapping[str, Any], made: Made) -> Checked:
    """Whether it promises what its stages cost, and these are the stages of its declaration."""
    whole = made.declared.spend(rows_per_unit=made.promise.rows_per_unit)
    settings = find_settings(made.planner, whole.kind)
    planned = [
        (one.name, one.spend.kind.value, str(one.spend.amount))
        for one in outline(made.declared, made.levels, whole, settings=settings)
    ]
    stages = [(one["name"], one["kind"], one["amount"]) for one in said["stages"]]
    charges = [one["charge"] for one in said["stages"]]
    counted = all(type(one) is int and one > 0 for one in charges)
    twice = made.promise.neighbours == Neighbours.CHANGE_ONE
    known = made.promise.neighbours in {one.value for one in Neighbours}
    known = known and not (twice and made.promise.rows_per_unit % 2)
    optional = {"planner", "wording"}
    again = {key: value for key, value in made.certificate().items() if key not in optional}
    told = {key: value for key, value in said.items() if key not in optional}
    if stages != planned:
        return Checked("certificate", False, "its stages are not those of its declaration")
    if told["promise"] != again["promise"] or not known:
        return Checked("certificate", False, "its promise is not that of its stages")
    if told != again or not counted or len(set(charges)) < len(charges):
        return Checked("certificate", False, "a part of it does not follow from its declaration")
    amount = whole.amount if len(stages) > 1 else fraction(stages[0][2])
    says = (
        f"{_NAMES[stages[0][1]]} = {decimal_up(amount)} promised, in {plural(len(stages), 'stage')}"
    )
    return Checked("certificate", True, says)


def _check_draws(
    own: Sequence[Mapping[str, Any]], lines: Sequence[dict[str, Any]], explained: bool
) -> Checked:
    """Whether every draw is told as the plan asked for it: columns, bins, weights, noise.

    ``explained`` is whether their legend is the one that follows.
    """
    if len(own) != len(lines):
        return Checked("draws", False, f"there are {len(lines)}, and the plan has {len(own)}")
    for place, (one, line) in enumerate(zip(own, lines, strict=True), 1):
        if any(line.get(key) != value for key, value in one.items()) or line.keys() - one.keys():
            return Checked("draws", False, f"number {place} is told otherwise than it was planned")
    if not explained:
        return Checked("draws", False, f"the legend in {MEASUREMENTS} says something else")
    return Checked("draws", True, f"{len(lines)} as {_were(len(lines))} planned")


def _check_losses(
    said: Mapping[str, Any], own: Sequence[Mapping[str, Any]], lines: Sequence[dict[str, Any]]
) -> list[Checked]:
    """The loss of every draw from its form and its noise, added up by stage."""
    rows = said["promise"]["rows_per_unit"]
    if said["declared"].get("steps_per_unit") is not None:
        return [_check_horizon(said, own, lines)]
    found: dict[str, Fraction] = {}
    for line in lines:
        found[line["stage"]] = found.get(line["stage"], Fraction(0)) + loss_of_line(line, rows)
    checks = []
    for stage in said["stages"]:
        amount = fraction(stage["amount"])
        measured = stage["name"] in found  # a stage that had nothing to measure has none
        drawn = found.pop(stage["name"], Fraction(0))
        spend = Spend(SpendKind(stage["kind"]), amount, rows)
        exact = drawn == (amount if measured else 0)
        exact = exact and list(spend.loss.to_units()) == stage["units"]
        says = f"{_NAMES[stage['kind']]} = {decimal_up(drawn)} drawn, {decimal_up(amount)} charged"
        checks.append(Checked(f"loss of {stage['name']}", exact, says))
    if found or len(own) != len(lines):
        checks.append(Checked("loss of all draws", False, "there are draws that nobody charged"))
    return checks


def _check_horizon(
    said: Mapping[str, Any], own: Sequence[Mapping[str, Any]], lines: Sequence[dict[str, Any]]
) -> Checked:
    """Of steps that share their noise: what all of them cost together, and how many there are."""
    rows = said["promise"]["rows_per_unit"]
    drawn = sum((loss_of_line(line, rows) for line in lines), start=Fraction(0))
    charged = sum((fraction(one["amount"]) for one in said["stages"]), start=Fraction(0))
    units = [
        list(Spend(SpendKind(one["kind"]), fraction(one["amount"]), rows).loss.to_units())
        for one in said["stages"]
    ]
    parts = ("stage", "kind", "matrix", "ranks", "parameter")
    as_planned = [[line[part] for part in parts] for line in own]
    running = [[line[part] for part in parts] for line in lines] == as_planned
    whole = drawn == charged if len(lines) == len(said["stages"]) else drawn <= charged
    holds = running and whole and units == [one["units"] for one in said["stages"]]
    steps = plural(len(lines), "step")
    says = f"ρ = {decimal_up(drawn)} drawn in {steps}, {decimal_up(charged)} charged"
    return Checked("loss of the horizon", holds, says)


def _check_data(made: Made, folder: Path) -> Checked:
    """Whether the data files are what the measurements give, whichever of both one reads."""
    files = data_files(made)
    wrong = []
    for name, table in files.items():
        file = folder / f"{name}.parquet"
        if not (is_plain(file) and _is_same_parquet(file, table)):
            wrong.append(file.relative_to(folder))
        file = folder / f"{name}.csv"
        # Folders of earlier versions have every digit in their CSV, too.
        either = (legible(name, table), table)
        if not (is_plain(file) and any(_is_same_csv(file, one) for one in either)):
            wrong.append(file.relative_to(folder))
    says = (
        f"{plural(len(files), 'table')} computed again" if not wrong else f"{wrong[0]} is another"
    )
    return Checked("data from measurements", not wrong, says)


def _were(count: int) -> str:
    return "it was" if count == 1 else "they were"


def _is_same_parquet(file: Path, table: Any) -> bool:
    import pyarrow as pa

    most = {"most_values": table.num_rows * table.num_columns, "most_bytes": table.nbytes}
    try:
        return bool(read_parquet(file, **most).equals(table))
    except (OSError, TooLarge, pa.ArrowException):
        return False


def _is_same_csv(file: Path, table: Any) -> bool:
    """Byte for byte, or value for value: another version may quote otherwise."""
    import pyarrow as pa
    from pyarrow import csv

    sink = io.BytesIO()
    csv.write_csv(table, sink)
    wanted = sink.getvalue()
    try:
        if file.stat().st_size > 2 * len(wanted) + 1000:
            return False
        held = file.read_bytes()
        if held == wanted:
            return True
        types = csv.ConvertOptions(
            column_types=table.schema, strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        return bool(csv.read_csv(io.BytesIO(held), convert_options=types).equals(table))
    except (OSError, pa.ArrowException):
        return False


def _check_words(made: Made, folder: Path) -> Checked:
    """The card and the report, without its pictures, which depend on what draws them."""
    if made.wording != WORDING:
        return Checked("card and report", None, OTHER_WORDS)
    for name in (CARD, REPORT):
        if not is_plain(folder / name, most=MOST_BYTES):
            return Checked("card and report", False, f"{name} is missing")
        held = (folder / name).read_text(encoding="utf-8", errors="replace")
        same = held == write_card(made) if name == CARD else _says_the_same(held, made)
        if not same:
            return Checked("card and report", False, f"{name} says something else")
    return Checked("card and report", True, "as they follow; pictures are not compared")


def _says_the_same(held: str, made: Made) -> bool:
    """The report as it is written, with pictures or with their descriptions in their places."""
    place = 0
    for number, part in enumerate(_DESCRIPTION.split(write_report(made, drawn=False))):
        if held.startswith(part, place):
            place += len(part)
        elif number % 2 and held.startswith("<svg", place) and "</svg>" in held[place:]:
            end = held.index("</svg>", place)
            if any(word in held[place:end].lower() for word in _NO_PICTURE):
                return False
            place = end + len("</svg>")
        else:
            return False
    return place == len(held)


__all__ = ["OTHER_WORDS", "Checked", "check_files", "verify_folder", "verify_made"]
