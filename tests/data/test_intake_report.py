import pickle

from kerneltrail.data import IntakeReport
from kerneltrail.data.frozen_dict import FrozenDict


def test_it_reads_as_sentences() -> None:
    report = IntakeReport(
        rows_read=10,
        rows_kept=2,
        dropped={"hour": {f"u{i}": i for i in range(1, 8)}},
        unsorted=("a", "b", "c", "d", "e", "f", "g"),
        notes=("a note",),
    )
    assert str(report).splitlines() == [
        "10 rows read, 2 kept",
        "dropped, hour missing: 28 rows (u7 7, u6 6, u5 5, u4 4, u3 3, 2 users more)",
        "sorted into time order: a, b, c, d, e and 2 more",
        "a note",
    ]
    assert pickle.loads(pickle.dumps(report)) == report
    assert hash(report) == hash(pickle.loads(pickle.dumps(report)))


def test_frozen_mappings_are_values() -> None:
    mapping = FrozenDict({"a": 1}, b=2)
    assert mapping == {"a": 1, "b": 2}
    assert hash(mapping) == hash(FrozenDict(b=2, a=1))
    assert pickle.loads(pickle.dumps(mapping)) == mapping
    assert repr(mapping) == "{'a': 1, 'b': 2}"
    assert (len(mapping), "a" in mapping) == (2, True)
