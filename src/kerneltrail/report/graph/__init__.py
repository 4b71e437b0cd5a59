"""Figures of learnt graphs."""

from kerneltrail.report.graph.draw import colour_of, draw, put, tint
from kerneltrail.report.graph.inline import inline
from kerneltrail.report.graph.parts import Graph, Link, Plan, key_masks, name_of
from kerneltrail.report.graph.plan import planned

__all__ = ["Graph", "Link", "Plan", "colour_of", "draw", "inline", "key_masks", "name_of", "planned", "put", "tint"]
