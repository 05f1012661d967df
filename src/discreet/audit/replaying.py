"""Record and replay: the same noise in two neighbouring worlds, and what it is added to.

With the noise frozen nothing random is left: whatever differs between the runs
differs because of one person.  That person may move the numbers that noise is
added to, by at most the stated sensitivity, and nothing else: not which
mechanisms are used, nor how often, nor with which parameters.

Not all noise of other people's code can be frozen.  So it is run again on the same
table: where it ends otherwise, something random was left and nothing is concluded.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.budget import Budget
from discreet.audit.events import outcome_of
from discreet.audit.generators import freeze_generators, watch_sources
from discreet.audit.neighbours import Adjacent, neighbouring
from discreet.audit.observing import Event, numbers_of, observe
from discreet.audit.verdict import Verdict, amount_up
from discreet.curate.curator import Curator
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.numbers import Exact as Number
from discreet.exact.numbers import positive
from discreet.question.schema import Schema

NORMS = ("l1", "l2", "linf", "one entry", "units")
_PLENTY = Budget(epsilon=1000, delta="0.5", accept_large_delta=True)

_AGAIN = 20
"""How often code that is to be found broken is run again on either table.

What cannot be frozen would have to come out alike each time, and in one of the
worlds off the mark: of a fair coin, once in a million.
"""


@dataclass(frozen=True, slots=True)
class Replay:
    """Two runs with the same noise.

    ``name`` is what was run; ``first`` and ``second`` are the uses of noise in either world,
    ``outputs`` what came out. ``checked`` is how many comparisons had a stated sensitivity,
    ``generators`` are other people's that were frozen and drawn from, and ``frozen`` says whether
    the same table came to the same end each time.

    ``differences`` lists what one person changed and should not have.  It says how
    far they moved a number: what is found on real tables is not for publication.
    """

    name: str
    first: tuple[Event, ...] = field(repr=False)
    second: tuple[Event, ...] = field(repr=False)
    outputs: tuple[Any, Any] = field(repr=False)
    differences: tuple[str, ...] = ()
    checked: int = 0
    generators: tuple[str, ...] = ()
    frozen: bool = True

    @property
    def verdict(self) -> Verdict:
        """Broken by any difference; undecided if there was nothing to compare, or no noise.

        Where nobody drew and nothing moved, another pair may move: a result without
        noise is private only if it is the same on all.
        """
        if self.differences:
            return Verdict.BROKEN
        noisy = self.first or self.second or self.generators
        return Verdict.CONSISTENT if self.checked and noisy else Verdict.UNDECIDED

    @property
    def alarm(self) -> bool:
        """Whether the promise was found broken."""
        return self.verdict is Verdict.BROKEN

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        if not self.frozen:
            return (
                f"{self.name}: with the noise frozen, runs on the same table differ or ask for "
                "fresh randomness, so that nothing was concluded: noise comes from a generator "
                "that could not be frozen, or something is kept from run to run. Draw it "
                "through discreet.mechanisms, from a parameter named rng, or from the global "
                "generators of numpy or random."
            )
        if self.differences:
            return f"{self.name}: {self.differences[0]}."
        if self.verdict is Verdict.CONSISTENT:
            return f"{self.name}: {self._noise}, and nothing moved further than stated."
        if self.checked:
            return (
                f"{self.name}: {self._noise}, and nothing moved; a result without noise is "
                "private only if nobody moves it, which one pair does not show."
            )
        return (
            f"{self.name}: {self._noise}, and no sensitivity was stated, so that how far one "
            "person moves the result was not checked."
        )

    @property
    def _noise(self) -> str:
        """What was drawn, in words."""
        uses = "use" if len(self.first) == 1 else "uses"
        seen = [f"the same {len(self.first)} {uses} of noise in both worlds"] if self.first else []
        if self.generators:
            seen.append(f"noise from {' and '.join(self.generators)}, frozen")
        return ", ".join(seen) or "no noise was seen"

    def to_json(self) -> dict[str, Any]:
        """Everything but the outputs, as plain JSON."""
        return {
            "kind": "replay",
            "name": self.name,
            "events": [[str(event) for event in run] for run in (self.first, self.second)],
            "differences": list(self.differences),
            "checked": self.checked,
            "generators": list(self.generators),
            "frozen": self.frozen,
            "verdict": self.verdict.value,
            "sentence": self.sentence,
        }

    def picture(self) -> str:
        """Nothing to draw."""
        return ""


def replay(  # noqa: PLR0913 (each is one word of the experiment)
    target: Any,
    table: Any,
    neighbour: Any,
    question: str | None = None,
    *,
    sensitivity: Number | None = None,
    norm: str = "l1",
    adjacent: Adjacent = None,
    adaptive: bool = False,
    label: str = "replay",
    name: str | None = None,
    **spend: Any,
) -> Replay:
    """Run ``target`` on two neighbours with frozen noise and compare what enters it.

    ``neighbour`` is ``table`` with or without a unit, or as ``adjacent`` says; noise is
    frozen by its ``label``.  ``target`` is a curator or a schema (then tables are given by
    name, and ``question`` is SQL, asked with a ``spend`` such as ``epsilon=1``), or any
    function of a table.  A function's draws from ``discreet.noise`` and
    ``discreet.mechanisms`` are seen; of any other noise (the global generators of
    numpy and of ``random``, or a parameter named ``rng``) only the output is, and how
    far that may move is to be stated: ``sensitivity`` in ``norm``.  A function is run
    again, on the same table: what is drawn elsewhere is not frozen, and nothing is
    concluded.  ``adaptive`` says that later steps may follow from what earlier ones
    released, ``name`` what the target is called in the finding.

    >>> from textwrap import fill
    >>> from discreet.mechanisms import Laplace
    >>> def count(rows):
    ...     return Laplace(sensitivity=2, epsilon="1/2").release(3 * len(rows))
    >>> print(fill(replay(count, [3, 5, 8], [3, 5, 8, 13]).sentence, 88))
    count: use 1 of noise, Laplace(sensitivity=2, epsilon='1/2'), is on numbers that move by
    3 in l1, where 2 is stated.
    """
    _refuse_unknown(norm)
    schema = target if isinstance(target, Schema) else getattr(target, "schema", None)
    neighbouring(table, neighbour, schema=schema, adjacent=adjacent)
    run = _runner(target, question, spend)
    worlds = table, neighbour
    first, second = runs = [_observe(run, world, label) for world in worlds]
    stated = None if sensitivity is None else positive(sensitivity, name="sensitivity")
    differences, checked = compare(first.events, second.events, adaptive=adaptive)
    moved = _describe_excess(first.output, second.output, norm, stated)
    differences, checked = differences + moved, checked + (stated is not None)
    ours = isinstance(target, Curator | Schema)  # which have no noise but what is frozen
    bare = not ours and _moves_bare(first, second)
    differences = (_BARE, *differences) if bare else differences
    frozen = ours or _is_steady(run, worlds, runs, label, convicts=bool(differences), bare=bare)
    called = str(name or question or getattr(target, "__name__", type(target).__name__))
    return Replay(
        called,
        first.events,
        second.events,
        (first.output, second.output),
        differences if frozen else (),
        checked if frozen else 0,
        generators=tuple(dict.fromkeys((*first.generators, *second.generators))),
        frozen=frozen,
    )


def _refuse_unknown(norm: str) -> None:
    if norm not in NORMS:
        raise InvalidParameter(
            "P4",
            f"there is no norm {quote_value(norm)}.",
            why="a sensitivity says how far a person moves a result in some norm.",
            fix=f"use one of {', '.join(NORMS)}.",
        )


def compare(
    first: tuple[Event, ...], second: tuple[Event, ...], *, adaptive: bool = False
) -> tuple[tuple[str, ...], int]:
    """What differs between two runs and should not, and how many sensitivities were compared."""
    differences: list[str] = []
    checked = 0
    first, second = _pad(first, second), _pad(second, first)
    for count, (one, other) in enumerate(zip(first, second, strict=False), start=1):
        if (one.name, one.parameters) != (other.name, other.parameters):
            differences.append(
                f"use {count} of noise is {one} in one world and {other} in the other"
            )
            break
        if one.allowed is None or one.values is None or other.values is None:
            continue  # a bare draw: its parameters were compared, and nothing says what it hides
        checked += 1
        size, limit = measure_move(one.values, other.values, one.allowed[0]), one.allowed[1]
        if size > limit:
            root = " squared" if one.allowed[0] == "l2" else ""
            differences.append(
                f"use {count} of noise, {one}, is on numbers that move by {_short(size)} in "
                f"{one.allowed[0]}{root}, where {_short(limit)} is stated"
            )
        if adaptive and size > 0:
            return tuple(differences), checked  # what follows may follow from what was released
    else:
        if len(first) != len(second):
            differences.append(
                f"one world uses noise {len(first)} times and the other {len(second)} times"
            )
    return tuple(differences), checked


_AIRLOCK = {"Laplace", "Gaussian", "Staircase", "KeyRelease", "coins"}
"""How the airlock's uses of noise are called; where no group was found there are none."""


def _pad(run: tuple[Event, ...], other: tuple[Event, ...]) -> tuple[Event, ...]:
    """A run that found none of the groups, which are private, beside one that found some."""
    airlock = all(isinstance(e.values, dict) and e.name in _AIRLOCK for e in other)
    return tuple(replace(e, values={}) for e in other) if not run and airlock else run


def measure_move(one: Mapping[Any, Any], other: Mapping[Any, Any], norm: str) -> Any:
    """How far two vectors are apart; squared for ``l2``, without end if not in ``one entry``.

    >>> measure_move({"a": 5, "b": 2}, {"a": 2, "c": 4}, "l2")
    29
    """
    gaps = [_gap(one.get(key, 0), other.get(key, 0)) for key in {**one, **other}]
    if norm == "one entry" and sum(gap > 0 for gap in gaps) > 1:
        return math.inf
    if norm == "units" and max(gaps, default=0) > 1:  # in each group a unit is one
        return math.inf
    if norm in ("l1", "one entry", "units"):
        return sum(gaps)
    return max(gaps, default=0) if norm == "linf" else sum(gap * gap for gap in gaps)


def _gap(one: Any, other: Any) -> Any:
    undefined = [isinstance(x, float) and math.isnan(x) for x in (one, other)]
    if one == other or all(undefined):
        return 0
    return float("inf") if any(undefined) else abs(one - other)


# --- running -----------------------------------------------------------------------------------

_Runner = Callable[[Any, Any], Any]
"""Runs on a world, with a frozen generator for whoever takes one."""


def _runner(target: Any, question: str | None, spend: Mapping[str, Any]) -> _Runner:
    if isinstance(target, Curator | Schema):
        if question is None:
            raise InvalidParameter(
                "P4",
                "a curator is replayed on a question, and none is given.",
                why="what a person changes depends on what is asked.",
                fix="pass the question as SQL, and what it may cost: epsilon='0.5'.",
            )
        return _make_ask(target, question, spend)
    if not callable(target):
        raise InvalidParameter(
            "P4",
            f"{quote_value(type(target).__name__)} cannot be run on a table.",
            why="only what runs can be compared on two tables.",
            fix="pass a curator, a schema, or a function of a table.",
        )
    given = (question,) if question is not None else ()
    takes_rng = "rng" in _parameters(target)

    def run(world: Any, rng: Any) -> Any:
        options = {**spend, "rng": rng} if takes_rng else spend
        return target(world, *given, **options)

    return run


def _make_ask(target: Any, question: str, spend: Mapping[str, Any]) -> _Runner:
    """A question to a curator of the same schema and budget, made anew for each world."""
    budget = _PLENTY if isinstance(target, Schema) else target.budget
    schema = target if isinstance(target, Schema) else target.schema

    def run(world: Any, _: Any) -> Any:
        with Curator(world, schema=schema, budget=budget, threads=1) as curator:
            return curator.ask(question, **spend)

    return run


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: the noise that was seen, the frozen generators that were drawn from, the end."""

    events: tuple[Event, ...]
    generators: tuple[str, ...]
    output: Any


def _observe(run: _Runner, world: Any, label: str) -> _Run:
    with observe(label) as seen, freeze_generators(label) as frozen:
        try:
            output = run(world, frozen.given)
        except Exception as error:
            output = _Raised(outcome_of(error))
    return _Run(tuple(seen.events), frozen.used, output)


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error, as its outcome."""

    outcome: str


def _outcome(output: Any) -> str:
    return output.outcome if isinstance(output, _Raised) else ""


def _parameters(target: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return ()


# --- is nothing random left? -------------------------------------------------------------------

_BARE = "no noise was drawn that would change from run to run, and the output moved"


def _moves_bare(first: _Run, second: _Run) -> bool:
    """Whether the output moved and nobody was seen to draw."""
    drawn = any((*run.events, *run.generators) for run in (first, second))
    errors = _outcome(first.output) or _outcome(second.output)
    return not (drawn or errors or _is_same(first.output, second.output))


def _is_steady(
    run: _Runner,
    worlds: Sequence[Any],
    runs: Sequence[_Run],
    label: str,
    *,
    convicts: bool,
    bare: bool,
) -> bool:
    """Whether every further run ends as the first did; a conviction is looked at more closely."""
    pairs = list(zip(worlds, runs, strict=True))
    for world, before in pairs if convicts else pairs[:1]:
        for _ in range(_AGAIN if convicts else 1):
            if not _is_repeated(before, _observe(run, world, label)):
                return False
    if not bare:
        return True
    # Noise that is nearly always 0 repeats itself, too: so look who is asked for it.
    with watch_sources() as asked:
        for world in worlds:
            _observe(run, world, label)
    return not asked


def _is_repeated(before: _Run, again: _Run) -> bool:
    same = [(one.name, one.parameters) for one in before.events] == [
        (one.name, one.parameters) for one in again.events
    ] and all(
        _is_same(one.values, two.values)
        for one, two in zip(before.events, again.events, strict=True)
    )
    return same and _is_same(before.output, again.output)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two outputs are equal; what is not a number is equal to itself."""
    if one is other:
        return True
    mine, theirs = numbers_of(one), numbers_of(other)
    if mine is not None and theirs is not None:
        return mine.keys() == theirs.keys() and bool(measure_move(mine, theirs, "l1") == 0)
    if getattr(one, "shape", ()) != getattr(other, "shape", ()):
        return False
    try:
        return bool(np.all(np.asarray(one == other)))
    except ValueError:  # tables whose rows or columns are called otherwise
        return False


def _describe_excess(
    output: Any, other: Any, norm: str, stated: Fraction | None
) -> tuple[str, ...]:
    """What is wrong with how far the output moved, or nothing."""
    if _outcome(output) != _outcome(other):
        return ("one world ends in an error that the other does not have",)
    if stated is None:
        return ()
    one, two = numbers_of(output), numbers_of(other)
    if one is None or two is None:
        return () if _is_same(output, other) else ("the outputs differ and are not numbers",)
    if one.keys() != two.keys():
        return ("the outputs have different lengths",)
    size, limit = measure_move(one, two, norm), stated**2 if norm == "l2" else stated
    # The output of a float pipeline is rounded; a rounding is no breach of this kind.
    if size <= limit * (1 + Fraction(1, 2**40)):
        return ()
    moved = f"moves by {_short(size)} in {norm}, not {_short(limit)}"
    return (f"with the noise frozen the output {moved}",)


def _short(size: Any) -> str:
    return amount_up(size, 6) if isinstance(size, Fraction) else str(size)


__all__ = ["NORMS", "Replay", "compare", "measure_move", "replay"]
