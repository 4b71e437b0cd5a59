"""A model as text: its graph as a tree and in DOT, its users' paths, its nodes in words, and all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from markupsafe import Markup

from kerneltrail.data import Scaler
from kerneltrail.data.units import in_data_units
from kerneltrail.kernels import Hyperparameters, Pool
from kerneltrail.kernels.phrases import counted, listing, rounded
from kerneltrail.report.description import Description, Sentence, describe_by_schema, noun_of
from kerneltrail.report.graph_structure import Graph, wrapped
from kerneltrail.report.group_words import group_description
from kerneltrail.report.templating import render
from kerneltrail.trajectory.graph import Node
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Paths

NOTHING = "(noise alone)"
"""How the empty composition is written."""


ALIKE = 0.0005
"""Nats a row that would be shown as none."""


def advancing_text(model: TrajectoryModel) -> str:
    """What became of kernels on covariates that move on (method (78)); empty where there was nothing to judge."""
    worth = model.diagnostics.advancing
    if worth is None:
        return ""
    labels = [model.schema.label(name) for name in worth.covariates]
    names, move = listing(labels), "moves" if len(labels) == 1 else "move"
    better = f"{'better' if worth.gain > 0 else 'worse'}, by {rounded(abs(worth.gain), worth.error)} nats a row"
    if abs(worth.gain) < ALIKE and not worth.clear:
        better = "as well as without"
    error = rounded(worth.error, worth.error)
    return (
        f"Kernels that read {names} were {'kept' if worth.clear else 'left out'}: {names} {move} on from batch to "
        "batch, so a kernel there has to reach beyond all rows that are seen. With such kernels the next rows of "
        f"{counted(worth.users, 'pilot user')} are predicted {better} (standard error {error}). They are "
        "kept where that is better by more than one standard error."
    )


def limit_text(model: TrajectoryModel) -> str:
    """That most pilot users end at kernels with as many products as the settings allow; empty where they do not."""
    largest = model.settings.largest
    ends = [path[-1].bit_count() for path in model.paths if path]
    if largest >= len(model.pool) or 2 * sum(size == largest for size in ends) <= len(ends):
        return ""
    return (
        f"Most pilot users end at kernels of {counted(largest, 'product')}, the most that the setting `largest` allows. "
        "What does not fit into them may be put down to another covariate: allow more."
    )


def name_of(pool: Pool, mask: int) -> str:
    """A composition in text."""
    return pool.composition(mask).text or NOTHING


def graph_lines(pool: Pool, paths: Paths) -> list[str]:
    """The graph of a structure, a line per edge.

    >>> pool = Pool.of("LIN[x]", "SE[x]")
    >>> for line in graph_lines(pool, ((1, 3, 3), (1, 3, 3), (2, 2, 1))):
    ...     print(line)
    root
    ├─ 2/3 LIN[x]
    │  └─ 2/2 LIN[x] + SE[x]
    │     └─ 2/2 stays
    └─ 1/3 SE[x]
       ├─ 1/2 LIN[x] (above)
       └─ 1/2 stays
    """
    counts = Counts.of(paths)
    drawn: set[int] = set()

    def below(parent: int, indent: str) -> Iterable[str]:
        drawn.add(parent)
        row = counts.rows.get(parent, {})
        total = sum(row.values())
        order = sorted(row.items(), key=lambda item: (-item[1], pool.composition(item[0]).text))
        for position, (child, count) in enumerate(order, start=1):
            last = position == len(order)
            again = child in drawn and child != parent and child in counts.rows
            name = "stays" if child == parent else name_of(pool, child) + (" (above)" if again else "")
            yield f"{indent}{'└─' if last else '├─'} {count}/{total} {name}"
            if child not in drawn:
                yield from below(child, indent + ("   " if last else "│  "))

    return ["root", *below(ROOT, "")]


def path_text(pool: Pool, path: Sequence[int]) -> str:
    """One user's path, with how many batches each composition lasted.

    >>> path_text(Pool.of("LIN[x]", "SE[x]"), (1, 1, 3))
    'LIN[x] ×2 → LIN[x] + SE[x] ×1'
    """
    return " → ".join(f"{name_of(pool, mask)} ×{len(list(run))}" for mask, run in groupby(path))


def user_lines(pool: Pool, users: Sequence[str], paths: Paths) -> list[str]:
    """Each pilot user with its path (the paper's appendix table)."""
    width = max(map(len, users))
    return [f"{name:<{width}}  {path_text(pool, path)}" for name, path in zip(users, paths, strict=True)]


def model_dot(model: TrajectoryModel) -> str:
    """The learnt graph in DOT, for Graphviz and its kin: kernels as boxes, the key ones bold, counts on the edges."""
    graph = Graph.of(model.pool, model.paths)
    # DOT escapes quotes, backslashes and line breaks as JSON does.
    labels = [Markup(json.dumps(wrapped(name), ensure_ascii=False)) for name in graph.names]
    return f"{render('graph.dot.jinja', graph=graph, labels=labels)}\n"


def common_scaler(model: TrajectoryModel) -> Scaler:
    """How the model's units become the data's; scaled user by user, there is no common unit to return to."""
    return model.schema.scaler or Scaler.identity(model.covariates)


def describe_node(model: TrajectoryModel, node: Node) -> Description:
    """What a node's kernel allows of any user, in data units, at the centre of its group; not what was found of one."""
    centre = Hyperparameters(node.composition, tuple(node.group.mean))
    lead = Sentence("This is what the kernel allows, in general, of any user.")
    said = describe_by_schema(centre, model.schema, common_scaler(model), shared=model.mean is not None)
    return Description((lead, *said))


def node_noun(model: TrajectoryModel, node: Node) -> str:
    """A node as a noun within a sentence, at the centre of its group: "a straight line in temperature"."""
    typical = Hyperparameters(node.composition, tuple(node.group.mean))
    return noun_of(typical, model.schema, common_scaler(model), shared=model.mean is not None)


def model_json(model: TrajectoryModel) -> dict[str, Any]:
    """A model in plain values; hyperparameters are the group's centre, in data units."""
    scaler = common_scaler(model)
    diagnostics = model.diagnostics
    return {
        "target": model.schema.target,
        "covariates": list(model.covariates),
        "schema": model.schema.to_json(),
        "pool": {str(product): p for product, p in zip(model.pool.products, model.pool.probabilities, strict=True)},
        "settings": model.settings.to_json(),
        "nodes": [
            {
                "composition": node.composition.text,
                "users": list(node.users),
                "hyperparameters": dict(
                    in_data_units(Hyperparameters(node.composition, tuple(node.group.mean)), scaler)
                ),
                "words": [sentence.text for sentence in describe_node(model, node)],
            }
            for node in model.nodes
        ],
        "edges": [
            {
                "parent": None if edge.parent is None else edge.parent.text,
                "child": edge.child.text,
                "count": edge.count,
                "total": edge.total,
            }
            for edge in model.edges
        ],
        "pilot_effects": [dict(row) for row in model.pilot_effects],
        "words": [sentence.text for sentence in group_description(model)],
        "users": {name: [composition.text for composition in path] for name, path in model.table()},
        "structures": [
            {
                "log_joint": structure.log_joint,
                "nodes": structure.nodes,
                "edges": structure.edges,
                "visits": structure.visits,
                "paths": [[model.pool.composition(mask).text for mask in path] for path in structure.paths],
            }
            for structure in model.structures
        ],
        "averaged": None
        if model.averaged is None
        else {
            "kernels": [node.composition.text for node in model.selectable],
            "counts": model.averaged.counts.tolist(),
            "cut": model.averaged.cut,
        },
        "diagnostics": {
            "chains": len(diagnostics.log_joint),
            "sweeps": diagnostics.sweeps,
            "rhat": dict(diagnostics.rhat),
            "ess": dict(diagnostics.ess),
            "acceptance": dict(diagnostics.acceptance),
            "seconds": dict(diagnostics.seconds),
            "cut": dict(diagnostics.cut),
            "advancing": diagnostics.advancing and asdict(diagnostics.advancing),
        },
        "provenance": dict(model.provenance),
    }
