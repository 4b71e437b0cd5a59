"""What was found of each pilot user, as plain rows that a model keeps: the ground for words about the group."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from kerneltrail.data import User
from kerneltrail.engines import one_blas_thread
from kerneltrail.errors import NumericalError
from kerneltrail.kernels import Array, Hyperparameters
from kerneltrail.trajectory.echo import PilotEcho
from kerneltrail.trajectory.effect_search import effects_of, spans_of
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.level import posteriors, with_level
from kerneltrail.trajectory.pilot_predictions import some_of
from kerneltrail.trajectory.user_state import CONTEXTS


def pilot_echo(model: LearntGraph, users: Sequence[User], thetas: Sequence[Array]) -> PilotEcho | None:
    """How alike neighbouring rows are in what is left of (some) pilot users; arguments are those of `pilot_effects`."""
    rests = []
    with one_blas_thread():
        for user, path, theta in some_of(list(zip(users, model.paths, thetas, strict=True))):
            fitted = Hyperparameters(model.pool.composition(path[-1]), tuple(theta))
            with suppress(NumericalError, np.linalg.LinAlgError):
                level = with_level(model, user)
                (kernel,) = posteriors(level, user, [fitted], [1.0])
                rests.append(kernel.rest(level, user.newest(CONTEXTS)))
    return PilotEcho.of(rests)


def pilot_effects(model: LearntGraph, users: Sequence[User], thetas: Sequence[Array]) -> tuple[dict[str, Any], ...]:
    """The effects of all covariates for every pilot user, under the last composition of its path.

    Spans are those of all pilot users' rows together, so that users can be compared. Each user is judged under one
    composition with its MAP hyperparameters at the last batch; there is no average over compositions.

    Args:
        model: what was learnt.
        users: the pilot users, scaled and less the population mean, in the order of the model's paths.
        thetas: for each of them the hyperparameters under its last composition, unconstrained.
    """
    if model.schema.scaler is None:
        return ()  # scaled user by user, there is no common span
    over = spans_of(model, np.concatenate([user.X for user in users]))  # once: there may be thousands of users
    rows: list[dict[str, Any]] = []
    with one_blas_thread():
        for user, path, theta in zip(users, model.paths, thetas, strict=True):
            fitted = Hyperparameters(model.pool.composition(path[-1]), tuple(theta))
            try:
                level = with_level(model, user)
                effects = effects_of(
                    level, posteriors(level, user, [fitted], [1.0]), user.newest(CONTEXTS), user.rows, over
                )
            except (NumericalError, np.linalg.LinAlgError) as problem:
                # A finished fit is worth more than one user's effects.
                warnings.warn(f"the effects of pilot user {user.name!r} could not be computed: {problem}", stacklevel=2)
                continue
            rows += [{"user": user.name, "rows": user.rows, **row} for row in effects.to_json()]
    return tuple(rows)
