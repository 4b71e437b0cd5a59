"""Calls of those who look after the trial."""

import csv
import io
import json
import re

import pyarrow.parquet
import pytest

from kerneltrail.trial.tables import NAMES

from .calls import outcome, problem
from .test_learning import learn


def test_incidents_are_listed_and_acknowledged(both):
    both.decide()
    both.decide(steps=1.0)
    (incident,) = both("GET", "incidents", scope="operator").json()["incidents"]
    path = f"incidents/{incident['id'].replace('/', '%2F')}/acknowledgement"
    done = both("POST", path, {"by": "Ann", "note": "a test"}, scope="operator")
    assert done.status_code == 201
    assert both("GET", "incidents?open_only=true", scope="operator").json()["incidents"] == []
    (seen,) = both("GET", "incidents", scope="analyst").json()["incidents"]
    assert seen["acknowledged"][0]["by"] == "Ann"
    assert not seen["open"]
    assert problem(both("POST", "incidents/none/acknowledgement", {"by": "Ann"}, scope="operator")) == (404, "unknown")
    assert problem(both("GET", "incidents?open_only=perhaps", scope="operator")) == (422, "refused")


@pytest.fixture
def studied(call):
    learn(call, range(3))
    learn(call, range(2), "p02")
    call.decide(index=3, available=False, reasons=["asleep"])
    missing = call.decide(index=4).json()
    call("POST", "outcomes", {"items": [outcome(missing, None)]})
    call.decide(index=5)
    return call


def table(call, name, format="csv"):
    response = call("GET", f"export/{name}.{format}", scope="analyst")
    assert response.status_code == 200, response.text
    assert f'filename="{name}.{format}"' in response.headers["content-disposition"]
    if format == "csv":
        return list(csv.DictReader(io.StringIO(response.text)))
    if format == "jsonl":
        return [json.loads(line) for line in response.text.splitlines()]
    return pyarrow.parquet.read_table(io.BytesIO(response.content)).to_pylist()


@pytest.mark.parametrize("name", NAMES)
def test_every_table_says_the_same_in_every_format(studied, name):
    lines = table(studied, name, "jsonl")
    assert table(studied, name, "parquet") == lines
    cells = table(studied, name, "csv")
    assert len(cells) == len(lines)
    for cell, line in zip(cells, lines, strict=True):
        for column, value in line.items():
            if value is None:
                assert cell[column] == ""
            elif isinstance(value, bool):
                assert cell[column] == str(value).lower()
            elif isinstance(value, int | float):
                assert float(cell[column]) == value
            else:
                assert cell[column] == value
    described = {row["column"] for row in table(studied, "dictionary") if row["table"] == name}
    if lines and name != "dictionary":
        assert described == set(lines[0])


def test_what_is_missing_is_empty_and_unavailable_has_no_chance(studied):
    rows = table(studied, "mrt", "jsonl")
    assert [row["id"] for row in rows] == ["p01"] * 6 + ["p02"] * 2
    assert [row["outcome"] for row in rows[:6]] == [1.0, 1.2, 1.4, None, None, None]
    assert [row["availability"] for row in rows[:6]] == [1, 1, 1, 0, 1, 1]
    assert rows[3]["rand_prob"] == 0.0
    assert [row["decision_point"] for row in rows[:6]] == [1, 2, 3, 4, 5, 6]
    decisions = table(studied, "decisions", "jsonl")
    assert [row["delivered_action"] for row in decisions] == [None] * 8
    record = studied.trial.decision(decisions[0]["decision_id"])[1]
    assert decisions[0]["probability"].hex() == record["probability_hex"]
    assert len(table(studied, "obp")) == 5
    assert all(0.2 <= row["pscore"] <= 0.8 for row in table(studied, "obp", "jsonl"))
    jacket = table(studied, "lifejacket", "jsonl")
    assert [row["calendar_t"] for row in jacket if row["subject_id"] == "p02"] == [1, 2]
    assert {row["policy_num"] for row in jacket if row["reward"] is not None} == {1}


def test_other_tables_and_formats_are_refused(call):
    for path in ("export/keys.csv", "export/decisions.xlsx", "export/..%2Fkeys.csv"):
        assert problem(call("GET", path, scope="analyst")) == (422, "refused")
    assert problem(call("GET", "export/decisions", scope="analyst"))[0] == 404


def test_a_decision_is_replayed(both):
    decision = both.decide().json()
    answer = both("GET", f"replay/{decision['decision_id']}", scope="monitor").json()
    assert (answer["state"], answer["exact"], answer["key"]) == ("equal", True, "p01/walk/0")
    assert problem(both("GET", "replay/nothing", scope="analyst")) == (404, "unknown")


def test_health_needs_no_key(call):
    for path in ("healthz", "/healthz"):
        assert call("GET", path, scope=None).json() == {"status": "alive"}
    for path in ("readyz", "/readyz"):
        call.until(lambda path=path: call("GET", path, scope=None).status_code == 200)


LINE = re.compile(r'(?P<name>[a-z_]+)(?:\{(?P<labels>(?:[a-z]+="[^"\\\\]*",?)*)\})? (?P<value>[0-9.e+-]+)')


def test_metrics_are_prometheus_text(call):
    call.decide()
    call.decide()
    answer = call("GET", "metrics", scope="monitor")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    values, typed = {}, set()
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            assert line.split()[2] not in typed
            typed.add(line.split()[2])
        elif not line.startswith("# HELP "):
            parts = LINE.fullmatch(line)
            assert re.sub("_(bucket|sum|count)$", "", parts["name"]) in typed
            values[parts["name"], parts["labels"]] = float(parts["value"])
    assert values["kerneltrail_decisions_total", 'rung="policy"'] == 1.0
    assert values["kerneltrail_decisions_total", 'rung="repeat"'] == 1.0
    assert values["kerneltrail_entries", None] > 3
    route = 'route="/participants/{participant}/decisions/{kind}/{index}"'
    assert values["kerneltrail_call_seconds_bucket", f'{route},le="+Inf"'] == 2.0
    assert "p01" not in answer.text
