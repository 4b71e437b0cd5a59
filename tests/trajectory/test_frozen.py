"""Users past `refine` rows: what is kept of them, and that it answers as the rows would."""

import pickle

import numpy as np
import pytest

from kerneltrail.trajectory.settings import Settings

from .small import X_NEXT, follow, rows, small_model

PUBLISHED = Settings.published(alpha=0.7, keep=0.9)


def size_of(user):
    return len(pickle.dumps(user.state.fits)) + len(pickle.dumps(user.state.kept))


@pytest.mark.parametrize("selection", ["filter", "greedy"])
def test_past_refine_rows_the_state_stops_growing(selection):
    user = small_model().new_user(refine=20, selection=selection)
    sizes = []
    for number in range(12):
        batch = rows("new", 10, seed=100 + number)
        user.update(batch.X, batch.y)
        sizes.append(size_of(user))
    assert user.rows == 120
    assert user.state.kept is None
    assert all(fit.online is not None for fit in user.state.fits)
    assert max(sizes[3:]) == pytest.approx(min(sizes[3:]), rel=0.01)


def test_a_frozen_user_is_close_to_one_that_is_refined_on():
    model = small_model(settings=Settings())
    frozen, free = model.new_user(refine=60), model.new_user(refine=10_000)
    for number in range(8):
        batch = rows("new", 15, seed=200 + number)
        frozen.update(batch.X, batch.y)
        free.update(batch.X, batch.y)
    assert frozen.composition == free.composition
    X = rows("next", 30, seed=999).X
    mine, theirs = frozen.predict(X), free.predict(X)
    spread = np.sqrt(theirs.total)
    assert np.abs(mine.mean - theirs.mean).max() < 0.3 * spread.max()
    np.testing.assert_allclose(mine.total, theirs.total, rtol=0.5)
    # The evidence at kept hyperparameters is at most that at the best ones, and not far below.
    gap = free.history[-1].log_evidence[free.composition] - frozen.history[-1].log_evidence[free.composition]
    assert -1.0 < gap < 6.0


def test_freezing_at_the_last_batch_changes_no_answer():
    """The same rows, hyperparameters and formulas, by sums instead of rows."""
    model, person = small_model(settings=Settings()), rows("new", 40, seed=11, size=20)
    kept, frozen = model.new_user(refine=40), model.new_user(refine=39)
    follow(kept, person)
    follow(frozen, person)
    assert kept.state.kept is not None
    assert frozen.state.kept is None
    assert frozen.history == kept.history
    mine, theirs = frozen.predict(X_NEXT), kept.predict(X_NEXT)
    np.testing.assert_allclose(mine.mean, theirs.mean, atol=1e-3)
    np.testing.assert_allclose(mine.variance, theirs.variance, rtol=1e-2, atol=1e-4)
