"""Each chapter's attack on anything with an ``ask``: what it breaks, ours, ours with a defect.

Unprotected targets draw from dice that fall the same again.  Against ours ``Outcome.within`` fails
with probability below 10⁻⁹ if every guess is right with the chance that ε allows; other chances
stand where they are taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_cases import is_refusal, runner

from discreet.accounting.budget import Budget
from discreet.audit.rehearsal import Stage
from discreet.curate import session
from discreet.errors import InvalidParameter
from discreet.lab import dalenius, own, separations, simulation
from discreet.lab.attacks import ATTACKS, TARGETS, Attack, Linkage
from discreet.lab.auditing import Auditing, Denials
from discreet.lab.chapters import CHAPTERS
from discreet.lab.dalenius import Unlocking
from discreet.lab.distance import RandomRow, Taking
from discreet.lab.floats import LastBits, NumPy, Rounded, tell_by_precision
from discreet.lab.outcome import Outcome
from discreet.lab.separations import InAdvance, Parity, Reports, expected_success, parity_of
from discreet.lab.simulation import Telling
from discreet.lab.target import Denied, Open, Ours, Rows, Silent
from discreet.lab.town import SCHEMA, make_town
from discreet.mechanisms import Laplace, RandomizedResponse

TOWN = make_town(60)
PRECISE = LastBits(scale=1, tell=tell_by_precision, tried=30, name="certain by too fine a double")


class Plain:
    """Nothing but an ``ask``."""

    name = "something with an ask"

    def __init__(self, ask: Callable[[str], Rows]) -> None:
        self.ask = ask


def ask_ours(attack: Attack, epsilon: str, *, price: str | None = None) -> Outcome:
    """The attack on the curator; a ``price`` other than its share needs an account that forgets."""
    spent = Fraction(epsilon)
    share = str(spent / attack.questions) if price is None else price
    budget = Budget(epsilon=epsilon)
    with Ours({"people": TOWN}, schema=SCHEMA, budget=budget, epsilon=share) as ours:
        return attack.run(ours, TOWN, epsilon=spent)


def test_every_chapter_has_an_attack_and_every_attack_a_target() -> None:
    assert list(ATTACKS) == [chapter.name for chapter in CHAPTERS]
    assert {one.name for many in ATTACKS.values() for one in many} == {*TARGETS, "parity"}


@pytest.mark.parametrize(
    ("attack", "target", "least"),
    [
        (Denials(tried=30), Auditing, 1.0),
        (LastBits(scale=1, tried=30), lambda tables: NumPy(tables, scale=1), 0.5),
        (PRECISE, lambda tables: Rounded(tables, scale=1), 0.15),
        (Taking(rounds=30), RandomRow, 1.0),
        (Taking(rounds=30), Open, 1.0),
        (Telling(rounds=40), Open, 1.0),
    ],
    ids=["denials", "numpy", "rounded", "a random row", "exact rows", "simulated"],
)
def test_what_is_unprotected_falls_and_ours_keeps_its_promise(
    attack: Attack, target: Callable[[Any], Open], least: float
) -> None:
    with target({"people": TOWN}) as opened:
        naive = attack.run(Plain(opened.ask), TOWN)
    assert naive.success >= least
    assert naive.bound is None
    assert "certain and false: 0" in naive.remark or not isinstance(attack, LastBits)
    found = ask_ours(attack, "0.5")
    assert found.within
    assert found.bound is not None
    assert found.bound < 1
    assert attack.name in found.picture.title


def test_a_denial_that_could_be_simulated_tells_nothing() -> None:
    with Auditing({"people": TOWN}, simulatable=True) as target:
        found = Denials(tried=30).run(target, TOWN)
    share = sum(TOWN["secret"].to_pylist()[:30]) / 30
    assert found.success in (share, 1 - share)  # the commoner value, for everybody
    assert found.remark == "no denial told of anybody"


def test_what_an_auditor_answers_fits_what_it_denies() -> None:
    """Nobody is determined by the answers alone: by brute force over all bits of six people."""
    few = TOWN.slice(0, 6)
    secret = few["secret"].to_pylist()
    for simulatable in (False, True):
        answered = []
        with Auditing({"people": few}, simulatable=simulatable) as target:
            for one in range(6):
                for other in range(6):
                    asked = f"id IN ({one}, {other})"
                    try:
                        heard = target.ask(f"SELECT MAX(secret) AS n FROM people WHERE {asked}")
                    except Denied:
                        continue
                    assert heard == [(max(secret[one], secret[other]),)]
                    answered.append((one, other, heard[0][0]))
        fits = [
            bits
            for bits in np.ndindex(*([2] * 6))
            if all(max(bits[a], bits[b]) == answer for a, b, answer in answered)
        ]
        assert all(len({bits[person] for bits in fits}) == 2 for person in range(6))
        assert bool(answered) != simulatable


# --- what nobody can promise, and what is promised instead ---------------------------------------


def test_gossip_is_unlocked_by_any_useful_table() -> None:
    """Ours has 36 of 40: a bit of the utility vector is wrong about once in twenty, four of seven
    once in 6,000, in one of forty groups; five rounds of forty fail below 10⁻⁹.
    """
    country = make_town(60_000, name="a country")
    attack = Unlocking()
    with Open({"people": country}) as target:
        open_ = attack.run(target, country)
    blind = attack.run(Silent(), country)
    with Ours(
        {"people": country}, schema=SCHEMA, budget=Budget(epsilon=2), epsilon="2"
    ) as target_of_ours:
        ours = attack.run(target_of_ours, country, epsilon=Fraction(2))
    assert open_.success - blind.success >= 0.9
    assert blind.success <= 0.05 + blind.baseline
    assert ours.success >= 0.9
    assert ours.bound is None  # nothing was promised against it


def test_whoever_tips_the_scales_is_hidden_by_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dalenius.tip(40, epsilon=None, present=True).success == 1
    assert dalenius.tip(40, epsilon=None, present=False).success <= 0.05
    there = dalenius.tip(40, epsilon="4", present=True)
    assert there.within
    assert there.bound == pytest.approx(np.exp(4) * 2**-8, rel=3e-3)  # and the extractor's

    # The mutant: noise for one question, where one person moves 280.
    monkeypatch.setattr(
        dalenius, "Laplace", lambda *, sensitivity, epsilon: Laplace(sensitivity=1, epsilon=epsilon)
    )
    broken = dalenius.tip(40, epsilon="4", present=True)
    assert broken.success > 0.9
    assert not broken.within


# --- parity: asked, published, randomised --------------------------------------------------------


def test_parity_is_found_by_asking() -> None:
    """A study fails with probability 3·10⁻⁴ (noise of eight), five of twenty below 10⁻¹³."""
    attack = Parity(studies=20)
    made = attack.make()
    tables = {"people": made.table}
    with Open(tables) as target:
        assert attack.run(target, made.table).success == 1
    with Ours(tables, schema=made.schema, budget=Budget(epsilon=1), epsilon="1") as ours:
        assert attack.run(ours, made.table, epsilon=Fraction(1)).success >= 0.8


def test_parity_is_not_found_in_what_was_published_or_randomised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A histogram has it 0.60 of the time, so 240 of 300 with probability below 10⁻¹¹."""
    attack = Parity(studies=300)
    made = attack.make()
    with InAdvance(made, epsilon="1") as histogram:
        assert attack.run(histogram, made.table).success < 0.8
    most = separations.alone_at_most(16, 10, "1")
    assert most < 0.503
    with Reports(made, epsilon="1") as reports:
        found = attack.run(reports, made.table)
    assert Outcome("", "", found.right, found.tried, 0.5, most).within

    # The mutant: each of ten columns is randomised at ε, and nobody counts them: rows are kept.
    monkeypatch.setattr(
        separations,
        "RandomizedResponse",
        lambda *, epsilon, categories: RandomizedResponse(
            epsilon=10 * int(epsilon), categories=categories
        ),
    )
    with Reports(made, epsilon="1") as reports:
        broken = attack.run(reports, made.table)
    assert broken.success > 0.95
    assert not Outcome("", "", broken.right, broken.tried, 0.5, most).within


def test_parity_needs_its_own_rows() -> None:
    with Open({"people": TOWN}) as target, pytest.raises(ValueError, match=r"Parity\.make"):
        Parity().run(target, TOWN)


# --- ours, with a defect -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attack",
    [Taking(rounds=45), Telling(rounds=60)],
    ids=lambda attack: attack.name,
)
def test_without_a_charge_each_succeeds_again(
    attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: every question at the price of sixty, and nothing charged.

    Noise is not zero once in e^60.
    """
    monkeypatch.setattr(Stage, "charge", lambda self, asked: None)
    found = ask_ours(attack, "0.1", price="60")
    assert found.success == 1
    assert not found.within


@pytest.mark.parametrize(
    ("attack", "least"),
    [(LastBits(scale=1, tried=30), 0.4), (PRECISE, 0.1)],
    ids=["last bits", "too fine"],
)
def test_noise_in_doubles_is_certain_again(
    attack: LastBits, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: the curator's answers with numpy's noise instead of its own."""
    monkeypatch.setattr(Stage, "charge", lambda self, asked: None)
    exact, noise = Ours.ask, np.random.default_rng(7)
    monkeypatch.setattr(
        Ours, "ask", lambda self, q: [(float(noise.laplace(exact(self, q)[0][0], 1.0)),)]
    )
    found = ask_ours(attack, "1", price="60")
    assert found.success > least
    assert not found.within


def test_a_refusal_that_looks_at_the_data_tells_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: the curator denies what would tell somebody, if answered truly."""
    answer = Ours.ask
    with Auditing({"people": TOWN}) as auditor:

        def deny(self: Ours, question: str) -> Rows:
            auditor.ask(question)  # raises if the true answer tells of somebody
            return [(1,) for _ in answer(self, question)]

        monkeypatch.setattr(Ours, "ask", deny)
        found = ask_ours(Denials(tried=45), "0.1")
    assert found.success == 1
    assert not found.within


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_a_simulator_misses_more_where_noise_is_too_little(epsilon: str) -> None:
    """The mutant: a person is counted twice, and noise is for once; exactly twice the loss."""
    mechanism = Laplace(sensitivity=1, epsilon=epsilon)
    right = simulation.simulate(mechanism, 3)
    wrong = simulation.simulate(mechanism, 3, of=lambda bits: 2 * sum(bits))
    assert right.loss == pytest.approx(float(epsilon), rel=1e-9)
    assert wrong.loss == pytest.approx(2 * float(epsilon), rel=1e-9)


def test_a_simulator_of_another_mechanism() -> None:
    """Randomised response on one person's bit; of the others' nothing is said."""
    found = simulation.simulate(RandomizedResponse(epsilon="0.5"), 3, of=lambda bits: bits[0])
    assert found.loss == pytest.approx(0.5, rel=1e-9)
    assert simulation.simulate(RandomizedResponse(epsilon="3"), 2, of=lambda bits: 1).loss == 0


# --- on one's own people -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of 1,300 people, of whom much is known."""
    home = tmp_path_factory.mktemp("lab") / "practice"
    home.mkdir()
    people = range(1_300)
    rows = {
        "patient": [f"p{number}" for number in people],
        "smoker": [number * 7_919 % 11 < 4 for number in people],
        "born": [20 + number for number in people],
        "town": [("Cork", "Rome")[number % 2] for number in people],
    }
    pq.write_table(pa.table(rows), home / "patients.parquet")
    session.init(
        home,
        """
[budget]
epsilon = "1/2"
[tables.patients]
source = "patients.parquet"
unit = "patient"
max_rows_per_unit = 1
[tables.patients.columns]
patient = "text"
smoker = "boolean"
born = { type = "integer", bounds = [0, 2000] }
town = { type = "text", values = ["Cork", "Rome"] }
""",
    )
    return home


@pytest.mark.parametrize(
    ("name", "least"),
    [("link", 1.0), ("audit", 1.0), ("floats", 0.15), ("dalenius", 1.0), ("distance", 1.0)],
)
def test_a_chapter_on_ones_own_people(practice: Path, name: str, least: float) -> None:
    copied = own.copy_people(session.read(practice), people=24)
    (chapter,) = own.own_chapters(copied, Fraction(1, 2), [name])
    seen = chapter.run()
    assert seen.outcomes[0].success >= least
    ours = [one for one in seen.outcomes if one.target.startswith("discreet")]
    assert ours
    assert all(one.within for one in ours)
    assert seen.pictures
    assert seen.figures[0] == "24 people of 'patients', secret: smoker = true"
    if name == "link":
        assert seen.figures[1] == "alone among them with born, town: 100%"


def test_the_command_attacks_a_copy_and_leaves_the_session_alone(
    practice: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.read_bytes() for file in practice.rglob("*") if file.is_file()}
    data = tmp_path / "own.json"
    line = ["lab", "simulate", "-s", practice, "--people", "24", "--json", data]
    code, out, _ = runner(capsys)(*line)
    assert code == 0
    assert "real or simulated" in out
    told = json.loads(data.read_text())
    naive, ours = told["chapters"][0]["outcomes"]
    assert "of real people" in told["warning"]
    assert data.stat().st_mode & 0o077 == 0  # for nobody else
    assert naive["success"] == 1
    assert Outcome("", "", ours["right"], ours["tried"], 0.5, ours["bound"]).within
    assert {file: file.read_bytes() for file in practice.rglob("*") if file.is_file()} == before


def test_what_cannot_be_run_is_said_with_its_reason(practice: Path) -> None:
    copied = own.copy_people(session.read(practice))
    assert own.why_not(copied) == {}
    bare = replace(copied, people=copied.people.select(["id", "secret"]), known=(), crowd=None)
    assert list(own.why_not(bare)) == ["separate", "link", "dalenius"]
    with pytest.raises(InvalidParameter, match="cannot be run"):
        own.own_chapters(bare, Fraction(1), ["separate"])


def test_parities_among_ones_own_people(practice: Path) -> None:
    """Asked, all are found; published in advance or reported alone, as often as the theorem says.

    Nobody is made up: every row of a study is somebody's of the copy.
    """
    copied = own.copy_people(session.read(practice), people=96)
    studies = own.choose_studies(copied)
    assert studies is not None
    assert (studies.people, studies.columns, len(studies.sets)) == (16, 10, 40)
    for row, chosen, parity in zip(studies.rows(), studies.sets, studies.parities, strict=True):
        assert set(parity_of(row, chosen).tolist()) == {parity}
    assert 8 < sum(studies.parities) < 32
    somebody = {
        row["secret"]
        | (row["known0"] & 1) << 1
        | row["known1"] << 2
        | (row["known0"] >> 1 & 127) << 3
        for row in copied.people.to_pylist()
    }
    assert set(studies.rows().ravel().tolist()) <= somebody
    (chapter,) = own.own_chapters(copied, Fraction(1, 2), ["separate"])
    seen = chapter.run()
    asked = seen.outcomes[0]
    theory = expected_success(16, 10, Fraction(1, 2))
    assert asked.within
    for one, share in zip(seen.outcomes, theory.values(), strict=True):
        # Both ways by Chernoff, each with probability below 1e-9; 0.02 is for the normal limit.
        assert replace(one, bound=min(share + 0.02, 1.0)).within
        assert replace(one, right=one.tried - one.right, bound=min(1.02 - share, 1.0)).within
    assert "by the theorem: 99% asked, 57% published in advance, 50% each alone" in seen.figures[1]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (["--secret", "born > 9999"], "P5"),  # nobody has it
        (["--secret", "born > 1"], "P5"),  # everybody has
        (["--secret", "town > 5"], "P5"),  # texts are not compared
        (["--secret", "born > nan"], "P5"),
        (["--secret", "town = 'Cork' OR true"], "P5"),  # a text that nobody has
        (["--epsilon", "5000"], "P2"),
    ],
)
def test_what_is_no_secret_is_refused(
    practice: Path, capsys: pytest.CaptureFixture[str], given: list[str], code: str
) -> None:
    assert is_refusal(runner(capsys)("lab", "link", "-s", practice, *given), code)


def test_a_server_has_no_copy_to_attack(capsys: pytest.CaptureFixture[str]) -> None:
    """An analyst has the address of a server, and no data: there is nothing to read."""
    assert is_refusal(runner(capsys)("lab", "link", "-s", "http://127.0.0.1:1"), "S20")


def test_a_denied_question_is_no_way_in() -> None:
    """Linkage with nothing answered says of everybody what is commonest."""
    town = make_town(40)
    found = Linkage(tried=40).run(Silent(), town)
    assert found.success == found.baseline


def test_a_session_that_promises_a_rho_needs_an_epsilon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = pa.table({"person": range(40), "well": [number % 2 == 0 for number in range(40)]})
    pq.write_table(people, tmp_path / "people.parquet")
    declared = """
[budget]
rho = "0.1"
[tables.people]
source = "people.parquet"
unit = "person"
max_rows_per_unit = 1
[tables.people.columns]
person = { type = "integer", bounds = [0, 999] }
well = "boolean"
"""
    session.init(tmp_path, declared)
    run = runner(capsys)
    assert is_refusal(run("lab", "distance", "-s", tmp_path), "P4")
    code, out, _ = run("lab", "distance", "-s", tmp_path, "--people", "24", "--epsilon", "1")
    assert code == 0
    assert "one random row" in out


def test_codes_are_of_the_people_and_not_of_their_rows(tmp_path: Path) -> None:
    """Somebody with several rows has one code: of the least; nobody's code tells the value."""
    rows = {
        "person": [number // 2 for number in range(60)],
        "seen": [number % 2 == 1 and number < 40 for number in range(60)],
        "place": ["later" if number % 2 else f"a{number // 20}" for number in range(60)],
    }
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    declared = """
[budget]
epsilon = 1
[tables.visits]
source = "visits.parquet"
unit = "person"
max_rows_per_unit = 2
[tables.visits.columns]
person = { type = "integer", bounds = [0, 999] }
seen = "boolean"
place = "text"
"""
    session.init(tmp_path, declared)
    copied = own.copy_people(session.read(tmp_path), people=30)
    assert sum(copied.people["secret"].to_pylist()) == 20
    codes = copied.people["known0"].to_pylist()
    assert sorted(codes) == [0] * 10 + [1] * 10 + [2] * 10
