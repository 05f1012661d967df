"""What a number like epsilon = 0.5 promises to a person.

Everything here follows from the inequality P(S) <= e**epsilon Q(S) + delta for
the two worlds "with you" and "without you", and from nothing else: it holds
against any observer, with any knowledge and any amount of computing, for ever.
The numbers are worst cases, rounded against us.  Proofs: docs/meaning.md.

>>> promise = Meaning(epsilon="0.5", delta="1e-6")
>>> before_and_after = promise.posterior("0.3")
>>> [round(float(bound), 4) for bound in before_and_after]
[0.2063, 0.414]
>>> round(float(promise.advantage), 4)
0.2449
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.accounting.drawing import Axis, Chart, Line, svg
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, enclose, exp_down, exp_up
from discreet.exact.numbers import Exact, decimal_up, nonnegative, positive, proportion, whole

_POINTS = 60  # of a drawn curve
_SHOWN_PRIORS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
_GREATEST_EPSILON = 700


@dataclass(frozen=True, slots=True)
class Meaning:
    """What (epsilon, delta) promises to ``group`` people whose data are released together.

    ``epsilon`` and ``delta`` are for one unit, under the neighbour relation they
    were stated for: with add/remove neighbours the two worlds are "you are in
    the data" and "you are not"; for two values of your row take the loss of
    changing one unit (``Loss.change_one``).

    >>> family = Meaning(epsilon="0.5", delta="1e-6", group=4)
    >>> family.joint_epsilon, round(float(family.joint_delta), 7)
    (Fraction(2, 1), 1.79e-05)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    group: int = 1
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
        together = Loss.approximate(epsilon, delta).for_group(group)
        joint = Fraction(together.epsilon), together.delta
        for name, value in (
            ("epsilon", epsilon),
            ("delta", delta),
            ("group", group),
            ("joint_epsilon", joint[0]),
            ("joint_delta", joint[1]),
        ):
            object.__setattr__(self, name, value)

    # --- odds and beliefs ------------------------------------------------------------------

    @property
    def factor(self) -> Fraction:
        """e**epsilon: how much likelier any event may become (DMNS Definition 2.1), rounded up."""
        return exp_up(self.joint_epsilon)

    def posterior(self, prior: Exact) -> tuple[Fraction, Fraction]:
        """The least and the greatest belief, after the release, of one who believed ``prior``.

        Odds are multiplied by at most e**epsilon, either way (DMNS Proposition
        A-5; V section 1.6), for an observer who knows all other data.  With
        delta > 0 this is said of an ideal release, from which the real one
        differs with probability at most ``ideal_gap`` (DR Lemma 3.17).

        >>> low, high = Meaning(epsilon="2").posterior("0.01")
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
        return min(Fraction(1), enclose(lambda: ball(self.joint_epsilon / 4).tanh())[1])

    @property
    def ideal_gap(self) -> Fraction:
        """delta / (1 + e**epsilon): how often the release is not what an ideal one would be.

        There are two laws that are e**epsilon-close for certain and differ from
        the real ones by at most this (DR Lemma 3.17, part 2).  It is *not* true
        that the loss exceeds epsilon with probability at most delta.
        """
        return self.joint_delta / (1 + exp_down(self.joint_epsilon))

    # --- tests -----------------------------------------------------------------------------

    def power(self, false_positives: Exact) -> Fraction:
        """The most often a test can be right about you when wrong this often, rounded up.

        1 - beta <= e**epsilon alpha + delta (Wasserman and Zhou 2010).  The same
        with both worlds exchanged is 1 - alpha <= e**epsilon beta + delta, that
        is 1 - beta <= 1 - e**-epsilon (1 - delta - alpha).  Together they are
        tight: one mechanism attains them at every alpha (Kairouz, Oh and
        Viswanath 2015).

        >>> round(float(Meaning(epsilon="0.5", delta="1e-6").power("0.05")), 4)
        0.0824
        """
        alpha = proportion(false_positives, name="false_positives", closed=True)
        first = self.factor * alpha + self.joint_delta
        second = 1 - (1 - self.joint_delta - alpha) / self.factor
        # Above alpha = 1 - delta the second branch exceeds one.
        return min(Fraction(1), first, second)

    @property
    def advantage(self) -> Fraction:
        """The most that true positives can exceed false ones: (e**eps - 1 + 2 delta)/(e**eps + 1).

        It is the largest membership advantage, and half of it is how much
        better than a coin anyone can guess whether you were in the data.
        """
        return min(Fraction(1), 1 - 2 * (1 - self.joint_delta) / (1 + self.factor))

    # --- consequences ----------------------------------------------------------------------

    def utility(self, expected: Exact, *, most: Exact) -> tuple[Fraction, Fraction]:
        """Bounds on what you expect of your future with the release, from what without it.

        For any way to value outcomes between 0 and ``most``, the expectation is
        multiplied by at most e**epsilon, either way, up to delta * most (DR 2.3.1).

        >>> premium = Meaning(epsilon="0.1").utility(expected=800, most=5000)
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
        failing = self.joint_delta * top
        lowest = max(Fraction(0), (without - failing) / self.factor)
        return lowest, min(top, self.factor * without + failing)

    # --- in words and as a picture ---------------------------------------------------------

    def __str__(self) -> str:
        return self.paragraph

    @property
    def paragraph(self) -> str:
        """The promise in plain words."""
        you, your = ("you", "your") if self.group == 1 else (f"the {self.group} of you", "your")
        belief = Fraction(1, 10)
        low, high = self.posterior(belief)
        even = (1 + self.advantage) / 2
        text = (
            f"Whatever is released, every possible outcome is at most {_times(self.factor)} times "
            f"as likely with {your} data as without, and the other way round. "
            f"Someone who knows everybody else's data and thinks it {_percent(belief)} likely that "
            f"{you} took part will, after seeing the release, think it between "
            f"{_percent(low, down=True)} and {_percent(high)} likely; no belief moves by more than "
            f"{_points(self.belief_change)} percentage points. "
            f"Whatever good or harm may come of the release, what {you} can expect of it changes "
            f"by a factor of at most {_times(self.factor)}. "
            f"Deciding between {your} presence and {your} absence, the best guess is right at most "
            f"{_percent(even)} of the time, where a coin is right 50% of the time; a test that "
            f"accuses the absent 5% of the time finds the present at most "
            f"{_percent(self.power(Fraction(1, 20)))} of the time."
        )
        if not self.joint_delta:
            return text
        return (
            f"{text} The statements about guesses and tests allow for "
            f"δ = {decimal_up(self.joint_delta, 3)} already; those before them hold for an ideal "
            f"release, from which the real one differs with probability at most "
            f"{decimal_up(self.ideal_gap, 3)}."
        )

    def table(self) -> list[tuple[str, str]]:
        """The same as rows of (what, how much), each rounded against us."""
        rows = [
            ("epsilon", decimal_up(self.joint_epsilon)),
            ("delta", decimal_up(self.joint_delta)),
            ("any outcome at most so many times likelier", _times(self.factor)),
            ("any belief moves by at most", f"{_points(self.belief_change)} points"),
        ]
        for prior in _SHOWN_PRIORS:
            low, high = self.posterior(prior)
            after = f"{_percent(low, down=True)} to {_percent(high)}"
            rows.append((f"a belief of {_percent(prior)} becomes", after))
        rows += [
            ("best guess of presence is right", _percent((1 + self.advantage) / 2)),
            ("membership advantage", _percent(self.advantage)),
        ]
        for alpha in (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20)):
            rows.append(
                (
                    f"power of a test wrong {_percent(alpha)} of the time",
                    _percent(self.power(alpha)),
                )
            )
        rows.append(("expected good or harm changes by a factor of", _times(self.factor)))
        return rows

    def to_json(self) -> dict[str, object]:
        """Every number as a decimal string rounded against us, and the paragraph."""
        return {
            "epsilon": decimal_up(self.epsilon, 12),
            "delta": decimal_up(self.delta, 12),
            "group": self.group,
            "joint_epsilon": decimal_up(self.joint_epsilon, 12),
            "joint_delta": decimal_up(self.joint_delta, 12),
            "factor": decimal_up(self.factor, 12),
            "belief_change": decimal_up(self.belief_change, 12),
            "ideal_gap": decimal_up(self.ideal_gap, 12),
            "advantage": decimal_up(self.advantage, 12),
            "posterior": {
                decimal_up(prior): [_decimal_down(low), decimal_up(high, 12)]
                for prior, (low, high) in ((p, self.posterior(p)) for p in _SHOWN_PRIORS)
            },
            "power": {
                decimal_up(alpha): decimal_up(self.power(alpha), 12)
                for alpha in (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20))
            },
            "meaning": self.paragraph,
        }

    def svg(self) -> str:
        """Two charts: how well anyone can test for you, and how far a belief can move."""
        knee = (1 - self.joint_delta) / (1 + self.factor)
        alphas = sorted({*_grid(), knee, self.joint_delta, 1 - self.joint_delta})
        alphas = [alpha for alpha in alphas if 0 <= alpha <= 1]
        tests = Chart(
            "Testing whether you are in the data",
            Axis("wrong about the absent (false positives)", 0, 1, percent=True),
            Axis("right about the present", 0, 1, percent=True),
            (
                Line("possible with this promise", _draw(alphas, self.power), shaded=True),
                Line("guessing blindly", [(0, 0), (1, 1)]),
                Line("e^ε α + δ alone", _draw(alphas, self._first_branch)),
            ),
        )
        beliefs = Chart(
            "Believing that you are in the data",
            Axis("belief before the release", 0, 1, percent=True),
            Axis("belief after", 0, 1, percent=True),
            (
                Line("at most", _draw(_grid(), lambda prior: self.posterior(prior)[1])),
                Line("unchanged", [(0, 0), (1, 1)]),
                Line("at least", _draw(_grid(), lambda prior: self.posterior(prior)[0])),
            ),
        )
        people = "" if self.group == 1 else f", for {self.group} people together"
        title = (
            f"What ε = {decimal_up(self.epsilon)}, δ = {decimal_up(self.delta)} promises{people}"
        )
        return svg((tests, beliefs), title=title, description=self.paragraph)

    def _first_branch(self, alpha: Fraction) -> Fraction:
        return self.factor * alpha + self.joint_delta

    def _repr_svg_(self) -> str:
        """Shown by notebooks."""
        return self.svg()


def _grid() -> list[Fraction]:
    # Squares near both ends, where the curves bend most.
    half = [Fraction(k * k, 2 * _POINTS * _POINTS) for k in range(_POINTS + 1)]
    return sorted({*half, *(1 - point for point in half)})


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
