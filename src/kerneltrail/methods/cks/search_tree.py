"""The search as it went: every candidate, when it was tried, from which it was made and how it scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, isfinite
from typing import Any

from kerneltrail.methods.cks.expression import Expression
from kerneltrail.methods.cks.fit import FittedExpression, parameters

LEAST = 1e-6
"""Weights below this are not worth a kernel's predictions."""


@dataclass(frozen=True)
class SearchNode:
    """One candidate.

    Attributes:
        level: number of grammar steps from the atoms, from 0.
        expression: the kernel as the grammar wrote it.
        parent: index of the node it was made from; None for atoms.
        fitted: its fit.
        held_out: mean log density of held-out rows, in the target's scaled units; None where it was not judged by them.
    """

    level: int
    expression: Expression
    parent: int | None
    fitted: FittedExpression
    held_out: float | None = None

    @property
    def bic(self) -> float:
        """Its score; infinite where it could not be fitted."""
        return self.fitted.bic


@dataclass(frozen=True)
class SearchTree:
    """All candidates in the order in which they were tried.

    Attributes:
        nodes: the candidates.
        rows: rows of the data. A node fitted on fewer was set aside after a first look; its BIC does not compare.
        stopped: why the search ended: ``depth``, ``seconds``, ``fits``, ``patience`` or ``exhausted``.
        seconds: how long it took.
    """

    nodes: tuple[SearchNode, ...]
    rows: int
    stopped: str
    seconds: float

    @property
    def best(self) -> SearchNode:
        """The largest held-out density where rows were held out, else the smallest BIC; over all levels.

        Only nodes fitted to all rows count; of equals, the simplest wins.
        """
        judged = [node for node in self.complete if node.held_out is not None and isfinite(node.held_out)]
        if not judged:
            return self.best_by_bic
        return min(judged, key=lambda node: (-(node.held_out or 0.0), node.bic, node.expression.key))

    @property
    def best_by_bic(self) -> SearchNode:
        """The smallest BIC over all levels, among those fitted to all rows; of equals, the simplest."""
        return min(self.complete, key=lambda node: (node.bic, node.expression.key))

    def weighted(self, worth: float) -> tuple[tuple[float, SearchNode], ...]:
        """The nodes judged by held-out rows with weights ∝ exp(worth · mean log density), the largest first.

        Weights below a millionth are left out; where nothing was judged, the best by BIC has them all.
        """
        judged = [node for node in self.complete if node.held_out is not None and isfinite(node.held_out)]
        if not judged:
            return ((1.0, self.best),)
        top = self.best.held_out or 0.0
        raw = [(exp(worth * ((node.held_out or 0.0) - top)), node) for node in judged]
        total = sum(weight for weight, _ in raw)
        large = [(weight, node) for weight, node in raw if weight / total > LEAST]
        total = sum(weight for weight, _ in large)  # what is left out must not be missing from the mean
        shares = [(weight / total, node) for weight, node in large]
        return tuple(sorted(shares, key=lambda each: (-each[0], each[1].bic, each[1].expression.key)))

    @property
    def complete(self) -> tuple[SearchNode, ...]:
        """The nodes fitted to all rows."""
        return tuple(node for node in self.nodes if node.fitted.rows == self.rows)

    def upto(self, level: int) -> SearchTree:
        """The tree of a search that ended after this level; held-out densities are those of the nodes that have one."""
        return replace(self, nodes=tuple(node for node in self.nodes if node.level <= level), stopped="depth")

    @property
    def levels(self) -> int:
        """Number of levels tried."""
        return 1 + max(node.level for node in self.nodes)

    def level(self, number: int) -> tuple[SearchNode, ...]:
        """The candidates of one level, best first; those set aside after a first look come last."""
        candidates = [node for node in self.nodes if node.level == number]
        return tuple(sorted(candidates, key=lambda node: (node.fitted.rows < self.rows, node.bic, node.expression.key)))

    def to_rows(self) -> list[dict[str, Any]]:
        """One plain row for each candidate, for a table."""
        best = self.best
        return [
            {
                "index": index,
                "level": node.level,
                "parent": node.parent,
                "kernel": node.expression.text,
                "composition": node.expression.composition.text,
                "bic": node.bic,
                "held_out": node.held_out,
                "log_likelihood": node.fitted.log_likelihood,
                "parameters": parameters(node.expression),
                "rows": node.fitted.rows,
                "status": node.fitted.status,
                "best": node is best,
            }
            for index, node in enumerate(self.nodes)
        ]

    def text(self, *, most: int = 5) -> str:
        """The best `most` of each level with their BIC; ``>`` marks what was expanded, ``*`` what won.

        Where rows were held out, their mean log density follows; the winner is shown in any case.
        """
        judged = any(node.held_out is not None for node in self.nodes)
        best = self.best
        expanded = {node.parent for node in self.nodes if node.parent is not None}
        places = {id(node): index for index, node in enumerate(self.nodes)}
        lines = []
        for number in range(self.levels):
            candidates = self.level(number)
            lines.append(f"level {number}: {len(candidates)} candidates")
            for node in (node for rank, node in enumerate(candidates) if rank < most or node is best):
                mark = "*" if node is best else ">" if places[id(node)] in expanded else " "
                score = f"{node.bic:12.2f}" if node.fitted.status == "fitted" else f"{node.fitted.status:>12}"
                partial = "" if node.fitted.rows == self.rows else f"  (first look, {node.fitted.rows} rows)"
                held_out = "" if not judged else " " * 10 if node.held_out is None else f"{node.held_out:10.3f}"
                lines.append(f"{mark} {score}{held_out}  {node.expression}{partial}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()
