"""Privacy profiles: the exact delta of a finished list of releases, for every epsilon.

The profile of a mechanism is delta as a function of epsilon: the hockey-stick
divergence of its worst pair of neighbouring outputs.  Known profiles are closed
forms; the profile of many releases together comes from the privacy-loss
distribution.  Everything is certified: closed forms by ball arithmetic, the
distribution in integers that only ever round up (docs/proofs/profile.md), so an
answer is an upper bound and not an estimate.

A profile is a *report* about a list that was fixed beforehand or is finished,
and whose kinds did not depend on the answers.  The gate for adaptive sessions is
``discreet.accounting.budget``.
"""

from discreet.accounting.profile.closed import (
    AnyProfile,
    GaussianProfile,
    LaplaceProfile,
    Profile,
    find_profile,
)
from discreet.accounting.profile.composed import ComposedProfile, compose, fails_within

__all__ = [
    "AnyProfile",
    "ComposedProfile",
    "GaussianProfile",
    "LaplaceProfile",
    "Profile",
    "compose",
    "fails_within",
    "find_profile",
]
