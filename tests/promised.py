"""The modules whose lists of names (``__all__``) are promised: each is in the reference."""

from __future__ import annotations

PUBLIC = [
    "discreet",
    "discreet.accounting",
    "discreet.audit",
    "discreet.audit.adversaries",
    "discreet.audit.crowd",
    "discreet.audit.report",
    "discreet.audit.zoo",
    "discreet.curate.collected",
    "discreet.curate.results",
    "discreet.errors",
    "discreet.lab.attacks",
    "discreet.lab.outcome",
    "discreet.lab.target",
    "discreet.lab.town",
    "discreet.ledger",
    "discreet.local",
    "discreet.local.collection",
    "discreet.local.compare",
    "discreet.local.oracle",
    "discreet.local.survey",
    "discreet.mechanisms",
    "discreet.mechanisms.postprocess",
    "discreet.mechanisms.results",
    "discreet.noise",
    "discreet.publication",
    "discreet.question.builder",
    "discreet.release.degrees",
]
