"""A directory is a session: what its file may say, and what opening it never does."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from cli_cases import BY_CITY, copied, make_session

from discreet.accounting.budget import Budget
from discreet.cli import clinic
from discreet.curate import session
from discreet.errors import LedgerRefusal, Refusal, SchemaRefusal
from discreet.ledger import new_signing_key

TABLE = """
[tables.visits]
source = "visits.parquet"
unit = "patient"
[tables.visits.columns]
patient = "integer"
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_session(tmp_path_factory.mktemp("session") / "clinic")


@pytest.fixture
def home(original, tmp_path):
    return copied(original, tmp_path / "clinic")


def settings(tmp_path: Path, text: str) -> session.Session:
    (tmp_path / session.FILE).write_text(text + TABLE, encoding="utf-8")
    return session.read(tmp_path)


def test_every_setting_is_read(tmp_path):
    found = settings(
        tmp_path,
        """
        budget = { epsilon = 0.3, delta = 1e-9 }
        [policy]
        question = { epsilon = 0.2 }
        analyst = { rho = "1/7" }
        shared_answers = false
        expires = 2031-02-03
        [ledger]
        address = "books/account.sqlite"
        checkpoint = "/elsewhere/newest"
        dataset = "clinic"
        [engine]
        memory_limit = "3GB"
        threads = 3
        store = "fast"
        """,
    )
    assert found.budget == Budget(epsilon="0.3", delta="1e-9")
    assert found.policy.question == Budget(epsilon="0.2")
    assert found.policy.analyst is not None
    assert found.policy.analyst.rho == Fraction(1, 7)
    assert not found.policy.shared_answers
    assert found.policy.expires == datetime(2031, 2, 3, 23, 59, 59, tzinfo=UTC)
    assert found.ledger_file == tmp_path / "books/account.sqlite"
    assert found.checkpoint == Path("/elsewhere/newest")
    assert found.dataset == "clinic"
    assert found.engine == {"memory_limit": "3GB", "threads": 3, "store": "fast"}
    assert found.store == tmp_path / "fast"
    assert found.sources() == {"visits": str(tmp_path / "visits.parquet")}


def test_what_is_left_out_has_a_default(tmp_path):
    found = settings(tmp_path, "[budget]\nrho = 0.3\n")
    assert found.ledger_file == tmp_path / "ledger.sqlite"
    assert found.policy.shared_answers
    assert found.policy.expires is None
    assert found.store == tmp_path / "prepared"


def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    at_home, beside = tmp_path / "me", tmp_path / "clinic"
    text = '[budget]\nrho = 0.3\n[ledger]\naddress = "~/ledger.sqlite"\ncheckpoint = "~/kept"\n'
    text += '[engine]\nstore = "./~/prepared"\n' + TABLE.replace('"visits', '"~/visits')
    found = session.read(session.write(beside, text).parent)
    assert found.sources() == {"visits": str(at_home / "visits.parquet")}
    assert found.ledger_file == at_home / "ledger.sqlite"
    assert found.checkpoint == at_home / "kept"
    assert found.store == beside / "~" / "prepared"  # a directory of that name


def test_a_database_is_not_a_file(tmp_path):
    found = settings(
        tmp_path, '[budget]\nrho = 0.3\n[ledger]\naddress = "postgresql+psycopg://host/books"\n'
    )
    assert found.ledger_file is None


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", None, "has no section [budget]"),
        ("[budget]\nepsilom = 3\n", 2, "has no 'epsilom'"),
        ("[budget]\nepsilon = -3\n", 2, "epsilon must be greater than 0"),
        ("[budget]\ndelta = 1e-9\nepsilon = 'FILL IN'\n", 3, "epsilon"),
        ("[budget]\nepsilon = 3\nrho = 2\n", 1, "either epsilon"),
        ("budget = 3\n", 1, "not a section"),
        ("[budget]\nrho = 3\n[polizy]\n", 3, "has no 'polizy'"),
        ("[budget]\nrho = 3\n[analysts]\nana = 3\n", 3, "has no 'analysts'"),
        ("[budget]\nrho = 3\n[policy]\nquestions = 3\n", 4, "has no 'questions'"),
        ("[budget]\nrho = 3\n[policy]\nquestion = 3\n", 4, "not a section"),
        ("[budget]\nrho = 3\n[policy]\nanalyst = { epsilom = 3 }\n", 4, "has no 'epsilom'"),
        ("[budget]\nrho = 3\n[policy]\nshared_answers = 'no'\n", 4, "shared_answers"),
        ("[budget]\nrho = 3\n[policy]\nexpires = 'soon'\n", 4, "expires"),
        (
            "[budget]\nrho = 3\n[policy]\nexpires = 0001-01-01T00:00:00+23:59\n",
            4,
            "expires",
        ),
        ('[budget]\nrho = 3\n[ledger]\naddress = "a\\u0000"\n', 4, "address"),
        ("[budget]\nrho = 3\n[ledger]\naddress = 3\n", 4, "address"),
        ("[budget]\nrho = 3\n[ledger]\naddress = ''\n", 4, "address"),
        ("[budget]\nrho = 3\n[ledger]\nadress = 'a'\n", 4, "has no 'adress'"),
        ("[budget]\nrho = 3\n[engine]\nthreads = 0\n", 4, "threads"),
        ("[budget]\nrho = 3\n[engine]\nmemory_limit = 4\n", 4, "memory_limit"),
        ("[budget]\nrho = 3\n[engine]\nkind = 4\n", 4, "kind"),
        ('[budget]\nrho = 3\n[engine]\nkind = "postgres"\ntimeout_s = 0\n', 5, "timeout_s"),
        ('[budget]\nrho = 3\n[engine]\nkind = "oracle"\n', 4, "oracle"),
        ("[budget]\nrho = 3\n[engine]\ntimeout_s = 5\n", 4, "timeout_s"),
        ("[budget]\nrho = \n", 2, "is not TOML"),
    ],
)
def test_a_slip_is_refused_with_its_line(tmp_path, text, line, says):
    with pytest.raises(SchemaRefusal) as refused:
        settings(tmp_path, text)
    assert says in refused.value.what
    if line is not None:
        assert f"discreet.toml, line {line}" in refused.value.what


def test_opening_asks_where_the_file_says(home, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # sources are seen from the session, not from here
    with session.open(home) as curator:
        answer = curator.ask(BY_CITY, epsilon="0.2")
        assert answer.columns == ("city", "n")
        assert curator.budget == Budget(epsilon=1, delta="1e-9")
    with session.open("clinic") as curator:
        assert curator.spent.epsilon == Fraction(1, 5)
        again = curator.ask(BY_CITY, epsilon="0.2")
        assert again.replayed
        assert again.rows == answer.rows
        assert curator.spent.epsilon == Fraction(1, 5)


def test_a_deleted_ledger_is_not_replaced_by_an_empty_one(home):
    with session.open(home) as curator:
        curator.ask(BY_CITY, epsilon="0.2")
    for file in home.glob("ledger.sqlite*"):
        file.unlink()
    with pytest.raises(SchemaRefusal) as refused:
        session.open(home)
    assert refused.value.code == "S22"
    assert not (home / "ledger.sqlite").exists()


def test_init_begins_no_ledger_where_checkpoints_know_of_one(home, tmp_path):
    new_signing_key(tmp_path / "key")
    with session.read(home).ledger() as ledger:
        ledger.checkpoint(tmp_path / "key", folder=home / "seen")
    for file in home.glob("ledger.sqlite*"):
        file.unlink()
    with (home / session.FILE).open("a") as file:
        file.write('\n[ledger]\ncheckpoint = "seen"\n')
    with pytest.raises(LedgerRefusal) as refused:
        session.init(home)
    assert refused.value.code == "L4"
    (home / "seen").rename(home / "elsewhere")
    with pytest.raises(LedgerRefusal) as refused:
        session.init(home)
    assert refused.value.code == "L8"
    assert not list(home.glob("*ledger.sqlite*"))


def test_init_overwrites_nothing(home):
    before = {file: file.read_bytes() for file in home.iterdir() if file.is_file()}
    for text in (None, f"{clinic.SETTINGS}# another"):
        with pytest.raises(SchemaRefusal) as refused:
            session.init(home, text)
        assert refused.value.code == "S21"
    assert {file: file.read_bytes() for file in before} == before


def test_a_directory_without_a_file_is_no_session(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SchemaRefusal) as refused:
            session.read(place)
        assert refused.value.code == "S20"


def test_two_curators_on_one_session_share_one_account(home):
    """Neither overspends because of the other, and each sees what the other paid for."""
    with session.open(home) as one, session.open(home) as two:
        first = one.ask(BY_CITY, epsilon="0.6")
        assert two.spent == one.spent
        assert two.ask(BY_CITY, epsilon="0.6").rows == first.rows
        with pytest.raises(Refusal) as refused:
            two.ask(BY_CITY, epsilon="0.5", fresh=True)
        assert refused.value.code == "B1"
        two.ask(BY_CITY, epsilon="0.4", fresh=True)
        with pytest.raises(Refusal):
            one.ask(BY_CITY, epsilon="0.01", fresh=True)
        assert one.ledger.verify()


def test_a_new_budget_in_the_file_is_the_new_budget(home):
    file = home / session.FILE
    with session.open(home) as curator:
        curator.ask(BY_CITY, epsilon="0.6")
    file.write_text(file.read_text().replace("epsilon = 1\n", "epsilon = 2\n"))
    with session.open(home) as curator:
        assert curator.budget.epsilon == 2
        assert curator.spent.epsilon == Fraction(3, 5)


def test_the_policy_of_the_file_holds(home):
    file = home / session.FILE
    file.write_text(f"{file.read_text()}\n[policy]\nquestion = {{ epsilon = 0.25 }}\n")
    with session.open(home) as curator:
        curator.ask(BY_CITY, epsilon="0.25")
        with pytest.raises(Refusal) as refused:
            curator.ask(BY_CITY, epsilon="0.5")
    assert refused.value.code == "B3"


def test_a_session_that_has_expired_answers_nothing(home):
    file = home / session.FILE
    file.write_text(f"{file.read_text()}\n[policy]\nexpires = 2020-01-01\n")
    with session.open(home) as curator, pytest.raises(Refusal) as refused:
        curator.ask(BY_CITY, epsilon="0.25")
    assert refused.value.code == "A3"


def test_the_example_is_a_session():
    example = session.read(Path(__file__).parents[1] / "examples" / "session")
    assert example.dataset == "hospital"
    assert example.budget.epsilon == 3
    assert example.policy.question is not None


@pytest.mark.parametrize(
    "setting", ['[engine]\nstore = "discreet.toml"', '[ledger]\naddress = "nowhere/books.sqlite"']
)
def test_a_place_that_cannot_be_written_is_refused(tmp_path, original, setting):
    clinic.write_tables(tmp_path, {})
    for file in original.glob("*.parquet"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(Refusal):
        session.init(tmp_path, f"{clinic.SETTINGS}\n{setting}\n")


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(Refusal) as refused:
        session.init(tmp_path / "taken" / "clinic", clinic.SETTINGS)
    assert refused.value.code == "P9"


def test_another_name_is_not_a_fresh_account(home):
    """Nothing in the file but the budget itself changes what may still be spent."""
    with session.open(home) as curator:
        curator.ask(BY_CITY, epsilon="0.6")
    file = home / session.FILE
    file.write_text(f'{file.read_text()}\n[ledger]\ndataset = "fresh"\n')
    with pytest.raises(Refusal) as refused:
        session.open(home)
    assert refused.value.code == "S22"


def test_the_ledger_may_be_on_a_server(home, postgres):
    for file in home.glob("ledger.sqlite*"):
        file.unlink()
    file = home / session.FILE
    file.write_text(f'{file.read_text()}\n[ledger]\naddress = "{postgres.url}"\n')
    with pytest.raises(Refusal):
        session.open(home)
    session.init(home)
    with session.open(home) as curator:
        curator.ask(BY_CITY, epsilon="0.6")
    with session.open(home) as curator:
        assert curator.spent.epsilon == Fraction(3, 5)
    with pytest.raises(Refusal) as refused:
        session.init(home)
    assert refused.value.code == "S21"
