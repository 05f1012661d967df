"""The zoo: every known bug is found, and no correct twin is accused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.audit.verdict import Verdict
from discreet.audit.zoo import FALSE_ALARMS, Check, animals, examine, keeper, walk
from discreet.errors import InvalidParameter

ALPHA = Fraction(1, 10**9)
"""Chance that one twin is accused here; in a walk it is ``keeper.ALPHA``."""

N = 100_000
"""Samples in either world; what a specimen is to be found with."""

PROVED = [one for one in animals() if one.check.deterministic]
SAMPLED = [one for one in animals() if not one.check.deterministic]


def test_it_is_a_zoo():
    assert len(animals()) >= 40
    assert len({one.name for one in animals()}) == len(animals())
    assert {one.check for one in animals()} == set(Check)
    for one in animals():
        assert all((one.name, one.bug, one.source, one.family, one.relation))
        assert one.broken is not one.twin
    assert all((one.law is None) == (one.check is not Check.FIT) for one in animals())


def test_the_page_lists_every_specimen_and_no_other():
    page = (Path(__file__).parents[1] / "docs" / "zoo.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.partition("## The specimens")[2].splitlines()]
    named = [(row[0].removeprefix("| "), row[2]) for row in rows if len(row) == 4]
    listed = [row for row in named if row[0] not in {"specimen", "---"}]
    assert listed == [(one.name, one.check.value) for one in animals()]


def test_the_wrong_sparse_vectors_of_lyu_su_and_li_are_there():
    wrong = [one for one in animals() if one.source.startswith("Lyu, Su, Li (2017), Algorithm")]
    assert sorted(one.source.split()[5] for one in wrong) == ["3", "4", "5", "6"]


def test_the_alarms_of_all_twins_together_stay_within_the_stated_rate():
    assert len(SAMPLED) <= keeper.MOST_SAMPLED
    assert len(SAMPLED) * keeper.ALPHA <= FALSE_ALARMS == Fraction(1, 1000)


@pytest.mark.parametrize("animal", PROVED, ids=str)
def test_a_bug_that_can_be_proved_is_found_and_its_twin_is_not_accused(animal):
    seen = examine(animal)
    assert seen.found, seen.broken.sentence
    kept = Verdict.PROVED if animal.check is Check.LAW else Verdict.CONSISTENT
    assert seen.twin.verdict is kept, seen.twin.sentence


@pytest.mark.parametrize("animal", SAMPLED, ids=str)
def test_a_bug_that_shows_in_samples_is_found_and_its_twin_is_not_accused(animal):
    broken = keeper.check_subject(animal, animal.broken, samples=N, name=animal.name)
    assert broken.alarm, broken.sentence
    twin = keeper.check_subject(animal, animal.twin, samples=N, alpha=ALPHA, name="twin")
    assert twin.verdict is Verdict.CONSISTENT, twin.sentence


def test_a_specimen_without_its_bug_is_missed():
    """What counts the missed and the accused does count them."""
    animal = animals(named="unclipped sum")
    healthy, sick = replace(animal, broken=animal.twin), replace(animal, twin=animal.broken)
    shares: list[float] = []
    seen = walk([healthy, sick], progress=shares.append)
    assert [one.animal for one in seen.missed] == [healthy]
    assert [one.animal for one in seen.false_alarms] == [sick]
    assert shares == [0.5, 1.0]
    assert seen.sentence.startswith("1 of 2 known bugs found, 1 alarms on 2 correct twins")
    written = seen.to_json()
    assert written["missed"] == written["false_alarms"] == ["unclipped sum"]
    assert [one["found"] for one in written["specimens"]] == [False, True]


def test_a_specimen_that_is_not_there():
    with pytest.raises(InvalidParameter, match="there is no specimen 'unicorn'"):
        animals(named="unicorn")


@pytest.mark.soak
def test_ninety_nine_in_a_hundred_are_found_and_none_accused_in_twenty_walks():
    """200 chances to miss a statistical bug; at most two may be missed, and no twin accused."""
    walks = [walk(SAMPLED, samples=N) for _ in range(20)]
    missed = [one.animal.name for each in walks for one in each.missed]
    tried = len(SAMPLED) * len(walks)
    assert len(missed) <= tried / 100, missed
    assert not [one.animal.name for each in walks for one in each.false_alarms]


@pytest.mark.soak
def test_a_whole_walk_takes_less_than_five_minutes():
    seen = walk(animals())
    assert not seen.missed
    assert not seen.false_alarms
    assert seen.seconds < 300
