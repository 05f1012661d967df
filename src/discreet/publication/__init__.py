"""Publication: one release, many answers.

Plans which tables to measure with how much of a spend, asks a measurer for
noisy numbers, and works only on those: synthetic tables, workloads of linear
questions, hierarchies, counters over time.
"""

from discreet.publication.domain import Column
from discreet.publication.measure import (
    Cells,
    Combinations,
    Distance,
    Measurement,
    Measurer,
    Query,
    Records,
    View,
    loss_of,
)
from discreet.publication.spend import Kind, Spend
from discreet.publication.synthetic import Settings, Synthesis, synthesize

__all__ = [
    "Cells",
    "Column",
    "Combinations",
    "Distance",
    "Kind",
    "Measurement",
    "Measurer",
    "Query",
    "Records",
    "Settings",
    "Spend",
    "Synthesis",
    "View",
    "loss_of",
    "synthesize",
]
