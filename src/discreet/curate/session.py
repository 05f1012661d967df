"""A session: a directory with one ``discreet.toml``, and the ledger beside it.

The data stays where it is: the file names it.  Opening a session never creates
its ledger.  A ledger that was deleted or moved away would come back empty, and
what people have already lost would be forgotten; only :func:`init` starts one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from discreet.accounting.budget import Budget
from discreet.curate.curator import Curator
from discreet.engine.opening import KINDS
from discreet.errors import InvalidParameter, SchemaRefusal, quote_value
from discreet.ledger import Ledger, Policy, Verification
from discreet.ledger.analysts import ANALYST_NAME, Group, end_of_day
from discreet.question.schema import Schema, SchemaFile
from discreet.question.schema.declarations import BUDGET_KEYS, check_known, read_budget, section
from discreet.question.schema.lines import Document

FILE = "discreet.toml"
LEDGER = "ledger.sqlite"
PREPARED = "prepared"
RELEASES = "releases"
DATASET = "data"
RUNS = "runs"
"""The secrets of open runs, where the ledger is on a server."""

_KEYS = {
    "budget": BUDGET_KEYS,
    "policy": ("question", "analyst", "shared_answers", "expires"),
    "ledger": ("address", "checkpoint", "dataset"),
    "engine": ("kind", "memory_limit", "threads", "store", "spark", "timeout_s"),
}
_GROUP_KEYS = ("limit", "each", "claims")
_SURVEY = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_WHY = "a setting that is not understood could let more be lost than was meant."


@dataclass(frozen=True, slots=True)
class Session:
    """What a ``discreet.toml`` says; nothing is opened yet."""

    directory: Path
    schema: Schema
    budget: Budget
    policy: Policy = field(default_factory=Policy)
    address: str = LEDGER
    """A path from the directory, or the URL of a database."""
    checkpoint: Path | None = None
    """Where else checkpoints are kept than beside the ledger: a file or a folder."""
    dataset: str = DATASET
    engine: Mapping[str, Any] = field(default_factory=dict)
    surveys: Mapping[str, str] = field(default_factory=dict)
    """Where each survey's directory is, by the name under which it is asked."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The sections of the file as they were written, for the doors that have their own."""

    @property
    def ledger_file(self) -> Path | None:
        """The file of the ledger, or None if it is on a server."""
        return None if "://" in self.address else find_place(self.directory, self.address)

    @property
    def store(self) -> Path:
        """Where prepared tables are kept."""
        return find_place(self.directory, str(self.engine.get("store", PREPARED)))

    def ledger(self, checkpoint: Path | None = None) -> Ledger:
        """The ledger; refused when there is none, or when it is behind a checkpoint."""
        self._check_file()
        return self._ledger(checkpoint, create=False)

    def examine(
        self, checkpoint: Path | None = None, *, public_key: str | None = None
    ) -> Verification:
        """All that is wrong with the ledger, also with one that cannot be opened."""
        self._check_file()
        return Ledger.examine(
            self.ledger_file or self.address,
            checkpoint=checkpoint or self.checkpoint,
            public_key=public_key,
        )

    def _check_file(self) -> None:
        file = self.ledger_file
        if file is not None and not file.exists():
            raise self._without_account(f"the ledger of this session, {file.name}, is not there.")

    def _ledger(self, checkpoint: Path | None = None, *, create: bool) -> Ledger:
        shown = checkpoint or self.checkpoint
        return Ledger.open(self.ledger_file or self.address, checkpoint=shown, create=create)

    def curator(self, **engine: Any) -> Curator:
        """The curator of this session; ``engine`` overrides the section [engine]."""
        ledger = self.ledger()
        if self.dataset not in ledger.datasets():
            ledger.close()
            raise self._without_account(f"the ledger has no account named {self.dataset!r}.")
        return self._curator(ledger, engine)

    def datasets(self) -> tuple[str, ...]:
        """The accounts in a ledger that others may share."""
        with self._ledger(create=True) as ledger:
            return ledger.datasets()

    def start(self, **engine: Any) -> Curator:
        """The curator of a session whose account is new."""
        return self._curator(self._ledger(create=True), engine)

    def _without_account(self, what: str) -> SchemaRefusal:
        return SchemaRefusal(
            "S22",
            what,
            why="a new one would forget what the people in the data have already lost.",
            fix="bring back the ledger (`discreet ledger restore`) or the name of the account, or, "
            f"if nothing was ever asked, run `discreet init {self.directory}`.",
        )

    def _curator(self, ledger: Ledger, engine: Mapping[str, Any]) -> Curator:
        settings = {**self.engine, "store": self.store, **engine}
        try:
            _make_folder(self.store)
            curator = Curator(
                self.sources(),
                schema=self.schema,
                budget=self.budget,
                ledger=ledger,
                dataset=self.dataset,
                policy=self.policy,
                owns_ledger=True,
                secrets=None if self.ledger_file else self.directory / RUNS,
                **settings,
            )
        except BaseException:
            ledger.close()
            raise
        curator.keep_releases(self.directory / RELEASES)
        try:
            curator.keep_surveys(
                {name: find_place(self.directory, at) for name, at in self.surveys.items()}
            )
        except BaseException:
            curator.close()
            raise
        return curator

    def sources(self) -> dict[str, str]:
        """Where each table's rows are, seen from wherever the process runs."""
        return find_sources(self.directory, self.schema)


def find_place(directory: Path, written: str) -> Path:
    """Where a path of a session's file leads, seen from its ``directory``.

    A leading ``~/`` is the home of whoever runs the process, as in a shell; ``./~/`` is a
    directory of that name.
    """
    return Path.home() / written[2:] if written.startswith("~/") else directory / written


def find_sources(directory: Path, schema: Schema) -> dict[str, str]:
    """Where the rows are of each table whose source is declared: a path, or an address as it is."""
    return {
        name: table.source if "://" in table.source else str(find_place(directory, table.source))
        for name, table in schema.tables.items()
        if table.source is not None
    }


def read(directory: str | os.PathLike[str]) -> Session:
    """The settings of the session in ``directory``; reads ``discreet.toml`` and nothing else."""
    home = Path(directory)
    if not (home / FILE).is_file():
        raise SchemaRefusal(
            "S20",
            f"{home.resolve()} holds no {FILE}.",
            why="without it nobody has said who is to be protected, nor how well.",
            fix="name the session's directory (--session DIR, or DISCREET_SESSION), or make one: "
            "`discreet init DIR`.",
        )
    return parse_settings(home, SchemaFile.read(home / FILE))


def open(directory: str | os.PathLike[str] = ".", **engine: Any) -> Curator:  # noqa: A001
    """The curator of the session in ``directory``: ``discreet.open("clinic/")``.

    ``engine`` overrides the section [engine] of its file: ``kind``, ``memory_limit``, ``threads``,
    ``store``, ``spark``, ``timeout_s`` and ``progress``.
    """
    return read(directory).curator(**engine)


def init(directory: str | os.PathLike[str], text: str | None = None) -> Session:
    """Start a session: write ``text`` as its ``discreet.toml``, then open its account.

    With a file that is already there, ``text`` is left out and only the account
    is opened: in a new ledger, or in one of another directory or a server that its section
    [ledger] names.  Nothing that exists is overwritten.
    """
    home = Path(directory)
    if text is not None:
        write(home, text)
    session = read(home)
    file = session.ledger_file
    shared = file is None or file.parent.resolve() != home.resolve()  # named, and of others too
    if file is not None and file.exists() and not shared:
        raise _taken_refusal(file)
    if shared and (file is None or file.exists()) and session.dataset in session.datasets():
        raise _taken_refusal(f"an account named {session.dataset!r}")
    with closing(session.start(opened=False)):
        return session


def write(directory: Path, text: str) -> Path:
    """Write ``discreet.toml``, and never over another one."""
    file = directory / FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise _taken_refusal(file) from None
    except OSError as error:
        raise _unwritable(file, error) from None
    return file


def _make_folder(folder: Path) -> None:
    """A folder that only its owner can read: what is prepared in it are people's rows."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(path: Path, error: OSError) -> InvalidParameter:
    return InvalidParameter(
        "P9",
        f"{path} cannot be written: {error.strerror}.",
        why="nothing was asked; no person's data is involved.",
        fix="name a directory that is yours.",
    )


def _taken_refusal(what: object) -> SchemaRefusal:
    return SchemaRefusal(
        "S21",
        f"{what} is there already.",
        why="to write over it would forget whom it protects, or what they have lost.",
        fix="name another directory, or use the session as it is.",
    )


# --- reading the sections ------------------------------------------------------------------


def parse_settings(home: Path, file: SchemaFile) -> Session:
    """The settings in a file that was read; refusals name its lines."""
    document = file.document
    for name, keys in _KEYS.items():
        check_known(file.settings.get(name, {}), keys, f"[{name}]", document, (name,))
    ledger = file.settings.get("ledger", {})
    return Session(
        home,
        file.schema,
        _budget(file.settings.get("budget"), document, ("budget",)),
        _policy(
            file.settings.get("policy", {}),
            _groups(file.settings.get("groups", {}), document),
            document,
        ),
        _text(ledger, "address", LEDGER, document),
        find_place(home, _text(ledger, "checkpoint", "", document))
        if "checkpoint" in ledger
        else None,
        _text(ledger, "dataset", DATASET, document),
        _engine(file.settings.get("engine", {}), document),
        _surveys(file.settings.get("surveys", {}), document),
        file.settings,
    )


def _budget(value: object, document: Document, path: tuple[str, ...]) -> Budget:
    if value is None:
        raise SchemaRefusal(
            "S2",
            f"{document.name} has no section [budget].",
            why="without it nothing limits what is lost.",
            fix="add [budget] with epsilon = 3 and delta = 1e-9, or with rho = 0.1.",
        )
    return read_budget(value, document, path)


def _policy(data: Mapping[str, Any], groups: Mapping[str, Group], document: Document) -> Policy:
    caps = {
        name: _budget(data[name], document, ("policy", name))
        for name in ("question", "analyst")
        if name in data
    }
    shared = data.get("shared_answers", True)
    with document.at("policy", "shared_answers"):
        if not isinstance(shared, bool):
            raise _misread("shared_answers", shared, "write shared_answers = true or false.")
    return Policy(
        caps.get("question"),
        caps.get("analyst"),
        shared_answers=shared,
        expires=_expires(data, document),
        groups=groups,
    )


def _groups(data: Mapping[str, Any], document: Document) -> dict[str, Group]:
    """Groups of analysts with their limits; what claims let in is for the server to read."""
    found = {}
    for name, said in data.items():
        path = ("groups", name)
        with document.at(*path):
            if not ANALYST_NAME.fullmatch(name):
                raise _misread("a group", name, "use letters and digits, such as [groups.staff].")
            section(said, ".".join(path))
        check_known(said, _GROUP_KEYS, f"[groups.{name}]", document, path)
        caps = {
            key: read_budget(said[key], document, (*path, key))
            for key in ("limit", "each")
            if key in said
        }
        found[name] = Group(**caps)
    return found


def _surveys(data: Mapping[str, Any], document: Document) -> dict[str, str]:
    """The directories of surveys, each under a name that a question can use."""
    for name in data:
        with document.at("surveys", name):
            if not _SURVEY.fullmatch(name):
                raise _misread("a survey's name", name, 'use letters, such as smoking = "smoking".')
        _text(data, name, "", document, inside="surveys")
    return dict(data)


def _expires(data: Mapping[str, Any], document: Document) -> datetime | None:
    value = data.get("expires")
    with document.at("policy", "expires"):
        if value is None:
            return None
        if isinstance(value, date) and not isinstance(value, datetime):
            value = end_of_day(value)
        try:
            zone = value.tzinfo or UTC
            moment: datetime = value.replace(tzinfo=zone).astimezone(UTC)
            return moment
        except (AttributeError, TypeError, OverflowError):  # no day, or one outside the calendar
            fix = "write a day, such as expires = 2027-12-31."
            raise _misread("expires", value, fix) from None


def _engine(data: Mapping[str, Any], document: Document) -> dict[str, Any]:
    threads = data.get("threads", 2)
    with document.at("engine", "threads"):
        if type(threads) is not int or threads < 1:
            raise _misread("threads", threads, "write a whole number, such as threads = 4.")
    for name in ("kind", "memory_limit", "store", "spark"):
        _text(data, name, "", document, inside="engine")
    timeout = data.get("timeout_s", 1)
    with document.at("engine", "timeout_s"):
        if type(timeout) is not int or timeout < 1:
            raise _misread("timeout_s", timeout, "write whole seconds, such as timeout_s = 600.")
        if "timeout_s" in data and data.get("kind") != "postgres":
            raise _misread("timeout_s", timeout, 'write kind = "postgres" beside it.')
    kind = data.get("kind", KINDS[0])
    with document.at("engine", "kind"):
        if kind not in KINDS:
            raise _misread("kind", kind, f"write one of {', '.join(KINDS)}.")
    return dict(data)


def _text(
    data: Mapping[str, Any], name: str, default: str, document: Document, *, inside: str = "ledger"
) -> str:
    value = data.get(name, default)
    with document.at(inside, name):
        if not isinstance(value, str) or "\0" in value or (name in data and not value.strip()):
            raise _misread(name, value, f'write it in quotes, such as {name} = "{default or "…"}".')
    return str(value)


def _misread(name: str, value: object, fix: str) -> SchemaRefusal:
    return SchemaRefusal("S2", f"{name} is {quote_value(value)}.", why=_WHY, fix=fix)


__all__ = ["Session", "init", "open", "read"]
