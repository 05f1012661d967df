"""Publication: one release, many answers.

Plans which tables to measure with how much of a spend, asks a measurer for
noisy numbers, and works only on those: synthetic tables, workloads of linear
questions, hierarchies, counters over time.
"""

from discreet.publication.agenda import Agenda, Division, read_agenda
from discreet.publication.counter import Counter, CounterRun
from discreet.publication.declared import Declared
from discreet.publication.domain import Column
from discreet.publication.gram import Gram, Prefixes, Questions, Ranges
from discreet.publication.hierarchy import Hierarchy, make_consistent, release_hierarchy
from discreet.publication.marginals import (
    Marginal,
    MarginalPlan,
    combine_tables,
    plan_marginals,
    release_marginals,
)
from discreet.publication.margins import (
    Certificate,
    Margin,
    Promise,
    Typical,
    buy_certificate,
    buy_typical,
    list_margins,
)
from discreet.publication.measure import (
    Battery,
    Cells,
    Combinations,
    Distance,
    Errors,
    Measurement,
    Measurer,
    Query,
    Records,
    View,
    loss_of,
)
from discreet.publication.spend import Kind, Spend
from discreet.publication.strategy import (
    Strategy,
    ask_strategy,
    choose_kind,
    estimate_cells,
    expected_rmse,
    plan_strategy,
)
from discreet.publication.synthetic import (
    Settings,
    Stage,
    Synthesis,
    outline_stages,
    synthesize,
    too_few,
)
from discreet.publication.weights import MWEM, PrivateMultiplicativeWeights, WeightsRun
from discreet.publication.workload import (
    LinearQuestion,
    WorkloadPlan,
    answer_workload,
    plan_workload,
)

__all__ = [
    "MWEM",
    "Agenda",
    "Battery",
    "Cells",
    "Certificate",
    "Column",
    "Combinations",
    "Counter",
    "CounterRun",
    "Declared",
    "Distance",
    "Division",
    "Errors",
    "Gram",
    "Hierarchy",
    "Kind",
    "LinearQuestion",
    "Margin",
    "Marginal",
    "MarginalPlan",
    "Measurement",
    "Measurer",
    "Prefixes",
    "PrivateMultiplicativeWeights",
    "Promise",
    "Query",
    "Questions",
    "Ranges",
    "Records",
    "Settings",
    "Spend",
    "Stage",
    "Strategy",
    "Synthesis",
    "Typical",
    "View",
    "WeightsRun",
    "WorkloadPlan",
    "answer_workload",
    "ask_strategy",
    "buy_certificate",
    "buy_typical",
    "choose_kind",
    "combine_tables",
    "estimate_cells",
    "expected_rmse",
    "list_margins",
    "loss_of",
    "make_consistent",
    "outline_stages",
    "plan_marginals",
    "plan_strategy",
    "plan_workload",
    "read_agenda",
    "release_hierarchy",
    "release_marginals",
    "synthesize",
    "too_few",
]
