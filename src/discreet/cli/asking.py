"""``discreet ask``, ``explain`` and ``price``: one question from the command line."""

from __future__ import annotations

from contextlib import suppress
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
    Fresh,
    Home,
    Json,
    Question,
    Questions,
    Rho,
    Within,
    open_curator,
    open_planner,
)
from discreet.errors import InvalidParameter, QuestionRefusal, Refusal
from discreet.question.offer import Offer

if TYPE_CHECKING:
    from discreet.curate.curator import Curator
    from discreet.curate.quote import Quote
    from discreet.release.explanation import Explanation

Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw it, too: to .svg or .json.")
]


def ask(  # noqa: PLR0913, PLR0917 (each is an option)
    question: Question = "",
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    fresh: Fresh = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
    file: Questions = None,
    session: Home = HERE,
) -> None:
    """Ask in SQL: get an answer with its margin, or a refusal."""
    _check_asked(question, file)
    if plot is not None:
        import_module("discreet.charts.picture").check_target(plot)
    if as_json and as_csv:
        raise InvalidParameter(
            "P4",
            "both --json and --csv are given.",
            why="one answer is printed once.",
            fix="leave out one of them.",
        )
    offer = _offer(epsilon, rho, delta, within, confidence, fresh=fresh)
    if question.upper().split(None, 1)[:1] == ["EXPLAIN"]:
        with open_planner(session) as curator:
            plan = curator.explain(question, **offer.amounts())
            _print_explanation(plan, confidence, as_json)
            if not as_json:
                _print_choices(curator.price(question, analyst=analyst, **offer.amounts()))
        return
    if file is not None:
        _ask_file(file, offer, confidence, analyst, session, as_json=as_json, as_csv=as_csv)
        return
    with (
        screen.stoppable(),
        screen.progress_bar() as progress,
        open_curator(session, progress=progress) as curator,
    ):
        told = curator.tell(question)
        if told is not None:
            screen.print_told(told, as_json=as_json, as_csv=as_csv)  # from a release, and free
            return
        answer = curator.ask(question, analyst=analyst, **offer.amounts())
    if plot is not None:
        answer.draw(confidence=confidence).save(plot)
    if as_json:
        screen.print_json(answer.to_json(confidence))
    elif as_csv:
        typer.echo(answer.to_csv(confidence), nl=False)
    else:
        screen.print_answer(answer, confidence=confidence)


def _check_asked(question: str, file: Path | None) -> None:
    if bool(question) != (file is not None):
        return
    raise InvalidParameter(
        "P4",
        "both a question and --file are given." if question else "no question is given.",
        why="what is asked is priced as one thing.",
        fix='ask "SELECT ...", or put the questions into a file and say --file questions.sql.',
    )


def _ask_file(
    file: Path,
    offer: Offer,
    confidence: str,
    analyst: str,
    session: Path,
    *,
    as_json: bool,
    as_csv: bool,
) -> None:
    """The questions of a file, each ended by a semicolon, as one release."""
    questions = read_questions(file)
    with screen.stoppable(), open_curator(session) as curator:
        answers = curator.ask_all(questions, analyst=analyst, **offer.amounts())
    if as_json:
        screen.print_json([answer.to_json(confidence) for answer in answers])
        return
    for number, answer in enumerate(answers):
        if number:
            typer.echo()
        if as_csv:
            typer.echo(answer.to_csv(confidence), nl=False)
        else:
            screen.print_answer(answer, confidence=confidence)


def read_questions(file: Path) -> list[str]:
    """The statements of a file; semicolons in texts and comments end none."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(
            "P4",
            f"the file {str(file)!r} cannot be read.",
            why="what is not read is not asked.",
            fix="name a text file of questions, each ended by a semicolon.",
        ) from None
    found: list[str] = import_module("discreet.question.sql.several").split_questions(text)
    return found


def explain(  # noqa: PLR0913, PLR0917 (each is an option)
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    fresh: Fresh = False,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Say how a question would be answered, and how well; free."""
    offer = _offer(epsilon, rho, delta, within, confidence, fresh=fresh)
    with open_planner(session) as curator:
        try:
            plan = curator.explain(question, **offer.amounts())
        except QuestionRefusal as refusal:
            quote = _find_known(curator, question, offer) if refusal.code == "Q43" else None
            if quote is None:
                raise
            if as_json:
                screen.print_json(quote.to_json(confidence))
            else:
                typer.echo("\n".join(quote.explain_lines(confidence)))
            return
        quote = None if as_json else curator.price(question, **offer.amounts())
    _print_explanation(plan, confidence, as_json)
    if quote is not None:
        _print_choices(quote)


def _find_known(curator: Curator, question: str, offer: Offer) -> Quote | None:
    """The quote of what is known and free, where nothing is offered for it."""
    with suppress(Refusal):
        return curator.price(question, **offer.amounts())
    return None


def price(  # noqa: PLR0913, PLR0917 (each is an option)
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    fresh: Fresh = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Say what a question costs and whether it would be paid; free."""
    offer = _offer(epsilon, rho, delta, within, confidence, fresh=fresh)
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
    epsilon: str | None,
    rho: str | None,
    delta: str | None,
    within: str | None,
    confidence: str,
    *,
    fresh: bool,
) -> Offer:
    return Offer.of(
        epsilon=epsilon, rho=rho, delta=delta, within=within, confidence=confidence, fresh=fresh
    )


def describe_quote(quote: Quote, confidence: str) -> list[str]:
    """A price in words: what it costs, how good the answer would be, who would pay."""
    margins = import_module("discreet.release.render").margin_words(quote.explanation, confidence)
    expected = "; ".join(f"{name} {words}" for name, words in margins.items())
    share = import_module("discreet.release.display").percent(confidence)
    lines = [f"price:  {quote.loss}", f"margin: {expected} ({share})"]
    if quote.is_told:
        del lines[1]  # of a measurement that nobody offered for
    if quote.free:
        lines[0] = f"price:  free, for it was paid before ({quote.loss})"
    if quote.outcome == "known":
        lines[0] = "price:  free, for it is known"
    lines += list_choices(quote)
    if quote.refusal is not None:
        lines.append(str(quote.refusal.translate("command")))
    return lines


def list_choices(quote: Quote) -> list[str]:
    """The ways to an answer, side by side, where some of it is known already."""
    return [f"choice: {choice}" for choice in quote.choices]


def _print_choices(quote: Quote) -> None:
    for line in list_choices(quote):
        screen.print_text(line)


def _print_explanation(plan: Explanation, confidence: str, as_json: bool) -> None:
    if as_json:
        screen.print_json(plan.to_json(confidence))
    else:
        typer.echo(str(plan))


__all__ = ["ask", "explain", "price"]
