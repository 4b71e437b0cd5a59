"""Citations of docs/method.md in the code lead somewhere, and every equation has its code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
METHOD = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
SECTIONS = set(re.findall(r"^#+ §([\d.]+) ", METHOD, re.MULTILINE))
EQUATIONS = {int(n) for n in re.findall(r"^ {4}.* \((\d+)\)$", METHOD, re.MULTILINE)}
GROUP = re.compile(r"method ((?:§[\d.]+\d|§\d|\(\d+\))(?:(?:,| and| to) (?:§[\d.]+\d|§\d|\(\d+\)))*)")


def cited(*folders):
    """(file, citation) of everything cited."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for found in GROUP.findall(path.read_text(encoding="utf-8")):
                for each in re.findall(r"§[\d.]*\d|\(\d+\)", found):
                    yield path.relative_to(ROOT).as_posix(), each


def test_every_citation_leads_somewhere():
    found = list(cited("src", "tests"))
    assert len(found) > 50
    known = {f"§{section}" for section in SECTIONS} | {f"({number})" for number in EQUATIONS}
    assert [(path, each) for path, each in found if each not in known] == []


def test_equations_are_numbered_through_and_each_is_cited_in_the_code():
    assert sorted(EQUATIONS) == list(range(1, len(EQUATIONS) + 1))
    named = {int(each[1:-1]) for _, each in cited("src") if each.startswith("(")}
    assert sorted(EQUATIONS - named) == []
