"""What the fields of requests mean, in a few words, where a type does not say it itself.

A name means one thing in all bodies, as a rule; where it does not, the type stands before it.
"""

from __future__ import annotations

SENT: dict[str, str] = {
    "also": "other datasets that the key opens, too; their curator must be the caller",
    "ask": "what it is asked, in order",
    "at_most": 'how often "above" may be told',
    "beta": "how seldom its margin may fail",
    "bound": "a proposal of how far one unit moves the median, which is tested first",
    "candidates": "one question with public groups, or questions by name",
    "checks": "properties by name, or questions in SQL",
    "columns": "the columns of the histogram",
    "confidence": "how surely the margins hold",
    "counts": "tell the numbers of those chosen, too",
    "delta": "the failure mass that is paid, too",
    "disabled": "true: they may ask no more",
    "epsilon": "what to pay",
    "expires": "until when; null is without an end",
    "folder": "where it is kept",
    "k": "how many to choose",
    "kind": "which kind of release",
    "limit": "the most that it may cost any one unit; null is without a limit of its own",
    "monotonic": "ask only numbers that grow with every unit, at half the noise",
    "name": "what it is called",
    "new": "ask only of data that the run was not asked about",
    "number": "its number in the run, from 0: a second try with the same is told the same",
    "numbers": "tell the numbers that are above, with noise of their own",
    "of": "the table, or a SELECT that says of whom",
    "offer": "what to pay when it is asked again",
    "once": "go on with a run that has told all it was paid for, too",
    "plan": "what is paid for all, or the accuracies that are wanted, as [plan] of its file",
    "queries": "for how many questions the margin holds",
    "question": "the question in SQL",
    "questions": "the questions in SQL, in order",
    "release": "the releases, each as a [[release]] of its file",
    "releases": "which releases, by name",
    "rho": "what to pay, as concentrated loss",
    "role": "what the server lets them do",
    "rows": "about how many rows there are, which is public",
    "sensitivity": "how far one unit may move all numbers together",
    "settings": "what is published and paid, by the kind's own words",
    "threshold": "what numbers are compared with",
    "wait_s": "how many seconds to wait before it is something to come back for",
    "within": "how far off it may be, in all numbers or by name; the least that buys it is paid",
    "AskAll.within": "how far off each answer may be; of a list, one margin for each question",
    "AskRun.threshold": "what this number is compared with; the run's own if null",
    "AskRunMany.number": "the number of the first in the run, from 0",
    "AskRunMany.threshold": "what these numbers are compared with; the run's own if null",
    "ExplainLearn.questions": "how many questions it is asked in all",
    "Interview.name": "the same words with another name are another interview",
    "Learn.questions": "how many questions it is asked in all",
    "Limit.delta": "the failure mass that may be lost, too",
    "Limit.epsilon": "what may be lost",
    "Limit.rho": "what may be lost, as concentrated loss",
    "StepRelease.number": "which step it is: sent again, it is shown again",
    "Watch.name": "the same words with another name are another run",
}
"""The meaning of a field, by its name; or by its type and name, of what builds on the type too."""

__all__ = ["SENT"]
