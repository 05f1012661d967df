"""Behind a server, too, what is prepared is refined, and the difference is charged.

The process that holds the engine draws: it is sent what was released before, and the scales.
"""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction

from patience import PATIENCE_S

import discreet
from discreet.curate import session
from discreet.ledger import Ledger
from discreet.release.derived import Derived

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


def list_parents(home) -> list[int]:
    with Ledger.open(home / "ledger.sqlite") as ledger:
        assert ledger.verify().ok
        return [r.content["parent"] for r in ledger.records() if "parent" in r.content]


def test_what_is_prepared_is_refined_in_the_process_of_the_engine(tmp_path, serving):
    with serving(tmp_path) as served:
        clinic = served.datasets["clinic"]
        with discreet.connect(
            served.url, key=clinic.key, dataset="clinic", timeout_s=PATIENCE_S
        ) as remote:
            remote.ask(BY_CITY, epsilon="0.3")
            assert isinstance(remote.ask(BY_CITY, epsilon="0.4"), Derived)
            assert list_parents(clinic.home) == []  # of a file nothing is certain
            with closing(session.read(clinic.home).curator()) as curator:
                curator.prepare()
            first = remote.ask(BY_CITY, epsilon="0.6", fresh=True)
            second = remote.ask(BY_CITY, epsilon="0.75")
            assert second.charged.epsilon == Fraction(3, 20)
            assert second.loss.epsilon == Fraction(3, 4)
            assert list_parents(clinic.home) == [first.id]
            again = remote.ask(BY_CITY, epsilon="0.75")
            assert again.replayed
            assert again.loss.epsilon == Fraction(3, 4)
            kept = served.call("GET", f"answers/{second.id}").json()
            assert kept["certificate"]["charged"]["epsilon"] == "3/20", kept
            # Off by 200 with probability e**-50: of other rows it would be.
            assert all(abs(n - 1000) < 200 for n in second.column("n"))
