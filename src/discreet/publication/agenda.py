"""A release plan: what an office publishes together, for how much, and how well.

A plan is a TOML file.  With a price for all of it, the price is divided so that the weighted
errors are least; with a target for each release, the least price that meets all targets is found.
Errors are those that the noise will have, from the declaration alone.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter, SchemaRefusal
from discreet.exact.numbers import proportion, round_up
from discreet.publication.declared import Declared, read_amount
from discreet.publication.folder import read_declared
from discreet.publication.outline import list_columns, predict_error, usual_number
from discreet.publication.spend import Kind, Spend
from discreet.question.levels import Levels

NORMAL = 1.96
"""Deviations within which a number is 95 times in 100."""
_OWN = ("epsilon", "rho", "delta")
_SIGNS = {Kind.GAUSSIAN: "ρ", Kind.LAPLACE: "ε"}
_UNIT = Fraction(1, 10**6)  # least parts that a price found for a target is rounded up to


@dataclass(frozen=True, slots=True)
class Item:
    """One release of a plan: what it is, how much it matters, how near it must be."""

    declared: Declared
    weight: Fraction = Fraction(1)
    within: Fraction | None = None
    """Wanted: a usual number of the release is this near, 95 times in 100."""
    relative: Fraction | None = None
    """The same as a share of a usual number, which the declared number of rows tells."""

    @property
    def aims(self) -> bool:
        """Whether there is a target."""
        return self.within is not None or self.relative is not None

    def to_json(self) -> dict[str, Any]:
        """What the plan says of it, in the words of its file; amounts are exact texts."""
        own = {name: said for name, said in self.declared.to_json().items() if name not in _OWN}
        wanted = {"within": self.within, "relative": self.relative}
        if self.weight != 1:
            wanted["weight"] = self.weight
        return own | {name: str(amount) for name, amount in wanted.items() if amount is not None}


@dataclass(frozen=True, slots=True)
class Agenda:
    """What a plan says, as :func:`read_agenda` reads it; nothing is decided yet.

    ``items`` are its releases, ``epsilon``, perhaps with ``delta``, or ``rho`` the price of all of
    them together; without ``epsilon`` and ``rho`` the least price is looked for.
    """

    items: tuple[Item, ...]
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    @property
    def kind(self) -> Kind:
        """Which noise all releases have: Gaussian where a delta or a rho is given."""
        return Kind.LAPLACE if self.rho is None and self.delta is None else Kind.GAUSSIAN

    @property
    def whole(self) -> Spend | None:
        """The price of all of it, if one is given."""
        if self.rho is not None:
            return Spend.concentrated(self.rho)
        if self.epsilon is None:
            return None
        if self.delta is None:
            return Spend.pure(self.epsilon)
        return Spend.approximate(self.epsilon, self.delta)

    def to_json(self) -> dict[str, Any]:
        """What the plan says, in the words of its file; amounts are exact texts."""
        price = {name: getattr(self, name) for name in _OWN}
        return {
            "plan": {name: str(amount) for name, amount in price.items() if amount is not None},
            "release": [item.to_json() for item in self.items],
        }


Given = Agenda | str | os.PathLike[str] | Mapping[str, Any]
"""A plan, or where or how it is written."""


def read_agenda(given: Given) -> Agenda:
    """The plan in ``given``, or a refusal: the path of a TOML file, its text, or a dict like it.

    >>> read_agenda('''
    ... [plan]
    ... epsilon = 2
    ... [[release]]
    ... name = "cities"
    ... kind = "marginals"
    ... of = "visits"
    ... ''').to_json()["plan"]
    {'epsilon': '2'}
    """
    if isinstance(given, Agenda):
        return given
    if isinstance(given, Mapping):
        return parse_agenda(given)
    if isinstance(given, str) and ("\n" in given or "=" in given):
        return parse_agenda(_read_toml(lambda: given, "the plan"))
    if isinstance(given, str | os.PathLike):
        file = Path(given)
        return parse_agenda(_read_toml(lambda: file.read_text(encoding="utf-8"), file.name))
    raise _make_refusal(f"a plan is a path, a text or a dict, and no {type(given).__name__}.")


def _read_toml(read: Callable[[], str], name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(read())
    except (OSError, ValueError, RecursionError) as error:
        raise SchemaRefusal(
            "S1",
            f"{name} cannot be read as TOML: {error}.",
            why="nothing was planned; no person's data is involved.",
            fix="write [plan] with a price, and one [[release]] for each release.",
        ) from None


def parse_agenda(data: Mapping[str, Any]) -> Agenda:
    """The plan that a document declares.

    >>> release = {"name": "a", "kind": "marginals", "of": "visits", "within": 20}
    >>> agenda = parse_agenda({"plan": {"delta": "1e-9"}, "release": [release]})
    >>> agenda.kind.value, agenda.items[0].within
    ('rho', Fraction(20, 1))
    """
    price, listed = data.get("plan", {}), data.get("release", [])
    known = isinstance(price, Mapping) and isinstance(listed, Sequence) and bool(listed)
    if set(data) - {"plan", "release"} or not known:
        raise _make_refusal("a plan has [plan] and at least one [[release]], and nothing else.")
    if set(price) - set(_OWN):
        raise _make_refusal("[plan] holds epsilon, perhaps with a delta, or rho, and nothing else.")
    items = tuple(_read_item(one) for one in listed)
    names = [item.declared.name for item in items]
    if len(set(names)) < len(names):
        raise _make_refusal("two releases of the plan have one name.")
    agenda = Agenda(
        items,
        read_amount(price["epsilon"], name="epsilon") if "epsilon" in price else None,
        proportion(price["delta"], name="delta") if "delta" in price else None,
        read_amount(price["rho"], name="rho") if "rho" in price else None,
    )
    if agenda.rho is not None and (agenda.epsilon is not None or agenda.delta is not None):
        raise _make_refusal("[plan] gives rho, or epsilon and perhaps a delta.")
    if agenda.whole is None and not all(item.aims for item in items):
        raise _make_refusal("without a price for all, each release needs a target: within = 50.")
    return agenda


def _read_item(given: object) -> Item:
    if not isinstance(given, Mapping):
        raise _make_refusal("each [[release]] says by name what it is, and nothing else.")
    own = dict(given)
    weight, within = own.pop("weight", 1), own.pop("within", None)
    relative = own.pop("relative", None)
    if relative is not None and (within is not None or not own.get("rows")):
        raise _make_refusal(
            "a relative target stands alone, beside a declared number of rows: relative = 0.05 "
            "and rows = 40000."
        )
    if any(name in own for name in _OWN):
        raise _make_refusal("the price of a plan stands in [plan], not in a release.")
    declared = read_declared({**own, "rho": 1})  # a price that is found later
    target = None if within is None else read_amount(within, name="within")
    share = None if relative is None else read_amount(relative, name="relative")
    return Item(declared, read_amount(weight, name="weight"), target, share)


@dataclass(frozen=True, slots=True)
class Division:
    """A price for each release of a plan, and within what its usual number then is at 95 %.

    ``declared`` are the releases, ``amounts`` their prices (of ``kind`` ρ or ε), ``margins`` how
    near a usual number of each is then, ``units`` what an amount of one would give, ``targets``
    within what each is wanted, or None; of a relative target, times a usual number.
    """

    kind: Kind
    declared: tuple[Declared, ...]
    amounts: tuple[Fraction, ...]
    margins: tuple[float, ...]
    units: tuple[float, ...]
    targets: tuple[float | None, ...]

    def __str__(self) -> str:
        sign = _SIGNS[self.kind]
        lines = [
            f"{one.describe()}: {sign} = {float(amount):.4g}, ± {margin:,.4g}"
            for one, amount, margin in zip(self.declared, self.amounts, self.margins, strict=True)
        ]
        total = f"{sign} = {float(self.total):.6g} for all. Nothing was charged."
        return "\n".join([*lines, total, *self.list_missed()])

    @property
    def total(self) -> Fraction:
        """What all of it costs."""
        return sum(self.amounts, start=Fraction(0))

    def curve(
        self, times: Sequence[float] = (0.25, 0.5, 1, 2, 4)
    ) -> list[tuple[float, list[float]]]:
        """For prices so many ``times`` that of all of it, within what each release is."""
        power = _power(self.kind)
        return [
            (float(self.total) * one, [margin / one**power for margin in self.margins])
            for one in times
        ]

    def least_curve(
        self, times: Sequence[float] = (0.25, 0.5, 1, 2, 4)
    ) -> list[tuple[float, float]]:
        """For targets so many ``times`` as wide, the least price that meets them all."""
        wanted = [(u, t) for u, t in zip(self.units, self.targets, strict=True) if t is not None]
        power = _power(self.kind)
        return [
            (one, sum((unit / (target * one)) ** (1 / power) for unit, target in wanted))
            for one in times
            if wanted
        ]

    def list_missed(self) -> list[str]:
        """The releases that a given price leaves further off than their targets, in words."""
        return [
            f"{one.name}: ± {margin:,.4g} at this price; wanted ± {target:,.4g}"
            for one, margin, target in zip(self.declared, self.margins, self.targets, strict=True)
            if target is not None and margin > target * (1 + 1e-9)
        ]

    def to_json(self) -> dict[str, Any]:
        """All of it, with both curves, as JSON: what every door tells."""
        told = zip(self.declared, self.amounts, self.margins, self.targets, strict=True)
        return {
            "kind": self.kind.value,
            "total": str(self.total),
            "releases": [
                {
                    "name": one.name,
                    "kind": one.kind,
                    "amount": str(amount),
                    "within": margin,
                    "wanted": target,
                }
                for one, amount, margin, target in told
            ],
            "curve": [[total, margins] for total, margins in self.curve()],
            "least": [[times, price] for times, price in self.least_curve()],
            "missed": self.list_missed(),
        }


def divide_agenda(agenda: Agenda, levels: Sequence[tuple[tuple[Levels, ...], int]]) -> Division:
    """The best division of the plan's price, or the least price that meets its targets.

    ``levels`` are those of each release, with how many rows a unit has in it.
    """
    kind, power = agenda.kind, _power(agenda.kind)
    units = tuple(
        NORMAL
        * predict_error(
            item.declared,
            list_columns(item.declared, own),
            Spend(kind, Fraction(1), rows_per_unit=rows),
            own,
        )
        for item, (own, rows) in zip(agenda.items, levels, strict=True)
    )
    targets = tuple(_target(item, own) for item, (own, _) in zip(agenda.items, levels, strict=True))
    whole = agenda.whole
    if whole is None:
        amounts = tuple(
            round_up(Fraction((unit / (target or 1.0)) ** (1 / power)), _UNIT)
            for unit, target in zip(units, targets, strict=True)
        )
    else:
        # Squared errors are (unit / amount ** power) ** 2: Lagrange.
        shares = [
            (float(item.weight) * unit**2) ** (1 / (2 * power + 1))
            for unit, item in zip(units, agenda.items, strict=True)
        ]
        amounts = tuple(part.amount for part in whole.divide(np.array(shares)))
    gaussian = kind is Kind.GAUSSIAN
    declared = tuple(
        replace(
            item.declared,
            rho=amount if gaussian else None,
            epsilon=None if gaussian else amount,
        )
        for item, amount in zip(agenda.items, amounts, strict=True)
    )
    margins = tuple(
        unit / float(amount) ** power for unit, amount in zip(units, amounts, strict=True)
    )
    return Division(kind, declared, amounts, margins, units, targets)


def _target(item: Item, levels: Sequence[Levels]) -> float | None:
    if item.relative is None:
        return None if item.within is None else float(item.within)
    usual = usual_number(item.declared, list_columns(item.declared, levels), levels)
    return float(item.relative) * usual


def _power(kind: Kind) -> float:
    """An error goes down with this power of the price."""
    return 0.5 if kind is Kind.GAUSSIAN else 1.0


def _make_refusal(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        what,
        why="a plan is paid for as one, so what it is must be plain before.",
        fix="docs/publication.md has an example of a plan.",
    )


__all__ = ["Agenda", "Division", "Given", "divide_agenda", "parse_agenda", "read_agenda"]
