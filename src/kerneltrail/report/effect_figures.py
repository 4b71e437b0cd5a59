"""Effects as a figure: a small panel for each covariate, in data units, on one scale so that sizes can be compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kerneltrail.data import Schema
from kerneltrail.report.figures import BLUE, FAINT, TICKS, WIDE, is_narrow, legend, rule, styled
from kerneltrail.trajectory.effects import Effect

PANEL = 2.8
"""Inches that a panel needs at least."""
LETTERS = 28
"""Names of values share so many letters of the axis; longer ones are cut."""


def draw_effects(
    effects: Sequence[Effect], schema: Schema | None = None, *, title: str = "", width: float = WIDE
) -> Figure:
    """The effects in their order, each less its average over the user's rows, with 90 % bands.

    Effects whose direction is not clear are grey. The schema knows labels, units and names of values.
    """
    rows = max(1, -(-len(effects) // max(1, int(width // PANEL))))
    columns = max(1, -(-len(effects) // rows))  # four stand two by two, not three and one
    with styled(width, 2.3 * rows + (0.9 if title else 0.6), rows=rows) as figure:
        # Names may hold dollars, which are not mathematics here.
        if title:
            figure.suptitle(title, x=0.01, ha="left", size=10.5, weight="bold", parse_math=False)
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for index, (effect, ax) in enumerate(zip(effects, axes.flat, strict=False)):
            _draw(effect, schema, ax)
            if index % columns == 0:
                ax.set_ylabel(_ylabel(schema), parse_math=False)
        for ax in axes.flat[len(effects) :]:
            ax.set_axis_off()
        legend(figure, columns=2 if is_narrow(width) else 4)
    return figure


def _draw(effect: Effect, schema: Schema | None, ax: Axes) -> None:
    colour, sure = (BLUE, "clear") if effect.clear else (FAINT, "not clear")
    low, high = effect.curve.interval(0.9)
    mean = effect.curve.mean
    ax.axhline(0.0, color=FAINT, linewidth=1.0, zorder=1)
    label = f"{sure}, with 90 % band"
    if effect.shape == "levels":
        place = np.arange(len(effect.x))  # values stand side by side, whatever lies between them
        bars = [mean - np.minimum(low, mean), np.maximum(high, mean) - mean]
        ax.errorbar(place, mean, yerr=bars, fmt="o", markersize=4, color=colour, elinewidth=1.5, capsize=4, label=label)
        ax.set_xticks(place, _value_labels(effect, schema), parse_math=False)
        ax.set_xlim(-0.6, len(place) - 0.4)
    else:
        ax.fill_between(effect.x, low, high, color=colour, alpha=0.25, linewidth=0)
        ax.plot(effect.x, mean, color=colour, linewidth=1.8, label=label)
        ax.xaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
    name = effect.covariate if schema is None else schema.label(effect.covariate)
    ax.set_title(name, parse_math=False)
    ax.set_xlabel("" if schema is None else schema.unit(effect.covariate), parse_math=False)
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
    rule(ax)


def _value_labels(effect: Effect, schema: Schema | None) -> list[str]:
    most = max(3, LETTERS // len(effect.x))
    names = [(schema.name_of(effect.covariate, x) if schema is not None else None) or f"{x:.4g}" for x in effect.x]
    return [name if len(name) <= most else f"{name[: most - 1]}…" for name in names]


def _ylabel(schema: Schema | None) -> str:
    if schema is None:
        return "effect on the target"
    target, unit = schema.label(schema.target), schema.unit(schema.target)
    return f"effect on {target}" + (f"\n({unit})" if unit else "")
