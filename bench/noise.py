"""Exact noise against numpy's floats and OpenDP's exact samplers, in one run."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bench.timing import best, seconds, table
from discreet.noise import (
    discrete_gaussian,
    discrete_laplace,
    exponential_choice,
    permute_and_flip,
)

MANY = 10**6
SCALES = [1, 20, 1000, 10**6, 2**40]


class Target(NamedTuple):
    """A claim, the number it is about, and whether it holds."""

    claim: str
    measured: str
    holds: bool


def opendp():
    import opendp.prelude as dp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        dp.enable_features("contrib", "honest-but-curious")
    return dp


def opendp_laplace(dp, scale: int):
    domain = dp.vector_domain(dp.atom_domain(T=int))
    return dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(scale))


def opendp_gaussian(dp, sigma: int):
    domain = dp.vector_domain(dp.atom_domain(T=int))
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(sigma))


def first_call(call: str) -> float:
    """Milliseconds of the first such call in a fresh process, imports done."""
    script = (
        "import time; from discreet.noise import discrete_laplace, discrete_gaussian\n"
        f"start = time.perf_counter(); {call}; print(time.perf_counter() - start)"
    )
    run = [sys.executable, "-c", script]
    times = [
        float(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    return 1000 * min(times)


def scalar_microseconds(call: Callable[[], object]) -> float:
    """The shortest mean of twenty single draws."""
    return 1e6 / 20 * min(seconds(lambda: [call() for _ in range(20)]) for _ in range(300))


class Family(NamedTuple):
    name: str
    ours: Callable[..., object]
    floats: Callable[[int, int], object]
    first: str
    peer: Callable[..., Callable[[list[int]], object]]


def families() -> list[Family]:
    rng = np.random.default_rng()
    return [
        Family(
            "Laplace",
            discrete_laplace,
            lambda scale, size: rng.laplace(0.0, scale, size),
            "discrete_laplace({scale}, 1000)",
            opendp_laplace,
        ),
        Family(
            "Gaussian",
            lambda sigma, *size: discrete_gaussian(sigma**2, *size),
            lambda sigma, size: rng.normal(0.0, sigma, size),
            "discrete_gaussian({scale}**2, 1000)",
            opendp_gaussian,
        ),
    ]


def against_numpy(scale: int) -> float:
    """The most that a million draws may take, in numpy's time."""
    return 1.0 if scale <= 20 else 1.5 if scale <= 1000 else 5.0


def draws() -> tuple[str, list[Target]]:
    dp = opendp()
    zeros = [0] * MANY
    rows, targets = [], []
    for family in families():
        for scale in SCALES:
            ours, floats = best(
                [
                    lambda f=family, s=scale: f.ours(s, MANY),
                    lambda f=family, s=scale: f.floats(s, MANY),
                ]
            )
            cold = first_call(family.first.format(scale=scale))
            single = scalar_microseconds(lambda f=family, s=scale: f.ours(s))
            what = f"{family.name} {scale}"
            most = against_numpy(scale)
            targets += [
                Target(
                    f"{what}: at most {most}× numpy", f"{ours / floats:.2f}×", ours <= most * floats
                ),
                Target(f"{what}: first call under 100 ms", f"{cold:.0f} ms", cold < 100),
            ]
            if family.name == "Laplace":
                targets.append(
                    Target(f"{what}: a scalar under 30 µs", f"{single:.0f} µs", single < 30)
                )
            row = [what, f"{1e3 * ours:.1f}", f"{1e3 * floats:.1f}", f"{ours / floats:.2f}"]
            if scale <= 1000:
                peer = seconds(lambda f=family, s=scale: f.peer(dp, s)(zeros))
                row += [f"{1e3 * peer:,.0f}", f"{peer / ours:,.0f}"]
                targets.append(
                    Target(
                        f"{what}: at least 400× OpenDP", f"{peer / ours:,.0f}×", peer >= 400 * ours
                    )
                )
            else:
                row += ["", ""]
            rows.append([*row, f"{cold:.0f}", f"{single:.0f}"])
            print(".", end="", flush=True)
    header = [
        "scale or σ", "discreet, ms", "numpy floats, ms", "ratio", "OpenDP, ms", "times faster",
        "first call, ms", "scalar, µs",
    ]  # fmt: skip
    return table(header, rows), targets


def choices() -> tuple[str, list[Target]]:
    dp = opendp()
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 1000, MANY)
    listed = scores.tolist()
    domain = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    peers = {
        "exponential_choice": dp.m.make_noisy_max(
            *domain, dp.zero_concentrated_divergence(), scale=10.0
        ),
        "permute_and_flip": dp.m.make_noisy_max(*domain, dp.max_divergence(), scale=10.0),
    }
    rows, targets = [], []
    for ours in (exponential_choice, permute_and_flip):
        mine, gumbel = best(
            [
                lambda f=ours: f(scores, "1/10"),
                lambda: np.argmax(scores / 10 + rng.gumbel(size=MANY)),
            ]
        )
        theirs = min(seconds(lambda f=ours: peers[f.__name__](listed)) for _ in range(2))
        rows.append(
            [ours.__name__, f"{1e3 * mine:.0f}", f"{1e3 * gumbel:.0f}", f"{1e3 * theirs:,.0f}"]
        )
        targets.append(
            Target(
                f"{ours.__name__}: no slower than OpenDP's noisy max",
                f"{theirs / mine:.0f}× faster",
                mine <= theirs,
            )
        )
    header = [
        "choice among 10⁶ scores",
        "discreet, ms",
        "numpy Gumbel floats, ms",
        "OpenDP noisy max, ms",
    ]
    return table(header, rows), targets


def main() -> None:
    drawn, about_draws = draws()
    chosen, about_choices = choices()
    targets = about_draws + about_choices
    verdicts = table(
        ["target", "measured", "holds"],
        [
            [target.claim, target.measured, "yes" if target.holds else "**no**"]
            for target in targets
        ],
    )
    text = f"10⁶ draws, tables warm:\n\n{drawn}\n\n{chosen}\n\n{verdicts}"
    print("\n" + text)
    missed = [target.claim for target in targets if not target.holds]
    print(f"\n{len(targets) - len(missed)} of {len(targets)} targets hold. {'; '.join(missed)}")


if __name__ == "__main__":
    main()
