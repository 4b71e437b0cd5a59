"""Figures of a study of designs: policies side by side, and probabilities beside what was drawn."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure

from kerneltrail.report.comparison_figures import COLOURS, MARKERS
from kerneltrail.report.figures import BLUE, FAINT, INK, WIDE, is_narrow, legend, rule, styled
from kerneltrail.report.forest import Estimate, ForestPanel, forest
from kerneltrail.trial.simulator.summary import MEASURES, Line, Pair


def advantage(pairs: Sequence[Pair], unit: str, *, width: float = WIDE) -> Figure:
    """The trial's own policy less each other one, with 95 % intervals; a panel for each measure."""
    names = list(dict.fromkeys(pair.other for pair in pairs))
    panels = []
    for measure in dict.fromkeys(pair.measure for pair in pairs):
        by_name = {pair.other: pair for pair in pairs if pair.measure == measure}
        estimates = [_estimate(by_name.get(name)) for name in names]
        panels.append(ForestPanel(MEASURES[measure], f"ours less the other{f' ({unit})' if unit else ''}", estimates))
    return forest(names, panels, width=width)


def _estimate(pair: Pair | None) -> Estimate | None:
    if pair is None or not np.isfinite(pair.difference.low):
        return None
    gap = pair.difference
    return Estimate(gap.mean, gap.low, gap.high, pair.verdict != "no difference found")


def realised(lines: Sequence[Line], *, width: float = WIDE) -> Figure:
    """The share of decisions that were to act, beside the probability that was recorded; on the line is right."""
    with styled(width, 3.2) as figure:
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1.0, zorder=1)
        for number, line in enumerate(lines):
            known = np.array([each for each in line.deciles if each[0] >= 20.0]).reshape(-1, 3)
            if not len(known):
                continue
            chance, share = known[:, 1] / known[:, 0], known[:, 2] / known[:, 0]
            error = 1.96 * np.sqrt(np.maximum(chance * (1 - chance), 1e-9) / known[:, 0])
            colour = BLUE if number == 0 else COLOURS[(number - 1) % len(COLOURS)]
            ax.errorbar(
                chance, share, yerr=error, linestyle="none", marker=MARKERS[number % len(MARKERS)], markersize=4.5,
                color=colour, elinewidth=1.2, label=line.policy,
            )  # fmt: skip
        ax.set(xlabel="recorded probability of acting", ylabel="share in which it was drawn", xlim=(0, 1), ylim=(0, 1))
        rule(ax)
        legend(figure, columns=2 if is_narrow(width) else 5)
    return figure


def designs(lines: Sequence[Line], *, width: float = WIDE) -> Figure:
    """The chance to find the effect, by design, for each policy that randomises."""
    labels = list(dict.fromkeys(line.design for line in lines))
    names = list(dict.fromkeys(line.policy for line in lines if line.finding is not None))
    with styled(width, 0.9 + (0.75 if is_narrow(width) else 0.5) * len(labels)) as figure:
        ax = figure.subplots()
        for number, name in enumerate(names):
            for place, label in enumerate(labels):
                line = next((each for each in lines if each.design == label and each.policy == name), None)
                if line is None or line.finding is None:
                    continue
                power = line.finding.power
                at = place + 0.5 * ((number + 0.5) / len(names) - 0.5)
                colour = BLUE if number == 0 else COLOURS[(number - 1) % len(COLOURS)]
                ax.plot([power.low, power.high], [at, at], color=colour, linewidth=1.4)
                ax.plot(
                    [power.mean], [at], color=colour, marker=MARKERS[number % len(MARKERS)], markersize=4.5,
                    linestyle="none", label=name if place == 0 else None,
                )  # fmt: skip
        ax.set_yticks(range(len(labels)), [fill(label, 22 if is_narrow(width) else 60) for label in labels])
        ax.set(xlim=(0, 1), ylim=(len(labels) - 0.5, -0.5), xlabel="share of trials with p below 0.05")
        ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        ax.tick_params(axis="y", color=INK, length=0)
        legend(figure, columns=2 if is_narrow(width) else 5)
    return figure
