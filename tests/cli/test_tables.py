"""`kerneltrail tables`: finished results as Markdown."""

import pytest

from cli.invoke import refused, run
from kerneltrail.data import simulate
from kerneltrail.evaluation import evaluate
from kerneltrail.studies.evaluation_markdown import markdown


def test_the_tables_of_an_evaluation(tmp_path):
    simulation = simulate.paper(2, 2, seed=0, batches=(4, 6, 8))
    evaluation = evaluate(simulation.train, simulation.test, ["linear", "mean"], workers=1)
    evaluation.save(tmp_path / "out")
    result = run("tables", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert result.stdout == markdown(evaluation)
    assert "| batches seen | 0 | 1 | 2 |" in result.stdout


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"rows": 3}', b'{"rows": [1], "machine": {}}', b"\xff\xfe\x00"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "bench.json").write_bytes(content)
    refused(run("tables", tmp_path / "bench.json"), "bench.json holds no results of `kerneltrail bench --json`")


def test_what_is_not_there_is_refused(tmp_path):
    refused(run("tables", tmp_path / "nowhere"), "there is no file or folder")
    refused(run("tables", tmp_path), str(tmp_path))
