"""What a number like epsilon = 0.5 promises to a person.

Everything here follows from the inequality P(S) <= e**epsilon Q(S) + delta for
neighbouring data sets, and from nothing else: it holds against any observer,
with any knowledge and any amount of computing, for ever.  Two things can be
learnt about a person: *that they took part* and *what their data say*.  Where
neighbours add or remove a unit the first is one step and the second two, since
both values are one step from absence.  Where neighbours change a unit, what the
data say is one step, and whether somebody took part is not at stake.  The
numbers are worst cases, rounded against us.  Proofs: docs/meaning.md.

>>> promise = Meaning(epsilon="0.5", delta="1e-6")
>>> [round(float(bound), 4) for bound in promise.presence.posterior("0.3")]
[0.2063, 0.414]
>>> [round(float(bound), 4) for bound in promise.value.posterior("0.3")]
[0.1362, 0.5381]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.accounting.drawing import Axis, Chart, Line, svg
from discreet.accounting.loss import Loss
from discreet.accounting.neighbours import Neighbours
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import ball, enclose, exp_down, exp_up
from discreet.exact.numbers import Exact, decimal_up, nonnegative, positive, proportion, whole

_POINTS = 60  # of a drawn curve
_SHOWN_PRIORS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
_SHOWN_ALPHAS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20))
_GREATEST_EPSILON = 700


@dataclass(frozen=True, slots=True)
class Worlds:
    """Two worlds that differ in one thing about you, and how well anyone can tell which is real.

    They are ``steps`` neighbours apart: one, or two if each is a neighbour of a
    third.  ``step_epsilon`` and ``step_delta`` are the loss of one step.

    >>> values = Worlds(Fraction(1, 2), steps=2)
    >>> values.epsilon, round(float(values.belief_change), 4)
    (Fraction(1, 1), 0.2449)
    """

    step_epsilon: Fraction
    step_delta: Fraction = Fraction(0)
    steps: int = 1

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of all steps: they add up (DMNS section 2)."""
        return self.steps * self.step_epsilon

    @property
    def delta(self) -> Fraction:
        """The delta of all steps, the later ones magnified: (1 + e**epsilon) delta for two."""
        growth = exp_up(self.step_epsilon)
        magnified = (growth**k * self.step_delta for k in range(self.steps))
        return min(Fraction(1), sum(magnified, start=Fraction(0)))

    # --- odds and beliefs ------------------------------------------------------------------

    @property
    def factor(self) -> Fraction:
        """e**epsilon: how much likelier any event may become (DMNS Definition 2.1), rounded up."""
        return exp_up(self.epsilon)

    def posterior(self, prior: Exact) -> tuple[Fraction, Fraction]:
        """The least and the greatest belief, after the release, of one who believed ``prior``.

        Odds are multiplied by at most e**epsilon, either way (V section 1.6; DMNS
        Proposition A-5 with the steps counted), for an observer who knows all
        other data.  With delta > 0 this is said of an ideal release, from which the
        real one differs with probability at most ``ideal_gap`` (DR Lemma 3.17).

        >>> low, high = Worlds(Fraction(2)).posterior("0.01")
        >>> round(float(high), 4)
        0.0695
        """
        belief = proportion(prior, name="prior", closed=True)
        growth = self.factor
        highest = growth * belief / (1 - belief + growth * belief)
        lowest = belief / (belief + growth * (1 - belief))
        return lowest, highest

    @property
    def belief_change(self) -> Fraction:
        """The most that any belief can move, from any prior: tanh(epsilon / 4), rounded up."""
        return min(Fraction(1), enclose(lambda: ball(self.epsilon / 4).tanh())[1])

    @property
    def ideal_gap(self) -> Fraction:
        """delta / (1 + e**epsilon): how often the release is not what an ideal one would be.

        There are two laws that are e**epsilon-close for certain and differ from
        the real ones by at most this (DR Lemma 3.17, part 2).  It is *not* true
        that the loss exceeds epsilon with probability at most delta.
        """
        return self.delta / (1 + exp_down(self.epsilon))

    # --- tests -----------------------------------------------------------------------------

    def power(self, false_positives: Exact) -> Fraction:
        """The most often a test can be right about you when wrong this often, rounded up.

        ``false_positives`` is how often it is wrong, the alpha below.

        One step: 1 - beta <= e**epsilon alpha + delta (Wasserman and Zhou 2010).
        The same with both worlds exchanged is 1 - alpha <= e**epsilon beta + delta,
        that is 1 - beta <= 1 - e**-epsilon (1 - delta - alpha).  Together they are
        tight (Kairouz, Oh and Viswanath 2015).  A second step starts from what the
        first allows, which is tight as well (docs/meaning.md).

        >>> round(float(Worlds(Fraction(1, 2), Fraction(1, 10**6)).power("0.05")), 4)
        0.0824
        """
        alpha = proportion(false_positives, name="false_positives", closed=True)
        growth = exp_up(self.step_epsilon)
        for _ in range(self.steps):
            first = growth * alpha + self.step_delta
            second = 1 - (1 - self.step_delta - alpha) / growth
            # Above alpha = 1 - delta the second branch exceeds one.
            alpha = min(Fraction(1), first, second)
        return alpha

    @property
    def advantage(self) -> Fraction:
        """The most that true positives can exceed false ones, over all tests.

        (e**eps - 1 + 2 delta)/(e**eps + 1) for one step, 1 - e**-eps (1 - 2 delta)
        for two of eps each; half of it is how much better than a coin anyone can
        guess which of the two worlds is real.
        """
        growth = exp_up(self.step_epsilon)
        if self.steps == 1:
            return min(Fraction(1), 1 - 2 * (1 - self.step_delta) / (1 + growth))
        return min(Fraction(1), 1 - (1 - 2 * self.step_delta) / growth)

    @property
    def best_guess(self) -> Fraction:
        """How often the best guess is right when either world is as likely as the other."""
        return (1 + self.advantage) / 2

    # --- consequences ----------------------------------------------------------------------

    def utility(self, expected: Exact, *, most: Exact) -> tuple[Fraction, Fraction]:
        """Bounds on what you expect of your future in one world, from what in the other.

        ``expected`` is what you expect in the other.

        For any way to value outcomes between 0 and ``most``, the expectation is
        multiplied by at most e**epsilon, either way, up to delta * most (DR 2.3.1).

        >>> premium = Worlds(Fraction(1, 10)).utility(expected=800, most=5000)
        >>> [round(float(bound), 2) for bound in premium]
        [723.87, 884.14]
        """
        top = positive(most, name="most")
        without = nonnegative(expected, name="expected")
        if without > top:
            raise InvalidParameter(
                "P4",
                f"expected {without} is more than most, {top}.",
                why="an expectation cannot exceed the greatest possible value.",
                fix="pass most as the greatest value an outcome can have for you.",
            )
        failing = self.delta * top
        lowest = max(Fraction(0), (without - failing) / self.factor)
        return lowest, min(top, self.factor * without + failing)

    # --- as numbers ------------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        """Every number as a decimal string rounded against us."""
        return {
            "epsilon": decimal_up(self.epsilon, 12),
            "delta": decimal_up(self.delta, 12),
            "factor": decimal_up(self.factor, 12),
            "belief_change": decimal_up(self.belief_change, 12),
            "ideal_gap": decimal_up(self.ideal_gap, 12),
            "advantage": decimal_up(self.advantage, 12),
            "posterior": {
                decimal_up(prior): [_decimal_down(low), decimal_up(high, 12)]
                for prior, (low, high) in ((p, self.posterior(p)) for p in _SHOWN_PRIORS)
            },
            "power": {
                decimal_up(alpha): decimal_up(self.power(alpha), 12) for alpha in _SHOWN_ALPHAS
            },
        }

    def rows(self, about: str) -> Iterator[tuple[str, str]]:
        """Rows of (what, how much) for a table; ``about`` is what the worlds differ in."""
        yield f"{about}: any outcome at most so many times likelier", _times(self.factor)
        yield f"{about}: any belief moves by at most", f"{_points(self.belief_change)} points"
        for prior in _SHOWN_PRIORS:
            low, high = self.posterior(prior)
            after = f"{_percent(low, down=True)} to {_percent(high)}"
            yield f"{about}: a belief of {_percent(prior)} becomes", after
        yield f"{about}: the best guess is right", _percent(self.best_guess)
        yield f"{about}: the advantage over blind guessing", _percent(self.advantage)
        for alpha in _SHOWN_ALPHAS:
            what = f"{about}: power of a test wrong {_percent(alpha)} of the time"
            yield what, _percent(self.power(alpha))
        yield f"{about}: expected good or harm changes by a factor of", _times(self.factor)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What (epsilon, delta) promises to ``group`` people whose data are released together.

    ``epsilon`` and ``delta`` are for one unit, under ``neighbours``: the relation
    they were stated for decides how far apart the worlds of ``presence`` and of
    ``value`` are.

    >>> family = Meaning(epsilon="0.5", delta="1e-6", group=4)
    >>> family.joint_epsilon, round(float(family.joint_delta), 7)
    (Fraction(2, 1), 1.79e-05)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    group: int = 1
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    joint_epsilon: Fraction = field(init=False)
    """The epsilon of the whole group: group * epsilon (DMNS section 2, DR Theorem 2.2)."""
    joint_delta: Fraction = field(init=False)
    """The delta of the whole group: group * e**((group - 1) epsilon) * delta, rounded up."""

    def __post_init__(self) -> None:
        epsilon = positive(self.epsilon, name="epsilon")
        delta = nonnegative(self.delta, name="delta")
        group = whole(self.group, name="group", least=1)
        if group * epsilon > _GREATEST_EPSILON:
            raise InvalidParameter(
                "P2",
                f"epsilon times group must be at most {_GREATEST_EPSILON}, "
                f"got {decimal_up(group * epsilon)}.",
                why="so large a loss promises nothing to a person that could be put in words.",
                fix="pass an epsilon such as '0.5'.",
            )
        if self.neighbours not in list(Neighbours):
            raise InvalidParameter(
                "P4",
                f"neighbours must be one of {', '.join(Neighbours)}, "
                f"got {quote_value(self.neighbours)}.",
                why="an epsilon says nothing until it is said which data sets it compares.",
                fix="pass the neighbours that the schema declares: 'add/remove' unless it says so.",
            )
        together = Loss.approximate(epsilon, delta).for_group(group)
        joint = Fraction(together.epsilon), together.delta
        for name, value in (
            ("epsilon", epsilon),
            ("delta", delta),
            ("group", group),
            ("neighbours", Neighbours(self.neighbours)),
            ("joint_epsilon", joint[0]),
            ("joint_delta", joint[1]),
        ):
            object.__setattr__(self, name, value)

    @property
    def presence(self) -> Worlds | None:
        """With you in the data, or without; None where neighbours never differ in that."""
        if self.neighbours is Neighbours.CHANGE_ONE:
            return None
        return Worlds(self.joint_epsilon, self.joint_delta)

    @property
    def value(self) -> Worlds:
        """Your data as they are, or any others in their place."""
        # Under add/remove a change is one removal and one addition.
        steps = 1 if self.neighbours is Neighbours.CHANGE_ONE else 2
        return Worlds(self.joint_epsilon, self.joint_delta, steps)

    # --- in words and as a picture ---------------------------------------------------------

    def __str__(self) -> str:
        return self.paragraph

    @property
    def paragraph(self) -> str:
        """The promise in plain words."""
        presence, value = self.presence, self.value
        you = "you" if self.group == 1 else f"the {self.group} of you"
        but = (
            f", but for what δ = {decimal_up(self.joint_delta, 3)} leaves,"
            if self.joint_delta
            else ""
        )
        said = [] if presence is None else [_say_presence(presence, you, but)]
        said.append(_say_value(value, but))
        if presence is None:
            said.append(
                "How many took part is taken to be known, and that you are among them rather "
                "than nobody in your place is not hidden."
            )
        # D06 Theorem 1: no release that is of any use can promise more.
        said.append(
            "All this is about what your own data add: what the release teaches about "
            "everybody holds for you as well, had you taken part or not."
        )
        if self.joint_delta:
            gap = max(worlds.ideal_gap for worlds in (presence, value) if worlds is not None)
            said.append(
                "The statements about guesses and tests allow for "
                f"δ = {decimal_up(self.joint_delta, 3)} already; the others hold for an ideal "
                f"release, from which the real one differs with probability at most "
                f"{decimal_up(gap, 3)}."
            )
        return " ".join(said)

    def table(self) -> list[tuple[str, str]]:
        """The same as rows of (what, how much), each rounded against us."""
        rows = [
            ("epsilon", decimal_up(self.joint_epsilon)),
            ("delta", decimal_up(self.joint_delta)),
        ]
        if self.presence is not None:
            rows += self.presence.rows("presence")
        rows += self.value.rows("value")
        return rows

    def to_json(self) -> dict[str, object]:
        """Every number as a decimal string rounded against us, and the paragraph."""
        return {
            "epsilon": decimal_up(self.epsilon, 12),
            "delta": decimal_up(self.delta, 12),
            "group": self.group,
            "neighbours": str(self.neighbours),
            "presence": None if self.presence is None else self.presence.to_json(),
            "value": self.value.to_json(),
            "meaning": self.paragraph,
        }

    def svg(self) -> str:
        """Two charts: how well anyone can test for you, and how far a belief can move."""
        named = [("that you took part", self.presence), ("what your data say", self.value)]
        drawn = [(about, worlds) for about, worlds in named if worlds is not None]
        knee = (1 - self.joint_delta) / (1 + exp_up(self.joint_epsilon))
        alphas = sorted({*_grid(), knee, self.joint_delta, 1 - self.joint_delta})
        alphas = [alpha for alpha in alphas if 0 <= alpha <= 1]
        tests = Chart(
            "Testing for something about you",
            Axis("accused though it is not so (false positives)", 0, 1, percent=True),
            Axis("found where it is so", 0, 1, percent=True),
            [
                *(
                    Line(f"possible: {about}", _draw(alphas, worlds.power), shaded=True)
                    for about, worlds in drawn
                ),
                Line("guessing blindly", [(0, 0), (1, 1)]),
            ],
        )
        beliefs = Chart(
            "Believing something about you",
            Axis("belief before the release", 0, 1, percent=True),
            Axis("belief after", 0, 1, percent=True),
            [
                *(line for about, worlds in drawn for line in _belief_lines(about, worlds)),
                Line("unchanged", [(0, 0), (1, 1)]),
            ],
        )
        people = "" if self.group == 1 else f", for {self.group} people together"
        title = (
            f"What ε = {decimal_up(self.epsilon)}, δ = {decimal_up(self.delta)} promises{people}"
        )
        return svg((tests, beliefs), title=title, description=self.paragraph)

    def _repr_svg_(self) -> str:
        """Shown by notebooks."""
        return self.svg()


_BELIEF = Fraction(1, 10)  # the one that words speak of


def _say_presence(presence: Worlds, you: str, but: str) -> str:
    low, high = presence.posterior(_BELIEF)
    return (
        f"Whatever is released, every possible outcome is{but} at most {_times(presence.factor)} "
        "times as likely with your data as without, and the other way round. "
        f"Someone who knows everybody else's data and thinks it {_percent(_BELIEF)} likely that "
        f"{you} took part will, after seeing the release, think it between "
        f"{_percent(low, down=True)} and {_percent(high)} likely; no belief about whether {you} "
        f"took part moves by more than {_points(presence.belief_change)} percentage points. "
        f"Whatever good or harm may come of the release, what {you} can expect of it changes "
        f"by a factor of at most {_times(presence.factor)} if you take part. "
        "Deciding between your presence and your absence, the best guess is right at most "
        f"{_percent(presence.best_guess)} of the time, where a coin is right 50% of the time; a "
        "test that accuses the absent 5% of the time finds the present at most "
        f"{_percent(presence.power(Fraction(1, 20)))} of the time."
    )


def _say_value(value: Worlds, but: str) -> str:
    low, high = value.posterior(_BELIEF)
    why = ", for two values are two steps apart, a removal and an addition" * (value.steps == 2)
    return (
        f"About what your data say, every possible outcome is{but} at most "
        f"{_times(value.factor)} times as likely with your data as they are as with any others in "
        f"their place{why}. Someone who knows everybody else's data and thinks something about "
        f"yours {_percent(_BELIEF)} likely will think it between {_percent(low, down=True)} and "
        f"{_percent(high)} likely; no belief about your data moves by more than "
        f"{_points(value.belief_change)} percentage points. "
        "Deciding between two values of your data, the best guess is right at most "
        f"{_percent(value.best_guess)} of the time; a test that is wrong about the one 5% of the "
        f"time finds the other at most {_percent(value.power(Fraction(1, 20)))} of the time."
    )


def _grid() -> list[Fraction]:
    # Squares near both ends, where the curves bend most.
    half = [Fraction(k * k, 2 * _POINTS * _POINTS) for k in range(_POINTS + 1)]
    return sorted({*half, *(1 - point for point in half)})


def _belief_lines(about: str, worlds: Worlds) -> list[Line]:
    return [
        Line(f"at most: {about}", _draw(_grid(), lambda prior: worlds.posterior(prior)[1])),
        Line(f"at least: {about}", _draw(_grid(), lambda prior: worlds.posterior(prior)[0])),
    ]


def _draw(
    points: list[Fraction], function: Callable[[Fraction], Fraction]
) -> list[tuple[float, float]]:
    return [(float(point), float(function(point))) for point in points]


def _percent(share: Fraction, *, down: bool = False) -> str:
    """A probability as a percentage of three digits, rounded against us."""
    text = _decimal_down(share * 100, 3) if down else decimal_up(share * 100, 3)
    # A bound that falls short of certainty must not be printed as certainty.
    return f"{text}%" if share == 1 or Fraction(text) < 100 else f"{decimal_up(share * 100, 12)}%"


def _points(share: Fraction) -> str:
    return decimal_up(share * 100, 3)


def _times(factor: Fraction) -> str:
    """A factor of at least one, with three digits of what it is above one."""
    return decimal_up(1 + Fraction(decimal_up(factor - 1, 3)), 12)


def _decimal_down(x: Fraction, digits: int = 12) -> str:
    text = decimal_up(-x, digits)
    return text.removeprefix("-")
