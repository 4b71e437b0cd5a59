"""What the page on a participant says in words."""

from collections import Counter

import pytest

from kerneltrail.trial.dashboard.person import _counts


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ({}, "No decision has been made yet."),
        ({"nobody": 1}, "1 decision. At it nobody could act."),
        ({"nobody": 3}, "3 decisions. At all of them nobody could act."),
        ({"not sent": 1}, "1 decision. It was not sent."),
        ({"arrived": 1}, "1 decision. It was sent; it arrived."),
        ({"lost": 1}, "1 decision. It was sent; it did not arrive."),
        ({"nobody": 1, "sent": 1},
         "2 decisions. At 1 of them nobody could act. The other one was sent; nobody has reported whether it arrived."),
        ({"not sent": 2}, "2 decisions. Of these, none was sent."),
        ({"not sent": 2, "lost": 1}, "3 decisions. Of these, 1 was sent; it did not arrive."),
        ({"nobody": 2, "not sent": 1, "arrived": 2, "lost": 1},
         "6 decisions. At 2 of them nobody could act. Of the other 4, 3 were sent: 2 arrived and 1 did not arrive."),
        ({"arrived": 2}, "2 decisions. Of these, 2 were sent: 2 arrived."),
    ],
)  # fmt: skip
def test_what_became_of_decisions_is_said_without_zeros(marks, words):
    assert _counts(sum(marks.values()), Counter(marks)) == words
