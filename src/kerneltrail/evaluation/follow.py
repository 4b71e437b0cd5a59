"""Somebody new followed on a learnt model batch by batch, and what was right of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kerneltrail.data import User
from kerneltrail.evaluation.calibration import brier
from kerneltrail.kernels import Composition, layout_of
from kerneltrail.trajectory.model import TrajectoryModel


@dataclass(frozen=True)
class Followed:
    """One new user followed to the end; all tuples have one entry per batch.

    Attributes:
        preset, seed, user: which settings, which simulation, who.
        truth: the true kernel's text.
        ends: rows seen after each batch.
        compositions: selected after each batch.
        right: whether that is the truth.
        log_density: mean log predictive density of the batch's rows, predicted before they were seen. Predictions are
            Normal: those of several nodes are joined by mean and variance.
        rmse: root mean squared error of the same predictions.
        products, hyperparameters: size of the selected composition; noise counted.
        top: probability of the most probable node.
        on_truth: probability of the truth; 0 where it is not a node.
        brier: Brier score of the node probabilities.
    """

    preset: str
    seed: int
    user: str
    truth: str
    ends: tuple[int, ...]
    compositions: tuple[str, ...]
    right: tuple[bool, ...]
    log_density: tuple[float, ...]
    rmse: tuple[float, ...]
    products: tuple[int, ...]
    hyperparameters: tuple[int, ...]
    top: tuple[float, ...]
    on_truth: tuple[float, ...]
    brier: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def follow(
    model: TrajectoryModel, user: User, truth: Composition, *, preset: str = "", seed: int = 0, **changes: Any
) -> Followed:
    """Follow a user whose true kernel is known; `changes` override the model's settings of selection."""
    new = model.new_user(user.name, **changes)
    rows: list[tuple[Any, ...]] = []
    begin = 0
    for end in user.ends:
        X, y = user.X[begin:end], user.y[begin:end]
        said = new.predict(X)  # before the update: what was held out
        step = new.update(X, y)
        selected, probabilities = step.composition, step.probabilities
        rows.append(
            (
                selected.text,
                selected == truth,
                float(said.log_density(y).mean()),
                float(np.sqrt(np.mean((y - said.mean) ** 2))),
                len(selected),
                len(layout_of(selected).slots),
                max(probabilities.values()),
                probabilities.get(truth, 0.0),
                brier(probabilities, truth),
            )
        )
        begin = end
    return Followed(preset, seed, user.name, truth.text, tuple(map(int, user.ends)), *zip(*rows, strict=True))
