"""Errors beside those of simple rules, against plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.gp import Prediction
from kerneltrail.report.model_page import follow_users
from kerneltrail.report.model_page.errors import compared, errors_section
from trajectory.small import rows, small_model


@pytest.fixture(scope="module")
def followed():
    return follow_users(small_model(), [rows(f"u{i}", n=8 + 4 * (i % 2), seed=20 + i) for i in range(4)])


def test_errors_are_over_all_rows_but_those_of_the_first_batch(followed):
    (row,) = compared(followed)
    ours, theirs = [], []
    for one in followed:
        for t in range(2, one.user.batches + 1):
            mean = sum(one.user.upto(t - 1).y) / one.user.upto(t - 1).rows
            for y, guess in zip(one.user.batch(t).y, one.ahead[t - 1].mean, strict=True):
                ours.append((y - guess) ** 2)
                theirs.append((y - mean) ** 2)
    assert row.rule == "running mean"
    assert (row.ours, row.theirs) == pytest.approx((np.sqrt(np.mean(ours)), np.sqrt(np.mean(theirs))))
    assert row.difference.users == 4


def scaled(one, ours, theirs):
    """The user with these errors, of one size, in the second batch."""
    y = np.array([1.0, -1.0] * 4)
    prediction = Prediction((1.0 - ours) * y, np.ones(8), 0.0)
    ahead = replace(one.ahead[1], y=y, prediction=prediction, simple={"running mean": (1 - theirs) * y})
    return replace(one, ahead=(one.ahead[0], ahead))


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ([1.0, 1.1, 1.2, 1.0], [2.0, 2.2, 2.1, 2.0], "48 % smaller. User by user, over 4 users, it is smaller"),
        ([2.0, 2.2, 2.1, 2.0], [1.0, 1.1, 1.2, 1.0], "93 % larger. User by user, over 4 users, it is larger"),
        ([1.0, 3.0, 1.0, 3.0], [2.0, 2.0, 2.0, 2.2], "over 4 users, it is not clearly different"),
    ],
)
def test_the_word_is_chosen_by_the_interval_of_the_difference(followed, ours, theirs, said):
    users = [scaled(one, a, b) for one, a, b in zip(followed, ours, theirs, strict=True)]
    section = errors_section(users, small_model().schema)
    assert said in section.blocks[1].blocks[0].items[0]
    assert "32 rows of 4 users" in section.blocks[0].text


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (
            [1.0, 1.1, 1.2, 1.0],
            [1.0, 1.1, 1.2, 1.0],
            "error is the same, to the digits shown. User by user, over 4 users",
        ),
        ([1.0, 1.1, 1.2, 1.035], [1.0, 1.1, 1.2, 1.028], "error is less than 1 % larger. User by user, over 4 users"),
        ([1.0, 1.1, 1.2, 0.985], [1.0, 1.1, 1.2, 1.0], "error is less than 1 % smaller. User by user, over 4 users"),
        ([1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0], "not clearly different (no difference on average, 90 % interval"),
    ],
)
def test_a_difference_of_nothing_is_not_told_in_numbers(followed, ours, theirs, said):
    users = [scaled(one, a, b) for one, a, b in zip(followed, ours, theirs, strict=True)]
    (sentence,) = errors_section(users, small_model().schema).blocks[1].blocks[0].items
    assert said in sentence
    assert "0 % less" not in sentence


def test_one_user_says_nothing_of_others(followed):
    section = errors_section(followed[:1], small_model().schema)
    assert "with one user nothing can be said of others" in section.blocks[1].blocks[0].items[0]
    assert errors_section([replace(followed[0], ahead=followed[0].ahead[:1])], small_model().schema) is None
