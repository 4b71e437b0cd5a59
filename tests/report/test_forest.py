"""Forest plots: a line for every user, filled where it is clear."""

from matplotlib.colors import to_hex

from kerneltrail.report.figures import BLUE, NARROW, WIDE
from kerneltrail.report.forest import Estimate, ForestPanel, forest
from report.spacing import room_above_titles

PANEL = ForestPanel("hour", "change", [Estimate(1.0, 0.5, 1.5, True, "0.99"), Estimate(0.1, -0.4, 0.6, False), None])
NAMES = ["ann", "bob", "cy"]


def test_every_user_has_a_line_from_end_to_end_and_a_dot():
    (ax,) = forest(NAMES, [PANEL]).axes
    lines = [line.get_xdata() for line in ax.lines if len(set(line.get_ydata())) == 1 and line.get_color() == BLUE]
    assert [list(map(float, line)) for line in lines] == [[0.5, 1.5], [-0.4, 0.6]]
    filled, hollow = (to_hex(dot.get_facecolors()[0]) for dot in ax.collections)
    assert (filled, hollow) == (BLUE.lower(), "#ffffff")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == NAMES
    texts = [text.get_text().strip() for text in ax.texts]
    assert texts == ["0.99", "not found to matter"]


def test_the_first_name_is_at_the_top():
    (ax,) = forest(NAMES, [PANEL]).axes
    bottom, top = ax.get_ylim()
    assert bottom > 2 > 0 > top


def test_panels_stand_side_by_side_or_below_one_another():
    wide, narrow = forest(NAMES, [PANEL] * 4), forest(NAMES, [PANEL] * 4, width=NARROW)
    assert len({round(ax.get_subplotspec().colspan.start) for ax in wide.axes}) == 2  # not three and one
    assert len({ax.get_subplotspec().colspan.start for ax in forest(NAMES, [PANEL] * 5).axes}) == 3
    assert {ax.get_subplotspec().colspan.start for ax in narrow.axes} == {0}
    assert sum(ax.axison for ax in wide.axes) == 4


def test_a_title_keeps_off_the_panel_above_it():
    for width in (WIDE, NARROW):
        assert room_above_titles(forest(NAMES, [PANEL] * 4, width=width)) >= 0.2
