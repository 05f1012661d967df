"""The generators of other people's noise: frozen while their code is audited, and seen to be used.

What can be frozen: the global generators of numpy and of the standard library,
and the one that is given to a parameter named ``rng``.  Each is looked at before
and after: whoever drew from it left it in another state.

What cannot be: a generator that the code makes for itself, and the system's.
Numpy's ``default_rng`` is not replaced by another: that would hold for the whole
process, and what is left behind by a mistake would be noise that everybody knows.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from discreet.audit.frozen import freeze_bytes

_SYSTEM = frozenset({"RAND_bytes", "getrandom", "urandom"})


@dataclass(slots=True)
class Generators:
    """The frozen generators of one run, and after it the names of those that it drew from."""

    given: np.random.Generator
    used: tuple[str, ...] = ()


@contextmanager
def freeze_generators(label: str) -> Iterator[Generators]:
    """Freeze the global generators of numpy and of the standard library, then put them back.

    >>> with freeze_generators("a") as frozen:
    ...     first = np.random.normal()
    >>> with freeze_generators("a"):
    ...     again = np.random.normal()
    >>> first == again, frozen.used
    (True, ("numpy's global generator",))
    """
    number = int.from_bytes(freeze_bytes(label, 4), "big")
    words = np.frombuffer(freeze_bytes("rng", 16), dtype=np.uint32)
    frozen = Generators(np.random.Generator(np.random.Philox(words.tolist())))
    numpy_state, python_state = np.random.get_state(), random.getstate()
    np.random.seed(number)  # the audited code's generator, not ours
    random.seed(number)
    before = _states(frozen.given)
    try:
        yield frozen
    finally:
        after = _states(frozen.given)
        frozen.used = tuple(name for name, state in before.items() if after[name] != state)
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def _states(rng: np.random.Generator) -> dict[str, Any]:
    """Every generator that can be frozen by its name, and where it stands."""
    numpys: Any = np.random.get_state()
    given: Any = rng.bit_generator
    # What is spawned draws for itself; that it was spawned is written down in the seed.
    spawned = given.seed_seq.n_children_spawned
    return {
        "numpy's global generator": (numpys[1].tobytes(), *numpys[2:]),
        "the global generator of random": random.getstate(),
        "the given rng": (repr(given.state), spawned),
    }


@contextmanager
def watch_sources() -> Iterator[list[str]]:
    """List the calls of this thread that ask a generator which cannot be frozen, as they come.

    Seen are the system's own and every ``random.Random``; a generator of numpy is
    seen when it is made without a seed, and not when it is drawn from.

    >>> with watch_sources() as asked:
    ...     drawn = random.SystemRandom().random(), np.random.default_rng().normal()
    >>> asked
    ['urandom', 'urandom']
    """
    asked: list[str] = []
    shared = getattr(random.random, "__self__", None)

    def look(_: FrameType, event: str, called: Any) -> None:
        if event != "c_call":
            return
        owner = getattr(called, "__self__", None)
        if called.__name__ in _SYSTEM or (isinstance(owner, random.Random) and owner is not shared):
            asked.append(called.__name__)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield asked
    finally:
        sys.setprofile(before)


__all__ = ["Generators", "freeze_generators", "watch_sources"]
