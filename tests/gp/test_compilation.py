"""The mark that all is compiled is that of all sources with compiled functions; one process compiles, others wait."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kerneltrail.gp
import kerneltrail.kernels
from kerneltrail.gp import compilation

SOURCES = [
    path
    for package in (kerneltrail.gp, kerneltrail.kernels)
    for path in sorted(Path(package.__file__).parent.rglob("*.py"))
    if "@compiled(" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_changed_source_with_compiled_functions_is_compiled_anew(source, tmp_path, monkeypatch):
    for package in (kerneltrail.gp, kerneltrail.kernels):
        folder = Path(package.__file__).parent
        copy = tmp_path / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
        monkeypatch.setattr(package, "__file__", str(copy / "__init__.py"))
        if source.is_relative_to(folder):
            changed = copy / source.relative_to(folder)
    before = compilation._marker()
    assert before == compilation._marker()
    os.utime(changed, ns=(1, 1))
    assert compilation._marker() != before


def test_what_was_compiled_from_other_sources_is_forgotten(tmp_path, monkeypatch):
    for package in (kerneltrail.gp, kerneltrail.kernels):
        folder = tmp_path / Path(package.__file__).parent.name / "__pycache__"
        folder.mkdir(parents=True)
        for name in ("a.nbi", "a.1.nbc", "a.pyc"):
            (folder / name).touch()
        monkeypatch.setattr(package, "__file__", str(folder.parent / "__init__.py"))
    compilation._forget()
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"a.pyc"}


def test_there_are_some_among_the_kernels():
    assert "compiled" in {path.parent.name for path in SOURCES}


def test_every_compiled_function_can_do_without_a_cache():
    for path in Path(kerneltrail.__file__).parent.rglob("*.py"):
        assert "@numba." not in path.read_text(encoding="utf-8"), f"{path} must use kernels.compiled.cached.compiled"


def python(code, *arguments):
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)


NOWHERE = """
import warnings
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []  # as where nothing can be written
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np
    from kerneltrail.gp import compilation
    from kerneltrail.kernels.compiled import outer
print([str(each.message).partition(",")[0] for each in caught])
print(outer(np.array([1.0, 2.0]), np.array([3.0])).tolist(), compilation.ensure_compiled())
"""


def test_where_nothing_can_be_written_there_is_one_warning_and_no_cache():
    out, _ = python(NOWHERE).communicate()
    assert out.splitlines() == ["['compiled code cannot be kept']", "[[3.0], [6.0]] False"]


COLD = """
import sys
from pathlib import Path
from kerneltrail.gp import compilation
folder = Path(sys.argv[1])
compilation._marker = lambda: folder / "all.compiled"
def compile():
    with (folder / "log").open("a") as log:
        print("compiled", file=log)
    import time
    time.sleep(1.0)
compilation._use_everything = compile
compilation.main()
print((folder / "all.compiled").exists())
"""


def test_of_several_cold_processes_one_compiles_and_the_others_wait(tmp_path):
    processes = [python(COLD, str(tmp_path)) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in processes] == ["True"] * 3
    assert (tmp_path / "log").read_text() == "compiled\n"
