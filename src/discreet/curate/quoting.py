"""What a question would cost, before it is paid: explanations, quotes, refusals with prices.

Nothing is charged here, and no data is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.curate.affordable import name_affordable_accuracy
from discreet.curate.knowing import offer_known, state_margins
from discreet.curate.quote import Choice, Quote
from discreet.curate.steps import ANY_DELTA, Planned
from discreet.errors import BudgetRefusal, InvalidParameter, QuestionRefusal, Refusal
from discreet.question.offer import Offer, free_refusal
from discreet.question.question import Question
from discreet.question.statement import Statement
from discreet.release.answer import Answer
from discreet.release.derived import Derived
from discreet.release.explanation import Explanation
from discreet.release.render import margin_words

if TYPE_CHECKING:
    from discreet.curate.curator import Asking, Curator


class Quotes:
    """The prices of a curator's questions."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator

    def parse(self, question: Asking) -> Question | Statement:
        """A question that is to be priced; what a release tells has no price, for it is free."""
        try:
            return self._curator.parse(question)
        except Refusal as refusal:
            if refusal.code != "Q6" or self._curator.tell(question) is None:
                raise
            raise free_refusal() from None

    def explain_now(self, asked: Question | Statement, offer: Offer, analyst: str) -> Explanation:
        """The explanation of a new measurement, which says beside it what would be paid now."""
        found = self.explain(asked, offer)
        with suppress(Refusal):  # an account that would not pay does not say what to pay
            return replace(found, now=self.price(asked, offer, analyst).explain().now)
        return found

    def explain(self, asked: Question | Statement, offer: Offer) -> Explanation:
        """What a new measurement of it would cost, and how good its answer would be."""
        if isinstance(asked, Statement):
            return self._curator.statements.explain(asked, offer)
        spend = offer.beside(asked.spend)
        try:
            return self.explain_plan(self._curator.find_plan(asked, spend))
        except QuestionRefusal as refusal:
            if refusal.code != "Q43":
                raise
            planned = self._curator.find_any_plan(asked, spend)
            raise self._unknown_refusal(asked, planned, ()) from None

    def explain_plan(self, planned: Planned) -> Explanation:
        """The same of a question that is planned."""
        listed = planned.priced.question.is_listed
        sql = "-- nothing is run: it is public" if listed else planned.compiled.explain()
        return Explanation(planned.priced, sql)

    def price(self, asked: Question | Statement, offer: Offer, analyst: str) -> Quote:
        """What it would cost this analyst now, and whether the account would pay."""
        if isinstance(asked, Statement):
            return self._curator.statements.price(asked, offer, analyst)
        spend = offer.beside(asked.spend)
        if asked.is_listed:
            return Quote(self.explain_plan(self._curator.find_any_plan(asked, spend)), "known")
        size = self._curator.find_size(asked, spend)
        if size is None and spend.empty:
            return self._price_nothing(asked, spend, analyst)
        planned = size or self._curator.find_payable(asked, spend, analyst)
        explanation = self.explain_plan(planned)
        if spend.fresh:
            planned = self._curator.make_fresh(planned, spend, analyst)
        elif size is None:
            quote = self._price_known(planned, spend, analyst)
            if quote is not None:
                return quote
        try:
            outcome = self._curator.account.preview(
                self._curator.make_request(planned, spend, analyst)
            )
        except Refusal as refusal:
            return Quote(
                explanation, refusal.code, self.explain_refusal(refusal, asked, spend, analyst)
            )
        return Quote(explanation, outcome)

    def recall(self, question: Question, spend: Offer, analyst: str) -> tuple[Planned, Answer]:
        """What is known of a question that nothing is offered for; or a refusal with prices."""
        planned = self._curator.find_any_plan(question, spend)
        request = self._curator.make_request(planned, spend, analyst)
        self._curator.account.find(request)  # refuses strangers
        sources = self._curator.find_sources(planned, analyst)
        known = self._curator.knowing.recall(planned, sources) if sources else None
        if known is None:
            raise self._unknown_refusal(question, planned, sources)
        return planned, known

    def _price_nothing(self, question: Question, spend: Offer, analyst: str) -> Quote:
        """What is told for nothing: what is derived, or what was measured just so."""
        planned, known = self.recall(question, spend, analyst)
        if isinstance(known, Derived):
            return Quote(self.explain_plan(planned), "known", None, (offer_known(known),))
        return Quote(self.explain_plan(replace(planned, priced=known.priced)), "stored")

    def _price_known(self, planned: Planned, spend: Offer, analyst: str) -> Quote | None:
        """The choices where something is known already; None where nothing is, or all was paid."""
        found = self._curator.find_good(planned, spend, analyst)
        if found is None:
            return None
        explanation = self.explain_plan(planned)
        margins = [(n, m) for n, m in explanation.margins(spend.confidence).items() if m]
        direct = Choice(planned.priced.loss.rounded(), tuple(margins), "a new measurement")
        if isinstance(found, Answer):
            return Quote(explanation, "known", None, (offer_known(found), direct))
        known, sources = found
        if not sources:
            return None
        free = () if known is None else (offer_known(known),)
        ways: list[tuple[str, Choice]] = []
        for way in self._curator.knowing.list_ways(planned, spend, analyst, known, sources):
            with suppress(InvalidParameter, BudgetRefusal):
                outcome = self._curator.account.preview(
                    self._curator.knowing.make_request(way, spend, analyst)
                )
                stated = way.margins or tuple(margins)
                ways.append((outcome, Choice(way.loss.rounded(), stated, way.source)))
                if not way.improving.rolled_up:
                    break  # what follows improves the same answers for more
        if ways:
            choices = (*free, *(choice for _, choice in ways), direct)
            return Quote(explanation, ways[0][0], None, choices, ways[0][1].charge)
        if not free:
            return None
        try:
            outcome = self._curator.account.preview(
                self._curator.make_request(planned, spend, analyst)
            )
        except Refusal as refusal:
            return Quote(explanation, refusal.code, refusal, (*free, direct))
        return Quote(explanation, outcome, None, (*free, direct))

    def explain_refusal(
        self, refusal: Refusal, question: Question, spend: Offer, analyst: str
    ) -> Refusal:
        """A refused accuracy is told with the accuracy that what is known and left would give."""
        if not isinstance(refusal, BudgetRefusal) or not spend.within:
            return refusal
        left = self._curator.account.balance(analyst).left(self._curator.area(question))
        known = self._list_known(question, spend, analyst)
        return name_affordable_accuracy(
            refusal,
            spend,
            left,
            lambda offer: self.explain_plan(self._curator.find_plan(question, offer)),
            known,
            lambda offer: self._would_pay(question, offer, analyst),
        )

    def _list_known(self, question: Question, spend: Offer, analyst: str) -> dict[str, float]:
        """How near the numbers of a question are told for nothing; empty if they are not."""
        planned = self._curator.find_any_plan(question, spend)
        sources = self._curator.find_sources(planned, analyst)
        known = self._curator.knowing.derive(planned, sources, nearest=True) if sources else None
        if known is None or not known.keeps_margins:
            return {}
        return dict(state_margins(known, spend.confidence))

    def _would_pay(self, question: Question, spend: Offer, analyst: str) -> bool:
        """Whether the account would pay it, as an improvement of what is known or anew."""
        with suppress(Refusal):
            planned = self._curator.find_payable(question, spend, analyst)
            quote = self._price_known(planned, spend, analyst)
            if quote is not None:
                return quote.refusal is None
            self._curator.account.preview(self._curator.make_request(planned, spend, analyst))
            return True
        return False

    def _unknown_refusal(
        self, question: Question, planned: Planned, sources: Sequence[int]
    ) -> QuestionRefusal:
        """Nothing is known: what it would cost, and why released answers do not tell."""
        prices = []
        for epsilon in ("0.1", "1"):
            with suppress(Refusal):
                offer = Offer.of(epsilon=epsilon, delta=_find_delta(planned))
                words = margin_words(
                    self.explain_plan(self._curator.find_plan(question, offer)), "0.95"
                )
                told = ", ".join(f"{name} {text}" for name, text in words.items())
                prices.append(f"epsilon = {epsilon} buys {told}")
        why = self._curator.knowing.explain_unknown(planned, sources) if sources else ""
        return QuestionRefusal(
            "Q43",
            "the question says neither what it may cost nor how accurate it must be.",
            why="every answer costs the people in the data something; how much is a decision."
            + (f" {why}" if why else ""),
            fix="offer what it may cost, such as epsilon='0.1', or how far off it may be, such as "
            f"within='50'. {'; '.join(prices)}.",
            offer={"epsilon": "0.1", "within": "50"},
        )


def _find_delta(planned: Planned) -> Fraction | None:
    """A delta for a question of private groups, such as it was planned with."""
    return None if planned.priced.threshold is None else ANY_DELTA
