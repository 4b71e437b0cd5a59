from __future__ import annotations

import json

import numpy as np
import pytest

from kerneltrail.store.validate import plain
from kerneltrail.trajectory import EXACT, MOVES, PUBLISHED, Sweep, TrajectoryError
from kerneltrail.trajectory.sampler.chains import rng_from, spawn
from support.exactness import tiny_problem
from support.sampling import draw_prior, run


@pytest.mark.parametrize("moves", [EXACT, PUBLISHED, ("path", "published_seat")])
@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.Philox, np.random.MT19937])
def test_a_chain_stopped_at_any_sweep_resumes_bit_for_bit(moves, generator):
    joint = tiny_problem(0, (4, 3, 2), keep=0.9)
    rng = np.random.Generator(generator(7))
    whole = []
    kept = {}
    for record in run(rng, Sweep(joint, moves), draw_prior(joint, rng), 20):
        whole.append(record)
        kept[record.sweep] = json.dumps([record.state.paths, record.state.tables, plain(rng.bit_generator.state)])
    for stop in (0, 7, 18):
        paths, tables, numbers = json.loads(kept[stop])
        again = tiny_problem(0, (4, 3, 2), keep=0.9)  # a fresh process has empty memories
        tables = None if tables is None else tuple(map(tuple, tables))
        rest = list(
            run(
                rng_from(numbers),
                Sweep(again, moves),
                again.state(paths, tables=tables),
                19 - stop,
                first=stop + 1,
            )
        )
        assert rest == whole[stop + 1 :]


def test_records_say_what_happened():
    joint = tiny_problem(0, (2, 2))
    rng = np.random.default_rng(0)
    records = list(run(rng, Sweep(joint, ("seat", "plate", "seat")), draw_prior(joint, rng), 5))
    assert [record.sweep for record in records] == [0, 1, 2, 3, 4]
    for record in records:
        assert record.info["seat"].proposed == 8  # twice in the sweep
        assert set(record.acceptance) == {"seat", "plate"}
        assert record.acceptance["seat"] == 1.0
        assert record.log_joint == joint.log_joint(record.state.paths)
        assert record.nodes == len({mask for path in record.state.paths for mask in path})
        steps = {(a, b) for path in record.state.paths for a, b in zip((-1, *path), path, strict=False)}
        assert record.edges == len(steps)


def test_a_sweep_moves_on_to_updated_evidences():
    joint = tiny_problem(0, (2, 2))
    other = tiny_problem(1, (2, 2))
    rng = np.random.default_rng(0)
    state = draw_prior(joint, rng)
    sweep = Sweep(joint, EXACT).on(other)
    assert sweep.joint is other
    with pytest.raises(TrajectoryError, match="another target"):
        next(run(rng, sweep, state, 1))
    assert next(run(rng, sweep, other.state(state.paths), 1)).log_joint < 1e9


def test_chains_from_one_seed_differ_and_repeat():
    first, second = spawn(3, 2)
    assert first.random() != second.random()
    assert spawn(3, 2)[1].random() == np.random.default_rng(np.random.SeedSequence(3).spawn(2)[1]).random()


@pytest.mark.parametrize(
    ("moves", "options", "match"),
    [
        ((), {}, "at least one move"),
        (("sit",), {}, "no move is called 'sit'"),
        (("seat",), {"path": {}}, "not in the sweep"),
        (("seat",), {"seat": {"slots": 1}}, "no option 'slots'; it has none"),
        (("plate",), {"plate": {"steps": 0}}, "at least 1"),
        (("published_seat",), {"published_seat": {"library": (1, 8)}}, "not a composition of the pool"),
        (("published_seat",), {"published_seat": {"library": (0,)}}, "not a composition of the pool"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_at_once(moves, options, match):
    with pytest.raises(TrajectoryError, match=match):
        Sweep(tiny_problem(0, (2, 2)), moves, options)


def test_an_unknown_generator_is_refused():
    with pytest.raises(TrajectoryError, match="no random generator"):
        rng_from({"bit_generator": "Dice"})


def test_every_move_can_be_named_and_every_set_is_made_of_moves():
    joint = tiny_problem(0, (2, 2))
    for name in MOVES:
        Sweep(joint, (name,))
    assert set(EXACT) | set(PUBLISHED) == set(MOVES)
