"""What is known already of a question, whether that is enough, and how little would improve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.accounting.loss import INFINITY, NOTHING, Loss
from discreet.curate.quote import Choice
from discreet.curate.steps import Improving, Paid, Planned, TopUp
from discreet.errors import BudgetRefusal, InvalidParameter, Refusal
from discreet.exact.numbers import round_up
from discreet.exact.search import least_integer
from discreet.known.combine import Derivation, Predicted, predict
from discreet.known.derive import same_text
from discreet.known.shelf import Shelf, find_margins, is_as_good, meets
from discreet.known.topup import (
    can_be_refined,
    find_parent,
    is_refinement,
    list_noise,
    list_others,
    list_scales,
    measure_use,
    price_refinement,
    reprice,
    spare,
    split_offer,
)
from discreet.known.widen import widen
from discreet.ledger import Receipt, Request
from discreet.question.expressions import ColumnRef
from discreet.question.functions import references
from discreet.question.offer import Offer
from discreet.release.answer import Answer, Released
from discreet.release.derived import Derived

if TYPE_CHECKING:
    from discreet.curate.curator import Curator
    from discreet.known.released import Released as Known
    from discreet.price import Priced
    from discreet.question.question import Question


LEAST_PART, MOST_PART, PARTS = 140, 800, 200
"""From 0.7 to 4 times what variances ask for, in steps of a half in a hundred, what keeps a margin
is looked for."""


MOST_REFINED = 3
"""Of so many finer tables it is tried what refining them would cost."""
STEPS = 256
"""In so many parts of what another way costs a refinement of a finer table is looked for."""
FINEST = Fraction(1, 10**7)
"""What is offered for it is rounded up to whole parts of so much."""


@dataclass(frozen=True, slots=True)
class Planning:
    """How a curator plans, for one analyst."""

    again: Callable[[Question, Offer], Planned]
    """A question measured anew, beside all that was measured of it before."""
    price: Callable[[Question, Offer], Priced]
    plan: Callable[[Question, Offer], Planned]
    is_open: Callable[[Planned, Offer], bool]
    """Whether it was charged before, and not answered yet."""


class Knowing:
    """What the released answers of a curator's account tell of its questions.

    It says what is known and what might be bought, and buys it; no data is read.
    ``notes`` gives what else is said of a question.
    """

    def __init__(self, curator: Curator, notes: Callable[[Priced], tuple[str, ...]]) -> None:
        self._curator = curator
        self._notes = notes
        self.shelf = Shelf(curator.account)

    def derive(
        self, planned: Planned, sources: Sequence[int], *, nearest: bool = False
    ) -> Derived | None:
        """What the answers ``sources`` tell of a question together.

        ``nearest``: with the least margin; else with the least variance, as a price buys it.
        """
        return self.shelf.tell(
            planned.priced,
            sources,
            multiplicity=self._curator.engine.catalogue.multiplicity,
            nearest=nearest,
            said=self._notes(planned.priced),
        )

    def judge(
        self, planned: Planned, spend: Offer, sources: tuple[int, ...]
    ) -> Derived | tuple[Derived | None, tuple[int, ...]] | None:
        """What is known, if it is as good as what is offered for; then it is free.

        Else what is known and the answers that it may be from, to be improved; None if that is
        no way, either.
        """
        if spend.within or spend.empty:
            return self._judge_nearest(planned, spend, sources)
        known = self.derive(planned, sources)
        if known is None:
            return None, sources
        if not known.keeps_margins:
            return None  # who pays gets a margin
        return known if is_as_good(known, planned.priced) else (known, sources)

    def _judge_nearest(
        self, planned: Planned, spend: Offer, sources: tuple[int, ...]
    ) -> Derived | tuple[Derived | None, tuple[int, ...]] | None:
        """The same where a margin is asked for, or nothing is offered."""
        near = self.derive(planned, sources, nearest=True)
        if near is None:
            return None, sources
        if spend.empty:
            return near
        if not near.keeps_margins:
            return None
        if meets(near, spend.within, spend.confidence):
            return near
        return self.derive(planned, sources), sources

    def recall(self, planned: Planned, sources: Sequence[int]) -> Answer | None:
        """What is told without any offer: what is derived, or what was measured just so."""
        known = self.derive(planned, sources, nearest=True)
        return self.shelf.recall(planned.priced, sources) if known is None else known

    def top_up(
        self,
        planned: Planned,
        spend: Offer,
        analyst: str,
        known: tuple[Derived | None, tuple[int, ...]],
    ) -> Paid | Answer | None:
        """Pay the difference to what is known; None where nothing known helps."""
        for way in self.list_ways(planned, spend, analyst, *known):
            request = self.make_request(way, spend, analyst)
            try:
                receipt = self._curator.account.charge(request)
            except (InvalidParameter, BudgetRefusal):
                continue  # somebody else refined it meanwhile, or another way may be affordable
            if isinstance(receipt, Receipt):
                return self._curator.make_paid(
                    way.planned, receipt, request.data_version, way.improving
                )
            told = self._curator.look_up(planned, spend, analyst)
            if isinstance(told, Answer):  # somebody else has bought it meanwhile
                return told
        return None

    def make_request(self, way: TopUp, spend: Offer, analyst: str) -> Request:
        """What the account is asked for, to improve what is known this ``way``."""
        request = self._curator.make_request(way.planned, way.offer or spend, analyst)
        parent = way.improving.parent
        basis = None if parent is None else self._curator.engine.find_basis(way.planned.compiled)
        return replace(request, loss=way.loss, parent=parent, basis=basis)

    def list_ways(
        self,
        planned: Planned,
        spend: Offer,
        analyst: str,
        known: Derived | None,
        sources: tuple[int, ...],
    ) -> Iterator[TopUp]:
        """Ways to improve what is known to what ``planned`` would be, the cheapest first.

        What one question may cost is a cap on the whole of it, in however many payments.
        """

        def again(question: Question, rest: Offer) -> Planned:
            part = self._curator.find_plan(question, rest)
            return self._curator.make_fresh(part, rest, analyst, first=part.key)

        cap = self._curator.account.standing().policy.question
        if cap is not None and not cap.admits(NOTHING, planned.priced.loss):
            return

        def is_open(part: Planned, rest: Offer) -> bool:
            return (
                self._curator.account.find(self._curator.make_request(part, rest, analyst))
                == "resumed"
            )

        planning = Planning(again, self._curator.price_question, self._curator.find_plan, is_open)
        for way in self.list_top_ups(planned, spend, known, sources, planning):
            if cap is None or cap.admits(NOTHING, way.planned.priced.loss):
                yield way

    def list_top_ups(
        self,
        planned: Planned,
        spend: Offer,
        known: Derived | None,
        sources: tuple[int, ...],
        planning: Planning,
    ) -> Iterator[TopUp]:
        """Ways to improve what is known to what ``planned`` would be, the cheapest first."""
        beside = self._measure_beside(planned, spend, known, planning)
        part = None if beside is None else beside.planned
        used = () if beside is None else beside.improving.sources
        beside = self._measure_rest(planned, spend, part or planned, used, planning) or beside
        yield from self._list_refinements(planned, spend, sources, beside, planning)
        if beside is not None:
            yield beside

    def _measure_beside(
        self, planned: Planned, spend: Offer, known: Derived | None, planning: Planning
    ) -> TopUp | None:
        """A smaller measurement beside what is known; None where that is no way."""
        if known is None or mixes_noise(planned.priced):
            return None  # the noise of two numbers that are combined apart has no law together
        rest = split_offer(spend, planned.priced, spare(known, planned.priced))
        if rest is None:
            return None
        used = tuple(origin.id for origin in known.origins)
        with suppress(Refusal):
            part = self._find_enough(planned, spend, used, rest, planning)
            if part is not None:
                return TopUp(part, part.priced.loss, Improving(planned.priced, used))
        return None

    def _measure_rest(
        self,
        planned: Planned,
        spend: Offer,
        part: Planned,
        used: tuple[int, ...],
        planning: Planning,
    ) -> TopUp | None:
        """What ``part`` measures, and the rest of the rows beside it; None if that costs anything.

        Who offers an accuracy leaves it to us what is bought: docs/proofs/known.md, Lemma 16.
        """
        if not spend.within or mixes_noise(planned.priced):
            return None
        multiplicity = self._curator.engine.catalogue.multiplicity
        loss = part.priced.loss
        offer = _offer_loss(loss)
        with suppress(Refusal):
            wider = widen(planned.priced.question, multiplicity)
            if wider is None:
                return None
            whole = planning.again(wider, offer)
            if whole.area != planned.area or not _costs_no_more(whole.priced.loss, loss):
                return None
            found = self.shelf.predict(
                planned.priced, used, whole.priced, multiplicity=multiplicity
            )
            if found is not None and meets(found, spend.within, spend.confidence):
                told = Improving(planned.priced, used)
                margins = state_margins(found, spend.confidence)
                return TopUp(whole, whole.priced.loss, told, offer, margins)
        return None

    def _list_refinements(
        self,
        planned: Planned,
        spend: Offer,
        sources: tuple[int, ...],
        beside: TopUp | None,
        planning: Planning,
    ) -> list[TopUp]:
        """Less noise of the same draws: of the question itself, or of what it is added up from."""
        curator, found = self._curator, []
        if curator.engine.find_basis(planned.compiled) is None:
            return []  # the truth may have changed
        parent = find_parent(planned.priced, self.shelf.load_alone(sources))
        if (
            parent is not None
            and not curator.account.is_refined(parent.id)
            and self._is_unchanged(planned, parent)
        ):
            found.append(self.refine(planned, parent))
        else:
            parent = None
        charges = [way.loss for way in (*found, beside) if way is not None]
        least = min((*charges, planned.priced.loss), key=lambda loss: loss.epsilon)
        if least.epsilon == INFINITY or mixes_noise(planned.priced):
            return found
        balance = curator.balance()
        use = measure_use(balance.budget, balance.spent, least)
        for way in self._refine_sources(planned, spend, sources, least, planning):
            if measure_use(balance.budget, balance.spent, way.loss) < use:
                found.append(way)
        return sorted(found, key=lambda way: way.loss.epsilon)

    def _is_unchanged(self, planned: Planned, source: Known) -> bool:
        """Whether what is planned is computed from what the source was, for certain."""
        basis = self._curator.account.find_basis(source.id)
        return basis is not None and basis == self._curator.engine.find_basis(planned.compiled)

    def _refine_sources(
        self,
        planned: Planned,
        spend: Offer,
        sources: tuple[int, ...],
        least: Loss,
        planning: Planning,
    ) -> Iterator[TopUp]:
        """Finer tables whose refinement costs less than ``least``, each at its least price.

        Each is a refinement as any other, and the rest is arithmetic: docs/proofs/known.md,
        Lemma 12.
        """
        multiplicity = self._curator.engine.catalogue.multiplicity
        derivations, _ = self.shelf.derive_all(planned.priced, sources, multiplicity=multiplicity)
        tried = 0
        for derivation in derivations:
            source = derivation[0].source
            if tried == MOST_REFINED:
                return
            if not can_be_refined(source.priced) or self._is_spoken_for(source, planned):
                continue
            tried += 1
            with suppress(Refusal):
                way = self._refine_source(planned, spend, derivation, derivations, least, planning)
                if way is not None:
                    yield way

    def _is_spoken_for(self, source: Known, planned: Planned) -> bool:
        """Whether it is the question itself, or about other people."""
        same = same_text((source.priced.plan, source.priced.recipes))
        return (
            same == same_text((planned.priced.plan, planned.priced.recipes))
            or self._curator.area(source.priced.question) != planned.area
        )

    def _refine_source(
        self,
        planned: Planned,
        spend: Offer,
        derivation: Derivation,
        derivations: Sequence[Derivation],
        least: Loss,
        planning: Planning,
    ) -> TopUp | None:
        """The least refinement of one finer table that is enough; None if it costs too much."""
        source = derivation[0].source
        before = Fraction(source.priced.loss.rounded().epsilon)
        others = list_others(derivation, derivations)
        question = source.priced.question

        def offer(step: int) -> Offer:
            return Offer(epsilon=round_up(before + step * Fraction(least.epsilon) / STEPS, FINEST))

        def try_step(step: int) -> Predicted | None:
            priced = planning.price(question, offer(step))
            if not is_refinement(priced, source.priced):
                return None
            found = predict(planned.priced, *others, reprice(derivation, priced))
            return found if self._is_enough(found, planned.priced, spend) else None

        if try_step(STEPS - 1) is None:
            return None
        step = least_integer(lambda n: try_step(n) is not None, fails_at=0, holds_at=STEPS - 1)
        found = try_step(step)
        part = planning.plan(question, offer(step))
        if found is None or not is_refinement(part.priced, source.priced):
            return None
        if not self._is_unchanged(part, source):
            return None
        child = self._curator.account.is_refined(source.id)
        if child and not planning.is_open(part, offer(step)):
            return None  # at most one refinement; one that was cut short is gone on with
        loss = price_refinement(source.priced.loss, part.priced.loss)
        if loss.epsilon >= least.epsilon:
            return None
        way = self.refine(part, source)
        used = tuple(one[0].source.id for one in others)
        told = replace(way.improving, target=planned.priced, sources=used, rolled_up=True)
        return replace(
            way, improving=told, offer=offer(step), margins=state_margins(found, spend.confidence)
        )

    def _is_enough(self, found: Predicted, direct: Priced, spend: Offer) -> bool:
        if spend.within:
            return meets(found, spend.within, spend.confidence)
        return is_as_good(found, direct)

    def _find_enough(
        self,
        planned: Planned,
        spend: Offer,
        used: tuple[int, ...],
        rest: Offer,
        planning: Planning,
    ) -> Planned | None:
        """The measurement that ``rest`` buys; where a margin is wanted, the least that keeps it.

        Noise of several draws has other tails than one draw of the same variance.
        """
        question = planned.priced.question
        if not spend.within:
            return planning.again(question, rest)
        multiplicity = self._curator.engine.catalogue.multiplicity

        def buy(parts: int) -> Planned:
            return planning.again(question, _enlarge(rest, Fraction(parts, PARTS)))

        def is_enough(parts: int) -> bool:
            found = self.shelf.predict(
                planned.priced, used, buy(parts).priced, multiplicity=multiplicity
            )
            return found is not None and meets(found, spend.within, spend.confidence)

        if not is_enough(MOST_PART):
            return None
        part = buy(least_integer(is_enough, fails_at=LEAST_PART, holds_at=MOST_PART))
        return None if _costs_as_much(part.priced, planned.priced) else part

    def refine(self, planned: Planned, parent: Known) -> TopUp:
        """Less noise of the same draws: charged is what it adds."""
        loss = price_refinement(parent.priced.loss, planned.priced.loss)
        earlier = Released(parent.groups, parent.parts), list_scales(parent.priced)
        return TopUp(planned, loss, Improving(planned.priced, (), parent.id, earlier))

    def improve(self, paid: Paid, improving: Improving) -> Answer:
        """The new measurement that was ``paid`` and what was known before it, together."""
        found = self.shelf.tell(
            improving.target,
            (*improving.sources, paid.receipt.id),
            multiplicity=self._curator.engine.catalogue.multiplicity,
            payment=paid.receipt.loss,
            said=self._notes(improving.target),
        )
        if found is None:
            raise LookupError(paid.receipt.id)  # it was derived before it was paid for
        return found

    def explain_unknown(self, planned: Planned, sources: Sequence[int]) -> str:
        """Why answers about the same rows do not tell what is asked."""
        if not sources:
            return ""
        multiplicity = self._curator.engine.catalogue.multiplicity
        _, refused = self.shelf.derive_all(planned.priced, sources, multiplicity=multiplicity)
        return " ".join(f"Not free: answer #{number}: {reason}." for number, reason in refused[:2])


def _costs_as_much(part: Priced, whole: Priced) -> bool:
    """Whether an improvement costs no less than a measurement by itself."""
    one, other = part.loss, whole.loss
    return one.rho >= other.rho if one.epsilon == INFINITY else one.epsilon >= other.epsilon


def _costs_no_more(one: Loss, other: Loss) -> bool:
    """Whether a loss is no larger than another, in any coordinate."""
    a, b = one.rounded(), other.rounded()
    return a.epsilon <= b.epsilon and a.rho <= b.rho and a.delta <= b.delta


def _offer_loss(loss: Loss) -> Offer:
    """An offer of what something costs: of its pure loss, if it has one."""
    if loss.epsilon != INFINITY:
        return Offer(epsilon=Fraction(loss.epsilon))
    return Offer(rho=Fraction(loss.rho))


def _enlarge(offer: Offer, factor: Fraction) -> Offer:
    """The same offer, of so many times the amount."""
    return replace(
        offer,
        epsilon=None if offer.epsilon is None else Fraction(offer.epsilon) * factor,
        rho=None if offer.rho is None else Fraction(offer.rho) * factor,
    )


def offer_known(known: Derived) -> Choice:
    """What is known, as one of the choices."""
    stated = state_margins(known, Fraction(19, 20))
    origins = (note.removesuffix(".") for note in known.notes[: len(known.origins)])
    return Choice(NOTHING, stated, "; ".join(origins))


def state_margins(
    known: Derived | Predicted, confidence: Fraction
) -> tuple[tuple[str, float], ...]:
    """The margins of the numbers that are ``known``, by name, at ``confidence``."""
    names = [aggregate.name for aggregate in known.priced.question.aggregates]
    margins = zip(names, find_margins(known, 1 - confidence), strict=True)
    return tuple((name, margin) for name, margin in margins if margin is not None)


def mixes_noise(priced: Priced) -> bool:
    """Whether an output is computed of aggregates, and not one of them as it is.

    But for those of which one alone has noise.
    """
    if len(list_noise(priced)) == 1 < len(priced.mechanisms):
        return False
    question = priced.question
    names = {aggregate.name for aggregate in question.aggregates}
    return any(
        not isinstance(output.expression, ColumnRef) and names & references(output.expression)
        for output in question.outputs
    )
