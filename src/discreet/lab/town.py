"""A town of people who do not exist, with the uniqueness of real ones: the tables of the lab."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from discreet.lab.dice import Dice, Whole
from discreet.question.schema import Schema

DISEASES = ["flu", "asthma", "diabetes", "hiv"]
"""What people of the town may have, the commonest first."""
_COMMON = [0.5, 0.25, 0.15, 0.1]

SCHEMA = Schema.from_text("""
[tables.people]
unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = { type = "integer", bounds = [0, 999999] }
district = { type = "integer", bounds = [0, 49] }
sex = { type = "text", values = ["F", "M"] }
birth = { type = "integer", bounds = [0, 32849] }
secret = { type = "integer", bounds = [0, 1] }
disease = { type = "text", values = ["flu", "asthma", "diabetes", "hiv"] }
""")
"""What is declared of them."""


def make_town(people: int, *, name: str = "a town", secrets: Whole | None = None) -> pa.Table:
    """So many ``people``: ``birth`` is a day of the last ninety years, ``secret`` a fair coin.

    A town of one ``name`` is the same each time.

    ``secrets`` gives the coins, for worlds that differ in one.
    """
    dice = Dice(name)
    # Ages thin out towards ninety, districts differ in size: some people are rarer than others.
    birth = (90 * (1 - dice.uniform(people) ** 1.6)).astype(int) * 365 + dice.below(365, people)
    district = (50 * dice.uniform(people) ** 1.5).astype(int)
    coins = dice.flips(0.5, people)
    return pa.table(
        {
            "id": range(people),
            "district": district,
            "sex": dice.choose(["F", "M"], [0.51, 0.49], people),
            "birth": birth,
            "secret": coins if secrets is None else secrets,
            "disease": dice.choose(DISEASES, _COMMON, people),
        }
    )


def secrets_of(people: pa.Table) -> Whole:
    """The secret of each of ``people``, in the order of their numbers: to judge guesses by."""
    return np.array(people["secret"].to_pylist(), dtype=np.int64)


def guess_prior(people: pa.Table) -> float:
    """How often the commoner secret of ``people`` is right, which takes no access."""
    share = float(secrets_of(people).mean())
    return max(share, 1 - share)


__all__ = ["DISEASES", "SCHEMA", "guess_prior", "make_town", "secrets_of"]
