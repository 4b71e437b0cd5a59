"""Figures: what is drawn, in which units and with which labels; the same input gives the same file."""

import numpy as np
import pytest

from kerneltrail.report import figures
from kerneltrail.report.figures import Curve, Dots, Panel
from report.spacing import room_above_titles

X = np.linspace(0.0, 10.0, 30)
CURVE = Curve(X, np.sin(X), np.full(30, 0.2), (np.sin(X) - 1.959964 * 0.5, np.sin(X) + 1.959964 * 0.5))


def panel(title="a", **others):
    return Panel(title, "hour (hours)", "steps", CURVE, (Dots(X, np.sin(X), "observed"),), **others)


def labels(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_a_grid_has_one_panel_each_and_one_legend():
    figure = figures.grid([panel("a"), panel("b"), panel("c")], columns=2, share=False)
    shown = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title(loc="left") for ax in shown] == ["a", "b", "c"]
    assert all(ax.get_xlabel() == "hour (hours)" and ax.get_ylabel() == "steps" for ax in shown)
    assert labels(figure) == ["95% of new observations", "95% of the function", "mean", "observed"]


def test_shared_axes_are_labelled_at_the_edge_and_under_a_gap():
    figure = figures.grid([panel("a"), panel("b"), panel("c")], columns=2, share=True)
    a, b, c = (ax for ax in figure.axes if ax.axison)
    assert [ax.get_xlabel() for ax in (a, b, c)] == ["", "hour (hours)", "hour (hours)"]
    assert [ax.get_ylabel() for ax in (a, b, c)] == ["steps", "", "steps"]
    assert a.get_ylim() == b.get_ylim() == c.get_ylim()


def test_the_bands_hold_95_percent():
    figure = figures.grid([panel()], columns=1, share=False)
    wide, narrow = figure.axes[0].collections[:2]
    for band, sd in ((wide, 0.5), (narrow, 0.2)):
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx(np.sin(X).max() + figures.WITHIN_95 * sd)


def test_truth_and_zero_are_drawn_where_asked():
    plain = figures.grid([panel()], columns=1, share=False)
    full = figures.grid([panel(truth=(X, X), zero=True)], columns=1, share=False)
    assert len(full.axes[0].lines) == len(plain.axes[0].lines) + 2
    assert "truth" in labels(full)
    assert "truth" not in labels(plain)


def test_points_that_do_not_belong_together_are_joined_by_no_line():
    (ax,) = figures.grid([panel(apart=True)], columns=1, share=False).axes
    total, band, dots = ax.lines
    assert dots.get_linestyle() == "None"
    for bars, sd in ((total, 0.5), (band, 0.2)):
        ends = bars.get_ydata().reshape(-1, 3)
        assert np.isnan(ends[:, 2]).all()  # a gap after every bar
        assert ends[:, 1] == pytest.approx(np.sin(X) + figures.WITHIN_95 * sd)


def test_bands_need_not_be_as_wide_on_either_side():
    curve = Curve(X, np.zeros(30), np.ones(30), ends=(np.full(30, -1.0), np.full(30, 3.0)))
    (ax,) = figures.grid([Panel("a", "x", "y", curve)], columns=1, share=False).axes
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (-1.0, 3.0)


def test_names_and_dates_stand_at_the_axis():
    levels = Curve(np.array([0.0, 1.0]), np.zeros(2), np.ones(2))
    named = Panel("a", "part", "y", levels, apart=True, names=((0.0, "morning"), (1.0, "evening")))
    dated = Panel("b", "time", "y", Curve(19786.0 + X, np.sin(X), np.ones(30)), dates=True)
    figure = figures.grid([named, dated], columns=2, share=False)
    figures.svg(figure)  # ticks are chosen when it is drawn
    first, second = ([tick.get_text() for tick in ax.get_xticklabels()] for ax in figure.axes)
    assert first == ["morning", "evening"]
    assert "Mar" in figure.axes[1].xaxis.get_offset_text().get_text() + "".join(second)


@pytest.mark.parametrize("width", [figures.WIDE, figures.NARROW])
def test_a_title_keeps_off_the_panel_above_it(width):
    drawn = [
        figures.grid([panel("a"), panel("b")], columns=1, share=False, width=width),
        figures.histograms([figures.Bars("a", "x", (0, 1), (2,))] * 2, columns=1, width=width),
    ]
    for figure in drawn:
        assert room_above_titles(figure) >= 0.2


def test_estimates_name_the_rows_on_the_axis():
    value = np.array([2.0, 3.0])
    figure = figures.estimates((3, 187), value, value - 1, value + 1, truth=2.9, xlabel="rows", ylabel="period")
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["3", "187"]
    assert labels(figure) == ["truth", "estimate, with 95% interval"]
    without = figures.estimates((3, 187), value, value - 1, value + 1, truth=None, xlabel="rows", ylabel="period")
    assert labels(without) == ["estimate, with 95% interval"]


def test_a_forecast_marks_what_fell_outside():
    mean, ends = np.zeros(4), (np.full(4, -1.0), np.full(4, 1.95))
    inside = figures.forecast(mean, ends, np.array([0.0, 1.0, -1.0, 1.9]), xlabel="row", ylabel="y")
    assert "observed outside" not in labels(inside)
    outside = figures.forecast(mean, ends, np.array([0.0, 1.0, -1.0, 2.0]), xlabel="row", ylabel="y")
    assert "observed outside" in labels(outside)


def test_files_are_the_same_every_time():
    def make():
        return figures.grid([panel()], columns=1, share=False)

    assert figures.svg(make()) == figures.svg(make())
    assert figures.png(make()) == figures.png(make())
    assert figures.png(make()).startswith(b"\x89PNG")
    assert b"<text" not in figures.svg(make())  # letters are outlines: no font is needed to read it


def test_nothing_global_is_touched():
    import matplotlib

    before = dict(matplotlib.rcParams)
    figures.svg(figures.grid([panel()], columns=1, share=False))
    assert dict(matplotlib.rcParams) == before
