"""`kerneltrail describe`: a kernel in plain words."""

from __future__ import annotations

from typing import Annotated

import typer


def describe(
    kernel: Annotated[str, typer.Argument(help="A kernel, such as 'LIN[x] + PER[hour]'.")],
    target: Annotated[str, typer.Option("--target", help="What to call the target.")] = "y",
) -> None:
    """Say in plain words what a kernel means, with its hyperparameters at the prior's medians."""
    from kerneltrail.cli.terminal import say
    from kerneltrail.kernels import Hyperparameters, Priors, parse
    from kerneltrail.report.description import describe as in_words

    composition = parse(kernel)
    medians = Hyperparameters(composition, tuple(Priors.synthetic().moments(composition)[0]))
    say([composition.text or "(no kernel: noise alone)"], style="bold")
    say(f"• {sentence}" for sentence in in_words(medians, target=target))
    say((f"    {name} = {value:.3g}" for name, value in medians.items()), style="dim")
