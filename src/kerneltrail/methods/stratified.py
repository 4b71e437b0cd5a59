"""Stratified: a distribution over compositions for each time step, with no memory of the composition before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.kernels import Composition, Pool, Priors
from kerneltrail.methods.ard import fitted
from kerneltrail.methods.candidate_fits import SCREEN, STARTS, CandidateEvidences, CandidateSearch
from kerneltrail.methods.mixture import SMALL, Mixture, MixtureLearner
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.methods.registry import register_learner
from kerneltrail.trajectory.map_table import Group


def step_distribution(log_evidence: Array, log_h0: Array, alpha: float, *, rounds: int = 500) -> Array:
    """p(K) at one time step, learnt from the users who have got there.

    One restaurant for the step, whoever the parent: users draw from π ~ Dirichlet(α·H0). Alternate r[m,K] ∝
    π_K·p(y_m|K) and π_K = (α·H0(K) + Σ_m r[m,K])/(α + M): the urn's predictive probability at the expected counts.
    `log_evidence` is (users, candidates); `log_h0` need not be normalised over the candidates.
    """
    h0 = np.exp(log_h0 - log_h0.max())
    h0 /= h0.sum()
    pi = h0
    for _ in range(rounds):
        counts = responsibilities(log_evidence, pi).sum(axis=0)
        new = (alpha * h0 + counts) / (alpha + len(log_evidence))
        if np.abs(new - pi).max() < 1e-9:
            return new
        pi = new
    return pi


def responsibilities(log_evidence: Array, pi: Array) -> Array:
    """p(K|y_m) under π, (users, candidates)."""
    with np.errstate(divide="ignore"):
        log = log_evidence + np.log(pi)
    weights = np.exp(log - log.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Stratified(MixtureLearner):
    """Selection by the step's distribution and the user's evidence; a `Learner`.

    `steps` is p(K) for each step over the compositions that matter at some step, (T, candidates); past the last step of
    training, the last distribution goes on. `groups` are what training users say of the compositions' hyperparameters.
    """

    compositions: tuple[Composition, ...]
    groups: tuple[Group, ...]
    steps: Array
    seed: int = 0

    in_pieces = False

    @classmethod
    def train(
        cls,
        cohort: Cohort,
        preprocessor: Preprocessor,
        pool: Pool,
        priors: Priors,
        *,
        alpha: float = 1.0,
        search: CandidateSearch | None = None,
        seed: int = 0,
    ) -> Stratified:
        """Learn each step's distribution over what a search finds; what is nowhere above 0.001 is dropped."""
        evidences = CandidateEvidences(cohort, preprocessor, pool, priors, search or CandidateSearch())
        steps = [step_distribution(evidences.at(t), evidences.log_h0, alpha) for t in range(1, evidences.batches + 1)]
        table = np.array(steps)
        keep = np.flatnonzero(table.max(axis=0) >= SMALL)
        table = table[:, keep] / table[:, keep].sum(axis=1, keepdims=True)
        masks = [evidences.masks[i] for i in keep]
        # Whose hyperparameters: of the users for whom the composition is probable at the end; else of all.
        weights = responsibilities(evidences.last(), steps[-1])[:, keep]
        groups = [
            evidences.group(mask, np.flatnonzero(weights[:, i] > 0.5).tolist() or None) for i, mask in enumerate(masks)
        ]
        compositions = tuple(evidences.composition(mask) for mask in masks)
        return cls(preprocessor, compositions, tuple(groups), table, seed)

    def fit(self, rows: User, before: Fit | None) -> Mixture:
        """The candidates weighed by the step's distribution times their evidence on all rows seen."""
        prepared = self.preprocessor.prepare(rows)
        step = self.steps[min(max(rows.batches, 1), len(self.steps)) - 1]
        members, log = [], []
        for composition, group, p in zip(self.compositions, self.groups, step.tolist(), strict=True):
            if p <= 0.0:
                continue
            hyperparameters, evidence = fitted(prepared, composition, group, STARTS, SCREEN, self.seed)
            members.append(hyperparameters)
            log.append(float(np.log(p)) + evidence)
        return Mixture.weighed(prepared, members, log)


register_learner("stratified", Stratified.train)
