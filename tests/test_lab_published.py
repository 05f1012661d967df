"""Each attack reaches what was published of it, for its parameters.

Where a theorem bounds the attack for every error, errors are the worst or any, and nothing is left
to chance; where it speaks of expectations, the dice of the lab fall the same again.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.rehearsal import Stage
from discreet.lab import auditing, blocks, census, floats, linkage, reconstruction, tracing
from discreet.lab.attacks import OneByOne
from discreet.lab.dice import Dice
from discreet.lab.differencing import track
from discreet.lab.floats import LastBits, NumPy
from discreet.lab.outcome import Outcome
from discreet.lab.target import Ours, Suppressing
from discreet.lab.town import make_town


@pytest.mark.parametrize("least", [3, 10, 15])
def test_a_general_tracker_finds_every_count(least: int) -> None:
    """Denning, Denning and Schwartz 1979 have the tracker; up to k = n/4 is tried here."""
    town = make_town(60)
    with Suppressing({"people": town}, least=least) as target:
        assert OneByOne("a tracker", track, 4, tried=12).run(target, town).success == 1


def test_as_many_are_alone_as_in_real_populations() -> None:
    """63 % of the United States (Golle 2006, census of 2000), 87 % (Sweeney 2000, of 1990)."""
    people = make_town(60_000, name="a real town").to_pylist()
    few = [{**person, "district": person["district"] // 10} for person in people]
    many = [{**person, "district": person["district"] // 5} for person in people]
    assert linkage.share_unique(few) >= 0.63
    assert linkage.share_unique(many) >= 0.87


def test_one_person_in_eight_is_told_by_denials() -> None:
    """Over all orders of four values, each once: half of the groups, whatever the values are."""
    orders = list(itertools.permutations((0.1, 0.2, 0.3, 0.4)))
    values = [4 * number + value for number, order in enumerate(orders) for value in order]
    told = auditing.attack(values, simulatable=False)
    assert 8 * len(told) == len(values)
    assert all(values[person] == value for person, value in told.items())
    assert auditing.attack(values, simulatable=True) == {}


# --- reconstruction ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.05, 0.1, 0.25, 0.4])
def test_signed_sums_leave_few_bits(error: float) -> None:
    """Errors of α√n leave at most 4α²n bits wrong, whatever they are (see ``attack_signs``)."""
    assert reconstruction.attack_signs(256, error).success >= 1 - 4 * error**2


@pytest.mark.parametrize("error", [0, 1])
def test_all_sums_leave_four_times_the_error(error: int) -> None:
    """Dinur and Nissim 2003, Theorem 2 (DR Theorem 8.1): whatever fits is right but for 4E bits."""
    found = reconstruction.attack_all(10, error)
    assert found.tried - found.right <= 4 * error


@pytest.mark.parametrize("error", [0.05, 0.1])
def test_the_linear_program_does_as_well_as_signed_sums(error: float) -> None:
    """On random halves, with four questions for each person, and errors of α√n."""
    found = reconstruction.attack_exact(64, 256, error * 8)
    assert found.success >= 1 - 4 * error**2


def test_blocks_are_solved_as_often_as_the_census() -> None:
    """Abowd and others 2023: in 70 % of the blocks of 2010 all records are verifiably right."""
    assert blocks.attack_blocks(40, 8).success >= 0.7


def test_a_block_is_called_solved_only_if_one_table_fits() -> None:
    """By brute force over all rows of four people: the solver finds all, or two, that fit."""
    kinds = list(np.ndindex(2, 3, 2))
    for chosen in ((0, 0, 5, 7), (0, 3, 5, 10), (1, 2, 8, 11), (4, 4, 4, 4)):
        block = blocks.Block.publish(np.array([kinds[i] for i in chosen]))
        fits = {
            rows
            for rows in itertools.combinations_with_replacement(range(12), 4)
            if _same(blocks.Block.publish(np.array([kinds[i] for i in rows])), block)
        }
        assert tuple(sorted(chosen)) in fits
        assert len(blocks.find_fitting(block)) == min(len(fits), 2)


def _same(one: blocks.Block, other: blocks.Block) -> bool:
    return all(np.array_equal(one.tables[pair], other.tables[pair]) for pair in one.tables)


def test_the_block_of_the_article_has_one_solution() -> None:
    """Garfinkel, Abowd and Martindale 2019: its statistics are of these seven people only."""
    said = census.publish(census.BLOCK)
    assert sum(one is None for one in said.values()) == 3  # too few to be published
    assert census.reconstruct(said, most=3) == [census.BLOCK]
    assert census.attack_block().success == 1
    # without one of the statistics another block fits, too, and no third one
    fewer = {name: one for name, one in said.items() if name != "women of the minority"}
    others = census.reconstruct(fewer, most=3)
    assert len(others) == 2
    assert census.BLOCK in others
    for people in others:
        assert fewer.items() <= census.publish(people).items()


def test_a_noisy_block_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = census.attack_noisy_blocks(12, "0.1")
    assert found.within
    assert found.bound is not None
    assert found.bound < 0.00125  # one of 126 ages and eight kinds, times e^(2ε)

    # The mutant: six thousand times the price, and nothing charged.  A person is in one number of
    # each of the ten counts at most, so each number has noise once in e^59.
    monkeypatch.setattr(Stage, "charge", lambda self, asked: None)
    monkeypatch.setattr(census, "Ours", lambda *of, **given: Ours(*of, **{**given, **_DEAR}))
    broken = census.attack_noisy_blocks(12, "0.1")
    assert not broken.within
    assert broken.right == _count_solved(12)  # all that exact numbers solve


_DEAR = {"epsilon": "600"}


def _count_solved(blocks: int) -> int:
    """The blocks of the attack that are solved if an office publishes them."""
    dice = Dice("blocks of seven")
    made = [census._exchange_one(dice) for _ in range(blocks)]
    return sum(census.reconstruct(census.publish(people)) == [people] for people in made)


def test_three_men_of_the_article_have_thirty_ages() -> None:
    """The same: 30 ages of three men have a median of 30 and a mean of 44."""
    block = census.Unknown.make(3)
    block.state(census.Statistic((), 3, Fraction(30), Fraction(44)))
    found = block.clauses.find([bit for age in block.ages for bit in age], most=100)
    without_infants = [values for values in found if any(values[:7])]  # theirs are from 1
    assert (len(found), len(without_infants)) == (31, 30)


def test_noisy_blocks_are_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks.attack_noisy_blocks(24, 6, "0.1")
    assert found.within
    assert found.bound is not None
    assert found.bound < 0.11

    # The mutant: each table is bought for two hundred times its price.
    monkeypatch.setattr(blocks, "Budget", lambda *, epsilon: _Budget(epsilon=1_000))
    monkeypatch.setattr(blocks, "_share", lambda epsilon: str(200 * epsilon))
    broken = blocks.attack_noisy_blocks(24, 6, "0.1")
    assert not broken.within


_Budget = blocks.Budget


def test_members_are_found_no_more_than_e_epsilon_times_others() -> None:
    """Right of a member is an event; without that member it has one half (non-members)."""
    exact = reconstruction.attack_members(32, 96, None)
    assert exact[0].success == 1
    assert exact[1].success <= 0.75
    members, others = reconstruction.attack_members(32, 48, "0.5")
    assert members.within
    assert others.within
    assert members.bound == pytest.approx(1 - np.exp(-0.5) / 2, rel=1e-6)  # below e^ε / 2


def test_without_a_charge_members_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: every question at the price of sixty, and nothing charged."""
    monkeypatch.setattr(Stage, "charge", lambda self, asked: None)
    monkeypatch.setattr(reconstruction, "_share", lambda epsilon, questions: "60")
    members, others = reconstruction.attack_members(48, 144, "0.1")
    assert members.success == 1
    assert not members.within
    assert others.within  # nothing was answered of them


# --- tracing, floats -----------------------------------------------------------------------------


@pytest.mark.parametrize(("members", "columns"), [(50, 25), (50, 250), (25, 100), (40, 2_000)])
def test_tracing_has_the_power_that_theory_gives_it(members: int, columns: int) -> None:
    """By the normal limit of its scores: a calculation of our own (see ``expected_power``)."""
    found = tracing.attack(members, columns, epsilon=None, studies=8)
    expected = tracing.expected_power(members, columns)
    assert found.success >= expected - 0.05
    # and it is no accident: half the columns do worse
    if expected < 0.99:
        assert tracing.expected_power(members, columns // 2) < found.success


def test_who_is_a_thousandth_of_a_study_is_found() -> None:
    """Homer and others 2008, by their abstract: who contributes less than 0.1 % of a mixture."""
    members = 1_001
    study = tracing.make_study(members, 20_000, name="a mixture", looked_at=60)
    assert len(study.members) == len(study.others) == 60
    assert tracing.power_at(study, 0.05) >= 0.98
    # and it takes so many: a tenth of the columns finds less than two thirds of them
    few = tracing.make_study(members, 2_000, name="a mixture", looked_at=60)
    assert tracing.power_at(few, 0.05) < 0.67


def test_a_few_answers_make_it_certain() -> None:
    """Mironov 2012, by his abstract: just a few queries; here eight, at ε = 1/10 each."""
    town = make_town(200)
    with NumPy({"people": town}, scale=10) as target:
        once = LastBits(scale=10, tried=200).run(target, town)
        often = LastBits(scale=10, tried=200, questions=8).run(target, town)
    assert 0.5 < once.success < 0.75
    assert often.success >= 0.99
    assert often.remark == "certain and false: 0"


def test_last_bits_tell_as_many_as_the_page_says() -> None:
    """Mironov 2012 has the attack; that 38 % can come from both values is our own count."""
    textbook = floats.run(draws=600)[0]
    told = int(textbook.remark.split()[0])
    assert told / 600 >= 0.6
    town = make_town(400)
    with NumPy({"people": town}, scale=10) as target:
        found = LastBits(scale=10, tried=400).run(target, town, epsilon=Fraction(1, 10))
    assert found.success >= 0.55
    assert not found.within
    assert found.remark == "certain and false: 0"


def test_too_much_is_told_to_be_too_much() -> None:
    """A bound is refuted by half as much again of two hundred, and not by a little more."""
    assert Outcome("", "", 110, 200, 0.5, 0.5).within
    assert not Outcome("", "", 160, 200, 0.5, 0.5).within
