"""`kerneltrail show`: what a model file holds, for people or as JSON."""

from __future__ import annotations

import json as plain_json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.data import Scaler
    from kerneltrail.report.words import Description
    from kerneltrail.trajectory.model import Node, TrajectoryModel


def show(
    model: Annotated[Path, typer.Argument(help="A model file, as `kerneltrail fit` writes it.")],
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Print a model: its graph, its users' paths, the alternatives, and what every kernel says in words."""
    from kerneltrail.trajectory.file import load

    loaded = load(model)
    if json:
        typer.echo(plain_json.dumps(_finite(as_json(loaded)), indent=2, ensure_ascii=False))
    else:
        _print(loaded)


def _print(model: TrajectoryModel) -> None:
    from kerneltrail.commands.fit import chain_lines
    from kerneltrail.commands.graph import NOTHING, graph_lines, user_lines
    from kerneltrail.commands.terminal import say, title

    schema = model.schema
    say([f"{schema.target} from {', '.join(schema.covariates)}; {len(model.users)} pilot users"])
    title("Graph")
    say(graph_lines(model.pool, model.paths))
    title("Users")
    say(user_lines(model.pool, model.users, model.paths))
    title("Alternatives")
    others = model.structures[1:]
    for number, other in enumerate(others, start=1):
        by = other.log_joint - model.structures[0].log_joint
        often = "once" if other.visits == 1 else f"{other.visits} times"
        say([f"{number}. log joint {by:+.2f}; {other.nodes} nodes, {other.edges} edges; sampled {often}"])
        say(f"   {line}" for line in graph_lines(model.pool, other.paths))
    if not others:
        say(["none: every sample within the margin has this graph"])
    title("In words")
    for node in model.nodes:
        say([node.composition.text or NOTHING], style="bold")
        say(f"• {sentence}" for sentence in _words(model, node))
    title("Chains")
    say(chain_lines(model))


def _scaler(model: TrajectoryModel) -> Scaler:
    from kerneltrail.data import Scaler

    # Scaled user by user, there is no common unit to return to.
    return model.schema.scaler or Scaler.identity(model.covariates)


def _words(model: TrajectoryModel, node: Node) -> Description:
    from kerneltrail.kernels import Hyperparameters
    from kerneltrail.report.words import describe

    schema = model.schema
    return describe(
        Hyperparameters(node.composition, tuple(node.group.mean)),
        target=schema.target,
        units=schema.units,
        scale=_scaler(model),
        levels=schema.levels,
    )


def as_json(model: TrajectoryModel) -> dict[str, Any]:
    """A model in plain values; hyperparameters are the group's centre, in data units."""
    from kerneltrail.data.units import in_data_units
    from kerneltrail.kernels import Hyperparameters

    scaler = _scaler(model)
    told = model.diagnostics
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
                "words": [sentence.text for sentence in _words(model, node)],
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
        "diagnostics": {
            "chains": len(told.log_joint),
            "sweeps": told.sweeps,
            "rhat": dict(told.rhat),
            "ess": dict(told.ess),
            "acceptance": dict(told.acceptance),
            "seconds": dict(told.seconds),
        },
        "provenance": dict(model.provenance),
    }


def _finite(value: Any) -> Any:
    """Without NaN and infinities, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(own) for own in value]
    return value
