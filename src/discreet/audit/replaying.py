"""Record and replay: the same noise in two neighbouring worlds, and what it is added to.

With the noise frozen nothing random is left: whatever differs between the runs
differs because of one person.  That person may move the numbers that noise is
added to, by at most the stated sensitivity, and nothing else: not which
mechanisms are used, nor how often, nor with which parameters.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.budget import Budget
from discreet.audit.events import outcome_of
from discreet.audit.frozen import freeze_bytes
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


@dataclass(frozen=True, slots=True)
class Replay:
    """Two runs with the same noise.

    ``differences`` lists what one person changed and should not have.  It says how
    far they moved a number: what is found on real tables is not for publication.
    """

    name: str
    first: tuple[Event, ...] = field(repr=False)
    second: tuple[Event, ...] = field(repr=False)
    outputs: tuple[Any, Any] = field(repr=False)
    differences: tuple[str, ...] = ()
    checked: int = 0  # comparisons with a stated sensitivity

    @property
    def verdict(self) -> Verdict:
        """Broken by any difference; undecided if there was nothing to compare."""
        if self.differences:
            return Verdict.BROKEN
        return Verdict.CONSISTENT if self.checked else Verdict.UNDECIDED

    @property
    def alarm(self) -> bool:
        """Whether the promise was found broken."""
        return self.verdict is Verdict.BROKEN

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        if self.differences:
            return f"{self.name}: {self.differences[0]}."
        if not self.checked:
            seen = f"the same {len(self.first)} uses of noise in both worlds" if self.first else ""
            return (
                f"{self.name}: {seen or 'no noise was seen'}, and no sensitivity was stated, so "
                "that how far one person moves the result was not checked."
            )
        return (
            f"{self.name}: the same {len(self.first)} uses of noise in both worlds, "
            "and nothing moved further than stated."
        )

    def to_json(self) -> dict[str, Any]:
        """Everything but the outputs, as plain JSON."""
        return {
            "kind": "replay",
            "name": self.name,
            "events": [[str(event) for event in run] for run in (self.first, self.second)],
            "differences": list(self.differences),
            "checked": self.checked,
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

    ``target`` is a curator or a schema (then the tables are given by name, and
    ``question`` is SQL, asked with ``epsilon=...`` or another spend), or any
    function of a table.  A function's draws from ``discreet.noise`` and
    ``discreet.mechanisms`` are seen; of any other noise (numpy's global generator,
    or a parameter named ``rng``) only the output is, and how far that may move is
    to be stated: ``sensitivity`` in ``norm``.  ``adaptive`` says that later steps
    may follow from what earlier ones released.

    >>> from textwrap import fill
    >>> from discreet.mechanisms import Laplace
    >>> def count(rows):
    ...     return Laplace(sensitivity=2, epsilon="1/2").release(3 * len(rows))
    >>> print(fill(replay(count, [3, 5, 8], [3, 5, 8, 13]).sentence, 88))
    count: use 1 of noise, Laplace(sensitivity=2, epsilon='1/2'), is on numbers that move by
    3 in l1, where 2 is stated.
    """
    if norm not in NORMS:
        raise InvalidParameter(
            "P4",
            f"there is no norm {quote_value(norm)}.",
            why="a sensitivity says how far a person moves a result in some norm.",
            fix=f"use one of {', '.join(NORMS)}.",
        )
    schema = target if isinstance(target, Schema) else getattr(target, "schema", None)
    neighbouring(table, neighbour, schema=schema, adjacent=adjacent)
    run = _runner(target, question, spend)
    runs = [_observe(run, world, label) for world in (table, neighbour)]
    (first, output), (second, other) = runs
    differences, checked = compare(first, second, adaptive=adaptive)
    if sensitivity is not None:
        stated = positive(sensitivity, name="sensitivity")
        moved = _describe_excess(output, other, norm, stated)
        differences += (moved,) if moved else ()
        checked += 1
    elif _outcome(output) != _outcome(other):
        differences += ("one world ends in an error that the other does not have",)
    called = str(name or question or getattr(target, "__name__", type(target).__name__))
    return Replay(called, first, second, (output, other), differences, checked)


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


def _runner(target: Any, question: str | None, spend: Mapping[str, Any]) -> Callable[[Any], Any]:
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

    def run(world: Any) -> Any:
        options = dict(spend)
        if takes_rng:
            words = np.frombuffer(freeze_bytes("rng", 16), dtype=np.uint32)
            options["rng"] = np.random.Generator(np.random.Philox(words.tolist()))
        return target(world, *given, **options)

    return run


def _make_ask(target: Any, question: str, spend: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A question to a curator of the same schema and budget, made anew for each world."""
    budget = _PLENTY if isinstance(target, Schema) else target.budget
    schema = target if isinstance(target, Schema) else target.schema

    def run(world: Any) -> Any:
        with Curator(world, schema=schema, budget=budget, threads=1) as curator:
            return curator.ask(question, **spend)

    return run


def _observe(run: Callable[[Any], Any], world: Any, label: str) -> tuple[tuple[Event, ...], Any]:
    with observe(label) as seen, _freeze_globals(label):
        try:
            output = run(world)
        except Exception as error:
            output = _Raised(outcome_of(error))
    return tuple(seen.events), output


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error, as its outcome."""

    outcome: str


def _outcome(output: Any) -> str:
    return output.outcome if isinstance(output, _Raised) else ""


@contextmanager
def _freeze_globals(label: str) -> Iterator[None]:
    """Freeze the global generators of numpy and of the standard library, then put them back."""
    number = int.from_bytes(freeze_bytes(label, 4), "big")
    numpy_state, python_state = np.random.get_state(), random.getstate()
    np.random.seed(number)  # the audited code's generator, not ours
    random.seed(number)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def _parameters(target: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return ()


def _describe_excess(output: Any, other: Any, norm: str, stated: Fraction) -> str:
    """What is wrong with how far the output moved, or nothing."""
    if _outcome(output) != _outcome(other):
        return "one world ends in an error that the other does not have"
    one, two = numbers_of(output), numbers_of(other)
    if one is None or two is None:
        return "" if output == other else "the outputs differ and are not numbers"
    if one.keys() != two.keys():
        return "the outputs have different lengths"
    size, limit = measure_move(one, two, norm), stated**2 if norm == "l2" else stated
    # The output of a float pipeline is rounded; a rounding is no breach of this kind.
    if size <= limit * (1 + Fraction(1, 2**40)):
        return ""
    return (
        f"with the noise frozen the output moves by {_short(size)} in {norm}, not {_short(limit)}"
    )


def _short(size: Any) -> str:
    return amount_up(size, 6) if isinstance(size, Fraction) else str(size)


__all__ = ["NORMS", "Replay", "compare", "measure_move", "replay"]
