"""The documents promise a law of every mechanism but two: it is there, and it is the right one."""

from __future__ import annotations

import inspect
import re
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import mechanisms
from discreet.accounting.divergence import both_ways, max_divergence
from discreet.errors import InvalidParameter
from discreet.mechanisms import Disjoint, Gaussian, Grid, Laplace, Quantiles, SubsampleAggregate

PAGE = Path(__file__).parent.parent / "docs" / "mechanisms.md"
NOT_MECHANISMS = {"AdaptiveRun", "Grid", "MetricSpace"}
WITHOUT = {"Quantiles", "NumericSparse"}


def test_every_mechanism_has_the_law_that_the_page_promises():
    made = {name for name in mechanisms.__all__ if inspect.isclass(getattr(mechanisms, name))}
    lacking = {name for name in made if not hasattr(getattr(mechanisms, name), "law")}
    assert lacking - NOT_MECHANISMS == WITHOUT
    (said,) = re.findall(r"Two have none, (.*?)\. That of", PAGE.read_text(), flags=re.DOTALL)
    assert {name for name in WITHOUT if f"`{name}`" in said} == WITHOUT


PLAIN = {"AdaptiveRun"}
"""Made by other code alone."""


@pytest.mark.parametrize("name", sorted(set(mechanisms.__all__) - PLAIN))
@pytest.mark.parametrize("wrong", [((2, 3, 4, 5, 6), {}), ((), {"nonsense": 3})])
def test_arguments_that_do_not_fit_are_refused_in_words(name, wrong):
    made = getattr(mechanisms, name)
    if inspect.isclass(made):
        args, named = wrong
        with pytest.raises(InvalidParameter, match=rf"{name} is not made .*\n(.*\n)*Fix: name"):
            made(*args, **named)


def test_a_type_error_of_its_own_is_not_hidden():
    with pytest.raises(TypeError, match="not iterable"):
        mechanisms.MetricSpace(1, [[0]])


@pytest.mark.parametrize("distances", [lambda p, q: abs(p - q), 3, [1, 2], None])
def test_a_space_without_a_matrix_is_refused_in_words(distances):
    with pytest.raises(InvalidParameter, match=r"(?s)not a matrix.*MetricSpace\.of"):
        mechanisms.MetricSpace(range(2), distances)


def test_what_fits_is_made_as_before():
    assert Laplace(3, "0.1") == Laplace(3, epsilon="0.1") == Laplace(sensitivity=3, epsilon="0.1")
    assert Gaussian(sensitivity=3, epsilon=2, delta="1e-6").loss.delta == 0
    assert "sensitivity" in inspect.signature(Gaussian).parameters


def test_regions_lose_what_one_of_them_loses():
    regions = Disjoint(
        {
            "north": Laplace(sensitivity=3, epsilon="1/4"),
            "south": Laplace(sensitivity=2, epsilon="1/3"),
        }
    )
    here = regions.law({"north": 40, "south": 70})
    for there in ({"north": 43, "south": 70}, {"south": 72, "north": 40}):
        assert max_divergence(here, regions.law(there))[1] <= regions.loss.epsilon
    both = regions.law({"north": 43, "south": 72})  # nobody is in two regions
    assert max_divergence(here, both)[1] > regions.loss.epsilon
    with pytest.raises(InvalidParameter, match="every declared region"):
        regions.law({"north": 40})
    odd = Disjoint(
        {
            "all": Quantiles(["1/3"], lower=0, upper=9, epsilon=2),
            "b": Gaussian(sensitivity=2, rho=1),
        }
    )
    with pytest.raises(InvalidParameter, match="without an exact law"):
        odd.law({"all": [3], "b": 5})


def test_blocks_that_are_known_have_a_law():
    """Whatever the function does with one row more, the sum moves by the width of its bounds."""

    def largest(rows):
        return max(rows) if rows else 2

    made = SubsampleAggregate(largest, blocks=3, lower=2, upper=14, epsilon="3/2", grid=Grid("1/4"))
    rows, where = [3, 5, 6, 4], [0, 1, 1, 2]
    here = made.law(rows, where=where)
    assert here.center == 4 * (3 + 6 + 4)
    least, most = both_ways(max_divergence, here, made.law([*rows, 90], where=[*where, 0]))
    assert least == most == Fraction(3, 2) * (14 - 3) / 12
    assert (
        both_ways(max_divergence, here, made.law([*rows, 14], where=[*where, 2]))[1] <= made.epsilon
    )
    for wrong in ([0, 1], [0, 1, 1, 3]):
        with pytest.raises(InvalidParameter, match="where must name"):
            made.law(rows, where=wrong)
