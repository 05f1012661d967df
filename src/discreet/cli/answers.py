"""How an answer, a price and a loss are shown: on the screen, as JSON, as CSV."""

from __future__ import annotations

import csv
import io
from datetime import date
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.cli import screen

if TYPE_CHECKING:
    from discreet.accounting.loss import Loss
    from discreet.release.answer import Answer
    from discreet.release.explanation import Explanation

MOST_ROWS = 40


def show(answer: Answer, *, confidence: str = "0.95", brief: bool = False) -> None:
    """The table of values and margins, what it cost, and what margins do not tell."""
    cell = import_module("discreet.release.display").cell
    margins, counted = answer.margins(confidence), _counted(answer)
    rows = [
        [
            cell(row.values[place], margins[name][number], counted=counted.get(name, ""))
            for place, name in enumerate(answer.columns)
        ]
        for number, row in enumerate(answer.rows[:MOST_ROWS])
    ]
    numeric = [place for place, name in enumerate(answer.columns) if _numbers(answer.column(name))]
    screen.table(answer.columns, rows, right=numeric)
    more = len(answer.rows) - len(rows)
    if more:
        screen.text(f"… and {more:,} more rows: --csv or --json shows them all.")
    screen.text("")
    cost = f"ε = {amounts(answer.loss)['epsilon']}" if brief else str(answer.loss)
    paid = "paid for before: free" if answer.replayed else f"cost {cost}"
    screen.text(f"± at {percent(confidence)} confidence; {paid}")
    for note in () if brief else answer.notes:
        screen.text(note)


def _counted(told: Answer | Explanation) -> dict[str, str]:
    """What each margin counts where it is not in the unit of the value: ranks, or rows."""
    return {name: margin["counts"] or "" for name, margin in told.certificate["margins"].items()}


def _numbers(values: list[Any]) -> bool:
    return all(
        value is None or (isinstance(value, int | float | Fraction) and not isinstance(value, bool))
        for value in values
    )


def percent(confidence: str) -> str:
    """A confidence in per cent, exactly.

    >>> percent("0.95"), percent("0.999"), percent("2/3")
    ('95 %', '99.9 %', '200/3 %')
    """
    share = 100 * import_module("discreet.exact.numbers").fraction(confidence, name="confidence")
    decimal = import_module("discreet.exact.numbers").decimal_up(share)
    return f"{decimal if Fraction(decimal) == share else share} %"


def amounts(loss: Loss) -> dict[str, str]:
    """A loss for JSON: decimals that round up, and "inf"."""
    decimal = import_module("discreet.exact.numbers").decimal_up
    parts = {"epsilon": loss.epsilon, "rho": loss.rho, "delta": loss.delta}
    return {
        name: "inf" if isinstance(amount, float) else decimal(amount)
        for name, amount in parts.items()
    }


def as_json(answer: Answer, *, confidence: str = "0.95") -> dict[str, Any]:
    """Everything an answer says, for programs."""
    return {
        "id": answer.id,
        "replayed": answer.replayed,
        "columns": list(answer.columns),
        "rows": [[_plain(value) for value in row.values] for row in answer.rows],
        "margins": answer.margins(confidence),
        "confidence": confidence,
        "loss": amounts(answer.loss),
        "notes": list(answer.notes),
        "certificate": answer.certificate,
    }


def as_csv(answer: Answer, *, confidence: str = "0.95") -> str:
    """One line for each row; beside each column that has margins, a column of them."""
    margins = answer.margins(confidence)
    noisy = [name for name in answer.columns if any(m is not None for m in margins[name])]
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow([*answer.columns, *(f"{name}_margin" for name in noisy)])
    for number, row in enumerate(answer.rows):
        found = [_plain(value) for value in row.values]
        lines.writerow([*found, *(margins[name][number] for name in noisy)])
    return out.getvalue()


def predicted(plan: Explanation, *, confidence: str, rows: int) -> dict[str, str]:
    """The margin of each aggregate, in words, before it is asked."""
    number = import_module("discreet.release.display").number
    known, assumed = plan.margins(confidence), plan.margins(confidence, rows=rows)
    counted = _counted(plan)
    words = {}
    for name, margin in known.items():
        guess = assumed[name]
        if margin is not None:
            words[name] = f"± {number(margin, up=True)} {counted[name]}".rstrip()
        elif guess is not None:
            words[name] = f"± {number(guess, up=True)} in a group of {rows:,} rows"
        else:
            words[name] = "known with the answer"
    return words


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Fraction):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


__all__ = ["amounts", "as_csv", "as_json", "percent", "predicted", "show"]
