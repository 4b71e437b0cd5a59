"""What an experiment hands back, as files; and claims with their verdicts."""

import json

import numpy as np

from kerneltrail.report.page import Paragraph, Section
from kerneltrail.studies.experiments import Agreement, Context, Outcome, agreement_table, write_outcome
from kerneltrail.studies.experiments.outcome import plain


def test_results_are_strict_json_with_what_they_come_from(tmp_path):
    context = Context("mine", tmp_path, seed=3, quick=True)
    context.stage("one", lambda: 1)
    claims = (Agreement("up", "1.0", "1.2", True, "table 1"),)
    outcome = Outcome(
        "Title <b>",
        "Lead",
        {"value": float("nan"), "array": np.array([1.0, np.inf]), "claim": claims[0]},
        tables={"rows": [{"a": 1}, {"b": 2.5}]},
        sections=(Section("Here", [Paragraph("text")], "here"),),
        agreements=claims,
    )
    page = write_outcome(outcome, context)
    found = json.loads((tmp_path / "results.json").read_text(), parse_constant=lambda text: 1 / 0)
    assert (found["experiment"], found["seed"], found["quick"], found["data"]) == ("mine", 3, True, None)
    assert found["value"] is None
    assert found["array"] == [1.0, None]
    assert found["agreement"][0]["agrees"] is True
    assert found["versions"]["numpy"] == np.__version__
    assert set(found["seconds"]) == {"one"}
    assert found["model"] is None
    assert (tmp_path / "tables" / "rows.csv").read_text() == "a,b\n1,\n,2.5\n"
    text = page.read_text(encoding="utf-8")
    assert "Title &lt;b&gt;" in text
    assert "seed 3, quick version" in text


def test_verdicts_stand_in_the_table_and_what_differs_is_marked():
    found = [Agreement("a", "1", "1", True), Agreement("b", "1", "2", False), Agreement("c", "1", "?", None)]
    table = agreement_table(found)
    assert [row[-1] for row in table.rows] == ["agrees", "differs", "cannot say"]
    assert table.marked == [1]
    assert "for" not in table.columns
    both = agreement_table([*found, Agreement("d", "1", "1", True, of="published")])
    assert [row[1] for row in both.rows] == ["both", "both", "both", "published"]
    assert both.columns[1] == "for"


def test_plain_values_and_tables():
    assert plain({1: (np.float64(0.5), np.int64(2), None, True)}) == {"1": [0.5, 2, None, True]}
