"""A first draft of a schema from files: names and types, and never a value.

The draft goes into a public file, so it may hold only what is no secret: the
names and types of columns.  Bounds, allowed values and the unit are for the
curator, who knows them without looking; the draft marks where, and says what
the names suggest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import SchemaRefusal
from discreet.question.domain import Kind
from discreet.question.schema.schema import FILL_IN

_HEADER_NAME = re.compile(r"[^\W\d_][\w .:/()%#&+*'?=€$£°²³\[\]-]{0,63}")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WHY = "a schema is public: what is drafted from a private file may hold nothing of its rows."
_PEOPLE = frozenset(
    [
        *("person", "people", "patient", "user", "customer", "client", "member", "subscriber"),
        *("student", "pupil", "employee", "worker", "passenger", "traveller", "subject", "donor"),
        *("participant", "respondent", "individual", "household", "resident", "citizen", "guest"),
        *("account", "card", "device", "rater", "reviewer", "viewer", "voter", "driver"),
        *("rider", "player", "buyer", "seller", "owner", "holder", "borrower", "tenant", "visitor"),
        *("applicant", "learner", "child", "taxpayer", "policyholder", "consumer", "insured"),
    ]
)
_AMBIGUOUS = frozenset(["subject", "account", "card", "device"])
"""Words for a person, or for what a person has: beside another person they are the latter."""
_IDENTIFYING = ("id", "key", "code", "number", "no", "nr", "uuid")


@dataclass(frozen=True, slots=True)
class Drafted:
    """What a file shows of itself: where it is, and its columns with their kinds."""

    path: Path
    columns: tuple[tuple[str, Kind | str | None], ...]
    zones: tuple[tuple[str, str], ...] = ()  # of columns whose type names a time zone

    @property
    def table(self) -> str:
        """The name of the table: that of the file."""
        return self.path.name.split(".", 1)[0]


def suggest(*files: str | Path, directory: str | Path | None = None) -> str:
    """A draft of the TOML for Parquet and CSV files, one table each.

    Of a Parquet file the types are read; of a CSV file the header and, from all rows, which type
    every value of a column has.  Units are proposed from names that several files share or that
    sound like a person's, with the reason.  A file inside ``directory`` is named from there.
    """
    tables = [_look(Path(file)) for file in files]
    names = [table.table for table in tables]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise SchemaRefusal(
            "S8",
            f"two files would both be table {twice[0]!r}.",
            why="a question names one table.",
            fix="rename one of the files, or draft them one by one with `discreet schema suggest`.",
        )
    home = None if directory is None else Path(directory)
    return "\n".join(_draft(tables, home)) + "\n"


# --- reading -------------------------------------------------------------------------------


def _look(path: Path) -> Drafted:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if not path.exists():
        raise SchemaRefusal(
            "S8",
            f"there is no file {path}.",
            why="nothing was read.",
            fix=f"name a file that exists; this was looked for in {Path.cwd()}.",
        )
    if suffixes[-1:] in ([".parquet"], [".pq"]):
        return _parquet(path)
    if suffixes[-1:] in ([".csv"], [".tsv"]) or suffixes[-2:] in ([".csv", ".gz"], [".tsv", ".gz"]):
        return Drafted(path, tuple(_csv(path)))
    raise SchemaRefusal(
        "S8",
        f"{path.name} is neither a Parquet nor a CSV file by its name.",
        why=_WHY,
        fix="give a file that ends in .parquet, .csv, .tsv, .csv.gz or .tsv.gz.",
    )


def _unreadable(path: Path) -> SchemaRefusal:
    return SchemaRefusal(
        "S8",
        f"the columns of {path.name} cannot be listed.",
        why=_WHY,
        fix="check that the file is what its name says and not empty, or write the schema by hand: "
        "docs/schema.md.",
    )


def _parquet(path: Path) -> Drafted:
    """Names and kinds from the file's footer; its statistics are not looked at."""
    import pyarrow as pa  # a third of a second that only this needs
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        raise _unreadable(path) from None
    kinds = [(field.name, _kind(field.type, pa.types)) for field in schema]
    named = re.compile(r"UTC|[A-Z][A-Za-z_]+(/[A-Za-z_-]+)+")  # an offset is no zone
    zones = [(field.name, str(getattr(field.type, "tz", None) or "")) for field in schema]
    known = tuple((name, zone) for name, zone in zones if named.fullmatch(zone))
    return Drafted(path, tuple(kinds), known)


def _kind(arrow: Any, types: Any) -> Kind | str:
    """The kind of an Arrow type, or the type's name if there is none for it."""
    if types.is_dictionary(arrow):
        arrow = arrow.value_type
    for test, kind in (
        (types.is_boolean, Kind.BOOLEAN),
        (types.is_integer, Kind.INTEGER),
        (types.is_decimal, Kind.DECIMAL),
        (types.is_floating, Kind.DECIMAL),
        (types.is_date, Kind.DATE),
        (types.is_timestamp, Kind.TIMESTAMP),
        (types.is_string, Kind.TEXT),
        (types.is_large_string, Kind.TEXT),
        (types.is_string_view, Kind.TEXT),
    ):
        if test(arrow):
            return kind
    return str(arrow).split("<", 1)[0].split("[", 1)[0]


def _csv(path: Path) -> list[tuple[str, Kind | str | None]]:
    """The names in the first line and the kinds of what is below.

    A file without a header has a person in its first line, who must not be
    printed: not even in the refusal.
    """
    from discreet.engine.duckdb.examine import find_kinds
    from discreet.engine.duckdb.sources import Csv, read_header

    usual = "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes] else ","
    failed = False
    names: list[str] = []
    kinds: list[Kind | None] = []
    try:
        names, delimiter = read_header(path, usual)
        _check_header(path, names)
        declared = frozenset(name.casefold() for name in names)
        kinds = find_kinds(Csv(str(path), delimiter=delimiter, columns=declared))
    except SchemaRefusal:
        raise
    except Exception:  # its text may quote a line
        failed = True
    if failed or len(kinds) != len(names):
        raise _unreadable(path)
    return [
        (name, _name_unnamed(name, place) or kind)
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True), start=1)
    ]


def _name_unnamed(name: str, place: int) -> str | None:
    """Of the first column alone: an index that was written along, as data frames do."""
    return "without a name in the header" if place == 1 and name == "column 1" else None


def _check_header(path: Path, names: Sequence[str]) -> None:
    plain = [
        bool(_HEADER_NAME.fullmatch(name)) and (place == 1 or name != f"column {place}")
        for place, name in enumerate(names, start=1)
    ]
    if path.is_file() and not path.stat().st_size:
        raise SchemaRefusal(
            "S8",
            f"{path.name} is empty.",
            why="the names and types of columns are read from the file, and nobody's row is in it.",
            fix="name a file with a line of column names, or write the schema by hand: "
            "docs/schema.md.",
        )
    if not names or not all(plain):
        raise SchemaRefusal(
            "S8",
            f"the first line of {path.name} does not look like a header.",
            why="it may be a person's row, and a schema is public.",
            fix="put a line of column names first, each once, or write the schema by hand: "
            "docs/schema.md.",
        )


# --- proposing -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proposal:
    """Who the unit of a table may be, and why; names alone decide."""

    columns: tuple[str, ...] = ()
    reason: str = ""
    entity: str | None = None
    lookup: bool = False  # other files point at it: it may be nobody's


def propose(tables: Sequence[Drafted]) -> list[Proposal]:
    """The unit that the names of each table suggest.

    >>> visits = Drafted(Path("visits.csv"), (("patient_id", Kind.INTEGER), ("ward", Kind.TEXT)))
    >>> patients = Drafted(Path("patients.csv"), (("id", Kind.INTEGER), ("age", Kind.INTEGER)))
    >>> [p.columns for p in propose([visits, patients])]
    [('patient_id',), ('id',)]
    >>> propose([visits, patients])[1].entity
    'patient'
    """
    whose = [
        {column: _name_identified(table, column) for column in _keys(table)} for table in tables
    ]
    said = [entity for found in whose for entity in found.values()]
    return [
        _propose_one(table, found, said, whose, tables)
        for table, found in zip(tables, whose, strict=True)
    ]


def _keys(table: Drafted) -> Iterator[str]:
    """Columns that look like identifiers: by name, and of a kind that identifies."""
    for name, kind in table.columns:
        words = _words(name)
        if kind in (Kind.INTEGER, Kind.TEXT, None) and (
            words[-1] in _IDENTIFYING
            or words[-1] in _PEOPLE
            or name.lower() == table.table.lower()
            or words == [_entity_name(_words(table.table)[-1])]
        ):
            yield name


_TWO_ENDS = (
    *(("src", "dst"), ("source", "target"), ("source", "destination"), ("from", "to")),
    *(("sender", "receiver"), ("sender", "recipient"), ("payer", "payee"), ("caller", "callee")),
    *(("follower", "followee"), ("follower", "followed"), ("buyer", "seller"), ("left", "right")),
    *(("1", "2"), ("a", "b"), ("one", "two"), ("one", "other"), ("first", "second")),
)
"""How two columns that name people of the same kind are told apart."""


def find_two(table: Drafted) -> tuple[str, str] | None:
    """Two columns of one kind whose names differ in which end of a row they are.

    >>> find_two(Drafted(Path("payments.csv"), (("payer_id", Kind.TEXT), ("payee_id", Kind.TEXT))))
    ('payer_id', 'payee_id')
    """
    fit = [(n, kind) for n, kind in table.columns if kind in (Kind.INTEGER, Kind.TEXT)]
    for name, kind in fit:
        for other, same in fit:
            if kind is same and name != other and _are_two_ends(_split(name), _split(other)):
                return name, other
    return None


def _split(name: str) -> list[str]:
    """Its words, a number at the end by itself: user1 is user, 1."""
    return [part for word in _words(name) for part in re.findall(r"[^\W\d]+|\d+", word)]


def _are_two_ends(one: list[str], other: list[str]) -> bool:
    pairs = list(zip(one, other, strict=False))
    apart = [pair for pair in pairs if pair[0] != pair[1]]
    return len(one) == len(other) and len(apart) == 1 and apart[0] in _TWO_ENDS


def _name_identified(table: Drafted, column: str) -> str:
    """What a column identifies: 'patient' for patient_id, and for the id of patients."""
    words = [word for word in _words(column) if word not in _IDENTIFYING]
    return "_".join(words) or _entity_name(_words(table.table)[-1])


def _words(name: str) -> list[str]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return [word for word in re.split(r"[\W_]+", spaced.lower()) if word] or [name.lower()]


def _entity_name(plural: str) -> str:
    """Whom a table is about: patients about a patient."""
    if plural == "people":
        return "person"
    if re.search(r"(ch|sh|ss|x|z)es$", plural):
        return plural[:-2]
    return plural[:-1] if plural.endswith("s") and not plural.endswith("ss") else plural


def _alike(one: str, other: str) -> bool:
    """Whether two words name the same thing: city is the one of cities, movie of movies."""
    stems = [re.sub(r"(ie|y)$", "i", _entity_name(word)) for word in (one, other)]
    return stems[0] == stems[1]


def _propose_one(
    table: Drafted,
    found: dict[str, str],
    said: list[str],
    whose: Sequence[dict[str, str]],
    tables: Sequence[Drafted],
) -> Proposal:
    own = _words(table.table)[-1]

    def weight(column: str) -> tuple[bool, int, bool]:
        entity = found[column]
        return entity.split("_")[-1] in _PEOPLE, said.count(entity), not _alike(entity, own)

    ranked = sorted(found, key=weight, reverse=True)
    if not ranked:
        return Proposal()
    first = ranked[0]
    person, shared, _ = weight(first)
    elsewhere = [f for f in whose if f is not found and found[first] in f.values()]
    spelled = {column for f in whose for column, entity in f.items() if entity == found[first]}
    entity = found[first] if len(spelled) > 1 else None
    reasons = [
        *(["its name is that of a person's identifier"] if person else ["its name identifies"]),
        *([f"{len(elsewhere) + 1} of these files have it"] if elsewhere else []),
    ]
    # Somebody else is in the files that refer to it: then it lists what they have, not people.
    beside = found[first] in _AMBIGUOUS and any(_names_a_person(f) for f in elsewhere)
    referred = shared > 1 or any(first in dict(t.columns) for t in tables if t is not table)
    lookup = (beside or not person) and _alike(found[first], own) and referred
    return Proposal((first,), ", and ".join(reasons), entity, lookup)


def _names_a_person(found: dict[str, str]) -> bool:
    return any(entity.split("_")[-1] in _PEOPLE - _AMBIGUOUS for entity in found.values())


# --- writing -------------------------------------------------------------------------------


def _draft(tables: Sequence[Drafted], home: Path | None) -> Iterator[str]:
    yield "# Drafted from names and types only.  Everything in this file is public: fill in what is"
    yield f'# marked "{FILL_IN}" from what you know, never by looking at the data.'
    yield ""
    yield "[budget]"
    yield f'epsilon = "{FILL_IN}"            # what one person may lose in all, such as 1'
    yield "delta = 1e-9"
    for table, proposal in zip(tables, propose(tables), strict=True):
        yield ""
        yield from _table(table, proposal, home)


def _table(table: Drafted, proposal: Proposal, home: Path | None) -> Iterator[str]:
    name = _key(table.table)
    yield f"[tables.{name}]"
    yield f"source = {_quote(_place(table.path, home))}"
    if proposal.columns:
        perhaps = " or ".join(proposal.columns)
        yield f'unit = {_quote(f"{FILL_IN}: {perhaps}?")}  # {proposal.reason}; or "row"'
    else:
        yield f'unit = "{FILL_IN}"               # the column(s) that identify one person, or "row"'
    if proposal.entity is not None:
        yield f"entity = {_quote(proposal.entity)}  # other files call the same unit otherwise"
    yield f'max_rows_per_unit = "{FILL_IN}"  # how many rows of one person are counted at most'
    two = find_two(table)
    if two is not None:
        named = ", ".join(map(_quote, two))
        yield "# Two columns look alike. If a row is of both whom it names, write instead of unit"
        yield f"# unit = {{ pair = [{named}] }}  to hide that two are connected, or"
        yield f"# unit = {{ any = [{named}] }}  to hide each person, with entity, max_rows_per_pair"
        yield "# and crowding = { rho = 0.02, delta = 1e-9 } (docs/graphs.md)"
    if proposal.lookup:
        key = ", ".join(map(_quote, proposal.columns))
        yield f"# If nobody is in this file (other files refer to it by {key}), write instead of"
        yield f"# unit and what follows it, above:  public = true  and  unique = [{key}]"
    elif not proposal.columns:
        yield "# If nobody is in this file, write instead of unit and what follows it, above:"
        yield "# public = true"
    yield ""
    yield f"[tables.{name}.columns]"
    keys = set(_keys(table))
    for column, kind in table.columns:
        yield from _column(column, kind, key=column in keys, zone=dict(table.zones).get(column))


def _place(path: Path, home: Path | None) -> str:
    """Where the file is, seen from the session it is drafted for."""
    if home is None:
        return str(path)
    whole = path.resolve()
    inside = whole.is_relative_to(home.resolve())
    return str(whole.relative_to(home.resolve())) if inside else str(whole)


def _column(name: str, kind: Kind | str | None, *, key: bool, zone: str | None) -> Iterator[str]:
    word = _key(name)
    match kind:
        case Kind() if key:
            yield f'{word} = {{ type = "{kind.value}" }}'
        case None:
            kinds = ", ".join(k.value for k in Kind)
            yield f'{word} = {{ type = "{FILL_IN}" }}  # {kinds}; then bounds or values'
        case Kind.BOOLEAN:
            yield f'{word} = {{ type = "boolean" }}'
        case Kind.TEXT:
            yield f'{word} = {{ type = "text" }}  # to group by it: values = [...]'
        case Kind.TIMESTAMP:
            hint = "bounds = [first day, day after the last]"
            if zone is None:
                yield f'{word} = {{ type = "timestamp" }}  # {hint}'
            else:
                declared = f'type = "timestamp", time_zone = {_quote(zone)}'
                yield f"{word} = {{ {declared} }}  # whose clocks questions see; {hint}"
        case Kind.DATE:
            yield f'{word} = {{ type = "date" }}  # bounds = [first day, last day]'
        case Kind():
            yield f'{word} = {{ type = "{kind.value}" }}  # to sum it: bounds = [low, high]'
        case _:
            yield f"# {word}: {kind}, which questions cannot use"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quote(name)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


__all__ = ["FILL_IN", "Drafted", "Proposal", "propose", "suggest"]
