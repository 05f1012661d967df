"""Which private groups are shown: our rules beside those of Google's library, at equal price.

Theirs are closed forms of ``algorithms/partition-selection.h`` in google/differential-privacy,
for a unit in at most k groups: the near-truncated geometric rule (Desfontaines, Voss, Gipson and
Mandayam, 2022) and Laplace thresholding at (epsilon / k, 1 - (1 - delta)**(1 / k)), and Gaussian
thresholding with the analytic Gaussian at (epsilon, delta / 2), threshold for the other half.
The geometric rule shows keys without their counts.  With ``--adult adult.csv`` the groups of
occupation and education are shown through ``ask``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from statistics import NormalDist

from bench.timing import find_data
from discreet.price import Priced, deciding_mechanism, least_units, price
from discreet.price.keys import find_shown_share
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse

EPSILONS, DELTAS, GROUPS = ("0.1", "1", "3"), ("1e-5", "1e-9"), (1, 5, 50)

Rule = Callable[[int], float]
"""The probability that a group of so many units is shown."""


def google_geometric(epsilon: float, delta: float, k: int) -> Rule:
    """The recursion of the paper, step by step."""
    growth, each = math.exp(epsilon / k), -math.expm1(math.log1p(-delta) / k)
    known = [0.0]

    def shown(units: int) -> float:
        while len(known) <= units:
            last = known[-1]
            known.append(min(growth * last + each, 1 - (1 - last - each) / growth, 1.0))
        return known[units]

    return shown


def google_laplace(epsilon: float, delta: float, k: int) -> Rule:
    each, scale = -math.expm1(math.log1p(-delta) / k), k / epsilon
    threshold = 1 - scale * math.log(2 * each)

    def shown(units: int) -> float:
        gap = (threshold - units) / scale
        return math.exp(-gap) / 2 if gap >= 0 else 1 - math.exp(gap) / 2

    return shown


def google_gaussian(epsilon: float, delta: float, k: int) -> Rule:
    sigma = math.sqrt(k) * analytic_sigma(epsilon, delta / 2)
    each = -math.expm1(math.log1p(-delta / 2) / k)
    threshold = 1 - sigma * NormalDist().inv_cdf(each)
    return lambda units: math.erfc((threshold - units) / sigma / math.sqrt(2)) / 2


def analytic_sigma(epsilon: float, delta: float) -> float:
    """Balle and Wang (2018): the least sigma for sensitivity 1."""

    def above(x: float) -> float:
        return math.erfc(x / math.sqrt(2)) / 2

    low, high = 1e-3, 1e6
    for _ in range(200):
        sigma = math.sqrt(low * high)
        near, far = 1 / (2 * sigma), epsilon * sigma
        if above(far - near) - math.exp(epsilon) * above(far + near) > delta:
            low = sigma
        else:
            high = sigma
    return high


THEIRS = {
    "geometric": google_geometric,
    "Laplace": google_laplace,
    "Gaussian": google_gaussian,
}
COUNTING = ("Laplace", "Gaussian")
"""Those whose noisy count may be published, too."""


def schema(k: int) -> Schema:
    return Schema.from_text(f"""
        [tables.visits]
        unit = "patient"
        max_rows_per_unit = {k}
        [tables.visits.columns]
        patient = "integer"
        street = "text"
    """)


def ours(counts: bool, epsilon: str, delta: str, k: int) -> Priced:
    """The price of the streets, alone or with the number of people in each."""
    asked = "street, COUNT(DISTINCT patient) AS n" if counts else "street"
    table = schema(k)
    question = parse(f"SELECT {asked} FROM visits GROUP BY street", table)
    spend = Offer.of(epsilon=epsilon, delta=delta)
    return price(question, spend, Catalogue(table))


def half(rule: Rule) -> int:
    """The fewest units of which a group is shown every second time."""
    units = 1
    while rule(2 * units) < 0.5:
        units *= 2
    return next(n for n in range(units, 2 * units + 1) if rule(n) >= 0.5)


def compare(epsilon: str, delta: str, k: int, counts: bool) -> tuple[int, str, int, str, float]:
    """Units for every second time: ours and how, the best of theirs and how; and, at the units
    of theirs, how much more often ours are shown.
    """
    names = COUNTING if counts else tuple(THEIRS)
    rules = {name: THEIRS[name](float(epsilon), float(delta), k) for name in names}
    best = min(names, key=lambda name: (half(rules[name]), -rules[name](half(rules[name]))))
    priced = ours(counts, epsilon, delta, k)
    if priced.threshold is None:
        raise TypeError("private groups have a threshold")
    bought = deciding_mechanism(priced)
    needed, theirs = least_units(priced.threshold, bought), half(rules[best])
    more = find_shown_share(priced.threshold, bought, theirs) - rules[best](theirs)
    return needed, type(bought).__name__, theirs, best, more


def show_adult(path: str) -> None:
    """Occupation and education of Adult, one row a person, at (1, 1e-9): groups shown."""
    import pandas as pd

    import discreet

    frame = pd.read_csv(path, skipinitialspace=True)
    frame.columns = [name.replace("-", "_").replace(".", "_") for name in frame.columns]
    education = "education" if "education" in frame else "education_num"
    frame = frame[["occupation", education]].astype(str)
    frame["person"] = range(len(frame))
    people = Schema.from_text(f"""
        [tables.adult]
        unit = "person"
        max_rows_per_unit = 1
        [tables.adult.columns]
        person = "integer"
        occupation = "text"
        {education} = "text"
    """)
    there = frame.groupby(["occupation", education]).size()
    budget = discreet.Budget(epsilon=1000, delta="1e-5")
    with discreet.curator({"adult": frame}, schema=people, budget=budget) as curator:
        keys = f"occupation, {education}"
        for asked in (keys, f"{keys}, COUNT(*) AS n"):
            shown = []
            for run in range(9):
                text = f"SELECT {asked} FROM adult WHERE person > {-1 - run} GROUP BY {keys}"
                shown.append(len(curator.ask(text, epsilon=1, delta="1e-9").rows))
            middle = sorted(shown)[len(shown) // 2]
            print(f"| {asked} | {middle} of {len(there)} | {min(shown)} to {max(shown)} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--adult", default=find_data("adult.csv"), help="as CSV with a header")
    chosen = parser.parse_args()
    for counts in (False, True):
        print("\nKeys with counts" if counts else "\nKeys alone")
        print("| ε | δ | k | ours | best of theirs | at their number, shown more often by |")
        print("| --- | --- | --- | --- | --- | --- |")
        for epsilon in EPSILONS:
            for delta in DELTAS:
                for k in GROUPS:
                    needed, how, theirs, best, more = compare(epsilon, delta, k, counts)
                    row = f"{needed:,} ({how}) | {theirs:,} ({best}) | {round(more, 3) + 0.0:+.3f}"
                    print(f"| {epsilon} | {delta} | {k} | {row} |", flush=True)
    if chosen.adult:
        print("\n| Adult, (1, 1e-9) | groups shown, median of 9 | range |\n| --- | --- | --- |")
        show_adult(chosen.adult)


if __name__ == "__main__":
    main()
