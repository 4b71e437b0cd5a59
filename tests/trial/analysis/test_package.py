"""The replication package: it re-runs with equal numbers, holds no secret, and whatever is changed in it is seen."""

import csv
import io
import json
import zipfile

import pytest

from kerneltrail.errors import LedgerError, TrialError
from kerneltrail.trial.analysis import package
from kerneltrail.trial.analysis.analysis import AnalysisSettings, analyse
from kerneltrail.trial.analysis.draws import RecordedDraws
from kerneltrail.trial.analysis.package import constraints, write_package, zipped
from kerneltrail.trial.analysis.repetition import compare_tables, repeat
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.ledger.ledger import Head

from ..study import DRAWS
from .study import read


@pytest.fixture(scope="module")
def analysed(ended, models):
    return analyse(*read(ended), models, AnalysisSettings(resamples=2))


def packed(path, ended, analysed, models, draws=None):
    with ended.ledger() as ledger:
        write_package(path, analysed, ledger, models, page="<p>A page.</p>", draws=draws)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory, ended, analysed, models):
    return packed(tmp_path_factory.mktemp("package") / "walks.zip", ended, analysed, models)


def files_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, goal, sums=True, **changes):
    """The package with other files, by name with __ for / and no ending; its manifest fits them if `sums` says so."""
    files = files_of(path)
    for name, change in changes.items():
        known = next(each for each in files if each.replace("/", "__").rsplit(".", 1)[0] == name)
        files[known] = change(files[known])
    if sums:
        manifest = json.loads(files[package.MANIFEST])
        manifest["files"] = {name: package._sha(files[name]) for name in manifest["files"]}
        files[package.MANIFEST] = json.dumps(manifest).encode()
    goal.write_bytes(zipped(files))
    return goal


def test_it_runs_again_and_everything_is_equal(made):
    done = repeat(made, resamples=1)
    assert done.same
    assert (done.with_key, done.resampled, done.resamples) == (False, 1, 2)
    assert (done.replayed.different, done.replayed.removed > 0) == (0, True)
    assert done.replayed.equal == done.replayed.exact > 50
    assert len(done.tables) == 12
    assert "All 12 tables have equal numbers." in done.lines()
    assert "taken from the record, since the key is not in the package" in done.lines()[1]


def test_the_same_trial_gives_the_same_bytes(made, ended, analysed, models, tmp_path):
    assert packed(tmp_path / "again.zip", ended, analysed, models).read_bytes() == made.read_bytes()


def test_there_is_no_secret_and_nothing_removed_in_it(made, ended):
    secret = ended.draws().key
    for name, content in files_of(made).items():
        assert secret not in content, name
        assert secret.hex().encode() not in content, name
    lines = [json.loads(line) for line in files_of(made)[package.LEDGER].splitlines()]
    theirs = [line for line in lines if line.get("participant") == "p05" and line["kind"] != "removal"]
    assert theirs
    assert all(line["content"] is None and line["salt"] is None for line in theirs)
    for name, content in files_of(made).items():
        if name.startswith(package.TABLES) or name == package.PAGE:
            assert b"p05" not in content


def test_with_the_key_the_draws_are_computed(ended, analysed, models, tmp_path, monkeypatch):
    path = packed(tmp_path / "open.zip", ended, analysed, models, DRAWS)
    monkeypatch.setattr(RecordedDraws, "number", lambda *_: pytest.fail("taken from the record"))
    done = repeat(path, resamples=0)
    assert done.same
    assert done.with_key
    assert "computed from the key" in done.lines()[1]
    assert "nobody chose the draws" in files_of(path)[package.README].decode()
    with pytest.raises(TrialError, match="not the one that the protocol is committed to"):
        packed(tmp_path / "other.zip", ended, analysed, models, Draws(bytes(32)))


def test_a_file_that_was_changed_is_named(made, tmp_path):
    for name in (package.LEDGER, package.README, "tables/effects.csv", package.SETTINGS):
        key = name.replace("/", "__").rsplit(".", 1)[0]
        path = rewritten(made, tmp_path / "changed.zip", sums=False, **{key: lambda content: content + b" "})
        with pytest.raises(TrialError, match=f"was changed: {name} is not what its manifest says"):
            repeat(path)


def replaced(content, old, new):
    assert old in content
    return content.replace(old, new, 1)


def test_a_table_that_was_changed_with_its_sum_differs(made, tmp_path):
    def other(content):
        rows = list(csv.reader(io.StringIO(content.decode())))
        rows[1][1] = str(float(rows[1][1]) + 1e-6)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()

    done = repeat(rewritten(made, tmp_path / "changed.zip", tables__effects=other), resamples=0)
    assert not done.same
    assert any("The table effects differs: row 1, column estimate: it was" in line for line in done.lines())


def test_a_ledger_that_was_changed_with_its_sum_is_not_sound(made, tmp_path):
    def other(content):
        return replaced(content, b'\\"action\\":1', b'\\"action\\":0')

    with pytest.raises(LedgerError, match="payload was changed after it was recorded"):
        repeat(rewritten(made, tmp_path / "changed.zip", ledger=other))

    files = files_of(made)
    manifest = json.loads(files[package.MANIFEST])
    files[package.MANIFEST] = json.dumps({**manifest, "entries": manifest["entries"] - 1}).encode()
    (tmp_path / "changed.zip").write_bytes(zipped(files))
    with pytest.raises(LedgerError, match="does not end where its manifest says"):
        repeat(tmp_path / "changed.zip")


def test_simulated_trials_that_were_changed_differ(made, tmp_path):
    def other(content):
        head, first, *rest = content.split(b"\n")
        cells = first.split(b",")
        return b"\n".join([head, b",".join([cells[0], b"0.5", *cells[2:]]), *rest])

    done = repeat(rewritten(made, tmp_path / "changed.zip", tables__personalisation_null=other), resamples=1)
    assert not done.same
    assert done.tables["personalisation_null"].startswith("row 1, column probability of acting: differences")


def test_an_end_of_the_chain_that_was_noted_elsewhere_is_looked_for(made):
    manifest = json.loads(files_of(made)[package.MANIFEST])
    repeat(made, resamples=0, expected=Head(manifest["entries"], manifest["head"]))
    with pytest.raises(LedgerError, match="not the one that was noted"):
        repeat(made, resamples=0, expected=Head(manifest["entries"], "0" * 64))
    with pytest.raises(LedgerError, match="not the one that was noted"):
        repeat(made, resamples=0, expected=Head(10_000, manifest["head"]))


def test_what_is_no_package_is_refused(made, tmp_path):
    odd = tmp_path / "odd.zip"
    odd.write_bytes(b"not a zip")
    with pytest.raises(TrialError, match="cannot be read as a zip"):
        repeat(odd)
    odd.write_bytes(zipped({"a.txt": b""}))
    with pytest.raises(TrialError, match=r"has no manifest\.json"):
        repeat(odd)
    files = files_of(made)
    odd.write_bytes(zipped({**files, "more.txt": b""}))
    with pytest.raises(TrialError, match=r"more\.txt is not of the package"):
        repeat(odd)
    del files[package.PROTOCOL]
    odd.write_bytes(zipped(files))
    with pytest.raises(TrialError, match=r"protocol\.yaml is missing"):
        repeat(odd)
    manifest = {"format": package.FORMAT, "version": 1, "files": {"../out.txt": package._sha(b"x")}}
    odd.write_bytes(zipped({"../out.txt": b"x", package.MANIFEST: json.dumps(manifest).encode()}))
    with pytest.raises(TrialError, match="lies outside of it"):
        repeat(odd)
    assert not (tmp_path / "out.txt").exists()


def test_another_protocol_is_seen(made, tmp_path):
    path = rewritten(made, tmp_path / "changed.zip", protocol=lambda text: replaced(text, b"upper: 0.8", b"upper: 0.9"))
    with pytest.raises(TrialError, match="is not the protocol in force"):
        repeat(path)


def test_numbers_that_differ_in_their_last_digits_are_equal(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1.0,b\n")
    assert compare_tables(tmp_path, {"a": "x,y\n1.0000000001,b\n"}) == {"a": ""}
    assert compare_tables(tmp_path, {"a": "x,y\n1.00001,b\n"})["a"].startswith("row 1, column x")
    assert compare_tables(tmp_path, {"a": "x,y\n1.0,c\n"})["a"].startswith("row 1, column y")
    assert compare_tables(tmp_path, {"a": "x,y\n"})["a"] == "it had 1 rows and has now 0"
    assert compare_tables(tmp_path, {"b": ""}) == {
        "a": "it is not made by this analysis",
        "b": "it is not in the package",
    }


def test_versions_are_pinned():
    pins = dict(line.split("==") for line in constraints().split())
    assert {"numpy", "scipy", "SQLAlchemy"} <= set(pins)
    assert "kerneltrail" not in pins
