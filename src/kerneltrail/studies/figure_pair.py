"""A figure under a name, in the two widths that a page needs, with the words that go with it."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from kerneltrail.report import figures
from kerneltrail.report.page import Picture


@dataclass(frozen=True)
class FigurePair:
    """A figure under a name, in both widths, with the words that go with it.

    Attributes:
        name: of its file, without an ending.
        wide, narrow: for a desktop page and for a telephone.
        alt: what it shows, for those who cannot see it.
        caption: below it.
    """

    name: str
    wide: Figure
    narrow: Figure
    alt: str
    caption: str

    def block(self) -> Picture:
        """For a page."""
        return Picture(figures.svg(self.wide), figures.svg(self.narrow), self.alt, self.caption)
