"""What mechanisms give back that is more than a number: the classes, to name them in a program."""

from discreet.mechanisms.moments import MomentMargins, NoisyMoments
from discreet.mechanisms.propose_test_release import TestedLaw
from discreet.mechanisms.randomized_response import Estimate
from discreet.mechanisms.selection.noisy_max import CountedWinner, Winner
from discreet.mechanisms.sparse.run import NumericSparseRun, SparseRun, Transcript

__all__ = [
    "CountedWinner",
    "Estimate",
    "MomentMargins",
    "NoisyMoments",
    "NumericSparseRun",
    "SparseRun",
    "TestedLaw",
    "Transcript",
    "Winner",
]
