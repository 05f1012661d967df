"""Seeing what enters each draw of noise, without touching the code that draws.

Every draw in this library asks ``discreet.noise.entropy`` for bytes, and that source
can be replaced for the current context.  The replacement used here hands out
frozen bytes and, while it is being asked, looks up the calls that led to it: the
noise function with its parameters, the mechanism with its input, the airlock
with its integers.  Nothing is patched, no flag exists that a server could leave
on, other threads and tasks draw their own fresh bytes, and only a caller inside
the ``with`` block is seen.  Frames are read and let go.

A draw of no numbers asks for no bytes and is not seen; it tells nothing either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np

from discreet import noise
from discreet.audit.frozen import freeze_bytes
from discreet.engine.truth import SparseCounts
from discreet.mechanisms import Gaussian, KeyRelease, Staircase
from discreet.mechanisms.grid import read_array
from discreet.mechanisms.quantiles.ranks import Cells
from discreet.noise.entropy import use_source
from discreet.price import Additive, Priced, Selection, Threshold

Vector = dict[Any, int]
"""Integers by (group, entry); what is not there is 0."""

_NOISE = frozenset(noise.__all__)
_AIRLOCK = {
    ("discreet.release.release", name) for name in ("_add_noise", "_choose", "_show_keys", "_toss")
}


@dataclass(frozen=True, slots=True)
class Event:
    """One use of noise: who drew, with which public parameters, on what.

    ``name`` and ``parameters`` say who drew; ``allowed`` is a norm and how far one unit may move
    the vector in it, where that is stated; ``entries`` is the array of a release before its noise.

    ``values`` is a vector of exact numbers where it is known what the noise
    hides, and None where a bare draw was made.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    values: Vector | None = None
    allowed: tuple[str, Fraction] | None = None
    entries: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        inside = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.name}({inside})"


@dataclass(slots=True)
class Observation:
    """The ``events`` of one run, in order, under its ``label``."""

    label: str
    events: list[Event] = field(default_factory=list)
    _owners: list[FrameType] = field(default_factory=list, repr=False)
    _asked: int = 0

    def source(self, count: int) -> bytes:
        """``count`` frozen bytes: the same for the same event, however many other events drew."""
        owner = _owner(sys._getframe(1))
        if owner is None:  # a name for a file, an identifier: no noise
            return freeze_bytes(f"{self.label}/bytes", count)
        if not self._owners or owner is not self._owners[-1]:
            self._owners.append(owner)  # kept, so that no later frame can be taken for it
            self._asked = 0
            self.events.append(_event(owner))
        self._asked += 1
        return freeze_bytes(f"{self.label}/{len(self.events)}/{self._asked}", count)

    def close(self) -> None:
        """Let go of the frames, and with them of all data."""
        self._owners.clear()


@contextmanager
def observe(label: str = "replay") -> Iterator[Observation]:
    """Freeze the noise of this context and record what it is used on.

    Under one ``label`` the same noise is drawn each time.

    >>> from discreet.mechanisms import Laplace
    >>> with observe() as seen:
    ...     first = Laplace(sensitivity=3, epsilon="1/4").release(40)
    >>> with observe():
    ...     second = Laplace(sensitivity=3, epsilon="1/4").release(43)
    >>> second - first, str(seen.events[0])
    (3, "Laplace(sensitivity=3, epsilon='1/4')")
    """
    observation = Observation(label)
    try:
        with use_source(observation.source):
            yield observation
    finally:
        observation.close()


# --- who is drawing ----------------------------------------------------------------------------


def _owner(frame: FrameType | None) -> FrameType | None:
    """The call that stands for the event: airlock, else mechanism, else noise function."""
    airlock = mechanism = drawn = None
    while frame is not None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if (module, name) in _AIRLOCK:
            airlock = frame
        elif module.startswith("discreet.mechanisms.") and "self" in frame.f_locals:
            mechanism = frame
        elif module.startswith("discreet.noise.") and name in _NOISE:
            drawn = frame
        frame = frame.f_back
    return airlock or mechanism or drawn


def _event(frame: FrameType) -> Event:
    module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
    if (module, name) in _AIRLOCK:
        seen = {"_add_noise": _see_noise, "_choose": _see_choice, "_show_keys": _see_keys}
        return seen.get(name, _see_coins)(frame)
    if module.startswith("discreet.mechanisms."):
        return _mechanism(frame)
    known = frame.f_locals
    arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return Event(name, tuple((a, _text(known[a])) for a in arguments if a in known))


def _see_noise(frame: FrameType) -> Event:
    mechanism: Additive = frame.f_locals["mechanism"]
    entries = frame.f_locals["measured"]
    groups = _above(frame, "groups") or tuple((g,) for g in range(len(entries)))
    vector = {
        (group, index): int(value)
        for group, row in zip(groups, entries, strict=True)
        for index, value in enumerate(row)
        if value
    }
    allowed: tuple[str, Fraction]
    parameters: tuple[tuple[str, str], ...]
    if isinstance(mechanism, Gaussian):
        allowed = ("l2", mechanism.sensitivity_squared)
        parameters = (("sigma_squared", str(mechanism.sigma_squared)),)
    elif isinstance(mechanism, Staircase):
        allowed = ("one entry", mechanism.sensitivity)
        parameters = (("epsilon", str(mechanism.epsilon)), ("width", str(mechanism.width)))
    else:
        allowed = ("l1", mechanism.sensitivity)
        parameters = (("scale", str(mechanism.scale)),)
    return Event(type(mechanism).__name__, parameters, vector, allowed, entries)


def _see_keys(frame: FrameType) -> Event:
    """Coins for groups: each is tossed by a number of units, which moves by one in each of them."""
    mechanism: KeyRelease = frame.f_locals["mechanism"]
    entries = frame.f_locals["measured"]
    groups = _above(frame, "groups") or tuple((g,) for g in range(len(entries)))
    vector: Vector = {
        (group, 0): int(row[0]) for group, row in zip(groups, entries, strict=True) if row[0]
    }
    parameters = (
        ("epsilon", str(mechanism.epsilon)),
        ("delta", str(mechanism.delta)),
        ("keys", str(mechanism.keys)),
    )
    return Event("KeyRelease", parameters, vector, ("units", Fraction(mechanism.keys)), entries)


def _see_coins(frame: FrameType) -> Event:
    """The coins of groups next to the threshold: tossed for all, looked at for few."""
    threshold: Threshold = frame.f_locals["threshold"]
    return Event("coins", (("odds", str(threshold.odds)),), {}, ("l1", Fraction(0)))


def _see_choice(frame: FrameType) -> Event:
    """A choice for every group: its scores move as its counts do, one for each row."""
    known = frame.f_locals
    selection: Selection = known["selection"]
    priced: Priced = known["priced"]
    groups, measured = _above(frame, "groups") or (), known["measured"]
    vector: Vector = {}
    if isinstance(measured, SparseCounts):
        for group, place, count in zip(
            measured.group, measured.position, measured.count, strict=True
        ):
            vector[groups[group], int(place)] = int(count)
    else:
        for group, row in zip(groups, measured, strict=True):
            vector |= {(group, place): int(n) for place, n in enumerate(row) if n}
    limit = priced.sensitivities[known["index"]]
    parameters = (("epsilon", str(selection.epsilon)), ("choices", str(selection.choices)))
    return Event("Selection", parameters, vector, ("l1", Fraction(limit.l1)))


def _above(frame: FrameType, name: str) -> Any:
    """A local of the airlock's own frame."""
    above: FrameType | None = frame
    while above is not None:
        inside = above.f_globals.get("__name__") == "discreet.release.release"
        if inside and above.f_code.co_name == "release":
            return above.f_locals.get(name)
        above = above.f_back
    return None


_NORMS = {
    "Laplace": "l1",
    "Gaussian": "l2",
    "Staircase": "one entry",
    "HammingCube": "l1",
    "MetricNoise": None,
}
"""The norm in which a mechanism states its sensitivity; where not listed, the greatest entry."""


def _mechanism(frame: FrameType) -> Event:
    known, code = frame.f_locals, frame.f_code
    mechanism = known["self"]
    arguments = [n for n in code.co_varnames[1 : code.co_argcount] if n in known]
    value = known[arguments[0]] if arguments else None
    name = type(mechanism).__name__
    norm = _NORMS.get(name, "linf")
    vector = numbers_of(value)
    stated = getattr(mechanism, "sensitivity_squared" if norm == "l2" else "sensitivity", None)
    allowed = None
    if vector is not None and norm and isinstance(stated, int | Fraction):
        allowed = (norm, Fraction(stated))
    text = repr(mechanism)
    if text.startswith("<"):  # the address of an object is nobody's parameter
        text = name
    return Event(text, (), vector, allowed)


def numbers_of(value: Any) -> dict[Any, Any] | None:
    """A number, an array or a list of numbers as a vector; None for anything else."""
    value = read_array(value)
    if isinstance(value, Cells):
        places = zip(value.at.tolist(), value.counts.tolist(), strict=True)
        return {place: count for place, count in places if count}
    if isinstance(value, bool | np.bool_ | int | float | Fraction | np.number):
        return {0: _exact(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufO":
        flat = value.ravel().tolist()
        return {i: _exact(x) for i, x in enumerate(flat)} if _all_numbers(flat) else None
    if isinstance(value, list | tuple) and _all_numbers(value):
        return {i: _exact(x) for i, x in enumerate(value)}
    if isinstance(value, dict) and _all_numbers(list(value.values())):
        return {key: _exact(x) for key, x in value.items()}
    return None


def _all_numbers(values: Any) -> bool:
    return all(isinstance(x, int | float | Fraction | np.number) for x in values)


def _exact(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return Fraction(float(value)) if np.isfinite(value) else float(value)
    return Fraction(int(value)) if not isinstance(value, Fraction) else value


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Fraction) else repr(value)


__all__ = ["Event", "Observation", "Vector", "numbers_of", "observe"]
