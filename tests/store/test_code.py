"""The code of what comes from outside changes with what it computes, wherever that is written."""

import functools
import importlib.util
import os
import subprocess
import sys
import textwrap

import numba
import pytest

from kerneltrail.kernels import ATOMS, parse
from kerneltrail.methods.cks import search
from kerneltrail.methods.pooled import PooledGP
from kerneltrail.store import digest as module
from kerneltrail.store.code import code_of, outside_code, registered_code
from kerneltrail.store.digest import code
from kerneltrail.studies.preset_comparison import learn
from kerneltrail.trajectory import EVIDENCES
from support.new_atoms import NEW_ATOMS


def from_file(path, text):
    """A module that is not the library's."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("outside", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def typed(text, name="thing"):
    """What a notebook defines: a module without a file."""
    names = {"__name__": "__notebook__"}
    exec(textwrap.dedent(text), names)
    return names[name]


CLASS = """
from functools import cached_property, lru_cache, partial
import numpy as np
from kerneltrail.trajectory import PathEvidence

FACTOR = {factor}

def penalty(k):
    return FACTOR * k

class Base(PathEvidence):
    def half(self, k):
        return penalty(k) / {two}

class thing(Base):
    "{words}"
    name = "thing"
    seen = []
    scale = {scale}

    def evaluate(self, user, mask):
        "{words}"
        return self.table.get(user, mask).log_laplace - self.half({k}) * self.scale + self.wide

    @cached_property
    def wide(self):
        return {wide}

    @staticmethod
    def least():
        return [{least} for _ in range(2)]
"""
PLAIN = {"factor": 1.0, "two": 2, "words": "Some words.", "scale": 1, "k": 3, "wide": 0, "least": 1}


class TestNotebook:
    @pytest.mark.parametrize("part", ["factor", "two", "scale", "k", "wide", "least"])
    def test_a_changed_value_anywhere_is_other_code(self, part):
        changed = outside_code(typed(CLASS.format(**{**PLAIN, part: 7})))
        assert changed != outside_code(typed(CLASS.format(**PLAIN)))

    @pytest.mark.parametrize("text", [CLASS, "\n\n# A comment.\n" + CLASS], ids=["again", "further down"])
    def test_words_and_lines_are_not(self, text):
        changed = outside_code(typed(text.format(**{**PLAIN, "words": "Other words."})))
        assert changed == outside_code(typed(CLASS.format(**PLAIN)))

    def test_what_is_collected_on_the_way_is_not(self):
        thing = typed(CLASS.format(**PLAIN))
        before = outside_code(thing)
        thing.seen.append(3)
        assert outside_code(thing) == before

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda thing: functools.partial(thing, 2),
            functools.lru_cache,
            numba.njit,
            lambda thing: type("Holder", (), {"__module__": "__notebook__", "run": property(thing)})(),
            lambda thing: lambda number: thing(number),
        ],
        ids=["partial", "lru_cache", "numba", "object", "closure"],
    )
    def test_a_wrapped_function_is_its_own(self, wrap):
        one, same, other = (typed(f"def thing(n): return n + {number}") for number in (1, 1, 2))
        assert outside_code(wrap(one)) == outside_code(wrap(same)) != outside_code(wrap(other))

    def test_an_object_is_its_class_and_its_values(self):
        text = "class thing:\n    def __init__(self, n): self.n = n"
        one, two = (typed(text) for _ in range(2))
        assert outside_code(one(1)) == outside_code(two(1)) != outside_code(two(2))

    def test_it_is_the_same_in_every_process(self):
        more = "from kerneltrail.store.code import outside_code\nprint(outside_code(thing))"
        text = f"exec({CLASS.format(**PLAIN)!r})\n{more}"
        printed = {
            subprocess.check_output(
                [sys.executable, "-c", text],
                env={**os.environ, "PYTHONPATH": str(module.HOME.parent), "PYTHONHASHSEED": str(seed)},
            )
            for seed in (1, 2)
        }
        assert len(printed) == 1


class TestFunctions:
    def test_a_function_from_outside_counts_with_its_module(self, tmp_path, monkeypatch):
        seen = []
        same = "def f():\n    # one\n    return 1"
        for text in ("def f(): return 1", same, "def f(): return 2", "TABLE = {1: 2}\n" + same):
            made = from_file(tmp_path / "outside.py", text)
            monkeypatch.setitem(sys.modules, "outside", made)
            module.compiled.cache_clear()
            seen.append(code_of(made.f))
        assert seen[0] == seen[1]
        assert len(set(seen)) == 3
        assert all(each.startswith(code("evaluation")) for each in seen)
        assert code_of(made.f, "trajectory").startswith(code("trajectory"))

    def test_a_function_without_a_file_counts_too(self):
        one, same, other = (code_of(typed(f"def thing(): return {number}")) for number in (1, 1, 2))
        assert one == same != other
        assert one.startswith(code("evaluation"))

    def test_of_methods_a_packages_own_counts(self):
        assert code_of(search) == code("evaluation", "cks")
        assert code_of(PooledGP.train) == code("evaluation", "pooled") != code("evaluation")
        assert code_of(parse) == code("evaluation")
        assert code_of(learn).startswith(code("evaluation") + " ")  # a study's module counts besides

    def test_what_is_registered_counts_for_every_function(self, new_atoms):
        assert code_of(parse).startswith(code("evaluation") + " ")


class TestRegistered:
    def test_only_what_is_used_and_from_outside_counts(self, new_atoms):
        assert registered_code(atom=["SE", "LIN"], evidence=["RQ"]) == ""
        matern, both = registered_code(atom=["SE", "MATERN52"]), registered_code(atom=["RQ", "MATERN52"])
        assert "" != matern != both != ""
        assert registered_code(atom=["MATERN52"]) == matern

    def test_another_definition_of_the_same_name_is_noticed(self):
        seen = []
        for factor in (1.0, 1.0, 2.0):
            with EVIDENCES.temporarily("thing", typed(CLASS.format(**{**PLAIN, "factor": factor}))):
                seen.append(registered_code(evidence=["thing"]))
        assert seen[0] == seen[1] != seen[2]

    def test_another_atom_of_the_same_name_is_noticed(self):
        seen = []
        for change in ({}, {}, {"fallback": 1}):
            kind = type("RationalQuadratic", (type(NEW_ATOMS[0]),), {"__module__": "__notebook__", **change})
            with ATOMS.temporarily("RQ", kind()):
                seen.append(registered_code(atom=["RQ"]))
        assert seen[0] == seen[1] != seen[2]
