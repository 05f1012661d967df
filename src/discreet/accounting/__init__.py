"""The mathematics of loss: what a release costs, how costs add, what may still be spent.

    Loss, Budget          what a release costs, and what a session may
    Meaning               what a loss promises to a person, in numbers and words
    compare, compose      many releases together: by every theorem, and by their profiles
    DiscreteLaplaceLaw    and the other exact laws of answers
    max_divergence        and the other distances of two laws, certified
    shuffled              what is left of local losses after a shuffler

Each is imported when it is first used: an account needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.accounting.budget import Budget, LargeDelta, Remaining
    from discreet.accounting.composition import (
        Comparison,
        OptimalComposition,
        Row,
        advanced,
        basic,
        compare,
        concentrated,
        peer_epsilon,
        per_query,
    )
    from discreet.accounting.divergence import (
        Bounds,
        Extended,
        approximate_max_divergence,
        both_ways,
        hockey_stick,
        kl,
        max_divergence,
        privacy_curve,
        renyi,
        rho,
        total_variation,
    )
    from discreet.accounting.law import (
        DiscreteGaussianLaw,
        DiscreteLaplaceLaw,
        FiniteLaw,
        GeometricLaw,
        IntegerLaw,
        Law,
        ProductLaw,
        StaircaseLaw,
    )
    from discreet.accounting.loss import (
        DELTA_UNITS,
        EPSILON_UNITS,
        INFINITY,
        NOTHING,
        RHO_UNITS,
        Amount,
        Loss,
    )
    from discreet.accounting.meaning import Meaning, Worlds
    from discreet.accounting.neighbours import Neighbours
    from discreet.accounting.profile import (
        AnyProfile,
        ComposedProfile,
        GaussianProfile,
        LaplaceProfile,
        Profile,
        compose,
    )
    from discreet.accounting.shuffle import shuffled

_HOME = {
    "DELTA_UNITS": "loss",
    "EPSILON_UNITS": "loss",
    "INFINITY": "loss",
    "NOTHING": "loss",
    "RHO_UNITS": "loss",
    "Amount": "loss",
    "AnyProfile": "profile",
    "Bounds": "divergence",
    "Budget": "budget",
    "Comparison": "composition",
    "ComposedProfile": "profile",
    "DiscreteGaussianLaw": "law",
    "DiscreteLaplaceLaw": "law",
    "Extended": "divergence",
    "FiniteLaw": "law",
    "GaussianProfile": "profile",
    "GeometricLaw": "law",
    "IntegerLaw": "law",
    "LaplaceProfile": "profile",
    "LargeDelta": "budget",
    "Law": "law",
    "Loss": "loss",
    "Meaning": "meaning",
    "Neighbours": "neighbours",
    "OptimalComposition": "composition",
    "ProductLaw": "law",
    "Profile": "profile",
    "Remaining": "budget",
    "Row": "composition",
    "StaircaseLaw": "law",
    "Worlds": "meaning",
    "advanced": "composition",
    "approximate_max_divergence": "divergence",
    "basic": "composition",
    "both_ways": "divergence",
    "compare": "composition",
    "compose": "profile",
    "concentrated": "composition",
    "hockey_stick": "divergence",
    "kl": "divergence",
    "max_divergence": "divergence",
    "peer_epsilon": "composition",
    "per_query": "composition",
    "privacy_curve": "divergence",
    "renyi": "divergence",
    "rho": "divergence",
    "shuffled": "shuffle",
    "total_variation": "divergence",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.accounting.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet.accounting' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "DELTA_UNITS",
    "EPSILON_UNITS",
    "INFINITY",
    "NOTHING",
    "RHO_UNITS",
    "Amount",
    "AnyProfile",
    "Bounds",
    "Budget",
    "Comparison",
    "ComposedProfile",
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "Extended",
    "FiniteLaw",
    "GaussianProfile",
    "GeometricLaw",
    "IntegerLaw",
    "LaplaceProfile",
    "LargeDelta",
    "Law",
    "Loss",
    "Meaning",
    "Neighbours",
    "OptimalComposition",
    "ProductLaw",
    "Profile",
    "Remaining",
    "Row",
    "StaircaseLaw",
    "Worlds",
    "advanced",
    "approximate_max_divergence",
    "basic",
    "both_ways",
    "compare",
    "compose",
    "concentrated",
    "hockey_stick",
    "kl",
    "max_divergence",
    "peer_epsilon",
    "per_query",
    "privacy_curve",
    "renyi",
    "rho",
    "shuffled",
    "total_variation",
]
