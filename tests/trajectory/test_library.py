from __future__ import annotations

import numpy as np
import pytest

from kerneltrail.kernels import Pool
from kerneltrail.trajectory import FixedEvidence, Joint, Sweep, TrajectoryError, Urn, promising
from kerneltrail.trajectory.exactness import tiny_problem


def hidden(customers, truth, size=20):
    """Evidences that grow by 5 nats a batch for every product right and fall by 2 for every one too many."""
    pool = Pool.of(*(f"SE[x{i}]" for i in range(size)), probability=0.1)

    def value(user, mask):
        right, extra = (mask & truth[user]).bit_count(), (mask & ~truth[user]).bit_count()
        return (5.0 * right - 2.0 * extra) * np.arange(1, customers[user] + 1)

    return Joint(Urn(pool), FixedEvidence(customers, value))


def test_it_finds_what_the_evidences_favour():
    joint = hidden((3, 2), (0b1001, 0b110))
    found = promising(joint)
    assert {0b1001, 0b110} <= set(found)
    assert list(found) == sorted(found, key=lambda mask: (mask.bit_count(), mask))
    assert len(found) < 20


def test_with_a_wide_beam_it_is_everything_within_the_margin():
    joint = tiny_problem(0, (2, 1))
    assert set(promising(joint, width=10, margin=1e9)) == set(range(1, 8))
    scores = {
        mask: [joint.row(0, mask)[t] + joint.urn.log_mass(-1, mask) for t in range(2)]
        + [joint.row(1, mask)[0] + joint.urn.log_mass(-1, mask)]
        for mask in range(1, 8)
    }
    best = {max(scores, key=lambda mask, i=i: scores[mask][i]) for i in range(3)}
    assert set(promising(joint, width=10, margin=0.0)) == best


def test_a_sweep_takes_it_and_starts_near_the_mode():
    joint = hidden((3, 3, 2), (0b1001, 0b1001, 0b110))
    library = promising(joint)
    sweep = Sweep(joint, ("path", "seat"), {"path": {"library": library}, "seat": {"library": library, "fresh": 1}})
    rng = np.random.default_rng(0)
    state = joint.draw_prior(rng)
    for _ in range(5):
        state, _ = sweep.step(rng, state)
    assert [path[-1] for path in state.paths] == [0b1001, 0b1001, 0b110]


@pytest.mark.parametrize("options", [{"width": 0}, {"largest": 0}, {"margin": -1.0}])
def test_bad_settings_are_refused(options):
    with pytest.raises(TrajectoryError, match="library"):
        promising(tiny_problem(0, (1,)), **options)
