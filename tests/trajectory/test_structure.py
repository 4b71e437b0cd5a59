import numpy as np
import pytest

from kerneltrail.trajectory import Counts, State
from kerneltrail.trajectory.sampler.joint import choose
from trajectory.oracle import path_agreement


def naive(samples, margin, alternatives=4):
    """The rule, by plain listing."""
    best = max(state.log_joint for state in samples)
    top = {}
    for state in samples:
        top[state.paths] = max(top.get(state.paths, -np.inf), state.log_joint)

    def size(paths):
        nodes = {mask for path in paths for mask in path}
        edges = {edge for path in paths for edge in zip((-1, *path), path, strict=False)}
        return len(nodes), len(edges), edges

    near = [paths for paths in top if top[paths] >= best - margin]
    chosen = sorted(near, key=lambda p: (*size(p)[:2], -top[p], p))[0]
    graphs, others = [size(chosen)[2]], []
    for paths in sorted(top, key=lambda p: (-top[p], p)):
        if size(paths)[2] not in graphs and len(others) < alternatives:
            graphs.append(size(paths)[2])
            others.append(paths)
    return chosen, others


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("margin", [0.0, 2.0, 1e9])
def test_the_rule_is_that_of_a_plain_listing(seed, margin):
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(60):
        paths = tuple(tuple(int(m) for m in rng.integers(1, 4, 3)) for _ in range(2))
        samples.append(State(paths, float(rng.normal(0, 3)) if seed % 2 else -float(sum(map(sum, paths)))))
    found = choose(samples, margin=margin)
    chosen, others = naive(samples, margin)
    assert found[0].paths == chosen
    assert [structure.paths for structure in found[1:]] == others


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("margin", [0.0, 3.0, 1e9])
def test_the_typical_one_agrees_most_with_the_samples_within_the_margin(seed, margin):
    rng = np.random.default_rng(seed)
    kinds = [tuple(tuple(int(m) for m in rng.integers(1, 4, 3)) for _ in range(2)) for _ in range(25)]
    samples = [State(kinds[i], -float(sum(map(sum, kinds[i])))) for i in rng.integers(25, size=80)]
    best = max(state.log_joint for state in samples)
    near = [state for state in samples if state.log_joint >= best - margin]

    def agreement(state):
        return round(sum(path_agreement(state.paths, other.paths) for other in near), 9)

    wanted = sorted(near, key=lambda state: (-agreement(state), -state.log_joint, state.paths))[0]
    found = choose(samples, margin=margin, choice="typical")
    assert found[0].paths == wanted.paths
    assert found[0].visits == sum(state.paths == wanted.paths for state in samples)
    assert all(structure.graph != found[0].graph for structure in found[1:])


def test_what_was_sampled_often_is_typical_even_if_it_is_neither_simplest_nor_best():
    plain, usual, best = State(((1, 1), (1, 1)), -2.0), State(((1, 3), (2, 2)), -3.0), State(((1, 3), (2, 4)), -1.0)
    samples = [plain, usual, usual, best]
    assert choose(samples, margin=5.0)[0].paths == plain.paths
    assert choose(samples, margin=5.0, choice="typical")[0].paths == usual.paths
    assert choose(samples, margin=0.0, choice="typical")[0].paths == best.paths
    worth = {plain.paths: -1.0, usual.paths: -60.0, best.paths: -60.0}.__getitem__
    assert choose(samples, margin=55.0, choice="typical", worth=worth)[0].paths == plain.paths


def test_simpler_wins_within_the_margin_and_loses_outside():
    rich, plain = State(((1, 3), (2, 2)), -10.0), State(((1, 1), (1, 1)), -11.5)
    assert choose([rich, plain], margin=2.0)[0].paths == plain.paths
    assert choose([rich, plain], margin=1.0)[0].paths == rich.paths


def test_with_equal_nodes_the_fewer_edges_win_then_the_log_joint():
    many, few = State(((1, 3), (3, 1)), -1.0), State(((1, 3), (1, 3)), -1.5)
    assert choose([many, few], margin=2.0)[0].paths == few.paths
    better = State(((3, 1), (3, 1)), -1.2)
    assert choose([many, few, better], margin=2.0)[0].paths == better.paths


def test_alternatives_have_other_graphs_and_are_listed_once():
    one, same, other = State(((1, 3), (1, 3)), -1.0), State(((1, 3), (1, 3)), -1.0), State(((1, 1), (1, 3)), -2.0)
    turned = State(((1, 3), (1, 1)), -2.5)  # the graph of `other`
    found = choose([one, same, other, turned], margin=0.0)
    assert [structure.paths for structure in found] == [one.paths, other.paths]
    assert found[0].visits == 2
    assert len({structure.graph for structure in found}) == len(found)


def test_numbers_are_those_of_the_paths():
    (found,) = choose([State(((1, 3, 3), (2,)), -4.0)], margin=2.0)
    assert (found.nodes, found.edges, found.log_joint, found.visits) == (3, 4, -4.0, 1)
    assert found.graph == {(-1, 1), (1, 3), (3, 3), (-1, 2)}
    assert found.edges == Counts.of(found.paths).edges


def test_the_number_of_alternatives_is_limited():
    samples = [State(((1, mask),), -float(mask)) for mask in range(1, 20)]
    assert len(choose(samples, margin=0.0, alternatives=3)) == 4
    assert len(choose(samples, margin=0.0)) == 5


def test_another_worth_takes_the_place_of_the_log_joint():
    rich, plain, poor = State(((1, 3),), -1.0), State(((1, 1),), -9.0), State(((2, 2),), -2.0)
    worth = {rich.paths: -5.0, plain.paths: -6.0, poor.paths: -60.0}.__getitem__
    chosen, *others = choose([rich, plain, poor], margin=2.0, worth=worth)
    assert (chosen.paths, chosen.log_joint) == (plain.paths, -9.0)
    assert [structure.paths for structure in others] == [rich.paths, poor.paths]  # still by log joint
    assert choose([rich, plain, poor], margin=0.5, worth=worth)[0].paths == rich.paths
