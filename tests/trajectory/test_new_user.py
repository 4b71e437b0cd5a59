"""Following a new user, against Algorithm 1 and the forward algorithm in plain loops."""

import itertools
import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

from gp import oracle as gp_oracle
from kerneltrail.data import User, simulate
from kerneltrail.errors import DataError, KerneltrailError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Composition, Pool
from kerneltrail.trajectory import TrajectoryError
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.settings import Settings
from support.identical import difference

from .small import COVARIATES, X_NEXT, follow, rewarded_model, rows, small_model

PUBLISHED = Settings.published(alpha=0.7, keep=0.9)


def logmeanexp(values):
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values) / len(values))


def scaled(model, person):
    return model.scaler.apply(person)


@pytest.mark.parametrize("seed", range(4))
def test_greedy_is_algorithm_1(seed):
    model = small_model(settings=PUBLISHED)
    person = rows("new", 16, seed=10 + seed)
    here, own = scaled(model, person), model.new_user()
    current = None  # the root
    for t, step in enumerate(follow(own, person), start=1):
        children = {
            path[i] for path in model.paths for i in range(3) if (path[i - 1] if i else None) == current
        }  # where pilot users went from here
        candidates = children | ({current} if current is not None else set())
        evidence = {}
        for node in model.nodes:
            if node.mask in candidates:
                each = gp_oracle.log_evidence(here.upto(t), node.composition, node.thetas)[:, -1]
                evidence[node.mask] = logmeanexp(each.tolist())
        assert {model.pool.mask(c) for c in step.log_evidence} == set(evidence)
        for composition, value in step.log_evidence.items():
            assert value == pytest.approx(evidence[model.pool.mask(composition)], abs=1e-3)
        current = max(evidence, key=evidence.get)
        assert model.pool.mask(step.composition) == current
        assert step.probabilities[step.composition] == 1.0
    assert own.composition == step.composition


def test_greedy_stays_at_a_node_without_children():
    model = small_model(settings=PUBLISHED)
    user = model.new_user()
    follow(user, rows("new", 12, seed=1))
    lonely = next(i for i, node in enumerate(model.nodes) if set(model.children(node.mask)) == {node.mask})
    user = type(user).resume(model, replace(user.state, current=lonely))
    batch = rows("new", 4, seed=2)
    step = user.update(batch.X, batch.y, action=batch.action)
    assert step.composition == model.nodes[lonely].composition
    assert list(step.log_evidence) == [step.composition]


@pytest.mark.parametrize("memory", ["all", "newest"])
@pytest.mark.parametrize("evidence", ["laplace", "empirical"])
def test_the_filter_is_the_forward_algorithm(memory, evidence):
    model = small_model(settings=Settings(alpha=0.7, keep=0.9, memory=memory, evidence=evidence))
    user = model.new_user()
    nodes = [node.composition for node in model.nodes]
    T = model.transitions.tolist()
    before = None  # probabilities that the next step starts from, node by node
    for step in follow(user, rows("new", 16, seed=3)):
        prior = [
            T[0][j] if before is None else sum(before[i] * T[1 + i][j] for i in range(len(nodes)))
            for j in range(len(nodes))
        ]
        log = [math.log(p) + step.log_evidence[node] for p, node in zip(prior, nodes, strict=True)]
        top = max(log)
        posterior = [math.exp(value - top) for value in log]
        posterior = [value / sum(posterior) for value in posterior]
        before = posterior if memory == "all" else prior
        np.testing.assert_allclose([step.probabilities[node] for node in nodes], posterior, rtol=1e-9, atol=1e-12)
        assert step.composition == nodes[int(np.argmax(posterior))]
        assert list(step.probabilities.values()) == sorted(step.probabilities.values(), reverse=True)


def test_evidence_of_the_filter_is_on_all_rows_seen():
    model = small_model(settings=Settings(evidence="empirical"))
    person = rows("new", 12, seed=4)
    here = scaled(model, person)
    for t, step in enumerate(follow(model.new_user(), person), start=1):
        assert (step.batch, step.rows) == (t, person.ends[t - 1])
        for node in model.nodes:
            each = gp_oracle.log_evidence(here.upto(t), node.composition, node.thetas)[:, -1]
            assert step.log_evidence[node.composition] == pytest.approx(logmeanexp(each.tolist()), abs=1e-3)


def naive_prediction(model, user, seen, X, thetas):
    """Each node's posterior by dense formulas, averaged by probability at the next batch; in the target's units."""
    test = model.scaler.transform(X)
    mean, second, noise = np.zeros(len(X)), np.zeros(len(X)), 0.0
    now = [user.probabilities[node.composition] for node in model.nodes]
    moves = model.transitions[1:].tolist() if user.batches and user.selection == "filter" else np.eye(len(now)).tolist()
    for j, (node, theta) in enumerate(zip(model.nodes, thetas, strict=True)):
        weight = sum(share * moves[i][j] for i, share in enumerate(now))  # method (48)
        n = 0 if seen is None else seen.rows
        everything = np.vstack([seen.X, test]) if n else test
        joined = User("all", model.covariates, everything, np.zeros(len(everything)), (len(everything),))
        own_noise = math.exp(theta[-1])
        K = gp_oracle.covariance(joined, node.composition, theta) - own_noise * np.eye(len(everything))
        gain = K[n:, :n] @ np.linalg.inv(K[:n, :n] + own_noise * np.eye(n))
        own_mean = gain @ seen.y if n else np.zeros(len(X))
        own_variance = np.diag(K[n:, n:] - gain @ K[:n, n:])
        mean += weight * own_mean
        second += weight * (own_variance + own_mean**2)
        noise += weight * own_noise
    scale = model.scaler.scale
    return model.scaler.shift + scale * mean, scale**2 * (second - mean**2), scale**2 * noise


@pytest.mark.parametrize("selection", ["filter", "greedy"])
def test_predictions_average_over_nodes(selection):
    model = small_model(settings=Settings(selection=selection, memory="all", tails="normal"))
    person, user = rows("new", 8, seed=5), model.new_user()
    follow(user, person)
    thetas = [np.array(user.node_posterior(node.composition).fit.theta) for node in model.nodes]
    found = user.predict(X_NEXT)
    mean, variance, noise = naive_prediction(model, user, scaled(model, person), X_NEXT, thetas)
    np.testing.assert_allclose(found.mean, mean, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-3, atol=1e-4)
    assert found.noise == pytest.approx(noise, rel=1e-3)


def test_before_any_batch_the_graph_and_the_group_predict():
    model = small_model()
    user = model.new_user()
    assert user.composition == Composition()
    assert user.hyperparameters is None
    np.testing.assert_allclose(
        [user.probabilities[node.composition] for node in model.nodes], model.transitions[0], rtol=1e-12
    )
    found = user.predict(X_NEXT)
    mean, variance, noise = naive_prediction(model, user, None, X_NEXT, [node.group.mean for node in model.nodes])
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-9)
    assert found.noise == pytest.approx(noise)
    with pytest.raises(DataError, match="nothing is not a node"):
        user.node_posterior()


def test_a_copy_goes_its_own_way():
    model = small_model()
    user = model.new_user("ann")
    person = rows("ann", 12, seed=6)
    follow(user, person, [1, 2])
    twin, kept = user.copy(), user.copy()
    follow(user, person, [3])
    assert (twin.rows, twin.batches, len(twin.history)) == (8, 2, 2)
    assert difference(twin, kept) is None
    follow(twin, person, [3])
    assert difference(twin, user) is None


def test_a_user_goes_on_from_its_state():
    model, person = small_model(), rows("new", 12, seed=6)
    user, whole = model.new_user(), model.new_user()
    follow(user, person, [1])
    follow(type(user).resume(model, user.state), person, [2])  # touches nothing of the first
    back = type(user).resume(model, pickle.loads(pickle.dumps(user.state)))
    follow(back, person, [2, 3])
    follow(whole, person)
    assert difference(back, whole) is None


@pytest.mark.parametrize("refine", [0, 6, 400])
def test_what_is_given_is_neither_kept_nor_changed(refine):
    person = rows("new", 12, seed=7)
    calm, wild = (small_model().new_user(refine=refine) for _ in range(2))
    for t in (1, 2, 3):
        batch = person.batch(t)
        X, y = np.array(batch.X), np.array(batch.y)
        kept = X.copy(), y.copy()
        wild.update(X, y)
        assert np.array_equal(X, kept[0])
        assert np.array_equal(y, kept[1])
        X[:], y[:] = np.nan, np.nan
        calm.update(*kept)
    assert difference(calm, wild) is None
    prediction = calm.predict(X_NEXT)
    prediction.mean[:] = 0.0
    assert not np.array_equal(calm.predict(X_NEXT).mean, prediction.mean)


def test_asking_changes_nothing():
    model, person = small_model(), rows("new", 12, seed=8)
    asked, silent = model.new_user(), model.new_user()
    for t in (1, 2, 3):
        asked.predict(X_NEXT)
        asked.node_posterior(model.nodes[0].composition)
        _ = asked.state, asked.probabilities, asked.hyperparameters
        follow(asked, person, [t])
        follow(silent, person, [t])
    assert difference(asked, silent) is None


@pytest.mark.parametrize("cuts", [(20,), (4, 20), tuple(range(1, 21))])
def test_many_pieces_end_where_one_does(cuts):
    """Laplace evidences on the same rows, up to how far a search goes: the order of batches is no part of them."""
    model = small_model(settings=Settings())
    person = rows("new", 20, seed=9)
    one, many = model.new_user(), model.new_user()
    one.update(person.X, person.y)
    for start, stop in itertools.pairwise((0, *cuts)):
        many.update(person.X[start:stop], person.y[start:stop])
    for composition, value in one.history[-1].log_evidence.items():
        assert many.history[-1].log_evidence[composition] == pytest.approx(value, abs=0.3)


@pytest.mark.filterwarnings("ignore:.*far outside those of the pilot users")
@pytest.mark.parametrize("refine", [8, 400])
def test_values_outside_the_pilots_range_are_taken_as_they_are(refine):
    model = small_model(settings=Settings())
    user = model.new_user(refine=refine)
    for number in range(4):
        batch = rows("new", 6, seed=300 + number, low=-10.0 * number, high=24.0 + 10.0 * number)
        step = user.update(batch.X, batch.y)
    assert math.isclose(sum(step.probabilities.values()), 1.0)
    assert all(math.isfinite(value) for value in step.log_evidence.values())
    found = user.predict([[200.0, 1000.0], [-100.0, 0.0]])
    assert np.isfinite(found.mean).all()
    assert (found.variance > 0).all()


@pytest.mark.filterwarnings("ignore:.*far outside those of the pilot users")
def test_a_value_absurdly_far_outside_is_taken_and_said_to_have_limited_the_update():
    user = small_model(settings=Settings()).new_user(refine=8)
    follow(user, rows("new", 12, seed=16))
    step = user.update([[1e9, 100.0]], [0.0], action=[0])
    assert user.limited
    assert all(math.isfinite(value) for value in step.log_evidence.values())
    assert np.isfinite(user.predict([[1e9, 100.0], [12.0, 100.0]]).mean).all()


def test_a_constant_target_and_equal_rows_are_normal_input():
    user = small_model().new_user()
    for _ in range(3):
        user.update(np.full((4, 2), 5.0), np.full(4, 1.0))
    assert np.isfinite(user.predict([[5.0, 5.0]]).mean).all()
    assert user.rows == 12


def test_a_reward_model_needs_actions():
    model = rewarded_model()
    person, user = rows("new", 8, seed=12), model.new_user()
    with pytest.raises(DataError, match="update needs action="):
        user.update(person.X, person.y)
    assert (user.rows, user.history) == (0, ())
    follow(user, person)
    with pytest.raises(DataError, match="predict needs action="):
        user.predict(X_NEXT)
    without, given = user.predict(X_NEXT, action=[0, 0, 0]), user.predict(X_NEXT, action=[1, 1, 1])
    assert not np.array_equal(without.mean, given.mean)
    with pytest.raises(DataError, match="one action"):
        user.predict(X_NEXT, action=[1])
    before = model.new_user()
    assert (before.predict(X_NEXT, action=[1, 1, 1]).variance > before.predict(X_NEXT, action=[0, 0, 0]).variance).all()


def test_a_reward_models_user_freezes_like_any_other():
    model, person = rewarded_model(), rows("new", 40, seed=13, size=10)
    frozen, free = model.new_user(refine=12), model.new_user(refine=400)
    follow(frozen, person)
    follow(free, person)
    assert frozen.state.kept is None
    mine, theirs = (user.predict(X_NEXT[:2], action=[0, 1]) for user in (frozen, free))
    assert np.abs(mine.mean - theirs.mean).max() < np.sqrt(theirs.total.max())


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ([[1.0]], [1.0], "need 2 columns, in the order hour, steps"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "need 2 columns, in the order hour, steps"),
        ([[1.0, 2.0]], [1.0, 2.0], "an update needs one outcome for each of 1 rows, got shape"),
        ([[1.0, np.nan]], [1.0], "'steps' is nan"),
        ([[1.0, 2.0]], [np.inf], "target is inf"),
        (np.zeros((0, 2)), [], "user 'ann': no rows were given; an update needs at least one"),
        ([["a", 2.0]], [1.0], "numbers"),
        (np.zeros((1, 2, 2)), [1.0], "need 2 columns, in the order hour, steps"),
    ],
)
def test_rows_that_make_no_sense_are_refused_and_leave_no_trace(X, y, said):
    user = small_model().new_user("ann")
    follow(user, rows("ann", 4, seed=14))
    kept = user.copy()
    with pytest.raises(DataError, match=said):
        user.update(X, y)
    assert difference(user, kept) is None


@pytest.mark.parametrize("X", [[[1.0]], [1.0, 2.0, 3.0], [[1.0, np.nan]], np.zeros((1, 2, 2)), [["a", 1.0]]])
@pytest.mark.parametrize("seen", [0, 4])
def test_predictions_at_rows_that_make_no_sense_are_refused(X, seen):
    user = small_model().new_user()
    if seen:
        follow(user, rows("new", seen, seed=15))
    with pytest.raises(DataError):
        user.predict(X)


def test_how_a_user_is_followed_can_be_changed_and_nothing_else():
    model = small_model()
    user = model.new_user("ann", selection="greedy", memory="all", refine=3)
    assert (user.name, user.selection, user.memory, user.refine) == ("ann", "greedy", "all", 3)
    with pytest.raises(TrajectoryError, match="selection must be one of"):
        model.new_user(selection="best")
    with pytest.raises(KerneltrailError, match="'evidence' cannot be changed for a new user"):
        model.new_user(evidence="empirical")
    with pytest.raises(KerneltrailError, match="'speed' cannot be changed for a new user"):
        model.new_user(speed=3)


@pytest.fixture(scope="module")
def simulated():
    simulation = simulate.paper(train=6, test=20, seed=3)
    return simulation, fit(simulation.train, pool=Pool.of("LIN[x]", "PER[x]", "SE[x]"), settings=Settings(largest=2))


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["newest", "all"])
def test_simulated_users_are_recovered_though_some_begin_wrong(simulated, memory):
    simulation, model = simulated
    first, last = [], []
    for person in simulation.test:
        user = model.new_user(memory=memory)
        steps = follow(user, person)
        truth = simulation.truth[person.name]
        first.append(steps[0].composition == truth)
        last.append(steps[-1].composition == truth)
    assert not all(first)
    assert sum(last) >= 19


def test_another_persons_rows_change_nothing():
    model = small_model()
    user, truth = model.new_user("ann"), rows("ann", 4, seed=3)
    frame = {name: truth.X[:, i].tolist() for i, name in enumerate(COVARIATES)} | {"mood": truth.y.tolist()}
    with pytest.raises(DataError, match="user 'ann': row 1 is bob's"):
        user.update({**frame, model.schema.user: ["bob"] * 4})
    assert user.rows == 0
    user.update({**frame, model.schema.user: ["ann"] * 4})
    assert user.rows == 4


def test_rows_without_the_logged_probability_are_taken_with_a_warning():
    """What the action does is told from how far it is from its probability, so leaving that out changes the answer."""
    model = small_model(reward=Reward(("hour",), typical=0.4))
    model = replace(model, schema=replace(model.schema, action="sent", probability="p_sent"))
    truth = rows("ann", seed=9)
    frame = {name: truth.X[:, j] for j, name in enumerate(truth.covariates)} | {"mood": truth.y, "sent": truth.action}
    with pytest.warns(UserWarning, match=r"user 'ann': the rows have no column 'p_sent'.* usual probability, 0\.4"):
        model.new_user("ann").update(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.new_user("ann").update(frame | {"p_sent": np.full(truth.rows, 0.4)})
        model.new_user("ann").update(frame, probability=np.full(truth.rows, 0.4))


def test_who_was_given_no_name_takes_that_of_the_rows():
    model, person = small_model(), rows("ann", 12, seed=4)
    named, unnamed = model.new_user("ann"), model.new_user()
    frame = {**dict(zip(model.covariates, person.X.T, strict=True)), model.schema.target: person.y}
    hers = {**frame, model.schema.user: ["ann"] * 12}
    for user in (named, unnamed):
        user.update(hers)
    assert unnamed.name == "ann"
    assert unnamed.to_bytes() == named.to_bytes()
    with pytest.raises(DataError, match="user 'ann': row 1 is bob's"):
        unnamed.update({**frame, model.schema.user: ["bob"] * 12})
    assert unnamed.rows == 12
    unnamed.update({**frame, model.schema.target: person.y + 1.0})  # rows that name nobody are taken
    assert (unnamed.name, unnamed.rows) == ("ann", 24)
