"""Exports: each table beside what was recorded, with what is missing left empty."""

import csv
import io
import json

import pytest

from kerneltrail.errors import DataError
from kerneltrail.trial.export import COLUMNS, TABLES, export, table

from .running import asked, begun, enrol, outcome, walked


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    trial = begun(tmp_path_factory.mktemp("export") / "ledger.db")
    enrol(trial, "p01", "p02", "p03")
    answers = walked(trial)
    trial.outcomes([outcome(answers[0], 7.5, name="better", supersedes="o0")])
    last = trial.decide(asked(index=8))
    trial.outcomes([outcome(last, None)])
    trial.decide(asked("p02", available=False, reasons=("driving",)))
    trial.deliver(last.value["decision_id"], status="failed", at=None, delivered_action=0)
    trial.update(reason="test")
    walked(trial, "p03")
    trial.remove("p03", reason="asked")
    trial.incident("odd", "something is odd")
    trial.close()
    with trial.reading() as state:
        yield state


def read(state, name):
    return list(csv.DictReader(io.StringIO(export(state, name).decode())))


def test_every_table_has_its_columns_and_every_column_its_meaning(state):
    assert set(TABLES) == set(COLUMNS)
    for name in TABLES:
        columns, rows = table(state, name)
        assert rows
        assert columns[: len(COLUMNS[name])] == list(COLUMNS[name])
        lines = export(state, name, "jsonl").splitlines()
        assert [json.loads(line) for line in lines] == json.loads(json.dumps(rows))
        assert export(state, name, "parquet")[:4] == b"PAR1"
    assert len(read(state, "dictionary")) == sum(map(len, COLUMNS.values()))


def test_missing_outcomes_stay_empty_and_what_was_removed_is_nowhere(state):
    mrt = read(state, "mrt")
    assert [row["outcome"] == "" for row in mrt] == [False] * 4 + [True, True]
    assert mrt[0]["outcome"] == "7.5"
    assert mrt[5]["availability"] == "0"
    assert all(0.2 <= float(row["rand_prob"]) <= 0.8 for row in mrt[:5])
    assert {row["id"] for row in mrt} == {"p01", "p02"}
    assert len(read(state, "obp")) == 4
    for row, other in zip(read(state, "obp"), mrt, strict=False):
        chance = float(other["rand_prob"])
        assert float(row["pscore"]) == (chance if row["action"] == "1" else 1 - chance)
    assert not any(row["participant"] == "p03" for row in read(state, "decisions"))


def test_assigned_and_delivered_are_two_columns(state):
    last = read(state, "decisions")[4]
    assert (last["delivered_action"], last["outcome"]) == ("0", "")
    assert read(state, "decisions")[0]["delivered_action"] == ""


def test_corrected_outcomes_are_there_with_the_reason_why_they_do_not_count(state):
    rows = {row["client_id"]: row for row in read(state, "outcomes")}
    assert (rows["o0"]["counts"], rows["o0"]["why_not"]) == ("False", "superseded by p01/better")
    assert (rows["better"]["counts"], rows["better"]["supersedes"]) == ("True", "o0")


def test_other_tables_and_formats_are_refused(state):
    with pytest.raises(DataError, match="decisions"):
        export(state, "decision")
    with pytest.raises(DataError, match="not as 'xlsx'"):
        export(state, "mrt", "xlsx")
