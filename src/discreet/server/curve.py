"""Accuracy against price: what a question's margins would be for other offers; free."""

from __future__ import annotations

from typing import Any

from discreet.charts import Picture, lines
from discreet.curate.curator import Curator
from discreet.curate.quoting import Quotes
from discreet.question.offer import Offer
from discreet.release.amounts import loss_json
from discreet.release.render import ASSUMED_ROWS, margin_words
from discreet.server.models import Ask

OFFERS = [
    "0.01",
    "0.02",
    "0.03",
    "0.05",
    "0.07",
    "0.1",
    "0.15",
    "0.2",
    "0.3",
    "0.5",
    "0.7",
    "1",
    "1.5",
    "2",
    "3",
    "5",
]
"""The epsilons for which margins are told."""


def trace_accuracy(curator: Curator, ask: Ask) -> dict[str, Any]:
    """For each offer the price and the margin of every aggregate, measured anew."""
    points: list[dict[str, Any]] = []
    quotes = Quotes(curator)
    asked = quotes.parse(ask.question)
    for epsilon in OFFERS:
        offer = Offer.of(epsilon=epsilon, delta=ask.delta, confidence=ask.confidence)
        plan = quotes.explain(asked, offer)
        known = plan.margins(ask.confidence)
        assumed = plan.margins(ask.confidence, rows=ASSUMED_ROWS)
        points.append(
            {
                "epsilon": epsilon,
                "price": loss_json(plan.loss),
                "margins": {n: assumed[n] if m is None else m for n, m in known.items()},
                "words": margin_words(plan, ask.confidence),
            }
        )
    return {"points": points, "confidence": str(ask.confidence), "assumed_rows": ASSUMED_ROWS}


def draw_curve(told: dict[str, Any]) -> Picture:
    """The same as a picture; both axes by powers, where margins are straight lines."""
    points = told["points"]
    named = [
        (name, [(float(p["epsilon"]), p["margins"][name]) for p in points if p["margins"][name]])
        for name in points[0]["margins"]
    ]
    percent = float(told["confidence"]) * 100
    return lines(
        [(name, line) for name, line in named if line],
        x="price ε",
        y="margin ±",
        title="Accuracy against price",
        subtitle=f"margins at {percent:g} % confidence",
        x_scale="log",
        y_scale="log",
    )
