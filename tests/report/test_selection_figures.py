"""Figures of selection: bars add up, labels say what is drawn."""

import numpy as np
import pytest

from kerneltrail.report import figures
from kerneltrail.report.selection_figures import Chances, Tally, chances, tallies

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
