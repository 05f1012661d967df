"""How this ledger was made, by discreet 0.1.0 as it was before its modules moved (c8b25d2).

    git worktree add /tmp/before c8b25d2
    PYTHONPATH=/tmp/before/src python tests/ledgers/0.1.0/make.py

It overwrites ``ledger.sql``, ``export.jsonl``, ``checkpoint.json`` and ``expected.json`` with
another ledger of the same kind: keys and noise are drawn anew.  There is no reason to: what is
here is what somebody may have on their disk.
"""

# ruff: noqa: I001 (the modules of that tree are not here to be sorted)

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

# Who asks what, for what; together they record every class that a stored answer may hold.
QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("ana", "SELECT COUNT(*) AS n FROM visits", {"epsilon": "1/3"}),
    ("ana", "SELECT city, COUNT(*) AS n FROM patients GROUP BY city", {"epsilon": "1/2"}),
    ("ben", "SELECT COUNT(*) AS n FROM patients WHERE city = 'cork' AND age >= 18", {"epsilon": 2}),
    ("ben", "SELECT COUNT(*) AS n FROM patients WHERE city = 'faro'", {"rho": "0.07"}),
    (
        "ana",
        "SELECT doctor, COUNT(*) AS n FROM visits GROUP BY doctor",
        {"epsilon": 3, "delta": "1e-8"},
    ),
    (
        "ana",
        "SELECT doctor, COUNT(*) AS n FROM visits GROUP BY doctor",
        {"rho": "0.2", "delta": "2e-8"},
    ),
    ("curator", "SELECT SUM(cost) AS total FROM visits WHERE paid", {"epsilon": "0.7"}),
    ("curator", "SELECT SUM(cost) AS total, COUNT(*) AS n FROM visits", {"rho": "0.05"}),
    (
        "ben",
        "SELECT AVG(cost) AS mean, VARIANCE(cost) AS spread, STDDEV(cost) AS deviation FROM visits",
        {"epsilon": "1.25"},
    ),
    ("ben", "SELECT SUM(cost) / COUNT(*) AS mean FROM visits", {"epsilon": "0.9"}),
    (
        "ana",
        "SELECT CORR(p.age, v.cost) AS r FROM visits v JOIN patients p"
        " ON v.patient_id = p.patient_id",
        {"epsilon": "1.5"},
    ),
    ("ana", "SELECT MEDIAN(cost) AS middle FROM visits", {"epsilon": "0.6"}),
    ("ana", "SELECT QUANTILE_CONT(age, '1/3', '2/3') AS thirds FROM patients", {"rho": "0.03"}),
    ("ana", "SELECT MIN(cost) AS least, MAX(cost) AS most FROM visits", {"epsilon": "0.8"}),
    ("ben", "SELECT MODE(sex) AS usual FROM patients", {"epsilon": "0.4"}),
    ("ben", "SELECT TOP_K(city, 2) AS top FROM patients", {"epsilon": "0.45"}),
    ("ben", "SELECT HISTOGRAM(age, 0, 18, 65, 120) AS ages FROM patients", {"epsilon": "0.55"}),
    (
        "ana",
        "SELECT t.region, COUNT(*) AS n FROM visits v LEFT JOIN towns t ON v.town = t.name"
        " GROUP BY t.region",
        {"epsilon": "0.35"},
    ),
    (
        "ana",
        "SELECT p.sex, AVG(s.total) AS mean FROM patients p JOIN"
        " (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS s"
        " ON p.patient_id = s.patient_id GROUP BY p.sex ORDER BY mean DESC LIMIT 2",
        {"epsilon": "0.65"},
    ),
    (
        "curator",
        "SELECT COUNT(DISTINCT patient_id) AS people, COUNT(DISTINCT doctor) AS doctors"
        " FROM visits",
        {"epsilon": "0.5"},
    ),
    (
        "curator",
        "SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION ALL"
        " SELECT patient_id FROM patients) AS u",
        {"within": 40, "confidence": "0.9"},
    ),
    (
        "curator",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2, delta = 1e-8,"
        " max_groups_contributed = 2) doctor, COUNT(*) AS n,"
        " SUM(cost, contribution_bounds_per_group => (0, 300)) AS total FROM visits"
        " GROUP BY doctor HAVING n > 5",
        {},
    ),
    (
        "curator",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, max_rows = 2)"
        " DATE_TRUNC('month', day) AS month, COUNT(*) AS n,"
        " COUNT(CASE WHEN cost > 99.5 THEN 1 END) AS dear FROM visits"
        " WHERE day >= DATE '2024-10-01' GROUP BY month",
        {},
    ),
    (
        "curator",
        "SELECT COUNT(*) AS n FROM visits JOIN (SELECT patient_id AS member FROM patients"
        " WHERE age > 50 GROUP BY patient_id) AS chosen ON patient_id = chosen.member",
        {"epsilon": "0.25"},
    ),
]
BURNT = ("ben", "SELECT AVG(age) AS mean FROM patients", {"epsilon": "0.3"})
OPEN = ("ana", "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex", {"epsilon": "0.2"})
REFUSED = [
    ("ana", "SELECT patient_id FROM patients", {"epsilon": "0.1"}),
    ("ben", "SELECT COUNT(*) AS n FROM visits WHERE paid", {"epsilon": "4.5"}),
]


class Clock:
    """A minute passes between any two records, long before anybody runs the tests."""

    def __init__(self) -> None:
        self.now = datetime(2025, 1, 15, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def write_sources(folder: Path) -> None:
    """Forty made-up patients; the same whenever this runs."""
    cities, towns = ("cork", "delft", "faro"), ("Cork", "Delft", "Faro", "Hamar")
    patients = ["patient_id,city,sex,age"]
    visits = ["patient_id,doctor,town,day,cost,paid"]
    for n in range(40):
        patients.append(f"{n},{cities[n * n % 3]},{'fmfxm'[n % 5]},{(n * 37) % 95}")
        for visit in range(1 + n % 3):
            month, day = (n * 5 + visit * 3) % 12 + 1, (n * 7 + visit) % 28 + 1
            doctor = ("Adams", "Brown", "Adams", "Clark")[(n + visit) % 4]
            cost, paid = (n * 53 + visit * 29) % 480 + 0.25, str(n % 4 > 0).lower()
            town = towns[(n + visit) % 4]
            visits.append(f"{n},{doctor},{town},2024-{month:02d}-{day:02d},{cost},{paid}")
    towns_of = ["name,region", "Cork,south", "Delft,north", "Hamar,north"]
    for name, lines in (("patients", patients), ("visits", visits), ("towns", towns_of)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Make it, as its users would have."""
    from discreet import session
    from discreet.curate import Curator
    from discreet.ledger import Ledger

    write_sources(HERE)
    home = Path(tempfile.mkdtemp(prefix="clinic-"))
    for name in ("discreet.toml", "patients.csv", "visits.csv", "towns.csv"):
        shutil.copy(HERE / name, home)
    told = session.read(home)
    file = home / "ledger.sqlite"
    curator = Curator(
        told.sources(),
        schema=told.schema,
        budget=told.budget,
        ledger=Ledger.open(file, clock=Clock()),
        dataset=told.dataset,
        policy=told.policy,
        owns_ledger=True,
    )
    with curator:
        expected = _used(curator, home)
    _keep(home, file)
    expected["names"] = _names(file)
    text = json.dumps(expected, indent=1, ensure_ascii=False, default=str)
    (HERE / "expected.json").write_text(text + "\n", encoding="utf-8")
    shutil.rmtree(home)


def _used(curator: Any, home: Path) -> dict[str, Any]:
    """Everything that is done with the session, and what it said of itself in the end."""
    from discreet import __version__
    from discreet.budget import Budget
    from discreet.errors import Refusal
    from discreet.ledger import new_signing_key

    account, ledger = curator.account, curator.ledger
    keys = _enrolled(account)
    answers = [_asked(curator, *asked) for asked in QUESTIONS[:6]]
    account.renew(["city = faro"], reason="its people were asked, and agreed")
    account.limit_analyst("ben", Budget(epsilon=8, delta="1e-7"))
    secret = home / "signing.pem"
    public_key = new_signing_key(secret)
    ledger.checkpoint(secret)
    answers += [_asked(curator, *asked) for asked in QUESTIONS[6:]]
    for analyst, question, offer in REFUSED:
        try:
            curator.ask(question, analyst=analyst, **offer)
        except Refusal:
            continue
        raise AssertionError(f"not refused: {question}")
    analyst, question, offer = BURNT
    with suppress(Refusal):  # what the curator does when the engine has failed
        curator.burn(curator.pay(question, analyst=analyst, **offer))
    analyst, question, offer = OPEN
    curator.pay(question, analyst=analyst, **offer)  # and then the power fails

    newest = ledger.checkpoint(secret)
    (HERE / "checkpoint.json").write_text(json.dumps(newest.to_json()) + "\n", encoding="utf-8")
    ledger.export(home / "export.jsonl")
    return {
        "version": __version__,
        "identity": ledger.identity,
        "records": len(ledger.records()),
        "public_key": public_key,
        "keys": keys,
        "stamps": _stamps(curator),
        "balances": {
            name or "": _balance(curator.balance(name)) for name in (None, "ana", "ben", "eve")
        },
        "transcript": [_entry(entry) for entry in curator.transcript()],
        "answers": answers,
        "burnt": _question(*BURNT),
        "open": _question(*OPEN),
    }


def _enrolled(account: Any) -> dict[str, str]:
    """The keys of those who may ask; that of eve, who may no longer, opens nothing."""
    from discreet.access import key_id, new_key
    from discreet.budget import Budget

    account.add_analyst("ana", limit=Budget(epsilon=25, delta="1e-6"))
    account.add_analyst("ben")
    account.add_analyst("eve", limit=Budget(rho="0.01"), expires=datetime(2199, 1, 1))
    account.add_analyst("olga", role="auditor")
    keys = {name: new_key(account, name) for name in ("curator", "ana", "ben", "olga", "eve")}
    account.revoke_key(key_id(keys["eve"]))
    account.disable_analyst("eve")
    return keys


def _question(analyst: str, question: str, offer: dict[str, Any]) -> dict[str, Any]:
    return {"analyst": analyst, "question": question, "offer": offer}


def _asked(curator: Any, analyst: str, question: str, offer: dict[str, Any]) -> dict[str, Any]:
    answer = curator.ask(question, analyst=analyst, **offer)
    return _question(analyst, question, offer) | {
        "id": answer.id,
        "columns": {name: answer.column(name) for name in answer.columns},
        "margins": answer.margins(),
        "kinds": answer.margin_kinds,
        "loss": _loss(answer.loss),
    }


def _loss(loss: Any) -> list[str]:
    return [str(loss.epsilon), str(loss.rho), str(loss.delta)]


def _balance(balance: Any) -> dict[str, Any]:
    blocks = {name: _loss(loss) for name, loss, _share in balance.blocks()}
    return {"budget": str(balance.budget), "blocks": blocks}


def _entry(entry: Any) -> list[Any]:
    loss = None if entry.loss is None else _loss(entry.loss)
    said = [entry.id, entry.at.isoformat(), entry.analyst, entry.question, dict(entry.spend)]
    return [*said, loss, str(entry.state), entry.code]


def _stamps(curator: Any) -> dict[str, Any]:
    """The outside of each source's file, as the versions in the ledger were made from it."""
    return {
        Path(stamp.path).name: [stamp.path, stamp.size, stamp.mtime_ns, stamp.inode]
        for version in curator.engine.version().values()
        for stamp in version.stamps
    }


def _names(file: Path) -> list[str]:
    """Every recorded class that is in an answer; all there are, except what is only sent."""
    from discreet.record import _CLASSES, _ENUMS

    with closing(sqlite3.connect(file)) as database:
        bodies = b"".join(body for (body,) in database.execute("SELECT body FROM answers"))
    known = {*_CLASSES, *_ENUMS, "Budget"}
    found = {name for name in known if f'{{"{name}":'.encode() in bodies}
    if known - found != {"Budget", "Explanation", "Schema"}:
        raise AssertionError(f"in no stored answer: {known - found}")
    return sorted(found)


def _keep(home: Path, file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        dump = "\n".join(_readable(line) for line in database.iterdump())
    (HERE / "ledger.sql").write_text(dump + "\n", encoding="utf-8")
    shutil.copy(home / "export.jsonl", HERE / "export.jsonl")


def _readable(statement: str) -> str:
    """A statement of the dump, with the bytes of an answer as the text that they are."""

    def text(found: re.Match[str]) -> str:
        quoted = bytes.fromhex(found[1]).decode().replace("'", "''")
        return f"CAST('{quoted}' AS BLOB)"

    return re.sub(r"X'([0-9A-F]+)'", text, statement)


if __name__ == "__main__":
    main()
