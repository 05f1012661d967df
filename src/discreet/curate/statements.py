"""Statements of several questions: planned and paid for together, then computed from the answers.

All charges of a statement are made or none.  Where totals can be added up from finer groups, only
the groups are measured (``levels``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from discreet.curate.shares import divide
from discreet.curate.steps import (
    CURATOR,
    REMEMBERED,
    AccountRow,
    Paid,
    PaidStatement,
    PlannedStatement,
)
from discreet.errors import QuestionRefusal, Refusal
from discreet.ledger import Stored
from discreet.price import Priced
from discreet.question.offer import Offer
from discreet.question.question import Question
from discreet.question.sql import parse_statement
from discreet.question.sql.dialect import may_read_clock
from discreet.question.sql.nested import MOST_LISTED, list_samples
from discreet.question.statement import First, Statement, account_name, group_name, public_name
from discreet.release.answer import Answer
from discreet.release.combining import Bound, bind, combine, describe_bound

if TYPE_CHECKING:
    from discreet.curate.curator import Curator
    from discreet.curate.levels import Total
    from discreet.curate.quote import Quote
    from discreet.release.combined import CombinedExplanation


_WHILE = 10
"""Minutes in which what a condition asks first is surely answered, and the rest asked."""


class Statements:
    """How a curator answers statements: each question by its own plan, and one charge for all.

    ``notes`` gives what else is said of a question.
    """

    def __init__(self, curator: Curator, notes: Callable[[Priced], tuple[str, ...]]) -> None:
        self._curator = curator
        self._notes = notes
        self._bounds = lru_cache(REMEMBERED)(self._make_bound)

    def bind(self, statement: Statement) -> Bound:
        """What is computed from the questions' answers, checked; public knowledge."""
        return self._bounds(statement, self._curator.engine.catalogue.version)

    def _make_bound(self, statement: Statement, _version: Hashable) -> Bound:
        return bind(statement, self._curator.engine.catalogue)

    def check(self, statement: Statement) -> None:
        """Refuse what cannot be computed, whatever is released; looks at no data.

        What stands in conditions is tried with values such as it may turn out to be.
        """
        self.bind(statement)
        if not statement.first:
            return
        shown = [describe_bound(self.bind(first.statement)) for first in statement.first]
        if any(column.listed for columns in shown for column in columns):
            raise _several_answers()
        kinds = [[column.kind for column in columns] for columns in shown]
        for given in list_samples(kinds, statement.first):
            self.bind(self._curator.parse_given(statement.text, given))

    # --- paying ------------------------------------------------------------------------------

    def pay(self, statement: Statement, offer: Offer, analyst: str) -> PaidStatement | Answer:
        """Charge for all questions that were not answered before; the answer, if all were."""
        curator = self._curator
        try:
            account = self._ask_account(statement, offer, analyst)
            if not statement.questions:
                curator.account.check_access(analyst)
                return self.finish(PaidStatement(self.bind(statement), (), account=account), ())
            if statement.first:
                statement = self._fill_in(statement, offer, analyst)
            asked_at = offer.beside(statement.spend).confidence
            bound = self.bind(replace(statement, confidence=asked_at))
            known = self._recall(statement, offer, analyst)
            if known is not None:
                return self.finish(PaidStatement(bound, known, account=account), ())
            plans = self.plan(statement, offer, analyst)
            if statement.first:
                return self._pay_first(bound, plans, offer)
            receipts = curator.account.charge_all(plans.requests)  # all of them or none; durable
        except Refusal as refusal:
            curator.account.record_refusal(analyst, statement.text, refusal)
            raise
        parts: list[Paid | Answer] = [
            curator.replay(plan.priced, receipt)
            if isinstance(receipt, Stored)
            else curator.make_paid(plan, receipt, receipt.data_version)
            for plan, receipt in zip(plans.planned, receipts, strict=True)
        ]
        paid = PaidStatement(bound, tuple(parts), plans.totals, account=account)
        return paid if paid.open else self.finish(paid, ())

    def _recall(
        self, statement: Statement, offer: Offer, analyst: str
    ) -> tuple[Answer, ...] | None:
        """What all questions were answered before, where nothing is offered; else None."""
        curator, spend = self._curator, offer.beside(statement.spend)
        offered = any(question.spend is not None for question in statement.questions)
        if not spend.empty or spend.fresh or offered or statement.first:
            return None
        found = []
        for question in statement.questions:
            planned = curator.find_any_plan(question, spend)
            curator.account.find(curator.make_request(planned, spend, analyst))  # no strangers
            sources = curator.find_sources(planned, analyst)
            known = curator.knowing.shelf.recall(planned.priced, sources) if sources else None
            if known is None:
                return None
            found.append(known)
        return tuple(found)

    def _pay_first(self, bound: Bound, plans: PlannedStatement, offer: Offer) -> PaidStatement:
        """Charge for what stands in conditions; nothing, if all of it could not be paid."""
        curator, statement = self._curator, bound.statement
        if offer.fresh or not self._is_repeatable(statement):
            raise _unrepeatable()
        curator.account.preview_all(plans.requests)
        numbers = sorted({n for first in statement.first for n in first.numbers})
        receipts = curator.account.charge_all([plans.requests[n] for n in numbers])
        parts: list[Paid | Answer] = [
            curator.replay(plans.planned[n].priced, receipt)
            if isinstance(receipt, Stored)
            else curator.make_paid(plans.planned[n], receipt, receipt.data_version)
            for n, receipt in zip(numbers, receipts, strict=True)
        ]
        return PaidStatement(bound, tuple(parts), later=True)

    def _is_repeatable(self, statement: Statement) -> bool:
        """Whether it is the same question in a while: what it asks first is found again then.

        A date is, but for the last minutes of its day; a moment is not.
        """
        if not may_read_clock(statement.text):
            return True
        catalogue, now = self._curator.engine.catalogue, datetime.now(UTC).replace(tzinfo=None)
        read = [
            parse_statement(statement.text, catalogue, now=moment).question
            for moment in (now, now + timedelta(minutes=_WHILE))
        ]
        return read[0] == read[1]

    def _fill_in(self, statement: Statement, offer: Offer, analyst: str) -> Statement:
        """The statement with what its conditions ask, if all of that was answered before."""
        curator = self._curator
        plans = self.plan(statement, offer, analyst)
        answers: dict[int, Answer] = {}
        for number in {n for first in statement.first for n in first.numbers}:
            stored = curator.account.recall(plans.requests[number])
            if not isinstance(stored, Stored) or curator.withheld(stored.id):
                return statement
            answers[number] = curator.replay(plans.planned[number].priced, stored)
        given = [self._read_values(first, answers) for first in statement.first]
        return curator.parse_given(statement.text, given)

    def _read_values(self, first: First, answers: Mapping[int, Answer]) -> list[Any]:
        """What was asked first has answered: one value, a list of them, or one for each group."""
        read, inner = self._curator.engine.public_rows, first.statement
        found = combine(
            self.bind(inner),
            [answers[number] for number in first.numbers],
            {public_name(name): read(name) for name in inner.tables},
        )
        if first.keys:  # few, by what is declared
            columns = [list(found.column(name)) for name in found.columns]
            return list(zip(*columns, strict=True))
        values = list(found.column(found.columns[0]))
        if len(found.columns) != 1 or len(values) > (MOST_LISTED if first.listed else 1):
            raise _several_answers()
        return [value for value in values if value is not None] if first.listed else values

    def finish(self, paid: PaidStatement, answers: Iterable[Answer]) -> Answer:
        """What the statement computes: those of ``paid.open`` are given, the others are stored."""
        known = {answer.id: answer for answer in answers}
        measured = [
            known[part.receipt.id].read_as(part.priced) if isinstance(part, Paid) else part
            for part in paid.parts
        ]
        parts = self._add_up(paid, measured)
        bound, read = paid.bound, self._curator.engine.public_rows
        statement = bound.statement
        public: dict[str, Any] = {public_name(name): read(name) for name in statement.tables}
        said: dict[str, None] = {}
        if paid.account is not None:
            public |= {account_name(name): paid.account.row for name in statement.accounts}
            said |= dict.fromkeys(paid.account.remarks)
        for number, question in enumerate(statement.listed):
            told = self._curator.list_groups(question)
            public[group_name(number)] = {name: told.column(name) for name in told.columns}
            said |= dict.fromkeys(told.notes)
        nothing = None if statement.questions else self._price_nothing(statement)
        return combine(bound, parts, public, nothing=nothing, said=tuple(said))

    def _price_nothing(self, statement: Statement) -> Priced:
        from discreet.price.listed import price_nothing

        return price_nothing(self._curator.engine.catalogue, next(iter(statement.accounts), None))

    def _ask_account(self, statement: Statement, offer: Offer, analyst: str) -> AccountRow | None:
        """What the account tells ``analyst``, if it is asked."""
        if not statement.accounts:
            return None
        from discreet.curate.remaining import tell_remaining

        return tell_remaining(self._curator, analyst, offer)

    def _add_up(self, paid: PaidStatement, measured: Sequence[Answer]) -> list[Answer]:
        """The answers of all questions of a statement, in order, from those that are measured."""
        if not paid.totals:
            return list(measured)
        from discreet.curate.levels import add_up

        multiplicity = self._curator.engine.catalogue.multiplicity
        summed = {total.question: total for total in paid.totals}
        numbers = [n for n in range(len(paid.bound.statement.questions)) if n not in summed]
        found: dict[int, Answer] = dict(zip(numbers, measured, strict=True))
        for total in paid.totals:
            said = self._notes(total.target)
            found[total.question] = add_up(total, found[total.finer], multiplicity, said=said)
        return [found[number] for number in sorted(found)]

    # --- planning ----------------------------------------------------------------------------

    def plan(self, statement: Statement, offer: Offer, analyst: str | None) -> PlannedStatement:
        """The price of each question; what ``analyst`` has paid for before is considered.

        Totals are added up where they can be; unless all was paid for before table by table, or
        the accuracy that is wanted costs less so.
        """
        apart = self._plan_measured(statement, offer, analyst)
        if not statement.levels:
            return apart
        with suppress(Refusal):  # of a margin that is too narrow
            summed = self._plan_totals(statement, offer, analyst)
            if summed is not None:
                return self._choose_plan(summed, apart, analyst)
        return apart

    def _choose_plan(
        self, summed: PlannedStatement, apart: PlannedStatement, analyst: str | None
    ) -> PlannedStatement:
        from discreet.curate.levels import is_cheaper

        if analyst is not None and not self._is_paid(summed) and self._is_paid(apart):
            return apart
        return summed if is_cheaper(summed.loss, apart.loss) else apart

    def _is_paid(self, plans: PlannedStatement) -> bool:
        find = self._curator.account.find
        return all(find(request) != "admitted" for request in plans.requests)

    def _plan_totals(
        self, statement: Statement, offer: Offer, analyst: str | None
    ) -> PlannedStatement | None:
        """The price if totals are added up from finer tables; None if none can be."""
        from discreet.curate import levels

        finer = levels.find_finer(statement)
        if levels.count_added(statement, finer) > levels.MOST_ADDED:
            return None
        multiplicity = self._curator.engine.catalogue.multiplicity

        def price_any(number: int) -> Priced:
            return self._curator.find_any_plan(statement.questions[number], offer).priced

        targets = {n: price_any(n) for n in finer}
        sources = {n: price_any(n) for n in set(finer.values())}

        def predict(numbers: Iterable[int], source: Mapping[int, Priced]) -> dict[int, Total]:
            found = {
                n: levels.predict_total(n, finer[n], targets[n], source[finer[n]], multiplicity)
                for n in numbers
            }
            return {n: total for n, total in found.items() if total is not None}

        summed = frozenset(predict(finer, sources))
        narrower: dict[int, Offer] = {}
        for _ in range(levels.TRIES if summed else 0):
            plans = self._plan_measured(statement, offer, analyst, summed=summed, narrower=narrower)
            numbers = [n for n in range(len(statement.questions)) if n not in summed]
            priced = {n: p.priced for n, p in zip(numbers, plans.planned, strict=True)}
            totals = predict(summed, priced)
            if len(totals) < len(summed):
                return None
            offers = dict(zip(numbers, plans.offers, strict=True))
            wanted = levels.narrow_margins(offers, narrower, totals.values())
            if wanted is None:
                return None
            if not wanted:
                return replace(plans, totals=tuple(totals[n] for n in sorted(totals)))
            narrower |= wanted
        return None

    def _plan_measured(
        self,
        statement: Statement,
        offer: Offer,
        analyst: str | None,
        *,
        summed: Collection[int] = (),
        narrower: Mapping[int, Offer] = MappingProxyType({}),
    ) -> PlannedStatement:
        """The price of all questions but those ``summed``; some at ``narrower`` margins."""
        curator, who = self._curator, analyst or CURATOR

        def is_paid(question: Question, spend: Offer) -> bool:
            planned = curator.find_payable(question, spend, who)
            return curator.account.find(curator.make_request(planned, spend, who)) != "admitted"

        paid = None if analyst is None or offer.fresh else is_paid
        numbers = [n for n in range(len(statement.questions)) if n not in summed]
        shares = divide(statement, offer, paid, summed=summed)
        offers = [narrower.get(n, share) for n, share in zip(numbers, shares, strict=True)]
        asked = [(statement.questions[n], o) for n, o in zip(numbers, offers, strict=True)]
        planned = [curator.find_payable(question, spend, who) for question, spend in asked]
        if offer.fresh:
            pairs = zip(planned, offers, strict=True)
            planned = [curator.make_fresh(plan, spend, who) for plan, spend in pairs]
        requests = [
            curator.make_request(plan, spend, who)
            for plan, spend in zip(planned, offers, strict=True)
        ]
        version = requests[0].data_version  # one for all, should the data change right now
        curator.crowding.check([plan.priced.plan.source for plan in planned], version)
        same = tuple(replace(request, data_version=version) for request in requests)
        return PlannedStatement(tuple(planned), same, shares)

    # --- without asking ----------------------------------------------------------------------

    def price(self, statement: Statement, offer: Offer, analyst: str) -> Quote:
        """What the statement would cost this analyst now, and whether the account would pay."""
        from discreet.curate.quote import Quote

        if statement.first:
            statement = self._fill_in(statement, offer, analyst)
        bound = self.bind(statement)
        if not statement.questions:
            return Quote(self.explain(statement, offer), "known")
        known = self._recall(statement, offer, analyst)
        if known is not None:
            return Quote(_explain_known(bound, known), "stored")
        plans = self.plan(statement, offer, analyst)
        explanation = _explain(bound, plans)
        try:
            outcomes = self._curator.account.preview_all(plans.requests)
        except Refusal as refusal:
            return Quote(explanation, refusal.code, refusal)
        worst = next((o for o in ("admitted", "resumed") if o in outcomes), "stored")
        return Quote(explanation, worst)

    def explain(self, statement: Statement, offer: Offer) -> CombinedExplanation:
        """What the statement would cost anyone who has asked nothing, part by part."""
        bound = self.bind(statement)
        if not statement.questions:
            from discreet.release.combined import CombinedExplanation

            nothing = self._price_nothing(statement)
            return CombinedExplanation.of(statement, (), bound.names, nothing)
        return _explain(bound, self.plan(statement, offer, None))


def _several_answers() -> QuestionRefusal:
    return QuestionRefusal(
        "Q47",
        "a question in a condition has more than one answer.",
        why="what each person's row is compared with must be one value, or a list of at "
        f"most {MOST_LISTED:,}.",
        fix="aggregate it to one number, or write x IN (SELECT one_column ...); of a list that is "
        f"longer take the first with ORDER BY and LIMIT {MOST_LISTED}: it is not paid for twice.",
    )


def _unrepeatable() -> QuestionRefusal:
    return QuestionRefusal(
        "Q15",
        "what stands in the condition is asked first, and would be another question the next time.",
        why="it is paid for once and then found again: not if it names the present, or is to be "
        "measured anew.",
        fix="write CURRENT_DATE, or the moment itself, in the place of NOW(); and ask without "
        "fresh.",
    )


def _explain(bound: Bound, plans: PlannedStatement) -> CombinedExplanation:
    from discreet.release.combined import CombinedExplanation
    from discreet.release.explanation import Explanation

    found = {
        total.question: Explanation(
            total.predicted.priced, f"-- added up from the groups of question {total.finer + 1}"
        )
        for total in plans.totals
    }
    numbers = [n for n in range(len(bound.statement.questions)) if n not in found]
    for number, plan in zip(numbers, plans.planned, strict=True):
        found[number] = Explanation(plan.priced, plan.compiled.explain())
    parts = tuple(found[number] for number in sorted(found))
    return CombinedExplanation.of(bound.statement, parts, bound.names)


def _explain_known(bound: Bound, known: Sequence[Answer]) -> CombinedExplanation:
    from discreet.release.combined import CombinedExplanation
    from discreet.release.explanation import Explanation

    parts = tuple(Explanation(answer.priced, "-- nothing is run: it is known") for answer in known)
    return CombinedExplanation.of(bound.statement, parts, bound.names)


__all__ = ["Statements"]
