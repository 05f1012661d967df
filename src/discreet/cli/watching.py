"""``discreet watch`` and ``choose``: the sparse vector and a noisy maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import screen
from discreet.cli.options import (
    CURATOR,
    HERE,
    Analyst,
    Delta,
    Epsilon,
    Home,
    Json,
    Question,
    Rho,
    open_curator,
    open_planner,
)

if TYPE_CHECKING:
    from discreet.price.watch import WatchSettings

Questions = Annotated[list[str], typer.Argument(metavar="SQL", help="The questions, in order.")]
Threshold = Annotated[str, typer.Option(metavar="NUMBER", help="What numbers are compared with.")]
AtMost = Annotated[int, typer.Option(metavar="COUNT", help='How often "above" may be told.')]
Numbers = Annotated[bool, typer.Option("--numbers", help="Tell the numbers that are above.")]
Monotonic = Annotated[bool, typer.Option("--monotonic", help="Ask counts only: half the noise.")]
Named = Annotated[str, typer.Option(metavar="NAME", help="By what the run is found again.")]
Explain = Annotated[bool, typer.Option("--explain", help="Say price and margin only; free.")]
Close = Annotated[bool, typer.Option("--close", help="End the run after these questions.")]


def watch(  # noqa: PLR0913, PLR0917 (each is an option)
    questions: Questions,
    threshold: Threshold,
    epsilon: Epsilon = None,
    delta: Delta = None,
    at_most: AtMost = 1,
    numbers: Numbers = False,
    monotonic: Monotonic = False,
    name: Named = "",
    explain: Explain = False,
    close: Close = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Tell which numbers are above a threshold, for one price."""
    settings: WatchSettings = {
        "epsilon": epsilon,
        "threshold": threshold,
        "at_most": at_most,
        "delta": delta or 0,
        "numbers": numbers,
        "monotonic": monotonic,
    }
    if explain:
        with open_planner(session) as curator:
            for question in questions:
                found = curator.explain_watch(question, **settings)
                screen.print_json(found.to_json()) if as_json else typer.echo(str(found))
        return
    with screen.stoppable(), open_curator(session) as curator:
        for question in questions:
            curator.explain_watch(question, **settings)  # what is refused is refused unpaid
        run = curator.watch(name=name, analyst=analyst, **settings)
        told = run.ask_many(questions)
        if close:
            run.close()
        verdicts = [v for one in told for v in (one if isinstance(one, tuple) else (one,))]
        if as_json:
            shape = [verdict.to_json() for verdict in verdicts]
            screen.print_json({**run.to_json(), "verdicts": shape})
            return
        for verdict in verdicts:
            typer.echo(f"{verdict}  ({verdict.question})")
        state = f"over ({run.ended})" if run.ended else f"{run.remaining} more may be above"
        typer.echo(f"run {run.id}: {run.asked} asked, {state}; {run.loss}, paid once")


def choose(
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    top: Annotated[int, typer.Option(metavar="COUNT", help="How many to choose.")] = 1,
    counts: Annotated[bool, typer.Option("--counts", help="Tell their numbers, too.")] = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Choose the group with the largest number."""
    with screen.stoppable(), open_curator(session) as curator:
        chosen = curator.choose(
            question, k=top, counts=counts, analyst=analyst, epsilon=epsilon, rho=rho
        )
    screen.print_json(chosen.to_json()) if as_json else typer.echo(str(chosen))


__all__ = ["choose", "watch"]
