"""An answer as files that other programs open: Parquet, and a workbook of spreadsheets."""

from __future__ import annotations

import io
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from discreet.exact.numbers import Exact
from discreet.release.render import plain

if TYPE_CHECKING:
    from discreet.release.answer import Answer

_SHEET, _ABOUT = "answer", "about"
_SURE = 2**53
"""Whole numbers beyond are not exact in a spreadsheet, and go there as texts."""


def answer_parquet(answer: Answer, confidence: Exact) -> bytes:
    """The Arrow table of the answer, with its margins, as a Parquet file."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(answer.to_arrow(confidence), sink)
    return sink.getvalue()


def answer_workbook(answer: Answer, confidence: Exact) -> bytes:
    """A workbook (.xlsx): the values with their margins, and a sheet that says what they are.

    Every text is written as a text: a key that looks like a formula is none.
    """
    import xlsxwriter

    sink = io.BytesIO()
    with xlsxwriter.Workbook(sink, {"in_memory": True}) as book:
        bold = book.add_format({"bold": True})
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        sheet = book.add_worksheet(_SHEET)
        table = answer.to_arrow(confidence)
        for place, name in enumerate(table.column_names):
            sheet.write_string(0, place, name, bold)
            for number, value in enumerate(table.column(place).to_pylist(), start=1):
                _write(sheet, number, place, value, day, moment)
        sheet.freeze_panes(1, 0)
        about = book.add_worksheet(_ABOUT)
        for number, (what, words) in enumerate(_describe(answer, confidence)):
            about.write_string(number, 0, what, bold)
            about.write_string(number, 1, words)
    return sink.getvalue()


def _write(sheet: Any, row: int, place: int, value: Any, day: Any, moment: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, place, value)
    elif isinstance(value, datetime):
        sheet.write_datetime(row, place, value.replace(tzinfo=None), moment)
    elif isinstance(value, date):
        sheet.write_datetime(row, place, datetime(value.year, value.month, value.day), day)
    elif isinstance(value, int | float) and abs(value) <= _SURE:
        sheet.write_number(row, place, value)
    else:
        sheet.write_string(row, place, str(plain(value)))


def _describe(answer: Answer, confidence: Exact) -> list[tuple[str, str]]:
    told = [
        ("question", answer.text),
        ("price", str(answer.loss)),
        ("confidence of the margins", str(confidence)),
    ]
    return told + [("note", note) for note in answer.notes]


__all__ = ["answer_parquet", "answer_workbook"]
