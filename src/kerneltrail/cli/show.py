"""`kerneltrail show`: what a model file holds, for people or as JSON."""

from __future__ import annotations

import json as plain_json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kerneltrail.trajectory.model import TrajectoryModel

NO_EFFECTS = "This file keeps nothing of it: an older version wrote it, or its users were scaled one by one."
"""What is said of a model without effects of its pilot users."""


def show(
    model: Annotated[Path, typer.Argument(help="A model file, as `kerneltrail fit` writes it.")],
    user: Annotated[
        Path | None, typer.Option("--user", help="A file of a followed user: print what was found of that user.")
    ] = None,
    kernels: Annotated[bool, typer.Option("--kernels", help="Print also what each kernel allows, in words.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="Print the graph in DOT, for Graphviz.")] = False,
) -> None:
    """Print a model: what was found of its pilot users, its graph, their paths, and the alternatives."""
    from kerneltrail.report.model_text import model_dot, model_json
    from kerneltrail.trajectory.model import load

    if json + dot + (user is not None) > 1:
        raise typer.BadParameter("give one of them", param_hint="--json, --dot, --user")
    loaded = load(model)
    if user is not None:
        _print_user(loaded, user)
    elif dot:
        typer.echo(model_dot(loaded), nl=False)
    elif json:
        typer.echo(plain_json.dumps(_finite(model_json(loaded)), indent=2, ensure_ascii=False))
    else:
        _print(loaded, kernels)


def _print_user(model: TrajectoryModel, file: Path) -> None:
    from kerneltrail.cli.terminal import say
    from kerneltrail.report.explanation import explain

    lead, *sentences = explain(model.load_user(file))
    say([str(lead)])
    say(f"• {sentence}" for sentence in sentences)


def _print(model: TrajectoryModel, kernels: bool) -> None:
    from kerneltrail.cli.fit import chain_lines
    from kerneltrail.cli.terminal import say, title
    from kerneltrail.kernels.phrases import counted
    from kerneltrail.report.group_words import group_description
    from kerneltrail.report.model_text import NOTHING, describe_node, graph_lines, user_lines

    schema = model.schema
    say([f"{schema.target} from {', '.join(schema.covariates)}; {counted(len(model.users), 'pilot user')}"])
    title("What was found of the pilot users")
    say([f"• {sentence}" for sentence in group_description(model)] or [NO_EFFECTS])
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
        size = f"{counted(other.nodes, 'node')}, {counted(other.edges, 'edge')}"
        say([f"{number}. log joint {against}; {size}; sampled {often}"])
        say(f"   {line}" for line in graph_lines(model.pool, other.paths))
    if not others:
        say(["none: every sample of the chains' later half has this graph"])
    if kernels:
        title("Kernels")
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
