"""What comes back from a curator, here or on a server: the classes, to name them in a program."""

from discreet.charts.picture import Picture
from discreet.curate.aggregating import Aggregated, AggregateExplanation
from discreet.curate.choosing import ChoiceExplanation, Chosen
from discreet.curate.interviews import InterviewExplanation, InterviewRun, Reply
from discreet.curate.learning import Learned, Learning, LearningRun
from discreet.curate.preparing import PlannedRelease
from discreet.curate.quote import Choice, Quote
from discreet.curate.releases import Releases
from discreet.curate.remote import Remote, RemoteBalance
from discreet.curate.remote_runs import RemoteInterview, RemoteLearning, RemoteRun
from discreet.curate.reports import (
    MedianExplanation,
    QualityExplanation,
    QualityReport,
    RobustMedian,
)
from discreet.curate.runs import Run, Verdict, Verdicts, WatchExplanation
from discreet.curate.surveys import Surveys
from discreet.publication.synopsis import Synopsis
from discreet.publication.told import Told
from discreet.release.answer import Row
from discreet.release.combined import CombinedExplanation
from discreet.release.derived import Derived
from discreet.release.explanation import Explanation
from discreet.release.intervals import Interval

__all__ = [
    "AggregateExplanation",
    "Aggregated",
    "Choice",
    "ChoiceExplanation",
    "Chosen",
    "CombinedExplanation",
    "Derived",
    "Explanation",
    "Interval",
    "InterviewExplanation",
    "InterviewRun",
    "Learned",
    "Learning",
    "LearningRun",
    "MedianExplanation",
    "Picture",
    "PlannedRelease",
    "QualityExplanation",
    "QualityReport",
    "Quote",
    "Releases",
    "Remote",
    "RemoteBalance",
    "RemoteInterview",
    "RemoteLearning",
    "RemoteRun",
    "Reply",
    "RobustMedian",
    "Row",
    "Run",
    "Surveys",
    "Synopsis",
    "Told",
    "Verdict",
    "Verdicts",
    "WatchExplanation",
]
