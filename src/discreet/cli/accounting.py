"""``discreet epsilon`` and ``discreet compose``: what a loss means, and how losses add up."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.accounting.neighbours import Neighbours
from discreet.cli import screen
from discreet.cli.options import Json, unwritable
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.accounting.composition import Comparison

Svg = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw it, too.")]


class Kind(StrEnum):
    """What is known of a release besides its epsilon."""

    ANY = "any"
    LAPLACE = "laplace"


def epsilon(
    amount: Annotated[str, typer.Argument(metavar="EPSILON", help="Such as 0.5 or 1/3.")],
    delta: Annotated[str, typer.Option(metavar="AMOUNT", help="Such as 1e-6.")] = "0",
    group: Annotated[int, typer.Option(metavar="COUNT", help="How many people together.")] = 1,
    neighbours: Annotated[
        Neighbours, typer.Option(help="Which data sets the epsilon was stated for.")
    ] = Neighbours.ADD_REMOVE,
    as_json: Json = False,
    svg: Svg = None,
) -> None:
    """Say what EPSILON promises to a person, in numbers and words."""
    meaning = import_module("discreet.accounting.meaning").Meaning(
        epsilon=amount, delta=delta, group=group, neighbours=neighbours
    )
    if svg is not None:
        _save(svg, meaning.svg())
    if as_json:
        screen.print_json(meaning.to_json())
        return
    people = "one person" if meaning.group == 1 else f"{meaning.group} people together"
    rows = meaning.table()
    screen.print_table(("what", f"for {people}"), rows, right=(1,))
    screen.print_text(f"\n{meaning.paragraph}")
    if svg is not None:
        screen.print_text(f"Drawn in {svg}.")


def compose(
    count: Annotated[int, typer.Option(metavar="COUNT", help="How many releases.")],
    epsilon: Annotated[str, typer.Option(metavar="AMOUNT", help="The epsilon of each.")],
    delta: Annotated[
        str, typer.Option(metavar="AMOUNT", help="The delta of all of them together.")
    ],
    each_delta: Annotated[str, typer.Option(metavar="AMOUNT", help="The delta of each.")] = "0",
    mechanism: Annotated[Kind, typer.Option(help="What is known of each release.")] = Kind.ANY,
    as_json: Json = False,
    svg: Svg = None,
) -> None:
    """Say what many equal releases cost together, by every theorem."""
    import_module("discreet.exact.numbers").whole(count, name="count", least=1)
    release = _release(mechanism, epsilon, each_delta)
    compare = import_module("discreet.accounting.composition").compare
    compared = compare(release, counts=count, delta=delta)
    best = compared.best(count)
    if isinstance(best.epsilon, float):
        raise InvalidParameter(
            "P4",
            f"{count:,} releases that fail with {each_delta} each fail more often than {delta}.",
            why="what fails outright tells on a person, and no epsilon makes up for it.",
            fix="raise --delta, or lower --each-delta or --count.",
        )
    if svg is not None:
        drawn = compare(release, counts=_ladder(count), delta=delta)
        _save(svg, _picture(drawn, epsilon))
    if as_json:
        screen.print_json(_as_json(compared, count, epsilon, each_delta, mechanism))
        return
    rows = [(row.method, _epsilon(row.epsilon), row.reference) for row in compared.rows]
    screen.print_table(("theorem", f"ε of {count:,} releases", "reference"), rows, right=(1,))
    screen.print_text(
        f"\nAt δ = {delta} in total, {count:,} releases of ε = {epsilon} each cost at most "
        f"ε = {_epsilon(best.epsilon)} ({best.method}). Every number is an upper bound. All but "
        f"'profile' also hold when each release is chosen after seeing the answers before it; "
        f"'profile' is for a list that was fixed beforehand."
    )
    if svg is not None:
        screen.print_text(f"Drawn in {svg}.")


def _release(kind: Kind, epsilon: str, delta: str) -> Any:
    profile, exact = (
        import_module("discreet.accounting.profile"),
        import_module("discreet.exact.numbers"),
    )
    amount = exact.positive(epsilon, name="epsilon")
    if kind is Kind.ANY:
        return profile.AnyProfile(amount, delta)
    if exact.nonnegative(delta, name="each_delta"):
        raise InvalidParameter(
            "P4",
            "a Laplace release has no delta of its own.",
            why="its guarantee never fails, so there is nothing to pay for a failure.",
            fix="leave out --each-delta, or say --mechanism any.",
        )
    return profile.LaplaceProfile(sensitivity=amount, scale=1, grid=0)


def _ladder(count: int) -> list[int]:
    """1, 2, 5, 10, ... and ``count``."""
    rungs = {step * 10**power for power in range(len(str(count))) for step in (1, 2, 5)}
    return sorted({rung for rung in rungs if rung < count} | {count})


def _epsilon(amount: Any) -> str:
    return (
        "∞"
        if isinstance(amount, float)
        else str(import_module("discreet.exact.numbers").decimal_up(amount))
    )


def _as_json(
    compared: Comparison, count: int, epsilon: str, each_delta: str, kind: Kind
) -> dict[str, object]:
    best = compared.best(count)
    return {
        "count": count,
        "epsilon": epsilon,
        "each_delta": each_delta,
        "delta": _epsilon(compared.delta),
        "mechanism": kind.value,
        "best": best.method,
        "rows": [
            {"method": row.method, "epsilon": _epsilon(row.epsilon), "reference": row.reference}
            for row in compared.rows
        ],
    }


def _picture(compared: Comparison, epsilon: str) -> str:
    drawing = import_module("discreet.accounting.drawing")
    series = {
        method: [(float(count), float(amount)) for count, amount in points]
        for method, points in compared.series().items()
    }
    everything = [point for points in series.values() for point in points]
    counts, amounts = [x for x, _ in everything], [y for _, y in everything]
    chart = drawing.Chart(
        f"at δ = {_epsilon(compared.delta)}, upper bounds by theorem",
        drawing.Axis("releases", min(counts), max(2.0, *counts), logarithmic=True),
        drawing.Axis("ε of all together", min(amounts), max(amounts) * 1.05, logarithmic=True),
        [drawing.Line(method, points) for method, points in series.items()],
    )
    title = f"Releases of ε = {epsilon} each"
    text = "The epsilon of many releases against how many there are, by every theorem."
    return str(drawing.svg([chart], title=title, description=text))


def _save(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error) from None


__all__ = ["compose", "epsilon"]
