"""How far apart panels of a figure stand."""

from matplotlib.backends.backend_agg import FigureCanvasAgg


def room_above_titles(figure):
    """Inches between a panel's title and the label of the panel above it in the same column, the least of all."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # places are chosen when it is drawn
    shown = [ax for ax in figure.axes if ax.axison]
    renderer = canvas.get_renderer()

    def span(ax):
        title = ax._left_title.get_window_extent(renderer)
        label = ax.xaxis.label.get_window_extent(renderer)
        return title.y1, label.y0

    gaps = [
        (span(above)[1] - span(below)[0]) / figure.dpi
        for above in shown
        for below in shown
        if below.get_subplotspec().rowspan.start == above.get_subplotspec().rowspan.stop
        and below.get_subplotspec().colspan == above.get_subplotspec().colspan
    ]
    return min(gaps)
