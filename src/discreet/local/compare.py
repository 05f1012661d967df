"""The same question asked of a trusted curator and of the respondents themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.exact.numbers import Exact, proportion, whole
from discreet.local.choose import best
from discreet.local.margins import interval
from discreet.local.odds import check_epsilon
from discreet.mechanisms import Laplace


@dataclass(frozen=True, slots=True)
class Comparison:
    """Margins of a count, centrally and locally, at one price.

    Of one of ``categories`` answers, at ``epsilon``, with so many ``respondents``: ``central`` is
    the margin from a curator whom everybody trusts, ``local`` that from reports of ``randomizer``;
    so many as ``needed`` give the local share the margin that the central one has.
    """

    categories: int
    epsilon: Fraction
    respondents: int
    central: float
    local: float
    needed: int
    randomizer: str

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "answers": self.categories,
            "epsilon": str(self.epsilon),
            "respondents": self.respondents,
            "central_margin": self.central,
            "local_margin": self.local,
            "respondents_needed": self.needed,
            "randomizer": self.randomizer,
        }


def compare(domain: int, epsilon: Exact, n: int, *, beta: Exact = "0.05") -> Comparison:
    """What trusting nobody costs: margins of a count of an average answer, and n needed.

    ``domain`` is how many answers there are, ``n`` how many respondents; each pays ``epsilon``, and
    margins hold except with probability ``beta``.

    >>> found = compare(5, 1, 10_000)
    >>> found.central, round(found.local), found.needed > 10**6
    (6.0, 300, True)
    """
    price, people = check_epsilon(epsilon), whole(n, name="n", least=1)
    chance = proportion(beta, name="beta")
    oracle = best(domain, price, people).randomizer
    p, q = oracle.inside, oracle.outside
    true = people // oracle.categories
    hits = round(true * p + (people - true) * q)
    low, high = interval(hits, respondents=people, inside=p, outside=q, beta=chance)
    local = max(true - low, high - true)
    # A respondent who changes an answer moves two counts of the table by one each.
    central = float(Laplace(sensitivity=2, epsilon=price).margin(chance))
    needed = math.ceil(local**2 * people / max(central, 1.0) ** 2)
    return Comparison(oracle.categories, price, people, central, float(local), needed, repr(oracle))


__all__ = ["Comparison", "compare"]
