"""Pooled learning: the model is extended by the participants' rows, in a process of its own, while decisions go on."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import accumulate

from kerneltrail.data import Cohort, User
from kerneltrail.engines import one_blas_thread
from kerneltrail.engines.process import begin_worker
from kerneltrail.errors import TrialError
from kerneltrail.trajectory import model_file
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.model import TrajectoryModel, from_bytes
from kerneltrail.trial.rows import Row, arrays

PREFIX = "participant "
"""Before a participant's id, so that it is no pilot user's name."""

Batched = Mapping[str, Sequence[Sequence[Row]]]
"""Rows of participants, batch by batch."""


def joint(pilot: Cohort | None, model: LearntGraph, batches: Batched) -> Cohort:
    """Pilot users and participants as one cohort, scaled as the model's.

    Raises:
        TrialError: without the pilot users' rows, or with those of others.
    """
    if pilot is None:
        raise TrialError(
            "the protocol says pooled, which needs the rows that the model was learnt from: open the trial with pilot="
        )
    strangers = [name for name in pilot.names if name not in model.users]
    if strangers or pilot.covariates != model.covariates:
        raise TrialError(f"the pilot's rows are not those that the model was learnt from ({', '.join(strangers[:3])})")
    users = [_user(name, several, pilot, model) for name, several in batches.items()]
    return replace(pilot, raw=(*pilot.raw, *users), schema=model.schema)


def _user(name: str, several: Sequence[Sequence[Row]], pilot: Cohort, model: LearntGraph) -> User:
    rows = [row for batch in several for row in batch]
    X, y, assignment = arrays(rows, model.covariates)
    columns = {"action": assignment.action, "availability": assignment.available, "probability": assignment.probability}
    # What nobody logged of the pilot users is no column of theirs.
    known = {key: value for key, value in columns.items() if all(getattr(u, key) is not None for u in pilot.raw)}
    return User(f"{PREFIX}{name}", model.covariates, X, y, tuple(accumulate(map(len, several))), **known)


def extended(pilot: Cohort | None, model: LearntGraph, batches: Batched) -> TrajectoryModel:
    """The model learnt from pilot users and participants; its chains go on from where they stood."""
    cohort = joint(pilot, model, batches)
    context = multiprocessing.get_context("spawn")  # a copy of this process would share its connections
    with ProcessPoolExecutor(1, context, initializer=begin_worker, initargs=(os.getpid(),)) as pool:
        try:
            return from_bytes(pool.submit(_fit, cohort, model_file.to_bytes(model)).result())
        except BrokenProcessPool:
            raise TrialError("the process that extends the model was ended") from None


def _fit(cohort: Cohort, stored: bytes) -> bytes:
    with one_blas_thread():
        return model_file.to_bytes(fit(cohort, extend=from_bytes(stored), workers=1))
