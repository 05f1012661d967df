"""Groups that are declared, and nothing else of them: told from the schema, for nothing.

``SELECT DISTINCT city`` of a column whose values are listed asks for what is public already.
Nothing is measured, so no row is read and nothing can be lost.  Which of the groups somebody is in
is another question, with a count and a price.
"""

from __future__ import annotations

from itertools import product

from discreet.accounting.loss import NOTHING
from discreet.price.plan import Plan, Reach
from discreet.price.priced import Priced, bound_contribution
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Value
from discreet.question.ownership import find_neighbours, row_bound
from discreet.question.question import Question
from discreet.question.relation import Source


def price_listed(question: Question, catalogue: Catalogue) -> Priced:
    """A question for its own public keys: a plan that measures nothing."""
    multiplicity = catalogue.multiplicity
    bound = bound_contribution(question, multiplicity)
    reach = Reach.of(bound, grouped=True, most=row_bound(question.source, multiplicity), width=1)
    sides = find_neighbours(question.source, catalogue.schema.neighbours)
    plan = Plan(question.source, question.keys, bound, ())
    return Priced(question, plan, (), (), (), reach, sides, None, NOTHING)


def price_nothing(catalogue: Catalogue, table: str | None = None) -> Priced:
    """The price of asking nobody anything: of ``table``'s units, or of any there are."""
    private = [name for name, one in catalogue.schema.tables.items() if not one.public]
    named = catalogue.schema.tables[table or private[0]]
    source = Source(named, tuple((column.name, column.name) for column in named.columns))
    return price_listed(Question(source, (), (), ()), catalogue)


def list_groups(question: Question) -> tuple[tuple[Value | None, ...], ...]:
    """Every combination of what its keys are declared to be."""
    return tuple(product(*(key.values or () for key in question.keys)))


__all__ = ["list_groups", "price_listed", "price_nothing"]
