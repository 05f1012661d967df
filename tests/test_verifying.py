"""Folders that somebody forged, checksums included: each is noticed, and by the right check."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.curate import session as sessions
from discreet.errors import Refusal
from discreet.publication import folder, report, verifying
from discreet.publication.folder import WORDING, read_folder
from discreet.publication.handed import TooLarge, read_parquet
from discreet.publication.handover import verify_handover, write_handover
from discreet.publication.placing import write_sums
from discreet.publication.verifying import verify_folder

SCHEMA = """
[budget]
epsilon = 40
delta = 1e-6
[tables.visits]
source = "visits.parquet"
unit = "who"
max_rows_per_unit = 3
[tables.visits.columns]
who = "integer"
city = { type = "text", values = ["Cork", "", "NULL", "a, \\"b\\""] }
sick = { type = "boolean", nullable = false }
"""
DECLARED = {"of": "visits", "columns": ["city", "sick"], "epsilon": 4, "delta": "1e-9"}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    who = np.arange(900) // 2
    cities = np.array(["Cork", "", "NULL", 'a, "b"', None], dtype=object)[who % 5]
    table = pa.table({"who": who, "city": cities.tolist(), "sick": who % 3 == 0})
    pq.write_table(table, folder / "visits.parquet")
    sessions.init(folder, SCHEMA)
    with discreet.open(folder) as curator:
        curator.make_release("small", **DECLARED)
        curator.make_release("sets", kind="marginals", ways=1, **DECLARED)
    return folder / "releases"


@pytest.fixture
def given(made_once: Path, tmp_path: Path) -> Path:
    """A folder that somebody was handed."""
    return Path(shutil.copytree(made_once / "small", tmp_path / "small"))


def find_wrong(folder: Path) -> list[str]:
    """What does not hold of a folder whose forger wrote the checksums again."""
    write_sums(folder)
    return [check.what for check in verify_folder(folder) if check.holds is False]


def change(folder: Path, edit: Callable[[Any], Any]) -> None:
    """Change the certificate."""
    file = folder / "certificate.json"
    said = json.loads(file.read_text())
    edit(said)
    file.write_text(json.dumps(said))


def test_what_was_not_forged_holds(given):
    checks = verify_folder(given)
    assert all(check.holds is True for check in checks)
    assert [check.what for check in checks[:4]] == [
        "checksums",
        "list of files",
        "certificate",
        "draws",
    ]
    assert checks[-1].what == "card and report"


def test_losses_round_up_when_they_are_told(given):
    """Nobody is told that less was lost than the certificate says."""
    stages = json.loads((given / "certificate.json").read_text())["stages"]
    told = {check.what: check.says for check in verify_folder(given)}
    amounts = {stage["name"]: Fraction(stage["amount"]) for stage in stages}
    for name, amount in amounts.items():
        ((drawn, charged),) = re.findall(r"([\d.]+) drawn, ([\d.]+) ch", told[f"loss of {name}"])
        assert amount <= Fraction(charged) < amount * Fraction(100001, 100000)
        assert drawn in (charged, "0")  # nothing, where the pairs before explain all
    (shown,) = re.findall(r"([\d.]+) promised", told["certificate"])
    assert sum(amounts.values()) <= Fraction(shown)


@pytest.mark.parametrize(
    "edit",
    [
        lambda said: said["promise"].update(rho="1/100000"),
        lambda said: said["promise"].update(epsilon_at_delta=["1/1000", "1/1000000000"]),
        lambda said: said["promise"].update(epsilon_at_delta=None),
        lambda said: said["promise"].update(neighbours="none at all"),
        lambda said: said["promise"].update(
            neighbours="change-one"
        ),  # three rows are not twice any
        lambda said: said["promise"].update(note="approved"),
        lambda said: said.update(note="approved by the office"),
        lambda said: said["columns"][0].update(words=["x"] * 5),
        lambda said: said["stages"].append(said["stages"][0] | {"name": "more"}),
        lambda said: said["stages"].reverse(),
        lambda said: said["stages"][0].update(charge=-5),
        lambda said: said["stages"][0].update(charge={"a": 1}),
        lambda said: said["stages"][0].update(charge=said["stages"][1]["charge"]),
    ],
)
def test_a_certificate_promises_what_its_declaration_costs_and_no_less(edit, given):
    change(given, edit)
    assert "certificate" in find_wrong(given)


def test_a_share_that_was_moved_between_stages_is_noticed(given):
    """The total is as it was, and so is the promise."""

    def move(said: Any) -> None:
        first, second = (Fraction(one["amount"]) for one in said["stages"][:2])
        said["stages"][0]["amount"], said["stages"][1]["amount"] = (
            str(first - second / 2),
            str(second * 3 / 2),
        )

    change(given, move)
    assert find_wrong(given)[:3] == ["certificate", "draws", "loss of histograms"]


@pytest.mark.parametrize("key", ["promise", "stages"])
def test_what_is_said_twice_is_refused(key, given):
    """Readers take the first of two, or the last."""
    file = given / "certificate.json"
    file.write_text(file.read_text().replace("{", f'{{"{key}": [], ', 1))
    with pytest.raises(Refusal, match="says something twice"):
        find_wrong(given)


@pytest.mark.parametrize("planner", [True, 5.0, "5", None, 0, 99])
def test_a_plan_has_a_whole_number(planner, given):
    change(given, lambda said: said.update(planner=planner))
    with pytest.raises(Refusal, match="later version"):
        find_wrong(given)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sensitivity", "1"),
        ("columns", ["note"]),
        ("maps", [[0, 1, 2, 3, 3]]),
        ("matrix", [1]),
        ("reference", [0]),
        ("ranks", [7]),
        ("kind", "distance"),
        ("noise", "laplace"),
    ],
)
def test_every_draw_is_told_as_it_was_planned(key, value, given):
    lines = pq.read_table(given / "measurements.parquet")
    rows = lines.to_pylist()
    rows[0][key] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=lines.schema), given / "measurements.parquet")
    assert "draws" in find_wrong(given)


def test_a_draw_more_is_noticed(given):
    lines = pq.read_table(given / "measurements.parquet")
    pq.write_table(pa.concat_tables([lines, lines.slice(0, 1)]), given / "measurements.parquet")
    assert {"draws", "loss of all draws"} <= set(find_wrong(given))


@pytest.mark.parametrize("name", ["rows.csv", "tables/city.csv", "rows.parquet"])
@pytest.mark.parametrize("how", ["emptied", "a line less", "removed"])
def test_data_are_those_of_the_measurements_in_both_formats(name, how, given):
    file = given / name
    if how == "emptied":
        file.write_bytes(b"")
    elif how == "removed":
        file.unlink()
    elif name.endswith("csv"):
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    else:
        pq.write_table(pq.read_table(file).slice(1), file)
    assert "data from measurements" in find_wrong(given)


def read_counts(file: Path) -> tuple[list[str], list[str]]:
    """The counts and the margins of a CSV, as they are written."""
    lines = [line.rsplit(",", 2) for line in file.read_text().splitlines()[1:]]
    return [line[1] for line in lines], [line[2] for line in lines]


@pytest.mark.parametrize(("name", "whole"), [("small", True), ("sets", False)])
def test_counts_are_written_with_the_digits_that_tell_something(name, whole, made_once):
    file = made_once / name / "tables" / "city"
    exact = pq.read_table(file.with_suffix(".parquet")).to_pydict()
    counts, margins = read_counts(file.with_suffix(".csv"))
    assert ([float(one) for one in margins] == exact["margin"]) is whole
    for count, margin, n, within in zip(counts, margins, exact["n"], exact["margin"], strict=True):
        assert len(margin.lstrip("0.").replace(".", "")) <= 5
        off = abs(float(count) - n)
        assert off <= within / 2000
        assert within + off <= float(margin) <= 1.0021 * within
        assert len(count.partition(".")[2]) <= (0 if whole else 2)


def test_every_digit_may_be_written_as_earlier_versions_did(made_once, tmp_path):
    folder = Path(shutil.copytree(made_once / "sets", tmp_path / "sets"))
    csv.write_csv(pq.read_table(folder / "tables/city.parquet"), folder / "tables/city.csv")
    assert find_wrong(folder) == []
    file = folder / "tables/city.csv"
    count = read_counts(file)[0][0]
    file.write_text(file.read_text().replace(count, f"{float(count) + 0.2}"))
    assert find_wrong(folder) == ["data from measurements"]


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"ways": 1}, "Counts by each of city and sick"),
        ({"ways": 2}, "Counts by city and sick"),
        ({"sets": (("sick",), ("city", "sick"))}, "Counts by sick, by city and sick"),
        ({"sets": (("sick",),) * 9}, "Counts by 9 sets of columns"),
    ],
)
def test_the_card_names_the_columns_of_marginals(declared, told, made_once):
    made = read_folder(made_once / "sets")
    made = replace(made, declared=replace(made.declared, **{"ways": 2, **declared}))
    assert f"\n{told}; of `" in report.write_card(made)
    assert f"<p>{told}; of <code>" in report.write_report(made, drawn=False)


def test_a_csv_with_other_quotes_says_the_same(given):
    """NULL, an empty text and the text NULL stay three values."""
    file = given / "rows.csv"
    text = file.read_text()
    assert {'""', '"NULL"', '"Cork"'} < {line.rsplit(",", 1)[0] for line in text.splitlines()}
    file.write_text(text.replace('"Cork"', "Cork"))
    assert find_wrong(given) == []
    file.write_text(text.replace('""', ""))
    assert find_wrong(given) == ["data from measurements"]


def test_what_is_put_beside_a_release_is_no_part_of_it(given):
    (given / "tables" / "raw.csv").write_text("who,city\n1,Cork\n")
    assert find_wrong(given) == ["list of files"]


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("card.md", lambda text: text.replace("4", "0.4")),
        ("card.md", lambda text: text + "<svg>no risk</svg>"),
        ("card.md", lambda text: text + "<p><i>No risk.</i></p>"),
        ("report.html", lambda text: text.replace("must not", "may")),
        ("report.html", lambda text: text.replace("<h1>", "<p><i>No risk.</i></p><h1>")),
        ("report.html", lambda text: text.replace("<h1>", "<svg><text>No risk</text></svg><h1>")),
        ("report.html", lambda text: text + "<script>1</script>"),
        ("report.html", lambda text: text.replace("</svg>", "<script>1</script></svg>", 1)),
        ("report.html", lambda text: text.replace("</svg>", "", 1)),
        ("report.html", lambda _: ""),
    ],
)
def test_card_and_report_say_what_follows(name, edit, given):
    text = (given / name).read_text()
    assert edit(text) != text
    (given / name).write_text(edit(text))
    assert find_wrong(given) == ["card and report"]


def test_a_report_without_pictures_is_the_same_report(given):
    made = read_folder(given)
    assert "<svg" in (given / "report.html").read_text()
    (given / "report.html").write_text(report.write_report(made, drawn=False))
    assert find_wrong(given) == []


def test_words_of_another_version_are_said_not_to_be_compared(given):
    change(given, lambda said: said.pop("wording"))
    write_sums(given)
    check = verify_folder(given)[-1]
    assert (check.what, check.holds) == ("card and report", None)
    told = CliRunner().invoke(app, ["release", "verify", str(given)])
    assert told.exit_code == 0
    assert "–    card and report" in told.stdout
    assert "not compared" in told.stdout


def test_the_words_of_this_version_are_these(made_once):
    """If this fails, the words have changed: count ``WORDING`` on, and write these anew."""
    made = read_folder(made_once / "sets")
    shown = report.write_card(made) + report.write_report(made, drawn=False)
    tree = ast.parse(Path(report.__file__).read_text(encoding="utf-8"))
    lines = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # documentation
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    texts = {str(node.value) for node in nodes if node not in lines}
    words = sorted(text for text in texts if " " in text.strip())
    said = "".join(one for one in "".join([shown, *words]) if not one.isdigit())
    assert (WORDING, hashlib.sha256(said.encode()).hexdigest()[:16]) == (
        4,
        "a2a0642f038ca554",
    )


@pytest.mark.parametrize("name", ["certificate.json", "measurements.parquet"])
@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_nothing_is_read_through_links_and_pipes(name, what, given):
    """A pipe would never end, a link may show a device."""
    (given / name).rename(given.parent / name)
    if what == "link":
        (given / name).symlink_to(given.parent / name)
    elif what == "pipe":
        os.mkfifo(given / name)
    else:
        (given / name).mkdir()
    with pytest.raises(Refusal, match="is not the folder of a release"):
        verify_folder(given)


@pytest.mark.parametrize("name", ["SHA256SUMS", "rows.parquet", "rows.csv", "card.md", "more"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name, given):
    (given / name).unlink(missing_ok=True)
    os.mkfifo(given / name)
    assert "checksums" in [check.what for check in verify_folder(given) if not check.holds]


def test_a_text_that_is_too_long_is_not_read(given, monkeypatch):
    from discreet.publication import folder

    monkeypatch.setattr(verifying, "MOST_BYTES", 10)
    assert find_wrong(given) == ["card and report"]
    monkeypatch.setattr(folder, "MOST_BYTES", 10)
    with pytest.raises(Refusal, match="is not the folder of a release"):
        verify_folder(given)


def repeat(table: pa.Table, name: str, text: str, rows: int) -> pa.Table:
    """A table whose rows all have one text, which its file holds once."""
    return pa.table(
        {
            one.name: pa.DictionaryArray.from_arrays(pa.array([0] * rows), pa.array([text]))
            if one.name == name
            else pa.nulls(rows, one.type)
            for one in table.schema
        }
    )


def test_a_text_that_many_rows_refer_to_is_not_written_out(given, monkeypatch):
    """Ten megabytes in a few kilobytes; with more of both, all the memory there is."""
    file = given / "measurements.parquet"
    pq.write_table(repeat(pq.read_table(file), "stage", "a" * 10**4, 1000), file)
    assert file.stat().st_size < 20_000
    monkeypatch.setattr(folder, "MOST_BYTES", 10**6)
    with pytest.raises(Refusal, match="its texts have 10,000,000 bytes"):
        verify_folder(given)


@pytest.mark.parametrize("inside", [False, True], ids=["texts", "lists of texts"])
@pytest.mark.parametrize(
    ("rows", "letters", "says"),
    [(1000, 10**4, "texts have 10,000,000"), (1, 3 * 10**7, "says that it holds 30,0")],
)
def test_what_is_said_to_be_small_is_read_only_if_it_is(tmp_path, inside, rows, letters, says):
    texts = pa.array(["a" * letters], pa.string()).take(pa.array([0] * rows))
    if inside:
        texts = pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), texts)
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", compression="zstd")
    with pytest.raises(TooLarge, match=says):
        read_parquet(tmp_path / "a.parquet", most_values=rows, most_bytes=10**6)
    with pytest.raises(TooLarge, match="numbers"):
        read_parquet(tmp_path / "a.parquet", most_values=0, most_bytes=10**6)
    held = read_parquet(tmp_path / "a.parquet", most_values=rows, most_bytes=10**9)
    assert held.to_pylist() == [{"text": one} for one in texts.to_pylist()]


def test_a_publication_has_nothing_beside_its_releases_and_its_page_says_what_they_say(
    made_once, tmp_path
):
    made = [read_folder(made_once / name) for name in ("small", "sets")]
    office = write_handover(made, tmp_path / "office")
    assert all(check.holds for check in verify_handover(office))
    page = (office / "index.html").read_text()

    def wrong() -> list[str]:
        write_sums(office)
        return [check.what for check in verify_handover(office) if not check.holds]

    (office / "index.html").write_text(page.replace("add up", "are nothing"))
    assert wrong() == ["index.html"]
    (office / "index.html").write_text(page)
    (office / "raw.csv").write_text("who\n1\n")
    assert wrong() == ["list of releases"]
    (office / "raw.csv").unlink()
    assert wrong() == []
