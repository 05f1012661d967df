"""Selection and quantiles against their peers, in one run: speed and accuracy at equal epsilon.

Peers that are not installed are named as absent.  Data: 10**6 incomes, log-normal
and rounded to whole numbers, on the public domain from 0 to 10**6.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from bench.timing import best, table
from discreet.exact.balls import precision
from discreet.mechanisms import (
    ExponentialMechanism,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    ReportNoisyMax,
    Sparse,
)

MANY = 10**6
TOP = 10**6
DECILES = [Fraction(i, 10) for i in range(1, 10)]

Calls = dict[str, Callable[[], Any]]


def incomes() -> np.ndarray:
    return np.clip(np.random.default_rng(7).lognormal(10.4, 0.9, MANY), 0, TOP).astype(np.int64)


def peers(build: dict[str, Callable[[], Calls]]) -> tuple[Calls, list[str]]:
    """The calls of the peers that are here, and the names of those that are not."""
    found: Calls = {}
    absent = []
    for name, make in build.items():
        try:
            found |= make()
        except ImportError:
            absent.append(name)
    return found, absent


def opendp() -> Any:
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    return dp


# --- choosing one of a million -----------------------------------------------------------------


def choice_calls(scores: np.ndarray, epsilon: float) -> tuple[Calls, list[str]]:
    listed, narrow = scores.tolist(), scores.astype(np.int32)  # what each peer reads fastest

    def from_opendp() -> Calls:
        dp = opendp()
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
        flip = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2 / epsilon)
        gumbel = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=2 / epsilon)
        return {
            "OpenDP noisy max, exponential": lambda: flip(narrow),
            "OpenDP noisy max, Gumbel": lambda: gumbel(narrow),
        }

    def from_diffprivlib() -> Calls:
        kinds = importlib.import_module("diffprivlib.mechanisms")

        # Its permute-and-flip is left out: it takes minutes for as many candidates.
        def call() -> Any:
            return kinds.Exponential(epsilon=epsilon, sensitivity=1, utility=listed).randomise()

        return {"diffprivlib exponential (floats)": call}

    return peers({"OpenDP": from_opendp, "diffprivlib": from_diffprivlib})


def choosing() -> None:
    scores = np.random.default_rng(3).integers(0, 10**5, MANY)
    epsilon = "1/2"
    ours: Calls = {}
    for kind in (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax):
        mechanism = kind(sensitivity=1, epsilon=epsilon)
        ours[f"discreet {kind.__name__}"] = lambda m=mechanism: m.release(scores)
    theirs, absent = choice_calls(scores, 0.5)
    timed("one of 10**6 candidates", ours, theirs, absent, rounds=5)


def timed(title: str, ours: Calls, theirs: Calls, absent: list[str], *, rounds: int) -> None:
    calls = ours | theirs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = dict(zip(calls, best(list(calls.values()), rounds=rounds), strict=True))
    rows = [[name, f"{1000 * seconds:.1f}"] for name, seconds in times.items()]
    print(f"\n{title}\n")
    print(table(["mechanism", "milliseconds"], rows))
    for name in absent:
        print(f"{name} is not installed.")
    if theirs:
        fastest = min(theirs, key=times.__getitem__)
        slowest = max(ours, key=times.__getitem__)
        ratio = times[fastest] / times[slowest]
        print(f"\nslowest of ours against the fastest peer ({fastest}): {ratio:.2f} x as fast")


# --- the median of a million -------------------------------------------------------------------


def median_calls(values: np.ndarray, epsilon: float) -> tuple[Calls, list[str]]:
    real, narrow = values.astype(np.float64), values.astype(np.int32)

    def from_opendp() -> Calls:
        dp = opendp()
        candidates = list(range(0, TOP + 1, 500))
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        scale = dp.binary_search(
            lambda s: (
                dp.m.make_private_quantile(
                    *space, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=s
                ).map(1)
                <= epsilon
            ),
            T=float,
        )
        quantile = dp.m.make_private_quantile(
            *space, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=scale
        )
        return {"OpenDP, 2001 candidates": lambda: quantile(narrow)}

    def from_diffprivlib() -> Calls:
        tools = importlib.import_module("diffprivlib.tools")
        return {
            "diffprivlib (floats)": lambda: tools.median(real, epsilon=epsilon, bounds=(0, TOP))
        }

    def from_pydp() -> Calls:
        module = importlib.import_module("pydp.algorithms.laplacian")
        listed = real.tolist()

        def call() -> Any:
            median = module.Median(epsilon=epsilon, lower_bound=0, upper_bound=TOP, dtype="float")
            return median.quick_result(listed)

        return {"pydp (Google C++)": call}

    return peers({"OpenDP": from_opendp, "diffprivlib": from_diffprivlib, "pydp": from_pydp})


def medians(values: np.ndarray) -> None:
    median = Quantile("1/2", lower=0, upper=TOP, epsilon="1/2")
    coarse = Quantile("1/2", lower=0, upper=TOP // 500, epsilon="1/2")
    hundreds = values // 500
    ours: Calls = {
        "discreet, all 10**6 + 1 candidates": lambda: median.release(values),
        "discreet, 2001 candidates": lambda: coarse.release(hundreds),
    }
    theirs, absent = median_calls(values, 0.5)
    timed("the median of 10**6 values", ours, theirs, absent, rounds=5)


# --- accuracy ----------------------------------------------------------------------------------


def flips() -> None:
    """The expected error of permute-and-flip, exactly, and of OpenDP's noisy max, drawn."""
    counts = [4030, 4010, 3980, 3600, 3200, 2900, 1800, 1700, 1500, 900, 800, 500, 300, 120, 9]
    rows = []
    for epsilon in (Fraction(1, 1000), Fraction(1, 200), Fraction(1, 50)):
        row = [str(epsilon)]
        for kind in (ExponentialMechanism, PermuteAndFlip):
            law = kind(sensitivity=1, epsilon=epsilon).law(counts)
            with precision(100):
                error = sum(float(law.mass(i)) * (counts[0] - c) for i, c in enumerate(counts))
            row.append(f"{error:.2f}")
        try:
            dp = opendp()
        except ImportError:
            row.append("not installed")
        else:
            space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
            noisy = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=float(2 / epsilon))
            draws = np.array([counts[0] - counts[noisy(counts)] for _ in range(20_000)])
            row.append(f"{draws.mean():.2f} ± {3 * draws.std() / len(draws) ** 0.5:.2f}")
        rows.append(row)
    print("\nexpected error of choosing the largest of 15 counts (exact law; peer: 20,000 draws)\n")
    print(table(["epsilon", "exponential", "permute-and-flip", "OpenDP noisy max"], rows))


def decile_calls(values: np.ndarray, epsilon: float) -> tuple[Calls, list[str]]:
    real, narrow = values.astype(np.float64), values.astype(np.int32)

    def from_opendp() -> Calls:
        dp = opendp()
        candidates = list(range(0, TOP + 1, 500))
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

        def made(alpha: float, scale: float) -> Any:
            return dp.m.make_private_quantile(
                *space, dp.max_divergence(), candidates=candidates, alpha=alpha, scale=scale
            )

        each = []
        for q in DECILES:
            scale = dp.binary_search(
                lambda s, q=q: made(float(q), s).map(1) <= epsilon / 9, T=float
            )
            each.append(made(float(q), scale))
        return {"OpenDP, 2001 candidates": lambda: [one(narrow) for one in each]}

    def from_diffprivlib() -> Calls:
        tools = importlib.import_module("diffprivlib.tools")
        wanted = [float(q) for q in DECILES]
        return {
            "diffprivlib": lambda: tools.quantile(real, wanted, epsilon=epsilon, bounds=(0, TOP))
        }

    return peers({"OpenDP": from_opendp, "diffprivlib": from_diffprivlib})


def rank_error(ordered: np.ndarray, answers: Any) -> float:
    """The mean distance, in shares of the data, from q to the ranks of the answer."""
    off = []
    for q, answer in zip(DECILES, answers, strict=True):
        below, upto = (np.searchsorted(ordered, answer, side=side) for side in ("left", "right"))
        target = float(q) * len(ordered)
        off.append(max(below - target, target - upto, 0.0) / len(ordered))
    return float(np.mean(off))


def deciles(values: np.ndarray, *, repeats: int = 4) -> None:
    ordered = np.sort(values)
    rows = []
    for epsilon in (1.0, 0.1):
        ours = Quantiles(DECILES, lower=0, upper=TOP, epsilon=str(epsilon))
        theirs, absent = decile_calls(values, epsilon)
        calls: Calls = {"discreet": lambda m=ours: m.release(values)} | theirs
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, call in calls.items():
                errors = [rank_error(ordered, call()) for _ in range(repeats)]
                rows.append([str(epsilon), name, f"{np.mean(errors):.7f}"])
        rows += [[str(epsilon), name, "not installed"] for name in absent]
    print("\nnine deciles of 10**6 skewed values: mean rank error, as a share of the data\n")
    print(table(["epsilon", "mechanism", "mean rank error"], rows))


def streams() -> None:
    values = np.random.default_rng(5).integers(0, 1000, 4 * MANY)
    sparse = Sparse(threshold=10**5, cutoff=20, sensitivity=1, epsilon=1)
    (seconds,) = best([lambda: sparse.release(values)], rounds=3)
    print(f"\nsparse vector over 4 * 10**6 queries: {1000 * seconds:.0f} ms")


def main() -> None:
    values = incomes()
    choosing()
    medians(values)
    flips()
    deciles(values)
    streams()


if __name__ == "__main__":
    main()
