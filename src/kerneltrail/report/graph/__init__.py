"""Drawings of learnt graphs."""

from kerneltrail.report.graph.drawing import COLOURS, colour_of, draw, draw_on, inline_svg, tint
from kerneltrail.report.graph.layout import GraphLayout, graph_layout
from kerneltrail.report.graph_structure import Graph, Link, key_masks, name_of, wrapped
from kerneltrail.trajectory.graph import NOTHING

__all__ = [
    "COLOURS", "NOTHING", "Graph", "GraphLayout", "Link", "colour_of", "draw", "draw_on", "graph_layout", "inline_svg",
    "key_masks", "name_of", "tint", "wrapped",
]  # fmt: skip
