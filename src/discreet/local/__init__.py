"""The local model: answers are randomised by those who give them, and nobody is trusted.

Every randomizer is a frozen object: ``release`` makes reports (one, or an array), ``loss``
is what a report costs its respondent, ``law`` its exact law, ``estimate`` what many
reports say, with margins that hold.  Probabilities are rational and drawn with whole
numbers from cryptographic bits, so that a browser can draw the same.
"""

from discreet.local.attributes import Attributes, Joint, Tables
from discreet.local.choose import Choice, best
from discreet.local.direct import Direct
from discreet.local.frequencies import Estimate, Frequencies, norm_sub
from discreet.local.hadamard import Hadamard
from discreet.local.hashed_sets import HashedSets
from discreet.local.hashing import LocalHashing, code_of_text
from discreet.local.heavy import Found, HeavyHitters
from discreet.local.itemsets import ItemCounts, ItemSets
from discreet.local.mean import HybridMean, OneBitMean, PiecewiseMean
from discreet.local.memo import Client, Memoised
from discreet.local.ordinal import Hierarchy, Ordinal
from discreet.local.subset import SubsetSelection
from discreet.local.unary import Unary

__all__ = [
    "Attributes",
    "Choice",
    "Client",
    "Direct",
    "Estimate",
    "Found",
    "Frequencies",
    "Hadamard",
    "HashedSets",
    "HeavyHitters",
    "Hierarchy",
    "HybridMean",
    "ItemCounts",
    "ItemSets",
    "Joint",
    "LocalHashing",
    "Memoised",
    "OneBitMean",
    "Ordinal",
    "PiecewiseMean",
    "SubsetSelection",
    "Tables",
    "Unary",
    "best",
    "code_of_text",
    "norm_sub",
]
