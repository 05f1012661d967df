"""How questions were priced in former versions: what was paid for then stays free.

A ledger holds answers under the keys of the noise that was bought for them.  Where a later version
buys other noise, the key is another one, so the former ones are looked for, too.
"""

from __future__ import annotations

from enum import Enum

from discreet.accounting.neighbours import Neighbours
from discreet.price import Compare, Priced, is_apart
from discreet.question.ownership import gains_rows


class Era(Enum):
    """How questions were priced, the latest first: what was paid for in each is still found."""

    NOW = "at the joint sensitivity of a statement"
    PURE = "an accuracy by the least epsilon, also where rho alone is counted"
    COUNTED = "with noise on public numbers, too, where others were asked for beside them"
    ROWS = "a change row by row, and no unit as a whole in groups"
    SIDES = "a change as what is left and what is joined"
    APART = "each measurement by itself"
    FIRST = "when ledgers began to be kept"


COMPARED = {Era.ROWS: Compare.ROWS, Era.SIDES: Compare.SIDES}
"""What of a change was compared when its price was found."""

TOO_CHEAP = {Era.ROWS}
"""When some noise cost less than a change moves: nothing more is drawn at such a price."""


def list_eras(priced: Priced, *, in_rho: bool = False) -> tuple[Era, ...]:
    """Under which earlier prices the same question may have been paid for.

    ``in_rho``: whether an accuracy is bought at the least rho, which it was not before.
    """
    pure = (Era.PURE,) if in_rho else ()
    return pure + _list_of_noise(priced)


def _list_of_noise(priced: Priced) -> tuple[Era, ...]:
    if is_apart(priced):
        return (Era.FIRST,)
    if priced.neighbours is not Neighbours.CHANGE_ONE:
        return (Era.APART, Era.FIRST)
    from discreet.price.sizes import has_public_part, is_public

    if is_public(priced):
        return ()  # no noise that was bought for it is better
    several = len(priced.mechanisms) > 1
    eras = [Era.COUNTED] if has_public_part(priced) else []
    eras += [Era.APART, Era.FIRST]
    if several or gains_rows(priced.plan.source):
        eras.insert(-2, Era.SIDES)
    if several and (priced.plan.keys or priced.reach.rows > 1):
        eras.insert(-3, Era.ROWS)
    return tuple(eras)


__all__ = ["COMPARED", "TOO_CHEAP", "Era", "list_eras"]
