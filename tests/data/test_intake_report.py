import pickle

from kerneltrail.data import IntakeReport
from kerneltrail.data.frozen_dict import FrozenDict


def test_it_reads_as_sentences() -> None:
    report = IntakeReport(
        rows_read=10,
        rows_kept=2,
        dropped={"hour": {f"u{i}": i for i in range(1, 8)}},
        idle={"chance": dict.fromkeys("abcdef", 1)},
        unsorted=("a", "b", "c", "d", "e", "f", "g"),
        certain={"ann": 2},
        impossible={"bob": 1},
        notes=("a note",),
    )
    assert str(report).splitlines() == [
        "10 rows read, 2 kept",
        "dropped, hour missing: 28 rows (u7 7, u6 6, u5 5, u4 4, u3 3, 2 users more)",
        "chance missing where the user was not available, taken as 0: 6 rows (a 1, b 1, c 1, d 1, e 1, 1 user more)",
        "sorted into time order: a, b, c, d, e and 2 more",
        "suspicious, probability exactly 0 or 1 although the user was available, so nothing was drawn: 2 rows (ann 2)",
        "suspicious, action 1 although the user was not available: 1 row (bob 1)",
        "a note",
    ]
    assert pickle.loads(pickle.dumps(report)) == report
    assert hash(report) == hash(pickle.loads(pickle.dumps(report)))


def test_one_row_is_a_row() -> None:
    assert str(IntakeReport(rows_read=1, rows_kept=1)) == "1 row read, 1 kept"


def test_frozen_mappings_are_values() -> None:
    mapping = FrozenDict({"a": 1}, b=2)
    assert mapping == {"a": 1, "b": 2}
    assert hash(mapping) == hash(FrozenDict(b=2, a=1))
    assert pickle.loads(pickle.dumps(mapping)) == mapping
    assert repr(mapping) == "{'a': 1, 'b': 2}"
    assert (len(mapping), "a" in mapping) == (2, True)


def test_a_user_who_was_refused_is_told_in_a_sentence() -> None:
    report = IntakeReport(refused={"ann": "user 'ann': column 'x' is 'a'", "bob": "column 'x' is missing"})
    ann, bob = report.left_out
    assert ann == "user 'ann' is left out: column 'x' is 'a'"
    assert bob == "user 'bob' is left out: column 'x' is missing"
