"""What may be asked of the data besides a question: runs, choices, reports, publications.

Each is made in a module of its own, imported when it is used: who asks a question does not wait
for the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Unpack, cast

from discreet.curate.steps import CURATOR
from discreet.exact.numbers import Exact
from discreet.question.offer import Amounts, Offer

if TYPE_CHECKING:
    from discreet.curate.aggregating import Aggregated, AggregateExplanation
    from discreet.curate.choosing import ChoiceExplanation, Chosen
    from discreet.curate.curator import Asking, Curator
    from discreet.curate.interviews import InterviewExplanation, InterviewRun
    from discreet.curate.learning import Learning, LearningRun
    from discreet.curate.preparing import PlannedRelease
    from discreet.curate.releases import Releases
    from discreet.curate.reports import (
        Checks,
        MedianExplanation,
        QualityExplanation,
        QualityReport,
        RobustMedian,
    )
    from discreet.curate.runs import Run, WatchExplanation
    from discreet.curate.surveys import Surveys
    from discreet.price.watch import WatchSettings
    from discreet.publication.agenda import Division
    from discreet.publication.agenda import Given as Plan
    from discreet.publication.synopsis import Synopsis


_OPENING = Lock()
"""Held while releases are opened."""


class Procedures:
    """A curator's procedures that are no question in SQL; each is charged like one."""

    _releases_folder: Path | None = None
    _releases: Releases | None = None
    _surveys: Surveys | None = None

    @property
    def _curator(self) -> Curator:
        return cast("Curator", self)  # nobody else has procedures

    # --- runs ----------------------------------------------------------------------------------

    def watch(
        self,
        *,
        name: str = "",
        analyst: str = CURATOR,
        once: bool = False,
        **settings: Unpack[WatchSettings],
    ) -> Run:
        """Open a run that tells which numbers are above a threshold, and is paid for once.

        ``settings``: ``epsilon`` (and ``delta``) for the whole run, ``threshold`` unless each
        question has its own, ``at_most`` how many may be told to be above, ``numbers`` whether
        they are told with their number, ``monotonic`` if only counts will be asked.  The same
        words of the same ``analyst``, with the same ``name``, go on with a run that is open; with
        ``once`` also with one that has told all it was paid for, which is then not bought anew.
        """
        from discreet.curate.runs import open_watch
        from discreet.price.watch import Watch

        watch = Watch.of(**settings)
        return open_watch(self._curator, watch, name=name, analyst=analyst, once=once)

    def interview(
        self,
        *,
        sensitivity: Exact,
        epsilon: Exact,
        name: str = "",
        analyst: str = CURATOR,
    ) -> InterviewRun:
        """Open a run that answers while one unit moves all its numbers by at most ``sensitivity``.

        Every number gets noise of scale ``sensitivity`` / ``epsilon``; ``epsilon`` is charged now,
        for the whole run.  How far one unit moves the questions together follows from them.
        The same words of the same ``analyst``, with the same ``name``, go on with an open one.
        """
        from discreet.curate.interviews import open_interview
        from discreet.price.interview import Interview

        settings = Interview.of(sensitivity=sensitivity, epsilon=epsilon)
        return open_interview(self._curator, settings, name=name, analyst=analyst)

    def explain_interview(
        self, *questions: Asking, sensitivity: Exact, epsilon: Exact
    ) -> InterviewExplanation:
        """What an interview would cost, and whether it would answer ``questions``; free.

        ``sensitivity`` and ``epsilon`` are those of :meth:`interview`.
        """
        from discreet.curate.interviews import explain_interview
        from discreet.price.interview import Interview

        settings = Interview.of(sensitivity=sensitivity, epsilon=epsilon)
        return explain_interview(self._curator, questions, settings)

    def learn(self, *, analyst: str = CURATOR, **settings: Any) -> LearningRun:
        """Open a run of private multiplicative weights: many counts, for one price.

        ``settings``: ``of`` the table, ``columns`` of the histogram, ``rows`` about how many there
        are (public), ``questions`` how many will be asked, ``epsilon`` for the whole run, ``beta``
        how seldom its margin may fail.  The same words of the same ``analyst`` go on with a run
        that is open.
        """
        from discreet.curate.learning import open_learning, plan_learning

        return open_learning(
            self._curator, plan_learning(self._curator, **settings), analyst=analyst
        )

    def explain_learn(self, *questions: str, **settings: Any) -> Learning:
        """What such a run would cost, and within what its answers would be; free.

        ``settings`` are those of :meth:`learn`; what it could not be asked of ``questions`` is
        refused.
        """
        from discreet.curate.learning import check_question, plan_learning

        learning = plan_learning(self._curator, **settings)
        for question in questions:
            check_question(self._curator, learning, question)
        return learning

    def run(self, id: int, *, analyst: str = CURATOR) -> Run | InterviewRun:  # noqa: A002
        """The run numbered ``id``, as far as it has come; of ``analyst``, unless the curator."""
        from discreet.curate.interviews import KIND, InterviewRun
        from discreet.curate.runs import Run
        from discreet.ledger.refusals import missing

        state = self._curator.account.runs.state(id)
        if analyst not in (CURATOR, state.analyst):
            raise missing(f"dataset {self._curator.account.dataset!r} has no run numbered {id}.")
        return (InterviewRun if state.spend["run"] == KIND else Run)(self._curator, id)

    def explain_watch(
        self, question: Asking | None = None, **settings: Unpack[WatchSettings]
    ) -> WatchExplanation:
        """What such a run would cost, and how wrong its verdicts on ``question`` could be; free.

        ``settings`` are those of :meth:`watch`.
        """
        from discreet.curate.runs import WatchExplanation, prepare
        from discreet.price.watch import Watch

        watch = Watch.of(**settings)
        return WatchExplanation(
            watch, None if question is None else prepare(self._curator, question, watch)
        )

    def choose(
        self,
        candidates: Asking | Mapping[str, Asking],
        *,
        k: int = 1,
        counts: bool = False,
        analyst: str = CURATOR,
        **offer: Unpack[Amounts],
    ) -> Chosen:
        """Which of some numbers is largest, or the ``k`` largest; with ``counts``, how large.

        ``candidates`` are questions of one number each, by name, or one question with public
        groups.  Each may be about everybody: a choice costs by how far one unit moves *one* of
        the numbers.  ``offer`` is ``epsilon``, or ``rho``; ``analyst`` pays.
        """
        from discreet.curate.choosing import choose

        spend = Offer.of(**offer)
        return choose(self._curator, candidates, spend, k=k, counts=counts, analyst=analyst)

    def explain_choose(
        self,
        candidates: Asking | Mapping[str, Asking],
        *,
        k: int = 1,
        counts: bool = False,
        **offer: Unpack[Amounts],
    ) -> ChoiceExplanation:
        """What :meth:`choose` would cost, and how good it would be; free.

        ``candidates``, ``k``, ``counts`` and the ``offer`` are those of :meth:`choose`.
        """
        from discreet.curate.choosing import ChoiceExplanation, make_contest

        found = make_contest(self._curator, candidates, Offer.of(**offer), k=k, counts=counts)
        return ChoiceExplanation(found)

    def aggregate(
        self,
        function: Callable[[Any], Any],
        table: str,
        *,
        epsilon: Exact,
        output_bounds: Sequence[Any],
        blocks: int = 64,
        seconds: int = 20,
        memory_bytes: int = 2 * 1024**3,
        together: int = 2,
    ) -> Aggregated:
        """Average the curator's own ``function`` of ``table``'s rows over blocks of units.

        The ``function`` gets a data frame, and gives a number, or as many as ``output_bounds``
        has pairs (low, high).  Each of ``blocks`` blocks is computed in a fresh process, so many
        ``together``, with ``seconds`` and ``memory_bytes`` for each; all of them take a fixed
        time.  Charged is ``epsilon``, whatever the function does.  Never pass it code that an
        analyst wrote: what a function does besides is not bounded.
        """
        from discreet.curate.aggregating import aggregate, make_limits

        limits = make_limits(seconds, memory_bytes, together)
        said = self.explain_aggregate(
            table, epsilon=epsilon, output_bounds=output_bounds, blocks=blocks
        )
        return aggregate(self._curator, function, table, said.aggregation, limits)

    def explain_aggregate(
        self,
        table: str,
        *,
        epsilon: Exact,
        output_bounds: Sequence[Any],
        blocks: int = 64,
        seconds: int = 20,
        together: int = 2,
    ) -> AggregateExplanation:
        """What :meth:`aggregate` would cost, how far noise moves its averages, how long it takes.

        Of any function of ``table``, with these ``epsilon``, ``output_bounds`` and ``blocks``, and
        ``seconds`` for each of so many ``together``; free.
        """
        from discreet.curate.aggregating import AggregateExplanation, make_limits
        from discreet.price.aggregation import Aggregation

        priced = Aggregation.of(
            output_bounds,
            epsilon=epsilon,
            blocks=blocks,
            neighbours=self._curator.schema.neighbours,
        )
        limits = make_limits(seconds, 2**26, together)
        return AggregateExplanation.of(self._curator, table, priced, limits)

    def quality(
        self,
        checks: Checks,
        *,
        epsilon: Exact,
        analyst: str = CURATOR,
    ) -> QualityReport:
        """How many units must be left out until each property holds: one charge for all.

        ``checks`` says by name what should hold: ``{"table": ..., "property": ..., ...}``, where
        the property is ``maximum`` (of ``column``, at most ``bound``), ``sorted`` (``column``,
        ``by``), ``clusters`` (of ``column``: so many ``clusters``, of ``width``), ``dependency``
        (of ``column``, ``on`` others) or ``reference`` (of ``column``, ``to`` a table, by ``key``).
        Or in SQL: ``"SELECT DISTANCE_TO_SORTED(number, day) AS late FROM people"``.
        ``epsilon`` is for all of them; ``analyst`` pays.
        """
        from discreet.curate.reports import report_quality

        return report_quality(self._curator, checks, epsilon, analyst=analyst)

    def explain_quality(self, checks: Checks, *, epsilon: Exact) -> QualityExplanation:
        """What a report about ``checks`` would cost at ``epsilon``, and how far it is off; free."""
        from discreet.curate.reports import QualityExplanation, make_quality

        return QualityExplanation(make_quality(self._curator, checks, epsilon))

    def robust_median(
        self,
        question: Asking,
        *,
        epsilon: Exact,
        delta: Exact,
        bound: Exact | None = None,
        analyst: str = CURATOR,
    ) -> RobustMedian:
        """A median with noise to fit the data, at a price (``epsilon``, ``delta``) that does not.

        ``question`` asks for one MEDIAN of one value a unit.  Without a ``bound`` by smooth
        sensitivity; with one it is proposed that the median moves by no more, which is tested
        privately, and answered None if it may not hold.  ``analyst`` pays either way.
        """
        from discreet.curate.reports import make_middle, release_middle

        middle, text = make_middle(
            self._curator, question, epsilon=epsilon, delta=delta, bound=bound
        )
        return release_middle(self._curator, middle, text, analyst=analyst)

    def explain_robust_median(
        self, question: Asking, *, epsilon: Exact, delta: Exact, bound: Exact | None = None
    ) -> MedianExplanation:
        """What :meth:`robust_median` would cost; free.

        ``question``, ``epsilon``, ``delta`` and ``bound`` are those of :meth:`robust_median`.
        """
        from discreet.curate.reports import MedianExplanation, make_middle

        found, _ = make_middle(self._curator, question, epsilon=epsilon, delta=delta, bound=bound)
        return MedianExplanation(found)

    # --- surveys -----------------------------------------------------------------------------

    def keep_surveys(self, folders: Mapping[str, Path]) -> None:
        """Answer questions about the surveys in these ``folders``, each under a table's name."""
        if not folders:
            self._surveys = None
            return
        from discreet.curate.surveys import Surveys

        self._surveys = Surveys(self._curator, folders)

    @property
    def surveys(self) -> Surveys | None:
        """The surveys that can be asked: public tables of randomised reports, free; or None."""
        return self._surveys

    # --- releases ----------------------------------------------------------------------------

    def keep_releases(self, folder: Path) -> None:
        """Write releases to ``folder``, and ask those that are there."""
        self._releases_folder, self._releases = folder, None

    @property
    def releases(self) -> Releases:
        """The releases that were made: each is a public table, and questions about it are free."""
        if self._releases is None:
            from discreet.curate.releases import Releases

            with _OPENING:  # two who open them at once would not wait for each other
                if self._releases is None:
                    self._releases = Releases(self._curator, self._releases_folder)
        return self._releases

    def make_release(
        self,
        name: str,
        *,
        kind: str = "synthetic",
        of: str,
        analyst: str = CURATOR,
        **declared: Any,
    ) -> Synopsis:
        """Publish once and for all: a table under ``name`` that answers many questions for free.

        ``kind`` is "synthetic", "marginals", "ranges", "prefixes", "hierarchy", "questions" or
        "counter"; ``of`` a table, or a SELECT that says what is published of whom.  ``declared``
        holds the price (``epsilon``, perhaps with ``delta``, or ``rho``) and the settings of
        docs/publication.md.  It is charged to ``analyst`` before data is read; made again after a
        crash, it costs nothing more.
        """
        from discreet.publication.declared import Declared

        return self.releases.make(Declared.of(name, kind=kind, of=of, **declared), analyst=analyst)

    def plan_release(
        self, name: str, *, kind: str = "synthetic", of: str, **declared: Any
    ) -> PlannedRelease:
        """What the release ``name`` would count and cost, stage by stage; free, and reads nothing.

        ``kind``, ``of`` and ``declared`` are those of :meth:`make_release`.
        """
        from discreet.publication.declared import Declared

        return self.releases.plan(Declared.of(name, kind=kind, of=of, **declared))

    def plan_releases(self, plan: Plan) -> Division:
        """Divide the price of a release ``plan`` best, or find the least for its targets; free.

        The plan is the path of a TOML file, its text, or a dict like it: [plan] with a price, and
        one [[release]] for each, with a weight or a target (docs/publication.md).
        """
        from discreet.publication.agenda import read_agenda

        return self.releases.divide(read_agenda(plan))

    def make_releases(
        self,
        plan: Plan,
        *,
        folder: str | os.PathLike[str] | None = None,
        analyst: str = CURATOR,
    ) -> list[Synopsis]:
        """Publish all that a release ``plan`` names: one charge to ``analyst``, all or none.

        The plan is that of :meth:`plan_releases`, which says the prices for free.  After a crash
        the same plan goes on, and costs nothing more.  With a ``folder``, all of it is there
        afterwards, to be handed over, with an index and checksums.
        """
        from discreet.publication.agenda import read_agenda

        place = None if folder is None else Path(folder)
        return self.releases.make_plan(read_agenda(plan), analyst=analyst, folder=place)

    def plan(
        self, questions: Sequence[str], *, name: str, of: str, analyst: str = CURATOR, **price: Any
    ) -> Synopsis:
        """Charge for many linear ``questions``, and answer them together, as one release.

        They are answered by whichever way errs least.  Each is a COUNT(*) of the table ``of`` under
        conditions on single columns; the release is called ``name``, ``price`` is ``epsilon``,
        perhaps with ``delta``, or ``rho``, paid by ``analyst``.  What it would cost and how near it
        would be says ``plan_release(name, kind="questions", questions=[...], ...)``, for free.
        """
        return self.make_release(
            name, kind="questions", of=of, analyst=analyst, questions=list(questions), **price
        )

    def step_release(
        self, name: str, *, number: int | None = None, analyst: str = CURATOR
    ) -> Synopsis:
        """Publish the next step of the counter ``name``, on the data as they are now.

        It is paid for by ``analyst``.  With ``number``, which step it is, a second try publishes
        no other one.
        """
        return self.releases.step(name, number=number, analyst=analyst)

    def show_card(self, name: str) -> str:
        """What the release ``name`` is and promises, in words; free."""
        return self.releases.card(name)

    def show_certificate(self, name: str) -> dict[str, Any]:
        """What the release ``name`` was declared to be, promises and was charged; free."""
        return self.releases.certificate(name)

    def hand_over_release(self, name: str, folder: str | os.PathLike[str]) -> Path:
        """Write the release ``name`` to ``folder``, to be handed over; all of it or nothing.

        In it are data, measurements, certificate, card, report and checksums.
        """
        return self.releases.hand_over(name, Path(folder))

    def hand_over_releases(self, names: Sequence[str], folder: str | os.PathLike[str]) -> Path:
        """Write the releases ``names`` to one ``folder``, with an index and checksums."""
        return self.releases.hand_over_all(names, Path(folder))
