"""``discreet survey`` and ``discreet local``: answers randomised by those who give them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import screen
from discreet.cli.options import Json

if TYPE_CHECKING:
    from discreet.local.collection import Collection

app = typer.Typer(
    no_args_is_help=True, help="Ask people who need not trust you: a page, reports, results."
)
local = typer.Typer(no_args_is_help=True, help="The local model beside the central one.")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The survey's directory.")]


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What is asked, in TOML.")],
    directory: Annotated[
        Path | None, typer.Option("--into", metavar="DIR", help="Where; its name if left out.")
    ] = None,
    tokens: Annotated[
        int, typer.Option(metavar="COUNT", help="For so many people, one report each.")
    ] = 100,
    address: Annotated[
        str, typer.Option(metavar="URL", help="Where it will be served, for pages on disk.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Begin a survey: its page, and tokens to hand out."""
    surveys = import_module("discreet.local.survey")
    collections = import_module("discreet.local.collection")
    survey = surveys.Survey.read(file)
    endpoint = f"{address.rstrip('/')}/report" if address else "report"
    home = directory or Path(survey.name)
    made: Collection = collections.Collection.new(survey, home, tokens=tokens, endpoint=endpoint)
    found = {
        "directory": str(home),
        "page": str(home / "page.html"),
        "page_sha256": made.page_hash,
        "tokens": str(home / "tokens.txt"),
        "epsilon": str(survey.epsilon),
        "questions": [
            {"name": one.name, "randomizer": repr(randomizer)}
            for one, randomizer in zip(survey.questions, survey.randomizers, strict=True)
        ],
    }
    if as_json:
        screen.print_json(found)
        return
    asked = len(survey.questions)
    many = "1 question" if asked == 1 else f"{asked} questions"
    screen.print_text(f"{home}: {many}, ε = {survey.epsilon} in all.")
    rows = [(one["name"], one["randomizer"]) for one in found["questions"]]  # type: ignore[index]
    screen.print_table(("question", "randomised by"), rows, right=())
    screen.print_text(f"Publish the hash of {home / 'page.html'}, so that everybody can check it:")
    screen.print_text(made.page_hash, indent=2)
    screen.print_text(
        f"Hand out the {tokens} tokens of {home / 'tokens.txt'}, as links to PAGE#TOKEN."
    )


@app.command()
def answer(
    directory: Directory,
    source: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="Parquet or CSV: a row each person.")
    ],
    other_people: Annotated[
        bool, typer.Option("--other-people", help="Nobody in it was in a file before.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Randomise the answers in a file, one row a person."""
    collection: Collection = import_module("discreet.local.collection").Collection(directory)
    words = [one.name for one in collection.survey.questions if one.options]
    reports = collection.survey.release_many(_columns(source, words))
    collection.add(reports, once=not other_people)
    if as_json:
        screen.print_json({"reports": len(reports)})
    else:
        screen.print_text(
            f"{len(reports):,} reports were made and added; the answers were not kept."
        )


@app.command()
def results(
    directory: Directory,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write them as a page, too.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What the reports say, with ranges that hold 95 times in 100."""
    collection: Collection = import_module("discreet.local.collection").Collection(directory)
    found = collection.survey.results(collection.reports())
    if html is not None:
        written = import_module("discreet.local.page").results_page(collection.survey, found)
        html.write_text(written, encoding="utf-8")
    if as_json:
        screen.print_json([one.to_json() for one in found])
        return
    if not collection.count:
        screen.print_text("No reports yet.")
        return
    write_range = import_module("discreet.local.shown").write_range
    for result in found:
        screen.print_text(f"{result.question.text}  ({result.respondents:,} reports)", style="bold")
        written = [(name, *write_range(one.value, one.low, one.high)) for name, one in result.lines]
        rows = [(name, value, f"{low} … {high}") for name, value, low, high in written]
        screen.print_table(("answer", "estimate", "95 % range"), rows, right=(1, 2))


@app.command()
def ask(
    directory: Directory,
    question: Annotated[str, typer.Argument(metavar="SQL", help="About the table survey.")],
    as_json: Json = False,
) -> None:
    """Ask the reports in SQL, as a table named survey; free."""
    collection: Collection = import_module("discreet.local.collection").Collection(directory)
    collected = import_module("discreet.curate.collected").Collected(
        collection.survey, collection.reports()
    )
    found = collected.ask(question)
    if as_json:
        screen.print_json(found.to_json())
        return
    ends = {name: found.intervals(name) for name in found.columns}
    rows = [
        [_cell(value, ends[name][place]) for name, value in zip(found.columns, row, strict=True)]
        for place, row in enumerate(found.rows)
    ]
    numbers = [place for place, name in enumerate(found.columns) if any(ends[name])]
    screen.print_table(found.columns, rows, right=numbers)
    screen.print_text(f"95 % ranges; estimated from {found.respondents:,} reports, free.")


def _cell(value: Any, ends: tuple[float, float] | None) -> str:
    if ends is None or not isinstance(value, int | float):
        return "–" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)
    shown, low, high = import_module("discreet.local.shown").write_range(value, *ends)
    return f"{shown}  ({low} … {high})"


@app.command()
def serve(
    directory: Directory,
    host: Annotated[str, typer.Option(metavar="HOST", help="Listen on this address.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(metavar="PORT", help="And this port.")] = 8766,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key.")] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure-i-know-keys-can-be-read",
            help="Listen beyond this machine without TLS (behind a proxy that does it).",
        ),
    ] = False,
) -> None:
    """Serve the page and receive reports; nothing else about anyone is kept."""
    collection: Collection = import_module("discreet.local.collection").Collection(directory)
    application = import_module("discreet.server.survey").survey_application(collection)
    listen: Any = import_module("discreet.server.listen")
    listen.check_line(host, tls=tls_cert is not None, insecure=insecure)
    scheme = "http" if tls_cert is None else "https"
    listen.listen(
        application,
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        insecure=insecure,
        ready=lambda: typer.echo(f"{scheme}://{host}:{port}/#TOKEN  (Ctrl-C stops)", err=True),
    )


@local.command()
def compare(
    answers: Annotated[int, typer.Option(metavar="COUNT", help="How many answers there are.")],
    epsilon: Annotated[str, typer.Option(metavar="AMOUNT", help="What each person may lose.")],
    people: Annotated[int, typer.Option(metavar="COUNT", help="How many people are asked.")],
    as_json: Json = False,
) -> None:
    """Margins of a count with and without a trusted curator."""
    check: Any = import_module("discreet.exact.numbers").whole
    check(answers, name="--answers", least=2)
    check(people, name="--people", least=1)
    found = import_module("discreet.local.compare").compare(answers, epsilon, people)
    if as_json:
        screen.print_json(found.to_json())
        return
    rows = [
        ("everybody trusts a curator", f"± {found.central:,.0f}", f"{people:,}"),
        ("nobody has to", f"± {found.local:,.0f}", f"{found.needed:,}"),
    ]
    headings = ("model", f"margin of {people:,}", "people for the same share")
    screen.print_table(headings, rows, right=(1, 2))
    screen.print_text(f"Randomised by {found.randomizer}; margins at 95 %.")


def _columns(source: Path, words: list[str]) -> dict[str, list[Any]]:
    """The columns of a Parquet or CSV file; those that hold options as they are written."""
    from discreet.errors import DataRefusal

    arrow: Any = import_module("pyarrow")
    try:
        if source.suffix == ".parquet":
            table: Any = import_module("pyarrow.parquet").read_table(source)
        else:
            csv: Any = import_module("pyarrow.csv")
            # An option "007" or "true" is a word, whatever it looks like.
            written = csv.ConvertOptions(column_types=dict.fromkeys(words, arrow.string()))
            table = csv.read_csv(source, convert_options=written)
    except (OSError, arrow.ArrowInvalid):
        raise DataRefusal(
            "D2",
            f"{source.name!r} cannot be read as Parquet or CSV.",
            why="what the reader says could quote an answer, so nothing more is said.",
            fix="pass a file with one column for each question.",
        ) from None
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    for name in set(words) & set(columns):  # 7 has one spelling: it is the option "7"
        columns[name] = [str(one) if type(one) is int else one for one in columns[name]]
    return columns
