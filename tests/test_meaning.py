"""What epsilon promises, against mechanisms that attain it and against random ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from discreet.accounting.divergence import hockey_stick, total_variation
from discreet.accounting.drawing import Axis, Chart, Line, svg
from discreet.accounting.law import DiscreteGaussianLaw, FiniteLaw
from discreet.accounting.meaning import Meaning, Worlds
from discreet.accounting.neighbours import Neighbours
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, exp_up

epsilons = st.fractions(min_value=Fraction(1, 50), max_value=5, max_denominator=50)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 4), max_denominator=500)
shares = st.fractions(min_value=0, max_value=1, max_denominator=200)


def worst_pair(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """Kairouz, Oh and Viswanath (2015): every (epsilon, delta) mechanism comes from this one."""
    e = math.exp(epsilon)
    with_you = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0]
    return with_you, with_you[::-1]


def best_power(p: list[float], q: list[float], alpha: float) -> float:
    """Neyman and Pearson: reject where P/Q is largest, and at random on the border."""
    order = sorted(range(len(p)), key=lambda z: -(p[z] / q[z] if q[z] else math.inf))
    power, left = 0.0, alpha
    for z in order:
        share = 1.0 if q[z] <= left else left / q[z]
        power, left = power + share * p[z], left - share * q[z]
    return power


@settings(max_examples=80, deadline=None)
@given(epsilons, deltas, shares)
def test_the_power_is_attained_by_the_worst_mechanism(epsilon, delta, alpha):
    bound = Worlds(epsilon, delta).power(alpha)
    attained = best_power(*worst_pair(float(epsilon), float(delta)), float(alpha))
    assert float(bound) == pytest.approx(attained, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(epsilons, deltas)
def test_the_advantage_is_the_greatest_gap_and_attained(epsilon, delta):
    meaning = Worlds(epsilon, delta)
    p, q = worst_pair(float(epsilon), float(delta))
    gap = sum(max(0.0, a - b) for a, b in zip(p, q, strict=True))
    assert float(meaning.advantage) == pytest.approx(gap, abs=1e-12)
    for k in range(101):
        alpha = Fraction(k, 100)
        assert meaning.power(alpha) - alpha <= meaning.advantage


def random_pair(draw: st.DrawFn) -> tuple[FiniteLaw, FiniteLaw]:
    size = draw(st.integers(2, 5))
    laws = []
    for _ in range(2):
        weights = draw(st.lists(st.integers(1, 30), min_size=size, max_size=size))
        laws.append(
            FiniteLaw.exact([(z, Fraction(w, sum(weights))) for z, w in enumerate(weights)])
        )
    return laws[0], laws[1]


@st.composite
def private_pairs(draw: st.DrawFn):
    """Two random laws, and an (epsilon, delta) that they have, both ways, certified."""
    p, q = random_pair(draw)
    epsilon = draw(epsilons)
    delta = max(hockey_stick(p, q, epsilon)[1], hockey_stick(q, p, epsilon)[1])
    return p, q, epsilon, Fraction(delta)


@settings(max_examples=60, deadline=None)
@given(private_pairs(), st.lists(st.integers(0, 9), min_size=5, max_size=5))
def test_no_random_mechanism_breaks_the_promise(pair, values):
    p, q, epsilon, delta = pair
    meaning = Worlds(epsilon, delta)
    assert total_variation(p, q)[0] <= meaning.advantage
    for event in itertools.product((0, 1), repeat=len(p.outcomes)):
        alpha = sum(m for m, chosen in zip(q.fractions, event, strict=True) if chosen)
        power = sum(m for m, chosen in zip(p.fractions, event, strict=True) if chosen)
        assert power <= meaning.power(alpha)
    worth = values[: len(p.outcomes)]
    top = max(worth) or 1
    expected = [sum(m * v for m, v in zip(law.fractions, worth, strict=True)) for law in (p, q)]
    low, high = meaning.utility(expected[1], most=top)
    assert low <= expected[0] <= high


@settings(max_examples=60, deadline=None)
@given(private_pairs(), shares)
def test_beliefs_stay_within_their_bounds_under_pure_privacy(pair, prior):
    p, q, _, _ = pair
    ratios = [a / b for a, b in zip(p.fractions, q.fractions, strict=True)]
    most = max(*ratios, *(1 / ratio for ratio in ratios))
    if most == 1:
        return
    # The least epsilon that the pair has, as a fraction from above.
    epsilon = Fraction(math.ceil(math.log(most) * 10**9) + 1, 10**9)
    meaning = Worlds(epsilon)
    low, high = meaning.posterior(prior)
    for a, b in zip(p.fractions, q.fractions, strict=True):
        after = prior * a / (prior * a + (1 - prior) * b)
        assert low <= after <= high
        assert abs(after - prior) <= meaning.belief_change


@settings(max_examples=60, deadline=None)
@given(epsilons, shares)
def test_beliefs_reach_their_bounds_under_randomised_response(epsilon, prior):
    e = math.exp(epsilon)
    low, high = Worlds(epsilon).posterior(prior)
    x = float(prior)
    assert float(high) == pytest.approx(e * x / (e * x + 1 - x), rel=1e-12)
    assert float(low) == pytest.approx(x / (x + e * (1 - x)), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(epsilons)
def test_the_greatest_change_of_belief_is_attained(epsilon):
    meaning = Worlds(epsilon)
    prior = Fraction(1 / (1 + math.exp(epsilon / 2)))
    low, high = meaning.posterior(prior)
    assert float(high - prior) == pytest.approx(float(meaning.belief_change), rel=1e-9)
    low, high = meaning.posterior(1 - prior)
    assert float(1 - prior - low) == pytest.approx(float(meaning.belief_change), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(private_pairs())
def test_an_ideal_release_is_as_near_as_it_is_said_to_be(pair):
    """DR Lemma 3.17, part 2, by linear programming: laws Y', Z' within e**epsilon of each other,
    and as near to Y, Z as possible."""
    p, q, epsilon, delta = pair
    n, e = len(p.outcomes), math.exp(epsilon)
    y, z = (np.array([float(m) for m in law.fractions]) for law in (p, q))
    # Variables: Y', Z', the excess of each over Y and Z, and the greater distance.
    eye, zero = np.eye(n), np.zeros((n, n))
    column, none = np.zeros((n, 1)), np.zeros(n)
    rows = [
        np.hstack([eye, -e * eye, zero, zero, column]),
        np.hstack([-e * eye, eye, zero, zero, column]),
        np.hstack([eye, zero, -eye, zero, column]),
        np.hstack([zero, eye, zero, -eye, column]),
        np.hstack([none, none, none + 1, none, [-1]]).reshape(1, -1),
        np.hstack([none, none, none, none + 1, [-1]]).reshape(1, -1),
    ]
    limits = np.concatenate([none, none, y, z, [0, 0]])
    totals = np.array([[*[1] * n, *[0] * (3 * n + 1)], [*[0] * n, *[1] * n, *[0] * (2 * n + 1)]])
    cost = np.zeros(4 * n + 1)
    cost[-1] = 1
    found = linprog(cost, A_ub=np.vstack(rows), b_ub=limits, A_eq=totals, b_eq=[1, 1])
    assert found.success
    assert found.fun <= float(Worlds(epsilon, delta).ideal_gap) + 1e-9


def test_delta_is_not_how_often_the_loss_exceeds_epsilon():
    """Often said, and wrong: for Gaussian noise the loss exceeds epsilon more often."""
    p, q = DiscreteGaussianLaw(0, 4), DiscreteGaussianLaw(2, 4)
    epsilon = Fraction(3, 4)
    delta = hockey_stick(p, q, epsilon)[1]
    # ln(P/Q) = (4 - 4 z) / 8 > 3/4 where z < -1/2: all of the negative numbers.
    assert p.below(0) > ball(Fraction(delta)) * 2


# --- what your data say: two steps under add/remove -----------------------------------------


def extremal_values(epsilon: float) -> tuple[list[float], list[float], list[float]]:
    """Laws for one value, the other and absence: neighbours of absence, and as far apart as can be.

    Both branches of two steps meet here: every ratio to the absent is e**epsilon, and the
    total variation of the two values is 1 - e**-epsilon.
    """
    e = math.exp(epsilon)
    least = 1 / (e * (1 + e))
    first = [e * e * least, least, 1 - (1 + e * e) * least]
    absent = [e * least, e * least, 1 - 2 * e * least]
    return first, [first[1], first[0], first[2]], absent


@settings(max_examples=60, deadline=None)
@given(epsilons)
def test_two_values_are_told_apart_as_well_as_is_said_and_no_better(epsilon):
    meaning, e = Meaning(epsilon=epsilon), math.exp(epsilon)
    one, other, absent = extremal_values(float(epsilon))
    for law in (one, other):  # each is a neighbour of absence, at epsilon exactly
        ratios = [a / b for a, b in zip(law, absent, strict=True)]
        assert max(*ratios, *(1 / r for r in ratios)) == pytest.approx(e)
    gap = sum(max(0.0, a - b) for a, b in zip(one, other, strict=True))
    assert gap > float(meaning.presence.advantage)
    assert float(meaning.value.advantage) == pytest.approx(gap, abs=1e-12)
    # Between its two corners the curve is attained by deciding on the first outcome.
    assert float(meaning.value.power(Fraction(other[0]))) == pytest.approx(one[0], abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(epsilons, deltas, shares)
def test_two_steps_are_never_worse_than_their_loss_added_up(epsilon, delta, alpha):
    """(2 epsilon, (1 + e**epsilon) delta) as one step allows at least as much."""
    two = Worlds(epsilon, delta, steps=2)
    assert two.delta >= min(1, delta * (1 + Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**40))))
    added = Worlds(two.epsilon, two.delta)
    # A 2**-40 for the rounding of e**epsilon, which is squared on one side only.
    assert two.power(alpha) <= added.power(alpha) + Fraction(1, 2**40)
    assert two.advantage <= added.advantage + Fraction(1, 2**40)
    assert two.power(alpha) - alpha <= two.advantage


@settings(max_examples=60, deadline=None)
@given(st.data(), epsilons)
def test_no_two_random_neighbours_of_one_law_break_what_is_said_of_values(data, epsilon):
    """The middle law plays the absent; delta is whatever makes both pairs private."""
    size = data.draw(st.integers(2, 4))
    laws = []
    for _ in range(3):
        weights = data.draw(st.lists(st.integers(1, 30), min_size=size, max_size=size))
        laws.append(
            FiniteLaw.exact([(z, Fraction(w, sum(weights))) for z, w in enumerate(weights)])
        )
    one, absent, other = laws
    pairs = [(one, absent), (absent, one), (other, absent), (absent, other)]
    delta = max(Fraction(hockey_stick(*pair, epsilon)[1]) for pair in pairs)
    value = Meaning(epsilon=epsilon, delta=delta).value
    assert total_variation(one, other)[0] <= value.advantage
    assert hockey_stick(one, other, value.epsilon)[0] <= value.delta
    for event in itertools.product((0, 1), repeat=size):
        alpha = sum(m for m, chosen in zip(other.fractions, event, strict=True) if chosen)
        power = sum(m for m, chosen in zip(one.fractions, event, strict=True) if chosen)
        assert power <= value.power(alpha)


def test_under_change_one_a_value_is_one_step_and_presence_is_not_at_stake():
    meaning = Meaning(epsilon="0.5", delta="1e-6", neighbours="change-one")
    assert meaning.neighbours is Neighbours.CHANGE_ONE
    assert meaning.presence is None
    assert meaning.value == Meaning(epsilon="0.5", delta="1e-6").presence
    assert meaning.to_json()["presence"] is None
    assert not any(what.startswith("presence") for what, _ in meaning.table())
    assert "took part will" not in meaning.paragraph
    assert "How many took part is taken to be known" in meaning.paragraph


def test_an_outcome_that_delta_lets_through_is_no_broken_word():
    """The factor holds but for what delta leaves, and the sentence that says it says so."""
    said = Meaning(epsilon="0.5", delta="1e-6").paragraph
    but = "every possible outcome is, but for what δ = 0.000001 leaves, at most "
    assert said.count(but) == said.count("every possible outcome is") == 2
    assert "leaves" not in Meaning(epsilon="0.5").paragraph


def test_both_are_said_everywhere():
    meaning = Meaning(epsilon="0.5")
    presence, value = math.tanh(0.125), math.tanh(0.25)
    rows = dict(meaning.table())
    assert rows["presence: any belief moves by at most"] == "12.5 points"
    assert rows["value: any belief moves by at most"] == "24.5 points"
    assert "whether you took part moves by more than 12.5 percentage points" in meaning.paragraph
    assert "about your data moves by more than 24.5 percentage points" in meaning.paragraph
    told = meaning.to_json()
    assert float(told["presence"]["belief_change"]) == pytest.approx(presence, abs=1e-11)
    assert float(told["value"]["belief_change"]) == pytest.approx(value, abs=1e-11)
    drawn = meaning.svg()
    assert "possible: that you took part" in drawn
    assert "possible: what your data say" in drawn
    assert "at most: what your data say" in drawn


def test_groups():
    """DR after Theorem 2.2: (k epsilon, k e**((k-1) epsilon) delta); k delta is too little."""
    meaning = Meaning(epsilon="0.5", delta="1e-6", group=4)
    assert meaning.joint_epsilon == 2
    exact = 4 * math.exp(1.5) * 1e-6
    assert float(meaning.joint_delta) == pytest.approx(exact, rel=1e-12)
    assert meaning.joint_delta >= 4 * exp_up(Fraction(3, 2)) * Fraction(1, 10**6) * (
        1 - Fraction(1, 2**60)
    )
    alone = Meaning(epsilon=2, delta=meaning.joint_delta)
    for joint, single in ((meaning.presence, alone.presence), (meaning.value, alone.value)):
        assert joint.power("0.05") == single.power("0.05")
        assert joint.posterior("0.3") == single.posterior("0.3")
    # A mechanism that is exact about whom it betrays: each step of a chain of neighbours loses
    # epsilon and delta, and the ends of the chain differ by more than k delta.
    e, d = math.exp(0.5), 1e-6
    chain = d * (1 + e + e**2 + e**3)
    assert 4 * d < chain <= float(meaning.joint_delta)


def test_numbers_are_rounded_against_us():
    meaning = Meaning(epsilon="1/3", delta="1e-9", group=3)
    for name, worlds, steps in (("presence", meaning.presence, 1), ("value", meaning.value, 2)):
        shown = meaning.to_json()[name]
        grown = Fraction(math.exp(steps)) - Fraction(1, 10**9)
        assert Fraction(shown["factor"]) >= worlds.factor >= grown
        assert Fraction(shown["advantage"]) >= worlds.advantage
        assert Fraction(shown["delta"]) >= worlds.delta
        low, high = worlds.posterior("0.1")
        least, most = map(Fraction, shown["posterior"]["0.1"])
        assert least <= low < high <= most
        assert float(high - low) == pytest.approx(float(most - least))


def test_the_paragraph_says_the_numbers():
    text = str(Meaning(epsilon="0.5"))
    e = math.exp(0.5)
    assert f"{1.649} times" in text  # e**0.5 = 1.6487..., rounded up
    assert f"{math.ceil(1000 * 0.1 * e / (0.9 + 0.1 * e)) / 10}%" in text
    assert f"{math.ceil(1000 * e / (1 + e)) / 10}%" in text
    assert "ideal" not in text
    with_delta = str(Meaning(epsilon="0.5", delta="1e-6", group=4))
    assert "ideal" in with_delta
    assert "the 4 of you" in with_delta


def test_a_large_loss_never_reads_as_certainty_by_rounding():
    rows = dict(Meaning(epsilon=12).table())
    assert not rows["presence: the best guess is right"].startswith("100")
    assert not rows["value: the best guess is right"].startswith("100")


def test_no_belief_moves_by_more_than_all_of_it():
    assert Meaning(epsilon=699).presence.belief_change <= 1
    assert Meaning(epsilon=699).value.belief_change <= 1
    assert "more than 100 percentage points" in Meaning(epsilon=699).paragraph


@pytest.mark.parametrize(
    "build",
    [
        lambda: Meaning(epsilon=0),
        lambda: Meaning(epsilon=-1),
        lambda: Meaning(epsilon=float("nan")),
        lambda: Meaning(epsilon="1/2", delta=-1),
        lambda: Meaning(epsilon="1/2", delta=1),
        lambda: Meaning(epsilon="1/2", group=0),
        lambda: Meaning(epsilon="1/2", group=2.5),
        lambda: Meaning(epsilon=701),
        lambda: Meaning(epsilon=1, neighbours="nobody"),
        lambda: Meaning(epsilon=3, delta="0.1", group=9),
        lambda: Worlds(Fraction(2)).posterior(2),
        lambda: Worlds(Fraction(2)).power(-1),
        lambda: Worlds(Fraction(2)).utility(5, most=3),
        lambda: Worlds(Fraction(2)).utility(-5, most=3),
    ],
)
def test_bad_input_is_refused(build):
    with pytest.raises(InvalidParameter) as refusal:
        build()
    assert refusal.value.fix


# --- pictures ------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    "meaning",
    [
        Meaning(epsilon="0.5", delta="1e-6", group=4),
        Meaning(epsilon="1/1000"),
        Meaning(epsilon=30, delta="0.2"),
        Meaning(epsilon=699),
        Meaning(epsilon="0.5", delta="1e-6", neighbours="change-one"),
    ],
    ids=repr,
)
def test_the_picture_is_valid_and_drawn_within_its_frame(meaning):
    text = meaning.svg()
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text.startswith("What ε = ")
    assert root.find(f"{SVG}desc").text == meaning.paragraph
    assert "nan" not in text
    assert "inf," not in text
    assert "prefers-color-scheme:dark" in text
    lines = list(root.iter(f"{SVG}polyline"))
    assert len(lines) == (5 if meaning.presence is None else 8)
    frame = next(rect for rect in root.iter(f"{SVG}rect") if rect.get("fill") == "none")
    wide, high = float(frame.get("width")), float(frame.get("height"))
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert all(-0.01 <= x <= wide + 0.01 for x, _ in points)
    # The curve of possible tests starts at delta, ends at certainty, and never falls.
    first = [tuple(map(float, point.split(","))) for point in lines[0].get("points").split()]
    heights = [1 - y / high for _, y in first]
    assert heights[0] == pytest.approx(float(meaning.joint_delta), abs=1e-4)
    assert heights[-1] == pytest.approx(1)
    assert heights == sorted(heights)


def test_a_chart_escapes_what_it_is_given():
    chart = Chart(
        "a < b & c",
        Axis("<x>", 0, 3),
        Axis("y", 1, 1000, logarithmic=True),
        [Line('"quoted" <label>', [(0, 1), (3, 1000)], shaded=True)],
    )
    root = ElementTree.fromstring(svg([chart], title="<t>", description="&"))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "a < b & c" in texts
    assert '"quoted" <label>' in texts
    assert {"1", "10", "100", "1,000"} <= set(texts)


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        (Axis("", 0, 1, percent=True), ["0%", "20%", "40%", "60%", "80%", "100%"]),
        (Axis("", 3, 40, logarithmic=True), ["5", "10", "20"]),
        (
            Axis("", 1, 10**6, logarithmic=True),
            ["1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"],
        ),
        (Axis("", 0.1, 0.3), ["0.1", "0.15", "0.2", "0.25", "0.3"]),
    ],
)
def test_ticks_are_round(axis, labels):
    assert [label for _, label in axis.ticks()] == labels
