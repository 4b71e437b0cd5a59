"""What commands print as results, in a pipe and where a width is known."""

import pytest
from rich.table import Table

from kerneltrail.cli.terminal import results


@pytest.fixture
def wide():
    table = Table(*(f"column {i}" for i in range(14)))
    table.add_row(*("-1.234 (+0.567)" for _ in range(14)))
    return table


def test_a_table_in_a_pipe_loses_no_number(wide, monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    results().print(wide)
    printed = capsys.readouterr().out
    assert printed.count("-1.234 (+0.567)") == 14
    assert "…" not in printed


def test_a_width_that_is_stated_holds(wide, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    results().print(wide)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
