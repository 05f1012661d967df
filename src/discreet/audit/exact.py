"""An audit without chance: two exact laws, and all that can be told from their outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from flint import arb

from discreet.accounting.conversion import Amount
from discreet.accounting.divergence import (
    Bounds,
    Extended,
    approximate_max_divergence,
    both_ways,
    hockey_stick,
    max_divergence,
    rho,
    total_variation,
)
from discreet.accounting.law import IntegerLaw, Law
from discreet.accounting.loss import Loss, failure_mass
from discreet.accounting.ratio import ONLY_P, ONLY_Q, Comparison
from discreet.audit.exact_drawing import draw_losses
from discreet.audit.verdict import Verdict, amount_down, amount_up
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import ball, ends, precision
from discreet.exact.numbers import Exact as Number
from discreet.exact.numbers import nonnegative

SLACK = Fraction(1, 2**40)
"""The width of an enclosure: an attained bound is certified to this relative part above it."""

RHO_SLACK = Fraction(1, 2**18)
"""The same for rho, a supremum that is searched for and enclosed less closely."""

_POINTS = 24
_DELTAS = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 20))

Atom = tuple[float, float, float]
"""A privacy loss ln(P/Q) and the mass that either law gives it; the loss may be infinite."""


@dataclass(frozen=True, slots=True)
class Exact:
    """How well anybody can tell two inputs of a mechanism apart, certified.

    ``mechanism`` is its name, ``promised`` the loss that it states, if any, and ``verdict`` what
    the bounds say of that.

    ``epsilon``, ``rho`` and ``total_variation`` are (lower, upper) bounds of what
    this pair of inputs costs, the worse way round.
    """

    mechanism: str
    promised: Loss | None
    epsilon: Bounds
    rho: Bounds
    total_variation: Bounds
    verdict: Verdict
    _laws: tuple[Law, Law] = field(repr=False, compare=False)

    @property
    def alarm(self) -> bool:
        """Whether the promise is broken."""
        return self.verdict is Verdict.BROKEN

    def delta_at(self, epsilon: Number) -> Bounds:
        """The least delta at this ``epsilon``: a lower and an upper bound."""
        return both_ways(hockey_stick, *self._laws, nonnegative(epsilon, name="epsilon"))

    def epsilon_at(self, delta: Number) -> Bounds:
        """The least epsilon at this ``delta``: a lower and an upper bound, neither below 0."""
        mass = failure_mass(delta)
        low, high = both_ways(approximate_max_divergence, *self._laws, mass)
        return max(low, Fraction(0)), max(high, Fraction(0))

    @property
    def curve(self) -> tuple[tuple[Fraction, Extended, Extended], ...]:
        """(epsilon, lower delta, upper delta) from epsilon 0 to where little is left."""
        most = self.epsilon[1]
        if isinstance(most, float) and self.promised is not None and self.promised.delta:
            most = 2 * self.promised.epsilon
        if isinstance(most, float):
            most = Fraction(self.epsilon_at(Fraction(1, 10**6))[0])
        epsilons = [most * k / _POINTS for k in range(_POINTS + 1)]
        ways = [_curve(Comparison(*pair), epsilons) for pair in (self._laws, self._laws[::-1])]
        return tuple(
            (epsilon, max(a[0], b[0]), max(a[1], b[1]))
            for epsilon, a, b in zip(epsilons, *ways, strict=True)
        )

    def list_promised(self) -> Iterable[tuple[Fraction, Fraction]]:
        """Pairs (epsilon, delta) that this pair of inputs certainly keeps."""
        if isinstance(self.epsilon[1], Fraction):
            yield self.epsilon[1], Fraction(0)
        for epsilon, _, delta in self.curve:
            if isinstance(delta, Fraction) and delta < 1:
                yield epsilon, delta

    @property
    def losses(self) -> tuple[Atom, ...]:
        """The privacy-loss distribution: each loss and its mass under both laws, by loss.

        Empty where the outcomes are too many to list.
        """
        try:
            with precision(128):
                cells = Comparison(*self._laws).cells().cells
                atoms = [_atom(cell.log, cell.p, cell.q) for cell in cells]
        except InvalidParameter:
            return ()
        return tuple(sorted(atom for atom in atoms if atom is not None))

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        told = f"{self.mechanism} on this pair: {self._tell()}"
        if self.promised is None:
            return f"{told}; nothing was promised."
        outcome = {
            Verdict.PROVED: "kept, by computation",
            Verdict.BROKEN: "broken: the pair can be told apart better than that",
            Verdict.CONSISTENT: "not contradicted at any δ tried",
            Verdict.UNDECIDED: "not decided: the enclosure is too wide",
        }[self.verdict]
        return f"{told}; the promise {self.promised} is {outcome}."

    def _tell(self) -> str:
        """What was computed, of what the promise is about."""
        loss = self.promised
        if loss is not None and loss.delta and isinstance(loss.epsilon, Fraction):
            told = _say("δ", self.delta_at(loss.epsilon), loss.delta, SLACK)
            return f"{told} at ε = {amount_up(loss.epsilon)}"
        told = _say("ε", self.epsilon, None if loss is None else loss.epsilon, SLACK)
        if loss is not None and loss.delta:
            return told
        rho_told = _say("ρ", self.rho, None if loss is None else loss.rho, RHO_SLACK)
        return f"{told}, {rho_told}"

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON: bounds are pairs of decimal strings."""
        return {
            "kind": "exact",
            "mechanism": self.mechanism,
            "promised": None if self.promised is None else str(self.promised),
            "epsilon": _pair(self.epsilon),
            "rho": _pair(self.rho),
            "total_variation": _pair(self.total_variation),
            "curve": [[amount_up(e), *_pair((low, high))] for e, low, high in self.curve],
            "verdict": self.verdict.value,
            "sentence": self.sentence,
        }

    def picture(self) -> str:
        """Two charts as SVG: the privacy-loss distribution, and delta against epsilon."""
        points = [(float(e), float(high)) for e, _, high in self.curve]
        promised = None
        if self.promised is not None:
            loss = self.promised
            promised = [(x, float(loss.delta_at(Fraction(x)))) for x, _ in points]
        return draw_losses(self.mechanism, self.losses, points, promised, self.sentence)

    def _repr_svg_(self) -> str:
        """Shown by notebooks."""
        return self.picture()


def exact(mechanism: Any, x: Any, y: Any, *, promised: Loss | Number | None = None) -> Exact:
    """All that the outputs of ``mechanism`` can tell about whether its input was ``x`` or ``y``.

    ``mechanism`` has a method ``law`` (every one in ``discreet.mechanisms`` whose
    law is known), or is itself a function from an input to a law.  ``promised``
    is its own ``loss`` unless given.

    >>> from discreet.mechanisms import Laplace
    >>> found = exact(Laplace(sensitivity=3, epsilon="1/4"), 40, 43)
    >>> found.verdict, found.epsilon
    (<Verdict.PROVED: 'proved'>, (Fraction(1, 4), Fraction(1, 4)))
    >>> exact(Laplace(sensitivity=3, epsilon="1/4"), 40, 45).verdict     # five apart, not three
    <Verdict.BROKEN: 'broken'>
    """
    law_of = _law_of(mechanism)
    laws = law_of(x), law_of(y)
    for law in laws:
        if not isinstance(law, Law):
            raise _no_law(mechanism)
    if promised is None:
        promised = getattr(mechanism, "loss", None)
    loss = promised if promised is None or isinstance(promised, Loss) else Loss.pure(promised)
    epsilon: Bounds = (Fraction(0), math.inf)
    if loss is None or not loss.delta or not _is_cut_off(*laws):
        epsilon = both_ways(max_divergence, *laws)
    # With a failure mass the promise is not about rho, and without a bound there is none.
    concentrated: Bounds = (Fraction(0), math.inf)
    if loss is None or not loss.delta:
        concentrated = both_ways(rho, *laws)
    found = Exact(
        mechanism=_name(mechanism),
        promised=loss,
        epsilon=epsilon,
        rho=concentrated,
        total_variation=both_ways(total_variation, *laws),
        verdict=Verdict.UNDECIDED,
        _laws=laws,
    )
    if loss is None:
        return found
    object.__setattr__(found, "verdict", _judge(found, loss))
    return found


def _judge(found: Exact, loss: Loss) -> Verdict:
    """The verdict, by the definition of a loss."""
    if not loss.delta:
        parts = [
            _compare(found.epsilon, loss.epsilon, SLACK),
            _compare(found.rho, loss.rho, RHO_SLACK),
        ]
    elif isinstance(loss.epsilon, Fraction):  # (epsilon, delta) for these two laws, exactly
        parts = [_compare(found.delta_at(loss.epsilon), loss.delta, SLACK)]
    else:  # no single number decides a concentrated bound with a failure mass: only refute
        checks = [
            _compare(found.epsilon_at(delta), loss.epsilon_at(delta), SLACK)
            for delta in _DELTAS
            if delta >= loss.delta
        ]
        parts = [Verdict.CONSISTENT if c is Verdict.PROVED else c for c in checks]
    for worst in (Verdict.BROKEN, Verdict.UNDECIDED, Verdict.CONSISTENT):
        if worst in parts or not parts:
            return worst if parts else Verdict.UNDECIDED
    return Verdict.PROVED


def _compare(bounds: Bounds, promised: Amount, slack: Fraction) -> Verdict:
    lower, upper = bounds
    if lower > promised:  # by however little: what is certified from below is a breach
        return Verdict.BROKEN
    if upper <= promised or upper <= promised * (1 + slack) + SLACK * SLACK:
        return Verdict.PROVED
    return Verdict.UNDECIDED


def _say(symbol: str, bounds: Bounds, promised: Amount | None, slack: Fraction) -> str:
    """An enclosure in words: as the promise where it is that, else by the end that matters."""
    lower, upper = bounds
    if lower == upper:
        return f"{symbol} = {amount_up(upper)}"
    if promised is None:
        return f"{symbol} ≤ {amount_up(upper)}"
    judged = _compare(bounds, promised, slack)
    if judged is Verdict.BROKEN:
        return f"{symbol} ≥ {amount_down(lower)}"
    if judged is Verdict.PROVED and upper > promised:  # a hair above: see SLACK
        attained = lower >= promised * (1 - slack)
        return f"{symbol} {'=' if attained else '≤'} {amount_up(promised)}"
    return f"{symbol} ≤ {amount_up(upper)}"


def _curve(pair: Comparison, epsilons: list[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """Bounds of P(S) - e**epsilon Q(S), the greatest over events S, at each epsilon."""
    found = []
    with precision(128):
        cells = None if pair.stretches is not None else pair.cells()
        for epsilon in epsilons:
            growth = ball(epsilon).exp()
            if cells is None:
                p, q, _ = pair.above(epsilon)
                low = high = p - growth * q
            else:
                gaps = [cell.p - growth * cell.q for cell in cells.cells]
                low = sum((arb(gap.lower()).max(arb(0)) for gap in gaps), arb(0))
                high = sum((arb(gap.upper()).max(arb(0)) for gap in gaps), arb(0)) + cells.rest_p
            found.append((max(Fraction(0), ends(low)[0]), min(Fraction(1), ends(high)[1])))
    return found


def _is_cut_off(p: Law, q: Law) -> bool:
    """Whether the two can only be compared up to a rest: then no epsilon is certified."""
    endless = isinstance(p, IntegerLaw) or isinstance(q, IntegerLaw)
    return endless and Comparison(p, q).stretches is None


def _law_of(mechanism: Any) -> Callable[[Any], Any]:
    found = getattr(mechanism, "law", mechanism)
    if not callable(found):
        raise _no_law(mechanism)
    return found  # type: ignore[no-any-return]


def _no_law(mechanism: Any) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"{quote_value(_name(mechanism))} does not say its exact law.",
        why="without the law of its answers nothing can be computed about a person; it can "
        "still be attacked.",
        fix="pass a mechanism with a method law(x), a function from x to a law of "
        "discreet.accounting.law, or use audit.game.",
    )


def _name(mechanism: Any) -> str:
    return getattr(mechanism, "__name__", None) or repr(mechanism)


def _atom(log: Any, p: Any, q: Any) -> Atom | None:
    masses = float(p.mid()), float(q.mid())
    if masses == (0.0, 0.0):
        return None
    if log in (ONLY_P, ONLY_Q):
        return (math.inf if log == ONLY_P else -math.inf), *masses
    if log is not None:
        return float(log[0]) + math.log(log[1]), *masses
    ratio = (p / q).log()
    return (float(ratio.mid()) if ratio.is_finite() else math.inf), *masses


def _pair(bounds: Bounds) -> list[str]:
    return [amount_down(bounds[0], 12), amount_up(bounds[1], 12)]


__all__ = ["RHO_SLACK", "SLACK", "Atom", "Exact", "exact"]
