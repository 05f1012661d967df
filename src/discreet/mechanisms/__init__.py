"""The building blocks, each with its guarantee, its accuracy and its exact law.

Every mechanism is a frozen object made from what the user knows (a sensitivity,
a price or a wished accuracy): ``.loss`` is what a release costs, ``.release``
answers, ``.margin`` says how far off an answer is, ``.law`` is the exact
probability law of the answer.  Neighbours are data sets that differ by all rows
of one unit, added or removed, unless a docstring says otherwise.

Each is imported when it is first used: a question needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.mechanisms import postprocess
    from discreet.mechanisms.adaptive import AdaptiveLaplace, AdaptiveRun
    from discreet.mechanisms.aggregate import SubsampleAggregate, sample_sensitivity
    from discreet.mechanisms.disjoint import Disjoint, Histogram, disjoint_sensitivity
    from discreet.mechanisms.distance import (
        PropertyDistance,
        distance_to_clusters,
        distance_to_dependency,
        distance_to_maximum,
        distance_to_order,
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

_HOME = {
    "AboveThreshold": "sparse.vector",
    "AdaptiveLaplace": "adaptive",
    "AdaptiveRun": "adaptive",
    "Disjoint": "disjoint",
    "ExponentialMechanism": "selection.exponential",
    "Gaussian": "gaussian",
    "Grid": "grid",
    "HammingCube": "metric",
    "Histogram": "disjoint",
    "KeyRelease": "keys",
    "Laplace": "laplace",
    "MetricNoise": "metric",
    "MetricSpace": "metric",
    "Moments": "moments",
    "NumericSparse": "sparse.vector",
    "PermuteAndFlip": "selection.exponential",
    "PropertyDistance": "distance",
    "ProposeTestRelease": "propose_test_release",
    "Quantile": "quantiles.quantiles",
    "Quantiles": "quantiles.quantiles",
    "RandomizedResponse": "randomized_response",
    "ReportNoisyMax": "selection.noisy_max",
    "SmoothMedian": "smooth_sensitivity",
    "Sparse": "sparse.vector",
    "Staircase": "staircase",
    "SubsampleAggregate": "aggregate",
    "TopK": "selection.top_k",
    "TwoCoinResponse": "randomized_response",
    "disjoint_sensitivity": "disjoint",
    "distance_to_clusters": "distance",
    "distance_to_dependency": "distance",
    "distance_to_maximum": "distance",
    "distance_to_order": "distance",
    "distance_to_sorted": "distance",
    "median_distance": "propose_test_release",
    "sample_sensitivity": "aggregate",
}


def __getattr__(name: str) -> Any:
    if name == "postprocess":
        return import_module("discreet.mechanisms.postprocess")
    if name in _HOME:
        return getattr(import_module(f"discreet.mechanisms.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet.mechanisms' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


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
    "distance_to_dependency",
    "distance_to_maximum",
    "distance_to_order",
    "distance_to_sorted",
    "median_distance",
    "postprocess",
    "sample_sensitivity",
]
