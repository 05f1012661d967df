"""Statistical distance is not enough: the mechanism that publishes one random row.

DMNS Example 3 and Vadhan 1.6: on neighbouring tables of n rows its outputs are within statistical
distance 1/n, as small as anybody may wish, and it publishes somebody's row every time.  Its
(ε, δ) curve is flat at δ = 1/n however large ε is: that is why δ must lie far below 1/n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from discreet.accounting.divergence import hockey_stick, total_variation
from discreet.accounting.law import FiniteLaw
from discreet.charts import Picture, lines
from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome, most_right
from discreet.lab.target import Denied, Open, Rows, Target, begin_anew
from discreet.lab.town import guess_prior, secrets_of
from discreet.mechanisms import Laplace


@dataclass(frozen=True, slots=True)
class Exposure:
    """What one random row says of neighbours, computed exactly, and who is exposed."""

    people: int
    statistical_distance: float
    deltas: tuple[tuple[float, float], ...]
    """δ(ε) for some ε."""
    exposed: int = 1
    """How many people's rows are published as they are, each time."""


def laws(people: int) -> tuple[FiniteLaw, FiniteLaw]:
    """The output's law with your row as it is, and with another row in its place."""
    share = Fraction(1, people)
    rest = [(f"row {i}", share) for i in range(1, people)]
    one = FiniteLaw.exact([*rest, ("yours", share), ("another", Fraction(0))])
    other = FiniteLaw.exact([*rest, ("yours", Fraction(0)), ("another", share)])
    return one, other


def measure(people: int, epsilons: tuple[str, ...] = ("0", "1", "5", "20")) -> Exposure:
    """Both distances, from both laws.

    >>> found = measure(50)
    >>> found.statistical_distance, [delta for _, delta in found.deltas]
    (0.02, [0.02, 0.02, 0.02, 0.02])
    """
    one, other = laws(people)
    deltas = tuple((float(e), float(hockey_stick(one, other, e)[1])) for e in epsilons)
    return Exposure(people, float(total_variation(one, other)[1]), deltas)


def draw_curve(people: int, epsilon: str = "1") -> Picture:
    """δ against ε: of one random row, and of a count with Laplace noise."""
    one, other = laws(people)
    mechanism = Laplace(sensitivity=1, epsilon=epsilon)
    near, far = mechanism.law(0), mechanism.law(1)
    steps = [str(Fraction(k, 10)) for k in range(31)]
    row = [(float(Fraction(e)), float(hockey_stick(one, other, e)[1])) for e in steps]
    count = [(float(Fraction(e)), float(hockey_stick(near, far, e)[1])) for e in steps]
    count = [(e, delta) for e, delta in count if delta > 0]  # and none beyond
    return lines(
        [("one random row", row), (f"a count at ε = {epsilon}", count)],
        x="ε",
        y="δ",
        y_scale="log",
        title=f"One random row of {people}: close in distance, and a breach every time",
        subtitle="its δ never falls below 1/n, whatever ε; that of a count is soon 0",
    )


# --- of anything with an ask -------------------------------------------------------------------


class RandomRow(Open):
    """Publishes one row at random each time, and answers from it whatever is asked."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        super().__init__(tables)
        self.name = "one random row"
        self._dice = Dice("a random row")

    def ask(self, question: str) -> Rows:
        """The answer of a table with one row."""
        for name, table in self._tables.items():
            place = int(self._dice.below(table.num_rows, 1)[0])
            self._database.register(name, table.slice(place, 1))
        return super().ask(question)


@dataclass(frozen=True, slots=True)
class Taking:
    """Anybody's secret, whoever's: the likeliest of all people and values.

    People are told apart by their numbers, one group for each person and value.  The person is
    chosen after the answer; what is said of whoever is chosen is bounded all the same, for a
    belief about anybody moves by no more than e^(2ε) whatever comes out.
    """

    questions: int = 1
    rounds: int = 40
    name: str = "taking what is published"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How often the person and the secret with the largest count belong together."""
        secret, size = secrets_of(people), len(people)
        question = (
            f"SELECT MOD(id, {size}) AS person, secret, COUNT(*) AS n FROM people "  # noqa: S608
            f"GROUP BY MOD(id, {size}), secret"
        )
        right = 0
        for number in range(self.rounds):
            begin_anew(target)
            try:
                rows = [row for row in target.ask(question) if None not in row]
            except Denied:
                rows = []
            dice = Dice(f"ties/{number}")  # of equal counts no place is better than another
            order = dice.order(len(rows)).tolist()
            if rows:
                person, value, _ = rows[max(order, key=lambda place: rows[place][2])]
                right += int(secret[int(person)] == int(value))
        prior = guess_prior(people)
        bound = most_right(prior, epsilon)
        return Outcome(self.name, target.name, right, self.rounds, prior, bound)


__all__ = ["Exposure", "RandomRow", "Taking", "draw_curve", "laws", "measure"]
