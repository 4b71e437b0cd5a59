"""The mark that all is compiled is that of all sources with compiled functions."""

import os
import shutil
from pathlib import Path

import pytest

import kerneltrail.gp
import kerneltrail.kernels
from kerneltrail.gp import compilation

SOURCES = [
    path
    for package in (kerneltrail.gp, kerneltrail.kernels)
    for path in sorted(Path(package.__file__).parent.rglob("*.py"))
    if "@numba.njit" in path.read_text(encoding="utf-8")
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


def test_there_are_some_among_the_kernels():
    assert "compiled" in {path.parent.name for path in SOURCES}
