"""How outcomes of pilot users lie in what is predicted of them, batch by batch (method (76))."""

from __future__ import annotations

from dataclasses import replace

from kerneltrail.data import Cohort, User
from kerneltrail.engines import one_blas_thread
from kerneltrail.gp.outcome_shape_search import Predicted, learn_shape
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.pilot_predictions import predicted_batches, some_of


def with_shape(model: TrajectoryModel, cohort: Cohort) -> TrajectoryModel:
    """The model with the shape of pilot users' outcomes, or as it is where that is a bell's or is not asked for."""
    if model.settings.shape == "none":
        return model
    with one_blas_thread():
        return replace(model, shape=learn_shape([_predicted(model, user) for user in some_of(cohort.raw)]))


def _predicted(model: TrajectoryModel, user: User) -> Predicted:
    return Predicted.of([(ahead.bell, batch.y) for _, batch, ahead in predicted_batches(model, user)])
