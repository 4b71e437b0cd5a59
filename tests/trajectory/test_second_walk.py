"""Pilot users judged once more by what the others share: against sums over draws, and a listing of all paths."""

from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp

from gp import oracle as gp
from kerneltrail.data import simulate
from kerneltrail.engines import Serial
from kerneltrail.errors import NumericalError
from kerneltrail.kernels import Pool, Priors
from kerneltrail.trajectory import second_walk
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings, MapTable
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import to_bytes
from kerneltrail.trajectory.sampler.book import Book
from kerneltrail.trajectory.sampler.joint import State
from kerneltrail.trajectory.sampler.urn import Urn, last_use
from kerneltrail.trajectory.second_walk import Judge, changes, walked_again
from kerneltrail.trajectory.settings import Settings
from kerneltrail.trajectory.sharing import Member, learn_group
from trajectory import oracle

POOL = Pool.of("LIN[x]", "PER[x]", "SE[x]")
LIN, PER, SE = 1, 2, 4
BOTH = LIN | PER
QUICK = MapSettings(starts=1, screen=8)
SIMULATED = simulate.paper(train=6, test=1, seed=212, batches=(3, 4, 20))


@cache
def model(walk, **changes):
    """Six pilot users of 27 rows, who begin at LIN, go on to LIN + SE and end at LIN + PER or SE, if they walk once."""
    settings = Settings(
        evidence="laplace", largest=2, chains=2, sweeps=100, check=50, tails="normal", maps=QUICK, walk=walk, **changes
    )
    return fit(SIMULATED.train, pool=POOL, priors=Priors.synthetic(), settings=settings, engine="serial")


@cache
def table():
    return MapTable(SIMULATED.train.users, POOL, Priors.synthetic(), QUICK)


@cache
def judge():
    return Judge.of(model("once"), SIMULATED.train.users, table())


def test_everybody_goes_straight_where_the_first_steps_were_due_to_vague_priors():
    once, again = model("once"), model("again")
    assert all(len(set(path)) > 1 for path in once.paths)
    assert again.paths == tuple((path[-1],) * 3 for path in once.paths)
    assert {node.mask for node in again.nodes} == {BOTH, SE}
    np.testing.assert_allclose(again.transitions[0], [0.5, 0.5], atol=0.05)  # it was LIN for everybody


def test_what_the_chains_chose_stays_among_the_alternatives():
    once, again = model("once"), model("again")
    chosen = again.structures[0]
    assert (chosen.nodes, chosen.edges, chosen.visits) == (2, 4, 0)  # no chain was there
    assert chosen.log_joint < once.structures[0].log_joint  # by the evidences of the chains
    assert once.structures[0] in again.structures[1:]
    assert len(again.structures) <= 5
    agreement = again.diagnostics.traces["agreement"]
    assert agreement.shape == once.diagnostics.traces["agreement"].shape
    assert agreement.max() < 1.0 == once.diagnostics.traces["agreement"].max()  # with the paths of now


def test_groups_are_those_of_the_users_who_go_there_now():
    again, users = model("again"), SIMULATED.train.users
    for node in again.nodes:
        last = last_use(again.paths)[node.mask]
        members = [Member(m, t, table().get(m, node.mask).theta[t]) for m, t in last.items()]
        group, _ = learn_group(node.composition, members, users, None, Priors.synthetic(), QUICK)
        np.testing.assert_allclose(node.group.mean, group.mean)
        assert node.users == tuple(users[m].name for m in last)


def test_a_user_is_judged_by_the_group_of_the_others():
    once, users = model("once"), SIMULATED.train.users
    for node, without in zip(judge().nodes, judge().without, strict=True):
        last = last_use(once.paths)[node.mask]
        assert set(without) == set(last)
        for m in last:
            members = [Member(o, t, table().get(o, node.mask).theta[t]) for o, t in last.items() if o != m]
            naive, _ = learn_group(node.composition, members, users, None, Priors.synthetic(), QUICK)
            # Likelihoods are quadratics around the MAP under the group of all, not of the others: near, not the same.
            prior_sd = np.sqrt(Priors.synthetic().moments(node.composition)[1])
            assert np.abs(without[m].mean - naive.mean).max() < 0.35 * prior_sd.max()
            assert without[m].users == len(members)
            assert not np.array_equal(without[m].mean, node.group.mean)


def test_nobody_else_leaves_the_prior():
    (node,) = [node for node in model("once").nodes if node.mask == BOTH]
    alone = {0: last_use(model("once").paths)[BOTH][0]}
    groups = second_walk._groups_without(node, alone, SIMULATED.train.users, table(), None)
    mean, variance = Priors.synthetic().moments(node.composition)
    np.testing.assert_array_equal(groups[0].mean, mean)
    np.testing.assert_array_equal(groups[0].variance, variance)


def test_evidences_are_integrals_over_the_group_of_the_others():
    """Against 4,000 draws of the group; Laplace's error at few rows is some tenths of a nat for SE."""
    rng = np.random.default_rng(0)
    column = [node.mask for node in judge().nodes].index(SE)
    node = judge().nodes[column]
    for m in (3, 4):
        user = SIMULATED.train.users[m]
        group = judge().without[column][m]
        values = judge().evidences(m, user)[:, column]
        thetas = group.mean + np.sqrt(group.variance) * rng.standard_normal((4000, len(group.mean)))
        logs = gp.log_evidence(user.upto(2), node.composition, thetas)
        assert values[:2] == pytest.approx(logsumexp(logs, axis=0) - np.log(len(logs)), abs=0.4)


def listing(urn, values, ends, margin, masks):
    """The rule by listing all paths: the fewest changes within the margin of the best, then the best."""

    class Table:
        def log_evidence(self, user, mask):
            return values[user][:, masks.index(mask)]

    every = {}
    for flat in product(masks, repeat=sum(len(v) - 1 for v in values)):
        paths, rest = [], list(flat)
        for m, value in enumerate(values):
            paths.append((*rest[: len(value) - 1], ends[m]))
            rest = rest[len(value) - 1 :]
        order = [m for m, path in enumerate(paths) for _ in path]
        every[tuple(paths)] = oracle.log_joint(urn, Table(), tuple(paths), order)
    best = max(every.values())
    near = [paths for paths in every if every[paths] >= best - margin]
    return min(near, key=lambda p: (sum(a != b for path in p for a, b in pairwise(path)), -every[p]))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("margin", [0.0, 2.0])
def test_paths_are_those_of_a_listing(monkeypatch, seed, margin):
    """Two users of three batches and one of two, three nodes; chains of 200 sweeps visit all that matters of 729."""
    rng = np.random.default_rng(seed)
    masks = (LIN, BOTH, SE)
    ends = [masks[i] for i in rng.integers(3, size=3)]
    values = [rng.normal(0.0, 2.0, (length, 3)) for length in (3, 3, 2)]
    old = tuple(
        (*[masks[i] for i in rng.integers(3, size=len(v) - 1)], end) for v, end in zip(values, ends, strict=True)
    )
    if all(len(set(path)) == 1 for path in old):
        pytest.skip("nobody changes")
    urn = Urn(POOL)
    users = [SimpleNamespace(batches=len(v)) for v in values]
    stub = SimpleNamespace(
        paths=old, nodes=[SimpleNamespace(mask=mask) for mask in masks], mean=None, urn=urn,
        settings=Settings(margin=margin),
    )  # fmt: skip
    monkeypatch.setattr(Judge, "of", lambda *_: SimpleNamespace(evidences=lambda m, _: values[m].copy()))
    monkeypatch.setattr(second_walk, "SWEEPS", 200)
    found = walked_again(stub, users, None, Serial())
    assert found == listing(urn, values, ends, margin, masks)


def test_changes_are_counted_within_users():
    book = Book((LIN, BOTH, SE), (3, 1, 2))
    assert changes(book, State(((LIN, LIN, BOTH), (SE,), (SE, LIN)), 0.0)) == 2
    assert changes(book, State(((LIN, LIN, LIN), (SE,), (BOTH, BOTH)), 0.0)) == 0


def test_straight_paths_stay_and_nothing_is_computed():
    straight = replace(model("once"), structures=(replace(model("once").structures[0], paths=((SE, SE), (LIN, LIN))),))
    assert walked_again(straight, [], None, None) == ((SE, SE), (LIN, LIN))


def test_paths_stay_where_evidences_cannot_be_computed(monkeypatch):
    def broken(*_):
        raise NumericalError("not positive definite")

    monkeypatch.setattr(Judge, "evidences", broken)
    with pytest.warns(UserWarning, match="not judged again"):
        paths = walked_again(model("once"), SIMULATED.train.users, table(), Serial())
    assert paths == model("once").paths


@pytest.mark.parametrize("changes", [{"sharing": "separate"}, {"paths": "constant"}, {"structure": "averaged"}])
def test_only_a_chosen_structure_of_overlapping_paths_is_walked_again(changes):
    assert Settings(walk="again").walks_again
    assert not Settings(walk="once").walks_again
    assert not Settings(walk="again", **changes).walks_again


def test_it_is_in_files():
    again = model("again")
    back = from_bytes(to_bytes(again))
    assert back.paths == again.paths
    assert back.settings.walk == "again"
    stored = Settings().to_json()
    stored.pop("walk")
    assert Settings.from_json(stored).walk == "once"
