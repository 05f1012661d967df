"""Counts and sums as clauses, and a solver that finds what fits them, and that nothing else does.

A SAT solver (CaDiCaL, by python-sat) either finds values or proves that there are none.  What was
found is forbidden by one clause more, and it is asked again: if nothing is left, what was found is
the only thing that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from discreet.errors import InvalidParameter

Literal = int
"""A variable's number, negative where it is false."""
Number = tuple[Literal, ...]
"""Bits, the lowest first."""


class Clauses:
    """A formula that grows: variables, and clauses of which each must hold."""

    def __init__(self) -> None:
        self._clauses: list[list[Literal]] = []
        self._variables = 0
        self.true = self.make()
        self.add(self.true)

    def make(self) -> Literal:
        """A new variable."""
        self._variables += 1
        return self._variables

    def make_number(self, bits: int) -> Number:
        """A new number of so many bits."""
        return tuple(self.make() for _ in range(bits))

    def add(self, *clause: Literal) -> None:
        """One of these holds."""
        self._clauses.append(list(clause))

    def conjoin(self, one: Literal, other: Literal) -> Literal:
        """Whether both hold."""
        both = self.make()
        self.add(-both, one)
        self.add(-both, other)
        self.add(both, -one, -other)
        return both

    def disjoin(self, one: Literal, other: Literal) -> Literal:
        """Whether either holds."""
        return -self.conjoin(-one, -other)

    def differ(self, one: Literal, other: Literal) -> Literal:
        """Whether one of them holds, and not both."""
        apart = self.make()
        for a, b, c in ((1, 1, -1), (-1, -1, -1), (1, -1, 1), (-1, 1, 1)):
            self.add(a * one, b * other, c * apart)
        return apart

    def add_up(self, one: Number, other: Number) -> Number:
        """The sum of two numbers, bit by bit with a carry."""
        total, carry = [], -self.true
        for place in range(max(len(one), len(other))):
            a = one[place] if place < len(one) else -self.true
            b = other[place] if place < len(other) else -self.true
            apart = self.differ(a, b)
            total.append(self.differ(apart, carry))
            carry = self.disjoin(self.conjoin(a, b), self.conjoin(apart, carry))
        return (*total, carry)

    def equate(self, number: Number, value: int, *unless: Literal) -> None:
        """The number has this value, or one of ``unless`` holds."""
        if value >> len(number):
            self.add(*unless)
            return
        for place, bit in enumerate(number):
            self.add(bit if value >> place & 1 else -bit, *unless)

    def order(self, one: Number, other: Number) -> None:
        """The first number is at most the other."""
        equal = self.true  # so far, from the highest bit down
        for a, b in zip(reversed(one), reversed(other), strict=True):
            self.add(-equal, -a, b)
            equal = self.conjoin(equal, -self.differ(a, b))

    def count(self, literals: Sequence[Literal]) -> list[list[Literal]]:
        """For each prefix, from the empty one: whether at least 0, 1, 2, ... of it hold."""
        counted = [[self.true]]
        for literal in literals:
            before = [*counted[-1], -self.true]
            grown = [
                self.disjoin(before[j], self.conjoin(literal, before[j - 1]))
                for j in range(1, len(before))
            ]
            counted.append([self.true, *grown])
        return counted

    def require(self, literals: Sequence[Literal], least: int, most: int) -> None:
        """From ``least`` to ``most`` of them hold."""
        counted = [*self.count(literals)[-1], -self.true]
        self.add(counted[min(least, len(literals) + 1)])
        if most < len(literals):
            self.add(-counted[most + 1])

    def find(self, wanted: Sequence[Literal], *, most: int = 2) -> list[list[bool]]:
        """Up to so many different values of the ``wanted`` variables that fit all clauses.

        If there are fewer than ``most``, the solver has proved that there are no more.
        """
        from pysat.solvers import Solver

        found: list[list[bool]] = []
        with Solver(name="cadical153", bootstrap_with=self._clauses) as solver:
            while len(found) < most and solver.solve():
                holds = set(solver.get_model() or ())
                found.append([one in holds for one in wanted])
                solver.add_clause([-one if one in holds else one for one in wanted])
        return found


def check_solvers() -> None:
    """Refused where one of the solvers is not installed, before anything is run."""
    if find_spec("scipy") is None or find_spec("pysat") is None:
        raise InvalidParameter(
            "P8",
            "the lab needs scipy and python-sat, and one of them is not installed.",
            why="what attackers put together is found by their solvers.",
            fix="pip install 'discreet[lab]'.",
        )


__all__ = ["Clauses", "Literal", "Number", "check_solvers"]
