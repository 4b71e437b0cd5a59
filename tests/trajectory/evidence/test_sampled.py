"""Sampled evidences against integrals on grids, closed forms, and arviz-stats."""

import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.special import logsumexp

from kerneltrail import gp
from kerneltrail.errors import NumericalError
from kerneltrail.kernels import log_normal, normal, parse
from kerneltrail.trajectory import sampler
from kerneltrail.trajectory.evidence import sampled
from kerneltrail.trajectory.evidence.group import Quadratic
from kerneltrail.trajectory.evidence.group_sampled import GroupSampledEvidence, reweighted
from kerneltrail.trajectory.evidence.sampled import Proposal, SampledEvidence, SampledValues, log_mean, values_of
from kerneltrail.trajectory.map_table import Fits, fit_path, group_of
from kerneltrail.trajectory.sampler.checkpoint import Checkpoint
from kerneltrail.trajectory.sampler.urn import last_use
from trajectory import tiny
from trajectory.tiny import LIN, PER, SE

PATHS = ((LIN, LIN), (SE, LIN | SE), (LIN, SE))
KNOWN = 1e-8
"""Variance of a hyperparameter that is as good as known."""


def on_grid(user, composition, priors, free, points=601):
    """Log evidences (T,) by a sum over a grid of the hyperparameters at `free`, the others at their prior means."""
    mean, variance = priors.moments(composition)
    axes = [np.linspace(-6.0, 6.0, points if len(free) == 1 else 61) for _ in free]
    mesh = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
    thetas = np.tile(mean, (len(mesh), 1))
    thetas[:, free] += mesh * np.sqrt(variance[list(free)])
    log = gp.log_evidence(user, composition, thetas)
    log_prior = -0.5 * (mesh**2).sum(axis=1) - 0.5 * len(free) * math.log(2 * math.pi)
    return logsumexp(log + log_prior[:, None], axis=0) + sum(math.log(axis[1] - axis[0]) for axis in axes)


def judged(user, composition, priors, seed=0):
    fits = fit_path(user, composition, priors, tiny.QUICK, None)
    return fits, values_of(Proposal(user, composition, priors, None, fits, np.random.default_rng(seed)))


def test_one_hyperparameter_against_a_grid():
    for number in range(3):
        user = tiny.pilot(number, (3, 7, 20))
        _, values = judged(user, parse(""), tiny.PRIORS)
        np.testing.assert_allclose(values.log_evidence, on_grid(user, parse(""), tiny.PRIORS, [0]), atol=0.25)
        assert (values.pareto_k < sampled.RELIABLE).all()
        assert (values.size > 20).all()


def test_two_hyperparameters_against_a_grid():
    priors = tiny.PRIORS.override("location", None, normal(0.0, variance=KNOWN))
    user, composition = tiny.pilot(0, (3, 7, 20)), parse("LIN[x]")
    names = [slot.spec.kind for slot in gp.inputs_for(user, composition).layout.slots]
    free = [i for i, name in enumerate(names) if name != "location"]
    assert len(free) == 2
    _, values = judged(user, composition, priors)
    np.testing.assert_allclose(values.log_evidence, on_grid(user, composition, priors, free), atol=0.25)


def test_many_modes_against_a_grid():
    """Only the period is unknown: a few rows leave several open, of which Laplace's counts one."""
    priors = tiny.PRIORS
    for name in ("lengthscale", "amplitude", "noise"):
        priors = priors.override(name, None, log_normal(0.0 if name == "amplitude" else -1.0, variance=KNOWN))
    composition = parse("PER[x]")
    slots = gp.inputs_for(tiny.pilot(1), composition).layout.slots
    free = [i for i, slot in enumerate(slots) if slot.spec.kind == "period"]
    errors, laplace = [], []
    for number in (1, 3, 5):
        user = tiny.pilot(number, (4, 8, 12))
        fits, values = judged(user, composition, priors)
        wanted = on_grid(user, composition, priors, free, points=6001)
        errors.append(values.log_evidence - wanted)
        laplace.append(fits.log_laplace - wanted)
    assert np.abs(errors).max() < 0.5
    assert np.abs(laplace).max() > 0.7
    assert np.abs(errors).mean() < 0.4 * np.abs(laplace).mean()


class Gaussian:
    """A problem whose log likelihoods are quadratic, so that Laplace's evidences are exact."""

    def __init__(self, batches=3, k=3):
        rng = np.random.default_rng(5)
        self.user = tiny.pilot(0, tuple(range(2, 2 + batches)))
        self.composition = parse("SE[x]")
        self.mean, variance = tiny.PRIORS.moments(self.composition)
        half = rng.normal(size=(batches, k, k))
        self.sharp = half @ half.transpose(0, 2, 1) / variance.mean() + np.diag(1.0 / variance)
        self.peak = self.mean + rng.normal(size=(batches, k)) * np.sqrt(variance)
        precision = self.sharp + np.diag(1.0 / variance)
        theta = np.array(
            [np.linalg.solve(precision[t], self.sharp[t] @ self.peak[t] + self.mean / variance) for t in range(batches)]
        )
        fits = Fits(
            theta, np.array([self.log(theta[t][None])[0, t] for t in range(batches)]), np.zeros(batches), precision
        )
        self.quadratic = Quadratic.of(fits, self.mean, variance)
        self.exact = self.quadratic.log_evidence(self.mean, variance)
        self.fits = Fits(theta, fits.log_likelihood, self.exact, precision)

    def log(self, thetas):
        step = thetas[:, None, :] - self.peak
        return -0.5 * np.einsum("sti,tij,stj->st", step, self.sharp, step)

    def proposal(self, seed):
        return Proposal(self.user, self.composition, tiny.PRIORS, None, self.fits, np.random.default_rng(seed))


@pytest.fixture
def gaussian(monkeypatch):
    problem = Gaussian()
    monkeypatch.setattr("kerneltrail.gp.log_evidence", lambda user, composition, thetas, **options: problem.log(thetas))
    return problem


def test_a_gaussian_problem_has_laplaces_value(gaussian):
    values = values_of(gaussian.proposal(0))
    np.testing.assert_allclose(values.log_evidence, gaussian.exact, atol=0.3)
    assert not values.replaced.any()


def test_without_added_components_the_mean_weight_is_unbiased(gaussian, monkeypatch):
    """The mean of 200 estimates is off by 4 standard errors for one of three batches with probability 2e-4."""
    monkeypatch.setattr(sampled, "ROUNDS", 0)
    ratios = []
    for seed in range(200):
        draws = gaussian.proposal(seed).run()
        log_prior = sampled.log_normal_density(draws.points)
        ratios.append(np.exp(log_mean(draws.log_weights(log_prior)) - gaussian.exact))
    error = np.std(ratios, axis=0, ddof=1) / math.sqrt(len(ratios))
    assert (np.abs(np.mean(ratios, axis=0) - 1.0) < 4.0 * error).all()
    assert (error < 0.02).all()


def test_doubling_keeps_the_density_of_the_mixture(gaussian):
    proposal = gaussian.proposal(0)
    before = len(proposal.run().points)
    draws = proposal.double()
    assert len(draws.points) == 2 * before == sum(each.draws for each in proposal.components)
    wanted = sampled.log_sum(proposal.components, draws.points) - math.log(len(draws.points))
    np.testing.assert_allclose(draws.log_proposal, wanted, atol=1e-9)


def test_a_mode_of_another_batch_gets_a_component(gaussian):
    """Fits of which the last batch's is wrong: an end of a search near the truth repairs it."""
    theta = gaussian.fits.theta.copy()
    theta[-1] = gaussian.mean
    poor = gaussian.fits.log_laplace - [0.0, 0.0, 9.0]
    fits = Fits(theta, gaussian.fits.log_likelihood, poor, gaussian.fits.precision * 400.0, gaussian.fits.theta)
    proposal = Proposal(gaussian.user, gaussian.composition, tiny.PRIORS, None, fits, np.random.default_rng(0))
    known = len(proposal.components)
    draws = proposal.run()
    assert len(proposal.components) > known
    found = log_mean(draws.log_weights(sampled.log_normal_density(draws.points)))
    assert np.abs(found - gaussian.exact).max() < 1.5


class TwoModes:
    """Log likelihood × prior of two narrow Normals, of which the second has 20 times the mass; fits know the first.

    Amplitudes are the same; what is noise to the first mode is a short lengthscale to the second.
    """

    def __init__(self):
        self.user, self.composition = tiny.pilot(0, (5,)), parse("SE[x]")
        self.mean, variance = tiny.PRIORS.moments(self.composition)
        self.scale = np.sqrt(variance)
        self.centres, self.widths = np.array([[2.5, 1.0, 0.5], [2.6, -1.4, -1.9]]), np.array([0.3, 0.15])
        self.mass = np.array([1.0, 20.0])
        self.precision = [np.diag(1.0 / (width * self.scale) ** 2) for width in self.widths]
        first = self.mean + self.scale * self.centres[:1]
        self.fits = Fits(first, np.zeros(1), np.zeros(1), np.array(self.precision[:1]))

    def log(self, user, composition, thetas, **options):
        whitened = (thetas - self.mean) / self.scale
        square = ((whitened[:, None] - self.centres) ** 2).sum(axis=2) / self.widths**2
        posterior = np.log(self.mass) - 0.5 * square - 3 * np.log(self.widths * math.sqrt(2 * math.pi))
        prior = -0.5 * (whitened**2).sum(axis=1) - 1.5 * math.log(2 * math.pi)
        return (logsumexp(posterior, axis=1) - prior)[:, None]

    def climb(self, *args, warm, **options):
        whitened = (np.asarray(warm[0]) - self.mean) / self.scale
        nearest = int((((whitened - self.centres) ** 2).sum(axis=1) / self.widths**2).argmin())
        vector = self.mean + self.scale * self.centres[nearest]
        return SimpleNamespace(hyperparameters=SimpleNamespace(vector=vector), precision=self.precision[nearest])


@pytest.mark.parametrize("scan", [True, False])
def test_a_mode_that_no_search_came_near_is_found_by_the_scan(monkeypatch, scan):
    """The evidence is log 21 exactly. Without the scan it is that of the first mode, and Pareto's k is silent."""
    problem = TwoModes()
    monkeypatch.setattr("kerneltrail.gp.log_evidence", problem.log)
    monkeypatch.setattr("kerneltrail.gp.find_map", problem.climb)
    if not scan:
        monkeypatch.setattr(sampled, "other_explanations", lambda w, composition: np.empty((0, len(w))))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = values_of(Proposal(problem.user, problem.composition, tiny.PRIORS, None, problem.fits, rng))
        assert values.pareto_k[0] < sampled.RELIABLE
        wanted = math.log(21.0) if scan else 0.0
        assert values.log_evidence[0] == pytest.approx(wanted, abs=0.4)


def test_where_searches_are_not_compiled_nothing_is_scanned(monkeypatch):
    """There a likelihood costs much, and a scan is no trifle."""
    problem = TwoModes()
    monkeypatch.setattr("kerneltrail.gp.log_evidence", problem.log)
    monkeypatch.setattr("kerneltrail.gp.whitened.can_search", lambda inputs: None)
    rng = np.random.default_rng(0)
    values = values_of(Proposal(problem.user, problem.composition, tiny.PRIORS, None, problem.fits, rng))
    assert values.log_evidence[0] == pytest.approx(0.0, abs=0.4)


def test_draws_that_cannot_be_judged_have_no_weight(gaussian, monkeypatch):
    def refuses(user, composition, thetas, **options):
        if (thetas[:, 0] > 2.0).any():
            raise NumericalError("too large")
        return gaussian.log(thetas)

    monkeypatch.setattr("kerneltrail.gp.log_evidence", refuses)
    draws = gaussian.proposal(0).run()
    refused = gaussian.mean[0] + np.sqrt(tiny.PRIORS.moments(gaussian.composition)[1][0]) * draws.points[:, 0] > 2.0
    assert refused.any()
    assert (np.isneginf(draws.log_likelihood).all(axis=1) >= refused).all()
    assert np.isfinite(draws.log_likelihood[~refused]).any()


def test_paretos_k_is_that_of_arviz_and_tells_tails_apart():
    rng = np.random.default_rng(3)
    heavy, light = rng.pareto(0.8, 2000), rng.uniform(0.5, 1.0, 2000)
    log_weights = np.log(np.stack([heavy, light], axis=1))
    k = sampler.pareto_k(log_weights)
    for t in range(2):
        assert k[t] == pytest.approx(float(array_stats.psislw(-log_weights[:, t])[1]))
    assert k[0] > sampled.RELIABLE > k[1]
    assert np.isinf(sampler.pareto_k(np.full((50, 1), -np.inf))).all()


def test_values_do_not_depend_on_order_or_process():
    table = tiny.table()
    pairs = [(user, mask) for user in range(3) for mask in (LIN, SE, LIN | SE)]
    one, two = SampledEvidence(table, 3), SampledEvidence(table, 3)
    one.prepare(pairs, workers=2)
    for pair in reversed(pairs):
        np.testing.assert_array_equal(one.log_evidence(*pair), two.log_evidence(*pair))
    assert one.about["evidences"] == 2 * len(pairs)
    assert one.learns is False
    first, second = GroupSampledEvidence(table, 3), GroupSampledEvidence(table, 3)
    first.prepare(pairs, workers=2)
    for pair in reversed(pairs):
        for start in (first, second):
            start.for_paths(PATHS).log_evidence(*pair)
        np.testing.assert_array_equal(
            first.for_paths(PATHS).log_evidence(*pair), second.for_paths(PATHS).log_evidence(*pair)
        )


def test_group_sampled_on_a_gaussian_problem_is_the_closed_form(gaussian):
    mean, variance = tiny.PRIORS.moments(gaussian.composition)
    group = group_of(gaussian.composition, list(gaussian.fits.theta), tiny.PRIORS)
    draws = gaussian.proposal(1).run()
    found, size = reweighted(draws, (group.mean - mean) / np.sqrt(variance), group.variance / variance)
    np.testing.assert_allclose(found, gaussian.quadratic.log_evidence(group.mean, group.variance), atol=0.4)
    assert (size > 15).all()


def test_group_sampled_asks_the_others_alone():
    table = tiny.table()
    start = GroupSampledEvidence(table, 3)
    found = {
        own: start.for_paths((PATHS[0], (own, own), PATHS[2])).log_evidence(1, LIN).tolist() for own in (LIN, SE, PER)
    }
    assert found[LIN] == found[SE] == found[PER]
    others = [(m, t) for m, t in last_use(PATHS)[LIN].items() if m != 1]
    group = table.group(LIN, others)
    closed = Quadratic.of(table.get(1, LIN), *tiny.PRIORS.moments(group.composition))
    near = closed.log_evidence(group.mean, group.variance)
    np.testing.assert_allclose(start.for_paths(PATHS).log_evidence(1, LIN), near, atol=0.6)


def test_a_fit_says_how_its_evidences_came_about():
    model = tiny.model(evidence="sampled")
    about = model.provenance["evidence"]
    assert about["evidences"] == 3 * 2 * len(model.provenance["candidates"])
    assert about["by_laplace"] <= about["unreliable"]
    assert "evidence" not in tiny.model().provenance


def test_a_checkpoint_keeps_the_ends_of_searches_and_reads_files_without_them(tmp_path):
    table = tiny.table()
    keeper = Checkpoint(tmp_path, "key")
    keeper.add_fits(table, [(0, SE), (1, PER)])
    again = tiny.table()
    assert keeper.read_fits(again) == 2
    for pair in ((0, SE), (1, PER)):
        np.testing.assert_array_equal(again.known[pair].ends, table.get(*pair).ends)
        assert len(table.get(*pair).ends)
        np.testing.assert_array_equal(
            SampledEvidence(again, 3).evaluate(*pair), SampledEvidence(table, 3).evaluate(*pair)
        )
    (first, *_) = keeper.fits.read()
    older = Checkpoint(tmp_path / "older", "key")
    older.fits.append({name: value for name, value in first.items() if name != "ends"})
    of_before = tiny.table()
    assert older.read_fits(of_before) == 1
    assert of_before.known[0, SE].ends.size == 0
    assert np.isfinite(SampledEvidence(of_before, 3).evaluate(0, SE)).all()


def test_nothing_heavy_is_loaded_with_the_evidences():
    code = "import sys, kerneltrail.trajectory.evidence; print('arviz_stats' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_packed_values_are_the_same_where_single_precision_holds_what_says_how_far_to_trust():
    values = SampledValues(
        np.array([-1.1, -2.5]), np.array([0.125, 0.75]), np.array([80.0, 3.0]), np.array([False, True]), 192
    )
    again = SampledValues.unpacked(values.packed())
    assert again.draws == 192
    for name in ("log_evidence", "pareto_k", "size", "replaced"):
        np.testing.assert_array_equal(getattr(again, name), getattr(values, name))
    assert again.replaced.dtype == bool
