"""``discreet ask``, ``explain`` and ``price``: one question from the command line."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import screen
from discreet.cli.options import (
    CURATOR,
    HERE,
    Analyst,
    Confidence,
    Delta,
    Epsilon,
    Home,
    Json,
    Question,
    Rho,
    Within,
    open_curator,
    open_planner,
)
from discreet.errors import InvalidParameter
from discreet.question.offer import Offer

if TYPE_CHECKING:
    from discreet.curate.quote import Quote
    from discreet.release.explanation import Explanation

Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw it, too: to .svg or .json.")
]


def ask(  # noqa: PLR0913, PLR0917 (each is an option)
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
    session: Home = HERE,
) -> None:
    """Ask in SQL: get an answer with its margin, or a refusal."""
    if plot is not None:
        import_module("discreet.charts.picture").check_target(plot)
    if as_json and as_csv:
        raise InvalidParameter(
            "P4",
            "both --json and --csv are given.",
            why="one answer is printed once.",
            fix="leave out one of them.",
        )
    offer = _offer(epsilon, rho, delta, within, confidence)
    if question.upper().split(None, 1)[:1] == ["EXPLAIN"]:
        with open_planner(session) as curator:
            _print_explanation(curator.explain(question, **offer.amounts()), confidence, as_json)
        return
    with (
        screen.stoppable(),
        screen.progress_bar() as progress,
        open_curator(session, progress=progress) as curator,
    ):
        answer = curator.ask(question, analyst=analyst, **offer.amounts())
    if plot is not None:
        answer.draw(confidence=confidence).save(plot)
    if as_json:
        screen.print_json(answer.to_json(confidence))
    elif as_csv:
        typer.echo(answer.to_csv(confidence), nl=False)
    else:
        screen.print_answer(answer, confidence=confidence)


def explain(
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Say how a question would be answered, and how well; free."""
    offer = _offer(epsilon, rho, delta, within, confidence)
    with open_planner(session) as curator:
        plan = curator.explain(question, **offer.amounts())
    _print_explanation(plan, confidence, as_json)


def price(  # noqa: PLR0913, PLR0917 (each is an option)
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Say what a question costs and whether it would be paid; free."""
    offer = _offer(epsilon, rho, delta, within, confidence)
    with open_planner(session) as curator:
        quote = curator.price(question, analyst=analyst, **offer.amounts())
    if as_json:
        screen.print_json(quote.to_json(confidence))
    else:
        for line in describe_quote(quote, confidence):
            screen.print_text(line)
    if quote.refusal is not None:
        raise typer.Exit(2)


def _offer(
    epsilon: str | None, rho: str | None, delta: str | None, within: str | None, confidence: str
) -> Offer:
    return Offer.of(epsilon=epsilon, rho=rho, delta=delta, within=within, confidence=confidence)


def describe_quote(quote: Quote, confidence: str) -> list[str]:
    """A price in words: what it costs, how good the answer would be, who would pay."""
    margins = import_module("discreet.release.render").margin_words(quote.explanation, confidence)
    expected = "; ".join(f"{name} {words}" for name, words in margins.items())
    share = import_module("discreet.release.display").percent(confidence)
    lines = [f"price:  {quote.loss}", f"margin: {expected} ({share})"]
    if quote.free:
        lines[0] = f"price:  free, for it was paid before ({quote.loss})"
    if quote.refusal is not None:
        lines.append(str(quote.refusal.spoken("command")))
    return lines


def _print_explanation(plan: Explanation, confidence: str, as_json: bool) -> None:
    if as_json:
        screen.print_json(plan.to_json(confidence))
    else:
        typer.echo(str(plan))


__all__ = ["ask", "explain", "price"]
