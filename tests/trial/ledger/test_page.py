"""The page about the ledger: its program checks a copy with nothing of this package, and its lists are complete."""

import ast
import re
from pathlib import Path

import pytest

from kerneltrail.trial.ledger import Kind, Ledger, exact
from kerneltrail.trial.ledger.copies import backup
from kerneltrail.trial.ledger.entries import REQUIRED
from kerneltrail.trial.ledger.schema import entries, payloads
from trial.ledger.examples import decision, outcome, put

PAGE = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
FIRST, PROGRAM = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def copy(tmp_path):
    with Ledger(tmp_path / "ledger.db", "walking") as ledger:
        for person in ("p1", "p2"):
            put(ledger, decision(person, context={"größer": "東京 🏃\u2028"}), request_hash="a", response=b"yes")
            put(ledger, outcome(person))
        ledger.remove("p1", {"reason": "asked"})
        backup(ledger, tmp_path / "copy.jsonl")
    return tmp_path / "copy.jsonl"


@pytest.fixture
def check():
    imported = {
        name.name for node in ast.walk(ast.parse(PROGRAM)) if isinstance(node, ast.Import) for name in node.names
    }
    assert imported == {"hashlib", "json"}
    names = {}
    exec(PROGRAM, names)
    return names["check"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows, "sound"),
        (
            lambda rows: [*rows[:3], rows[3].replace("größer", "kleiner"), *rows[4:]],
            "the payload of entry 3 was changed",
        ),
        (lambda rows: [*rows[:4], rows[4].replace("p2", "p3"), *rows[5:]], "entry 4 is not sound"),
        (lambda rows: [*rows[:2], *rows[3:]], "entry 2 is not sound"),
        (lambda rows: [*rows[:5], rows[6]], "the payload of entry 1 is missing"),
        (lambda rows: [rows[0], rows[-1]], "it ends too early"),
    ],
)
def test_the_program_on_the_page_checks_a_copy(copy, check, change, words):
    rows = change(copy.read_text(encoding="utf-8").split("\n")[:-1])
    copy.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    assert check(copy) == words


def test_the_first_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(FIRST, names)
    assert names["done"].new
    names["ledger"].close()


def test_every_kind_with_its_fields_and_every_column_is_on_the_page():
    rows = {
        name: line
        for line in PAGE.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([\w-]+)`", line.split("|")[1])
    }
    assert [kind for kind in Kind if kind not in rows] == []
    for kind, fields in REQUIRED.items():
        assert [name for name in fields if f"`{name}`" not in rows[kind]] == [], kind
    for column in (*entries.c, *payloads.c):
        assert f"`{column.name}`" in PAGE
    assert exact(0.3) in PAGE
