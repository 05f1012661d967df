"""Neighbour fuzzing for anybody's schema and questions, on the real engine.

Made-up worlds, with and without each of a few people: what the release adds
noise to never moves further than the price says.  The integers are seen where
they meet the noise, so parser, pricing, engine and airlock are all tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from discreet.audit.hiding import HidingEngine
from discreet.audit.observing import Event, observe
from discreet.audit.rehearsal import find_price
from discreet.audit.replaying import compare
from discreet.audit.synthetic import make_public_tables, make_world
from discreet.audit.verdict import Verdict
from discreet.errors import Refusal
from discreet.exact.numbers import Exact as Number
from discreet.exact.numbers import whole
from discreet.price import Priced
from discreet.question.schema import Neighbours, Schema
from discreet.release.release import release

Progress = Callable[[float], None]
_FAILED = "the engine fails in one world and not in the other"


@dataclass(frozen=True, slots=True)
class Moved:
    """One person moved something further than the price of a question says.

    ``words`` say what moved, for which ``question``; ``label`` names the made-up world, to make it
    again.
    """

    question: str
    label: str
    words: str


@dataclass(frozen=True, slots=True)
class Fuzz:
    """What was tried, and what was found.

    ``tried`` has for each question on how many pairs of neighbours something was compared,
    ``refused`` the code of each that was refused, ``findings`` what moved too far.
    """

    tried: Mapping[str, int]
    refused: Mapping[str, str]
    findings: tuple[Moved, ...]

    @property
    def questions(self) -> int:
        """How many were asked, refused ones included."""
        return len(self.tried)

    @property
    def cases(self) -> int:
        """How many pairs of neighbours were compared, over all questions."""
        return sum(self.tried.values())

    @property
    def verdict(self) -> Verdict:
        """Broken by any finding; undecided if a question was answered and never compared."""
        if self.findings:
            return Verdict.BROKEN
        compared = [n for text, n in self.tried.items() if text not in self.refused]
        return Verdict.CONSISTENT if compared and all(compared) else Verdict.UNDECIDED

    @property
    def alarm(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        tried = (
            f"{self.questions - len(self.refused)} of {self.questions} questions on "
            f"{self.cases} pairs of made-up neighbours"
        )
        if self.findings:
            first = self.findings[0]
            return f"{tried}: {first.words} (question: {first.question})."
        if self.verdict is Verdict.UNDECIDED:
            codes = ", ".join(sorted(set(self.refused.values())))
            why = f"refused: {codes}" if codes else "nothing to compare"
            return f"{tried}: not all could be checked ({why})."
        return f"{tried}: nobody moved anything further than the price says."

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "kind": "fuzz",
            "questions": self.questions,
            "cases": self.cases,
            "refused": dict(self.refused),
            "findings": [
                {"question": f.question, "label": f.label, "words": f.words} for f in self.findings
            ],
            "verdict": self.verdict.value,
            "sentence": self.sentence,
        }

    def picture(self) -> str:
        """Nothing to draw."""
        return ""


def fuzz(  # noqa: PLR0913 (each is one word of the experiment)
    schema: Schema,
    questions: Iterable[str],
    *,
    worlds: int = 8,
    people: int = 6,
    label: str = "discreet",
    epsilon: Number = 1,
    delta: Number = "1e-6",
    rho: Number = "1/8",
    public: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Fuzz:
    """Try ``questions`` on made-up neighbours of ``schema``; the real data is not touched.

    Each of ``worlds`` made-up data sets has about ``people`` units; questions are bought for
    ``epsilon``, ``delta`` and ``rho``. ``public`` are the public tables, and ``progress`` is told
    how far it is.

    Each question is priced by ``epsilon`` and by ``rho``: one is about how far a
    person moves the numbers in all, the other about how far in Euclidean length.
    ``public`` gives public tables; others come from the source that the schema
    names, or are made up as well.  A world depends on ``label`` and its number.

    >>> schema = Schema.from_text('''
    ... [tables.visits]
    ... unit = "patient"
    ... max_rows_per_unit = 3
    ... [tables.visits.columns]
    ... patient = "integer"
    ... cost = { type = "decimal", bounds = [0, 500] }
    ... ''')
    >>> fuzz(schema, ["SELECT SUM(cost) FROM visits"], worlds=2).verdict
    <Verdict.CONSISTENT: 'consistent'>
    """
    texts = tuple(dict.fromkeys(questions))
    count, most = whole(worlds, name="worlds", least=1), whole(people, name="people", least=1)
    known = {**make_public_tables(schema, label), **(public or {})}
    spends = {"epsilon": epsilon, "delta": delta}, {"rho": rho, "delta": delta}
    compared = dict.fromkeys(texts, 0)
    refused: dict[str, str] = {}
    findings: list[Moved] = []
    for number in range(count):
        name = f"{label}/{number}"
        made = make_world(schema, name, public=known)
        chosen = _some(made.people(), most)
        with HidingEngine(made) as engine:
            for index, text in enumerate(texts):
                if text not in refused:
                    try:
                        prices = _prices(engine, text, spends)
                    except Refusal as refusal:
                        refused[text] = refusal.code
                    else:
                        more, words = _differences(engine, prices, chosen)
                        compared[text] += more
                        findings += [Moved(text, name, told) for told in words[:1]]
                if progress is not None:
                    progress((number + (index + 1) / len(texts)) / count)
    return Fuzz(compared, refused, tuple(findings))


def _prices(
    engine: HidingEngine, text: str, spends: tuple[Mapping[str, Number], ...]
) -> list[Priced]:
    """A question at the first spend, and at each other one for which it can be had."""
    prices = [find_price(engine, text, spends[0])]
    for spend in spends[1:]:
        with suppress(Refusal):
            prices.append(find_price(engine, text, spend))
    return prices


def _differences(
    engine: HidingEngine, prices: list[Priced], people: list[tuple[str, int]]
) -> tuple[int, list[str]]:
    """How many pairs of neighbours were compared, and what differs that should not."""
    runs = [(person, _events(engine, prices, person)) for person in people]
    if engine.schema.neighbours is Neighbours.CHANGE_ONE:
        # Without one and without another of the same entity: one person replaced.
        pairs = [(a, b) for (p, a), (q, b) in pairwise(runs) if p[0] == q[0]]
    else:
        everybody = _events(engine, prices, None)
        pairs = [(everybody, run) for _, run in runs]
    found: list[str] = []
    compared = 0
    for one, other in pairs:
        if (one is None) != (other is None):
            found.append(_FAILED)
        elif one is not None and other is not None:
            words, checked = compare(one, other)
            found += words
            compared += checked > 0
    return compared, found


def _events(
    engine: HidingEngine, prices: list[Priced], hidden: tuple[str, int] | None
) -> tuple[Event, ...] | None:
    """What enters the noise of a question, price by price; None if the engine fails."""
    engine.hide(hidden)
    with observe("fuzz") as seen:
        try:
            truth = engine.run(engine.compile(prices[0].plan))
            for priced in prices:
                same = priced.plan == prices[0].plan
                release(priced, truth if same else engine.run(engine.compile(priced.plan)))
        except Exception:
            return None
    return tuple(seen.events)


def _some(people: list[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    """At most so many people, the same share of every entity."""
    return people[:: max(1, len(people) // most)][:most]


__all__ = ["Fuzz", "Moved", "fuzz"]
