"""One direction: a room imports only from the rooms before it, and no import hides inside a function."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "kerneltrail"
GROUND = ("errors", "names", "registry", "plugins", "progress", "views")
ROOMS = (
    "store", "engines", "kernels", "data", "gp", "trajectory", "methods", "evaluation", "report", "trial", "adapters",
    "studies", "cli",
)  # fmt: skip
ORDER = {name: place for place, name in enumerate((*GROUND, *ROOMS))}
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(tree):
    """Every module of the package that a file imports: its room, its line, and whether a function does it."""
    inner = {id(node) for outer in ast.walk(tree) if isinstance(outer, ast.FunctionDef) for node in ast.walk(outer)}
    for node in ast.walk(tree):
        modules = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module == "kerneltrail":
            modules = [f"kerneltrail.{alias.name}" for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "kerneltrail" and len(parts) > 1:
                yield parts[1], node.lineno, id(node) in inner


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_only_from_rooms_before_its_own(path):
    room = room_of(path)
    if room == "__init__":
        pytest.skip("the public names come from every room")
    assert room in ORDER, f"{room} is not in the order of rooms"
    for other, line, hidden in imported(ast.parse(path.read_text())):
        assert ORDER[other] <= ORDER[room], f"{path}:{line}: {room} imports {other}, which comes after it"
        # A command's modules are imported when it runs, so that `--help` and a refused option answer at once.
        assert not hidden or room == "cli", f"{path}:{line}: an import inside a function hides what depends on what"


def test_every_room_is_there():
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert there <= set(ROOMS)


def test_a_wrong_direction_would_be_seen():
    found = list(imported(ast.parse("def f():\n    from kerneltrail.cli import app\nimport kerneltrail.gp\n")))
    assert sorted(found) == [("cli", 2, True), ("gp", 3, False)]
