"""Figures of an evaluation show every method at every batch."""

import numpy as np
import pytest

from kerneltrail.evaluation import Average, Difference
from kerneltrail.report.comparison_figures import by_batch, differences
from kerneltrail.report.figures import png

METHODS = [f"method {i}" for i in range(11)]


def averages(metric="rmse"):
    return [
        Average(name, t, metric, 1.0 + i + t, 0.5 + i, 2.0 + i + t, 0.9, 4, 4)
        for i, name in enumerate(METHODS)
        for t in range(3)
    ]


def test_every_method_has_a_line_of_its_own_and_the_first_stands_out():
    (ax,) = by_batch(averages(), "rmse", first="method 4").axes
    assert [c.get_label() for c in ax.containers] == METHODS
    lines = [container.lines[0] for container in ax.containers]
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(METHODS)
    assert max(lines, key=lambda line: line.get_linewidth()) is lines[4]
    for i, line in enumerate(lines):
        assert line.get_ydata() == pytest.approx([1.0 + i, 2.0 + i, 3.0 + i])
        assert np.round(np.asarray(line.get_xdata(), dtype=float)) == pytest.approx([0, 1, 2])


def test_times_run_on_a_log_scale():
    (ax,) = by_batch(averages("cpu_seconds"), "cpu_seconds", first=None).axes
    assert ax.get_yscale() == "log"


def test_values_far_from_all_others_are_left_outside():
    rows = [*averages(), Average("wild", 0, "rmse", 1e6, 1e5, 1e7, 0.9, 4, 4)]
    (ax,) = by_batch(rows, "rmse", first="method 10").axes
    low, high = ax.get_ylim()
    assert low < 0.5  # all intervals but the wild one's
    assert 14.0 < high < 30.0


def test_differences_have_a_panel_for_each_other_method():
    rows = [
        Difference("a", name, t, "rmse", 0.1 * scale, -0.1 * scale, 0.3 * scale, 0.9, 4, 4)
        for name, scale in (("b", 1.0), ("c", 100.0))
        for t in range(2)
    ]
    figure = differences(rows, "rmse")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["minus b", "minus c"]
    assert figure.get_suptitle().startswith("a: RMSE")
    assert figure.axes[0].get_ylim()[1] < 1.0 < figure.axes[1].get_ylim()[1]
    assert png(figure).startswith(b"\x89PNG")
    assert png(differences([], "rmse")).startswith(b"\x89PNG")
