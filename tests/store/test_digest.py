"""Digests of code change with the code: the library's, and that of a function from outside."""

import importlib.util

from kerneltrail.store import digest
from kerneltrail.store.digest import code_of, content_digest, library


def outside(path, text):
    """A function of a module that is not the library's."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("outside", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_function_from_outside_counts_with_its_module(tmp_path, monkeypatch):
    seen = []
    for text in ("def f(): return 1", "def f(): return 1", "def f(): return 2"):
        module = outside(tmp_path / "outside.py", text)
        monkeypatch.setitem(digest.sys.modules, "outside", module)
        seen.append(code_of(module.f))
    assert seen[0] == seen[1] != seen[2]
    assert all(each.startswith(library()) for each in seen)


def test_a_function_without_a_file_has_the_library_alone():
    told = {"__name__": "typed"}
    exec("def f(): return 1", told)
    assert code_of(told["f"]).split() == [library()]


def test_the_library_is_all_that_computes(monkeypatch, tmp_path):
    for folder in digest.COMPUTING:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.py").write_text(folder)
    (tmp_path / "report").mkdir()
    monkeypatch.setattr(digest, "HOME", tmp_path)
    made = library.__wrapped__
    before = made()
    (tmp_path / "report" / "page.py").write_text("shown")
    assert made() == before
    seen = {before}
    for folder in digest.COMPUTING:
        (tmp_path / folder / "one.py").write_text(f"{folder} changed")
        seen.add(made())
    (tmp_path / "gp" / "one.py").rename(tmp_path / "gp" / "two.py")
    seen.add(made())
    assert len(seen) == len(digest.COMPUTING) + 2


def test_all_that_computes_is_there():
    assert all((digest.HOME / folder / "__init__.py").is_file() for folder in digest.COMPUTING)


def test_a_folder_is_its_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.csv").write_text("1")
    before = content_digest(tmp_path / "a")
    (tmp_path / "a" / "x.csv").rename(tmp_path / "a" / "y.csv")
    assert content_digest(tmp_path / "a") != before
