"""Values as plain descriptions and digests: what was computed must not be taken for something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np

from kerneltrail.data import Cohort, Scaler, User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Composition, Product
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.protocol import Method
from kerneltrail.methods.refit import RefittingMethod
from kerneltrail.store.digest import library
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.model_file import fingerprint


def described(value: Any) -> Any:
    """A value as plain JSON, the same in every process: for digests, and for people to read what was asked for.

    Raises:
        DataError: for a value whose content cannot be told, such as a function.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, np.generic):
        return described(value.item())
    if isinstance(value, np.ndarray):
        return {"array": [str(value.dtype), list(value.shape), described(value.tolist())]}
    if isinstance(value, Composition | Product | PurePath):
        return str(value)
    if isinstance(value, User):
        return {"user": value.fingerprint}
    if isinstance(value, TrajectoryModel):
        return {"model": fingerprint(value)}
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: described(getattr(value, field.name)) for field in fields(value) if field.compare}
        return {type(value).__name__: own}
    if isinstance(value, Mapping):
        return {str(key): described(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, Set):
        return sorted((described(item) for item in value), key=repr)
    if isinstance(value, Sequence):
        return [described(item) for item in value]
    raise DataError(f"a setting of type {type(value).__name__} cannot be described, so its results cannot be kept")


def digest(*values: Any) -> str:
    """A digest of values and of the package's version."""
    said = json.dumps([version("kerneltrail"), *map(described, values)], sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def cohort_digest(cohort: Cohort) -> str:
    """A digest of users, and of how they are scaled."""
    return digest(cohort.schema.to_json(), [user.fingerprint for user in cohort.raw])


def own_digest(method: Method) -> str | None:
    """A digest of all that matters to a user who has rows, code included, for a method without training users.

    Two methods with the same one do the same from the first batch on, whoever the training users were; before the first
    row, their scaler matters. None where the method is of another kind.
    """
    if not isinstance(method, RefittingMethod):
        return None
    learner: Any = method.learner
    frame = getattr(learner, "preprocessor", None)
    if not is_dataclass(learner) or not isinstance(frame, Preprocessor):
        return None
    seen = replace(frame, before=Scaler.identity(frame.covariates))
    return digest(library(), method.method, replace(learner, preprocessor=seen))  # type: ignore[type-var]
