"""A page that stands alone: one HTML file with its pictures inside, for screens of any width and for paper."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup
from matplotlib.figure import Figure

from kerneltrail.report import figures
from kerneltrail.report.templating import render

BROAD = 12.0
"""Inches of a figure that fills a broad page."""


class Block:
    """Something that a section holds: values, and the template that shows them as ``block``.

    Attributes:
        template: in the folder ``templates``.
        scripts: which it needs, in order, in the folder ``assets``.
    """

    template: ClassVar[str]
    scripts: ClassVar[tuple[str, ...]] = ()

    def html(self) -> Markup:
        """Its markup, with everything that is not markup escaped."""
        return render(self.template, block=self)


@dataclass(frozen=True)
class Paragraph(Block):
    """Running text."""

    template: ClassVar[str] = "paragraph.html.jinja"
    text: str


@dataclass(frozen=True)
class Sentences(Block):
    """Statements, one below the other, that deserve to stand out; the heading says whose they are."""

    template: ClassVar[str] = "sentences.html.jinja"
    heading: str
    items: Sequence[str]


@dataclass(frozen=True)
class Lines(Block):
    """Text whose spaces and line breaks mean something, under a heading."""

    template: ClassVar[str] = "lines.html.jinja"
    heading: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Table(Block):
    """Rows of text, those whose numbers are `marked` in bold.

    The first columns are left-aligned, so many as are `names`; the others right-aligned unless all are words, which may
    take several lines.
    """

    template: ClassVar[str] = "table.html.jinja"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: Sequence[int] = ()
    words: bool = False
    names: int = 1


@dataclass(frozen=True)
class Picture(Block):
    """A figure as SVG, drawn twice: for a desktop page and for a telephone, unless the wide drawing serves both.

    A `broad` one fills a broad page.
    """

    template: ClassVar[str] = "picture.html.jinja"
    wide: bytes
    narrow: bytes | None
    alt: str
    caption: str
    broad: bool = False

    @classmethod
    def of(cls, draw: Callable[[float], Figure], alt: str, caption: str, *, broad: bool = False) -> Picture:
        """A figure in both widths by a function of the width in inches."""
        wide, narrow = (figures.svg(draw(width)) for width in (BROAD if broad else figures.WIDE, figures.NARROW))
        return cls(wide, narrow, alt, caption, broad)

    @staticmethod
    def address(svg: bytes) -> str:
        """A drawing as an address that holds all of it, so that nothing is fetched."""
        return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"


@dataclass(frozen=True)
class Beside(Block):
    """Blocks side by side where there is room, else one below the other."""

    template: ClassVar[str] = "group.html.jinja"
    css_class: ClassVar[str] = "beside"
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Expert(Block):
    """Blocks behind a click, for those who want to know how something was computed; open on paper."""

    template: ClassVar[str] = "expert.html.jinja"
    summary: str
    blocks: Sequence[Block]


class Static(Beside):
    """Blocks for paper and for readers without scripts: hidden where a script shows the same in another way."""

    css_class: ClassVar[str] = "static"


@dataclass(frozen=True)
class Section(Block):
    """A heading and what stands below it; one with a name can be linked to."""

    template: ClassVar[str] = "section.html.jinja"
    heading: str
    blocks: Sequence[Block]
    name: str = ""


def page(title: str, lead: str, sections: Sequence[Section], *, footer: str = "", broad: bool = False) -> str:
    """The whole page as HTML, with the scripts that its blocks need. It may fetch nothing: browsers are told so.

    Sections with names are listed at the top, below the lead. A `broad` page uses more of a wide screen, for things
    that stand side by side.
    """
    named = [section for section in sections if section.name]
    html = render(
        "page.html.jinja", title=title, lead=lead, sections=sections, footer=footer, broad=broad,
        named=named if len(named) > 1 else [], scripts=dict.fromkeys(_scripts(sections)),
    )  # fmt: skip
    return str(html)


def _scripts(blocks: Sequence[Block]) -> Iterator[str]:
    """What the blocks need, and the blocks inside them."""
    for block in blocks:
        yield from block.scripts
        yield from _scripts(getattr(block, "blocks", ()))
