"""Drawings of learnt graphs."""

from kerneltrail.kernels import NOTHING
from kerneltrail.report.graph.drawing import COLOURS, colour_of, draw, draw_on, inline_svg, tint
from kerneltrail.report.graph.layout import GraphLayout, graph_layout
from kerneltrail.report.graph_structure import Graph, Link, key_masks, name_of, wrapped

__all__ = [
    "COLOURS", "NOTHING", "Graph", "GraphLayout", "Link", "colour_of", "draw", "draw_on", "graph_layout", "inline_svg",
    "key_masks", "name_of", "tint", "wrapped",
]  # fmt: skip
