"""The building blocks, each with its guarantee, its accuracy and its exact law.

Every mechanism is a frozen object made from what the user knows (a sensitivity,
a price or a wished accuracy): ``.loss`` is what a release costs, ``.release``
answers, ``.margin`` says how far off an answer is, ``.law`` is the exact
probability law of the answer.  Neighbours are data sets that differ by all rows
of one unit, added or removed, unless a docstring says otherwise.
"""

from discreet.mechanisms import postprocess
from discreet.mechanisms.adaptive import AdaptiveLaplace, AdaptiveRun
from discreet.mechanisms.aggregate import SubsampleAggregate, sample_sensitivity
from discreet.mechanisms.disjoint import Disjoint, Histogram, disjoint_sensitivity
from discreet.mechanisms.distance import (
    PropertyDistance,
    distance_to_clusters,
    distance_to_maximum,
    distance_to_sorted,
)
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.keys import KeyRelease
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.metric import HammingCube, MetricNoise, MetricSpace
from discreet.mechanisms.moments import Moments
from discreet.mechanisms.propose_test_release import ProposeTestRelease, median_distance
from discreet.mechanisms.quantiles.quantiles import Quantile, Quantiles
from discreet.mechanisms.randomized_response import RandomizedResponse, TwoCoinResponse
from discreet.mechanisms.selection.exponential import ExponentialMechanism, PermuteAndFlip
from discreet.mechanisms.selection.noisy_max import ReportNoisyMax
from discreet.mechanisms.selection.top_k import TopK
from discreet.mechanisms.smooth_sensitivity import SmoothMedian
from discreet.mechanisms.sparse.vector import AboveThreshold, NumericSparse, Sparse
from discreet.mechanisms.staircase import Staircase

__all__ = [
    "AboveThreshold",
    "AdaptiveLaplace",
    "AdaptiveRun",
    "Disjoint",
    "ExponentialMechanism",
    "Gaussian",
    "Grid",
    "HammingCube",
    "Histogram",
    "KeyRelease",
    "Laplace",
    "MetricNoise",
    "MetricSpace",
    "Moments",
    "NumericSparse",
    "PermuteAndFlip",
    "PropertyDistance",
    "ProposeTestRelease",
    "Quantile",
    "Quantiles",
    "RandomizedResponse",
    "ReportNoisyMax",
    "SmoothMedian",
    "Sparse",
    "Staircase",
    "SubsampleAggregate",
    "TopK",
    "TwoCoinResponse",
    "disjoint_sensitivity",
    "distance_to_clusters",
    "distance_to_maximum",
    "distance_to_sorted",
    "median_distance",
    "postprocess",
    "sample_sensitivity",
]
