"""The graph of a model as a block of a page: to look at, to zoom, and to ask of every kernel what it means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import ClassVar

from kerneltrail.report.graph import Graph, inline, planned
from kerneltrail.report.model_page.facts import Fact, facts
from kerneltrail.trajectory.model import TrajectoryModel

WIDE, NARROW = 7.8, 3.55
"""Inches for the graph beside its panel on a desktop page, and on a telephone: drawn there at their true size."""


@dataclass(frozen=True)
class GraphBlock:
    """The learnt graph with a card for every box.

    With the page's script a box that is clicked, or entered from the keyboard, shows its card; without it, and on
    paper, all cards stand below the graph.
    """

    model: TrajectoryModel
    scripts: ClassVar[tuple[str, ...]] = ("graph.js",)

    @cached_property
    def graph(self) -> Graph:
        """What is drawn."""
        return Graph.of(self.model.pool, self.model.paths)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """What the cards say."""
        return facts(self.model, tuple(self.graph.key))

    def svg(self, kind: str, width: float) -> str:
        """The drawing at a width, in inches."""
        said = [self._said(fact) for fact in self.facts]
        label = f"The learnt graph: {len(self.facts) - 1} kernels and the ways between them"
        return inline(self.graph, planned(self.graph, width=width), kind=kind, label=label, said=said)

    @staticmethod
    def _said(fact: Fact) -> str:
        if not fact.number:
            return "root, where every user starts"
        return f"{'key kernel' if fact.key else 'kernel'} {fact.name}, passed by {len(fact.passed)} pilot users"

    def html(self) -> str:
        """The drawing in both widths, its tools, and the cards."""
        cards = "".join(_card(fact) for fact in self.facts)
        return (
            '<div class="trail" data-trail>'
            '<figure class="map"><div class="tools live" role="group" aria-label="Size of the graph">'
            '<button type="button" data-zoom="in" aria-label="Zoom in">+</button>'
            '<button type="button" data-zoom="out" aria-label="Zoom out">−</button>'
            '<button type="button" data-zoom="fit">Fit</button>'
            "<span>Choose a box to read what it means.</span></div>"
            '<div class="stage" tabindex="0" role="group" '
            'aria-label="The graph. Plus and minus zoom, arrows move, 0 fits; tab to reach the boxes.">'
            f"{self.svg('drawing wide-only', WIDE)}{self.svg('drawing narrow-only', NARROW)}</div>"
            f"<figcaption>{escape(CAPTION)}</figcaption></figure>"
            f'<div class="cards" aria-live="polite">{cards}</div></div>'
        )


CAPTION = (
    "A box is a kernel: a way in which the target depends on the covariates; in grey, the batch from which it is in "
    "use. 2/3 on an arrow: of three who left a box, two went this way; a loop is to stay for another batch. Broader "
    "arrows were taken more often. In bold: the key kernels, in which at least a fifth of the pilot users end."
)


def _card(fact: Fact) -> str:
    words = "".join(f"<li>{escape(text)}</li>" for text in fact.words)
    title = "root" if not fact.number else escape(fact.name)
    key = '<span class="badge">key kernel</span>' if fact.key else ""
    kind = "card" if fact.number else "card root"
    return (
        f'<article class="{kind}" data-card="{fact.number}" tabindex="-1"><h3>{title} {key}</h3>'
        f'<div class="half"><ul class="words">{words}</ul>{_ways(fact)}{_passed(fact)}</div>'
        f'<div class="half">{_table(fact)}</div>'
        '<button type="button" class="close live" data-close>Close</button></article>'
    )


def _table(fact: Fact) -> str:
    if not fact.values:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(value.part)}<br><span class="quiet">{escape(value.name)}</span></th>'
        f'<td>{escape(value.centre)}<br><span class="quiet">{escape(value.spread)}</span></td></tr>'
        for value in fact.values
    )
    return (
        '<h4>Hyperparameters</h4><table class="values"><thead><tr><th scope="col">part</th>'
        '<th scope="col">pilot users<br><span class="quiet">90 % of users like them</span></th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _passed(fact: Fact) -> str:
    if not fact.passed:
        return ""
    items = "".join(f'<li>{escape(name)} <span class="quiet">{escape(when)}</span></li>' for name, when in fact.passed)
    return f'<h4>Who passed <span class="quiet">({len(fact.passed)})</span></h4><ul class="passed">{items}</ul>'


def _ways(fact: Fact) -> str:
    if not fact.ways:
        return "<h4>And then</h4><p>Nobody went on from here: it is where the pilot users' data end.</p>"
    items = "".join(
        f"<li><b>{way.label}</b> "
        + (
            "stay for another batch"
            if way.stays
            else f'go to <button type="button" class="link" data-goto="{way.to}">{escape(way.name)}</button>'
        )
        + "</li>"
        for way in fact.ways
    )
    return f'<h4>And then</h4><ul class="ways">{items}</ul>'
