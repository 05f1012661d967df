"""N6. Randomness that is shared, seedable, or unchecked under ``python -O``."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest
from patience import PATIENCE_S

import discreet.noise
from discreet.noise import discrete_gaussian, discrete_laplace


def draws() -> list[int]:
    return discrete_laplace(2**40, 4).tolist() + [discrete_gaussian(2**80) for _ in range(2)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_children_after_fork_draw_different_noise():
    draws()  # tables and generator are warm, as in a server that forks its workers
    seen = [tuple(draws())]
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, np.array(draws(), dtype=np.int64).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        seen.append(tuple(np.frombuffer(os.read(read, 1000), dtype=np.int64).tolist()))
        os.close(read)
        os.close(write)
    seen.append(tuple(draws()))
    values = [value for row in seen for value in row]
    assert len(set(values)) == len(values) == 30


def test_spawned_processes_draw_different_noise():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        rows = pool.starmap_async(discrete_laplace, [(2**40, 3)] * 4, chunksize=1).get(
            timeout=PATIENCE_S
        )
    values = [value for row in rows for value in row.tolist()]
    assert len(set(values)) == 12


def test_numpy_seeds_do_not_reach_the_noise():
    rows = []
    for _ in range(2):
        np.random.seed(7)
        rows.append(discrete_laplace(2**40, 4).tolist())
    assert rows[0] != rows[1]


@pytest.mark.parametrize("name", discreet.noise.__all__)
def test_no_seed_in_any_signature(name):
    parameters = inspect.signature(getattr(discreet.noise, name)).parameters
    assert not {"seed", "rng", "random_state", "generator"} & set(parameters)
    with pytest.raises(TypeError):
        getattr(discreet.noise, name)(3, 3, seed=1)


def test_python_o_changes_nothing():
    """The same bytes give the same noise, and a wrong scale is still refused."""
    script = (
        "from discreet.noise import *\n"
        "from discreet.noise.entropy import use_recording\n"
        "with use_recording(bytes(range(256)) * 40):\n"
        "    print(discrete_laplace(1000, 300).tolist(), discrete_gaussian(9, 5).tolist())\n"
        "try:\n"
        "    discrete_laplace(-3)\n"
        "except ValueError as refusal:\n"
        "    print(refusal)\n"
    )
    plain, optimised = (
        subprocess.run(
            [sys.executable, *flags, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        for flags in ([], ["-O"])
    )
    assert plain == optimised
    assert "P2: scale must be greater than 0" in plain
