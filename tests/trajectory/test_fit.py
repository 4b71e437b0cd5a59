import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import Cohort, simulate
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PopulationMean, spread
from kerneltrail.kernels import Composition, Pool, Priors, parse
from kerneltrail.trajectory import EVIDENCES, Counts, State, TrajectoryError, Urn
from kerneltrail.trajectory.candidates import FITTING
from kerneltrail.trajectory.conclusion import SHARING, STEPS
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.sampler.chains import SAMPLING
from kerneltrail.trajectory.sampler.convergence import split_rhat
from kerneltrail.trajectory.sampler.joint import Joint
from kerneltrail.trajectory.sampler.urn import last_use
from kerneltrail.trajectory.settings import Settings
from support.identical import difference

from . import oracle, tiny


def run(**changes):
    others = {
        name: changes.pop(name) for name in ("progress", "workers", "reward", "cohort", "pool") if name in changes
    }
    given = {"pool": tiny.POOL, "workers": 1, **others}
    return fit(given.pop("cohort", tiny.cohort()), settings=tiny.settings(**changes), **given)


def timeless(model):
    return replace(model, diagnostics=replace(model.diagnostics, seconds={}))


def test_the_log_joint_of_the_chosen_paths_is_that_of_the_specification():
    model = tiny.model()
    table = tiny.table()

    class Laplace:
        def log_evidence(self, user, mask):
            return table.get(user, mask).log_laplace

    order = [m for m, path in enumerate(model.paths) for _ in path]
    wanted = oracle.log_joint(Urn(tiny.POOL), Laplace(), model.paths, order)
    assert model.structures[0].log_joint == pytest.approx(wanted, abs=1e-9)


def test_nodes_are_the_compositions_in_use_with_their_users_fits():
    model = run(sweeps=16, margin=1e9, seed=3)
    table = MapTable(tiny.cohort().users, tiny.POOL, tiny.PRIORS, tiny.QUICK)
    assert {node.mask for node in model.nodes} == {mask for path in model.paths for mask in path}
    for node in model.nodes:
        assert node.composition == tiny.POOL.composition(node.mask)
        customers = [(m, t) for m, path in enumerate(model.paths) for t, own in enumerate(path) if own == node.mask]
        np.testing.assert_array_equal(node.thetas, [table.get(m, node.mask).theta[t] for m, t in customers])
        assert node.users == tuple(f"pilot {m}" for m in sorted(last_use(model.paths)[node.mask]))
        wanted = table.group(node.mask, sorted(last_use(model.paths)[node.mask].items()))
        np.testing.assert_array_equal(node.group.mean, wanted.mean)
        np.testing.assert_array_equal(node.group.variance, wanted.variance)


def test_nodes_come_in_the_order_of_first_use():
    model = fit(tiny.cohort(), pool=tiny.POOL, settings=Settings.published(maps=tiny.QUICK, largest=2), workers=1)
    order = list(dict.fromkeys(path[t] for t in range(2) for path in model.paths))
    assert [node.mask for node in model.nodes] == order


def test_the_same_seed_gives_the_same_model_and_another_seed_another_chain():
    first, again, other = run(), run(), run(seed=1)
    assert difference(timeless(first), timeless(again)) is None
    assert not np.array_equal(first.diagnostics.log_joint, other.diagnostics.log_joint)


@pytest.mark.parametrize("evidence", ["laplace", "empirical"])
def test_two_workers_find_what_one_does(evidence):
    assert difference(timeless(run(evidence=evidence)), timeless(run(evidence=evidence, workers=2))) is None


def test_chains_stop_once_they_agree():
    """At the first look, from the second on, at which all R-hats of the second half are below the limit."""
    looks = {n: run(sweeps=n, rhat=1.000001, seed=5) for n in range(16, 81, 8)}
    long = looks[80].diagnostics.log_joint
    found = set()
    for limit in (1.02, 1.1, 1.5):
        model = run(sweeps=80, rhat=limit, seed=5)
        sweeps = model.diagnostics.sweeps
        np.testing.assert_array_equal(model.diagnostics.log_joint, long[:, :sweeps])
        agreed = [n for n, look in looks.items() if max(look.diagnostics.rhat.values()) < limit]
        assert sweeps == (agreed[0] if agreed else 80)
        assert model.diagnostics.rhat == looks[sweeps].diagnostics.rhat
        found.add(sweeps)
    assert len(found) > 1  # or the limit would not have been tested


def test_the_sweeps_are_used_up_where_chains_do_not_agree(monkeypatch):
    monkeypatch.setattr("kerneltrail.trajectory.sampler.chains.worst_rhat", lambda *given: math.nan)
    model = run(sweeps=28, check=8)
    assert model.diagnostics.sweeps == 28
    assert model.diagnostics.log_joint.shape == (2, 28)


def test_diagnostics_are_of_the_second_half():
    model = run(sweeps=40, rhat=1.000001, chains=3)
    told = model.diagnostics
    half = told.log_joint[:, told.sweeps // 2 :]
    assert told.rhat["log_joint"] == (split_rhat(half) if np.ptp(half) > 1e-9 else 1.0)
    assert set(told.rhat) == set(told.ess) == {"log_joint", "edges", "agreement"}
    assert set(told.acceptance) == set(model.settings.moves)
    assert all(0.0 <= share <= 1.0 for share in told.acceptance.values())
    assert set(told.seconds) == {"fits", "chains", "sharing"}


@pytest.mark.parametrize("evidence", ["group", "empirical"])
def test_structures_are_scored_by_their_own_hyperparameters(evidence):
    """Not by those of the sweep before, as the chain's own notes are."""
    model = run(evidence=evidence, margin=1.0)
    table = MapTable(tiny.cohort().users, tiny.POOL, tiny.PRIORS, tiny.QUICK)
    for structure in model.structures:
        own = EVIDENCES[evidence](table, 2).for_paths(structure.paths)
        assert structure.log_joint == Joint(Urn(tiny.POOL), own).log_joint(structure.paths)


def test_a_margin_on_the_likelihood_leaves_the_prior_over_paths_out():
    """A margin of zero keeps the sample with the highest likelihood, whatever its paths cost."""
    joint, plain = (run(margin=0.0, margin_of=of, seed=3).structures for of in ("joint", "likelihood"))
    table = MapTable(tiny.cohort().users, tiny.POOL, tiny.PRIORS, tiny.QUICK)

    def likelihood(paths):
        return sum(table.get(m, mask).log_laplace[t] for m, path in enumerate(paths) for t, mask in enumerate(path))

    assert plain[0].paths != joint[0].paths
    assert likelihood(plain[0].paths) == max(likelihood(s.paths) for s in (*joint, *plain))


@pytest.mark.parametrize("sweeps", [8, 9, 11])
def test_the_shortest_chains_that_are_allowed_work(sweeps):
    assert run(sweeps=sweeps).diagnostics.sweeps == sweeps


def test_progress_is_told_of_fits_and_then_of_chains():
    told = []
    model = run(progress=told.append)
    fits = [each for each in told if each.stage == FITTING]
    chains = [each for each in told if each.stage == SAMPLING]
    sharing = [each for each in told if each.stage == SHARING]
    assert told == fits + chains + sharing
    assert [each.done for each in sharing] == list(range(STEPS - 1))  # without a mean nothing is judged
    for stage in (fits, chains, sharing):  # no count ever falls
        assert [each.done for each in stage] == sorted(each.done for each in stage)
        assert [each.total for each in stage] == sorted(each.total for each in stage)
        assert all(each.done <= each.total for each in stage)
    assert fits[0].done == 0
    assert fits[-1].done == fits[-1].total
    assert [each.bound for each in fits] == sorted((each.bound for each in fits), reverse=True)  # at least, then about
    assert {each.done for each in chains if each.rhat is not None} >= set(range(8, model.diagnostics.sweeps + 1, 8))
    assert {each.bound for each in chains} == {"at most"}
    last = chains[-1]
    assert (last.total, last.log_joint) == (32, model.diagnostics.log_joint[0, -1])
    assert last.nodes >= 1
    assert last.edges >= last.nodes
    assert last.rhat > 0
    numbers = f"log joint {last.log_joint:.1f}, {last.nodes} nodes, {last.edges} edges, R-hat {last.rhat:.3f}"
    assert last.said == numbers


def test_progress_can_be_shown(monkeypatch, capsys):
    run(sweeps=8)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    run(sweeps=8, progress=True)
    shown = capsys.readouterr().err
    assert "stage 1 of 3: fitting candidates" in shown
    assert "stage 2 of 3: sampling paths" in shown
    assert "stage 3 of 3: learning what users share" in shown


@pytest.mark.parametrize("evidence", ["laplace", "group", "empirical", "sampled", "group-sampled"])
@pytest.mark.parametrize("start", ["apart", "best", "drawn"])
def test_every_evidence_and_start_gives_a_model(evidence, start):
    model = run(evidence=evidence, start=start, sweeps=16, largest=1)
    assert all(len(node.composition) == 1 for node in model.nodes)
    assert set(model.provenance["candidates"]) <= {"LIN[x]", "PER[x]", "SE[x]"}


def test_the_published_preset_runs():
    model = fit(tiny.cohort(), pool=tiny.POOL, settings=Settings.published(maps=tiny.QUICK, sweeps=24, check=8))
    assert model.settings.evidence == "empirical"
    assert set(model.diagnostics.acceptance) == {"published_seat", "published_plate"}
    user = model.new_user()
    assert user.selection == "greedy"
    step = user.update(tiny.pilot(7).X, tiny.pilot(7).y)
    assert step.composition in [node.composition for node in model.nodes]


def test_nothing_but_candidates_is_visited():
    model = fit(tiny.cohort(), pool=tiny.POOL, settings=Settings.published(maps=tiny.QUICK, sweeps=24), workers=1)
    allowed = set(model.provenance["candidates"])
    assert {node.composition.text for node in model.nodes} <= allowed
    for structure in model.structures:
        assert {tiny.POOL.composition(mask).text for path in structure.paths for mask in path} <= allowed


def test_users_may_have_different_numbers_of_batches():
    users = [tiny.pilot(0, (3,)), tiny.pilot(1, (2, 5, 9)), tiny.pilot(2, (4, 8))]
    model = run(cohort=Cohort.from_users(users, target="y", scaling="none"), sweeps=16)
    assert [len(path) for path in model.paths] == [1, 3, 2]
    assert sum(len(node.thetas) for node in model.nodes) == 6


def test_one_user_one_row_and_one_chain_are_enough():
    users = [tiny.pilot(0, (1,))]
    model = run(cohort=Cohort.from_users(users, target="y", scaling="none"), sweeps=8, chains=1)
    assert len(model.nodes) == 1


def test_noise_alone_may_be_a_node():
    rng = np.random.default_rng(0)
    users = [tiny.pilot(m, (4, 9)).with_y(0.8 * rng.standard_normal(9)) for m in range(3)]
    pool = tiny.POOL.with_empty().with_probabilities(lambda product: 0.01)
    model = run(cohort=Cohort.from_users(users, target="y", scaling="none"), pool=pool, sweeps=16)
    assert [node.composition for node in model.nodes] == [Composition()]
    user = model.new_user()
    user.update(users[0].X, users[0].y)
    prediction = user.predict([[0.0]])
    assert prediction.mean.tolist() == [0.0]
    assert prediction.variance.tolist() == [0.0]
    assert prediction.noise > 0.1


def test_a_reward_model_is_fitted_with_its_actions():
    model = run(cohort=tiny.cohort(action=True), reward=Reward(("x",)), sweeps=16)
    assert model.reward == Reward(("x",))
    with pytest.raises(DataError, match="no actions"):
        run(reward=Reward(("x",)), sweeps=16)


def test_a_population_mean_is_learnt_with_the_spread_around_it():
    """The fits are those of users less the ridge regression, under the reward model with its learnt variances."""
    cohort, reward = tiny.cohort(4, action=True), Reward(("x",))
    model = run(cohort=cohort, reward=reward, sweeps=16, mean="population")
    mean = PopulationMean.train(cohort.users, reward)
    centred = [user.with_y(user.y - mean.at(user.X, user.action)) for user in cohort.users]
    assert model.reward == spread(centred, reward)
    assert model.provenance["users"] == {user.name: user.fingerprint for user in cohort.users}
    node = model.nodes[0]
    fits = MapTable(centred, tiny.POOL, tiny.PRIORS, tiny.QUICK, model.reward)
    own = [
        fits.get(m, node.mask).theta[t] for m, p in enumerate(model.paths) for t, k in enumerate(p) if k == node.mask
    ]
    np.testing.assert_allclose(node.thetas, own, rtol=1e-9)
    before = model.new_user().predict([[1.0], [-2.0]], action=[1, 0])
    np.testing.assert_allclose(before.mean, mean.at(np.array([[1.0], [-2.0]]), np.array([1.0, 0.0])))


def test_extending_a_model_with_a_population_mean_learns_it_anew():
    model = run(cohort=tiny.cohort(action=True), reward=Reward(("x",)), sweeps=16, mean="population")
    wider = fit(tiny.cohort(5, action=True), extend=model, workers=1)
    assert wider.settings.mean == "population"
    assert wider.reward.variances != model.reward.variances
    assert len(wider.mean.weights) == 4


def test_a_standardised_target_has_users_around_what_they_share():
    cohort = Cohort.from_users(tiny.pilots(), target="y", scaling="group", target_scaling="standard")
    model = fit(cohort, settings=tiny.settings(sweeps=8), workers=1)
    assert (model.settings.mean, model.settings.constant) == ("smooth", 1.0)
    assert model.pool == Pool.atoms(["x"]).with_empty()
    assert model.priors == Priors.standardised()
    assert model.mean is not None
    assert model.reward is not None
    stated = fit(cohort, settings=tiny.settings(sweeps=8, mean="none"), workers=1)
    assert (stated.mean, stated.reward, stated.pool.allow_empty) == (None, None, False)


def table_of(cohort):
    """A cohort as a dict of columns, as a user would have it, with a column that is nobody's business."""
    rows = cohort.to_rows()
    return {**rows, "note": ["-"] * len(rows["y"])}


def test_a_table_is_fitted_as_the_cohort_of_it():
    quick = tiny.settings(sweeps=8)
    rows = table_of(Cohort.from_users(tiny.pilots(), target="y"))
    columns = {"user": "user", "order": "order", "target": "y", "batch_column": "batch"}
    one = fit(rows, **columns, settings=quick, workers=1)
    other = fit(Cohort.from_table(rows, **columns, covariates=["x"]), settings=quick, workers=1)
    assert one.paths == other.paths
    assert one.schema == other.schema
    shuffled = dict(reversed(rows.items()))
    assert fit(shuffled, **columns, settings=quick, workers=1).paths == one.paths


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chians": 2}, "no option 'chians'; did you mean 'chains'"),
        ({"targte": "y"}, "no option 'targte'; did you mean 'target'"),
        ({"batch_size": 3}, "give the table itself"),
    ],
)
def test_a_misspelt_option_is_answered_with_the_nearest(options, message):
    with pytest.raises(DataError, match=message):
        fit(tiny.cohort(), **options)


def test_a_table_without_names_of_its_columns_is_refused():
    with pytest.raises(DataError, match="a table needs user= and order= and target="):
        fit({"x": [1.0], "y": [2.0]})


def test_defaults_follow_the_cohort():
    scaled = Cohort.from_users(tiny.pilots(), target="y", scaling="group")
    quick = tiny.settings(sweeps=8)
    model = fit(scaled, settings=quick, workers=1)
    assert model.pool == Pool.atoms(["x"])
    assert model.priors == Priors.heartsteps()
    assert fit(tiny.cohort(), settings=quick, workers=1).priors == Priors.synthetic()
    assert fit(tiny.cohort(), settings=quick, workers=1, seed=9).settings == replace(quick, seed=9).resolved(False)


def test_what_cannot_work_is_refused_before_the_work():
    def refused(*args):
        pytest.fail("fitted")

    with pytest.raises(DataError, match="the pool reads hour, which the cohort does not have"):
        run(pool=Pool.of("SE[hour]"))
    with pytest.raises(TrajectoryError, match="α must be positive"):
        run(alpha=0.0, progress=refused)
    with pytest.raises(TrajectoryError, match="parent bias"):
        run(keep=1.5, progress=refused)
    with pytest.raises(TrajectoryError, match="has no option 'speed'"):
        run(options={"plate": {"speed": 9}}, progress=refused)


def test_more_pilot_users_go_on_from_the_model():
    model = run()
    bigger = fit(tiny.cohort(4), extend=model, workers=1)
    assert bigger.users == ("pilot 0", "pilot 1", "pilot 2", "pilot 3")
    assert (bigger.pool, bigger.priors, bigger.settings) == (model.pool, model.priors, model.settings)
    with pytest.raises(DataError, match="none of the model's pilot users"):
        fit(tiny.cohort(3, (3, 7, 9)), extend=model, workers=1)


def test_a_fitted_model_travels():
    model = tiny.model()
    assert difference(pickle.loads(pickle.dumps(model)), model) is None


def test_the_agreement_of_a_chain_that_never_leaves_is_whole():
    model = tiny.model()
    assert State(model.paths, 0.0).edges == Counts.of(model.paths).edges == len(model.edges)


@pytest.mark.slow
def test_simulated_users_are_recovered():
    simulation = simulate.paper(train=4, test=8, seed=0)
    pool = Pool.of("LIN[x]", "PER[x]", "SE[x]")
    model = fit(simulation.train, pool=pool, settings=Settings(largest=2))
    for name, path in model.table():
        assert path[-1] == simulation.truth[name]
    assert {node.composition for node in model.nodes} >= {parse("LIN[x] + PER[x]"), parse("SE[x]")}
    right = 0
    for person in simulation.test:
        user = model.new_user()
        for t in range(1, person.batches + 1):
            user.update(person.batch(t).X, person.batch(t).y)
        right += user.composition == simulation.truth[person.name]
    assert right == 8
