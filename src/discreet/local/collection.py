"""The reports of a survey on disk: what was sent, and which tokens are used; nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import AccessRefusal, SchemaRefusal
from discreet.exact.numbers import whole
from discreet.local.page import answer_page
from discreet.local.survey import Survey
from discreet.noise import uniform_below
from discreet.noise.entropy import random_bytes

SURVEY = "survey.toml"
PAGE = "page.html"
TOKENS = "tokens.txt"
REPORTS = "reports.sqlite"
_REWRITTEN = 16
"""How many pages of the file are written anew for a report, in the mean."""

# Reports are kept under random names, in the order of those names: not in the order in which
# they came, which together with the tokens could say whose they are.  ``_forget_order`` sees to it
# that the bytes of the file do not say it either.
_TABLES = """
CREATE TABLE tokens (hash BLOB PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE reports (name BLOB PRIMARY KEY, report TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE survey (fingerprint TEXT NOT NULL);
CREATE TABLE page (sha256 TEXT NOT NULL);
"""


class Collection:
    """A directory with a survey, its page, the tokens to hand out, and the reports.

    ``directory`` is where it is.

    A report is stored with its token's use in one transaction: a token counts once, and a
    report that was accepted is not lost.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not (directory / SURVEY).is_file() or not (directory / REPORTS).is_file():
            raise SchemaRefusal(
                "S20",
                f"{directory.name!r} holds no survey.",
                why="reports belong to the questions they were randomised for.",
                fix="discreet survey new smoking.toml",
            )
        self.survey = Survey.read(directory / SURVEY)
        with self._open() as found:
            (stored,) = found.execute("SELECT fingerprint FROM survey").fetchone()
        if stored != self.survey.fingerprint:
            raise SchemaRefusal(
                "S2",
                "survey.toml is not the one that the reports were made for.",
                why="reports read with other odds would say what nobody answered.",
                fix="put the file back as it was, or begin a new survey.",
            )
        if self._published not in (None, self.page_hash):
            raise SchemaRefusal(
                "S2",
                "page.html is not the page that was published.",
                why="another script could send the answer itself, and everybody trusts the page.",
                fix="put the file back as it was; its hash was shown when the survey began.",
            )

    @property
    def _published(self) -> str | None:
        """The hash of the page as it was made; surveys of before did not keep it."""
        with self._open() as found:
            if not _has_table(found, "page"):
                return None
            (sha256,) = found.execute("SELECT sha256 FROM page").fetchone()
        return str(sha256)

    @classmethod
    def new(
        cls, survey: Survey, directory: Path, *, tokens: int, endpoint: str = "report"
    ) -> Collection:
        """Begin ``survey`` in ``directory``: the page, ``tokens`` tokens to hand out, no reports.

        ``endpoint`` is where the page sends reports to.
        """
        count = whole(tokens, name="tokens", least=1)
        page = answer_page(survey, endpoint=endpoint)
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            raise SchemaRefusal(
                "S21",
                f"{directory.name!r} is there already.",
                why="a survey that is begun anew would lose the reports it has.",
                fix="choose another directory.",
            ) from None
        handed = [_make_token() for _ in range(count)]
        (directory / SURVEY).write_text(survey.text, encoding="utf-8")
        (directory / PAGE).write_text(page, encoding="utf-8", newline="\n")
        _private(directory / TOKENS, "".join(f"{token}\n" for token in handed))
        database = sqlite3.connect(directory / REPORTS)
        try:
            database.executescript(_TABLES)
            database.executemany("INSERT INTO tokens VALUES (?, 0)", [(_hash(t),) for t in handed])
            database.execute("INSERT INTO survey VALUES (?)", (survey.fingerprint,))
            published = hashlib.sha256(page.encode()).hexdigest()
            database.execute("INSERT INTO page VALUES (?)", (published,))
            database.commit()
        finally:
            database.close()
        return cls(directory)

    @property
    def page(self) -> bytes:
        """The page on which respondents answer, byte for byte as it was published."""
        return (self.directory / PAGE).read_bytes()

    @property
    def page_hash(self) -> str:
        """The published fingerprint of the page."""
        return hashlib.sha256(self.page).hexdigest()

    def tokens(self) -> list[str]:
        """The tokens to hand out."""
        return (self.directory / TOKENS).read_text(encoding="utf-8").split()

    def receive(self, token: str, report: Any) -> None:
        """Store one ``report``, once for each ``token``; refused reports leave the token unused."""
        self.survey.check(report)
        with self._open() as found:
            found.execute("BEGIN IMMEDIATE")
            self._use(found, token)
            self._store(found, [report])
            found.commit()
            _forget_order(found)

    def add(self, reports: Sequence[Any], *, once: bool = False) -> None:
        """Store ``reports`` that were made here, without tokens; ``once``: and none after them.

        Without tokens nothing says whether the people of a second file are those of the first.
        """
        self.survey.columns(reports)
        with self._open() as found:
            found.execute("BEGIN IMMEDIATE")
            if once:
                self._close_files(found)
            self._store(found, reports)
            found.commit()
            _forget_order(found)

    def _close_files(self, found: sqlite3.Connection) -> None:
        if _has_table(found, "filed"):
            raise AccessRefusal(
                "A16",
                "the answers of a file were reported here before.",
                why="people who are in both files would be randomised, and lose, a second time.",
                fix="--other-people, if nobody is in both files.",
            )
        found.execute("CREATE TABLE filed (once INTEGER)")

    @property
    def count(self) -> int:
        """How many reports there are."""
        with self._open() as found:
            return int(found.execute("SELECT COUNT(*) FROM reports").fetchone()[0])

    def reports(self) -> list[Any]:
        """Every report, in no order that says anything."""
        with self._open() as found:
            rows = found.execute("SELECT report FROM reports ORDER BY name").fetchall()
        return [json.loads(row[0]) for row in rows]

    def _use(self, found: sqlite3.Connection, token: str) -> None:
        row = found.execute("SELECT used FROM tokens WHERE hash = ?", (_hash(token),)).fetchone()
        if row is None or row[0]:
            raise AccessRefusal(
                "A13" if row is None else "A16",
                "this token is not one of this survey."
                if row is None
                else "this token has been used.",
                why="one person could answer many times, and outweigh all others.",
                fix="open the page by the link that you were given."
                if row is None
                else "nothing is left to do: the first report was kept.",
            )
        found.execute("UPDATE tokens SET used = 1 WHERE hash = ?", (_hash(token),))

    def _store(self, found: sqlite3.Connection, reports: Sequence[Any]) -> None:
        found.executemany(
            "INSERT INTO reports VALUES (?, ?)",
            sorted((random_bytes(16), json.dumps(one, separators=(",", ":"))) for one in reports),
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        found = sqlite3.connect(self.directory / REPORTS, isolation_level=None, timeout=10)
        try:
            found.execute("PRAGMA synchronous = FULL")
            found.execute("PRAGMA secure_delete = ON")
            found.execute("PRAGMA temp_store = MEMORY")
            yield found
        finally:
            found.close()  # what was not committed is undone


def _forget_order(found: sqlite3.Connection) -> None:
    """Write the file anew in the order of the names.

    SQLite puts what comes last before what is on a page already, so the bytes of a page would say
    in which order its reports came.  A large file is written anew now and then, so that a report
    costs the same however many there are: seldom do two come to one page in between.
    """
    (pages,) = found.execute("PRAGMA page_count").fetchone()
    if uniform_below(int(pages)) < _REWRITTEN:
        with suppress(sqlite3.OperationalError):  # another is writing: the next report does it
            found.execute("VACUUM")


def _has_table(found: sqlite3.Connection, name: str) -> bool:
    asked = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return found.execute(asked, (name,)).fetchone() is not None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _make_token() -> str:
    """A token of 128 random bits, as it is written in an address."""
    return urlsafe_b64encode(random_bytes(16)).rstrip(b"=").decode()


__all__ = ["Collection"]
