"""Accounting against the peers: tightness at delta = 1e-6, and the time of one decision.

Two finished lists (1000 Gaussians of sigma 20, 1000 Laplace releases of epsilon 0.1), each by our
certified report, by our filter, by OpenDP's concentrated accounting and by dp-accounting.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction

from discreet.accounting.budget import Budget
from discreet.accounting.composition import OptimalComposition, peer_epsilon
from discreet.accounting.conversion import EPSILON_UNITS
from discreet.accounting.loss import NOTHING, Loss
from discreet.accounting.profile import GaussianProfile, LaplaceProfile, Profile, compose

COUNT, DELTA = 1000, "1e-6"
GAUSSIAN = GaussianProfile(sensitivity=1, sigma_squared=400, grid=0)
LAPLACE = LaplaceProfile(sensitivity=1, scale=10, grid=0)


def timed(function: Callable[[], object]) -> tuple[float, float]:
    start = time.perf_counter()
    value = function()
    return float(value), time.perf_counter() - start  # type: ignore[arg-type]


def filter_epsilon(loss: Loss) -> Fraction:
    """The least epsilon of a budget that admits ``COUNT`` such charges, one after the other."""
    stored = (COUNT - 1) * loss.rounded()

    def admits(units: int) -> bool:
        budget = Budget(epsilon=Fraction(units, EPSILON_UNITS), delta=DELTA, failures=0)
        return budget.admits(stored, loss)

    good, bad = 1000 * EPSILON_UNITS, 0
    while good - bad > EPSILON_UNITS // 10**8:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if admits(middle) else (good, middle)
    return Fraction(good, EPSILON_UNITS)


def opendp_epsilon(rho: float) -> float:
    """OpenDP: make_zCDP_to_approxDP on the sum of rhos."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noise = dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))
    return float(dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(float(DELTA)))


def closed_form() -> float:
    """Balle and Wang (2018) for one Gaussian with mu**2 = 1000 / 400, by bisection in floats."""
    from scipy.special import ndtr

    mu = math.sqrt(COUNT / 400)

    def delta(e: float) -> float:
        return float(ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu))

    low, high = 0.0, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > float(DELTA) else (low, middle)
    return high


def tightness() -> None:
    print(f"{COUNT} releases at delta = {DELTA}, sensitivity 1\n")
    print("| list | account | epsilon | seconds |")
    print("| --- | --- | --- | --- |")
    for name, release in (("Gaussian, sigma = 20", GAUSSIAN), ("Laplace, epsilon = 0.1", LAPLACE)):
        for account, function in accounts(release).items():
            try:
                value, seconds = timed(function)
            except ImportError as missing:
                print(f"| {name} | {account} | not installed: {missing.name} | |")
                continue
            print(f"| {name} | {account} | {value:.4f} | {seconds:.3f} |")


def accounts(release: Profile) -> dict[str, Callable[[], object]]:
    rho = COUNT * float(release.loss.rho)
    lines: dict[str, Callable[[], object]] = {}
    if release == GAUSSIAN:
        lines["exact (closed form, floats)"] = closed_form
        on_grid: Profile = GaussianProfile(sensitivity=1, sigma_squared=400)
    else:
        on_grid = LaplaceProfile(sensitivity=1, scale=10)
        rho = COUNT * 0.1**2 / 2  # what purity alone gives OpenDP
        lines["discreet, any pure mechanism (certified)"] = lambda: OptimalComposition(
            count=COUNT, epsilon="0.1"
        ).epsilon_at(DELTA)
    lines["discreet report (certified)"] = lambda: compose([release] * COUNT).epsilon_at(DELTA)
    lines["discreet report, noise on the integers (certified)"] = lambda: compose(
        [on_grid] * COUNT
    ).epsilon_at(DELTA)
    lines["dp-accounting PLD (not certified)"] = lambda: peer_epsilon(
        [release] * COUNT, delta=DELTA
    )
    lines["discreet filter (adaptive)"] = lambda: filter_epsilon(release.loss)
    lines["OpenDP zCDP"] = lambda: opendp_epsilon(rho)
    return lines


def decisions() -> None:
    print("\n| charges before | microseconds per `admits` |")
    print("| --- | --- |")
    budget = Budget(epsilon=3, delta="1e-9")
    charge = Loss.laplace(sensitivity=2, scale=725)
    for charges in (0, 1000, 10**6, 10**9):
        spent = (charges * charge).rounded() if charges else NOTHING
        best = math.inf
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(500):
                budget.admits(spent, charge)
            best = min(best, (time.perf_counter() - start) / 500)
        print(f"| {charges:,} | {best * 1e6:.1f} |")


def main() -> None:
    tightness()
    decisions()


if __name__ == "__main__":
    main()
