"""``discreet watch``, ``interview``, ``learn``, ``choose``, ``quality``, ``median``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.curate.runs import Run, Told
    from discreet.price.watch import WatchSettings

Questions = Annotated[list[str], typer.Argument(metavar="SQL", help="The questions, in order.")]
Threshold = Annotated[str, typer.Option(metavar="NUMBER", help="What numbers are compared with.")]
AtMost = Annotated[int, typer.Option(metavar="COUNT", help='How often "above" may be told.')]
Numbers = Annotated[bool, typer.Option("--numbers", help="Tell the numbers that are above.")]
Monotonic = Annotated[bool, typer.Option("--monotonic", help="Ask counts only: half the noise.")]
Named = Annotated[str, typer.Option(metavar="NAME", help="By what the run is found again.")]
Explain = Annotated[bool, typer.Option("--explain", help="Say price and margin only; free.")]
New = Annotated[bool, typer.Option("--new", help="Ask of data not asked about yet; else nothing.")]
Sensitivity = Annotated[
    str, typer.Option(metavar="NUMBER", help="How far one unit may move all numbers together.")
]
Checks = Annotated[
    str,
    typer.Argument(
        metavar="SQL|FILE",
        help="SELECT DISTANCE_TO_...(...) FROM a table; or a file of TOML, a table a property.",
    ),
]
Bound = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Propose that the median moves no further.")
]
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
    new: New = False,
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
        run = curator.watch(name=name, analyst=analyst, once=new, **settings)
        told = _ask_new(run, questions) if new else run.ask_many(questions)
        if close:
            run.close()
        verdicts = [verdict for one in told for verdict in one]
        if as_json:
            shape = [verdict.to_json() for verdict in verdicts]
            screen.print_json({**run.to_json(), "verdicts": shape})
            return
        for verdict in verdicts:
            typer.echo(f"{verdict}  ({verdict.question})")
        state = f"over ({run.ended})" if run.ended else f"{run.remaining} more may be above"
        typer.echo(f"run {run.id}: {run.asked} asked, {state}; {run.loss}, paid once")


def _ask_new(run: Run, questions: list[str]) -> list[Told]:
    """What is told of data that are new, until the run halts: what it told last is shown, too."""
    told: list[Told] = []
    for question in questions:
        if told and run.ended:
            break
        found = run.ask_new(question)
        if found is not None:
            told.append(found)
    return told


def choose(  # noqa: PLR0913, PLR0917 (each is an option)
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    top: Annotated[int, typer.Option(metavar="COUNT", help="How many to choose.")] = 1,
    counts: Annotated[bool, typer.Option("--counts", help="Tell their numbers, too.")] = False,
    explain: Explain = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Choose the group with the largest number."""
    if explain:
        with open_planner(session) as curator:
            said = curator.explain_choose(question, k=top, counts=counts, epsilon=epsilon, rho=rho)
        screen.print_json(said.to_json()) if as_json else typer.echo(str(said))
        return
    with screen.stoppable(), open_curator(session) as curator:
        chosen = curator.choose(
            question, k=top, counts=counts, analyst=analyst, epsilon=epsilon, rho=rho
        )
    screen.print_json(chosen.to_json()) if as_json else typer.echo(str(chosen))


def interview(  # noqa: PLR0913, PLR0917 (each is an option)
    questions: Questions,
    sensitivity: Sensitivity,
    epsilon: Epsilon = None,
    name: Named = "",
    explain: Explain = False,
    close: Close = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Tell numbers while their joint sensitivity lasts, for one price."""
    settings = {"sensitivity": sensitivity, "epsilon": require_amount(epsilon, "epsilon")}
    if explain:
        with open_planner(session) as curator:
            found = curator.explain_interview(*questions, **settings)
        screen.print_json(found.to_json()) if as_json else typer.echo(str(found))
        return
    with screen.stoppable(), open_curator(session) as curator:
        curator.explain_interview(*questions, **settings)  # what is refused is refused unpaid
        run = curator.interview(name=name, analyst=analyst, **settings)
        told = [run.ask(question) for question in questions]
        if close:
            run.close()
        if as_json:
            screen.print_json({**run.to_json(), "replies": [reply.to_json() for reply in told]})
            return
        for reply in told:
            typer.echo(f"{reply}  ({reply.question})")
        typer.echo(f"{repr(run)[1:-1]}; {run.loss}, paid once")


def learn(  # noqa: PLR0913, PLR0917 (each is an option)
    questions: Questions,
    of: Annotated[str, typer.Option(metavar="TABLE", help="The table that is counted.")],
    columns: Annotated[str, typer.Option(metavar="A,B", help="Of the histogram, with commas.")],
    rows: Annotated[int, typer.Option(metavar="COUNT", help="About how many there are: public.")],
    at_most: Annotated[
        int, typer.Option("--questions", metavar="COUNT", help="How many it is asked in all.")
    ],
    epsilon: Epsilon = None,
    beta: Annotated[
        str, typer.Option(metavar="NUMBER", help="How seldom its margin may fail.")
    ] = "0.05",
    explain: Explain = False,
    close: Close = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Answer counts from a histogram that learns, for one price."""
    settings = {
        "of": of,
        "columns": [name.strip() for name in columns.split(",") if name.strip()],
        "rows": rows,
        "questions": at_most,
        "epsilon": require_amount(epsilon, "epsilon"),
        "beta": beta,
    }
    if explain:
        with open_planner(session) as curator:
            found = curator.explain_learn(*questions, **settings)
        screen.print_json(found.to_json()) if as_json else typer.echo(str(found))
        return
    with screen.stoppable(), open_curator(session) as curator:
        curator.explain_learn(*questions, **settings)  # what is refused is refused unpaid
        run = curator.learn(analyst=analyst, **settings)
        told = [run.ask(question) for question in questions]
        if close:
            run.close()
        if as_json:
            screen.print_json({**run.to_json(), "answers": [one.to_json() for one in told]})
            return
        for one in told:
            typer.echo(f"{one}  ({one.question})")
        typer.echo(f"{repr(run)[1:-1]}; {run.loss}, paid once")


def quality(
    checks: Checks,
    epsilon: Epsilon = None,
    explain: Explain = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Tell how many units stand in the way of what should hold."""
    price = require_amount(epsilon, "epsilon")
    if explain:
        with open_planner(session) as curator:
            said = curator.explain_quality(read_checks(checks), epsilon=price)
        screen.print_json(said.to_json()) if as_json else typer.echo(str(said))
        return
    with screen.stoppable(), open_curator(session) as curator:
        report = curator.quality(read_checks(checks), epsilon=price, analyst=analyst)
    screen.print_json(report.to_json()) if as_json else typer.echo(str(report))


def median(
    question: Question,
    epsilon: Epsilon = None,
    delta: Delta = None,
    bound: Bound = None,
    explain: Explain = False,
    analyst: Analyst = CURATOR,
    as_json: Json = False,
    session: Home = HERE,
) -> None:
    """Tell a median with noise that fits the data."""
    price = {"epsilon": require_amount(epsilon, "epsilon"), "delta": require_amount(delta, "delta")}
    if explain:
        with open_planner(session) as curator:
            said = curator.explain_robust_median(question, bound=bound, **price)
        screen.print_json(said.to_json()) if as_json else typer.echo(str(said))
        return
    with screen.stoppable(), open_curator(session) as curator:
        told = curator.robust_median(question, bound=bound, analyst=analyst, **price)
    screen.print_json(told.to_json()) if as_json else typer.echo(str(told))


def read_checks(checks: str) -> str | dict[str, Any]:
    """SQL as it is; what a file of properties says, or a refusal."""
    if checks.lstrip()[:6].casefold() == "select":
        return checks
    file = Path(checks)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidParameter(
            "P4",
            f"{file.name} is not a file of TOML that can be read.",
            why="what should hold is said before anything is paid.",
            fix="write a table for each property: [ages], then table, property, column, bound.",
        ) from error


def require_amount(amount: str | None, name: str) -> str:
    """An amount that must be said."""
    if amount is None:
        raise InvalidParameter(
            "P4",
            f"there is no {name}.",
            why="what the people in the data lose is decided before they are looked at.",
            fix=f"say --{name}.",
        )
    return amount


__all__ = ["choose", "interview", "median", "quality", "watch"]
