"""The curator: answers questions about private tables, and keeps the account.

The order of events is the whole of it: price from public knowledge, charge
durably, read the data, add noise, store, show.
"""

from __future__ import annotations

import warnings
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, cast

from discreet.accounting.budget import Budget
from discreet.accounting.loss import Loss
from discreet.accounting.neighbours import Neighbours
from discreet.curate.bounding import Bounding
from discreet.curate.crowding import Crowding
from discreet.curate.eras import COMPARED, TOO_CHEAP, Era, list_eras
from discreet.curate.opening import (
    Declared,
    check_tables,
    read_budget,
    read_schema,
    warn_of_doubts,
)
from discreet.curate.procedures import Procedures
from discreet.curate.steps import (
    ANY_DELTA,
    CURATOR,
    REMEMBERED,
    Improving,
    Paid,
    PaidStatement,
    Planned,
    make_fresh_key,
)
from discreet.engine.opening import open_engine
from discreet.engine.protocol import C, Engine, describe_failure
from discreet.errors import (
    BudgetRefusal,
    DataRefusal,
    QuestionRefusal,
    Refusal,
)
from discreet.exact.numbers import Exact
from discreet.ledger import About, Account, Balance, Entry, Ledger, Policy, Receipt, Request, Stored
from discreet.price import Compare, Priced, approximate_loss, is_as_before, price
from discreet.price.calibration import find_lumpings
from discreet.price.plan import BaseRows, Plan, is_plain, list_values, rename
from discreet.question.blocks import Area, Space
from discreet.question.functions import references
from discreet.question.offer import Amounts, Offer, unpaid_refusal
from discreet.question.ownership import list_tables, name_units, unit
from discreet.question.question import Question
from discreet.question.relation import Relation
from discreet.question.schema.tables import entity_of
from discreet.question.sql import depth_refusal, parse_statement, write_question_text
from discreet.question.sql.dialect import may_read_clock
from discreet.question.statement import Column, Statement, list_columns
from discreet.release.answer import Answer, Released
from discreet.release.record import digest, read_released, replay_key, write_released
from discreet.release.release import refine, release

if TYPE_CHECKING:
    # What only some questions need is imported by those: who asks one does not wait for the rest.
    from discreet.curate.knowing import Knowing
    from discreet.curate.quote import Quote
    from discreet.curate.quoting import Quotes
    from discreet.curate.sealed import Sealed
    from discreet.curate.statements import Statements
    from discreet.publication.told import Told
    from discreet.question.builder import Query, Rows
    from discreet.release.combined import Combined
    from discreet.release.derived import Derived
    from discreet.release.explanation import Explanation

    Asking = str | Question | Query
    """A question in SQL, built in Python, or already parsed."""

_LOOKS = ("kind", "memory_limit", "threads", "timeout_s")
"""Settings of the engine that also hold where bounding is looked at."""


class NoGroupPasses(UserWarning):
    """A question whose answer will most likely show no group, at any number of units declared."""


class Curator(Procedures):
    """Stands between the analysts and the tables.

    ``tables`` gives the source of each: a path, or an Arrow, pandas or Polars table.  ``schema`` is
    a :class:`Schema`, or the text or path of a TOML file, or a dict of its shape; ``budget`` a
    :class:`Budget`, or a number: the epsilon of one.  The account is kept in ``ledger`` under the
    name ``dataset``, under the rules of ``policy``; a ledger that ``owns_ledger`` names as this
    curator's is closed with it.  Without a ledger the account lives as long as the object.
    ``secrets`` is the folder for the secrets of runs, if it is not the one beside the ledger.
    ``engine`` are settings of the engine: its ``kind`` (``duckdb``, or ``postgres`` to compute
    where the rows are, or ``spark``), ``memory_limit``, ``threads``, ``store`` (a folder for
    prepared tables), ``spark`` (an address or a session),
    ``timeout_s`` (of a statement in PostgreSQL) and ``progress``, called with a name and the part
    of a question that is done.
    """

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        schema: Declared,
        budget: Budget | Exact,
        ledger: Ledger | None = None,
        dataset: str = "data",
        policy: Policy | None = None,
        owns_ledger: bool = False,
        secrets: Path | None = None,
        **engine: Any,
    ) -> None:
        check_tables(tables)
        promised = read_budget(budget)
        self.engine: Engine[Any] = open_engine(tables, read_schema(schema), **engine)
        self.schema = self.engine.schema
        warn_of_doubts(self.schema)
        self.space = Space.of(self.schema)
        self.everyone = Area.everything(self.space)
        self._unit = name_units(self.schema)
        self._secrets = secrets
        self._owns_ledger = owns_ledger or ledger is None
        self.ledger = Ledger.open("sqlite://") if ledger is None else ledger
        try:
            self.account: Account = self.ledger.account(
                dataset, schema=self.schema, budget=promised, policy=policy or Policy()
            )
        except BaseException:
            self.close()  # whoever is refused an account holds no source either
            raise
        # Both are functions of public knowledge: the version of the public tables is part of it.
        self._questions = lru_cache(REMEMBERED)(self._parse_text)
        self._plans = lru_cache(REMEMBERED)(self._make_plan)
        self._replays: dict[int, tuple[Priced, bytes, Answer]] = {}
        self._known: Knowing | None = None
        self.withheld: Callable[[int], bool] = lambda _number: False
        """Answers that are stored and not shown yet: nothing is told from them."""
        limits = {name: engine[name] for name in _LOOKS if name in engine}
        self._bounding = Bounding(self, tables, **limits)
        self.crowding = Crowding(self)

    def __repr__(self) -> str:
        return f"<Curator of {', '.join(self.schema.tables)}: {self.budget}>"

    # --- asking ------------------------------------------------------------------------------

    def ask(
        self,
        question: Asking,
        *,
        analyst: str = CURATOR,
        **offer: Unpack[Amounts],
    ) -> Answer:
        """Answer the ``question``, or refuse before touching the data.

        It is charged to the allocation of ``analyst``.
        ``offer`` is one of ``epsilon``, ``rho`` (what to pay) and ``within`` (how far off the
        answer may be, at ``confidence``); and ``delta``, a failure mass that may be paid, too.
        A statement of several questions is offered it for all of them together.
        A question about a release or a survey is free, and needs none: see :meth:`tell`.
        """
        told = self.tell(question)
        if told is not None:
            return cast("Answer", told)  # a table of values, which is read as an answer is
        paid = self.pay(question, analyst=analyst, **offer)
        if isinstance(paid, PaidStatement) and paid.later:  # then it is a constant of the rest
            first = {self._answer(part).id for part in paid.open}
            answer = self.ask(question, analyst=analyst, **offer)
            return cast("Combined", answer).pay_also({n for n in first if n is not None})
        if isinstance(paid, Answer):
            return paid
        if isinstance(paid, Paid):
            return self._answer(paid)
        return self.finish(paid, [self._answer(part) for part in paid.open])

    @cached_property
    def sealed(self) -> Sealed:
        """Where the secrets of open runs are kept: beside the ledger, and never in it."""
        from discreet.curate.sealed import Sealed

        return Sealed(self._secrets or self.ledger.secrets, self.ledger.identity)

    # --- parts of an ask -----------------------------------------------------------------------

    def ask_all(
        self,
        questions: Sequence[Asking],
        *,
        analyst: str = CURATOR,
        **offer: Any,
    ) -> list[Answer]:
        """Answer several ``questions`` as one release: one price, one charge, an answer for each.

        ``analyst`` and ``offer`` are those of :meth:`ask`, for all of them together; ``within``
        may be a list, a margin for each.  What is charged is the most that one unit can lose to
        all of them: questions about different rows cost what the dearest costs.
        """
        from discreet.curate.together import ask_batch  # when several questions are asked at once

        return ask_batch(self, questions, analyst, dict(offer))

    def _answer(self, paid: Paid) -> Answer:
        drawn = None
        with suppress(DataRefusal):  # left behind here: what is raised has no history
            drawn = draw(
                self.engine,
                paid.compiled,
                paid.priced,
                paid.data_version,
                earlier=None if paid.improving is None else paid.improving.earlier,
                basis=paid.basis,
            )
        return self.burn(paid) if drawn is None else self.publish(paid, *drawn)

    def pay(
        self,
        question: Asking,
        *,
        analyst: str = CURATOR,
        **offer: Unpack[Amounts],
    ) -> Paid | PaidStatement | Answer:
        """The first half of :meth:`ask`: charge, or refuse; a stored answer is free.

        ``question``, ``analyst`` and ``offer`` are those of :meth:`ask`.
        What was paid for is computed by :func:`compute`, perhaps in another
        process, and shown by :meth:`publish`; a statement then by :meth:`finish`.
        """
        asked, explain = self._parse_question(question, analyst)
        if explain:
            raise unpaid_refusal()
        return self._pay(asked, Offer.of(**offer), analyst)

    def publish(self, paid: Paid, answer: bytes, drawn: Released | None = None) -> Answer:
        """Store the ``answer`` to what was ``paid``, then show what is stored.

        The first one stored is the only one shown; what was ``drawn`` for it, if it is at hand,
        need not be read off the very bytes that it was written into.
        """
        stored = self.account.publish(paid.receipt, answer, paid.basis)
        silent = self._bounding.nothing_for == paid.data_version
        said = () if silent else self._bounding.notes(paid.priced)
        number = paid.receipt.id
        behind: tuple[Loss, ...] = ()
        if paid.improving is not None:
            if paid.improving.is_told:
                return self.knowing.improve(paid, paid.improving)
            behind = self.list_behind(number)
        if drawn is None or stored is not answer:
            drawn = read_released(stored)
        return Answer(paid.priced, *drawn, id=number, said=said, behind=behind)

    def list_behind(self, number: int) -> tuple[Loss, ...]:
        """All charges that led to the answer ``number``, if it refines another."""
        links = self.account.find_chain(number)
        return tuple(loss for _, loss in links) if len(links) > 1 else ()

    def burn(self, paid: Paid) -> Answer:
        """Close the charge ``paid`` whose question could not be computed: it stays spent.

        Another process may have finished the same question meanwhile; then its
        answer is the answer.
        """
        self.account.burn(paid.receipt)
        with suppress(LookupError):
            stored = self.account.answer(paid.receipt.id)
            return self.replay(paid.priced, stored)
        raise describe_failure()

    def finish(self, paid: PaidStatement, answers: Iterable[Answer]) -> Answer:
        """What a statement that was ``paid`` computes from its questions' ``answers``.

        Those of ``paid.open`` are given; the others were stored before.
        """
        return self.statements.finish(paid, answers)

    @cached_property
    def _quotes(self) -> Quotes:
        from discreet.curate.quoting import Quotes  # when a price is asked for

        return Quotes(self)

    @cached_property
    def statements(self) -> Statements:
        """Questions of several questions."""
        from discreet.curate.statements import Statements  # when several questions are asked

        return Statements(self, self._bounding.notes)

    def _pay(
        self, asked: Question | Statement, offer: Offer, analyst: str
    ) -> Paid | PaidStatement | Answer:
        if isinstance(asked, Statement):
            return self.statements.pay(asked, offer, analyst)
        return self._pay_question(asked, offer.beside(asked.spend), analyst)

    def _pay_question(self, question: Question, spend: Offer, analyst: str) -> Paid | Answer:
        try:
            if question.is_listed:
                self.account.check_access(analyst)
                return self.list_groups(question)
            size = self.find_size(question, spend)
            if size is None and spend.empty:
                return self._quotes.recall(question, spend, analyst)[1]
            planned = size or self.find_payable(question, spend, analyst)
            known = None
            if spend.fresh:
                planned = self.make_fresh(planned, spend, analyst)
            elif size is None:
                known = self.look_up(planned, spend, analyst)
                if isinstance(known, Answer):
                    return known
                if isinstance(known, tuple):
                    paid = self.knowing.top_up(planned, spend, analyst, known)
                    if paid is not None:
                        return paid
            self._warn_of_hidden_groups(planned.priced)
            receipt: Receipt | Stored
            if isinstance(known, Stored):
                receipt = known
            else:  # durable from here on
                receipt = self.account.charge(self.make_request(planned, spend, analyst))
        except Refusal as refusal:
            told = refusal
            if isinstance(refusal, BudgetRefusal) and spend.within:
                told = self._quotes.explain_refusal(refusal, question, spend, analyst)
            self.account.record_refusal(analyst, write_text(question), told)
            raise told from None
        if isinstance(receipt, Stored):
            return self.replay(planned.priced, receipt)
        return self.make_paid(planned, receipt, receipt.data_version)

    def list_groups(self, question: Question) -> Answer:
        """What is declared of the keys of ``question``: nothing is measured, charged or stored."""
        from discreet.price.listed import list_groups

        planned = self.find_any_plan(question, Offer())
        return Answer(planned.priced, list_groups(question), ())

    def make_paid(
        self, planned: Planned, receipt: Receipt, version: str, improving: Improving | None = None
    ) -> Paid:
        """What is paid for by the ``receipt`` for what was ``planned``, on one ``version`` of data.

        What paid for a refinement gets that and nothing else, whatever is ``improving`` now.
        An open charge of the same question may have been made the other way.
        """
        basis = self.engine.find_basis(planned.compiled)
        if receipt.parent is not None:
            basis = self.account.find_basis(receipt.parent)  # the same truth, or none
            if improving is None or improving.parent != receipt.parent:
                parent = self.knowing.shelf.load(receipt.parent)
                improving = self.knowing.refine(planned, parent).improving
        elif improving is not None and improving.parent is not None:
            told = replace(improving, parent=None, earlier=None)
            improving = told if improving.rolled_up else None
        return Paid(planned.priced, planned.compiled, receipt, version, improving, basis)

    # --- what is known already -----------------------------------------------------------------

    def find_sources(self, planned: Planned, analyst: str) -> tuple[int, ...]:
        """Released answers that may tell what is ``planned``, and ``analyst`` be shown."""
        version = self.engine.data_version()
        for number in self.account.list_unread(version):  # charged before it was recorded
            abouts: list[About] = []
            with suppress(Refusal, LookupError):  # a charge that is no question's
                released = self.knowing.shelf.load_all(number)
                abouts = [place for one in released for place in list_places(one.priced.plan)]
            self.account.note_abouts(number, abouts, version)
        every = (self.account.find_sources(one, version, analyst) for one in planned.sought)
        found = dict.fromkeys(chain.from_iterable(every))
        return tuple(number for number in found if not self.withheld(number))

    @property
    def knowing(self) -> Knowing:
        """What is known already, by the account at hand."""
        if self._known is None or self._known.shelf.account is not self.account:
            from discreet.curate.knowing import Knowing  # when something was released

            self._known = Knowing(self, self._bounding.notes)
        return self._known

    def find_good(
        self, planned: Planned, spend: Offer, analyst: str
    ) -> Derived | tuple[Derived | None, tuple[int, ...]] | None:
        """What is known of what is ``planned``, if it is as good as ``spend`` buys ``analyst``.

        Then it is free.  Else what is known and the answers that it may be from, to be improved;
        None if there are none.  What was paid for in these very words is found by the account,
        and shown as it was.
        """
        found = self.look_up(planned, spend, analyst)
        return None if isinstance(found, Stored) else found

    def look_up(
        self, planned: Planned, spend: Offer, analyst: str
    ) -> Derived | Stored | tuple[Derived | None, tuple[int, ...]] | None:
        """The same of ``planned``, ``spend``, ``analyst``; and a stored answer in these words."""
        sources = self.find_sources(planned, analyst)
        if not sources and not spend.within:
            return None
        earlier = self.account.recall(self.make_request(planned, spend, analyst))
        if earlier is None:
            return self.knowing.judge(planned, spend, sources) if sources else (None, ())
        return earlier if isinstance(earlier, Stored) else None

    def make_fresh(
        self, planned: Planned, spend: Offer, analyst: str, *, first: str | None = None
    ) -> Planned:
        """What is ``planned``, under a key that no answer has: measured again, and charged again.

        ``spend`` and ``analyst`` are those of the charge; the key is ``first``, if it is free.
        """
        for number in count(0 if first else 1):
            key = first if first and not number else make_fresh_key(planned.key, number)
            found = replace(planned, key=key)
            if self.account.find(self.make_request(found, spend, analyst)) != "stored":
                return found
        raise LookupError(planned.key)  # there is always another number

    def find_any_plan(self, question: Question, spend: Offer) -> Planned:
        """The plan of a ``question`` at ``spend`` but for its epsilon: any measures the same."""
        offer = replace(spend, epsilon=Fraction(1))
        try:
            return self.find_plan(question, offer)
        except QuestionRefusal:  # of private groups, which need a delta
            return self.find_plan(question, replace(offer, delta=spend.delta or ANY_DELTA))

    def replay(self, priced: Priced, stored: Stored) -> Answer:
        """A ``stored`` answer, read through the outputs of what was ``priced``, which is free."""
        known = self._replays.get(stored.id)
        if known is not None and known[0] is priced and known[1] == stored.answer:
            return known[2]
        released = read_released(stored.answer)
        said = self._bounding.notes(priced)
        behind = self.list_behind(stored.id)
        answer = Answer(priced, *released, id=stored.id, replayed=True, said=said, behind=behind)
        if len(self._replays) >= REMEMBERED:
            self._replays.clear()
        self._replays[stored.id] = priced, stored.answer, answer
        return answer

    def retell(self, answer: Answer, question: Asking, **offer: Unpack[Amounts]) -> Answer | None:
        """A stored ``answer`` through the outputs of a ``question``, if that measures the same.

        ``offer`` is that of :meth:`ask`.
        Its names, order and arithmetic are the asker's own, whoever paid with which words.
        """
        with suppress(Refusal):
            asked, _ = self._parse_question(question)
            if isinstance(asked, Statement):
                return None
            spend = Offer.of(**offer).beside(asked.spend)
            for era in Era:
                planned = self.find_plan(asked, spend, era)
                if planned.key == replay_key(answer.priced):
                    return answer.read_as(planned.priced)
        return None

    def make_request(self, planned: Planned, spend: Offer, analyst: str) -> Request:
        """What the account is asked for: that ``analyst`` pays ``spend`` for what is ``planned``.

        On the data as they are now.
        """
        version = self.engine.data_version()
        if self.crowding.tables:  # few schemas have one
            self.crowding.check([planned.priced.plan.source], version)
        return Request(
            analyst=analyst,
            question=write_text(planned.priced.question),
            spend=spend.to_json(),
            key=planned.key,
            data_version=version,
            formerly=self.engine.former_version(),
            loss=planned.priced.loss,
            area=planned.area,
            about=planned.places[0],
            abouts=planned.places if len(planned.places) > 1 else (),
            entities=self.list_entities([planned.priced.plan.source]),
            former=planned.former,
        )

    def list_entities(
        self, sources: Iterable[Relation] = (), tables: Iterable[str] = ()
    ) -> frozenset[str] | None:
        """Whose rows ``sources`` and ``tables`` are made of; None where no entity has a budget.

        Nobody else's change an answer (docs/proofs/known.md, Lemma 13).  If nothing is named,
        anybody's may.
        """
        if not self.account.standing().lost:
            return None
        named = frozenset(self.schema.tables[name] for name in tables)
        read = named.union(*map(list_tables, sources))
        return frozenset(entity_of(table) for table in read if not table.public) or None

    def area(self, question: Question) -> Area:
        """The blocks whose people a ``question`` can touch; all, if it seems to touch none.

        A question about nobody is worth nothing: that it would be free is worth even less.
        """
        if not self.space.parts:
            return self.everyone
        from discreet.question.blocks import reach

        touched = reach(question, self.schema, self.space)
        return touched if touched.count else self.everyone

    # --- without asking ----------------------------------------------------------------------

    def explain(
        self,
        question: Asking,
        **offer: Unpack[Amounts],
    ) -> Explanation:
        """What the ``question`` would cost and how good its answer would be; free.

        ``offer`` is that of :meth:`ask`.
        """
        return self._quotes.explain_now(self._quotes.parse(question), Offer.of(**offer), CURATOR)

    def price(
        self,
        question: Asking,
        *,
        analyst: str = CURATOR,
        **offer: Unpack[Amounts],
    ) -> Quote:
        """What the ``question`` would cost this ``analyst`` now, and whether the account would pay.

        ``offer`` is that of :meth:`ask`.
        """
        return self._quotes.price(self._quotes.parse(question), Offer.of(**offer), analyst)

    def table(self, name: str, *, alias: str | None = None) -> Rows:
        """The rows of the table ``name``, to build a question in Python; nothing is read.

        ``alias`` is what the question calls it.
        """
        from discreet.question.builder import table

        return table(name, self.engine.catalogue, alias=alias)

    def list_free(self) -> list[str]:
        """The names of all releases and surveys: public tables, which are asked for free."""
        folder = self._releases_folder
        released = self._releases is not None or (folder is not None and folder.is_dir())
        found = [] if self._surveys is None else self._surveys.names()
        return [*found, *self.releases.names()] if released else found

    def tell(self, question: Asking, *, confidence: Exact = "0.95") -> Told | None:
        """What a release or a survey says to a ``question``, free; None if it is about people.

        Its margins hold at the ``confidence``.
        """
        free = self.list_free() if isinstance(question, str) else []
        if not isinstance(question, str) or not any(name in question for name in free):
            return None
        from discreet.publication.reading import list_tables

        named = list_tables(question) & set(free)
        if len(named) != 1:
            return None
        name = named.pop()
        if self._surveys is not None and name in self._surveys.names():
            return self._surveys.tell(name, question, confidence=confidence)
        return self.releases.find(name).ask(question, confidence=confidence)

    # --- the account -------------------------------------------------------------------------

    @property
    def budget(self) -> Budget:
        """What may be lost in all, by anyone in any one block."""
        return self.account.budget

    @property
    def spent(self) -> Loss:
        """What has been charged so far, in the block that was asked about most."""
        return self.balance().spent

    def balance(self, analyst: str | None = None) -> Balance:
        """What is left of the dataset or an ``analyst``'s allocation; ``str`` says it in words."""
        return self.account.balance(analyst)

    def transcript(self, analyst: str | None = None) -> tuple[Entry, ...]:
        """Every charge, release and refusal, in order; of one ``analyst``, if named."""
        return self.account.transcript(analyst)

    def prepare(self, **options: Any) -> None:
        """Bound and index the private tables once, so that later questions run faster.

        ``options``: ``tables``, those to prepare, and ``progress``, called with a table's name and
        the part of it that is done.  A table whose rows have two owners is tested, for a charge of
        its own, once for each version of the data: without it no question about it is answered.
        """
        self.engine.prepare(**options)
        self.crowding.test(options.get("tables"))

    def measure_bounding(self, epsilon: Exact, *, tables: Sequence[str] = ()) -> tuple[str, ...]:
        """Buy what bounding removes: units with too many rows, rows cut, values clipped.

        A charge of its own, of ``epsilon`` for each of the ``tables`` (all private ones, if none
        is named), once for a version of the data.  Its words, which are returned, are then among
        the notes of every answer about those data.
        """
        named = tuple(tables) or tuple(n for n, t in self.schema.tables.items() if not t.public)
        said = self._bounding.buy(named, epsilon)
        self._replays.clear()  # answers that were told without it
        return said

    def close(self) -> None:
        """Let go of the sources, and of a ledger that was made for this curator alone."""
        self.engine.close()
        if self._owns_ledger:
            self.ledger.close()

    def __enter__(self) -> Curator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # --- parts -------------------------------------------------------------------------------

    def parse(self, question: Asking) -> Question | Statement:
        """The ``question`` as it is understood, or a refusal; reads nothing."""
        return self._parse_question(question)[0]

    def columns(self, question: Asking) -> tuple[Column, ...]:
        """The columns of the answer to ``question``, and their kinds; or a refusal.

        Free, and reads nothing.
        """
        from discreet.release.combining import describe_bound

        asked = self.parse(question)
        if isinstance(asked, Statement):
            return describe_bound(self.statements.bind(asked))
        return list_columns(asked, self.engine.catalogue)

    def naming(self, refusal: Refusal) -> Refusal:
        """A ``refusal`` in which a person is called what the schema calls one."""
        return refusal.naming(self._unit)

    def _parse_question(
        self, question: Asking, analyst: str | None = None
    ) -> tuple[Question | Statement, bool]:
        if isinstance(question, Question):
            return question, False
        if not isinstance(question, str):
            from discreet.question.builder.rows import read_built

            return read_built(question), False
        try:
            if may_read_clock(question):  # today is not what it was yesterday
                return self._parse_text(question, None)
            return self._questions(question, self.engine.catalogue.version)
        except Refusal as refusal:
            told = refusal.naming(name_units(self.schema, question))
            if analyst is not None:
                self.account.record_refusal(analyst, question, told)
            raise told from None

    def _parse_text(self, text: str, _version: Hashable) -> tuple[Question | Statement, bool]:
        parsed = parse_statement(text, self.engine.catalogue, check=self._check_statement)
        return parsed.question, parsed.explain

    def _check_statement(self, statement: Statement) -> None:
        self.statements.check(statement)  # a single question needs none of that

    def parse_given(self, text: str, given: Sequence[Sequence[Any]]) -> Statement:
        """The statement ``text``, with what the questions in its conditions were ``given``."""
        parsed = parse_statement(text, self.engine.catalogue, given=given)
        if not isinstance(parsed.question, Statement):
            raise TypeError("a question in a condition makes a statement")
        return parsed.question

    def find_plan(self, question: Question, spend: Offer, era: Era = Era.NOW) -> Planned:
        """What a ``question`` measures and costs at ``spend``, as it was priced in an ``era``."""
        version = self.engine.catalogue.version
        # Python takes 1 and true for equal: questions are told apart by how they are written.
        written = question.text or repr(question)
        in_rho = self.seeks_rho(spend)
        try:
            return self._plans(question, spend, written, version, era, in_rho)
        except Refusal as refusal:
            told = refusal
            if "delta" in refusal.offer:
                from discreet.curate.affordable import name_affordable_delta

                told = name_affordable_delta(refusal, self.balance().failures_left())
            raise told.naming(unit(question.source).name) from None
        except RecursionError:  # built in Python, where nothing counts parentheses
            raise depth_refusal() from None

    def find_payable(self, question: Question, spend: Offer, analyst: str) -> Planned:
        """The plan as the account knows it, or can pay for it; else as it is priced now.

        ``question`` and ``spend`` are what is asked and offered, by ``analyst``.
        What was paid for when other noise was bought stays free: it is looked for under the
        key of that noise, and never charged for again, for it may have cost too little; nor
        is what is asked ``fresh`` bought at a former price.  And Gaussian noise that is
        calibrated to (epsilon, delta) may be charged as such where its rho does not fit: either
        is a bound on what it loses.
        """
        planned = self.find_plan(question, spend)  # public knowledge only
        if is_as_before(planned.priced):
            return planned
        if self._is_known(planned, spend, analyst):
            return planned
        in_rho = self.seeks_rho(spend)
        for era in () if spend.fresh else list_eras(planned.priced, in_rho=in_rho):
            with suppress(Refusal):  # of what could not be asked before
                former = replace(self.find_plan(question, spend, era), former=True)
                drawn = era in TOO_CHEAP
                if former.key != planned.key and self._is_known(
                    former, spend, analyst, drawn=drawn
                ):
                    return former
        other = approximate_loss(planned.priced, spend)
        if (other is None and not in_rho) or self._can_afford(planned, spend, analyst):
            return planned
        if other is not None:
            charged = replace(planned, priced=replace(planned.priced, loss=other))
        else:  # an analyst, a question or people in several datasets may have a cap of epsilon
            charged = self.find_plan(question, spend, Era.PURE)
        return charged if self._can_afford(charged, spend, analyst) else planned

    def _is_known(
        self, planned: Planned, spend: Offer, analyst: str, *, drawn: bool = False
    ) -> bool:
        """Whether this analyst has it for free; who may not ask is told so when it is charged.

        If it must be ``drawn``, what was paid for and not computed yet does not count.
        """
        with suppress(Refusal):
            found = self.account.find(self.make_request(planned, spend, analyst))
            return found == "stored" or (found == "resumed" and not drawn)
        return False

    def _can_afford(self, planned: Planned, spend: Offer, analyst: str) -> bool:
        """Whether no cap stands in the way; any other refusal is told when it is charged."""
        try:
            self.account.preview(self.make_request(planned, spend, analyst))
        except BudgetRefusal:
            return False
        except Refusal:
            return True
        return True

    def find_size(self, question: Question, spend: Offer) -> Planned | None:
        """The plan of a ``question`` for a public number of units; ``spend`` need offer nothing."""
        if not self.sizes:
            return None
        planned = (
            self.find_any_plan(question, spend) if spend.empty else self.find_plan(question, spend)
        )
        from discreet.price.sizes import is_public

        return planned if is_public(planned.priced) else None

    @property
    def sizes(self) -> frozenset[str]:
        """The tables whose number of units is public, by all that was ever declared here."""
        if self.schema.neighbours is not Neighbours.CHANGE_ONE:
            return frozenset()
        from discreet.price.sizes import list_sizes

        return list_sizes(self.account.standing().people)

    def _warn_of_hidden_groups(self, priced: Priced) -> None:
        """Say before anything is paid that no group can be expected in the answer."""
        if priced.population is not None:
            from discreet.release.notes import describe_hidden

            warnings.warn(describe_hidden(priced), NoGroupPasses, stacklevel=4)

    def _make_plan(
        self,
        question: Question,
        spend: Offer,
        _written: str,
        _version: Hashable,
        era: Era = Era.NOW,
        _in_rho: bool = False,  # a budget may change, and with it prices
    ) -> Planned:
        priced = self.price_question(question, spend, era)
        # What cannot be run is not paid for.
        compiled = self.engine.compile(priced.plan, find_lumpings(priced))
        places = sought = list_places(priced.plan)
        if len(places) > 1:
            from discreet.known.places import list_sought

            sought = list_sought(priced, places[0])
        return Planned(priced, compiled, replay_key(priced), self.area(question), places, sought)

    def price_question(self, question: Question, spend: Offer, era: Era = Era.NOW) -> Priced:
        """What a ``question`` measures and costs at ``spend``, as in ``era``; not yet compiled."""
        catalogue, before, apart = self.engine.catalogue, era is Era.FIRST, era is Era.APART
        compare = COMPARED.get(era, Compare.UNITS)
        if question.is_listed:
            from discreet.price.listed import price_listed

            return price_listed(question, catalogue)
        buy = partial(self._buy, in_rho=era is Era.NOW)
        if era in (Era.NOW, Era.PURE) and (sizes := self.sizes):
            from discreet.price.sizes import price_beside, price_size

            free = price_size(question, catalogue, sizes)
            free = free or price_beside(question, spend, catalogue, sizes, buy)
            if free is not None:
                return free
        return buy(question, spend, as_before=before, apart=apart, compare=compare)

    def seeks_rho(self, spend: Offer) -> bool:
        """Whether ``spend`` names an accuracy where rho alone is counted: it costs least rho."""
        return bool(spend.within) and self.account.budget.epsilon is None

    def _buy(self, question: Question, spend: Offer, *, in_rho: bool, **how: Any) -> Priced:
        """The best noise that is offered for, or the least that is within what is asked for."""
        if not spend.within:
            return price(question, spend, self.engine.catalogue, **how)
        from discreet.price.within import find_cheapest

        in_rho = in_rho and self.seeks_rho(spend)
        return find_cheapest(question, spend, self.engine.catalogue, in_rho=in_rho, **how)


# --- what is computed --------------------------------------------------------------------------


def compute(
    engine: Engine[C],
    compiled: C,
    priced: Priced,
    version: str,
    *,
    earlier: tuple[Released, tuple[Fraction, ...]] | None = None,
    basis: str | None = None,
) -> bytes:
    """The answer to a paid question, on the data it was paid for, ready to be stored.

    ``earlier`` is a release that it refines, and the scales of its noise; ``basis`` names what both
    are computed from.
    """
    return draw(engine, compiled, priced, version, earlier=earlier, basis=basis)[0]


def draw(
    engine: Engine[C],
    compiled: C,
    priced: Priced,
    version: str,
    *,
    earlier: tuple[Released, tuple[Fraction, ...]] | None,
    basis: str | None = None,
) -> tuple[bytes, Released]:
    """The same, and what was drawn for it.

    Whatever fails may fail because of one person's row, so nothing is said of why.  That a basis
    is still there is looked at before and after: none comes back that was gone.
    """
    if earlier is not None and basis is None:
        raise describe_failure()  # nothing is certain: docs/proofs/known.md, Lemma 10
    with suppress(Exception):
        if basis is not None and engine.find_basis(compiled) != basis:
            raise describe_failure()
        truth = engine.run(compiled)  # exact integers
        drawn = release(priced, truth) if earlier is None else refine(priced, truth, *earlier)
        kept = basis is None or engine.find_basis(compiled) == basis
        if kept and engine.data_version() == version:
            return write_released(priced, drawn), drawn
    raise describe_failure()


def describe_rows(plan: Plan) -> About:
    """Which rows a plan measures, as it was asked."""
    rows = BaseRows.of(plan.source)
    keys = [rename(key.expression, rows.names) for key in plan.keys]
    measured = [rename(value, rows.names) for m in plan.measurements for value in list_values(m)]
    return About(
        digest(rows.base),
        tuple((digest(c), references(c)) for c in rows.conditions),
        frozenset().union(*map(references, keys)),
        frozenset().union(*map(references, measured)),
    )


def list_places(plan: Plan) -> tuple[About, ...]:
    """All the rows that later questions may look for an answer by."""
    asked = describe_rows(plan)
    if is_plain(plan):
        return (asked,)
    from discreet.known.places import list_more

    return asked, *list_more(plan, asked)


def write_text(question: Question) -> str:
    """A question in SQL: as it was asked, or as it would be."""
    return question.text or write_question_text(question)


def curator(
    tables: Mapping[str, Any], *, schema: Declared, budget: Budget | Exact, **engine: Any
) -> Curator:
    """A curator for a notebook, whose account lives as long as the object.

    ``tables`` by name, each a path or an Arrow, pandas or Polars table.  ``schema`` is a
    :class:`Schema`, or the text or path of a TOML file, or a dict of its shape; ``budget`` a
    :class:`Budget`, or a number: the epsilon of one.  ``engine`` are settings of the engine:
    ``kind``, ``memory_limit``, ``threads``, ``store``, ``timeout_s`` and ``progress``.
    """
    return Curator(tables, schema=schema, budget=budget, **engine)
