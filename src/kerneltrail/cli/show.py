"""`kerneltrail show`: what a model file holds, for people or as JSON."""

from __future__ import annotations

import json as plain_json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.trajectory.model import TrajectoryModel


def show(
    model: Annotated[Path, typer.Argument(help="A model file, as `kerneltrail fit` writes it.")],
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="Print the graph in DOT, for Graphviz.")] = False,
) -> None:
    """Print a model: its graph, its users' paths, the alternatives, and what every kernel says in words."""
    from kerneltrail.report.model_text import model_dot, model_json
    from kerneltrail.trajectory.model import load

    if json and dot:
        raise typer.BadParameter("give one of them", param_hint="--json, --dot")
    loaded = load(model)
    if dot:
        typer.echo(model_dot(loaded), nl=False)
    elif json:
        typer.echo(plain_json.dumps(_finite(model_json(loaded)), indent=2, ensure_ascii=False))
    else:
        _print(loaded)


def _print(model: TrajectoryModel) -> None:
    from kerneltrail.cli.fit import chain_lines
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.report.model_text import NOTHING, describe_node, graph_lines, user_lines

    schema = model.schema
    say([f"{schema.target} from {', '.join(schema.covariates)}; {len(model.users)} pilot users"])
    title("Graph")
    say(graph_lines(model.pool, model.paths))
    title("Users")
    say(user_lines(model.pool, model.users, model.paths))
    title("Alternatives")
    others = model.structures[1:]
    for number, other in enumerate(others, start=1):
        gain = other.log_joint - model.structures[0].log_joint  # the chosen one is simple, not always the most probable
        against = f"{abs(gain):.2f} {'above' if gain > 0 else 'below'} the chosen graph"
        often = "once" if other.visits == 1 else f"{other.visits} times"
        say([f"{number}. log joint {against}; {other.nodes} nodes, {other.edges} edges; sampled {often}"])
        say(f"   {line}" for line in graph_lines(model.pool, other.paths))
    if not others:
        say(["none: every sample of the chains' later half has this graph"])
    title("In words")
    for node in model.nodes:
        say([node.composition.text or NOTHING], style="bold")
        say(f"• {sentence}" for sentence in describe_node(model, node))
    title("Chains")
    say(chain_lines(model))


def _finite(value: Any) -> Any:
    """Without NaN and infinities, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
