import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.data import Batching
from kerneltrail.errors import DataError


@given(kept=st.lists(st.booleans(), max_size=60), size=st.integers(1, 20))
def test_by_size_counts_kept_rows(kept: list[bool], size: int) -> None:
    ends = Batching(size=size).cut("ann", kept, None)
    assert (ends[-1] if ends else 0) == sum(kept)
    lengths = [b - a for a, b in zip((0, *ends), ends, strict=False)]
    assert all(length == size for length in lengths[:-1])
    assert all(1 <= length <= size for length in lengths)


@given(rows=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40))
def test_by_column_and_by_ends_agree_and_lose_empty_batches(rows: list[tuple[bool, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    kept = [row[0] for row in rows]
    labels = [str(row[1]) for row in rows]
    marks = [i for i in range(1, len(rows)) if labels[i] != labels[i - 1]] + [len(rows)]
    by_column = Batching(column="b").cut("ann", kept, labels)
    assert by_column == Batching(ends=tuple(marks)).cut("ann", kept, None)
    assert by_column == Batching(ends_of={"ann": tuple(marks)}).cut("ann", kept, None)
    assert len(by_column) == len({label for keep, label in zip(kept, labels, strict=True) if keep})


def test_edges() -> None:
    assert Batching(size=40).cut("ann", [True] * 7, None) == (7,)
    assert Batching(size=7).cut("ann", [True] * 7, None) == (7,)
    assert Batching().cut("ann", [True, False, True], None) == (2,)
    assert Batching(ends=(3, 7, 17)).cut("ann", [True] * 10, None) == (3, 7, 10)
    assert Batching(ends=(3, 7)).cut("ann", [True] * 10, None) == (3, 7, 10)
    assert Batching(ends=(3, 7)).cut("ann", [False] * 10, None) == ()


@pytest.mark.parametrize(
    "rule",
    [Batching(), Batching(size=40), Batching(column="day"), Batching(ends=(3, 7)), Batching(ends_of={"a": (2,)})],
)
def test_json_round_trip(rule: Batching) -> None:
    assert Batching.from_json(json.loads(json.dumps(rule.to_json()))) == rule
    assert hash(rule) == hash(Batching.from_json(rule.to_json()))


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="one way only"):
        Batching(size=3, column="b")
    for arguments in ({}, {"batch_size": 3, "ends": [3]}):
        with pytest.raises(DataError, match="batch_size=, batch_column= or ends="):
            Batching.of(**arguments)  # type: ignore[arg-type]
    for size in (0, -1, 1.5, True):
        with pytest.raises(DataError, match="whole number of at least 1"):
            Batching(size=size)  # type: ignore[arg-type]
    for ends in ((), (0, 2), (3, 2), (1.5, 2)):
        with pytest.raises(DataError, match="increase from above 0"):
            Batching(ends=ends)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"batch '1' of user 'ann' comes back .*row 3"):
        Batching(column="b").cut("ann", [True] * 3, ["1", "2", "1"])
    rule = Batching.of(ends={"ann": [2]})
    with pytest.raises(DataError, match="'ann' has 3 rows, but its last batch is said to end at row 2"):
        rule.cut("ann", [True] * 3, None)
    with pytest.raises(DataError, match="user 'anne'; did you mean 'ann'"):
        rule.cut("anne", [True] * 3, None)
