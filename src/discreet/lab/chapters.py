"""The chapters of the lab, in the order of a talk: each runs its attacks and says what was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from discreet.accounting.budget import Budget
from discreet.charts import Picture, lines
from discreet.errors import InvalidParameter
from discreet.lab import (
    auditing,
    dalenius,
    differencing,
    distance,
    floats,
    linkage,
    reconstruction,
    separations,
    simulation,
    tracing,
)
from discreet.lab.attacks import ATTACKS, TARGETS
from discreet.lab.outcome import Outcome, compare
from discreet.lab.target import Ours
from discreet.lab.town import SCHEMA, make_town
from discreet.mechanisms import Laplace


@dataclass(frozen=True, slots=True)
class Seen:
    """What a chapter saw: attacks with their success, other figures in words, pictures."""

    outcomes: tuple[Outcome, ...] = ()
    figures: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Chapter:
    """A name to type, a title, what it tells, and how it is run."""

    name: str
    title: str
    story: str
    run: Callable[[], Seen]


def _run_differencing() -> Seen:
    found = differencing.run()
    return Seen(tuple(found), pictures=(compare(found, "One person's secret"),))


def _linkage() -> Seen:
    found = [*linkage.run(), *try_out("link", make_town(400, name="linkage"))]
    town = make_town(60_000, name="a real town").to_pylist()
    ten = [{**person, "district": person["district"] // 10} for person in town]
    unique = linkage.share_unique(ten)
    figure = f"alone with district, birth date and sex, in a town of 60,000: {unique:.0%} of people"
    return Seen(tuple(found), (figure,), (compare(found, "Names for rows without names"),))


def _run_auditing() -> Seen:
    found = [
        *auditing.run_denials(),
        *try_out("audit", make_town(120)),
    ]
    rows = auditing.time_audits([6, 8, 10, 12, 14])
    tried = [(float(variables), float(count)) for variables, count, _ in rows]
    picture = lines(
        [("data sets tried", tried)],
        x="variables",
        y="data sets tried",
        y_scale="log",
        title="Deciding whether a bit is determined",
    )
    grows = f"the work grows {auditing.growth(rows):.2f} times with each variable"
    return Seen(tuple(found), (grows,), (picture, compare(found, "Secrets told by denials")))


def _reconstruction() -> Seen:
    found, picture = reconstruction.run()
    return Seen(tuple(found), pictures=(picture, compare(found, "Secret bits found")))


def _run_tracing() -> Seen:
    found, picture = tracing.run()
    return Seen(
        tuple(found), pictures=(picture, tracing.draw_power([25, 100], [10, 50, 250, 1_000]))
    )


def _floats() -> Seen:
    found = [
        *floats.run(),
        *try_out("floats", make_town(60)),
    ]
    return Seen(tuple(found), pictures=(compare(found, "Is the count 0 or 1?"),))


def _dalenius() -> Seen:
    found = [
        *dalenius.run(),
        *(dalenius.tip(60, epsilon=e, present=here) for e in (None, "1") for here in (True, False)),
        *try_out("dalenius", make_town(60_000, name="a country")),
    ]
    height, unknown = dalenius.tell_height()
    extracted = dalenius.measure_distance(12, 9, 4)
    bound = dalenius.distance_bound(9, 4)
    there, away = found[3].success, found[5].success
    figures = (
        f"what ε = 1 promises instead: the secret is learnt {there:.0%} of the time if the person "
        f"is in the data and {away:.0%} if not, and the one is at most e = 2.72 times the other",
        f"5 cm shorter than the average woman: {height:.1f} cm, known exactly with the mean, "
        f"to about {unknown:.0f} cm without",
        f"the extractor's distance from uniform: {extracted:.4f}, by the lemma at most {bound:.4f}",
    )
    return Seen(tuple(found), figures, (compare(found, "The gossip's secret"),))


def _separations() -> Seen:
    errors = separations.local_and_central([100, 1_000, 10_000, 100_000])
    picture = lines(
        [
            ("with a curator", [(float(n), central) for n, central, _ in errors]),
            ("each person alone", [(float(n), local) for n, _, local in errors]),
        ],
        x="people",
        y="error of a count",
        x_scale="log",
        y_scale="log",
        title="The price of trusting nobody, ε = 1",
    )
    needed = separations.draw_needed([2, 4, 6, 8, 10, 12, 14])
    shares = separations.draw_success(8, [4**power for power in range(1, 9)])
    found = separate(separations.Parity())
    return Seen(tuple(found), pictures=(needed, shares, picture))


def separate(attack: separations.Parity, epsilon: str = "1") -> list[Outcome]:
    """The parities of studies: asked of a curator, published in advance, each person alone."""
    studies = attack.make()
    tables, budget = {"people": studies.table}, Budget(epsilon=epsilon)
    with Ours(tables, schema=studies.schema, budget=budget, epsilon=epsilon) as ours:
        found = [attack.run(ours, studies.table, epsilon=Fraction(epsilon))]
    for make in (separations.InAdvance, separations.Reports):
        with make(studies, epsilon=epsilon) as target:
            found.append(attack.run(target, studies.table))
    return found


def _distance() -> Seen:
    found = distance.measure(200)
    figure = (
        f"one random row of 200: statistical distance {found.statistical_distance:g}, "
        f"δ = {found.deltas[-1][1]:g} even at ε = {found.deltas[-1][0]:g}, and "
        f"{found.exposed} person exposed each time"
    )
    tried = try_out("distance", make_town(200))
    return Seen(tuple(tried), (figure,), (distance.draw_curve(200),))


def _simulation() -> Seen:
    found = simulation.simulate(Laplace(sensitivity=1, epsilon="0.5"), 5)
    figure = (
        f"a sum of 5 bits at ε = 0.5 and its simulator, {found.compared} comparisons: the largest "
        f"loss is {found.loss:g}, the largest distance {found.distance:.3f}"
    )
    tried = try_out("simulate", make_town(200))
    return Seen(tuple(tried), (figure,), (simulation.draw_loss(5), compare(tried, "Real or made?")))


def try_out(name: str, people: pa.Table, epsilon: str = "1") -> list[Outcome]:
    """The attacks of a chapter on anything with an ``ask``: on what they break, and on ours."""
    tables, found = {"people": people}, []
    for attack in ATTACKS[name]:
        for make in TARGETS[attack.name]:
            with make(tables) as target:
                found.append(attack.run(target, people))
        price = str(Fraction(epsilon) / attack.questions)
        with Ours(tables, schema=SCHEMA, budget=Budget(epsilon=epsilon), epsilon=price) as ours:
            found.append(attack.run(ours, people, epsilon=Fraction(epsilon)))
    return found


CHAPTERS = (
    Chapter(
        "difference",
        "Two harmless questions",
        "Everybody, less everybody else, is one person. Refusing small counts does not help, and "
        "fresh noise each time is averaged away. An account of what was said does help.",
        _run_differencing,
    ),
    Chapter(
        "link",
        "Rows without names",
        "A register gives them their names back. Blurring rows until each looks like others leaves "
        "groups whose members all share a secret, and two blurred releases unblur each other.",
        _linkage,
    ),
    Chapter(
        "audit",
        "The auditor who says no",
        "Refusing whatever would reveal a value reveals it by the refusal. To decide when to "
        "refuse is, for sums of bits, as hard as anything in NP.",
        _run_auditing,
    ),
    Chapter(
        "reconstruct",
        "Too many answers, too accurate",
        "Sums over random halves, each off by less than the square root of the number of people, "
        "are the data. Tables of small blocks, printed exactly, are the people in them.",
        _reconstruction,
    ),
    Chapter(
        "trace",
        "Were you in the study?",
        "The means of a few thousand columns tell who was averaged. With ε, members are found no "
        "more often than e^ε times others are taken for them.",
        _run_tracing,
    ),
    Chapter(
        "floats",
        "The last bits",
        "Noise in doubles reaches other numbers around 0 than around 1.",
        _floats,
    ),
    Chapter(
        "dalenius",
        "What nobody can promise",
        "Dalenius asked that a database tell no more about you than could be known without it. "
        "There is gossip that only the database unlocks, about people who are not even in it. What "
        "can be promised is that it hardly matters whether you are.",
        _dalenius,
    ),
    Chapter(
        "separate",
        "Asking, publishing, trusting nobody",
        "A question asked of a curator needs a handful of people where a publication made in "
        "advance, or reports that everybody randomises alone, need exponentially more.",
        _separations,
    ),
    Chapter(
        "distance",
        "Close is not private",
        "Publishing one random row changes almost nothing, measured by statistical distance, and "
        "exposes somebody every time.",
        _distance,
    ),
    Chapter(
        "simulate",
        "What could be said without you",
        "A simulator that has never seen your row makes the same release, up to e^ε in any event.",
        _simulation,
    ),
)


def find_chapter(name: str) -> Chapter:
    """The chapter with that name."""
    for chapter in CHAPTERS:
        if chapter.name == name:
            return chapter
    raise InvalidParameter(
        "P5",
        f"the lab has no chapter {name!r}.",
        why="each chapter runs one kind of attack.",
        fix=f"one of: {', '.join(chapter.name for chapter in CHAPTERS)}.",
    )


__all__ = ["CHAPTERS", "Chapter", "Seen", "find_chapter", "separate"]
