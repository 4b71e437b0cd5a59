"""`kerneltrail trial`: from a model file to a frozen trial, its keys, its updates, and the proofs of its record."""

import json
import stat
import sys
from datetime import UTC, datetime, timedelta

import pytest

from cli.invoke import refused, run, table
from kerneltrail.errors import TrialError
from kerneltrail.trial.folder import Folder
from kerneltrail.trial.hooks import message, send
from trajectory.small import small_model
from trial.running import asked, enrol, outcome
from trial.study import centred_model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a trial of one participant, who has answered, and what the commands said."""
    folder = tmp_path_factory.mktemp("trial")
    centred_model().save(folder / "pilot.trail")
    study = folder / "study"
    said = [run("trial", "init", folder / "pilot.trail", "--trial", "walks", "--folder", study)]
    text = (study / "protocol.yaml").read_text()
    (study / "protocol.yaml").write_text(
        text.replace('daily: "03:00"', "every: 3").replace("deadline_ms: 500", "deadline_ms: 60000")
    )
    said.append(run("trial", "freeze", "--folder", study))
    now = datetime.now(UTC)
    running = Folder(study).open()
    enrol(running, "p01", starts_on=now.date() - timedelta(days=1), ends_on=None)
    for index in range(4):
        answer = running.decide(asked("p01", index, kind="decision", at=now, steps=100.0 * index))
        running.outcomes([outcome(answer, 1.0 + index)])
    running.close()
    return study, said


def ok(result):
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_init_writes_a_protocol_and_a_key_that_only_its_owner_reads(made):
    study, (init, freeze) = made
    assert "Publish before the trial" in ok(init)
    assert "protocol.yaml: read it, change what differs in your trial, then run `kerneltrail trial freeze`." in ok(init)
    assert "Version 1 of the protocol is frozen" in ok(freeze)
    assert stat.S_IMODE((study / "draw.key").stat().st_mode) == 0o600
    assert (study / "draw.key").read_text().strip() not in init.output
    again = run("trial", "freeze", "--folder", study)
    assert ok(again) == ok(freeze)
    refused(run("trial", "init", study / "models/pilot.trail", "--trial", "x", "--folder", study), "is there already")
    spaced = run("trial", "init", study / "models/pilot.trail", "--trial", "my walks/1", "--folder", study / "other")
    refused(spaced, "letters, digits, - and _")
    assert not (study / "other").exists()


def test_init_says_which_outcome_counts_as_better_and_takes_the_other(made, tmp_path):
    study, (init, _) = made
    assert "A higher value of mood counts as better: if that is wrong, write `better: lower` under reward" in ok(init)
    assert 'better: "higher"' in (study / "protocol.yaml").read_text()
    assert "better" not in Folder(study).protocol().to_json()["reward"]
    model, words = study / "models/pilot.trail", ("--trial", "x", "--folder", tmp_path / "lower")
    said = ok(run("trial", "init", model, "--better", "lower", *words))
    assert "A lower value of mood counts as better: if that is wrong, write `better: higher` under reward" in said
    assert Folder(tmp_path / "lower").protocol().reward.better == "lower"
    other = run("trial", "init", model, "--trial", "x", "--folder", tmp_path / "less", "--better", "less")
    assert other.exit_code == 2
    assert "there are higher, lower" in " ".join(other.output.split())
    assert not (tmp_path / "less").exists()


def test_a_key_is_printed_once_and_kept_as_its_hash(made):
    study, _ = made
    created = run("trial", "key", "create", "--scope", "app", "--note", "phones", "--folder", study)
    token = ok(created)
    id = token.split("_")[1]
    running = Folder(study).open()
    assert running.key_of(token).payload["scopes"] == ["app"]
    assert running.key_of(token + "x") is None
    assert running.key_of("kt_nobody") is None
    assert token.split("_")[2].encode() not in (study / "ledger.db").read_bytes()
    assert f"{id}: app (phones)" in ok(run("trial", "key", "list", "--folder", study))
    assert ok(run("trial", "key", "revoke", id, "--folder", study)) == f"Key {id} is revoked."
    assert running.key_of(token) is None
    running.close()
    assert "before" in ok(run("trial", "key", "revoke", id, "--folder", study))
    refused(run("trial", "key", "revoke", "nobody", "--folder", study), "there is no key 'nobody'")
    refused(run("trial", "key", "create", "--scope", "apps", "--folder", study), "there is no scope 'apps'")


def test_update_replay_verify_export_backup_restore_and_status(made, tmp_path):
    study, _ = made
    here = ("--folder", study)
    assert "4 new rows entered" in ok(run("trial", "update", "--dry-run", *here))
    assert "Policy 2 serves. 4 new rows entered" in ok(run("trial", "update", "--if-due", *here))
    assert ok(run("trial", "update", "--if-due", *here)) == "No update is due."
    assert "nothing changes" in ok(run("trial", "update", *here))
    assert "equal: all 4 decisions of walks come out as recorded, 4 to the last bit" in ok(
        run("trial", "replay", *here)
    )
    said = ok(run("trial", "verify", *here))
    assert "The ledger of walks is sound" in said
    noted = said.split(": ")[-1]
    assert ok(run("trial", "verify", "--head", noted, *here))
    refused(run("trial", "verify", "--head", noted[:-56], *here), "the noted end is not complete")
    wrong = run("trial", "verify", "--head", f"{noted.split(':')[0]}:{'0' * 64}", *here)
    assert wrong.exit_code == 1
    assert "is not sound" in wrong.stdout
    ok(run("trial", "export", "mrt", "--out", tmp_path / "mrt.csv", *here))
    assert [row["outcome"] for row in table(tmp_path / "mrt.csv")] == ["1.0", "2.0", "3.0", "4.0"]
    ok(run("trial", "backup", "--out", tmp_path / "copy.jsonl", *here))
    elsewhere = ("--folder", study, "--ledger", tmp_path / "again.db")
    assert "Restored: the ledger of walks is sound" in ok(run("trial", "restore", tmp_path / "copy.jsonl", *elsewhere))
    assert "equal: all 4" in ok(run("trial", "replay", *elsewhere))
    stands = ok(run("trial", "status", *here))
    assert "Participants: 1 active" in stands
    assert "Policy: 2" in stands
    values = json.loads(ok(run("trial", "status", "--json", *here)))
    assert (values["light"], values["outcomes"], values["decisions"]) == ("green", 4, {"policy": 4})


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-wal", "protocol.yaml", "draw.key", "models/pilot.trail"])
def test_nothing_is_written_over_what_the_trial_keeps(made, tmp_path, monkeypatch, name):
    study, _ = made
    link = tmp_path / "link"
    link.symlink_to(study / name)
    monkeypatch.chdir(study.parent)
    before = {path: path.read_bytes() for path in study.rglob("*") if path.is_file() and path.suffix[:4] != ".db-"}
    for out in (study / name, f"study/models/../{name}", link):
        for words in (("backup",), ("export", "mrt")):
            refused(run("trial", *words, "--out", out, "--folder", "study"), f"{out} is ", "name another file")
    assert link.is_symlink()
    assert {path: path.read_bytes() for path in before} == before
    assert "sound" in ok(run("trial", "verify", "--folder", study))


def test_a_copy_replaces_a_backup_but_no_other_file_of_the_folder(made, tmp_path):
    study, _ = made
    kept = study / "backups" / "by-hand.jsonl"
    for _ in range(2):  # the second replaces the first
        ok(run("trial", "backup", "--out", kept, "--folder", study))
        ok(run("trial", "export", "mrt", "--out", tmp_path / "mrt.csv", "--folder", study))
    refused(
        run("trial", "export", "mrt", "--out", kept.rename(kept.with_suffix(".csv")), "--folder", study), "is a file of"
    )
    notes = study / "notes.txt"
    notes.write_text("call p01")
    refused(run("trial", "backup", "--out", notes, "--folder", study), f"{notes} is a file of the trial's folder")
    assert notes.read_text() == "call p01"
    elsewhere = tmp_path / "elsewhere.db"
    ok(run("trial", "backup", "--out", elsewhere, "--folder", study))
    away = ("--folder", study, "--ledger", elsewhere)
    refused(run("trial", "backup", "--out", elsewhere, *away), f"{elsewhere} is the trial's ledger")


def test_a_changed_protocol_needs_a_reason_and_a_name(made, tmp_path):
    study, _ = made
    before = (study / "protocol.yaml").read_text()
    try:
        (study / "protocol.yaml").write_text(before.replace("delta: 0.0", "delta: 0.1"))
        refused(run("trial", "freeze", "--folder", study), "needs a reason")
        changed = run("trial", "freeze", "--reason", "too many", "--by", "ann", "--folder", study)
        assert "Version 2 of the protocol is frozen" in ok(changed)
    finally:
        (study / "protocol.yaml").write_text(before)
        run("trial", "freeze", "--reason", "as before", "--by", "ann", "--folder", study)


def test_what_cannot_be_is_refused_in_a_sentence(made, tmp_path):
    study, _ = made
    outside = run("trial", "status", "--folder", tmp_path)
    refused(
        outside, "there is no file", "protocol.yaml: name the trial's folder with --folder", "trial init` makes one"
    )
    (tmp_path / "pilot.csv").write_text("user,time,steps\nann,1,2\n")
    refused(run("trial", "restore", tmp_path / "pilot.csv", "--folder", tmp_path), "`kerneltrail trial backup` wrote")
    refused(run("trial", "export", "mrtt", "--out", tmp_path / "x.csv", "--folder", study), "there is no table 'mrtt'")
    refused(run("trial", "export", "mrt", "--out", tmp_path / "x.xlsx", "--folder", study), "not as 'xlsx'")
    refused(run("trial", "update", "--as-of", "yesterday", "--folder", study), "is no time")
    refused(run("trial", "verify", "--head", "abc", "--folder", study), "expected number:hash")
    refused(run("trial", "replay", "--participant", "p09", "--folder", study), "no participant 'p09'")
    refused(run("trial", "restore", tmp_path / "nothing", "--folder", tmp_path), "cannot be read")
    refused(run("trial", "status", "--folder", study, "--ledger", tmp_path / "none.db"), "kerneltrail trial freeze")
    (tmp_path / "other").mkdir()
    for name in ("protocol.yaml", "ledger.db"):
        (tmp_path / "other" / name).write_bytes((study / name).read_bytes())
    (tmp_path / "other" / "draw.key").write_text("00" * 32)
    refused(run("trial", "replay", "--folder", tmp_path / "other"), "not the one that the protocol is committed to")
    (tmp_path / "other" / "draw.key").write_text("key")
    refused(run("trial", "replay", "--folder", tmp_path / "other"), "hexadecimal digits")


def test_a_trial_whose_record_was_changed_is_different(made, tmp_path):
    study, _ = made
    other = tmp_path / "study"
    other.mkdir()
    for name in ("protocol.yaml", "draw.key", "models"):
        (other / name).symlink_to(study / name)
    ok(run("trial", "backup", "--out", other / "ledger.db", "--folder", study))
    running = Folder(other).open()
    with running._core.ledger.database.engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_payloads_no_update")
        changed = 'CAST(replace(CAST(content AS TEXT), \'"clipped":null\', \'"clipped":"upper"\') AS BLOB)'
        connection.exec_driver_sql(f"UPDATE ledger_payloads SET content = {changed}")
    running.close()
    replayed = run("trial", "replay", "--folder", other)
    assert replayed.exit_code == 1
    assert replayed.stdout.startswith("different: 4 of 4 decisions of walks come out otherwise; the first is entry")
    assert "clipped was 'upper' and is now None" in " ".join(replayed.stdout.split())
    verified = run("trial", "verify", "--folder", other)
    assert verified.exit_code == 1
    assert "its payload was changed after it was recorded" in verified.stdout


def test_a_model_without_reward_is_refused(tmp_path):
    small_model().save(tmp_path / "plain.trail")
    plain = run("trial", "init", tmp_path / "plain.trail", "--trial", "x", "--folder", tmp_path)
    refused(plain, "no reward model")
    assert "`kerneltrail fit pilot.csv … --action send --features hour`" in " ".join(plain.stderr.split())


def test_watch_tells_of_new_incidents_once(made, tmp_path):
    study, _ = made
    ok(run("trial", "backup", "--out", tmp_path / "ledger.db", "--folder", study))
    here = ("--folder", study, "--ledger", tmp_path / "ledger.db")
    assert ok(run("trial", "watch", *here)) == "Nothing new."
    running = Folder(study, str(tmp_path / "ledger.db")).open()
    for index in range(5, 15):
        request = asked("p01", index, kind="decision", at=datetime.now(UTC) - timedelta(minutes=1))
        running.report(request, action=0, probability=0.5, reason="no connection")
    running.close()
    words = "10 of 14 decisions in a day were made by a fallback"
    assert ok(run("trial", "watch", "--hook", f"cat > {tmp_path}/heard.json", *here)) == words
    heard = json.loads((tmp_path / "heard.json").read_text())
    assert (heard["trial"], [each["words"] for each in heard["incidents"]]) == ("walks", [words])
    assert ok(run("trial", "watch", "--hook", "false", *here)) == "Nothing new."


def test_a_hook_that_fails_is_said():
    with pytest.raises(TrialError, match="failed: exit code 3"):
        send("exit 3", message("walks", []))
    with pytest.raises(TrialError, match="did not take them"):
        send("http://127.0.0.1:1/hook", b"{}")


def test_without_the_packages_for_trials_it_is_said_which_to_install(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.startswith("kerneltrail.trial.folder")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kerneltrail.trial.conduct", None)  # as if it could not be loaded
    refused(run("trial", "status", "--folder", tmp_path), "install kerneltrail[trial]")
