"""The source of randomness: processes, threads, recordings, and no seeds."""

from __future__ import annotations

import ast
import inspect
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE_S

import discreet
from discreet.errors import InvalidParameter
from discreet.noise.entropy import (
    random_bits,
    random_bytes,
    random_words,
    use_recording,
    use_source,
)

SOURCE = Path(discreet.__file__).parent


def test_as_many_bytes_as_asked():
    for count in (0, 1, 7, 8, 4096, 10**6):
        assert len(random_bytes(count)) == count
    assert random_bytes(16) != random_bytes(16)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_words_are_the_bytes_in_the_machines_order(dtype):
    data = bytes(range(64))
    with use_recording(data):
        array = random_words(64 // np.dtype(dtype).itemsize, dtype)
    assert array.dtype == dtype
    assert array.tobytes() == data
    assert not array.flags.writeable


@pytest.mark.parametrize("count", [0, 1, 5, 8, 9, 31, 32, 47, 64, 65])
def test_bits_are_below_their_power_of_two_and_reach_it(count):
    size = (count + 7) // 8
    with use_recording(b"\xff" * size + b"\x00" * size):
        assert random_bits(count) == 2**count - 1
        assert random_bits(count) == 0
    if count:
        with use_recording(b"\x00" * (size - 1) + b"\x80"):
            assert random_bits(count) == 2 ** (count - 1)


def test_a_recording_is_replayed_and_not_padded():
    with use_recording(b"abcdef"):
        assert random_bytes(4) == b"abcd"
        with pytest.raises(
            InvalidParameter, match="P7: the recording holds 6 bytes and 7 are needed"
        ):
            random_bytes(3)
        assert random_bytes(2) == b"ef"
    assert len(random_bytes(64)) == 64


def test_recordings_nest_and_end_with_an_exception():
    with use_recording(b"outer"):
        with suppress(ZeroDivisionError), use_recording(b"inner"):
            assert random_bytes(5) == b"inner"
            1 / 0  # noqa: B018
        assert random_bytes(5) == b"outer"


def test_a_recording_is_not_heard_in_another_thread():
    heard = []
    with use_source(lambda count: b"x" * count):
        thread = threading.Thread(target=lambda: heard.append(random_bytes(32)))
        thread.start()
        thread.join()
        assert random_bytes(2) == b"xx"
    assert heard[0] != b"x" * 32


def test_threads_draw_different_bytes():
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: random_bytes(32), range(400)))
    assert len(set(drawn)) == 400


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_children_draw_different_bytes_from_the_parent_and_each_other():
    random_bytes(100)  # the generator is seeded before the fork
    children = []
    for _ in range(4):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, random_bytes(32))
            os._exit(0)
        os.waitpid(child, 0)
        children.append(os.read(read, 32))
        os.close(read)
        os.close(write)
    parent = random_bytes(32)
    assert len({parent, *children}) == 5


def test_spawned_processes_draw_different_bytes():
    command = "from discreet.noise.entropy import random_bytes; print(random_bytes(32).hex())"
    drawn = [
        subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    assert len({done.stdout for done in drawn}) == 3
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        drawn = pool.map_async(random_bytes, [32] * 6, chunksize=1).get(timeout=PATIENCE_S)
    assert len(set(drawn)) == 6


# --- no seeds, and no other source -----------------------------------------------------------

SEEDS = ("seed", "rng", "random_state", "generator", "prng")


def public_callables():
    for found in pkgutil.walk_packages(discreet.__path__, "discreet."):
        module = import_module(found.name)
        for name, member in vars(module).items():
            if name.startswith("_") or getattr(member, "__module__", None) != found.name:
                continue
            if inspect.isclass(member):
                yield f"{found.name}.{name}", member
                yield from (
                    (f"{found.name}.{name}.{method}", function)
                    for method, function in inspect.getmembers(member, inspect.isroutine)
                    if not method.startswith("_")
                )
            elif callable(member):
                yield f"{found.name}.{name}", member


def test_no_public_signature_has_a_seed():
    seen = 0
    for name, function in public_callables():
        if str(getattr(function, "__module__", "")).startswith("pydantic"):
            continue  # a model's own methods, which speak of schema generators
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):  # inherited from a built-in type
            continue
        seen += 1
        for parameter in parameters:
            assert not any(seed in parameter.lower().split("_") for seed in SEEDS), name
            assert parameter != "random_state", name
    assert seen > 40


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def _check_attacked(tree):
    """The lab attacks numpy's noise: it is drawn in the class of that name and nowhere else."""
    (numpys,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "NumPy")
    within = {id(node) for node in ast.walk(numpys)}
    drawing = {"random", "default_rng", "RandomState", "urandom", "getrandbits"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in drawing:
            assert id(node) in within


DRAWING = ("random", "secrets", "uuid", "ssl", "default_rng", "RandomState", "urandom")
DRAWING += ("getrandbits", "RAND_bytes")
"""What another source is written with: a text without any of these has none, and is not parsed."""


def test_no_module_has_another_source_of_randomness():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        text = path.read_text()
        if any(word in text for word in DRAWING) and name != "audit/generators.py":
            # (That one freezes the generators of the programs it audits, and draws from none.)
            check_source(name, ast.parse(text))


def check_source(module: str, tree: ast.Module) -> None:
    """It imports nothing that draws, and calls nothing that does."""
    roots = {name.split(".")[0] for name in imported(tree)}
    assert not roots & {"random", "secrets", "uuid"}, module
    assert not {name for name in imported(tree) if name.startswith("numpy.random")}, module
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if module == "lab/floats.py":
        _check_attacked(tree)
        return
    assert not attributes & {"default_rng", "RandomState", "urandom", "getrandbits"}, module
    if module != "noise/entropy.py":
        tls = ("server/listen.py", "server/postgres/door.py")  # where it means TLS
        if module not in tls:
            assert "ssl" not in roots, module
        assert not attributes & {"RAND_bytes"}, module
        numpys = {
            node.value.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and node.attr == "random"
            and isinstance(node.value, ast.Name)
        }
        assert not numpys & {"np", "numpy"}, module
