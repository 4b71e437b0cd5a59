"""How often shrinkage selects exactly what simulated rows were made of, by each of its judges."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from kerneltrail.data import Cohort, User, simulate
from kerneltrail.kernels import Composition, Hyperparameters, Pool, Priors, layout_of, parse
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.shrinkage.learner import SelectionRule, Shrinkage

POOLS = {
    "paper": Pool.paper("x"),
    "apart": Pool.of("LIN[a]", "LIN[b]", "LIN[c]", "SE[d]", "SE[e]", "SE[f]", "PER[g]", "PER[h]"),
}
"""The paper's eight products of one covariate, several of which can stand in for each other; and eight that cannot."""

ROWS = (30, 100, 200)
"""How many rows are simulated."""

WEAK = 0.1
"""A component whose share of the signal's variance is smaller is one that `Shrinkage.share` is meant to leave out."""


@dataclass(frozen=True)
class Draw:
    """One simulated user, as one judge sees it.

    Attributes:
        settings: of the learner, its seed left out.
        judge: what decided.
        pool: name of the pool.
        rows: number of rows.
        seed: of the simulation.
        truth: what the rows were made of; empty for noise alone.
        smallest: the smaller true component's expected share of the signal's variance at these rows; 1 for noise alone.
        selected: what was selected.
        cpu: processor seconds of the fit, and of the judge.
    """

    settings: str
    judge: str
    pool: str
    rows: int
    seed: int
    truth: str
    smallest: float
    selected: str
    cpu: float

    @property
    def wanted(self) -> Composition:
        """The true composition."""
        return parse(self.truth)

    @property
    def found(self) -> Composition:
        """The selected one."""
        return parse(self.selected)

    @property
    def key(self) -> tuple[str, str, int, int, bool]:
        """What tells it from other draws."""
        return (self.settings, self.pool, self.rows, self.seed, bool(self.truth))


def settings_of_draws() -> str:
    """The settings of the learner that draws are given to."""
    return _learner(Preprocessor.of(Cohort.from_users([_nobody()], scaling="none")), POOLS["paper"], 0).settings


def _nobody() -> User:
    return User("nobody", ("x",), [[0.0]], [0.0], (1,))


def _learner(preprocessor: Preprocessor, pool: Pool, seed: int) -> Shrinkage:
    return Shrinkage(preprocessor, pool, Priors.synthetic(), pairs=4, seed=seed)


def run_draw(name: str, rows: int, seed: int, *, active: int = 2) -> tuple[Draw, ...]:
    """Draw `active` products of a pool and all hyperparameters from the paper's priors, simulate, fit and select.

    Covariates are uniform on [-4, 4] (SPEC §9). There is one fit, from which each judge selects.
    """
    pool, priors = POOLS[name], Priors.synthetic()
    rng = np.random.default_rng([seed, rows, active])
    X = rng.uniform(-4.0, 4.0, (rows, len(pool.covariates)))
    truth = Composition(tuple(pool.products[i] for i in rng.permutation(len(pool))[:active]))
    theta = Hyperparameters(truth, tuple(priors.sample(truth, 1, rng)[0]))
    user = simulate.user(truth, theta, X, rng, covariates=pool.covariates)
    learner = _learner(Preprocessor.of(Cohort.from_users([user], scaling="none")), pool, seed)
    used = time.process_time()
    fit = learner.fit(user, None)
    fitted = time.process_time() - used
    weak, draws = smallest_share(theta, user), []
    for judge in get_args(SelectionRule):
        used = time.process_time()
        found = replace(fit, learner=replace(learner, judge=judge)).composition
        cpu = fitted + time.process_time() - used
        draws.append(Draw(learner.settings, judge, name, rows, seed, truth.text, weak, found.text, cpu))
    return tuple(draws)


def smallest_share(theta: Hyperparameters, user: User) -> float:
    """The smallest component's share of the signal's expected variance over the rows, tr(HK)/n with H = I - 11'/n."""
    layout, values, sizes = layout_of(theta.composition), theta.values_array, []
    for p, product in enumerate(theta.composition):
        total = np.full((user.rows, user.rows), values[layout.amplitude_index[p]])
        for atom, place in zip(product.atoms, layout.atom_index[p], strict=True):
            column = user.X[:, user.column_index(atom.covariate)]
            total *= atom.spec.covariance(column, column, values[place])
        sizes.append(float(np.trace(total) - total.mean() * user.rows) / user.rows)
    return min(sizes) / sum(sizes) if sizes else 1.0


def recovery_table(draws: Sequence[Draw]) -> str:
    """How often exactly the true components are selected, by pool, number of rows and judge."""
    lines = [
        "| pool | rows | judge | draws | exactly | both among them | nothing false | selected (mean) | "
        "exactly, no component weak | noise alone: none selected | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows, judge in itertools.product(POOLS, ROWS, get_args(SelectionRule)):
        own = [each for each in draws if (each.pool, each.rows, each.judge) == (name, rows, judge)]
        signal, noise = [e for e in own if e.truth], [e for e in own if not e.truth]
        if not signal:
            continue
        strong = [each for each in signal if each.smallest >= WEAK]
        cells = [
            _share(sum(e.found == e.wanted for e in signal), len(signal)),
            _share(sum(set(e.found) >= set(e.wanted) for e in signal), len(signal)),
            _share(sum(set(e.found) <= set(e.wanted) for e in signal), len(signal)),
            f"{np.mean([len(e.found) for e in signal]):.1f}",
            _share(sum(e.found == e.wanted for e in strong), len(strong)) + f" of {len(strong)}",
            _share(sum(not e.found for e in noise), len(noise)) + (f" of {len(noise)}" if noise else ""),
            f"{np.mean([e.cpu for e in own]):.1f}",
        ]
        lines.append(f"| {name} | {rows} | {judge} | {len(signal)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _share(count: int, total: int) -> str:
    return f"{100.0 * count / total:.0f} %" if total else "–"
