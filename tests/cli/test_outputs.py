"""No command writes over a file that it reads, whatever the file is called; it is said before anything is computed."""

import pytest

from cli.conftest import QUICK
from cli.invoke import COLUMNS, refused, run
from kerneltrail.cli.outputs import check_folder, check_outputs
from kerneltrail.errors import DataError


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    """A model, tables and a configuration, in the folder in which commands are run."""
    for name in ("m.trail", "pilot.csv", "new.csv"):
        (tmp_path / name).write_bytes((fitted / name).read_bytes())
    (tmp_path / "next.csv").write_bytes((tmp_path / "new.csv").read_bytes())
    (tmp_path / "quick.yaml").write_text(QUICK)
    (tmp_path / "steps.csv").write_bytes((tmp_path / "pilot.csv").read_bytes())
    (tmp_path / "errors.json").write_text("{}")
    (tmp_path / "x-train.csv").write_text("1,2")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ("fit", "pilot.csv", *COLUMNS, "--config", "quick.yaml", "--out")
SELECT = ("select", "m.trail", "new.csv", "--out")
PREDICT = ("predict", "m.trail", "new.csv", "--rows", "next.csv", "--batch-column", "batch", "--out")
REPORT = ("report", "m.trail", "--data", "new.csv", "--out")
CHECK = ("check", "pilot.csv", *COLUMNS)
CKS = ("cks", "pilot.csv", "--target", "y", "--covariates", "x", "--depth", 0)
EVALUATE = ("evaluate", "steps.csv", *COLUMNS, "--methods", "mean", "--out")


@pytest.mark.parametrize(
    ("words", "option", "file"),
    [
        ((*FIT, "pilot.csv"), "--out", "pilot.csv"),
        ((*FIT, "quick.yaml"), "--out", "quick.yaml"),
        ((*SELECT, "new.csv"), "--out", "new.csv"),
        ((*SELECT, "m.trail"), "--out", "m.trail"),
        ((*SELECT, "s.csv", "--predictions", "new.csv"), "--predictions", "new.csv"),
        ((*PREDICT, "next.csv"), "--out", "next.csv"),
        ((*PREDICT, "new.csv"), "--out", "new.csv"),
        ((*PREDICT, "m.trail"), "--out", "m.trail"),
        ((*REPORT, "m.trail"), "--out", "m.trail"),
        ((*REPORT, "new.csv"), "--out", "new.csv"),
        (("report", ".", "--out", "m.trail"), "--out", "m.trail"),
        ((*CHECK, "--html", "pilot.csv"), "--html", "pilot.csv"),
        ((*CHECK, "--json", "pilot.csv"), "--json", "pilot.csv"),
        (("check", "new.csv", "--model", "m.trail", "--json", "m.trail"), "--json", "m.trail"),
        ((*CKS, "--tree", "pilot.csv"), "--tree", "pilot.csv"),
        ((*CKS, "--predict", "new.csv", "--out", "new.csv"), "--out", "new.csv"),
        (("series", "cks", ".", "--published", "errors.json", "--out", "errors.json"), "--out", "errors.json"),
        (("series", "shrinkage", "pilot.csv", "--out", "pilot.csv"), "--out", "pilot.csv"),
        (("bench", "steps", "--data", "pilot.csv", "--json", "pilot.csv"), "--json", "pilot.csv"),
        ((*EVALUATE, "."), "--out", "steps.csv"),
    ],
)
def test_a_file_that_is_read_is_not_written(folder, words, option, file):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    refused(run(*words), f"`{option}` names ", file, "read here: name another f")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "words",
    [(*SELECT, "a.csv", "--predictions", "a.csv"), (*CHECK, "--html", "a", "--json", "a"),
     (*CKS, "--predict", "new.csv", "--out", "a.csv", "--tree", "./a.csv")],
)  # fmt: skip
def test_two_outputs_need_a_file_each(folder, words):
    refused(run(*words), " both name a", "they need a file each")
    assert not list(folder.glob("a*"))


def test_links_and_other_names_of_a_file_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    read, link, hard = tmp_path / "read.csv", tmp_path / "link.csv", tmp_path / "hard.csv"
    read.write_text("x")
    link.symlink_to(read)
    hard.hardlink_to(read)
    for path in (read, link, hard, tmp_path / "no" / ".." / "read.csv", read.relative_to(tmp_path)):
        with pytest.raises(DataError, match="which is read here: name another file"):
            check_outputs({"--out": path}, (None, read))
    check_outputs({"--out": tmp_path / "new.csv", "--json": None}, (None, read))
    with pytest.raises(DataError, match=r"into which link\.csv is written"):
        check_folder("--out", tmp_path, ("new.csv", "link.csv"), (None, read))
    check_folder("--out", tmp_path, ("new.csv",), (read,))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hard.csv", "link.csv", "read.csv"]
