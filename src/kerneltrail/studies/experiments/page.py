"""The page of an experiment as it is put together: sections, their figures, and the paper's claims beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kerneltrail.report import graph
from kerneltrail.report.figures import NARROW, WIDE
from kerneltrail.report.page import Block, Section, Table
from kerneltrail.studies.experiments.agreement import Agreement, agreement_table
from kerneltrail.studies.figure_pair import FigurePair
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.urn import Paths


@dataclass
class Page:
    """Sections of a page, before and after those on model, users and methods; and the figures in them.

    Attributes:
        agreements: the paper's claims beside what was found.
        opening: sections before all others.
        sections: the others so far.
        drawn: figures so far; they are written as files too.
    """

    agreements: Sequence[Agreement]
    opening: list[Section] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    drawn: list[FigurePair] = field(default_factory=list)

    def open(self, name: str, heading: str, *blocks: Block | FigurePair | None) -> None:
        """One section more before all others; `name` is for the menu."""
        self.opening.append(self._section(name, heading, blocks))

    def add(self, name: str, heading: str, *blocks: Block | FigurePair | None) -> None:
        """One section more; `name` is for the menu."""
        self.sections.append(self._section(name, heading, blocks))

    def beside(self, topic: str, of: str | None = None) -> Table | None:
        """The paper's claims on a topic, of one of our procedures or of all; None where there are none."""
        chosen = [each for each in self.agreements if each.topic == topic and of in (None, each.of)]
        return agreement_table(chosen) if chosen else None

    def _section(self, name: str, heading: str, blocks: Sequence[Block | FigurePair | None]) -> Section:
        shown: list[Block] = []
        for block in blocks:
            if isinstance(block, FigurePair):
                self.drawn.append(block)
                shown.append(block.block())
            elif block is not None:
                shown.append(block)
        return Section(heading, shown, name)


def graph_figure(model: TrajectoryModel, paths: Paths, name: str, alt: str, caption: str) -> FigurePair:
    """Paths as a graph with edge fractions, which end the alternative text."""
    drawn = graph.Graph.of(model.pool, paths)
    links = ", ".join(f"{drawn.names[link.parent]} to {drawn.names[link.child]} {link.label}" for link in drawn.links)
    return FigurePair(name, graph.draw(drawn, width=WIDE), graph.draw(drawn, width=NARROW), f"{alt}: {links}.", caption)
