"""Tables that a spreadsheet opens: texts stay texts, numbers stay numbers."""

import csv
import io

import pytest

from kerneltrail.evaluation.tables import csv_text


def cells(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+cmd|'/c calc'!A0", "-2+3", "\t=1", "\r=1", '=HYPERLINK("x")'])
def test_a_name_is_never_a_formula(name):
    assert cells(csv_text(["user", name], [{"user": name, name: [name, "b"]}])) == [
        ["user", f"'{name}"],
        [f"'{name}", f"'{name};b"],
    ]


def test_other_cells_are_as_they_are():
    row = {"user": "ann", "loss": -0.5, "count": -3, "none": None, "least": "-inf", "names": ["a", "b"], "mail": "a@b"}
    assert cells(csv_text(list(row), [row])) == [list(row), ["ann", "-0.5", "-3", "", "-inf", "a;b", "a@b"]]


def test_missing_cells_are_empty_and_unknown_columns_refused():
    assert csv_text(["a", "b"], [{"b": 1}, {}]) == "a,b\n,1\n,\n"
    with pytest.raises(ValueError, match="c"):
        csv_text(["a"], [{"c": 1}])
