"""A priced question in words and in plain JSON: plan, promises, caveats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

from discreet.exact.numbers import decimal_up
from discreet.mechanisms import Gaussian, KeyRelease, Laplace, Staircase
from discreet.mechanisms.clipping import ClippedSums
from discreet.price import (
    Bought,
    Choice,
    Clipped,
    Fitted,
    Priced,
    Quantile,
    Recipe,
    Selection,
    Spread,
    Threshold,
    deciding_mechanism,
    least_units,
)
from discreet.price.margins import margin_kind, rounding_of, state_margin
from discreet.price.plan import (
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Products,
    Scaled,
    Sum,
    ValueCounts,
)
from discreet.price.priced import count_sides
from discreet.price.recipes import MOST_ROUNDED
from discreet.price.summed import Summed
from discreet.question.expressions import ColumnRef
from discreet.question.ownership import gains_rows, is_shared, reads_graph, unit
from discreet.question.schema import Neighbours, Owners
from discreet.release.amounts import exact_loss_json, group_loss_json


@cache
def find_version() -> str:
    """Of this library; read from the disk once."""
    return version("discreet")


_LISTED = (
    "these groups are declared, or a public table's: all there can be, whatever the data are. "
    "Nobody's row was looked at; which of them somebody is in is told with a count."
)


def notes(priced: Priced) -> tuple[str, ...]:
    """What noise margins do not tell: clipping, bounding, hidden groups, stand-ins."""
    if priced.question.is_listed:
        return (_LISTED, *priced.question.remarks)
    said = [_say_bounding(priced), *_narrow(priced)]
    said += [
        f"{name}: {what} {_number(low)} ... {_number(high)}."
        for name, what, (low, high) in _clips(priced)
    ]
    said += [*_say_fit(priced), *_say_ends(priced), *_say_rounding(priced)]
    said += [*_size(priced), *_say_at_least(priced), *_say_chosen(priced)]
    if priced.threshold is not None:
        said += _thresholds(priced, priced.threshold)
    for aggregate in priced.question.aggregates:
        if aggregate.function in ("MIN", "MAX"):
            end = "lower" if aggregate.function == "MIN" else "upper"
            said.append(
                f"{aggregate.name}: an extreme value belongs to one {_unit_name(priced)}, so this "
                f"is a private quantile near the {end} end."
            )
    if isinstance(priced.loss.epsilon, float):  # infinite
        said.append(_CONCENTRATED)
    return (*said, *_how_known(priced), *priced.question.remarks)


_CONCENTRATED = (
    "ε = ∞: this noise bounds ε only together with a δ. Its cost is its ρ, which the account "
    "adds up."
)


def _say_at_least(priced: Priced) -> list[str]:
    """That of units with several rows more may stand in the way than is told."""
    rows = priced.reach.rows_per_group
    names = [a.name for a in priced.question.aggregates if a.function.startswith("DISTANCE_TO_")]
    if not names or rows == 1:
        return []
    return [
        f"{', '.join(names)}: so many units ({_unit_name(priced)}) stand in the way at least. "
        f"Where all have one row it is the number; with more, up to {rows} times as many may "
        "have to go."
    ]


def _say_chosen(priced: Priced) -> list[str]:
    """That the groups with most units can be chosen, where all are counted to show a few."""
    question, limit = priced.question, priced.question.limit
    counted = [a.name for a in question.aggregates if a.function == "COUNT_UNITS"]
    by = question.order[0] if question.order else None
    if limit is None or by is None or not by.descending or len(question.aggregates) != 1:
        return []
    if by.expression not in [ColumnRef(name) for name in counted] or len(question.keys) != 1:
        return []
    if limit >= priced.reach.groups or not priced.plan.public_keys:
        return []  # to choose so many takes as much, or nothing lists what to choose from
    key = question.keys[0].name
    way = f"MODE(DISTINCT {key})" if limit == 1 else f"TOP_K(DISTINCT {key}, {limit})"
    return [
        f"every group is counted, with noise that hides one {_unit_name(priced)} in up to "
        f"{priced.reach.groups:,} of them at once, to show {limit:,}. To choose those often takes "
        f"less: ask for {way}, or choose(...) of the question without ORDER BY and LIMIT; each "
        "says its margin for free."
    ]


def _size(priced: Priced) -> list[str]:
    """That a number of units is public, where it is."""
    if priced.neighbours is not Neighbours.CHANGE_ONE:
        return []
    from discreet.price.sizes import has_public_part, is_public  # few schemas have such neighbours

    if not has_public_part(priced):
        return []
    charged = ", and is charged the least that is counted" if is_public(priced) else ""
    return [
        f"the number of units ({_unit_name(priced)}) is public, since neighbours change one and "
        f"add or remove none: it has no noise{charged}."
    ]


def _say_ends(priced: Priced) -> Iterator[str]:
    """Which ends are looked for in the data, for how much, and what noise they leave."""
    readers: dict[Clipped, list[str]] = {}
    for aggregate, recipe in zip(priced.question.aggregates, priced.recipes, strict=True):
        if isinstance(recipe, Clipped):
            readers.setdefault(replace(recipe, function=""), []).append(aggregate.name)
    for recipe, names in readers.items():
        sums = priced.mechanisms[recipe.measurement]
        if not isinstance(sums, ClippedSums):
            raise TypeError(recipe)
        v = recipe.variable
        where = f"{_number(v.low * v.grid)} and {_number((v.low + v.span) * v.grid)}"
        if recipe.trim is None:
            rule = f"about {sums.beyond:,} rows lie beyond each, which are clipped to it"
            rule += " (no margin counts that)"
        else:
            part = float(recipe.trim)
            rule = f"a part of {part:g} of the rows lies beyond each, which are left out"
        beta = 1 - _CONFIDENCE
        off = math.ceil(Laplace(sensitivity=sums.rows, epsilon=sums.noise).margin(beta))
        yield (
            f"{', '.join(names)}: two ends are looked for between {where}, so that {rule}; they "
            f"cost {sums.finding} of the price, and are told with the answer. Each sum of what is "
            f"between them is off as if by ±{off:,} rows at an end (95 %)."
        )


def _say_rounding(priced: Priced) -> list[str]:
    """In which steps the values of a sum are added; what that may change is in its margin."""
    said = []
    for index, aggregate in enumerate(priced.question.aggregates):
        rounding = rounding_of(priced, index)
        if rounding is None:
            continue
        if rounding.counted is None:
            room = f"{MOST_ROUNDED:,} values"
        else:
            room = "as many values as were released"
        said.append(
            f"{aggregate.name}: a value is rounded by up to {rounding.each:g} before it is added: "
            f"the margin of the answer has room for {room}."
        )
    return said


def _thresholds(priced: Priced, threshold: Threshold) -> list[str]:
    """Which groups are shown, and whether any can be."""
    bought, name = deciding_mechanism(priced), _unit_name(priced)
    if isinstance(bought, KeyRelease):
        half, nearly = least_units(threshold, bought), least_units(threshold, bought, 0.95)
        rule = (
            f"a group is shown by a coin: with {half} units or more at least every second time, "
            f"with {nearly} or more at least 95 % of the time"
        )
    elif threshold.odds:
        rule = (
            f"groups whose noisy number of units is below {threshold.least - 1} are absent, and of "
            f"those with {threshold.least - 1} a part of {float(threshold.odds):.2f} is shown"
        )
    else:
        rule = f"groups whose noisy number of units is below {threshold.least} are absent"
    said = [
        f"{rule}; a group with one {name} appears with probability at most "
        f"{decimal_up(threshold.delta, 3)}."
    ]
    return said if priced.population is None else [*said, describe_hidden(priced)]


def describe_hidden(priced: Priced) -> str:
    """What to expect where the declared population does not reach the threshold."""
    if priced.threshold is None:
        raise TypeError("these groups are public")
    needed = least_units(priced.threshold, deciding_mechanism(priced))
    return (
        f"WARNING: no group can be expected to pass: one of {needed:,} units is shown every second "
        f"time, and the declared population is {priced.population:,}. Offer more."
    )


_CONFIDENCE = Fraction(95, 100)


def _how_known(priced: Priced) -> list[str]:
    """How margins that are not simply those of the noise are known."""
    said = []
    of = dict(zip((a.name for a in priced.question.aggregates), priced.recipes, strict=True))
    quantiles = [name for name, recipe in of.items() if isinstance(recipe, Quantile | Spread)]
    if quantiles:
        certain = ", ".join(
            f"{name} ± {math.ceil(_margin(priced, index, certified=True) or 0):,} ranks"
            for index, name in enumerate(of)
            if name in quantiles
        )
        said.append(
            "margins of quantiles count ranks (rows), not values, and are typical: for values "
            f"that lie evenly around the answer. Whatever the data are: {certain} (95 %)."
        )
    if any(isinstance(recipe, Choice) for recipe in of.values()):
        said.append(
            "a most frequent value is chosen with noise: its margin, certified, says how many rows "
            "fewer than the true one it may have."
        )
        said += _describe_often(priced, of)
    return said


def _describe_often(priced: Priced, of: Mapping[str, Recipe]) -> list[str]:
    """That the rows of one unit with one value all count, and how each would count once."""
    sides = count_sides(priced.neighbours)
    often = [
        name
        for name, recipe in of.items()
        if isinstance(recipe, Choice)
        and isinstance(chosen := priced.mechanisms[recipe.measurement], Selection)
        and chosen.score_change > sides
    ]
    who = unit(priced.question.source).name
    return [
        f"{name}: every row of one {who} counts, also where several have one value. To count each "
        f"{who} once for a value, ask for MODE(DISTINCT ...), or of SELECT DISTINCT {who} and the "
        "value: less noise."
        for name in often[:1]
        if not is_shared(priced.question.source)
    ]


def _margin(priced: Priced, index: int, *, certified: bool) -> float | None:
    return state_margin(priced, index, 1 - _CONFIDENCE, certified=certified)


MarginUnit = Literal["value", "ranks", "rows"]
VALUE: MarginUnit = "value"
"""The unit of most margins: that of the value itself."""


def margin_unit(recipe: Recipe) -> MarginUnit:
    """What a margin counts."""
    match recipe:
        case Quantile() | Spread():
            return "ranks"
        case Choice():
            return "rows"
    return VALUE


def _say_bounding(priced: Priced) -> str:
    bound, name = priced.plan.contribution, _unit_name(priced)
    if reads_graph(priced.plan.source):
        return f"one {name} changes at most {bound.rows} of what is counted."
    if bound.rows is not None:
        rows = "1 row" if bound.rows == 1 else f"{bound.rows} rows"
        return f"at most {rows} of each {name} {'is' if bound.rows == 1 else 'are'} counted."
    return (
        f"each {name} is counted in at most {bound.groups} groups, "
        f"with at most {bound.rows_per_group} rows in each."
    )


def _narrow(priced: Priced) -> list[str]:
    """What is protected, where a person may be more than one of it."""
    protected = unit(priced.plan.source)
    if protected.owners is Owners.PAIR:
        return [
            f"protected is one {protected.name}, and not a person: whoever is in d pairs loses "
            "d times epsilon, d * d times rho."
        ]
    if protected.owners is Owners.ANY:
        return [
            f"protected is each {protected.name} in all rows that name them; as one leaves, as "
            "many rows of others may come in their place, and both are paid for."
        ]
    if len(protected.kinds) == 1:
        return []
    return [
        f"protected is one {protected.name}: whoever has k of them loses k times epsilon, k * k "
        "times rho, and of delta more than k times."
    ]


def _unit_name(priced: Priced) -> str:
    return unit(priced.plan.source).name


def owner(priced: Priced) -> str:
    """Who one unit is, as the schema names it."""
    return unit(priced.plan.source).name


def _clips(priced: Priced) -> list[tuple[str, str, tuple[Fraction, Fraction]]]:
    found: list[tuple[str, str, tuple[Fraction, Fraction]]] = []
    for aggregate, recipe in zip(priced.question.aggregates, priced.recipes, strict=True):
        measurement = priced.plan.measurements[recipe.measurement]
        if isinstance(measurement, GroupTotal | GroupSum):
            low, high = measurement.low, measurement.low + measurement.span
            what = f"the total of each {_unit_name(priced)} in a group is clipped to"
            found.append((aggregate.name, what, (low * measurement.grid, high * measurement.grid)))
        elif isinstance(measurement, GroupMean):
            low, high = measurement.low, measurement.low + measurement.span
            what = (
                f"the mean over each {_unit_name(priced)} of its own mean in a group, as in "
                "BigQuery; its own is clipped to"
            )
            found.append((aggregate.name, what, (low * measurement.grid, high * measurement.grid)))
        if aggregate.function == "COUNT" or isinstance(recipe, Clipped | Fitted):
            continue
        variables: tuple[Scaled, ...] = ()
        if isinstance(measurement, Moments | Products):
            variables = measurement.variables
        elif isinstance(measurement, Histogram | Sum):
            variables = (measurement.variable,)
        for v in variables:
            ends = (v.low * v.grid, (v.low + v.span) * v.grid)
            found.append((aggregate.name, "values are clipped to", ends))
    return found


def _say_fit(priced: Priced) -> Iterator[str]:
    """Between which bounds the columns of a fit are clipped, once for all its numbers."""
    readers: dict[int, list[str]] = {}
    for aggregate, recipe in zip(priced.question.aggregates, priced.recipes, strict=True):
        if isinstance(recipe, Fitted):
            readers.setdefault(recipe.measurement, []).append(aggregate.name)
    for place, names in readers.items():
        measured = priced.plan.measurements[place]
        if not isinstance(measured, Products):
            raise TypeError(place)
        ends = ", ".join(
            f"{_number(v.low * v.grid)} ... {_number((v.low + v.span) * v.grid)}"
            for v in measured.variables
        )
        yield (
            f"{', '.join(names)}: measured together, {measured.entries} sums with one noise; the "
            f"columns are clipped, in their order, to {ends}."
        )


def _number(x: Fraction) -> str:
    return f"{x.numerator:,}" if x.denominator == 1 else f"{float(x):,.6g}"


def describe(priced: Priced) -> dict[str, Any]:
    """The certificate of a priced question, as plain JSON; nothing in it depends on data."""
    return {
        "discreet": find_version(),
        "question": priced.question.text,
        "unit": owner(priced),
        "neighbours": name_neighbours(priced),
        "promise": _promise(priced),
        **_pairs(priced),
        "contribution": {
            "rows": priced.plan.contribution.rows,
            "groups": priced.plan.contribution.groups,
            "rows_per_group": priced.plan.contribution.rows_per_group,
        },
        "groups": "public" if priced.plan.public_keys else "thresholded",
        "threshold": None if priced.threshold is None else threshold_json(priced, priced.threshold),
        "measurements": [
            {
                "measured": _measurement_json(measurement),
                "sensitivity": {"l1": s.l1, "l2_squared": s.l2_squared},
                **_describe_mechanism(mechanism),
            }
            for measurement, s, mechanism in zip(
                priced.plan.measurements, priced.sensitivities, priced.mechanisms, strict=True
            )
        ],
        **({} if priced.together is None else {"together": list(list_together(priced))}),
        "margins": {
            aggregate.name: {
                "kind": margin_kind(recipe),
                "counts": None if (unit := margin_unit(recipe)) == VALUE else unit,
                "at_95_percent": _margin(priced, index, certified=False),
                "certified_at_95_percent": _margin(priced, index, certified=True),
            }
            for index, (aggregate, recipe) in enumerate(
                zip(priced.question.aggregates, priced.recipes, strict=True)
            )
        },
        "loss": exact_loss_json(priced.loss.rounded()),  # as an account charges it
    }


def name_neighbours(priced: Priced) -> str:
    """Between which databases a person is hidden.

    Where rows have two owners, people come and go as declared; that others' rows take their
    place is how it is priced, and not another promise.
    """
    return str(_find_neighbours(priced))


def _find_neighbours(priced: Priced) -> Neighbours:
    return Neighbours.ADD_REMOVE if gains_rows(priced.plan.source) else priced.neighbours


def _promise(priced: Priced) -> str:
    protected = unit(priced.plan.source)
    if protected.owners is Owners.ANY:
        return f"all rows that name one {protected.name} added or removed"
    change = _find_neighbours(priced) is Neighbours.CHANGE_ONE
    return f"all rows of one {protected.name} {'changed' if change else 'added or removed'}"


_PAIRS = (2, 5, 10)
"""Of how many pairs a certificate says what a person in them loses."""


def _pairs(priced: Priced) -> dict[str, Any]:
    """What a person loses who is in several of the pairs that are protected."""
    if unit(priced.plan.source).owners is not Owners.PAIR:
        return {}
    return {"person_in_pairs": {str(d): group_loss_json(priced.loss, d) for d in _PAIRS}}


def list_together(priced: Priced) -> Iterator[dict[str, str]]:
    """The ways in which one unit can move measurements at once: of each, which part."""
    readers: dict[int, list[str]] = {}
    for aggregate, recipe in zip(priced.question.aggregates, priced.recipes, strict=True):
        readers.setdefault(recipe.measurement, []).append(aggregate.name)
    for way in priced.together or ():
        yield {
            ", ".join(readers.get(index, ["groups"])): str(part)
            for index, part in enumerate(way)
            if part
        }


def threshold_json(priced: Priced, threshold: Threshold) -> dict[str, Any]:
    """Which groups are shown: by which noisy number, and how many units that takes."""
    bought = deciding_mechanism(priced)
    return {
        "least": None if isinstance(bought, KeyRelease) else threshold.least,
        "odds_of_one_less": str(threshold.odds),
        "delta": str(threshold.delta),
        "units_for_half": least_units(threshold, bought),
        "units_for_95_percent": least_units(threshold, bought, 0.95),
        "can_pass": priced.population is None,
    }


def _measurement_json(measurement: Measurement) -> dict[str, Any]:
    shape: dict[str, Any] = {"kind": type(measurement).__name__}
    if isinstance(measurement, Moments):
        shape["degrees"] = list(measurement.degrees)
        shape["variables"] = [_variable_json(v) for v in measurement.variables]
    elif isinstance(measurement, Products):
        shape["variables"] = [_variable_json(v) for v in measurement.variables]
    elif isinstance(measurement, Histogram | Sum):
        shape["variables"] = [_variable_json(measurement.variable)]
    elif isinstance(measurement, GroupTotal | GroupSum | GroupMean):
        whole = Scaled(measurement.expression, measurement.grid, measurement.low, measurement.span)
        shape["variables"] = [_variable_json(whole)]
    elif isinstance(measurement, ValueCounts):
        shape["values"] = len(measurement.values)
    return shape


def _variable_json(variable: Scaled) -> dict[str, str]:
    return {
        "grid": str(variable.grid),
        "low": str(variable.low * variable.grid),
        "high": str((variable.low + variable.span) * variable.grid),
    }


def _describe_mechanism(mechanism: Bought) -> dict[str, Any]:
    match mechanism:
        case Laplace(scale=scale):
            return {"mechanism": "discrete Laplace", "scale": str(scale)}
        case Gaussian(sigma_squared=sigma_squared):
            return {"mechanism": "discrete Gaussian", "sigma_squared": str(sigma_squared)}
        case Selection(epsilon=epsilon, choices=choices):
            return {"mechanism": "exponential", "epsilon": str(epsilon), "choices": choices}
        case ClippedSums(epsilon=epsilon, noise=noise, beyond=beyond, trim=trim):
            return {
                "mechanism": "private ends, then discrete Laplace",
                "epsilon": str(epsilon),
                "choices": mechanism.choices,
                "noise": str(noise),
                "beyond": beyond if trim is None else None,
                "trim": None if trim is None else str(trim),
            }
        case Staircase(epsilon=epsilon, width=width):
            return {"mechanism": "staircase", "epsilon": str(epsilon), "width": width}
        case KeyRelease(epsilon=epsilon, delta=delta, keys=keys):
            return {
                "mechanism": "optimal key release",
                "epsilon": str(epsilon),
                "delta": str(delta),
                "keys": keys,
            }
        case Summed(terms=()):
            return {"mechanism": "none"}
        case Summed(terms=terms, below=below):
            laws = [
                {**_describe_mechanism(t.law), "draws": t.count, "weight": f"{t.weight}/{below}"}
                for t in terms
            ]
            return {"mechanism": "sum of released noise", "laws": laws}


def name_mechanism(mechanism: Bought) -> str:
    """The law of the noise, or of the choice, in one word."""
    if isinstance(mechanism, Selection):
        return "exponential"
    if mechanism == Summed(()):
        return "none"
    return "ends, Laplace" if isinstance(mechanism, ClippedSums) else type(mechanism).__name__


__all__ = [
    "VALUE",
    "MarginUnit",
    "describe",
    "describe_hidden",
    "find_version",
    "margin_unit",
    "name_mechanism",
    "name_neighbours",
    "notes",
    "owner",
]
