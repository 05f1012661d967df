"""What a question costs and how good its answer will be; never reads data.

``price`` is a pure function of the question, the schema and the spend.
"""

from discreet.price.calibration import Additive, Bought, Noisy, Selection
from discreet.price.keys import Threshold, least_units
from discreet.price.plan import Reach, Sensitivity, compute_sensitivity
from discreet.price.priced import (
    Compare,
    Priced,
    approximate_loss,
    deciding_mechanism,
    is_apart,
    is_as_before,
    price,
)
from discreet.price.recipes import (
    Choice,
    Clipped,
    Counts,
    Fitted,
    Linear,
    Quantile,
    Ratio,
    Recipe,
    Spread,
)

__all__ = [
    "Additive",
    "Bought",
    "Choice",
    "Clipped",
    "Compare",
    "Counts",
    "Fitted",
    "Linear",
    "Noisy",
    "Priced",
    "Quantile",
    "Ratio",
    "Reach",
    "Recipe",
    "Selection",
    "Sensitivity",
    "Spread",
    "Threshold",
    "approximate_loss",
    "compute_sensitivity",
    "deciding_mechanism",
    "is_apart",
    "is_as_before",
    "least_units",
    "price",
]
