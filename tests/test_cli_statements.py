"""Statements of several questions from the command line: the same answer, parts and prices."""

from __future__ import annotations

import json

import pytest
from cli_cases import make_session, runner

SHARE = (
    "SELECT a.n / b.n AS share, a.n AS old FROM (SELECT COUNT(*) AS n FROM patients WHERE age > 60)"
    " AS a, (SELECT COUNT(*) AS n FROM patients) AS b"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return make_session(tmp_path_factory.mktemp("statements") / "clinic")


def test_ask_explain_and_price(home, capsys):
    run = runner(capsys)
    at = ("--session", home, "--epsilon", "0.5")
    code, out, _ = run("explain", SHARE, *at)
    assert code == 0
    assert "question 1:" in out
    assert "question 2:" in out
    assert "around them, computed from their answers, free" in out
    code, out, _ = run("price", SHARE, *at)
    assert (code, "ε = 0.5" in out, "old ±" in out) == (0, True, True)
    code, out, _ = run("ask", SHARE, *at, "--json")
    found = json.loads(out)
    assert (code, len(found["parts"])) == (0, 2)
    assert [part["price"]["epsilon"] for part in found["parts"]] == ["1/4", "1/4"]
    code, out, _ = run("ask", SHARE, *at)
    assert code == 0
    assert "2 questions answered before, free now; they cost ε = 0.5" in out
    assert "no margin is known for share" in " ".join(out.split())
    code, out, _ = run("ask", SHARE, *at, "--csv")
    assert out.startswith("share,old,old_margin")
    code, out, _ = run("price", SHARE, *at)
    assert "free" in out


def test_ends_of_intervals_are_columns(home, capsys):
    run = runner(capsys)
    text = "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high"
    code, out, _ = run(
        "ask", f"{text} FROM patients", "--session", home, "--epsilon", "0.1", "--csv"
    )
    assert code == 0
    header, row = (line.split(",") for line in out.split()[:2])
    found = dict(zip(header, map(float, row), strict=True))
    assert found["low"] == pytest.approx(found["n"] - found["n_margin"])
    assert found["high"] == pytest.approx(found["n"] + found["n_margin"])


def test_what_was_answered_before_needs_no_offer(tmp_path, capsys):
    """A question around known ones is free and says so, as each of them does by itself."""
    run = runner(capsys)
    home = make_session(tmp_path / "clinic")
    count = "SELECT COUNT(*) AS n FROM patients"
    double, at = f"SELECT 2 * n AS d FROM ({count}) AS a", ("--session", home)
    code, _, refused = run("ask", double, *at)
    assert (code, refused[:4]) == (2, "Q43:")
    code, out, _ = run("ask", count, *at, "--epsilon", "0.1", "--csv")
    number = float(out.splitlines()[1].split(",")[0])
    code, out, _ = run("ask", double, *at, "--json")
    found = json.loads(out)
    assert found["rows"] == [[2 * number]]
    assert all(part["replayed"] for part in found["parts"])
    code, out, _ = run("ask", double, *at)
    assert "1 question answered before, free now; it cost ε = 0.1" in " ".join(out.split())
    code, out, _ = run("price", double, *at)
    assert code == 0
    assert "free" in out
    code, out, _ = run("explain", double, *at)
    assert (code, out.splitlines()[0]) == (
        0,
        "free: paid for before (ε = 0.1, ρ = 0.00499584, δ = 0)",
    )
    code, _, refused = run("ask", double.replace("patients", "patients WHERE age > 60"), *at)
    assert (code, refused[:4]) == (2, "Q43:")


def test_a_stranger_is_told_nothing_for_free(tmp_path):
    import discreet
    from discreet.errors import AccessRefusal

    count = "SELECT COUNT(*) AS n FROM patients"
    with discreet.open(make_session(tmp_path / "clinic")) as clinic:
        clinic.ask(count, epsilon="0.1")
        with pytest.raises(AccessRefusal):
            clinic.ask(f"SELECT 2 * n AS d FROM ({count}) AS a", analyst="eve")


def test_what_is_known_is_explained_without_an_offer_and_without_a_price(tmp_path, capsys):
    """No margin is told that nobody has offered for."""
    run = runner(capsys)
    home = make_session(tmp_path / "clinic")
    count, at = "SELECT COUNT(*) AS n FROM patients", ("--session", home)
    code, _, refused = run("explain", count, *at)
    assert (code, refused[:4]) == (2, "Q43:")
    assert run("ask", count, *at, "--epsilon", "0.1")[0] == 0
    for command in ("explain", "price"):
        code, out, _ = run(command, count, *at)
        assert code == 0
        assert "free" in out.splitlines()[0]
        assert "n ± 30" in out
        assert "± 3.0" not in out
