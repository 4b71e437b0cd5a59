import builtins
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kerneltrail.data.table import read_table
from kerneltrail.errors import DataError


def test_every_frame_library_gives_the_same_values() -> None:
    times = [datetime(2020, 1, 1, 8), datetime(2020, 1, 2, 9)]
    columns = {"a": [1.5, None], "b": ["x", None], "t": times, "n": [1, 2], "flag": [True, False]}
    expected = read_table(columns).columns
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pl.LazyFrame(columns), pa.table(columns)):
        assert read_table(frame).columns == expected


def test_pandas_missing_values_of_every_kind_are_none() -> None:
    frame = pd.DataFrame(
        {
            "float": [1.0, np.nan],
            "Int64": pd.array([1, None], dtype="Int64"),
            "time": pd.to_datetime(["2020-01-01", None]),
            "object": ["a", pd.NA],
            "category": pd.Categorical(["a", None]),
        }
    )
    assert all(values[1] is None and values[0] is not None for values in read_table(frame).columns.values())


def test_arrays_as_columns_keep_their_times() -> None:
    table = read_table({"t": np.array(["2020-01-01T08:00"], dtype="datetime64[ns]"), "x": np.array([1.0])})
    assert table.columns == {"t": [datetime(2020, 1, 1, 8)], "x": [1.0]}


def test_series_and_arrays_of_other_libraries_as_columns() -> None:
    day = datetime(2020, 1, 1)
    for values in (pd.Series([1.5, None]), pl.Series([1.5, None]), pa.chunked_array([[1.5], [None]])):
        assert read_table({"x": values}).columns == {"x": [1.5, None]}
    scalars = [np.datetime64("2020-01-01", "ns"), np.datetime64("NaT")]
    assert read_table({"t": scalars, "x": [np.float32(1.5), np.nan]}).columns == {"t": [day, None], "x": [1.5, None]}
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    assert read_table({"x": masked}).columns == {"x": [1.0, None]}


def test_one_users_rows_are_found_in_the_whole_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("user,x\nann,1\nbob,2\n\nann,3\n", encoding="utf-8")
    table = read_table(path).of_one_user([0, 2], "user")
    assert table.columns == {"x": ["1", "3"]}
    assert [table.place(row) for row in range(2)] == ["row 1 (line 2)", "row 3 (line 5)"]


def test_csv_without_any_frame_library(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('\ufeffuser, x ,note\n1,2.5,"a, b\nc"\n\n2,NA,null\n', encoding="utf-8")
    table = read_table(path)
    assert table.columns == {"user": ["1", "2"], "x": ["2.5", None], "note": ["a, b\nc", None]}
    assert (table.source, table.rows, table.place(1)) == ("rows.csv", 2, "row 2 (line 5)")
    tabs = tmp_path / "rows.tsv"
    tabs.write_text("a\tb\n1\t\n")
    assert read_table(str(tabs)).columns == {"a": ["1"], "b": [None]}


def test_no_frame_library_is_imported_or_needed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("u,t,x,y\na,1,2,3\n")
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['pandas', 'polars', 'pyarrow']))\n"
        "from kerneltrail.data import Cohort\n"
        f"c = Cohort.from_table({str(path)!r}, user='u', order='t', target='y', covariates=['x'], batch_size=1)\n"
        "assert c.rows == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)


def test_a_blank_line_in_a_table_of_one_column_is_no_row_but_a_quoted_blank_is(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text('x\n1\n\n""\n2\n')
    assert read_table(path).columns == {"x": ["1", None, "2"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "a.csv is empty"),
        ("a.csv", "\n\n", "a.csv is empty"),
        ("a.csv", "x,y\n", "has columns x, y but no rows"),
        ("a.csv", "x,x\n1,2\n", "two columns named 'x'"),
        ("a.csv", "x,y\n1,2\n3\n", "line 3: 1 cells, but the header names 2"),
        ("a.csv", 'x,y\n"1"2,3\n', "a.csv, line 2: cannot be read as text separated by ','"),
        ("a.parquet", "PAR1nonsense", "cannot be read as Parquet"),
        ("a.xlsx", "x", "must be a .csv, .tsv or .parquet file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / name)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_in_another_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes("name,x\nann,1\nPär,2\n".encode(encoding))
    line = 3 if encoding == "latin-1" else 1
    wanted = f"a.csv, line {line}: letters are not in UTF-8; save it as UTF-8 (a spreadsheet offers 'CSV UTF-8')"
    with pytest.raises(DataError, match=f"^{re.escape(wanted)}$"):
        read_table(tmp_path / "a.csv")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        read_table(tmp_path / "a.csv")
    with pytest.raises(DataError, match="is not a file"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "has no columns"),
        ({"x": []}, "but no rows"),
        ({"x": [1], "y": [1, 2]}, "differ in length: x 1, y 2"),
        ({"x": "text"}, "'x' must be a sequence"),
        ({"x": 3}, "'x' must be a sequence"),
        ({"x": np.ones((2, 2))}, "one dimension"),
        (7, "got int"),
        ([{"x": 1}], "got list"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "'x'"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]), "'x'"),
        (pl.DataFrame({"x": []}), "but no rows"),
        (pd.DataFrame(), "has no columns"),
    ],
)
def test_tables_that_cannot_be_read(rows: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(rows)


def test_parquet_with_either_library_and_with_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"x": [1.0, None], "u": ["a", "b"]}).write_parquet(path)
    expected = {"x": [1.0, None], "u": ["a", "b"]}
    assert read_table(path).columns == expected
    real = builtins.__import__
    absent = {"polars"}

    def limited(name: str, *args: object, **keywords: object) -> object:
        if name.split(".")[0] in absent:
            raise ImportError(name)
        return real(name, *args, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", limited)
    assert read_table(path).columns == expected
    absent.add("pyarrow")
    with pytest.raises(DataError, match="needs polars or pyarrow"):
        read_table(path)


def test_unknown_columns_are_answered_with_the_nearest() -> None:
    table = read_table({"hour": [1], "temperature": [2]})
    with pytest.raises(DataError, match="no column 'Temperatur'; did you mean 'temperature'"):
        table.column("Temperatur")
    with pytest.raises(DataError, match="known are hour, temperature"):
        table.column("zzz")


@pytest.mark.parametrize(("mark", "word"), [(";", "';'"), ("|", "'|'"), ("\t", "tab")])
def test_a_file_with_another_separator_is_recognised_and_read_when_it_is_named(
    tmp_path: Path, mark: str, word: str
) -> None:
    (tmp_path / "pilot.csv").write_text(f"user{mark}hour\nanna{mark}8\n")
    advice = f"one name with {mark!r} in it: read the table with --delimiter {word}"
    with pytest.raises(DataError, match=re.escape(advice)):
        read_table(tmp_path / "pilot.csv").column("user")
    for delimiter in (mark, word.strip("'")):
        assert read_table(tmp_path / "pilot.csv", delimiter=delimiter).columns == {"user": ["anna"], "hour": ["8"]}


def test_decimal_commas_in_a_file_with_semicolons_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "pilot.csv").write_text("user;temp\nanna;36,6\n")
    with pytest.raises(DataError, match=re.escape("with --delimiter ';' --decimal , (delimiter=")):
        read_table(tmp_path / "pilot.csv")
    (tmp_path / "pilot.csv").write_text("user,temp\nanna,36,6\n")
    with pytest.raises(DataError, match="numbers with decimal commas have to stand in quotes"):
        read_table(tmp_path / "pilot.csv")
    (tmp_path / "pilot.csv").write_text("user,hour\nanna,36\n")
    with pytest.raises(DataError, match="its header is one name with ',' in it"):
        read_table(tmp_path / "pilot.csv", delimiter=";").column("user")


@pytest.mark.parametrize("rows", ["a,36.6,b\na,36.5,b,\n", "a,36.6,at home, in bed\n", "a,36,b\na,37,b\na,38,b,c\n"])
def test_one_comma_too_many_is_no_decimal_comma(tmp_path: Path, rows: str) -> None:
    (tmp_path / "pilot.csv").write_text(f"user,temp,place\n{rows}")
    said = r"4 cells, but the header names 3; is there a comma in a cell\? Such a cell has to stand in quotes$"
    with pytest.raises(DataError, match=said):
        read_table(tmp_path / "pilot.csv")
    (tmp_path / "pilot.csv").write_text("user,temp,place\na,36\n")
    with pytest.raises(DataError, match=r"2 cells, but the header names 3$"):
        read_table(tmp_path / "pilot.csv")


HEADER = "name;when;temp\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{HEADER}"Tess ""T""";1;3.5\n', "line 2: cannot be read .*one name with ';' in it: .*--delimiter ';' [(]"),
        (f'{HEADER}"Tess ""T""";1;3,5\n', "one name with ';' in it: .* --delimiter ';' --decimal , [(]"),
        (f"{HEADER}Smith, Ann;1;3.5\n", "one name with ';' in it: .* --delimiter ';' [(]"),
        (f"{HEADER}Smith, Ann;1;3\n", "one name with ';' in it: .* --delimiter ';' [(]"),
        (f"{HEADER}Smith, Ann;1;1,024\nBo;1;3.5\n", "one name with ';' in it: .* --delimiter ';' [(]"),
        (f"{HEADER}Smith, Ann;1;3,5\n", "one name with ';' in it: .* --delimiter ';' --decimal , [(]"),
        ("name;when;temp, °C\nAnn;1;3.5;x\n", "header seems to be separated by ';': .* --delimiter ';' [(]"),
        ("name|when|temp\nSmith, Ann|1|3.5\n", "one name with '[|]' in it: .* --delimiter '[|]' [(]"),
        ("name\twhen\ttemp\nAnn\t1\t3,5\n", "in it: .* --delimiter tab --decimal , [(]"),
    ],
)
def test_the_header_tells_what_separates_columns_and_cells_how_decimals_are_written(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_table(tmp_path / "a.csv")


def test_a_comma_in_the_header_and_in_every_row_hides_no_semicolons(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name;temp, °C\nann;3,5\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"no column 'name'; its header seems to be separated by ';': read .*--delimiter ';'"
    ):
        read_table(tmp_path / "a.csv").column("name")


@pytest.mark.parametrize("delimiter", ["", ";;", "a", ".", '"', "\n", 3])
def test_signs_that_separate_nothing(delimiter: str) -> None:
    with pytest.raises(DataError, match="columns can be separated by one sign"):
        read_table({"x": [1]}, delimiter=delimiter)


def test_signs_that_are_no_decimal_ones() -> None:
    with pytest.raises(DataError, match=r"come after '\.' or ',', not after ';'"):
        read_table({"x": [1]}, decimal=";")
