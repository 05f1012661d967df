"""Disjoint analyses: what looks at separate regions costs as much as the dearest one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.law import DiscreteLaplaceLaw, ProductLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, failure_share, positive, whole
from discreet.mechanisms.grid import Mechanism, require_names, set_fields, write_call
from discreet.mechanisms.laplace import Laplace


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Histogram:
    """Publish how many rows fall into each of the declared ``bins``.

    Definition:
        M(x) counts the rows of each bin and adds two-sided geometric noise of
        scale rows_per_unit / epsilon to every count.  Rows outside all bins are
        not counted.

    Guarantee:
        If one unit has at most ``rows_per_unit`` rows, M is
        ``epsilon``-differentially private under add/remove neighbours, however many
        bins there are: every row is in one bin, so the counts change by
        rows_per_unit in total.  (Under change-one neighbours the loss is twice
        that: ``loss.change_one()``.)

    Accuracy:
        ``margin(beta)`` covers every bin at once, exactly.

    Reference:
        DMNS Example 4 and 3.2 (disjoint analyses); DR Examples 3.2 and 3.3.

    Example:
        >>> ages = Histogram(bins=("young", "middle", "old"), epsilon="1/2", rows_per_unit=3)
        >>> ages.loss.epsilon, ages.counts.scale
        (Fraction(1, 2), Fraction(6, 1))
        >>> sorted(ages.release(["young", "old", "old"]))
        ['middle', 'old', 'young']
        >>> ages.margin("0.05")
        24
    """

    bins: tuple[Hashable, ...]
    epsilon: Fraction
    rows_per_unit: int
    counts: Laplace = field(init=False, compare=False)
    """The mechanism that the vector of counts goes through."""

    def __init__(self, *, bins: Iterable[Hashable], epsilon: Exact, rows_per_unit: int = 1) -> None:
        names = tuple(bins)
        if not names or len(set(names)) != len(names):
            raise InvalidParameter(
                "P4" if names else "P5",
                "a histogram needs at least one bin, and each bin once.",
                why="bins found in the data, or counted twice, would tell who is in it.",
                fix="list the public bins, such as bins=('young', 'middle', 'old').",
            )
        rows = whole(rows_per_unit, name="rows_per_unit", least=1)
        counts = Laplace(sensitivity=rows, epsilon=epsilon)
        set_fields(self, bins=names, epsilon=counts.epsilon, rows_per_unit=rows, counts=counts)

    def __repr__(self) -> str:
        bins = self.bins if len(self.bins) <= 6 else (*self.bins[:5], "...")
        return write_call(self, bins=bins, epsilon=self.epsilon, rows_per_unit=self.rows_per_unit)

    @property
    def loss(self) -> Loss:
        """What the whole histogram costs one unit."""
        return self.counts.loss

    def count(self, rows: Iterable[Hashable]) -> list[int]:
        """The true counts of ``rows``, in the order of the bins; not for publication."""
        indices = {name: index for index, name in enumerate(self.bins)}
        found = [0] * len(self.bins)
        for row in rows:
            try:
                index = indices.get(row)
            except TypeError:  # what cannot be hashed is no bin; every row must have a result
                continue
            if index is not None:
                found[index] += 1
        return found

    def release(self, rows: Iterable[Hashable]) -> dict[Hashable, int]:
        """A noisy count of ``rows`` for every bin, in the order in which they were declared."""
        noisy = self.counts.release(np.array(self.count(rows), dtype=np.int64))
        return dict(zip(self.bins, noisy.tolist(), strict=True))

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None
    ) -> int | Fraction:
        """The least m such that, except with probability ``beta``, no bin is off by more.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        beta = failure_share(beta, confidence)
        return self.counts.margin(beta, coordinates=len(self.bins))

    def law(self, rows: Iterable[Hashable]) -> DiscreteLaplaceLaw | ProductLaw:
        """The exact law of the noisy counts of ``rows``."""
        return self.counts.law(self.count(rows))


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Disjoint:
    """Run one mechanism on each of several disjoint regions of the data.

    ``parts`` has the mechanism of each region, by the region's name.

    Definition:
        M(x) = (M_1(x in B_1), ..., M_d(x in B_d)), where the regions B_i are
        disjoint and every unit has all its rows in one of them.

    Guarantee:
        One unit meets one mechanism only, so the loss is the greatest of theirs
        in each coordinate, and not their sum; under add/remove neighbours.

    Accuracy:
        That of each part.

    Reference:
        DMNS 3.2, disjoint analyses: S(f) <= max S(f_i).

    Example:
        >>> regions = Disjoint({
        ...     "north": Laplace(sensitivity=3, epsilon="1/4"),
        ...     "south": Laplace(sensitivity=2, epsilon="1/3"),
        ... })
        >>> regions.loss.epsilon
        Fraction(1, 3)
        >>> sorted(regions.release({"north": 1041, "south": 977}))
        ['north', 'south']
    """

    parts: Mapping[Hashable, Mechanism]

    def __init__(self, parts: Mapping[Hashable, Mechanism]) -> None:
        if not parts:
            raise InvalidParameter(
                "P5",
                "there is no region.",
                why="nothing is released.",
                fix="pass a mechanism for every region, by name.",
            )
        set_fields(self, parts=dict(parts))

    def __repr__(self) -> str:
        return f"Disjoint({dict(self.parts)!r})"

    @property
    def loss(self) -> Loss:
        """The greatest loss of any part, coordinate by coordinate."""
        losses = [part.loss for part in self.parts.values()]
        return Loss(
            epsilon=max(loss.epsilon for loss in losses),
            rho=max(loss.rho for loss in losses),
            delta=max(loss.delta for loss in losses),
        )

    def release(self, values: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """An answer for every region; ``values`` must have one for each, even if it is empty."""
        self._check_regions(values)
        return {name: part.release(values[name]) for name, part in self.parts.items()}

    def law(self, values: Mapping[Hashable, Any]) -> ProductLaw:
        """The exact law of the answers, in the order of the regions, if each part has one.

        ``values`` are those of the regions, by name.
        """
        self._check_regions(values)
        if not all(hasattr(part, "law") for part in self.parts.values()):
            raise InvalidParameter(
                "P4",
                "one of the regions has a mechanism without an exact law.",
                why="the law of all answers is the product of theirs.",
                fix="look at the law of the other regions by themselves.",
            )
        laws = [part.law(values[name]) for name, part in self.parts.items()]  # type: ignore[attr-defined]
        return ProductLaw(tuple(laws))

    def _check_regions(self, values: Mapping[Hashable, Any]) -> None:
        if set(values) != set(self.parts):
            raise InvalidParameter(
                "P6",
                "there must be exactly one value for every declared region.",
                why="a region that appears only when somebody is in it names them.",
                fix="pass a value, such as a count of 0, for empty regions too.",
            )


def disjoint_sensitivity(*sensitivities: Exact) -> Fraction:
    """The sensitivity of analyses of disjoint regions taken together: the greatest of theirs.

    ``sensitivities`` are those of the analyses, each of a region of its own.

    >>> disjoint_sensitivity(3, "7/2", 2)
    Fraction(7, 2)
    """
    if not sensitivities:
        raise InvalidParameter(
            "P5",
            "there is no sensitivity to compare.",
            why="nothing is released.",
            fix="pass the sensitivity of every region's analysis.",
        )
    return max(positive(one, name="every sensitivity") for one in sensitivities)
