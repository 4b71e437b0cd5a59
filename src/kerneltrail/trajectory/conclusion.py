"""From chains to a model: the chosen structure, what users share on it, and whether it tells what comes next."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.data.checks import quantiles_of_columns
from kerneltrail.engines import Engine
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PopulationMean
from kerneltrail.kernels import Hyperparameters, Priors
from kerneltrail.trajectory import sampler
from kerneltrail.trajectory.advancing import FEWEST, advancing, followed, without, worth_of
from kerneltrail.trajectory.candidates import Candidates
from kerneltrail.trajectory.graph import Diagnostics
from kerneltrail.trajectory.learnt_nodes import average_of, nodes_of
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.outcomes import with_shape
from kerneltrail.trajectory.pilot_effects import pilot_echo, pilot_effects
from kerneltrail.trajectory.sampler.chains import Chain, ChainTarget, FitProgress, run_chains
from kerneltrail.trajectory.sampler.constant import stretched, whole
from kerneltrail.trajectory.sampler.convergence import late_states, rhats, traces_of
from kerneltrail.trajectory.sampler.joint import ALTERNATIVES, State, Structure, choose
from kerneltrail.trajectory.sampler.urn import Counts, Paths
from kerneltrail.trajectory.second_walk import walked_again
from kerneltrail.trajectory.sharing import Pilots, learn_together, what_all_share
from kerneltrail.trajectory.tails import with_tails

SHARING = "learning what users share"
"""The stage of a fit that comes after its chains."""

NEXT = "what comes next"
"""The step of it in which chains run once more."""

STEPS = 6
"""Of that stage, at most."""


@dataclass(frozen=True)
class Conclusion:
    """How a fit ends, whichever candidates its chains were restricted to.

    Attributes:
        cohort: the pilot users.
        users: the same, scaled and less the mean.
        table: fits of them under the priors.
        priors: over hyperparameters.
        mean: what users vary around; None for zero.
        reward: the reward model of the chains.
        found: the candidates.
        engine: what runs the jobs.
    """

    cohort: Cohort
    users: tuple[User, ...]
    table: MapTable
    priors: Priors
    mean: PopulationMean | None
    reward: Reward | None
    found: Candidates
    engine: Engine

    def model(
        self, target: ChainTarget, chains: Sequence[Chain], tell: Callable[[FitProgress], None]
    ) -> TrajectoryModel:
        """The model with all that is learnt given its structure."""
        steps = iter(range(STEPS))

        def began(said: str) -> int:
            step = next(steps)
            tell(FitProgress(SHARING, step, STEPS, said))
            return step

        began("a function of each covariate")
        shared = self._with_curves(target)
        model, pilots = shared._learnt(target, chains, began)
        # Around no mean there is nothing to fall back on.
        if target.settings.advancing == "judged" and self.mean is not None and self.cohort.schema.scaler is not None:
            step = began(NEXT)

            def sampled(now: FitProgress) -> None:
                tell(FitProgress(SHARING, step, STEPS, f"{NEXT}: {now.done} of at most {now.total} sweeps"))

            model, pilots = shared._judged(model, pilots, target, sampled)
        if self.cohort.schema.scaler is not None:
            began("which outcomes there are")
            model = with_shape(model, self.cohort)
        began("effects of pilot users")
        if model.mean is not None:  # the reward model has it by now
            model = replace(model, mean=replace(model.mean, own=None))
        thetas = [each.vector for each in pilots.fitted]
        if self.cohort.schema.scaler is not None:
            model = replace(model, echo=pilot_echo(model, pilots.users, thetas))
        return replace(model, pilot_effects=pilot_effects(model, pilots.users, thetas))

    def _with_curves(self, target: ChainTarget) -> Conclusion:
        """With the mean as new users get it."""
        if self.mean is None or self.cohort.schema.scaling != "group":
            return self
        mean = what_all_share(self.mean, self.cohort.users, curves=target.settings.mean == "smooth")
        return replace(self, mean=mean, users=tuple(mean.levelled(user) for user in self.cohort.users))

    def _learnt(
        self, target: ChainTarget, chains: Sequence[Chain], began: Callable[[str], int] = lambda said: 0
    ) -> tuple[TrajectoryModel, Pilots]:
        """What the chains chose, with what users share and their tails, and the pilot users as it was learnt."""
        model = self._chosen(target, chains)
        pilots = Pilots(
            self.users,
            tuple(
                Hyperparameters(model.pool.composition(path[-1]), tuple(self.table.get(m, path[-1]).theta[-1]))
                for m, path in enumerate(model.paths)
            ),
        )
        if self.cohort.schema.scaler is not None:
            began("how users differ")
            if model.settings.sharing == "joint":
                model, pilots = self._shared(model, target, chains)
            began("how far out rows lie")
            model, pilots = with_tails(model, pilots, self.cohort, self.table)
        return model, pilots

    def _judged(
        self, model: TrajectoryModel, pilots: Pilots, target: ChainTarget, tell: Callable[[FitProgress], None]
    ) -> tuple[TrajectoryModel, Pilots]:
        """The model, or the one without kernels on covariates that move on, by pilot users' next batches (method (78)).

        Both are learnt from the same fits and evidences, but for candidates that nobody needed before; so the other one
        takes some chains more.
        """
        moving = advancing(self.cohort.raw)
        read = moving & {name for node in model.selectable for name in node.composition.covariates}
        still = {without(model.pool, mask, moving) for mask in target.candidates}
        still = still | {0} if model.pool.allow_empty else still - {0}
        if not read or not still:
            return model, pilots
        before = followed(model, self.cohort.raw)
        if len({user for user, _ in before}) < FEWEST:
            return model, pilots
        restricted = self._restricted(target, still)
        other, others = self._learnt(restricted, run_chains(restricted, self.engine, tell, None))
        worth = worth_of(tuple(sorted(read)), before, followed(other, self.cohort.raw))
        if worth is None:
            return model, pilots
        model, pilots = (model, pilots) if worth.clear else (other, others)
        return replace(model, diagnostics=replace(model.diagnostics, advancing=worth)), pilots

    def _restricted(self, target: ChainTarget, masks: Set[int]) -> ChainTarget:
        """Chains' target on other candidates, with fits and evidences of those that were none before."""
        new = sorted(masks - set(target.candidates))
        pairs = [(user, mask) for user in range(len(self.users)) for mask in new]

        self.table.compute(pairs, workers=self.engine)
        if target.table is not self.table:  # constant paths have a table of all rows
            for pair in pairs:
                target.table.put(*pair, whole(self.table.get(*pair)))
        restricted = target.restricted(tuple(sorted(masks, key=lambda mask: (mask.bit_count(), mask))))
        restricted.evidence.prepare(self.engine, lambda done, total: None)
        return restricted

    def _chosen(self, target: ChainTarget, chains: Sequence[Chain]) -> TrajectoryModel:
        """The structure that the chains chose, as a model."""
        settings, table, found, cohort = target.settings, target.table, self.found, self.cohort
        sweeps = len(chains[0].log_joint)
        states, structures = _structures(target, chains)
        chosen = structures[0]
        acceptance = {}
        for name in chains[0].info:
            proposed, accepted, _ = np.sum([chain.info[name] for chain in chains], axis=0).tolist()
            acceptance[name] = accepted / max(proposed, 1)
        cut = {"kernels": float(found.cut), "share": found.share} if found.cut else {}
        diagnostics = Diagnostics(sweeps, {}, {}, acceptance, {}, {}, cut)
        names = tuple(user.name for user in table.users)
        nodes = nodes_of(table, chosen.paths, names)
        return TrajectoryModel(
            cohort.schema,
            table.pool,
            self.priors,
            settings,
            names,
            tuple(stretched(each, [user.batches for user in cohort.users]) for each in structures)
            if settings.paths == "constant"
            else structures,
            nodes,
            self.reward,
            _agreeing(diagnostics, chains, chosen.paths),
            {
                "version": version("kerneltrail"),
                "users": {user.name: user.fingerprint for user in cohort.users},
                "rows": {user.name: user.rows_digest for user in cohort.users},
                "columns": quantiles_of_columns(cohort.schema, cohort.raw),
                "candidates": [table.pool.composition(mask).text for mask in target.candidates],
                **({"evidence": dict(target.evidence.about)} if target.evidence.about else {}),
            },
            mean=self.mean,
            averaged=average_of(table, states, nodes, names) if settings.structure == "averaged" else None,
        )

    def _shared(
        self, model: TrajectoryModel, target: ChainTarget, chains: Sequence[Chain]
    ) -> tuple[TrajectoryModel, Pilots]:
        """The model with what pilot users share, whose steps are counted again under that where the settings say so."""
        users, table = self.cohort.users, self.table
        shared, pilots = learn_together(model, users, table)
        paths = walked_again(shared, users, table, self.engine) if model.settings.walks_again else model.paths
        if paths == model.paths:
            return shared, pilots
        codes = target.book.encode(paths)
        visits = sum(np.array_equal(state.codes(target.book), codes) for state in late_states(chains))
        nodes = nodes_of(table, paths, model.users)
        structure = Structure(paths, target.rescore(paths)[0], len(nodes), Counts.of(paths).edges, visits)
        others = [each for each in model.structures if each.graph != structure.graph]
        walked = replace(
            model,
            structures=(structure, *others[:ALTERNATIVES]),
            nodes=nodes,
            # Chains are judged by what they chose themselves, which is also when they stop.
            diagnostics=replace(model.diagnostics, traces=traces_of(chains, paths)),
        )
        return learn_together(walked, users, table)


def _agreeing(diagnostics: Diagnostics, chains: Sequence[Chain], paths: Paths) -> Diagnostics:
    """Diagnostics with how far the chains agree with each other, and with the chosen paths."""
    traces = traces_of(chains, paths)
    late = {name: trace[:, diagnostics.sweeps // 2 :] for name, trace in traces.items()}  # the first half is warm-up
    return replace(diagnostics, rhat=rhats(late), ess=sampler.sizes(late), traces=traces)


def _structures(target: ChainTarget, chains: Sequence[Chain]) -> tuple[list[State], tuple[Structure, ...]]:
    """The states of the later half of the sweeps; and of their structures the chosen one, then the alternatives."""
    settings = target.settings
    rescored = lru_cache(maxsize=None)(target.rescore)
    states = late_states(chains, (lambda paths: rescored(paths)[0]) if target.evidence.learns else None)
    worth = (lambda paths: rescored(paths)[1]) if settings.margin_of == "likelihood" else None
    return states, choose(states, margin=settings.margin, worth=worth, choice=settings.choice)
