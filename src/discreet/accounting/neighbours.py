"""Which data sets are neighbours: every loss is stated for one of these relations."""

from __future__ import annotations

from enum import StrEnum


class Neighbours(StrEnum):
    """Which databases must be hard to tell apart."""

    ADD_REMOVE = "add/remove"
    """They differ by all rows of one unit, added or removed."""
    CHANGE_ONE = "change-one"
    """They differ in the rows of one unit, which is in both: one removal and one addition."""
