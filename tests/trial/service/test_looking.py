"""Calls of those who look after the trial."""

import csv
import io
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet
import pytest

from kerneltrail.trial.export import TABLES, export
from kerneltrail.trial.export import table as made_table
from kerneltrail.trial.service import looking

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
    response = call("GET", f"export/{name}.{format}", scope="analyst unblinded")
    assert response.status_code == 200, response.text
    assert f'filename="{name}.{format}"' in response.headers["content-disposition"]
    if format == "csv":
        return list(csv.DictReader(io.StringIO(response.text)))
    if format == "jsonl":
        return [json.loads(line) for line in response.text.splitlines()]
    return pyarrow.parquet.read_table(io.BytesIO(response.content)).to_pylist()


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_there_in_every_format(studied, name):
    lines = table(studied, name, "jsonl")
    assert bool(lines) == (name != "deliveries")
    assert table(studied, name, "parquet") == lines
    assert [set(each) for each in table(studied, name, "csv")] == [set(each) for each in lines]
    served = studied("GET", f"export/{name}.csv", scope="analyst unblinded").content
    with studied.trial.reading() as state:
        assert served == export(state, name, "csv")


@pytest.mark.parametrize("name", TABLES)
def test_no_table_with_outcomes_leaves_unless_unblinded_and_noted(studied, name):
    """By any way of looking: what a blinded analyst can have tells no outcome of a decision."""
    known = len(studied.trial.snapshot().looks)
    answer = studied("GET", f"export/{name}.csv", scope="analyst")
    columns, lines = export_columns(studied.trial, name)
    if name != "dictionary" and {"outcome", "value", "reward"} & set(columns):
        assert lines
        assert problem(answer) == (403, "wrong-scope")
        assert "unblinded" in answer.json()["detail"]
        assert len(studied.trial.snapshot().looks) == known
        assert studied("GET", f"export/{name}.csv?reason=the+board", scope="analyst unblinded").status_code == 200
        (look,) = studied.trial.snapshot().looks[known:]
        assert (look.payload["what"], look.payload["reason"]) == (f"the table {name}", "the board")
        assert look.by.startswith("key ")
    else:
        assert answer.status_code == 200
        assert len(studied.trial.snapshot().looks) == known


def export_columns(trial, name):
    with trial.reading() as state:
        return made_table(state, name)


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


def test_an_export_keeps_no_decision_waiting(call, monkeypatch):
    call.decide()
    begun, go = threading.Event(), threading.Event()

    def slow(state, name, format):
        begun.set()
        assert go.wait(60)
        return b"done"

    monkeypatch.setattr(looking, "export_table", slow)
    with ThreadPoolExecutor(1) as pool:
        exported = pool.submit(call, "GET", "export/decisions.csv", scope="analyst unblinded")
        assert begun.wait(60)
        assert call.decide(index=1).status_code == 201
        go.set()
        assert exported.result(60).content == b"done"
