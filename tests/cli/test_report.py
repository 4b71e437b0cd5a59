"""`kerneltrail report`: what it writes, and what it says of bad input."""

import json
from html import unescape

import pytest
from typer.testing import CliRunner

from kerneltrail.cli.app import app
from kerneltrail.data import Cohort
from kerneltrail.trajectory.model import save
from trajectory.small import rows, small_model


def run(*words):
    return CliRunner().invoke(app, ["report", *(str(word) for word in words)])


def refused(result, *said):
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    text = " ".join(result.stderr.split())
    for words in said:
        assert words in text


@pytest.fixture
def folder(tmp_path):
    save(small_model(), tmp_path / "m.trail")
    users = [rows("pilot 0", seed=0), rows("new", seed=5)]
    Cohort.from_users(users, target="mood").write_csv(tmp_path / "rows.csv")
    return tmp_path


def untouched(folder, out="page.html"):
    """Neither the page nor anything half written."""
    return not (folder / out).exists() and not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_page_of_a_model_alone_says_what_data_would_add(folder):
    result = run(folder / "m.trail", "--out", folder / "deep" / "page.html")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [f"Open {folder / 'deep' / 'page.html'}"]
    text = (folder / "deep" / "page.html").read_text(encoding="utf-8")
    assert "What 3 pilot users showed about mood" in text
    assert "with --data" in text
    assert 'id="calibration"' not in text


def test_the_stages_are_counted_and_the_batches_within(folder, heard):
    assert run(folder / "m.trail", "--data", folder / "rows.csv", "--out", folder / "page.html").exit_code == 0
    assert heard.titles == [
        "stage 1 of 3: reading m.trail",
        "stage 2 of 3: following users",
        "stage 3 of 3: drawing the page",
    ]
    assert [now.done for now in heard if now.stage == "following users"] == [1, 2, 3, 4, 5, 6]


def test_with_data_users_are_followed(folder):
    result = run(folder / "m.trail", "--data", folder / "rows.csv", "--users", 1, "--out", folder / "page.html")
    assert result.exit_code == 0, result.output
    assert "24 rows read, 24 kept" in result.stdout
    assert "1 of 2 users are shown one by one" in result.stdout
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert 'id="calibration"' in text
    assert "1 of these 2 users taught the model" in text


def test_a_folder_of_results_with_and_without_a_model(folder):
    metrics = [
        {"method": m, "t": 1, "users": 3, "rmse": 1.5, "log_density": -2.0, "seconds": 0.1} for m in ("us", "them")
    ]
    (folder / "results.json").write_text(json.dumps({"metrics": metrics, "paired": []}))
    assert run(folder, "--out", folder / "page.html").exit_code == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert 'id="comparison"' in text
    assert 'id="graph"' in text
    (folder / "m.trail").unlink()
    assert run(folder, "--out", folder / "page.html", "--title", "Us & them").exit_code == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert "<h1>Us &amp; them</h1>" in text
    assert "<script" not in text
    refused(run(folder, "--data", folder / "rows.csv", "--out", folder / "x.html"), "has no model file")


@pytest.mark.parametrize("column", ["hour", "mood"])
def test_one_cell_out_of_range_leaves_out_its_user_alone(folder, column):
    header, *table = (folder / "rows.csv").read_text().splitlines()
    at = next(i for i, line in enumerate(table) if "new" in line.split(","))
    cells = table[at].split(",")
    cells[header.split(",").index(column)] = "1e300"
    table[at] = ",".join(cells)
    (folder / "rows.csv").write_text("\n".join([header, *table, ""]))
    result = run(folder / "m.trail", "--data", folder / "rows.csv", "--out", folder / "page.html")
    assert "Traceback" not in result.output
    assert result.exit_code == 2  # a script hears that somebody is missing
    assert "user 'new' is left out" in " ".join(result.stderr.split())
    assert f"Open {folder / 'page.html'}" in result.stdout
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert "Users of the table who are not shown" in text
    assert "user 'new' is left out" in unescape(text)
    assert '"name":"pilot 0"' in text
    assert '"name":"new"' not in text


class TestBadInput:
    def test_no_model(self, folder):
        (folder / "text.trail").write_text("not a model")
        refused(run(folder / "text.trail", "--out", folder / "page.html"), "text.trail")
        refused(run(folder / "absent.trail", "--out", folder / "page.html"), "absent.trail")
        whole = (folder / "m.trail").read_bytes()
        for part in (0, 8, len(whole) // 2, len(whole) - 1):
            (folder / "text.trail").write_bytes(whole[:part])
            refused(run(folder / "text.trail", "--out", folder / "page.html"), "text.trail")
        assert untouched(folder)

    def test_data_without_a_covariate_names_the_nearest(self, folder):
        table = (folder / "rows.csv").read_text().replace("hour", "hours", 1)
        (folder / "rows.csv").write_text(table)
        result = run(folder / "m.trail", "--data", folder / "rows.csv", "--out", folder / "page.html")
        refused(result, "'hour'", "did you mean 'hours'?")
        assert untouched(folder)

    def test_data_that_is_not_there(self, folder):
        refused(run(folder / "m.trail", "--data", folder / "no.csv", "--out", folder / "page.html"), "no.csv")

    def test_a_page_that_cannot_be_written_is_refused_before_the_work(self, folder, monkeypatch):
        monkeypatch.setattr("kerneltrail.report.model_page.follow_users", lambda *given, **more: pytest.fail("worked"))
        (folder / "file").write_text("")
        result = run(folder / "m.trail", "--data", folder / "rows.csv", "--out", folder / "file" / "page.html")
        refused(result, "cannot be written")

    def test_folders_without_a_model_with_several_and_with_broken_results(self, folder, tmp_path):
        (tmp_path / "empty").mkdir()
        refused(run(tmp_path / "empty", "--out", folder / "page.html"), "holds neither a model")
        save(small_model(), folder / "other.trail")
        refused(run(folder, "--out", folder / "page.html"), "several models (m.trail, other.trail)")
        (folder / "other.trail").unlink()
        (folder / "results.json").write_text("{")
        refused(run(folder, "--out", folder / "page.html"), "results.json cannot be read")
        (folder / "results.json").write_text(json.dumps({"metrics": [{"t": 1, "rmse": 2.0}]}))
        refused(run(folder, "--out", folder / "page.html"), "cannot be read: KeyError('method')")
        assert untouched(folder)

    def test_a_user_with_a_single_batch_is_shown_without_calibration(self, folder):
        Cohort.from_users([rows("one", n=4, seed=5)], target="mood").write_csv(folder / "one.csv")
        result = run(folder / "m.trail", "--data", folder / "one.csv", "--out", folder / "page.html")
        assert result.exit_code == 0, result.output
        text = (folder / "page.html").read_text(encoding="utf-8")
        assert '"one"' in text
        assert 'id="calibration"' not in text
