"""What the curator needs of an engine, whichever it is.

An engine holds the data and gives three things: public knowledge (a catalogue), a
plan compiled to its own statement, and the exact integers of a compiled plan,
sealed.  Compiling reads no private row: whatever an engine cannot run is refused
there, before anything is paid.  ``tests/contract/test_engine.py`` is what every
engine must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from discreet.engine.truth import Truth
from discreet.errors import DataRefusal
from discreet.price.plan import Lumpings, Plan
from discreet.question.catalogue import Catalogue
from discreet.question.schema import Schema, Table

if TYPE_CHECKING:
    from discreet.question.levels import Levels
    from discreet.question.relation import Relation

Progress = Callable[[str, float], None]
"""Called with a table's name and the part of it that is done, from 0 to 1."""


class Compiled(Protocol):
    """A plan in the words of one engine: the object that was checked is the one that is run."""

    @property
    def plan(self) -> Plan:
        """What it computes."""

    def explain(self) -> str:
        """What the engine will do, as text; the same whatever the data are."""


C = TypeVar("C", bound=Compiled)


class Engine(Protocol[C]):
    """Runs plans on tables, exactly."""

    @property
    def schema(self) -> Schema:
        """The tables as they were declared, with what the public ones hold."""

    @property
    def catalogue(self) -> Catalogue:
        """What is public of the tables now; opens no private source."""

    def compile(self, plan: Plan, lumpings: Lumpings = (), *, bound: bool = False) -> C:
        """The plan as a statement that the engine accepts, or a refusal; reads no private data.

        The same plan is compiled once for each version of the public tables.  Cells of
        histograms come back together as the ``lumpings`` say; without any, each by itself.
        Of one that was ``bound`` before it was paid for, the engine is not asked again.
        """

    def run(self, compiled: C) -> Truth:
        """The exact integers of what was compiled, on the data as they are now."""

    def count_crowd(self, name: str) -> Truth:
        """How many people stand in many rows of a table with two owners, by level."""

    def compile_codes(
        self, relation: Relation, levels: Sequence[Levels], *, owned: bool = False
    ) -> Any:
        """A statement that says in which level of each column every row lies; reads no data.

        If it is to be ``owned``, it says whose each row is, too.
        """

    def run_codes(self, compiled: Any) -> Truth:
        """The codes of every row, on the data as they are now."""

    def compile_rows(self, table: Table) -> Any:
        """A statement that gives the rows of a private table as declared; reads no data."""

    def run_rows(self, compiled: Any) -> Truth:
        """The rows, on the data as they are now: whose each is, then its columns."""

    def data_version(self) -> str:
        """A name for what the sources hold now, without reading them; never a refusal."""

    def former_version(self) -> str | None:
        """What ledgers called the same sources when rows were chosen otherwise, if they did.

        What was answered then is shown, and nothing new is combined with it.
        """

    def find_basis(self, compiled: C) -> str | None:
        """A name for all that a plan's truth is computed from; None where somebody may change that.

        Two truths of one basis are equal, for certain: noise may be refined (docs/proofs/known.md,
        Lemma 14).
        """

    def content_hash(self, table: str) -> str:
        """A SHA-256 of all that a source holds; slow, for when a version must be certain."""

    def public_rows(self, table: str) -> Mapping[str, Sequence[Any]]:
        """What a public table holds now: the values of each declared column."""

    def prepare(
        self, *, progress: Progress | None = None, tables: Iterable[str] | None = None
    ) -> None:
        """Do once what depends on the declarations alone, so that questions run faster."""

    def close(self) -> None:
        """Let go of the sources."""

    def __enter__(self) -> Self:
        """The engine, to be closed at the end of a block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it."""


def describe_failure() -> DataRefusal:
    """The one thing that is said when a question could not be computed."""
    return DataRefusal(
        "D1",
        "the engine could not answer this question.",
        why="what went wrong may depend on one person's row, so nothing more is said.",
        fix="ask a smaller question, or have the curator check the source and the memory limit.",
    )


__all__ = ["C", "Compiled", "Engine", "Progress", "describe_failure"]
