"""Exported tables: nothing missing becomes zero, assigned is not delivered, and every column is explained."""

import csv
import io
import json

import pytest

from kerneltrail.errors import DataError
from kerneltrail.trial.ledger import Ledger, exact
from kerneltrail.trial.ledger.export import FORMS, TABLES, table
from kerneltrail.trial.ledger.folds import fold
from trial.ledger.examples import decision, delivery, enrolled, outcome, put


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    with Ledger(tmp_path_factory.mktemp("export") / "ledger.db", "walking") as ledger:
        ledger.append("policy-activated", "1", {"version": "v1", "reason": "start", "model_id": "m1"})
        for person in ("p1", "=cmd|' /C calc'!A0", "gone"):
            put(ledger, enrolled(person))
        put(ledger, decision(index=2, action=1, probability=exact(0.1 + 0.2), policy_version="v1", draw=exact(0.05)))
        put(ledger, decision(index=1, action=0, reasons=["driving", "asleep"], context={"temperature": None}))
        put(ledger, decision(index=3, available=False, action=0, probability=exact(0.0), context={"place": "=1+1"}))
        put(ledger, delivery(index=2, action=0))
        put(ledger, outcome(index=2, key="first", value=7.0))
        put(ledger, outcome(index=2, key="second", value=0.0, supersedes="first"))
        put(ledger, outcome(index=3, value=None))
        put(ledger, decision("=cmd|' /C calc'!A0", 1, advantage={"mean": exact(0.5), "sd": 0.25}, context={"place": 3}))
        put(ledger, decision("gone"))
        put(ledger, outcome("gone"))
        ledger.append("incident", "i1", {"kind": "silence", "severity": "yellow"}, participant="p1")
        ledger.append("incident", "i2", {"kind": "clock-skew"})
        ledger.append("acknowledgement", "a1", {"incident": "i1", "by": "ann", "note": "-called them"})
        ledger.append("policy-activated", "2", {"version": "v2", "reason": "update"})
        ledger.remove("gone")
        yield fold("walking", ledger.entries())


def csv_rows(state, name):
    return list(csv.DictReader(io.StringIO(table(state, name).written("csv").decode("utf-8"))))


def json_rows(state, name):
    return [json.loads(line) for line in table(state, name).written("jsonl").decode("utf-8").splitlines()]


def test_decisions(state):
    rows = {(row["participant"], row["index"]): row for row in json_rows(state, "decisions")}
    assert len(rows) == 5
    treated = rows["p1", "2"]
    assert (treated["action"], treated["delivered_action"], treated["delivery_status"]) == (1, 0, "delivered")
    assert (treated["probability"], treated["probability_of_action"], treated["draw"]) == (0.1 + 0.2, 0.1 + 0.2, 0.05)
    assert (treated["outcome"], treated["outcome_key"]) == (0.0, "second")
    waiting = rows["p1", "1"]
    assert (waiting["outcome"], waiting["delivered_action"], waiting["outcome_key"]) == (None, None, None)
    assert (waiting["reasons"], waiting["probability_of_action"]) == (["driving", "asleep"], 0.7)
    assert waiting["context.temperature"] is None
    missing = rows["p1", "3"]
    assert (missing["outcome"], missing["outcome_key"], missing["available"]) == (None, "p1/steps/3", False)
    other = rows["=cmd|' /C calc'!A0", "1"]
    assert (other["advantage_mean"], other["advantage_sd"], other["context.place"]) == (0.5, 0.25, "3")
    gone = rows["gone", None]
    assert {name: value for name, value in gone.items() if value is not None}.keys() == {
        "sequence", "participant", "decision", "received_at", "removed",
    }  # fmt: skip


def test_csv_has_nothing_that_a_spreadsheet_runs_and_empty_is_not_zero(state):
    rows = csv_rows(state, "decisions")
    assert {row["participant"] for row in rows} == {"p1", "'=cmd|' /C calc'!A0", "gone"}
    assert [row["outcome"] for row in rows if row["participant"] == "p1"] == ["0.0", "", ""]
    assert "'=1+1" in {row["context.place"] for row in rows}
    assert {row["reasons"] for row in rows} == {"", "driving;asleep"}


def test_outcomes(state):
    rows = {row["outcome"]: row for row in json_rows(state, "outcomes")}
    assert (rows["first"]["counts"], rows["first"]["left_out"]) == (False, "superseded by second")
    assert (rows["second"]["counts"], rows["second"]["supersedes"], rows["second"]["value"]) == (True, "first", 0.0)
    assert rows["p1/steps/3"]["value"] is None
    assert "gone" not in {row["participant"] for row in rows.values()}


def test_policies(state):
    first, second = json_rows(state, "policies")
    assert (first["version"], first["model_id"], first["active"]) == ("v1", "m1", False)
    assert first["replaced_at"] == second["activated_at"]
    assert (second["version"], second["replaced_at"], second["active"]) == ("v2", None, True)


def test_incidents(state):
    first, second = json_rows(state, "incidents")
    assert (first["open"], first["acknowledged_by"], first["severity"]) == (False, "ann", "yellow")
    assert (second["open"], second["acknowledged_at"]) == (True, None)
    assert csv_rows(state, "incidents")[0]["note"] == "'-called them"


def test_mrt(state):
    rows = [row for row in json_rows(state, "mrt") if row["id"] == "p1"]
    names = ("decision_point", "outcome", "treatment", "rand_prob", "availability", "delivered")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, None, 0, 0.3, 1, None),
        (2, 0.0, 1, 0.1 + 0.2, 1, 0),
        (3, None, 0, 0.0, 0, None),
    ]
    assert [row["context.temperature"] for row in rows] == [None, 12.5, None]


def test_obp_has_known_rewards_of_decisions_at_which_somebody_could_act(state):
    (row,) = json_rows(state, "obp")
    assert (row["round"], row["action"], row["reward"], row["pscore"], row["position"]) == (0, 1, 0.0, 0.1 + 0.2, 0)


def test_lifejacket_has_a_row_for_everybody_at_each_time(state):
    rows = json_rows(state, "lifejacket")
    seen = {(row["user_id"], row["calendar_t"]): (row["in_study"], row["policy_num"]) for row in rows}
    assert len(seen) == len(rows) == 6
    assert [seen["p1", number] for number in (1, 2, 3)] == [(1, 0), (1, 1), (1, 0)]
    assert seen["=cmd|' /C calc'!A0", 3] == (0, None)


def test_the_dictionary_explains_every_column_of_every_table(state):
    explained = {(row["table"], row["column"]) for row in json_rows(state, "dictionary") if row["words"]}
    there = {(name, column.name) for name in TABLES for column in table(state, name).columns}
    assert explained == there
    assert ("mrt", "context.temperature") in explained


@pytest.mark.parametrize("name", TABLES)
def test_every_form_has_the_same_rows(state, name):
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.read_table(io.BytesIO(table(state, name).written("parquet"))).to_pylist()
    assert [{key: value for key, value in row.items() if value is not None} for row in read] == [
        {key: value for key, value in row.items() if value is not None} for row in json_rows(state, name)
    ]
    assert len(csv_rows(state, name)) == len(read)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("form", FORMS)
def test_a_trial_without_entries_has_empty_tables(name, form):
    pytest.importorskip("pyarrow")
    made = table(fold("walking", []), name)
    assert made.written(form) or form == "jsonl"
    assert made.rows == [] or name == "dictionary"


def test_what_is_not_there_is_named(state):
    with pytest.raises(DataError, match="there is no table 'users'; there are decisions, outcomes"):
        table(state, "users")
    with pytest.raises(DataError, match="csv, parquet, jsonl, not as 'xlsx'"):
        table(state, "mrt").written("xlsx")
