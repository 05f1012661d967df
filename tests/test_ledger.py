"""A ledger in a file: damage, tampering, old copies, checkpoints, restarts."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import warnings
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from ledger_cases import BUDGET, NORTH, SOUTH, Clock, opened, request, schema, spend_all

from discreet.accounting.budget import Budget
from discreet.errors import LedgerRefusal
from discreet.exact.numbers import canonical_json
from discreet.ledger import Ledger, Policy, books, new_signing_key, verify_export
from discreet.ledger.checkpoint import Checkpoint
from discreet.ledger.connection import SqliteConnection


@pytest.fixture
def tmp_path():
    """In memory where that can be had: these tests are about files, not about disks."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def key(tmp_path):
    new_signing_key(tmp_path / "key.pem")
    return tmp_path / "key.pem"


def fill(path, parts=4, **options):
    """Some questions, answered and not."""
    with Ledger.open(path, **options) as ledger:
        account = opened(ledger)
        for part in range(parts):
            receipt = account.charge(request(account, f"part {part}", loss="1/16"))
            if part % 2:
                account.publish(receipt, f"answer {part}".encode())


def refused(path, **options):
    with pytest.raises(LedgerRefusal) as refusal:
        Ledger.open(path, **options)
    return refusal.value.code


def change(path, *statements):
    """Do to the file what somebody with a database tool could do."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def problems(path):
    """What verification finds, also where opening already refuses."""
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = "sequence, kind, at, dataset, analyst, subject, body, previous, digest"
        rows = connection.execute(f"SELECT {columns} FROM records ORDER BY sequence").fetchall()
    connection.close()
    export = path.with_suffix(".jsonl")
    export.write_text("".join(canonical_json(list(row)) + "\n" for row in rows))
    return verify_export(export).problems


# --- damage --------------------------------------------------------------------------------------


def test_a_ledger_and_its_copies_are_their_owners_alone(path, tmp_path):
    before = os.umask(0o022)
    try:
        fill(path)
        with Ledger.open(path) as ledger:
            opened(ledger)
            ledger.backup(tmp_path / "copy.sqlite")
            files = [*tmp_path.glob("ledger.sqlite*"), tmp_path / "copy.sqlite"]
            assert len(files) > 2  # the log, while it is open
            assert {file.name: file.stat().st_mode & 0o777 for file in files} == {
                file.name: 0o600 for file in files
            }
    finally:
        os.umask(before)


def test_the_rights_of_a_ledger_that_is_there_are_left_alone(path):
    fill(path)
    path.chmod(0o660)
    fill(path)
    assert path.stat().st_mode & 0o777 == 0o660


def test_what_is_not_a_ledger_is_refused_and_left_alone(path):
    for content in (b"", b"a holiday picture" * 99, b"SQLite format 3\x00" + bytes(200)):
        path.write_bytes(content)
        assert refused(path) in ("L1", "L2")
        assert path.read_bytes() == content


def test_another_programs_database_is_refused(path):
    change(path, "CREATE TABLE other (x)")
    assert refused(path) == "L1"


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_truncated_file_is_refused(path, share):
    fill(path, parts=40)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert refused(path) == "L2"


def test_there_is_no_ledger_to_open(path):
    assert refused(path, create=False) == "L1"
    assert not path.exists()
    assert refused(path.parent / "no" / "such" / "folder.sqlite") == "L1"
    assert refused("nonsense://here") == "L1"


def test_a_ledger_of_another_version_is_refused(path):
    fill(path)
    with Ledger.open(path) as ledger:
        first = ledger.records(limit=1)[0]
    newer = books.next_record(None, "ledger", {**first.content, "format": 99}, at=first.at)
    change(path, f"UPDATE records SET body = '{newer.body}', digest = '{newer.digest}' "
                 "WHERE sequence = 1")  # fmt: skip
    assert refused(path) == "L3"


def test_a_kind_of_record_that_is_not_known_is_refused(path):
    fill(path)
    with Ledger.open(path) as ledger:
        last = ledger.records()[-1]
    odd = books.next_record(last, "jubilee", {"balance": 0}, at=last.at)
    values = ", ".join(f"'{getattr(odd, name)}'" for name in books.Record.__slots__)
    change(path, f"INSERT INTO records VALUES ({values})")
    assert refused(path) == "L2"


# --- A6: edit, delete, reorder, truncate ---------------------------------------------------------

CHARGE = "(SELECT min(sequence) FROM records WHERE kind = 'charge')"
FORGERIES = {
    "edit a loss": f"UPDATE records SET body = replace(body, '\"loss\":[157', '\"loss\":[15') "
    f"WHERE sequence = {CHARGE}",
    "edit a time": f"UPDATE records SET at = replace(at, '20', '19') WHERE sequence = {CHARGE}",
    "edit whom it was charged to": f"UPDATE records SET analyst = 'x' WHERE sequence = {CHARGE}",
    "edit which dataset": f"UPDATE records SET dataset = 'x' WHERE sequence = {CHARGE}",
    "edit a subject": f"UPDATE records SET subject = 'x' WHERE sequence = {CHARGE}",
    "edit a kind": f"UPDATE records SET kind = 'refusal' WHERE sequence = {CHARGE}",
    "delete": f"DELETE FROM records WHERE sequence = {CHARGE}",
    "delete and close the gap": f"DELETE FROM records WHERE sequence = {CHARGE}; "
    f"UPDATE records SET sequence = sequence - 1 WHERE sequence > 4",
    "delete the first": "DELETE FROM records WHERE sequence = 1",
    "reorder": "UPDATE records SET sequence = -4 WHERE sequence = 4; "
    "UPDATE records SET sequence = 4 WHERE sequence = 5; "
    "UPDATE records SET sequence = 5 WHERE sequence = -4",
    "edit an answer": "UPDATE answers SET body = 'other' WHERE record = "
    "(SELECT min(record) FROM answers)",
    "delete an answer": "DELETE FROM answers WHERE record = (SELECT min(record) FROM answers)",
    "add an answer": "INSERT INTO answers VALUES (1, 'never released')",
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_verification_finds_every_forgery(path, forgery, monkeypatch):
    monkeypatch.setattr(books, "SNAPSHOT_PERIOD", 3)  # opening alone must not be what finds it
    fill(path)
    with Ledger.open(path) as ledger:
        assert ledger.verify().ok
    statements = FORGERIES[forgery].split("; ")
    change(path, "PRAGMA foreign_keys = OFF", *statements)
    assert not Ledger.examine(path).ok
    if "answer" not in forgery:
        assert problems(path)


def test_cutting_off_the_end_is_found_with_a_checkpoint_only(path, key, tmp_path):
    fill(path)
    with Ledger.open(path) as ledger:
        made = ledger.checkpoint(key, folder=tmp_path / "auditor")
        count = len(ledger.records())
        ledger.export(tmp_path / "log.jsonl")
    change(
        path,
        f"DELETE FROM answers WHERE record > {count - 3}",
        f"DELETE FROM records WHERE sequence > {count - 3}",
    )
    assert not (tmp_path / "ledger.sqlite.checkpoints").exists()
    assert refused(path, checkpoint=tmp_path / "auditor") == "L4"
    assert Ledger.examine(path).ok
    assert not Ledger.examine(path, checkpoint=tmp_path / "auditor").ok
    short = tmp_path / "short.jsonl"
    short.write_text("".join((tmp_path / "log.jsonl").read_text().splitlines(True)[: count - 3]))
    assert verify_export(short).ok  # by itself a shorter log is as good as any
    assert not verify_export(short, checkpoint=tmp_path / "auditor").ok
    assert made.sequence == count - 1


def test_a_log_that_was_computed_anew_is_found_with_a_checkpoint(path, key, tmp_path):
    """Whoever holds the database can make a chain that is in order, but not the same one."""
    fill(path)
    with Ledger.open(path) as ledger:
        ledger.checkpoint(key, folder=tmp_path / "auditor")
        records = [record for record in ledger.records() if record.kind != "checkpoint"]
    last, lines = None, []
    for record in records:
        content = record.content
        if record.kind == "charge":
            content = {**content, "loss": [1, 1, 0]}
        last = books.next_record(
            last, record.kind, content, at=record.at, dataset=record.dataset,
            analyst=record.analyst, subject=record.subject,
        )  # fmt: skip
        lines.append(last.to_line() + "\n")
    forged = tmp_path / "forged.jsonl"
    forged.write_text("".join(lines))
    assert verify_export(forged).ok
    assert not verify_export(forged, checkpoint=tmp_path / "auditor").ok


def test_a_record_with_a_digest_of_its_own_does_not_fit_the_next(path, tmp_path):
    fill(path)
    with Ledger.open(path) as ledger:
        records = list(ledger.records())
    place = next(i for i, record in enumerate(records) if record.kind == "charge")
    old = records[place]
    records[place] = books.next_record(
        records[place - 1],
        old.kind,
        {**old.content, "loss": [1, 1, 0]},
        at=old.at,
        dataset=old.dataset,
        analyst=old.analyst,
        subject=old.subject,
    )
    assert records[place].intact
    (tmp_path / "forged.jsonl").write_text("".join(r.to_line() + "\n" for r in records))
    found = verify_export(tmp_path / "forged.jsonl").problems
    assert found == (f"record {old.sequence + 1} does not follow the record before it.",)


OVERDRAFTS = {
    "more than the cap": {"loss": [4 * 2520 * 10**12, None, 0]},
    "nothing": {"loss": [0, 0, 0]},
    "less than nothing": {"loss": [-1, 5, 0]},
    "to blocks that are not there": {"area": [[0, 99]]},
    "to a block twice": {"area": [[0, 2], [1, 3]]},
}


@pytest.mark.parametrize("overdraft", OVERDRAFTS)
def test_a_chain_in_order_that_breaks_the_rules_is_found(path, tmp_path, overdraft):
    fill(path)
    with Ledger.open(path) as ledger:
        records = ledger.records()
        charge = next(record for record in records if record.kind == "charge")
        content = {**charge.content, **OVERDRAFTS[overdraft]}
        ledger.export(tmp_path / "log.jsonl")
    extra = books.next_record(
        records[-1], "charge", content, at=records[-1].at, dataset="clinic", analyst="curator",
        subject="new",
    )  # fmt: skip
    with (tmp_path / "log.jsonl").open("a") as stream:
        stream.write(extra.to_line() + "\n")
    assert not verify_export(tmp_path / "log.jsonl").ok


# --- A5: old copies ------------------------------------------------------------------------------


def test_an_old_copy_is_refused_by_the_checkpoints_beside_it(path, key, tmp_path):
    fill(path)
    shutil.copy(path, tmp_path / "old.sqlite")
    with Ledger.open(path) as ledger:
        opened(ledger).charge(request(opened(ledger), "after the copy"))
        ledger.checkpoint(key)
        assert len(ledger.checkpoints()) == 1
    shutil.copy(tmp_path / "old.sqlite", path)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    assert refused(path) == "L4"
    path.unlink()
    assert refused(path) == "L4"  # nor is a new one begun in its place
    assert not path.exists()


def test_false_checkpoints_are_refused(path, key, tmp_path):
    fill(path)
    with Ledger.open(path) as ledger:
        made = ledger.checkpoint(key, folder=tmp_path / "auditor")
    (file,) = (tmp_path / "auditor").iterdir()
    assert oct(key.stat().st_mode)[-3:] == "600"
    for wrong in (
        "not JSON",
        "[]",
        canonical_json({**made.to_json(), "sequence": made.sequence + 1}),
        canonical_json({**made.to_json(), "digest": "0" * 64}),
        canonical_json({**made.to_json(), "public_key": "zz"}),
        canonical_json({**made.to_json(), "extra": "x"}),
    ):
        file.write_text(wrong)
        assert refused(path, checkpoint=file) == "L8"
    assert refused(path, checkpoint=tmp_path / "nowhere.json") == "L8"
    other = tmp_path / "other.sqlite"
    with Ledger.open(other) as ledger:
        ledger.checkpoint(key, folder=tmp_path / "another")
    assert refused(path, checkpoint=tmp_path / "another") == "L8"
    with Ledger.open(path) as ledger, pytest.raises(LedgerRefusal):
        ledger.checkpoint(b"no key")
    with Ledger.open(path) as ledger:
        assert ledger.verify().ok


def test_a_checkpoint_of_another_key_is_reported(path, key, tmp_path):
    fill(path)
    with Ledger.open(path) as ledger:
        made = ledger.checkpoint(key)
        assert ledger.verify(public_key=made.public_key).checkpoints == 1
        assert not ledger.verify(public_key="00" * 32).ok
    assert Checkpoint.from_json(json.loads(canonical_json(made.to_json()))) == made


def test_restoring_needs_a_reason_and_an_empty_place(path, key, tmp_path):
    fill(path)
    with Ledger.open(path) as ledger:
        ledger.backup(tmp_path / "backup.sqlite")
        with pytest.raises(LedgerRefusal):
            ledger.backup(tmp_path / "backup.sqlite")
    with pytest.raises(LedgerRefusal) as refusal:
        Ledger.restore(path, tmp_path / "backup.sqlite", reason="fire")
    assert refusal.value.code == "L13"
    with pytest.raises(ValueError, match="reason"):
        Ledger.restore(tmp_path / "new.sqlite", tmp_path / "backup.sqlite", reason="")
    rewritten = tmp_path / "rewritten.sqlite"
    shutil.copy(tmp_path / "backup.sqlite", rewritten)
    with Ledger.open(rewritten) as ledger:
        opened(ledger).charge(request(opened(ledger), "other history"))
    with Ledger.open(path) as ledger:
        opened(ledger).charge(request(opened(ledger), "this history"))
        ledger.checkpoint(key, folder=tmp_path / "auditor")
    with Ledger.open(rewritten) as ledger:
        opened(ledger).charge(request(opened(ledger), "and more of it"))
    with pytest.raises(LedgerRefusal) as refusal:
        Ledger.restore(
            tmp_path / "new.sqlite", rewritten, reason="x", checkpoint=tmp_path / "auditor"
        )
    assert refusal.value.code == "L4"
    assert not (tmp_path / "new.sqlite").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_restored_ledger_still_knows_the_checkpoints_it_can_keep(path, key, tmp_path):
    """Only the lost records are forgiven; those before the backup must be the same."""
    clock = Clock()
    fill(path, clock=clock)
    with Ledger.open(path, clock=clock) as ledger:
        early = ledger.checkpoint(key, folder=tmp_path / "early")
        ledger.backup(tmp_path / "backup.sqlite")
        opened(ledger).charge(request(opened(ledger), "lost"))
        late = ledger.checkpoint(key, folder=tmp_path / "late")
    clock.pass_(days=-1)  # a new machine whose clock is behind still restores
    new = tmp_path / "new.sqlite"
    Ledger.restore(
        new, tmp_path / "backup.sqlite", reason="fire", checkpoint=tmp_path / "late", clock=clock
    ).close()
    for shown in ("early", "late"):
        Ledger.open(new, checkpoint=tmp_path / shown).close()
    with Ledger.open(new, clock=Clock()) as ledger:
        (record,) = (record for record in ledger.records() if record.kind == "restore")
        assert record.sequence == late.sequence + 1
        assert record.content["lost"] == late.sequence > record.content["kept"] > early.sequence
        assert ledger.checkpoint(key).sequence > late.sequence
        assert ledger.verify().ok


# --- opening, and what it costs ------------------------------------------------------------------


def test_snapshots_say_what_the_log_adds_up_to(path, monkeypatch):
    monkeypatch.setattr(books, "SNAPSHOT_PERIOD", 8)
    with Ledger.open(path) as ledger:
        account = opened(ledger, policy=Policy(analyst=Budget(epsilon=2)))
        account.add_analyst("ana", limit=Budget(rho="1/8", delta="1e-7"))
        account.add_key("ana", key_id="k", digest="d")
        for part in range(40):
            blocks = ((NORTH,), (0, SOUTH), None)[part % 3]
            account.charge(request(account, str(part), loss="1/100", blocks=blocks, analyst="ana"))
        assert sum(record.kind == "balances" for record in ledger.records()) >= 4
        before, keys = account.balance("ana"), account.keys()
        assert ledger.verify().ok
    with Ledger.open(path) as ledger:
        account = ledger.account(
            "clinic", schema=schema(), budget=BUDGET, policy=Policy(analyst=Budget(epsilon=2))
        )
        after = account.balance("ana")
        assert np.array_equal(before.balances, after.balances)
        assert np.array_equal(before.cap.balances, after.cap.balances)
        assert account.keys() == keys
        assert (after.budget, account.budget) == (before.budget, BUDGET)


def test_a_false_snapshot_is_found(path, monkeypatch, tmp_path):
    monkeypatch.setattr(books, "SNAPSHOT_PERIOD", 8)
    fill(path, parts=12)
    with Ledger.open(path) as ledger:
        records = ledger.records()
    last, lines, altered = None, [], 0
    for record in records:
        content = record.content
        if record.kind == "balances":
            packed = books.pack_balances(np.ones((3, 4), dtype=np.int64))
            content["datasets"]["clinic"]["spent"] = packed
            altered += 1
        last = books.next_record(
            last, record.kind, content, at=record.at, dataset=record.dataset,
            analyst=record.analyst, subject=record.subject,
        )  # fmt: skip
        lines.append(last.to_line() + "\n")
    assert altered
    (tmp_path / "forged.jsonl").write_text("".join(lines))
    assert any("add up" in words for words in verify_export(tmp_path / "forged.jsonl").problems)


def test_opening_reads_only_what_is_new_since_the_snapshot(path, monkeypatch):
    monkeypatch.setattr(books, "SNAPSHOT_PERIOD", 30)
    fill(path, parts=12)
    monkeypatch.setattr(books, "SNAPSHOT_PERIOD", 10)
    Ledger.open(path).close()  # writes one
    with Ledger.open(path) as ledger:
        assert ledger._journal.books.snapshot == ledger.records()[-1].sequence


# --- processes -----------------------------------------------------------------------------------


def forked(call):
    """Run ``call`` in a child process; its number. The child ends with what ``call`` returns."""
    with warnings.catch_warnings(action="ignore"):  # of threads, which no child uses
        child = os.fork()
    if child == 0:
        try:
            os._exit(call())
        finally:
            os._exit(255)
    return child


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_processes_that_begin_and_spend_one_ledger_never_overspend(path):
    children = [forked(lambda name=name: spend_all(path, name)) for name in "abcdef"]
    assert sum(ended(child) for child in children) == 24
    with Ledger.open(path) as ledger:
        assert opened(ledger).balance().spent.epsilon == 3
        assert ledger.verify().ok
        assert sum(record.kind == "ledger" for record in ledger.records()) == 1


def test_a_forked_child_cannot_use_its_parents_connection(path):
    with Ledger.open(path) as ledger:
        account = opened(ledger)

        def charge():
            try:
                account.charge(request(account))
            except LedgerRefusal as refusal:
                return 7 if refusal.code == "L14" else 1
            return 2

        assert ended(forked(charge)) == 7
        account.charge(request(account))


def test_a_ledger_that_is_rolled_back_while_open_is_found(path, tmp_path):
    with Ledger.open(path) as ledger:
        account = opened(ledger)
        account.charge(request(account))
        change(path, "DELETE FROM records WHERE kind = 'charge'")
        with pytest.raises(LedgerRefusal) as refusal:
            account.charge(request(account, "another"))
        assert refusal.value.code == "L2"


def test_a_last_record_that_is_altered_while_open_is_found(path):
    with Ledger.open(path) as ledger:
        account = opened(ledger)
        receipt = account.charge(request(account))
        change(path, f"UPDATE records SET analyst = 'x' WHERE sequence = {receipt.id}")
        with pytest.raises(LedgerRefusal) as refusal:
            account.charge(request(account, "another"))
        assert refusal.value.code == "L2"


def test_a_file_that_keeps_no_log_is_refused(path, monkeypatch):
    """SQLite stays in its old mode without an error, if the disk fails at that moment."""
    Ledger.open(path).close()
    change(path, "PRAGMA journal_mode = DELETE")
    real = SqliteConnection.execute

    def failing(self, text, *rest):
        return real(self, text.removesuffix(" = WAL"), *rest)

    monkeypatch.setattr(SqliteConnection, "execute", failing)
    assert refused(path) == "L1"


def test_a_folder_that_cannot_be_synced_is_refused(path, monkeypatch):
    """SQLite would go on: after a loss of power an older log could be laid over the file."""
    fill(path)
    real = os.fsync

    def failing(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").resolve() == path.parent.resolve():
            raise OSError("the disk is broken")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    assert refused(path) == "L1"
    monkeypatch.undo()
    Ledger.open(path).close()


def test_a_ledger_behind_a_link_is_looked_after_where_it_is(path, tmp_path, monkeypatch):
    link = tmp_path / "elsewhere" / "link.sqlite"
    link.parent.mkdir()
    fill(path)
    link.symlink_to(path)
    synced, real = [], os.fsync

    def noted(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").resolve())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    with Ledger.open(link) as ledger:  # as after a crash: much is in the log alone
        assert path.parent.resolve() in synced
        account = opened(ledger)
        for part in range(40):
            account.charge(request(account, f"more {part}", loss="1/64"))
        with Ledger.open(link) as another:
            assert another.verify().ok


def test_commits_wait_for_the_disk(path):
    with Ledger.open(path) as ledger:
        connection = ledger._journal.store._connection
        settings = {
            name: connection.value(f"PRAGMA {name}")
            for name in ("synchronous", "journal_mode", "fullfsync", "foreign_keys")
        }
    assert settings == {
        "synchronous": 3,
        "journal_mode": "wal",
        "fullfsync": 1,
        "foreign_keys": 1,
    }


def test_a_lock_that_is_held_too_long_is_told_and_stops_nothing(path):
    with Ledger.open(path) as ledger:
        account = opened(ledger)
        ledger._journal.store._connection.execute("PRAGMA busy_timeout = 20")
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerRefusal) as refusal:
            account.charge(request(account))
        assert refusal.value.code == "L6"
        holder.execute("ROLLBACK")
        holder.close()
        account.charge(request(account))
        assert account.balance().spent.epsilon == 0.5


def test_balances_in_words(path):
    with Ledger.open(path) as ledger:
        account = opened(ledger)
        account.add_analyst("ana", limit=Budget(epsilon=1))
        account.charge(request(account, loss="1/2", blocks=(SOUTH,), analyst="ana"))
        words = str(account.balance("ana"))
        assert "region = south" in words
        assert "ε 0.5 of 1" in words
        assert "ε 2.5 of 3" in words
        blocks = list(account.balance().blocks(2))
        assert blocks[0][0] == "region = south"
        assert 0.1 < blocks[0][2] < 0.2
        assert blocks[1][2] == 0


def test_the_time_of_the_newest_record_is_used_when_the_clock_stood_still(path):
    clock = Clock()
    fill(path, clock=clock)
    clock.pass_(minutes=-1)
    with Ledger.open(path, clock=clock) as ledger:
        account = opened(ledger)
        account.charge(request(account, "new"))
        assert account.transcript()[-1].at == clock.time + timedelta(minutes=1)
