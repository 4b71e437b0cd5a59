"""Figures of recovery say what they were given."""

import pytest

from kerneltrail.report.confusion import Shares, confusion, shares
from kerneltrail.report.figures import NARROW, WIDE, png


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_confusion_matrix_has_every_count_and_frames_what_is_right(width):
    figure = confusion(["A", "B"], ["B", "A", ""], [[1, 48, 1], [50, 0, 7]], width=width)
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.texts] == ["1", "48", "1", "50", "0", "7"]
    assert [text.get_weight() for text in ax.texts] == ["normal", "bold", "normal", "bold", "normal", "normal"]
    assert [patch.get_xy() for patch in ax.patches] == [(0.5, -0.5), (-0.5, 0.5)]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["B", "A", "noise alone"]
    assert png(figure)[:4] == b"\x89PNG"
    # All of it is on the paper.
    box = ax.get_position()
    assert 0 < box.x0 < box.x1 < 1
    assert 0 < box.y0 < box.y1 < 1


def test_a_matrix_of_nobody_can_be_drawn():
    assert png(confusion(["A"], ["A"], [[0]]))[:4] == b"\x89PNG"


def test_shares_are_lines_with_intervals():
    lines = {"one": Shares([0.5, 1.0], [0.4, 0.9], [0.6, 1.0]), "two": Shares([0.2, 0.3], [0.1, 0.2], [0.3, 0.4])}
    figure = shares(lines, (3, 187), ylabel="right")
    (ax,) = figure.axes
    drawn = [container.lines[0].get_ydata().tolist() for container in ax.containers]
    assert drawn == [[0.5, 1.0], [0.2, 0.3]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["3", "187"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two"]
