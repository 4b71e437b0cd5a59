"""The graph of a model as a block of a page: to look at, to zoom, and to ask of every kernel what it means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from markupsafe import Markup

from kerneltrail.report.graph import Graph, graph_layout, inline_svg
from kerneltrail.report.model_page.facts import Fact, facts
from kerneltrail.report.page import Block
from kerneltrail.trajectory.model import TrajectoryModel


@dataclass(frozen=True)
class GraphBlock(Block):
    """The learnt graph with a card for every box.

    With the page's script a box that is clicked, or entered from the keyboard, shows its card; without it, and on
    paper, all cards stand below the graph.
    """

    template: ClassVar[str] = "model_graph.html.jinja"
    scripts: ClassVar[tuple[str, ...]] = ("graph.js",)
    wide: ClassVar[float] = 7.8
    narrow: ClassVar[float] = 3.55
    """Inches for the graph beside its panel on a desktop page, and on a telephone: drawn there at their true size."""

    model: TrajectoryModel

    @cached_property
    def graph(self) -> Graph:
        """What is drawn."""
        return Graph.of(self.model.pool, self.model.paths)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """What the cards say."""
        return facts(self.model, tuple(self.graph.key))

    def svg(self, css_class: str, width: float) -> Markup:
        """The drawing at a width, in inches."""
        label = f"The learnt graph: {len(self.facts) - 1} kernels and the ways between them"
        layout = graph_layout(self.graph, width=width)
        box_labels = ["root, where every user starts"] + [
            f"{'key kernel' if fact.key else 'kernel'} {fact.name}, passed by {len(fact.passed)} pilot users"
            for fact in self.facts[1:]
        ]
        return inline_svg(self.graph, layout, css_class=css_class, label=label, box_labels=box_labels)
