"""How a user's rows are prepared for a learner: scaled, with a linear block, around a population mean; and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from kerneltrail import gp
from kerneltrail.data import Batching, Cohort, Scaler, Schema, User
from kerneltrail.data.assignment import Assignment
from kerneltrail.data.scaling import TargetScaling
from kerneltrail.errors import DataError
from kerneltrail.gp import LinearBlock, Prediction, Reward
from kerneltrail.gp.population import PopulationMean
from kerneltrail.kernels import Hyperparameters
from kerneltrail.methods.protocol import Array
from kerneltrail.trajectory.map_table import block_of

Scaled = Literal["user", "group", "none"]
Preparation = Literal["automatic", "covariates", "none"]


@dataclass(frozen=True)
class Preprocessor:
    """How rows are prepared for a learner. Build it with `Preprocessor.of` or `group_preprocessor`.

    Attributes:
        schema: covariates and scaling; under ``user`` scaling, each user's own rows so far say what low and high are.
        before: the training group's scaler, used under ``user`` scaling before the first row.
        reward: the reward model, or one of a constant alone; None for neither.
        takes_action: whether the reward model needs the action.
        mean: the population mean of the scaled target at scaled rows, or None for zero.
    """

    schema: Schema
    before: Scaler
    reward: Reward | None = None
    takes_action: bool = False
    mean: PopulationMean | None = None

    @classmethod
    def of(
        cls,
        cohort: Cohort,
        *,
        scaling: Scaled | None = None,
        target_scaling: TargetScaling | None = None,
        reward: Reward | None = None,
        constant: float = 0.0,
    ) -> Preprocessor:
        """The preprocessor that a training cohort sets.

        Args:
            scaling: ``user`` scales covariates on the user's own rows so far, ``group`` as the training users',
                ``none`` not at all. If None: ``none`` where the cohort is not scaled, else ``user`` (method §8.4).
            target_scaling: of the target; the cohort's if None.
            reward: reward model with the action's advantage.
            constant: prior variance of a constant mean, where there is no reward model; 0 for none.
        """
        if scaling is None:
            scaling = "none" if cohort.schema.scaling == "none" else "user"
        target = cohort.schema.target_scaling if target_scaling is None else target_scaling
        schema = replace(cohort.schema, scaling=scaling, target_scaling=target).fitted(cohort.raw)
        group = Scaler.fit(cohort.raw, covariates=scaling != "none", target=target, ranges=schema.ranges)
        if constant < 0:
            raise DataError(f"the prior variance of a constant must not be negative, got {constant}")
        if reward is None and constant > 0:
            reward = Reward.constant(constant)
        return cls(schema, group, reward, reward is not None and reward.acts)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""
        return self.schema.covariates

    def prepare(self, rows: User) -> PreparedRows:
        """A user's rows, given in data units, as a learner takes them."""
        per_user = self.schema.scaling == "user"
        scaler = self.before if per_user and not rows.rows else self.schema.scaler_for(rows)
        scaled = scaler.apply(rows)
        if self.mean is not None and rows.rows:
            scaled = scaled.with_y(scaled.y - self.mean.at(scaled.X, scaled.assignment))
        return PreparedRows(self, scaler, scaled)


@dataclass(frozen=True)
class PreparedRows:
    """A user's rows as a learner takes them: scaled, the population mean subtracted; the scaler leads back."""

    preprocessor: Preprocessor
    scaler: Scaler
    rows: User

    @cached_property
    def block(self) -> LinearBlock | None:
        """The linear block at these rows."""
        if self.preprocessor.reward is None:
            return None
        if not self.rows.rows:
            return self.preprocessor.reward.block(self.rows.X, self.rows.covariates, np.empty(0))
        return block_of(self.rows, self.preprocessor.reward)

    @cached_property
    def whole(self) -> User:
        """The rows as one batch."""
        return self.rows.with_ends((self.rows.rows,)) if self.rows.rows else self.rows

    def posterior(self, hyperparameters: Hyperparameters) -> gp.Posterior:
        """The posterior given these rows; the prior if there are none."""
        if not self.rows.rows:
            return gp.prior_only(hyperparameters, self.rows.covariates, block=self.block)
        return gp.Posterior.fit(self.rows, hyperparameters, block=self.block)

    def inputs_at(self, X: Array, action: Assignment | None) -> tuple[Array, Array | None]:
        """Rows in data units, scaled, and the linear block's features at them."""
        scaled = self.scaler.transform(X)
        reward = self.preprocessor.reward
        return scaled, None if reward is None else reward.design(scaled, self.rows.covariates, action)

    def in_data_units(self, prediction: Prediction, scaled: Array, action: Assignment | None) -> Prediction:
        """A prediction of the target in data units, from one of the scaled target less the population mean."""
        mean = prediction.mean
        if self.preprocessor.mean is not None:
            mean = mean + self.preprocessor.mean.at(scaled, action)
        return Prediction(
            self.scaler.inverse_target(mean),
            self.scaler.inverse_variance(prediction.variance),
            float(self.scaler.inverse_variance(prediction.noise)),
            freedom=prediction.freedom,
        )


def group_preprocessor(cohort: Cohort, *, reward: Reward | None = None, constant: float = 0.0) -> Preprocessor:
    """As the trajectory model sees rows: what is learnt of hyperparameters is in the group's units."""
    scaling: Scaled = "none" if cohort.schema.scaling == "none" else "group"
    return Preprocessor.of(cohort, scaling=scaling, reward=reward, constant=constant)


def own_preprocessor(covariates: Sequence[str], scaling: Preparation = "automatic") -> Preprocessor:
    """A preprocessor for the rows of one user alone: scaled by themselves, without training users."""
    names = tuple(covariates)
    # A schema names columns of a table; here there is none, so any names do that are not covariates'.
    user, order, target = (label + "_" * sum(map(len, names)) for label in ("user", "order", "target"))
    schema = Schema(
        user,
        order,
        target,
        names,
        Batching(),
        scaling="none" if scaling == "none" else "user",
        target_scaling="standard" if scaling == "automatic" else "none",
    )
    return Preprocessor(schema, Scaler.identity(names))


@dataclass(frozen=True, eq=False)  # those that are equal say so themselves: some hold arrays
class PreprocessedLearner:
    """What learners with a preprocessor, which says how rows are seen, have in common."""

    preprocessor: Preprocessor

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns of X, in order."""
        return self.preprocessor.covariates

    @property
    def schema(self) -> Schema:
        """How the training users' table was read."""
        return self.preprocessor.schema

    @property
    def takes_action(self) -> bool:
        """Whether there is a reward model."""
        return self.preprocessor.takes_action

    @property
    def typical(self) -> float | None:
        """The action's probability at rows where nobody logged one; None where it does not matter (method (41))."""
        return None if self.preprocessor.reward is None else self.preprocessor.reward.typical
