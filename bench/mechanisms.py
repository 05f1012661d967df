"""Numeric mechanisms against their peers, in one run: speed, margins, joint noise.

Peers that are not installed are named as absent.  An exact peer draws from the
law it states; a peer marked (floats) does not.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.mechanisms import (
    Gaussian,
    Grid,
    HammingCube,
    Laplace,
    MetricNoise,
    MetricSpace,
    Moments,
    RandomizedResponse,
)

MANY = 10**6
PEER_MANY = 10**5  # peers are timed on a tenth, and the time is multiplied by ten
SCALARS = 1000

LAPLACE = {"sensitivity": 3, "epsilon": 0.25}
RHO = Fraction(1, 8)


def seconds(call: Callable[[], object], *, repeats: int = 3) -> float:
    """The shortest of several runs."""
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def each(call: Callable[[Any], object], value: Any, times: int) -> Callable[[], object]:
    """``call(value)``, again and again."""

    def run() -> None:
        for _ in range(times):
            call(value)

    return run


# --- peers: name, what it draws, vector call, scalar call -----------------------------------


def opendp_peers() -> dict[str, tuple[bool, Callable[[], object], Callable[[], object]]]:
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    one = dp.atom_domain(T=int)
    several = dp.vector_domain(one)
    laplace = dp.m.make_laplace(several, dp.l1_distance(T=int), scale=12.0)
    laplace_one = dp.m.make_laplace(one, dp.absolute_distance(T=int), scale=12.0)
    gaussian = dp.m.make_gaussian(several, dp.l2_distance(T=float), scale=6.0)
    gaussian_one = dp.m.make_gaussian(one, dp.absolute_distance(T=float), scale=6.0)
    zeros = [0] * PEER_MANY
    return {
        "Laplace": (True, lambda: laplace(zeros), each(laplace_one, 1041, SCALARS)),
        "Gaussian": (True, lambda: gaussian(zeros), each(gaussian_one, 1041, SCALARS)),
    }


def diffprivlib_peers() -> dict[str, tuple[bool, Callable[[], object], Callable[[], object]]]:
    mechanisms = importlib.import_module("diffprivlib.mechanisms")
    laplace = mechanisms.Geometric(**LAPLACE).randomise
    gaussian = mechanisms.GaussianDiscrete(epsilon=0.5, delta=1e-6, sensitivity=3).randomise
    return {
        "Laplace": (False, each(laplace, 0, PEER_MANY), each(laplace, 1041, SCALARS)),
        "Gaussian": (True, each(gaussian, 0, PEER_MANY), each(gaussian, 1041, SCALARS)),
    }


def pydp_peers() -> dict[str, tuple[bool, Callable[[], object], Callable[[], object]]]:
    peer = importlib.import_module("pydp.algorithms.numerical_mechanisms")
    laplace = peer.LaplaceMechanism(epsilon=0.25, sensitivity=3.0).add_noise
    gaussian = peer.GaussianMechanism(0.5, 1e-6, 3.0).add_noise
    return {
        "Laplace": (False, each(laplace, 0.0, PEER_MANY), each(laplace, 1041.0, SCALARS)),
        "Gaussian": (False, each(gaussian, 0.0, PEER_MANY), each(gaussian, 1041.0, SCALARS)),
    }


PEERS = {"OpenDP": opendp_peers, "diffprivlib": diffprivlib_peers, "pydp": pydp_peers}


def speed() -> None:
    zeros = np.zeros(MANY, dtype=np.int64)
    ours = {
        "Laplace": Laplace(sensitivity=3, epsilon="1/4"),
        "Gaussian": Gaussian(sensitivity=3, rho=RHO),
    }
    print("Numeric releases: milliseconds for 10**6 at once, microseconds for one")
    print(f"  {'':12s}{'library':22s}{'10**6 [ms]':>12s}{'times ours':>12s}{'one [us]':>10s}")
    for name, mechanism in ours.items():
        vector = seconds(lambda m=mechanism: m.release(zeros))
        scalar = seconds(each(mechanism.release, 1041, SCALARS)) / SCALARS
        print(f"  {name:12s}{'discreet':22s}{vector * 1e3:12.1f}{'1':>12s}{scalar * 1e6:10.1f}")
        for library, make in PEERS.items():
            try:
                peers = make()
            except ImportError:
                print(f"  {name:12s}{library:22s}{'absent':>12s}")
                continue
            exact, many, one = peers[name]
            took = seconds(many, repeats=1) * MANY / PEER_MANY
            label = library if exact else f"{library} (floats)"
            single = seconds(one, repeats=1) / SCALARS
            times = took / vector
            print(f"  {name:12s}{label:22s}{took * 1e3:12.0f}{times:12.0f}{single * 1e6:10.1f}")


def others() -> None:
    reals = np.linspace(-1e6, 1e6, MANY)
    bits = np.arange(MANY) % 2 == 0
    grid = Laplace(sensitivity="2.5", epsilon="1/4", grid=Grid("1/1024"), entries_changed=4)
    response = RandomizedResponse(epsilon="3/2")
    categories = RandomizedResponse(epsilon="3/2", categories=20)
    cube = HammingCube(sensitivity=3, epsilon=2)
    months = MetricSpace.of(range(12), lambda p, q: min((p - q) % 12, (q - p) % 12))
    metric = MetricNoise(space=months, sensitivity=2, epsilon=3)
    print("\nThe others")
    for name, vector, scalar in (
        ("Laplace on a grid, real numbers", lambda: grid.release(reals), (grid.release, 3.7)),
        ("randomized response", lambda: response.release(bits), (response.release, True)),
        (
            "randomized response, 20 answers",
            lambda: categories.release(np.arange(MANY) % 20),
            (categories.release, 7),
        ),
        ("Hamming cube", lambda: cube.release(bits), (cube.release, [1, 0, 1])),
        ("metric noise, 12 points", None, (metric.release, 7)),
    ):
        many = f"{seconds(vector) * 1e3:8.1f} ms" if vector else f"{'':11s}"
        one = seconds(each(*scalar, SCALARS)) / SCALARS
        print(f"  {name:34s}{many} for 10**6 {one * 1e6:8.1f} us for one")


def margins() -> None:
    print("\nMargins against the empirical quantile of 10**6 releases, beta = 0.05")
    zeros = np.zeros((MANY // 100, 100), dtype=np.int64)
    for mechanism in (
        Laplace(sensitivity=3, epsilon="1/4"),
        Gaussian(sensitivity=3, rho=RHO),
    ):
        errors = np.abs(mechanism.release(zeros))
        for k, sample in ((1, errors.reshape(-1)), (100, errors.max(axis=1))):
            margin = mechanism.margin("0.05", coordinates=k)
            found = np.quantile(sample, 0.95, method="inverted_cdf")
            print(f"  {mechanism!r:40s} {k:4d} entries: margin {margin:4d}, empirical {found:4.0f}")


def joint_noise() -> None:
    print("\nMean and covariance: mean absolute noise per coordinate over joint noise (DMNS 3.2)")
    print(f"  {'d':>4s}{'sums':>10s}{'claimed d':>12s}{'products':>12s}{'claimed d^2':>14s}")
    bound, third = 4, Fraction(1, 2)
    for d in (4, 16):
        moments = Moments(dimension=d, bound=bound, epsilon=3 * third, grid=Grid("1/16"))
        nothing = np.zeros((1, d))
        released = [moments.release(nothing) for _ in range(400)]
        sums = np.mean([np.abs(one.sums) for one in released])
        products = np.mean([np.abs(one.products) for one in released])
        zeros = np.zeros(MANY // 10, dtype=np.int64)
        apart = np.abs(Laplace(sensitivity=bound, epsilon=third / d).release(zeros)).mean()
        pairs = np.abs(Laplace(sensitivity=bound**2, epsilon=third / d**2).release(zeros)).mean()
        print(f"  {d:4d}{apart / sums:10.1f}{d:12d}{pairs / products:12.1f}{d**2:14d}")


def main() -> None:
    speed()
    others()
    margins()
    joint_noise()


if __name__ == "__main__":
    main()
