import pickle
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import DataError


@pytest.fixture
def ann() -> User:
    return User(
        "ann",
        ("hour", "temperature"),
        [[8.0, 1.0], [12.0, 2.0], [18.0, 3.0], [20.0, 4.0]],
        [1.0, 2.0, 3.0, 4.0],
        (1, 3, 4),
        action=[0, 1, 0, 1],
        availability=[1, 1, 0, 1],
        probability=[0.6, 0.6, 0.0, 0.6],
        order=[10, 20, 30, 40],
    )


def test_prefixes_and_batches_cover_the_rows(ann: User) -> None:
    assert (ann.rows, ann.batches) == (4, 3)
    for t in range(ann.batches + 1):
        assert ann.upto(t).batches == t
    for t in range(1, ann.batches + 1):
        assert ann.upto(t - 1).extend(ann.batch(t)) == ann.upto(t)
    assert ann.upto(3) == ann
    assert ann.batch(2).y.tolist() == [2.0, 3.0]
    assert ann.batch(2).action is not None
    assert ann.batch(2).action.tolist() == [1.0, 0.0]


def test_before_the_first_batch_there_is_a_user_without_rows(ann: User) -> None:
    new = ann.upto(0)
    assert (new.rows, new.batches, new.X.shape) == (0, 0, (0, 2))
    assert new == User("ann", ann.covariates, [], [], (), [], [], [], np.array([], dtype=np.int64))
    assert new.extend(ann) == ann
    assert ann.extend(new) == ann


@pytest.mark.parametrize(("method", "t"), [("upto", -1), ("upto", 4), ("batch", 0), ("batch", 4)])
def test_batches_that_do_not_exist(ann: User, method: str, t: int) -> None:
    with pytest.raises(DataError, match=r"'ann' has .*batch"):
        getattr(ann, method)(t)


def test_arrays_are_copies_and_read_only(ann: User) -> None:
    X = np.ones((2, 1))
    user = User("bob", ("x",), X, [1, 2], (2,))
    X[:] = 7.0
    assert user.X.tolist() == [[1.0], [1.0]]
    for array in (ann.X, ann.y, ann.action, ann.order, ann.upto(2).X, pickle.loads(pickle.dumps(ann)).X):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_it_is_a_value(ann: User) -> None:
    again = pickle.loads(pickle.dumps(ann))
    assert again == ann
    assert hash(again) == hash(ann)
    assert again.fingerprint == ann.fingerprint
    assert len({ann, again}) == 1
    for other in (
        ann.with_y(ann.y + 1),
        ann.with_X(ann.X + 1),
        ann.with_name("eve"),
        ann.with_ends((2, 4)),
        ann.with_X(ann.X, ["hour", "heat"]),
        User("ann", ann.covariates, ann.X, ann.y, ann.ends),
    ):
        assert other != ann
        assert other.fingerprint != ann.fingerprint
    assert ann != "ann"


def test_fingerprint_of_a_known_user_does_not_change_between_versions() -> None:
    user = User("ann", ("x",), [[1.0]], [2.0], (1,))
    assert user.fingerprint == User("ann", ("x",), np.array([[1.0]]), (2,), [1]).fingerprint
    assert len(user.fingerprint) == 32


def test_a_last_digit_is_no_part_of_the_gist(ann: User) -> None:
    """A machine that sums in another order scales to another last digit."""
    for X, y in (
        (ann.X * (1 + 2e-16), ann.y),
        (ann.X, ann.y * (1 - 2e-16)),
        (ann.X, np.where(ann.y == 0, -1e-17, ann.y)),
    ):
        near = ann.with_X(X).with_y(y)
        assert near.gist == ann.gist
    large = ann.with_y(1e9 * ann.y + 0.1)
    assert large.with_y(np.nextafter(large.y, np.inf)).gist == large.gist
    for other in (ann.with_y(ann.y + 1e-5), ann.with_X(ann.X + 1e-5), ann.with_ends((2, 4)), ann.with_y(1e200 * ann.y)):
        assert other.gist != ann.gist
    assert ann.with_name("eve").gist == ann.gist


def test_where_its_rows_were_read_is_no_part_of_a_user(ann: User) -> None:
    placed = replace(ann, index=np.array([7, 3, 5, 9]))
    assert placed == ann
    assert (placed.fingerprint, placed.rows_digest) == (ann.fingerprint, ann.rows_digest)
    assert placed.index is not None
    assert not placed.index.flags.writeable
    middle = placed.batch(2).index
    assert middle is not None
    assert middle.tolist() == [3, 5]
    whole = placed.upto(1).extend(placed.batch(2)).extend(placed.batch(3)).with_name("eve").with_y(ann.y)
    assert pickle.loads(pickle.dumps(whole)).index.tolist() == [7, 3, 5, 9]
    assert placed.upto(1).extend(ann.batch(2)).index is None
    for wrong in ([1, 2], [0.0, 1.0, 2.0, 3.0], [-1, 0, 1, 2]):
        with pytest.raises(DataError, match="'ann': index must hold a table's row"):
            replace(ann, index=np.array(wrong))


def test_columns_by_name(ann: User) -> None:
    assert ann.column_index("temperature") == 1
    assert ann.columns(["temperature", "hour"]).tolist() == [[1, 8], [2, 12], [3, 18], [4, 20]]
    assert ann.columns([]).shape == (4, 0)
    with pytest.raises(DataError, match="'ann' has no column 'temprature'; did you mean 'temperature'"):
        ann.columns(["temprature"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"covariates": ()}, "at least one covariate"),
        ({"covariates": ("x", "x")}, "'x' is named twice"),
        ({"covariates": ("x", "a[b]")}, r"'a\[b\]' cannot be written"),
        ({"X": [[1.0], [2.0]]}, r"shape \(rows, 2\) for x, z, got \(2, 1\)"),
        ({"X": [[1.0, 2.0], [3.0, np.nan]]}, "covariate 'z' is nan in row 2 of 2"),
        ({"X": [[1.0, 2.0], ["a", 1.0]]}, "X must hold numbers, not text .*'a'.*: covariate 'x'"),
        ({"y": [1.0]}, r"target must have shape \(2,\)"),
        ({"y": [1.0, np.inf]}, "target is inf in row 2"),
        ({"ends": (1,)}, r"must end at the last row, 2; the ends are \[1\]"),
        ({"ends": ()}, "must end at the last row"),
        ({"ends": (0, 2)}, "increase from above 0"),
        ({"ends": (2, 2)}, "increase"),
        ({"ends": (1.5, 2)}, "whole numbers"),
        ({"action": [0, 2]}, "action must be 0 or 1, is 2 in row 2"),
        ({"action": [0, np.nan]}, "action must be 0 or 1, is nan in row 2"),
        ({"availability": [0.5, 1]}, "availability must be 0 or 1"),
        ({"probability": [0.5, 1.5]}, r"probability must lie in \[0, 1\], is 1.5 in row 2"),
        ({"probability": [0.5]}, "probability must have shape"),
        ({"order": [1, 2, 3]}, r"order must have shape \(2,\)"),
        ({"order": [2, 1]}, "oldest first, but order goes from 2 to 1"),
        ({"order": [1.0, np.nan]}, "oldest first"),
        (
            {"X": [[1.0, 2.0], [1.0, 2.0 + 1.0j]]},
            r"X must hold numbers, not complex numbers \(.* at \(1, 1\)\): covariate 'z'",
        ),
        (
            {"X": np.array([["2020-01-01", "2021-01-01"]] * 2, "datetime64[ns]")},
            "not dates and times .*: covariate 'x'",
        ),
        ({"X": [[1.0, np.datetime64("2020-01-01")], [1.0, 2.0]]}, "not dates and times .*: covariate 'z'"),
        ({"X": [[1.0, 2.0], [1.0, datetime(2020, 1, 1)]]}, "X must hold numbers, not objects .*: covariate 'z'"),
        ({"y": np.array([1, 2], "timedelta64[s]")}, "the target must hold numbers, not durations"),
        ({"y": [1.0, 1j]}, "the target must hold numbers, not complex numbers"),
        ({"action": np.array([0, 1], complex)}, "action must hold numbers, not complex"),
        ({"probability": np.array([0, 1], "datetime64[s]")}, "probability must hold numbers, not dates"),
        ({"order": [1j, 2.0]}, "order must hold numbers, times or texts"),
        ({"X": [[1.0, 2.0], [1e300, 4.0]]}, r"covariate 'x' is 1e\+300 in row 2 of 2; it must be at most 1e\+50"),
        ({"covariates": "xz"}, r"list of names, such as \['xz'\]"),
    ],
)
def test_what_is_refused_names_user_and_place(change: dict[str, object], message: str) -> None:
    good = {"name": "ann", "covariates": ("x", "z"), "X": [[1.0, 2.0], [3.0, 4.0]], "y": [1.0, 2.0], "ends": (2,)}
    with pytest.raises(DataError, match=message) as caught:
        User(**{**good, **change})  # type: ignore[arg-type]
    assert "'ann'" in str(caught.value)


def test_extend_refuses_other_columns(ann: User) -> None:
    plain = User("ann", ann.covariates, ann.X, ann.y, ann.ends)
    with pytest.raises(DataError, match="action is known for only some"):
        ann.extend(plain)
    times = User("ann", ("x",), [[1.0]], [1.0], (1,), order=np.array(["2020-01-01"], dtype="datetime64[us]"))
    count = User("ann", ("x",), [[1.0]], [1.0], (1,), order=[3])
    assert times != count
    with pytest.raises(DataError, match="ordered by int64, the new rows by datetime64"):
        count.extend(times)
    with pytest.raises(DataError, match="oldest first"):
        count.extend(User("ann", ("x",), [[1.0]], [1.0], (1,), order=[2]))
    with pytest.raises(DataError, match="the new rows have a, b"):
        ann.extend(plain.with_X(plain.X, ["a", "b"]))


def test_the_newest_rows_are_one_batch(ann: User) -> None:
    assert ann.newest(2) == ann.with_ends((2, 4)).batch(2)
    assert ann.newest(9) == ann.with_ends((4,))
    assert ann.upto(0).newest(3) == ann.upto(0)
    assert ann.newest(0).ends == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ann: ann.with_y([1.0, 2.0]), r"'ann': the target must have shape \(4,\)"),
        (lambda ann: ann.with_y([1.0, 2.0, np.nan, 0.0]), "'ann': the target is nan in row 3 of 4"),
        (lambda ann: ann.with_X(ann.X[:2]), "'ann': X must have 4 rows like the target, got 2"),
        (lambda ann: ann.with_X(ann.X[:, :1]), r"shape \(rows, 2\) for hour, temperature, got \(4, 1\)"),
        (lambda ann: ann.with_X(np.where(ann.X == 3.0, np.inf, ann.X)), "covariate 'temperature' is inf in row 3"),
        (lambda ann: ann.with_ends((2,)), "'ann': the last batch must end at the last row, 4"),
    ],
)
def test_what_is_changed_is_checked(ann: User, change, message: str) -> None:
    with pytest.raises(DataError, match=message):
        change(ann)


def test_a_changed_user_is_the_one_made_of_the_same_contents(ann: User) -> None:
    known = ann.fingerprint, ann.rows_digest
    for changed, contents in (
        (ann.with_y(ann.y + 1.0), {"y": ann.y + 1.0}),
        (ann.with_X(ann.X * 2.0), {"X": ann.X * 2.0}),
        (ann.with_name("bob"), {"name": "bob"}),
        (ann.with_ends((4,)), {"ends": (4,)}),
    ):
        made = replace(ann, **contents)
        assert changed == made
        assert (changed.fingerprint, changed.rows_digest) == (made.fingerprint, made.rows_digest)
        assert changed.fingerprint != known[0]
        for array in (changed.X, changed.y, changed.action, changed.order):
            assert not array.flags.writeable
    grown = ann.upto(1).extend(ann.batch(2))
    assert not grown.X.flags.writeable
    assert not grown.action.flags.writeable
    assert grown.fingerprint == ann.upto(2).fingerprint


def test_the_same_rows_with_another_target_share_memory_and_a_callers_array_is_copied():
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    user = User("ann", ("a", "b"), X, y, (2, 4))
    assert user.with_y(y + 1.0).X is user.X
    X[0, 0] = 99.0
    assert user.X[0, 0] == 0.0
    view = np.arange(8.0).reshape(4, 2)[:, :]
    view.setflags(write=False)  # what it is a view of can still be written to
    assert not np.shares_memory(User("bob", ("a", "b"), view, y, (4,)).X, view)
