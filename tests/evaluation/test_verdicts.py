"""Who wins by the interval of a difference, and when."""

import pytest

from kerneltrail.evaluation.result import Difference
from kerneltrail.evaluation.verdicts import tally, verdict


@pytest.mark.parametrize(
    ("metric", "low", "high", "says"),
    [
        ("rmse", -2.0, -1.0, "wins"),
        ("rmse", 1.0, 2.0, "loses"),
        ("rmse", -1.0, 1.0, "ties"),
        ("log_density", 1.0, 2.0, "wins"),
        ("log_density", -2.0, -1.0, "loses"),
    ],
)
def test_verdicts(metric, low, high, says):
    assert verdict(metric, low, high) == says


def test_a_tally_counts_every_batch_once_and_one_metric_alone():
    def row(second, t, low, high, metric="rmse"):
        return Difference("us", second, t, metric, 0.5 * (low + high), low, high, 0.9, 6, 6)

    rows = [row("a", 0, -2, -1), row("a", 1, -1, 1), row("a", 2, -3, -1), row("b", 0, 1, 2)]
    found = tally([*rows, row("a", 3, 1, 2, "log_density")], "rmse")
    assert found == {
        "a": {"wins": (0, 2), "ties": (1,), "loses": ()},
        "b": {"wins": (), "ties": (), "loses": (0,)},
    }
