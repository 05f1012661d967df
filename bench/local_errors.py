"""Errors of the local model beside its peers and the papers' forms, in one run.

    python -m bench.local_errors [--data FOLDER] [--repeats 20000] [--rounds 60]

``FOLDER`` holds Adult (``adult.csv``) and the excerpt of the American Community Survey
(``acs_national2019.csv``): ages, and industries with sex, as many as there are occupations in a
census.  Without it the answers are made up.  Every contestant gets the same people in each repeat,
drawn anew from the table; differences are paired.

Two things are compared.  *Without bias*: the mean squared error, divided by the number of people,
does not depend on that number, since reports are independent; so surveys of one person each are
run, whose errors spread least.  Ours is known exactly from its law, and theirs is measured against
that.  *As they come*: what each library gives who asks for frequencies and sets nothing.  That of
ours is ``consistent()``; multi-freq-ldpy's is clipped at zero and scaled; pure-ldp's is without
bias, and is shown clipped and scaled, too.  It depends on the number of people, and is compared at
5,000.

Peers draw with floats from numpy's or Python's generators; we draw exactly from the system's
cryptographic one.  Those that are not installed are named as absent.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from discreet.local import Frequencies, HashedSets, best
from discreet.local.hashing import TEXT_BITS, code_of_text

EPSILONS = ("1/2", 1, 4)
FEW, MANY = 1, 5_000
"""People of a small survey, and of a large one."""
BITS = 1000
"""Of a report, as in surveys."""
SLOW = 10
"""Local hashing of the peers hashes every answer for every report: of large surveys it gets so many
times fewer."""
DICE = np.random.default_rng(1)
"""Who takes part is public: any generator will do."""

Answers = np.ndarray
Run = Callable[[Answers], np.ndarray]


def read_tables(folder: str | None) -> dict[str, tuple[Answers, int]]:
    """Answers to draw people from, and how many there are to choose from, by title."""
    if folder is None:
        return {"made up, a long tail": (make_tail(85), 85), "the same": (make_tail(500), 500)}
    with (Path(folder) / "adult.csv").open() as file:
        ages = np.array([int(row["age"]) for row in csv.DictReader(file)])
    with (Path(folder) / "acs_national2019.csv").open() as file:
        works = [(r["INDP"], r["SEX"]) for r in csv.DictReader(file) if r["INDP"] != "N"]
    industries = {name: place for place, name in enumerate(sorted({one for one, _ in works}))}
    codes = np.array([2 * industries[one] + int(sex) - 1 for one, sex in works])
    return {
        "Adult, age": (ages[ages < 85], 85),
        "ACS, industry and sex": (codes, 2 * len(industries)),
    }


def make_tail(categories: int, count: int = 50_000) -> Answers:
    """Answers with a long tail."""
    weights = 1 / (np.arange(categories) + 5.0)
    return np.repeat(np.arange(categories), np.round(weights / weights.sum() * count).astype(int))


def total_of(p: float, q: float, d: int) -> float:
    """The mean squared error / n of a report that supports with these probabilities."""
    return (p * (1 - p) + (d - 1) * q * (1 - q)) / (p - q) ** 2 / d


def closed_forms(categories: int, epsilon: Any) -> dict[str, float]:
    """The mean squared error / n of each oracle as the papers state it."""
    e, d = math.exp(float(best(2, epsilon, 1).randomizer.epsilon)), categories
    g, k = round(e + 1), max(1, round(d / (e + 1)))
    p = e * k / (e * k + d - k)
    return {
        "GRR": total_of(e / (e + d - 1), 1 / (e + d - 1), d),
        "OUE": total_of(1 / 2, 1 / (e + 1), d),
        "OLH": total_of(e / (e + g - 1), 1 / g, d),
        "SS": total_of(p, (p * (k - 1) + (1 - p) * k) / (d - 1), d),
        "HR": total_of(e / (e + 1), 1 / 2, d),
    }


# --- contestants: from the answers of some people to numbers -------------------------------------


def pure_ldp(categories: int, epsilon: float) -> dict[str, Run]:
    found = {}
    for name, module, kind, options in (
        ("GRR", "direct_encoding", "DE", {}),
        ("OUE", "unary_encoding", "UE", {"use_oue": True}),
        ("OLH", "local_hashing", "LH", {"use_olh": True}),
    ):
        home = importlib.import_module(f"pure_ldp.frequency_oracles.{module}")
        client = getattr(home, f"{kind}Client")(epsilon, categories, **options)
        server = getattr(home, f"{kind}Server")(epsilon, categories, **options)

        def run(values: Answers, client: Any = client, server: Any = server) -> np.ndarray:
            server.reset()
            for value in values.tolist():
                server.aggregate(client.privatise(value + 1))
            asked = range(1, categories + 1)
            return np.array(server.estimate_all(asked, suppress_warnings=True), dtype=float)

        found[f"pure-ldp {name}"] = run
    return found


def multi_freq(categories: int, epsilon: float) -> dict[str, Run]:
    """Their numbers are clipped at zero and scaled to add up."""
    home = "multi_freq_ldpy.pure_frequency_oracles"
    found = {}
    for name, options in (("GRR", ()), ("UE", (True,)), ("LH", (True,)), ("SS", ())):
        module = importlib.import_module(f"{home}.{name}")
        client = getattr(module, f"{name}_Client")
        server = getattr(module, f"{name}_Aggregator_MI")

        def run(
            values: Answers, client: Any = client, server: Any = server, extra: tuple = options
        ) -> np.ndarray:
            reports = [client(value, categories, epsilon, *extra) for value in values.tolist()]
            # The aggregator of unary encodings does not take the number of answers.
            known = () if server.__name__.startswith("UE") else (categories,)
            return np.array(server(reports, *known, epsilon, *extra)) * len(values)

        found[f"multi-freq-ldpy {name}"] = run
    return found


def find_peers(make: Callable[[int, float], dict[str, Run]], *given: Any) -> dict[str, Run]:
    try:
        return make(*given)
    except ImportError:
        print(f"  {make.__name__}: not installed")
        return {}


def scale_up(values: np.ndarray) -> np.ndarray:
    """Clipped at zero and scaled, as multi-freq-ldpy does it: for numbers of others."""
    kept = np.maximum(values, 0.0)
    return kept * (values.size and values.sum() / max(kept.sum(), 1e-9))


# --- comparisons ---------------------------------------------------------------------------------


def squared(found: np.ndarray, values: Answers) -> float:
    truth = np.bincount(values, minlength=found.size)
    return float(((found - truth) ** 2).mean() / len(values))


def mean_of(errors: np.ndarray) -> str:
    spread = errors.std(ddof=1) / math.sqrt(errors.size)
    return f"{errors.mean():.5f} ± {spread:.5f}"


def print_pairs(ours: np.ndarray, others: dict[str, np.ndarray]) -> None:
    """Each contestant's mean, and its difference from ours in the same repeats."""
    for name, errors in others.items():
        more = errors - ours[: errors.size]
        sure = more.mean() / (more.std(ddof=1) / math.sqrt(more.size))
        part = more.mean() / ours[: errors.size].mean()
        print(f"    {name:24} {mean_of(errors):18} {100 * part:+8.2f} % of ours, {sure:+.1f} s.e.")


def print_above(exact: float, others: dict[str, np.ndarray]) -> None:
    """Each contestant's mean, and by how many of its standard errors it is above our exact one."""
    for name, errors in others.items():
        sure = (errors.mean() - exact) / (errors.std(ddof=1) / math.sqrt(errors.size))
        part = errors.mean() / exact - 1
        print(f"    {name:24} {mean_of(errors):20} {100 * part:+8.2f} % of ours, {sure:+.1f} s.e.")


def run_all(runs: dict[str, Run], people: list[Answers]) -> dict[str, np.ndarray]:
    found = {}
    for name, run in runs.items():
        slow = name.endswith("LH") and len(people[0]) > FEW
        count = max(3, len(people) // SLOW) if slow else len(people)
        try:
            found[name] = np.array([squared(run(one), one) for one in people[:count]])
        except TypeError:  # they hash texts, which xxhash takes no more from 4 on
            print(f"    {name}: does not run with what is installed")
    return found


def compare_without_bias(table: Answers, d: int, epsilon: Any, repeats: int) -> None:
    chosen = best(d, epsilon, FEW, most_bits=BITS).randomizer
    forms = closed_forms(d, epsilon)
    ours = float(chosen.total_variance()) / d
    print(f"ε = {epsilon}: {chosen}")
    print("  closed forms: " + ", ".join(f"{k} {v:.4f}" for k, v in forms.items()), end="")
    print(f"; ours {ours:.4f}, {100 * (min(forms.values()) / ours - 1):+.6f} % to the least")
    people = [DICE.choice(table, FEW) for _ in range(repeats)]
    reports = chosen.release(np.concatenate(people))
    parts = np.split(np.asarray(reports), repeats)
    measured = np.array(
        [
            squared(chosen.estimate(part).values, one)
            for part, one in zip(parts, people, strict=True)
        ]
    )
    print(
        f"  without bias, {repeats} surveys of {FEW}: ours {mean_of(measured)}, exactly {ours:.5f}"
    )
    print_above(ours, run_all(find_peers(pure_ldp, d, float(chosen.epsilon)), people))


def compare_as_they_come(table: Answers, d: int, epsilon: Any, rounds: int) -> None:
    chosen = best(d, epsilon, MANY, most_bits=BITS).randomizer
    people = [DICE.choice(table, MANY) for _ in range(rounds)]
    found = [chosen.estimate(chosen.release(one)) for one in people]
    projected = [
        squared(f.consistent("simplex"), one) for f, one in zip(found, people, strict=True)
    ]
    ours = np.array([squared(f.consistent(), one) for f, one in zip(found, people, strict=True)])
    print(f"  as they come, {rounds} surveys of {MANY}: ours {mean_of(ours)}")
    theirs = find_peers(multi_freq, d, float(chosen.epsilon))
    theirs.pop("multi-freq-ldpy GRR" if d > 3 * math.exp(float(chosen.epsilon)) + 2 else "", None)
    pure = find_peers(pure_ldp, d, float(chosen.epsilon))
    if "pure-ldp OUE" in pure:
        theirs["pure-ldp OUE, scaled"] = lambda values: scale_up(pure["pure-ldp OUE"](values))
    theirs.update({f"{name}, as it is": run for name, run in pure.items() if name.endswith("OUE")})
    print_pairs(ours, {"ours, projected": np.array(projected), **run_all(theirs, people)})


def compare_texts(epsilon: Any, repeats: int, rounds: int) -> None:
    """Texts of which nobody made a list, counted for 500 candidates: hashing is all there is."""
    codes = np.array([code_of_text(f"condition {place}", key=b"bench") for place in range(500)])
    oracle, table = HashedSets(2**TEXT_BITS, epsilon=epsilon), make_tail(500)
    forms, ours = closed_forms(2**TEXT_BITS, epsilon), oracle.variance(respondents=1)
    print(f"open texts, ε = {epsilon}: g = {oracle.buckets}, k = {oracle.size}")
    print(f"  closed forms: OUE, for a list, {forms['OUE']:.6f}, OLH {forms['OLH']:.6f}; ", end="")
    print(f"ours {ours:.6f}, {100 * (forms['OLH'] / ours - 1):+.4f} % to OLH")

    def estimate(values: Answers) -> Frequencies:
        support = oracle.support_of(oracle.release(codes[values]), codes)
        return Frequencies(oracle, len(values), support)

    people = [DICE.choice(table, FEW) for _ in range(repeats)]
    measured = np.array([squared(estimate(one).values, one) for one in people])
    print(f"  without bias, {repeats} surveys of {FEW}: ours {mean_of(measured)}")
    price, listed = (
        float(oracle.epsilon),
        total_of(float(oracle.inside), float(oracle.outside), 500),
    )
    print_above(listed, run_all(only_hashing(find_peers(pure_ldp, 500, price)), people))
    people = [DICE.choice(table, MANY) for _ in range(rounds)]
    shrunk = np.array([squared(estimate(one).consistent(), one) for one in people])
    print(f"  as they come, {rounds} surveys of {MANY}: ours {mean_of(shrunk)}")
    print_pairs(shrunk, run_all(only_hashing(find_peers(multi_freq, 500, price)), people))


def only_hashing(runs: dict[str, Run]) -> dict[str, Run]:
    return {name: run for name, run in runs.items() if name.endswith("LH")}


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--data", default=os.environ.get("DISCREET_BENCH_DATA"))
    reader.add_argument("--repeats", type=int, default=20_000)
    reader.add_argument("--rounds", type=int, default=60)
    reader.add_argument("--only", default="", help="tables whose title begins so")
    reader.add_argument("--epsilons", nargs="+", default=EPSILONS)
    given = reader.parse_args()
    print("mean squared error of a count / n, ± standard error\n")
    for title, (table, d) in read_tables(given.data).items():
        if not title.startswith(given.only):
            continue
        print(f"\n{title}, d = {d}\n")
        for epsilon in given.epsilons:
            compare_without_bias(table, d, epsilon, given.repeats)
            compare_as_they_come(table, d, epsilon, given.rounds)
    for epsilon in given.epsilons:
        if "open texts".startswith(given.only):
            compare_texts(epsilon, given.repeats, given.rounds)


if __name__ == "__main__":
    main()
