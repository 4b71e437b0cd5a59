"""How far cheap log evidences are from nested sampling, on problems small enough for it. Needs the extra ``bench``.

Each problem is a simulated user and a composition. Four evidences integrate the likelihood over the synthetic prior:
Laplace's, importance sampling (`sampled`), the mean over draws from the prior, and the likelihood at the user's own
MAP, which is how the published evidence judges a composition with one customer. Those under a group prior, which are
Laplace's, searched anew or in closed form (`quadratic`), and draws weighed by it, integrate over another distribution,
so they are compared with nested sampling under that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np
from rich.table import Table
from scipy.special import logsumexp, ndtri
from scipy.stats import kendalltau

from kerneltrail.data import User, simulate
from kerneltrail.errors import KerneltrailError
from kerneltrail.gp import evidence_of, inputs_for, one_blas_thread
from kerneltrail.gp.map import Prior
from kerneltrail.kernels import Composition, Priors, parse
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, duration, silent
from kerneltrail.trajectory.evidence.empirical import PRIOR_DRAWS
from kerneltrail.trajectory.evidence.group import Quadratic
from kerneltrail.trajectory.evidence.group_sampled import reweighted
from kerneltrail.trajectory.evidence.sampled import Proposal, values_of
from kerneltrail.trajectory.map_table import MapSettings, fit_path, group_of

KERNELS = ("LIN[x]", "SE[x]", "PER[x]", "LIN[x] + PER[x]", "LIN[x]*SE[x]")


@dataclass(frozen=True)
class NestedBenchmark(Benchmark):
    """Evidences beside nested sampling.

    Attributes:
        sizes: rows of the users; one user with each true kernel for each size.
        kernels: compositions that each user is judged under.
        live: live points of the nested sampler; with 1,000 its standard error is about 0.06, with 200 it is 0.13.
        others: further users of the same truth, from whom the group prior is learnt.
    """

    sizes: tuple[int, ...] = (7, 17, 37)
    kernels: tuple[str, ...] = KERNELS
    live: int = 1000
    others: int = 3

    name = "nested"
    title = "Log evidences beside nested sampling: errors in nats"
    in_all = False

    @classmethod
    def quick(cls) -> Self:
        """A few seconds' worth."""
        return cls(sizes=(7,), kernels=KERNELS[:2], live=60)

    @property
    def steps(self) -> int:
        """How many problems there are."""
        return 2 * len(self.sizes) * len(self.kernels)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row per problem and evidence: its value, the nested sampler's, and that one's own standard error."""
        _dynesty()  # before anything is computed: it may not be installed
        priors, maps = Priors.synthetic(), MapSettings(starts=4, screen=32)
        for size in self.sizes:
            simulation = simulate.paper(train=2 * self.others, test=2, seed=seed + size, batches=(size,))
            for user in simulation.test.users:
                truth = simulation.truth[user.name]
                others = [other for other in simulation.train.users if simulation.truth[other.name] == truth]
                for kernel in self.kernels:
                    tick(f"nested sampling of {kernel}, {size} rows of {truth}")
                    with one_blas_thread():
                        yield from self._rows(user, others, truth, parse(kernel), priors, maps, seed)

    def _rows(
        self,
        user: User,
        others: Sequence[User],
        truth: Composition,
        composition: Composition,
        priors: Priors,
        maps: MapSettings,
        seed: int,
    ) -> Iterator[Row]:
        began = perf_counter()
        fits = fit_path(user, composition, priors, maps, None)
        laplace_seconds = perf_counter() - began
        group = group_of(composition, [fit_path(o, composition, priors, maps, None).theta[-1] for o in others], priors)
        began = perf_counter()
        under_group = fit_path(user, composition, group, maps, None)
        group_seconds = perf_counter() - began
        quadratic = Quadratic.of(fits, *priors.moments(composition))
        began = perf_counter()
        closed = quadratic.log_evidence(group.mean, group.variance)
        closed_seconds = perf_counter() - began
        began = perf_counter()
        sampled = values_of(Proposal(user, composition, priors, None, fits, np.random.default_rng(seed)))
        sampled_seconds = laplace_seconds + perf_counter() - began
        proposed = Proposal(user, composition, priors, None, fits, np.random.default_rng(seed), group).run()
        mean, variance = priors.moments(composition)
        began = perf_counter()
        weighed, _ = reweighted(proposed, (group.mean - mean) / np.sqrt(variance), group.variance / variance)
        weighed_seconds = perf_counter() - began
        inputs = inputs_for(user, composition)
        began = perf_counter()
        draws = priors.sample(composition, PRIOR_DRAWS, np.random.default_rng(seed))
        drawn = float(logsumexp(evidence_of(inputs, draws, method="dense").log[:, -1])) - math.log(PRIOR_DRAWS)
        draws_seconds = perf_counter() - began

        def log_likelihood(theta: Any) -> float:
            return float(evidence_of(inputs, theta, method="dense").log[0, -1])

        reference = _nested(log_likelihood, priors, composition, self.live, seed)
        group_reference = _nested(log_likelihood, group, composition, self.live, seed)
        for method, value, against, seconds in (
            ("laplace", float(fits.log_laplace[-1]), reference, laplace_seconds),
            ("sampled", float(sampled.log_evidence[-1]), reference, sampled_seconds),
            ("group laplace", float(under_group.log_laplace[-1]), group_reference, group_seconds),
            ("group closed form", float(closed[-1]), group_reference, closed_seconds),
            ("group sampled", float(weighed[-1]), group_reference, weighed_seconds),
            ("own MAP", float(fits.log_likelihood[-1]), reference, laplace_seconds),
            ("prior draws", drawn, reference, draws_seconds),
        ):
            yield self.row(
                f"{composition.text} on {truth.text}",
                user.rows,
                method,
                seconds,
                batches=1,
                samples=1,
                composition=composition.text,
                truth=truth.text,
                log_evidence=value,
                nested=against[0],
                nested_error=against[1],
                nested_seconds=against[2],
                error=value - against[0],
            )

    @classmethod
    def table(cls, rows: Sequence[Row]) -> Table:
        """A line for each evidence."""
        shown = ("mean", "median", "95 %", "largest", "bias", "tau")
        table = cls.empty_table(rows, "method", "problems", *shown, "same best", "seconds")
        names = ("mean_error", "median_error", "error_95", "largest_error", "bias", "tau")
        for line in summary(rows):
            errors = (f"{line[name]:.2f}" for name in names)
            same, seconds = f"{line['same_best']:.0%}", duration(line["seconds"])
            table.add_row(line["method"], str(line["problems"]), *errors, same, seconds)
        return table


def _nested(
    log_likelihood: Callable[[Any], float], prior: Prior, composition: Composition, live: int, seed: int
) -> tuple[float, float, float]:
    """(log evidence, its standard error, seconds) by nested sampling."""
    dynesty = _dynesty()
    mean, variance = prior.moments(composition)
    scale = np.sqrt(variance)
    began = perf_counter()
    sampler = dynesty.NestedSampler(
        log_likelihood,
        lambda u: mean + scale * ndtri(u),
        len(mean),
        nlive=live,
        sample="rwalk",  # periods have many modes, around which ellipsoids for uniform draws are wasteful
        walks=20,
        rstate=np.random.default_rng(seed),
    )
    sampler.run_nested(print_progress=False, dlogz=0.05)
    results = sampler.results
    return float(results.logz[-1]), float(results.logzerr[-1]), perf_counter() - began


def _dynesty() -> Any:
    try:
        import dynesty  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise KerneltrailError("this benchmark needs dynesty: pip install 'kerneltrail[bench]'") from None
    return dynesty


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each evidence: mean, median, 95 % quantile and largest of absolute errors, and how it ranks compositions.

    ``tau`` is Kendall's, averaged over users; ``same_best`` is the share of users with the same best composition.
    """
    lines = []
    for method in dict.fromkeys(r["method"] for r in rows):
        of_method = [r for r in rows if r["method"] == method]
        errors = np.array([r["error"] for r in of_method])
        taus, best = [], []
        for key in dict.fromkeys((r["n"], r["truth"]) for r in of_method):
            group = [r for r in of_method if (r["n"], r["truth"]) == key]
            ours, theirs = [r["log_evidence"] for r in group], [r["nested"] for r in group]
            taus.append(float(kendalltau(ours, theirs).statistic))
            best.append(int(np.argmax(ours)) == int(np.argmax(theirs)))
        lines.append(
            {
                "method": method,
                "problems": len(of_method),
                "mean_error": float(np.abs(errors).mean()),
                "median_error": float(np.median(np.abs(errors))),
                "error_95": float(np.quantile(np.abs(errors), 0.95)),
                "largest_error": float(np.abs(errors).max()),
                "bias": float(errors.mean()),
                "tau": float(np.mean(taus)),
                "same_best": float(np.mean(best)),
                "seconds": float(np.median([r["seconds"] for r in of_method])),
                "nested_error": float(np.mean([r["nested_error"] for r in of_method])),
                "nested_seconds": float(np.median([r["nested_seconds"] for r in of_method])),
            }
        )
    return lines
