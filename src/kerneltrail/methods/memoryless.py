"""Memoryless: each user's compositions judged by that user's rows alone, by evidence and H0; nothing is transferred."""

from __future__ import annotations

from dataclasses import dataclass, field

from kerneltrail.data import User
from kerneltrail.kernels import Hyperparameters, Pool, Priors
from kerneltrail.methods.candidate_fits import CandidateSearch
from kerneltrail.methods.mixture import Mixture, MixtureLearner
from kerneltrail.methods.protocol import Fit
from kerneltrail.methods.registry import register_learner
from kerneltrail.trajectory.candidates import support
from kerneltrail.trajectory.map_table import MapTable


@dataclass(frozen=True)
class Memoryless(MixtureLearner):
    """The posterior over a pool's compositions given one user's rows; a `Learner`.

    p(K|y) ∝ H0(K)·p(y|K), p(y|K) by Laplace, normalised over the candidates that a search finds promising: what
    sampling compositions for the user alone would converge to. Restarted on every cumulative set. Predictions are
    averaged over compositions, or without `average` come from the selected one.
    """

    pool: Pool
    priors: Priors
    search: CandidateSearch = field(default_factory=CandidateSearch)
    average: bool = True

    in_pieces = True

    def fit(self, rows: User, before: Fit | None) -> Mixture:
        """The candidates weighed by H0 times their evidence; before any row, single products by H0."""
        prepared = self.preprocessor.prepare(rows)
        if rows.rows:
            # One name for everybody: starts are seeded by the content of the rows, and the name is none of it.
            one = prepared.whole.with_name("one")
            table = MapTable([one], self.pool, self.priors, self.search.maps, self.preprocessor.reward)
            fits = {mask: table.get(0, mask) for mask in support(table, self.search.largest, self.search.width)}
            fitted = {mask: (fit.theta[-1], float(fit.log_laplace[-1])) for mask, fit in fits.items()}
        else:
            singles = [1 << i for i in range(len(self.pool))]
            fitted = {mask: (self.priors.moments(self.pool.composition(mask))[0], 0.0) for mask in singles}
        members = [Hyperparameters(self.pool.composition(mask), tuple(theta)) for mask, (theta, _) in fitted.items()]
        log = [self.pool.log_h0(mask) + evidence for mask, (_, evidence) in fitted.items()]
        mixture = Mixture.weighed(prepared, members, log)
        if self.average:
            return mixture
        best = next(member for member in mixture.members if member.composition == mixture.composition)
        return Mixture.single(mixture.prepared, best)


register_learner("memoryless", Memoryless, "own rows")
