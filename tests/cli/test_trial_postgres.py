"""`kerneltrail trial` with its ledger in PostgreSQL: the whole walk, from the protocol to a restored copy."""

import json
import re
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.engine import make_url

from cli.invoke import refused, run, table
from cli.test_trial import ok
from cli.test_trial_service import started
from kerneltrail.trial.client import Client
from trial.analysis.study import finished
from trial.conftest import postgres_url, postgresql, schemas  # noqa: F401
from trial.study import centred_model

NOW = datetime.now(UTC)


@pytest.fixture
def address(postgresql):  # noqa: F811
    """As somebody writes it: without the name of a driver."""
    return make_url(postgresql).set(drivername="postgresql").render_as_string(hide_password=False)


def until(answered, process):
    end = time.monotonic() + 120
    while not (answer := answered()):
        assert time.monotonic() < end, "it took too long"
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return answer


def lived(client, indices):
    """Decisions with an outcome each."""
    answers = []
    for index in indices:
        at = NOW - timedelta(hours=6 * (20 - index))
        context = {"hour": at.hour, "steps": 9.0 * index}
        decided = client.decide("p01", "decision", index, decided_at=at, context=context)
        item = {"client_id": f"o{index}", "participant": "p01", "decision": decided.decision_id, "value": 1.0 + index}
        client.outcomes([{**item, "observed_at": NOW}])
        answers.append(decided)
    return answers


def test_a_trial_on_postgresql_from_its_protocol_to_a_restored_copy(tmp_path, address, schemas):  # noqa: F811
    study = tmp_path / "study"
    here = ("--folder", study, "--ledger", address)
    centred_model().save(tmp_path / "pilot.trail")
    ok(run("trial", "init", tmp_path / "pilot.trail", "--trial", "walks", "--folder", study))
    text = (study / "protocol.yaml").read_text()
    (study / "protocol.yaml").write_text(
        text.replace('daily: "03:00"', "every: 1000").replace("deadline_ms: 500", "deadline_ms: 60000")
    )
    refused(run("trial", "status", *here), "has no ledger of the trial walks yet")
    assert "Version 1 of the protocol is frozen" in ok(run("trial", "freeze", *here))
    token = ok(run("trial", "key", "create", "--scope", "app", "--scope", "operator", "--note", "all", *here))
    assert "app, operator (all)" in ok(run("trial", "key", "list", *here))
    process = started("serve", *here, "--port", "0")
    try:
        served = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        client = Client(served, "walks", token)
        until(client.ready, process)
        client.enrol("p01", timezone="UTC", starts_on=(NOW - timedelta(days=30)).date())
        before = lived(client, range(4))
        started_id = client.update("test").id
        until(lambda: client.updated(started_id).state != "running", process)
        assert (client.updated(started_id).state, client.updated(started_id).rows) == ("done", 4)
        after = lived(client, range(4, 6))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out.strip()) == (0, "Stopped."), err
    assert "Traceback" not in err
    assert {each.policy_version for each in before} == {"1"}
    assert {(each.policy_version, each.rung) for each in after} == {("2", "policy")}
    assert not (study / "ledger.db").exists()
    assert "2 new rows entered" in ok(run("trial", "update", "--dry-run", *here))
    assert "Policy 3 serves. 2 new rows entered" in ok(run("trial", "update", "--copies", "1,0,0", *here))
    assert [path.name.partition("-before-")[2] for path in (study / "backups").iterdir()] == ["update-2.jsonl"]
    assert "equal: all 6 decisions of walks" in ok(run("trial", "replay", *here))
    assert "The ledger of walks is sound" in ok(run("trial", "verify", *here))
    ok(run("trial", "export", "mrt", "--out", tmp_path / "mrt.csv", *here))
    assert [row["outcome"] for row in table(tmp_path / "mrt.csv")] == [str(1.0 + index) for index in range(6)]
    values = json.loads(ok(run("trial", "status", "--json", *here)))
    assert (values["policy"], values["participants"]) == ("3", {"active": 1})
    ok(run("trial", "watch", *here))
    ok(run("trial", "backup", "--out", tmp_path / "copy.jsonl", *here))
    elsewhere = ("--folder", study, "--ledger", schemas())
    assert "Restored: the ledger of walks is sound" in ok(run("trial", "restore", tmp_path / "copy.jsonl", *elsewhere))
    assert "equal: all 6" in ok(run("trial", "replay", *elsewhere))
    assert "is revoked" in ok(run("trial", "key", "revoke", token.split("_")[1], *here))


def test_a_trial_on_postgresql_is_analysed_as_one_on_sqlite_and_its_package_runs_again(tmp_path, address):
    study = finished(tmp_path / "walks").path
    ok(run("trial", "backup", "--out", tmp_path / "copy.jsonl", "--folder", study))
    assert "is sound" in ok(run("trial", "restore", tmp_path / "copy.jsonl", "--folder", study, "--ledger", address))
    words = ("--moderator", "steps")
    ok(run("trial", "analyse", study, "--out", tmp_path / "here", *words))
    (study / "ledger.db").unlink()  # so that it is PostgreSQL that is read
    zip = tmp_path / "walks.zip"
    ok(run("trial", "analyse", study, "--ledger", address, "--out", tmp_path / "there", *words, "--package", zip))
    tables = sorted(path.name for path in (tmp_path / "here" / "tables").iterdir())
    assert len(tables) == 10
    for name in tables:
        assert table(tmp_path / "there" / "tables" / name) == table(tmp_path / "here" / "tables" / name), name
    assert "tables have equal numbers" in " ".join(ok(run("trial", "rerun", zip)).split())
    more = ("--out", tmp_path / "again", "--package", tmp_path / "public.zip", "--publish-key")
    assert "The key of the draws is public now" in ok(run("trial", "analyse", study, "--ledger", address, *more))
    assert "was published in public.zip" in ok(run("trial", "status", "--folder", study, "--ledger", address))
    refused(run("trial", "serve", "--folder", study, "--ledger", address), "was published in public.zip")


def test_a_postgresql_that_is_not_there_is_told_in_a_sentence_without_its_password(tmp_path):
    study = tmp_path / "study"
    centred_model().save(tmp_path / "pilot.trail")
    ok(run("trial", "init", tmp_path / "pilot.trail", "--trial", "walks", "--folder", study))
    nowhere = "postgresql://ann:secret-word@127.0.0.1:1/walks"
    for command in (("freeze",), ("status",), ("verify",)):
        result = run("trial", *command, "--folder", study, "--ledger", nowhere)
        refused(result, "cannot be reached")
        assert "secret-word" not in result.output
