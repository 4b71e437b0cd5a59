"""Figures of selection: bars add up, labels say what is drawn."""

import numpy as np
import pytest

from kerneltrail.report import figures
from kerneltrail.studies.selection_figures import Chances, Shares, Tally, chances, confusion, shares, tallies

COLOURS = {"LIN[x]": "#0072B2", "SE[x]": "#E69F00"}
FOUND = (Tally("LIN[x]", (1, 2), (1, 0)), Tally("SE[x]", (2, 2), (0, 0)))


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_probabilities_are_stacked_to_the_top():
    user = Chances("anna, truly SE[x]", (3, 7), {"LIN[x]": [0.7, 0.1], "SE[x]": [0.3, 0.9]})
    figure = chances([user, user, user], COLOURS, columns=2)
    ax, *_, spare = figure.axes
    assert ax.get_title(loc="left") == "anna, truly SE[x]"
    assert max(bar.get_y() + bar.get_height() for bar in ax.patches) == pytest.approx(1.0)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["3", "7"]
    assert [text.get_text() for text in ax.texts] == ["70", "30", "90"]  # 10% has no room for letters
    assert not spare.axison
    assert legend(figure) == ["LIN[x]", "SE[x]"]


def test_tallies_count_users_and_hatch_mistakes():
    figure = tallies(FOUND, (3, 187), COLOURS)
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.texts] == ["2", "2", "2", "2"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["3\n3/4", "187\n4/4"]
    assert sum(bar.get_height() for bar in ax.patches if bar.get_hatch()) == 1
    assert sum(bar.get_height() for bar in ax.patches) == 8
    assert legend(figure) == ["LIN[x]", "SE[x]", "not the true kernel"]
    assert legend(tallies((FOUND[1],), (3, 187), COLOURS)) == ["SE[x]"]


def test_bars_of_one_size_do_not_overlap():
    (ax,) = tallies(FOUND, (3, 187), COLOURS).axes
    spans = sorted({(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches})
    assert len(spans) == 4
    assert all(np.diff(np.array(spans).ravel()) > 0)


def test_files_are_the_same_every_time():
    assert figures.svg(tallies(FOUND, (3, 187), COLOURS)) == figures.svg(tallies(FOUND, (3, 187), COLOURS))


@pytest.mark.parametrize("width", [figures.WIDE, figures.NARROW])
def test_a_confusion_matrix_has_every_count_and_frames_what_is_right(width):
    figure = confusion(["A", "B"], ["B", "A", ""], [[1, 48, 1], [50, 0, 7]], width=width)
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.texts] == ["1", "48", "1", "50", "0", "7"]
    assert [text.get_weight() for text in ax.texts] == ["normal", "bold", "normal", "bold", "normal", "normal"]
    assert [patch.get_xy() for patch in ax.patches] == [(0.5, -0.5), (-0.5, 0.5)]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["B", "A", "noise alone"]
    assert figures.png(figure)[:4] == b"\x89PNG"
    # All of it is on the paper.
    box = ax.get_position()
    assert 0 < box.x0 < box.x1 < 1
    assert 0 < box.y0 < box.y1 < 1


def test_a_matrix_of_nobody_can_be_drawn():
    assert figures.png(confusion(["A"], ["A"], [[0]]))[:4] == b"\x89PNG"


def test_shares_are_lines_with_intervals():
    lines = {"one": Shares([0.5, 1.0], [0.4, 0.9], [0.6, 1.0]), "two": Shares([0.2, 0.3], [0.1, 0.2], [0.3, 0.4])}
    figure = shares(lines, (3, 187), ylabel="right")
    (ax,) = figure.axes
    drawn = [container.lines[0].get_ydata().tolist() for container in ax.containers]
    assert drawn == [[0.5, 1.0], [0.2, 0.3]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["3", "187"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two"]
