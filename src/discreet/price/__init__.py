"""What a question costs and how good its answer will be; never reads data.

``price`` is a pure function of the question, the schema and the spend.
"""

from discreet.price.keys import Threshold
from discreet.price.noises import GaussianNoise, LaplaceNoise, Noise, SelectionNoise
from discreet.price.priced import Priced, price
from discreet.price.recipes import Choice, Counts, Linear, Quantile, Ratio, Recipe
from discreet.price.sensitivity import Reach, Sensitivity, sensitivity

__all__ = [
    "Choice",
    "Counts",
    "GaussianNoise",
    "LaplaceNoise",
    "Linear",
    "Noise",
    "Priced",
    "Quantile",
    "Ratio",
    "Reach",
    "Recipe",
    "SelectionNoise",
    "Sensitivity",
    "Threshold",
    "price",
    "sensitivity",
]
