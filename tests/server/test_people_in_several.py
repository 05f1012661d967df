"""People in several datasets over HTTP: in all and per dataset, without the names of others."""

from __future__ import annotations

from contextlib import closing

import httpx
from patience import PATIENCE_S, wait_until

import discreet
from discreet.curate import session
from discreet.ledger import keys as access

TOML = """
[budget]
epsilon = 3
[ledger]
address = "{ledger}"
dataset = "{name}"
[tables.visits]
source = "visits.csv"
unit = "who"
entity = "person"
max_rows_per_unit = 1
columns.who = "integer"
[entities.person]
epsilon = 4
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"


def start(home, name, ledger="ledger.sqlite"):
    home.mkdir()
    (home / "visits.csv").write_text("who\n" + "\n".join(map(str, range(50))))
    made = session.init(home, TOML.format(name=name, ledger=ledger))
    with closing(made.curator(opened=False)) as curator:
        account = curator.account
        for person, role in (("ana", "analyst"), ("aud", "auditor")):
            account.add_analyst(person, role=role)
        return {name: access.new_key(account, name) for name in ("curator", "ana", "aud")}


def test_balances_tell_what_people_lost_in_all_datasets(tmp_path, serve_sessions):
    start(tmp_path / "hospital", "hospital")
    keys = start(tmp_path / "pharmacy", "pharmacy", "../hospital/ledger.sqlite")
    with discreet.open(tmp_path / "hospital") as hospital:
        hospital.ask(COUNT, epsilon="5/2")
    with serve_sessions([tmp_path / "pharmacy"]) as url:
        found = {}
        for who, key in keys.items():
            response = httpx.get(
                f"{url}/v1/datasets/pharmacy/balance",
                headers={"Authorization": f"Bearer {key}"},
                timeout=PATIENCE_S,
            )
            assert response.status_code == httpx.codes.OK
            found[who] = response.json()
        for who, shape in found.items():
            (person,) = shape["entities"]
            assert person["name"] == "person"
            assert person["budget"]["epsilon"] == "4"
            assert person["spent"]["epsilon"] == "5/2"
            assert person["share"] == 0.625
            told = [part["name"] for part in person["datasets"]]
            assert told == ["pharmacy", "other datasets" if who == "ana" else "hospital"]
            assert [part["spent"]["epsilon"] for part in person["datasets"]] == ["0", "5/2"]
            assert "Each person" in shape["text"]
        assert "hospital" not in str(found["ana"])
        with discreet.connect(url, key=keys["ana"], timeout_s=PATIENCE_S) as remote:
            assert remote.balance().shape["entities"] == found["ana"]["entities"]
        ready = f"{url}/readyz"
        wait_until(lambda: httpx.get(ready, timeout=PATIENCE_S).status_code == httpx.codes.OK)
        body = {"question": COUNT, "epsilon": "2", "wait_s": 60}
        refused = httpx.post(
            f"{url}/v1/datasets/pharmacy/ask",
            json=body,
            headers={"Authorization": f"Bearer {keys['ana']}"},
            timeout=PATIENCE_S,
        )
        assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
        assert refused.json()["code"] == "B4"
        assert "hospital" not in refused.text
