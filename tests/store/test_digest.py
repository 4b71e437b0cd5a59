"""Digests are equal for what is equal, and change with values and with code, but not with what only people read."""

import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import parse
from kerneltrail.store import digest as module
from kerneltrail.store.digest import blake, code, content_digest, described, digest, seed_of


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the computing rooms that may be edited; and the digest of a layer, made anew."""
    for room in module.LAYERS:
        shutil.copytree(module.HOME / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__", "*.csv"))
    monkeypatch.setattr(module, "HOME", tmp_path)

    def anew(*asked):
        module.compiled.cache_clear()
        return code.__wrapped__(*asked)

    anew.home = tmp_path
    yield anew
    module.compiled.cache_clear()


def edit(path, change):
    path.write_text(change(path.read_text()))


class TestCode:
    def test_a_changed_line_of_cks_is_another_cks_and_the_same_fit(self, package):
        """And another shrinkage, whose starts are fits of CKS."""
        before = {asked: package(*asked) for asked in ASKED}
        edit(package.home / "methods" / "cks" / "grammar.py", lambda text: text + "\nmore = 1\n")
        changed = {asked for asked in ASKED if package(*asked) != before[asked]}
        assert changed == {("evaluation", "cks"), ("evaluation", "shrinkage"), ("methods",), ("evaluation",)}

    def test_a_changed_line_of_shrinkage_is_the_same_cks(self, package):
        before = {asked: package(*asked) for asked in ASKED}
        edit(package.home / "methods" / "shrinkage" / "scales.py", lambda text: text + "\nmore = 1\n")
        changed = {asked for asked in ASKED if package(*asked) != before[asked]}
        assert changed == {("evaluation", "shrinkage"), ("methods",), ("evaluation",)}

    def test_methods_name_the_modules_that_they_import(self):
        """Of the room as a whole, all methods would have to count."""
        for path in (module.HOME / "methods").rglob("*.py"):
            if path != module.HOME / "methods" / "__init__.py":
                assert not re.search(r"(from|import) kerneltrail\.methods( |$)", path.read_text(), re.MULTILINE), path

    def test_a_changed_comment_anywhere_changes_nothing(self, package):
        before = {asked: package(*asked) for asked in ASKED}
        for path in package.home.rglob("*.py"):
            edit(path, lambda text: "# a comment\n\n" + text.replace('"""', '"""Said otherwise. ', 1) + "\n# another\n")
        assert {asked: package(*asked) for asked in ASKED} == before

    @pytest.mark.parametrize("room", module.LAYERS)
    def test_a_changed_line_changes_its_layer_and_those_above(self, package, room):
        before = {layer: package(layer) for layer in module.LAYERS}
        edit(next((package.home / room).glob("[a-z]*.py")), lambda text: text + "\nmore = 1\n")
        changed = [layer for layer in module.LAYERS if package(layer) != before[layer]]
        assert changed == list(module.LAYERS[module.LAYERS.index(room) :])

    def test_a_renamed_file_is_other_code(self, package):
        before = package("gp")
        (package.home / "gp" / "dense.py").rename(package.home / "gp" / "denser.py")
        assert package("gp") != before

    def test_it_is_the_same_in_every_process(self):
        """Sets of texts have another order in each."""
        told = [
            subprocess.run(
                [sys.executable, "-c", "from kerneltrail.store.digest import code; print(code('evaluation'))"],
                env={**module_environment(), "PYTHONHASHSEED": str(seed)},
                capture_output=True,
                check=True,
            ).stdout
            for seed in (1, 2)
        ]
        assert told == [code("evaluation").encode() + b"\n"] * 2

    def test_all_that_computes_is_there(self):
        assert all((module.HOME / room / "__init__.py").is_file() for room in module.LAYERS)


ASKED = [
    ("trajectory",),
    ("methods",),
    ("evaluation",),
    ("evaluation", "cks"),
    ("evaluation", "shrinkage"),
    ("evaluation", "pooled"),
]


def module_environment():
    return {**os.environ, "PYTHONPATH": str(module.HOME.parent)}


def test_a_folder_is_its_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.csv").write_text("1")
    before = content_digest(tmp_path / "a")
    (tmp_path / "a" / "x.csv").rename(tmp_path / "a" / "y.csv")
    assert content_digest(tmp_path / "a") != before


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0


SAME = [
    ({"a": 1, "b": (2.0, None)}, {"b": [2.0, None], "a": 1}),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ({1, 2, 3}, {3, 2, 1}),
    (np.float64(0.1), 0.1),
    (parse("SE[x] + LIN[x]"), parse("LIN[x] + SE[x]")),
    (math.nan, math.nan),
]
DIFFERENT = [
    (1, 1.0), (True, 1), ("1", 1), ([1, 2], [2, 1]), (Point(1.0), Point(1.0, 1.0)), (None, "None"),
    (np.zeros(2), np.zeros(3)), (np.zeros(2), np.zeros(2, dtype=np.float32)), (math.nan, math.inf),
]  # fmt: skip


class TestValues:
    @pytest.mark.parametrize(("one", "other"), SAME)
    def test_equal_values(self, one, other):
        assert digest(one) == digest(other)

    @pytest.mark.parametrize(("one", "other"), DIFFERENT)
    def test_different_values(self, one, other):
        assert digest(one) != digest(other)

    def test_what_cannot_be_described_is_refused(self):
        with pytest.raises(DataError, match="a setting of type function cannot be described"):
            digest({"a": [lambda: 1]})

    def test_values_of_other_rooms_say_what_they_are(self):
        user = User("ann", ("x",), [[1.0]], [2.0], (1,))
        assert described({"kernel": parse("SE[x]"), "user": user, "point": Point(1.0)}) == {
            "kernel": "SE[x]",
            "user": {"user": user.fingerprint},
            "point": {"Point": {"x": 1.0, "y": 0.0}},
        }

    def test_seeds_and_fingerprints_are_those_of_before(self):
        """Random starts and files of users depend on these very numbers."""
        assert seed_of("SE[x]") == 0xC26BF0D644BF4BC
        assert blake("ab", np.array([1.0, 2.0])) == blake(b"a", "b", np.array([[1.0], [2.0]]))
        user = User("ann", ("x",), [[1.0], [3.0]], [2.0, 1.0], (1, 2), action=[0, 1])
        assert user.fingerprint == "9eea912df2a7a9c49769223f4f6a20d7"
        assert user.rows_digest == "981d1e2f10996e4dabe909cdc83fbf22"
