"""When chains are said to agree, and R-hat and effective sizes against loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.signal import lfilter
from scipy.stats import norm

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory import State
from kerneltrail.trajectory.sampler import bulk_ess
from kerneltrail.trajectory.sampler.book import Book, Visited
from kerneltrail.trajectory.sampler.convergence import (
    late_states,
    split_rhat,
    worst_rhat,
)
from kerneltrail.trajectory.settings import Settings
from trajectory.oracle import path_agreement

A, B, C = ((1, 1, 1),), ((1, 1, 2),), ((1, 2, 1),)
BOOK = Book((1, 2), (3,))


@dataclass(frozen=True)
class Seen:
    visited: Visited
    log_joint: tuple


def chain(paths, seed):
    order = np.random.default_rng(seed).permutation(np.arange(80) % 2)
    return Seen(Visited.of([paths[i] for i in order], BOOK), (0.0,) * 80)


def test_agreement_is_with_the_structure_that_the_margins_own_rule_chooses():
    """Both chains are as near to A; one is far from C, which is chosen where the prior counts against it."""
    chains = [chain((A, B), 0), chain((A, C), 1)]
    assert worst_rhat(chains, 0.5) < 1.1
    assert worst_rhat(chains, 0.5, lambda paths: 0.0) == worst_rhat(chains, 0.5)
    assert worst_rhat(chains, 0.5, {A: 0.0, B: 0.0, C: -10.0}.__getitem__) > 1.3


def test_agreement_is_with_the_typical_structure_where_that_is_chosen():
    """Both chains are as near to the usual paths; one is nearer to the simplest, which is the first of equals."""
    usual, simplest, other = ((2, 1, 2),), ((1, 1, 2),), ((2, 1, 1),)
    chains = [chain((usual, simplest), 0), chain((usual, other), 1)]
    assert worst_rhat(chains, 0.5) > 1.3
    assert worst_rhat(chains, 0.5, choice="typical") < 1.1


def test_chains_that_never_stop_early_are_judged_by_the_usual_limit():
    assert Settings.published().rhat < Settings.published().agreed == Settings().agreed == Settings().rhat
    assert Settings(rhat=1.2).agreed == 1.2


def test_the_first_half_of_the_sweeps_is_warm_up():
    """Neither the states to choose from nor what is scored again come from it, of an even or odd number of sweeps."""
    for sweeps in (6, 7):
        book = Book(tuple(range(200)), (1,))
        noted = [
            Seen(Visited.of([((t,),) for t in range(k, k + sweeps)], book), tuple(float(t) for t in range(sweeps)))
            for k in (1, 100)
        ]
        late = range(sweeps // 2, sweeps)
        wanted = [(((k + t,),), float(t)) for k in (1, 100) for t in late]
        assert [(state.paths, state.log_joint) for state in late_states(noted)] == wanted
        scored = []
        again = late_states(noted, lambda paths: scored.append(paths) or -1.0)  # noqa: B023
        assert scored == [paths for paths, _ in wanted]
        assert {state.log_joint for state in again} == {-1.0}


def test_a_structure_of_the_warm_up_decides_nothing():
    """A path that only the first half visits, however probable, is no reference for agreement."""
    chains = [chain((A, B), seed) for seed in (0, 1)]
    better = [Seen(Visited.of([C] * 80, BOOK).then(each.visited), (1000.0,) * 80 + each.log_joint) for each in chains]
    assert worst_rhat(better, 0.5) == worst_rhat(chains_late(chains), 0.5)


def chains_late(chains):
    """The same with twice the sweeps, so that the later half is the whole of before."""
    return [Seen(each.visited.then(each.visited), each.log_joint + each.log_joint) for each in chains]


def naive_ranks(values):
    """Mean ranks by counting, normal scores by the definition."""
    flat = values.ravel()
    ranks = np.array([(flat < v).sum() + ((flat == v).sum() + 1) / 2 for v in flat])
    return norm.ppf((ranks - 3 / 8) / (len(flat) + 1 / 4)).reshape(values.shape)


def halves(draws):
    n = draws.shape[1] // 2
    return np.array([part for chain in draws for part in (chain[:n], chain[len(chain) - n :])])


def naive_rhat(draws):
    def rhat(z):
        chains, n = z.shape
        means = [sum(c) / n for c in z]
        within = sum(sum((x - mean) ** 2 for x in c) / (n - 1) for c, mean in zip(z, means, strict=True)) / chains
        grand = sum(means) / chains
        between = n / (chains - 1) * sum((mean - grand) ** 2 for mean in means)
        return (((n - 1) / n * within + between / n) / within) ** 0.5

    z = halves(draws)
    return max(rhat(naive_ranks(z)), rhat(naive_ranks(np.abs(z - np.median(z)))))


def naive_ess(draws):
    """Stan's algorithm, lag by lag; it stops three lags before the end, as Stan and ArviZ do."""
    z = naive_ranks(halves(draws))
    chains, n = z.shape

    def covariance(t):
        c = z - z.mean(axis=1, keepdims=True)
        return np.mean([(row[: n - t] * row[t:]).sum() / n for row in c])

    within = covariance(0) * n / (n - 1)
    plus = covariance(0) + z.mean(axis=1).var(ddof=1)

    def rho(t):
        return 1.0 if t == 0 else 1.0 - (within - covariance(t)) / plus

    total, last, t = -1.0, np.inf, 0
    while t + 4 < n:
        pair = rho(t) + rho(t + 1)
        if pair <= 0.0:
            break
        last = min(last, pair)
        total += 2.0 * last
        t += 2
    if t < n:
        total += max(rho(t), 0.0)
    return chains * n / max(total, 1.0 / np.log10(chains * n))


def ar1(rng, phi, shape):
    noise = rng.standard_normal(shape) * np.sqrt(1 - phi**2)
    noise[:, 0] /= np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.7, 0.95])
@pytest.mark.parametrize("shape", [(1, 120), (4, 101), (3, 200)])
def test_against_loops(phi, shape):
    draws = ar1(np.random.default_rng(0), phi, shape)
    for values in (draws, np.round(draws), draws + np.arange(shape[0])[:, None]):
        assert split_rhat(values) == pytest.approx(naive_rhat(values), rel=1e-10)
        assert bulk_ess(values) == pytest.approx(naive_ess(values), rel=1e-8)


@pytest.mark.parametrize("sweeps", [4, 5, 8, 51, 200])
@pytest.mark.parametrize("chains", [2, 4])
def test_rhat_is_that_of_arviz_wherever_it_has_one(chains, sweeps):
    for phi in (-0.5, 0.0, 0.95):
        draws = ar1(np.random.default_rng(sweeps), phi, (chains, sweeps))
        for values in (draws, np.round(draws), draws + np.arange(chains)[:, None]):
            with np.errstate(all="ignore"):
                theirs = float(array_stats.rhat(values, chain_axis=0, draw_axis=1))
            if np.ptp(values) > 0 and np.isfinite(theirs):
                assert split_rhat(values) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("phi", [-0.4, 0.0, 0.5, 0.9])
def test_the_effective_size_of_an_autoregression_is_known(phi):
    """n(1-φ)/(1+φ); the estimate's relative sd at 4 × 20,000 draws is below 5 %, so 25 % is never exceeded."""
    draws = ar1(np.random.default_rng(1), phi, (4, 20_000))
    assert bulk_ess(draws) == pytest.approx(80_000 * (1 - phi) / (1 + phi), rel=0.25)
    assert split_rhat(draws) < 1.02


def test_rhat_sees_different_places_and_different_widths():
    rng = np.random.default_rng(2)
    same = rng.standard_normal((4, 1000))
    assert split_rhat(same) < 1.01
    assert split_rhat(same + np.array([[0.0], [0.0], [0.0], [2.0]])) > 1.2
    assert split_rhat(same * np.array([[1.0], [1.0], [1.0], [5.0]])) > 1.1  # only folding sees it
    assert split_rhat(np.cumsum(same, axis=1)) > 1.2  # a drift within a chain: splitting sees it


def test_what_does_not_vary():
    assert np.isnan(split_rhat(np.ones((2, 10))))
    assert np.isnan(bulk_ess(np.ones((2, 10))))
    assert split_rhat(np.array([[1.0] * 10, [2.0] * 10])) == np.inf


@pytest.mark.parametrize("draws", [[[1.0, 2.0, 3.0]], [1.0, 2.0, 3.0, 4.0], [[1.0, np.nan, 2.0, 3.0]]])
def test_what_cannot_be_judged_is_refused(draws):
    for measure in (split_rhat, bulk_ess):
        with pytest.raises(TrajectoryError):
            measure(draws)


def test_agreement_and_edges_of_what_was_visited():
    samples = [((1, 2), (3,)), ((1, 1), (3,)), ((2, 2), (1,))]
    visited = Visited.of(samples)
    for reference in (*samples, ((7, 2), (3,))):  # also with a composition that nobody visited
        assert visited.agreement(reference) == [path_agreement(paths, reference) for paths in samples]
    assert visited.edges() == [State(paths, 0.0).edges for paths in samples] == [3, 3, 3]
    assert [visited[i] for i in range(3)] == samples
    with pytest.raises(TrajectoryError):
        visited.agreement(((1,),))
    with pytest.raises(TrajectoryError, match="none of the 3"):
        visited.book.encode(((1, 2), (4,)))
